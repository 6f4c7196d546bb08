/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to wait: spin briefly, then give up the core again and again, then sleep.
 * Pure arithmetic; the caller does what next() says and passes the time in.
 *
 *     since the wait began   0          spin_ns        spin_ns + yield_ns
 *                            |--- SPIN ----|------ YIELD ------|--- SLEEP ...
 *
 * Spinning hears of an answer within nanoseconds, yielding lets the ranks run
 * that share the core, sleeping costs nothing but the time to wake.
 * engine/policy.h chooses both times. A struct belongs to one waiting thread.
 */
#ifndef RUEDA_BASE_BACKOFF_H
#define RUEDA_BASE_BACKOFF_H

#include <stdint.h>

typedef enum rueda_backoff_step {
    RUEDA_SPIN,
    RUEDA_YIELD,
    RUEDA_SLEEP,
} rueda_backoff_step;

struct rueda_backoff {
    /* Both may be 0, which leaves the step out. */
    int64_t spin_ns;
    int64_t yield_ns;
    int64_t since_ns; /* when the current wait began; 0: not yet known */
    /* How many have spun. At a multiple of RUEDA_SPIN_TURNS the next one wants
     * the time. */
    unsigned turns;
};

static inline void rueda_backoff_init(struct rueda_backoff *backoff,
                                      int64_t spin_ns, int64_t yield_ns)
{
    *backoff = (struct rueda_backoff){.spin_ns = spin_ns, .yield_ns = yield_ns};
}

/* Something moved: the next wait starts from the beginning. */
static inline void rueda_backoff_reset(struct rueda_backoff *backoff)
{
    backoff->turns = 0;
    backoff->since_ns = 0;
}

/* Reading the clock costs more than a turn of spinning, so it is read once in
 * this many turns. */
#define RUEDA_SPIN_TURNS 64

/* Must the caller read the clock for the next step? */
static inline int rueda_backoff_wants_time(const struct rueda_backoff *backoff)
{
    return backoff->spin_ns == 0 || backoff->turns % RUEDA_SPIN_TURNS == 0;
}

/* What to do now. now_ns is used only if it was requested. */
rueda_backoff_step rueda_backoff_next(struct rueda_backoff *backoff,
                                      int64_t now_ns);

#endif /* RUEDA_BASE_BACKOFF_H */
