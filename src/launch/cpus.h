/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs a rank is bound to. Any thread. */
#ifndef RUEDA_LAUNCH_CPUS_H
#define RUEDA_LAUNCH_CPUS_H

#include "launch/assignment.h"
#include "os/machine.h"

/* Usable CPUs, neighbours in the machine one after another: those of a core,
 * then of a cache, then of a package. */
struct rueda_cores {
    int cpus[RUEDA_MACHINE_MOST_CPUS];
    int count;
    int per_core; /* CPUs of a core, which are `per_core` ones in a row */
};

/* As hwloc knows the machine, if that library is there; else by number, every
 * CPU for a core of its own. */
void rueda_cores_find(const struct rueda_cpus *usable, struct rueda_cores *out);

/* The latter. Pure. */
void rueda_cores_plain(const struct rueda_cpus *usable,
                       struct rueda_cores *out);

/*
 * The share of a rank of this host. AUTO: neighbouring cores, as many for each
 * rank as for the others, or one more; where there are more ranks than cores,
 * CPUs. CORE: one core, in turn. False: it is not bound, as where AUTO finds
 * more ranks than CPUs. Pure.
 */
bool rueda_cores_share(const struct rueda_cores *cores, rueda_bind bind,
                       int local_rank, int local_size, struct rueda_cpus *out);

#endif /* RUEDA_LAUNCH_CPUS_H */
