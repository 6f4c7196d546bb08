/* SPDX-License-Identifier: Apache-2.0 */
/* What was best at each size, as rows for RUEDA_ALGO. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/size.h"
#include "tool/tune.h"

/* The power of two nearest to the geometric mean. */
static size_t border(size_t below, size_t above)
{
    const double middle =
        (log2((double)(below == 0 ? 1 : below)) + log2((double)above)) / 2.0;

    return (size_t)1 << (unsigned)lround(middle);
}

/* No rank of these knows how much the others send, so size is no reason. */
static bool is_sized(rueda_kind kind)
{
    return kind != RUEDA_ALLTOALL && kind != RUEDA_BARRIER;
}

/* Join neighbouring sizes with the same winner into one row of RUEDA_ALGO. */
size_t rueda_tune_format(rueda_kind kind, int ranks,
                         const struct rueda_tune_point *points, int count,
                         char *out, size_t room)
{
    char from_text[RUEDA_SIZE_TEXT];
    char to_text[RUEDA_SIZE_TEXT];
    size_t from = 0;
    size_t used = 0;

    if (room > 0)
        out[0] = '\0';
    for (int i = 0; i < count; i++) {
        const bool is_last = i == count - 1;
        size_t to = 0;

        if (!is_last && strcmp(points[i].best, points[i + 1].best) == 0)
            continue;
        if (!is_last)
            to = border(points[i].bytes, points[i + 1].bytes);
        used += (size_t)snprintf(
            used < room ? out + used : NULL, used < room ? room - used : 0,
            is_sized(kind) ? "%s:%s-%s@%d:%s;\n" : "%s:%s%s@%d:%s;\n",
            rueda_kind_str(kind),
            is_sized(kind) ? rueda_size_short(from, from_text) : "",
            !is_sized(kind) ? ""
            : is_last       ? "inf"
                            : rueda_size_short(to, to_text),
            ranks, points[i].best);
        from = to;
    }
    return used;
}
