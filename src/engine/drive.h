/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driving the engine: what the files that do it share. engine.h has the
 * outline.
 *
 *   token.c        one thread at a time drives: the token, and waking others
 *   wait.c         a thread that holds the token takes turns, or waits
 *   background.c   the thread that drives when no caller waits
 *   submit.c       operations come in
 *   engine_init.c  the engine begins and ends
 *   policy.c       how patient all of them are
 *
 * Any thread may call these functions, except where noted.
 */
#ifndef RUEDA_ENGINE_DRIVE_H
#define RUEDA_ENGINE_DRIVE_H

#include "engine/engine.h"
#include "os/clock.h"

/* True: this thread holds the token now. */
static inline bool rueda_drive_take(struct rueda_engine *engine)
{
    int free = 0;

    if (atomic_load_explicit(&engine->token, memory_order_relaxed) != 0 ||
        !atomic_compare_exchange_strong(&engine->token, &free, 1))
        return false;
    engine->own = NULL;
    return true;
}

/* The thread that holds the token may sleep. */
static inline void rueda_drive_wake_holder(struct rueda_engine *engine)
{
    struct rueda_segment *segment = engine->job->segment;

    rueda_segment_notify(segment, segment->me);
}

/* Has the engine nothing to do? Only by the holder of the token. */
static inline bool rueda_drive_is_idle(struct rueda_engine *engine)
{
    return !rueda_lanes_are_busy(&engine->lanes) &&
           !rueda_failing_is_on(engine);
}

/* Has anything been pushed that no turn has taken in yet? */
static inline bool rueda_drive_has_arrivals(const struct rueda_engine *engine)
{
    return rueda_op_queue_has_arrivals(&engine->lanes.arrived);
}

/* Plan the next check for when a lane wants it, if that is sooner than it is
 * planned; true if so. Only by the holder of the token. */
static inline bool rueda_drive_plan_check(struct rueda_engine *engine)
{
    return rueda_policy_plan_check(&engine->policy,
                                   rueda_lanes_due_ns(&engine->lanes));
}

/* Free the token, and wake a thread that goes on. Only by its holder, which may
 * hold callbacks that are due: release() runs them, let_go() leaves them. */
void rueda_drive_let_go(struct rueda_engine *engine);
void rueda_drive_release(struct rueda_engine *engine);

/* Wake the background thread: there is work. */
void rueda_drive_tell(struct rueda_engine *engine);

/* Check whether other ranks wait for this one; true if anything moved. Only by
 * the holder of the token. */
bool rueda_drive_check(struct rueda_engine *engine);

/* Take turns until op has ended, until the deadline (negative: none), or until
 * callbacks are due; without an op until there is nothing to do or another
 * thread wants to drive. Only by the holder of the token. */
void rueda_drive(struct rueda_engine *engine, struct rueda_op *op,
                 int64_t deadline_ns);

/* Start the background thread, if there is none. Under the lock. */
void rueda_drive_start_thread(struct rueda_engine *engine);

#endif /* RUEDA_ENGINE_DRIVE_H */
