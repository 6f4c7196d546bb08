/* SPDX-License-Identifier: Apache-2.0 */
/* Small ordinary files, whole. Any thread; may block as the file system does.
 */
#ifndef RUEDA_OS_FILE_H
#define RUEDA_OS_FILE_H

#include <rueda/rueda.h>

/* Read a text file into out and end it with a zero. RUEDA_ERR_IO leaves the
 * cause in errno; RUEDA_ERR_LIMIT: it does not fit. */
rueda_status rueda_file_read(const char *path, char *out, size_t bytes);

#endif /* RUEDA_OS_FILE_H */
