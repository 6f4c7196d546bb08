/* SPDX-License-Identifier: Apache-2.0 */
#include "job/set_text.h"

#include <stdlib.h>

static int refuse(const char *text, struct rueda_text *error)
{
    rueda_text_set(error,
                   "process sets are ranks parted by commas, sets parted by "
                   "semicolons, such as 0,2;4-7; what begins with \"%.20s\" "
                   "is not",
                   text);
    return -1;
}

/* A rank of the job, or -1. */
static int parse_rank(const char **at, int size, struct rueda_text *error)
{
    const char *begin = *at;
    char *end;
    long rank;

    if (*begin < '0' || *begin > '9')
        return refuse(begin, error);
    rank = strtol(begin, &end, 10);
    if (rank >= size) {
        rueda_text_set(error,
                       "a process set with rank %.10s in a job of %d ranks",
                       begin, size);
        return -1;
    }
    *at = end;
    return (int)rank;
}

/* "3" or "4-7", added to ranks[*count]. */
static bool parse_range(const char **at, int size, int *ranks, int *count,
                        struct rueda_text *error)
{
    const char *begin = *at;
    int first = parse_rank(at, size, error);
    int last = first;

    if (first >= 0 && **at == '-') {
        (*at)++;
        last = parse_rank(at, size, error);
        if (last >= 0 && last < first)
            last = refuse(begin, error);
    }
    if (first < 0 || last < 0)
        return false;
    for (int rank = first; rank <= last; rank++) {
        if (*count == size) {
            rueda_text_set(error, "a process set names a rank twice");
            return false;
        }
        ranks[(*count)++] = rank;
    }
    return true;
}

int rueda_set_text_next(const char **text, int size, int *ranks,
                        struct rueda_text *error)
{
    const char *at = *text;
    int count = 0;

    while (*at == ';' || *at == ' ')
        at++;
    while (*at != '\0' && *at != ';') {
        if (!parse_range(&at, size, ranks, &count, error))
            return -1;
        if (*at == ',')
            at++;
        else if (*at != ';' && *at != '\0')
            return refuse(at, error);
    }
    *text = at;
    return count;
}
