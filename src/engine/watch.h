/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank watches its own oldest unfinished operation, ordered or named,
 * decided or not. If that has not moved for long, one rank of each host warns,
 * and names the processes of the host that are stopped or elsewhere; the job
 * ends where the settings say so. About an operation that other ranks have not
 * submitted the coordinator warns (negotiate/stall.c), unless it is stopped
 * itself.
 */
#ifndef RUEDA_ENGINE_WATCH_H
#define RUEDA_ENGINE_WATCH_H

#include <stdint.h>

#include "base/config.h"

struct rueda_engine;

struct rueda_watch {
    uint64_t mark;      /* the operation and how far it was; 0: none */
    int64_t since_ns;   /* when it was first seen so */
    int64_t warned_ns;  /* 0: no warning has been logged */
    int64_t stopped_ns; /* since when a process was seen stopped; 0: none is */
    int64_t looked_ns;  /* when this rank last checked; 0: never */
};

/* After how long at the earliest an operation that does not move causes a
 * warning or an end; 0: never. */
int64_t rueda_watch_first_ms(const struct rueda_config *config);

/* Check it; warn, or fail for good. Only by the holder of the token. */
void rueda_watch_check(struct rueda_engine *engine);

#endif /* RUEDA_ENGINE_WATCH_H */
