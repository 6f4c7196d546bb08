/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <stdio.h>

rueda_status rueda_file_read(const char *path, char *out, size_t bytes)
{
    FILE *file = fopen(path, "re");
    rueda_status status = RUEDA_OK;
    size_t got;

    if (file == NULL)
        return RUEDA_ERR_IO;
    got = fread(out, 1, bytes, file);
    if (ferror(file))
        status = RUEDA_ERR_IO;
    else if (got == bytes)
        status = RUEDA_ERR_LIMIT;
    else
        out[got] = '\0';
    fclose(file);
    return status;
}
