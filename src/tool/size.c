/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/size.h"

#include <ctype.h>
#include <stdio.h>

static const char units[] = "kmgt";

const char *rueda_size_short(size_t bytes, char out[RUEDA_SIZE_TEXT])
{
    int unit = -1;

    while (bytes != 0 && bytes % 1024 == 0 && units[unit + 1] != '\0') {
        bytes /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(out, RUEDA_SIZE_TEXT, "%zu", bytes);
    else
        snprintf(out, RUEDA_SIZE_TEXT, "%zu%c", bytes, units[unit]);
    return out;
}

/* "4 MiB" in the largest unit that leaves 1 or more. */
const char *rueda_size_words(size_t bytes, char out[RUEDA_SIZE_TEXT])
{
    double value = (double)bytes;
    int unit = -1;

    while (value >= 1024.0 && units[unit + 1] != '\0') {
        value /= 1024.0;
        unit++;
    }
    if (unit < 0)
        snprintf(out, RUEDA_SIZE_TEXT, "%zu bytes", bytes);
    else
        snprintf(out, RUEDA_SIZE_TEXT, "%.4g %ciB", value,
                 toupper((unsigned char)units[unit]));
    return out;
}
