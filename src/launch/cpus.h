/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs a rank is bound to. Pure; any thread. */
#ifndef RUEDA_LAUNCH_CPUS_H
#define RUEDA_LAUNCH_CPUS_H

#include "launch/plan.h"
#include "os/machine.h"

/*
 * The share of a rank of this host. AUTO: neighbouring CPUs, of all usable ones
 * as many for each rank as for the others, or one more. CORE: one, in turn.
 * False: it is not bound, as where AUTO finds more ranks than CPUs.
 */
bool rueda_cpus_share(const struct rueda_cpus *usable, rueda_bind bind,
                      int local_rank, int local_size, struct rueda_cpus *out);

#endif /* RUEDA_LAUNCH_CPUS_H */
