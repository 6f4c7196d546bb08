/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/user_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"

char *rueda_user_file_read(const char *what, const char *path, size_t most_mib,
                           struct rueda_text *words)
{
    const size_t bytes = most_mib << 20;
    char *text = malloc(bytes);
    rueda_status status = RUEDA_ERR_NOMEM;

    errno = ENOMEM;
    if (text != NULL)
        status = rueda_file_read(path, text, bytes);
    if (status == RUEDA_OK)
        return text;
    if (status == RUEDA_ERR_LIMIT)
        rueda_text_set(words, "%s %.200s: over %zu MiB", what, path, most_mib);
    else
        rueda_text_set(words, "%s %.200s: %s", what, path, strerror(errno));
    free(text);
    return NULL;
}
