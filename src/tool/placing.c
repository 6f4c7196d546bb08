/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tool/placing.h"

#include <sched.h>

/* Move each rank to a CPU of its own, and keep it there if it is to be bound.
 * Being restricted to one CPU moves a thread at once; to be allowed all of them
 * again lets it stay where it is. */
void rueda_placing_apply(int rank, rueda_placing placing)
{
    cpu_set_t usable;
    cpu_set_t mine;
    int left;

    if (placing == RUEDA_PLACING_FREE ||
        sched_getaffinity(0, sizeof(usable), &usable) != 0 ||
        CPU_COUNT(&usable) < 2)
        return;
    left = rank % CPU_COUNT(&usable);
    CPU_ZERO(&mine);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &usable) || left-- > 0)
            continue;
        CPU_SET(cpu, &mine);
        break;
    }
    if (sched_setaffinity(0, sizeof(mine), &mine) == 0 &&
        placing != RUEDA_PLACING_BOUND)
        sched_setaffinity(0, sizeof(usable), &usable);
}
