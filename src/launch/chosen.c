/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/chosen.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 6

/* A number of few digits; NULL: there is none. */
static const char *read_number(const char *at, int *out)
{
    const size_t digits = strspn(at, "0123456789");

    if (digits == 0 || digits > MOST_DIGITS)
        return NULL;
    *out = atoi(at);
    return at + digits;
}

/* "3" or "3-7", and the comma behind it if more follows. NULL: it is neither.
 */
static const char *read_range(const char *at, int *out_first, int *out_last)
{
    at = read_number(at, out_first);
    *out_last = *out_first;
    if (at != NULL && *at == '-')
        at = read_number(at + 1, out_last);
    if (at == NULL || *out_last < *out_first)
        return NULL;
    if (*at == ',' && at[1] != '\0')
        return at + 1;
    return *at == '\0' ? at : NULL;
}

bool rueda_chosen_is_valid(const char *list)
{
    int first = 0;
    int last = 0;

    if (*list == '\0')
        return false;
    while (list != NULL && *list != '\0')
        list = read_range(list, &first, &last);
    return list != NULL;
}

bool rueda_chosen_has(const char *list, int rank)
{
    int first = 0;
    int last = 0;

    if (list == NULL)
        return true;
    while (list != NULL && *list != '\0') {
        list = read_range(list, &first, &last);
        if (list != NULL && rank >= first && rank <= last)
            return true;
    }
    return false;
}
