/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is due when: a binary heap of timers that live inside of their owners.
 * A timer is in the heap from add to remove, without end at first, so that
 * setting it needs no memory and cannot fail.
 */
#ifndef RUEDA_JOB_STORE_TIMERS_H
#define RUEDA_JOB_STORE_TIMERS_H

#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

#define RUEDA_STORE_NEVER INT64_MAX

typedef enum rueda_store_timer_kind {
    RUEDA_STORE_TIMER_WAIT,
    RUEDA_STORE_TIMER_LEASE,
    RUEDA_STORE_TIMER_SESSION,
    RUEDA_STORE_TIMER_WILL,
} rueda_store_timer_kind;

struct rueda_store_timer {
    rueda_store_timer_kind kind; /* what it is a field of */
    int64_t due_ns;
    uint64_t order; /* of those due at once, the one set first comes first */
    size_t at;      /* its place in the heap */
};

/* Zeroed memory is an empty one. */
struct rueda_store_timers {
    struct rueda_store_timer **heap;
    size_t count;
    size_t room;
    uint64_t order;
};

/* The timers are not owned. */
void rueda_store_timers_fini(struct rueda_store_timers *timers);

rueda_status rueda_store_timers_add(struct rueda_store_timers *timers,
                                    struct rueda_store_timer *timer,
                                    rueda_store_timer_kind kind);
void rueda_store_timers_remove(struct rueda_store_timers *timers,
                               struct rueda_store_timer *timer);

/* Due time_ms from now; a time beyond the clock's range never comes. */
void rueda_store_timers_set(struct rueda_store_timers *timers,
                            struct rueda_store_timer *timer, int64_t now_ns,
                            uint32_t time_ms);
void rueda_store_timers_unset(struct rueda_store_timers *timers,
                              struct rueda_store_timer *timer);

/* The next one, or NULL if none is ever due. */
struct rueda_store_timer *
rueda_store_timers_first(const struct rueda_store_timers *timers);

#endif /* RUEDA_JOB_STORE_TIMERS_H */
