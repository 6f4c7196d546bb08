/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine is like: cores, caches, quotas. Any thread. */
#ifndef RUEDA_OS_MACHINE_H
#define RUEDA_OS_MACHINE_H

#include <rueda/rueda.h>

#define RUEDA_MACHINE_MOST_CPUS 1024

/* The CPUs that the calling thread may run on. */
struct rueda_cpus {
    uint64_t bits[RUEDA_MACHINE_MOST_CPUS / 64];
};
void rueda_machine_cpus(struct rueda_cpus *out);
int rueda_cpus_count(const struct rueda_cpus *cpus);

struct rueda_caches {
    size_t l1_bytes;
    size_t l2_bytes;
    size_t l3_bytes;
};
/* Of the first CPU; typical figures if the machine does not tell. */
void rueda_machine_caches(struct rueda_caches *out);

/* CPUs' worth of time that the cgroup allows, or 0 where it sets no limit. */
double rueda_machine_cpu_quota(void);

#endif /* RUEDA_OS_MACHINE_H */
