/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the user's, as one text. Any thread; blocks as the file system does.
 */
#ifndef RUEDA_LAUNCH_USER_FILE_H
#define RUEDA_LAUNCH_USER_FILE_H

#include <stddef.h>

#include "base/text.h"

/*
 * The whole file, to be freed, ended by a zero. NULL: it cannot be read, or is
 * larger than the limit in MiB; the message then calls it by `what`, for
 * example "the hostfile".
 */
char *rueda_user_file_read(const char *what, const char *path, size_t most_mib,
                           struct rueda_text *words);

#endif /* RUEDA_LAUNCH_USER_FILE_H */
