/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine is: for the head of a table, and for `rueda info`. What
 * cannot be found out is empty or 0.
 */
#ifndef RUEDA_TOOL_MACHINE_H
#define RUEDA_TOOL_MACHINE_H

#include <stddef.h>

struct rueda_tool_machine {
    char cpu[128];
    int cpus;         /* that are there */
    int usable;       /* that this process may use */
    char caches[160]; /* "L1d 32 KiB, L2 1 MiB, L3 32 MiB" */
    size_t memory_total;
    size_t memory_free; /* by itself and within the cgroup */
    double quota_cpus;  /* the cgroup's quota in CPUs; 0: none */
};

void rueda_tool_machine_read(struct rueda_tool_machine *out_machine);

#endif /* RUEDA_TOOL_MACHINE_H */
