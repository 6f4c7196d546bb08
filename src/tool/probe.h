/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long does one cache line take from a core to another? Two processes
 * answer each other through one line of a shared page. On a virtual machine
 * the answer changes by the minute, and every time in the table with it.
 */
#ifndef RUEDA_TOOL_PROBE_H
#define RUEDA_TOOL_PROBE_H

#include <stdbool.h>

#include "base/text.h"

/* A page of its own for a probe, made by the coordinator. */
struct rueda_probe {
    int fd;
    void *page;
    char path[64]; /* under which other processes of the user find it */
};

struct rueda_probe_result {
    double seconds; /* one way, median; 0 on side 1 */
    int cpu;        /* where this side ran at the end */
};

bool rueda_probe_open(struct rueda_probe *probe);
void rueda_probe_close(struct rueda_probe *probe);

/* Make it ready for a run. Before each. */
void rueda_probe_reset(struct rueda_probe *probe);

/* One of the two sides, 0 or 1. Takes some milliseconds, and fails with a
 * message if the other side has not come after 20 seconds. */
bool rueda_probe_run(const char *path, int side,
                     struct rueda_probe_result *out_result,
                     struct rueda_text *words);

#endif /* RUEDA_TOOL_PROBE_H */
