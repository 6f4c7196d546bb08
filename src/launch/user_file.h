/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the user's, as one text. Any thread; blocks as the file system does.
 */
#ifndef RUEDA_LAUNCH_USER_FILE_H
#define RUEDA_LAUNCH_USER_FILE_H

#include <stddef.h>

#include "base/text.h"

/*
 * The whole file, to be freed, ended by a zero. NULL: it cannot be read, or has
 * so many MiB or more; words then name it as what it is, "the hostfile" for
 * example.
 */
char *rueda_user_file_read(const char *what, const char *path, size_t most_mib,
                           struct rueda_text *words);

#endif /* RUEDA_LAUNCH_USER_FILE_H */
