/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the program that use a context: does each of them wait for an
 * operation, so that nothing new can come from this rank?
 *
 * A thread is known from its first call on that submits, asks or waits. It
 * waits while it is inside a wait without a deadline, or between two slices of
 * one. A thread that polls, or that waits until a deadline, may go on by
 * itself, and so does not count as waiting. Callbacks are no threads: they are
 * counted while they run.
 */
#ifndef RUEDA_ENGINE_CENSUS_H
#define RUEDA_ENGINE_CENSUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rueda_census_thread;

struct rueda_census {
    uint64_t serial; /* of this one, never used again; not 0 */
    pthread_mutex_t lock;
    struct rueda_census_thread *first; /* under lock */
    bool is_blind;       /* under lock: no memory for a thread was there */
    atomic_int callings; /* threads that run callbacks */
    _Atomic uint64_t deliveries;
};

void rueda_census_init(struct rueda_census *census);
void rueda_census_fini(struct rueda_census *census);

/* This thread does something else than wait. Any thread, before other threads
 * can see what it does; not counted inside a callback. */
void rueda_census_act(struct rueda_census *census);

/*
 * This thread is about to wait without end, or goes on waiting: its operation
 * is not among those delivered before `deliveries` was read. Any thread.
 */
void rueda_census_wait(struct rueda_census *census, uint64_t deliveries);

static inline uint64_t rueda_census_deliveries(struct rueda_census *census)
{
    return atomic_load_explicit(&census->deliveries, memory_order_acquire);
}

/* Statuses have been stored: a thread that reads this number finds them. By the
 * holder of the engine's token. */
static inline void rueda_census_delivered(struct rueda_census *census)
{
    atomic_store_explicit(
        &census->deliveries,
        atomic_load_explicit(&census->deliveries, memory_order_relaxed) + 1,
        memory_order_release);
}

/* Does every living thread that has used the context wait, is there at least
 * one, and does none run a callback? By the holder of the token, which looks
 * for arrivals afterwards. */
bool rueda_census_all_wait(struct rueda_census *census);

#endif /* RUEDA_ENGINE_CENSUS_H */
