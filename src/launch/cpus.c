/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cpus.h"

#include <string.h>

/* Copy the usable CPUs from the first-th on, before the last-th. */
static void copy_range(const struct rueda_cpus *usable, int first, int last,
                       struct rueda_cpus *out)
{
    int seen = 0;

    memset(out, 0, sizeof(*out));
    for (int cpu = 0; cpu < RUEDA_MOST_CPUS; cpu++) {
        const uint64_t bit = (uint64_t)1 << (cpu % 64);

        if ((usable->bits[cpu / 64] & bit) == 0)
            continue;
        if (seen >= first && seen < last)
            out->bits[cpu / 64] |= bit;
        seen++;
    }
}

bool rueda_cpus_share(const struct rueda_cpus *usable, rueda_bind bind,
                      int local_rank, int local_size, struct rueda_cpus *out)
{
    const int count = rueda_cpus_count(usable);

    if (bind == RUEDA_BIND_NONE || count == 0)
        return false;
    if (bind == RUEDA_BIND_CORE) {
        copy_range(usable, local_rank % count, local_rank % count + 1, out);
        return true;
    }
    if (local_size > count)
        return false;
    copy_range(usable, local_rank * count / local_size,
               (local_rank + 1) * count / local_size, out);
    return true;
}
