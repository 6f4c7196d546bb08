/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <limits.h>
#include <stddef.h>

bool rueda_parse_whole(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t number = 0;

    if (text == NULL || text[0] == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        /* What comes before '0' has become a very large digit. */
        if (digit > 9 || digit > most || number > (most - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *out = number;
    return true;
}

bool rueda_parse_int(const char *text, int *out)
{
    uint64_t number;

    if (!rueda_parse_whole(text, INT_MAX, &number))
        return false;
    *out = (int)number;
    return true;
}
