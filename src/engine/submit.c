/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submitting: an operation is pushed on a list, and the thread that submits
 * sees to it that a thread makes progress with it: the holder of the token, the
 * background thread, or itself with one turn where cores are few.
 */
#include "engine/drive.h"

/* Remember it if this operation is not light. Before it is pushed. */
static void weigh(struct rueda_engine *engine, struct rueda_op *op)
{
    if (!op->is_ordered)
        rueda_policy_weigh(&engine->policy,
                           rueda_request_bytes(&rueda_ticket_of(op)->request));
}

/* The background thread must not leave this to another thread. */
static void hurry_thread(struct rueda_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->is_hurried = true;
    atomic_store(&engine->is_told, true);
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

/* By a thread that does not wait; true if there was a turn. The background
 * thread runs the callbacks, for they may want locks that our caller holds. */
static bool take_turn(struct rueda_engine *engine)
{
    bool is_due;

    if (!rueda_drive_take(engine))
        return false;
    engine_turn(engine);
    is_due = engine->due.first != NULL;
    rueda_drive_let_go(engine);
    if (is_due)
        hurry_thread(engine);
    return true;
}

/* By a thread that has submitted; true if there was a turn. */
static bool help(struct rueda_engine *engine)
{
    struct rueda_policy *policy = &engine->policy;

    return rueda_policy_may_help(policy) &&
           !rueda_policy_is_rush(policy, rueda_ticks()) &&
           rueda_policy_should_help(policy, rueda_clock_ns()) &&
           take_turn(engine);
}

void rueda_engine_poll(struct rueda_engine *engine)
{
    rueda_census_act(&engine->census);
    if (!engine->policy.has_room)
        take_turn(engine);
}

void rueda_engine_submit_more(struct rueda_engine *engine, struct rueda_op *op)
{
    rueda_census_act(&engine->census);
    weigh(engine, op);
    rueda_op_push(&engine->lanes.arrived, op);
}

/* Something was pushed: a thread must make progress with it. */
static void see_to_progress(struct rueda_engine *engine, bool is_ordered)
{
    rueda_policy_be_used(&engine->policy);
    if (!atomic_load_explicit(&engine->has_thread, memory_order_relaxed)) {
        pthread_mutex_lock(&engine->lock);
        rueda_drive_start_thread(engine);
        pthread_mutex_unlock(&engine->lock);
    }
    if (!is_ordered && help(engine))
        return;
    /* A holder that sleeps polls the queue when it wakes. */
    if (rueda_segment_is_asleep(engine->job->segment))
        rueda_drive_wake_holder(engine);
    /* Either we see that the background thread has to be told again, or it sees
     * what we have pushed. */
    if (!atomic_load(&engine->is_told))
        rueda_drive_tell(engine);
}

void rueda_engine_submit(struct rueda_engine *engine, struct rueda_op *op)
{
    const bool is_ordered = op->is_ordered; /* it may be gone once pushed */

    rueda_census_act(&engine->census);
    weigh(engine, op);
    rueda_op_push(&engine->lanes.arrived, op);
    see_to_progress(engine, is_ordered);
}

void rueda_engine_submit_chain(struct rueda_engine *engine,
                               struct rueda_op *first)
{
    rueda_census_act(&engine->census);
    for (struct rueda_op *op = first; op != NULL; op = op->next)
        weigh(engine, op);
    rueda_op_push_chain(&engine->lanes.arrived, first);
    see_to_progress(engine, false);
}

void rueda_engine_leave(struct rueda_engine *engine)
{
    rueda_policy_be_left(&engine->policy, rueda_clock_ns());
    hurry_thread(engine);
}

void rueda_engine_abort(struct rueda_engine *engine, const char *why)
{
    rueda_failing_by_program(engine, why);
    rueda_drive_wake_holder(engine);
    rueda_drive_tell(engine);
}
