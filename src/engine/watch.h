/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank watches its own oldest unfinished operation, ordered or named,
 * decided or not. If that has not moved for long, one rank of each host says
 * so, and which processes of the host are stopped or elsewhere; and the job
 * ends where the settings want that. What only waits for the other ranks to
 * submit it is the coordinator's to warn of (negotiate/stall.c), unless that
 * one is stopped.
 */
#ifndef RUEDA_ENGINE_WATCH_H
#define RUEDA_ENGINE_WATCH_H

#include <stdint.h>

#include "base/config.h"

struct rueda_engine;

struct rueda_watch {
    uint64_t mark;      /* stands for the operation and how far it was */
    int64_t since_ns;   /* when it was first seen so */
    int64_t warned_ns;  /* 0: no warning has been logged */
    int64_t stopped_ns; /* since when a process was seen stopped; 0: none is */
};

/* After how long something is to be done about an operation that does not move,
 * at the earliest; 0: never. */
int64_t rueda_watch_first_ms(const struct rueda_config *config);

/* Look at it; warn, or fail for good. Only by the holder of the token. */
void rueda_watch_check(struct rueda_engine *engine);

#endif /* RUEDA_ENGINE_WATCH_H */
