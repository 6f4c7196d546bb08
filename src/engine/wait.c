/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for an operation: a thread that gets the token drives the engine, and
 * spins, yields or sleeps while nothing moves; another thread parks until the
 * operation is delivered or the token is free.
 */
#include "base/backoff.h"
#include "base/fence.h"
#include "engine/drive.h"
#include "job/council.h"
#include "job/failure_report.h"
#include "os/thread.h"

/* How many turns one check takes at most. */
#define CHECK_TURNS 64

/* Should the holder stop driving? Yes if callbacks are due, or if the operation
 * that it waits for has ended. The background thread waits for none (NULL) and
 * gives way to threads that wait or submit. */
static bool is_enough(struct rueda_engine *engine, struct rueda_op *op)
{
    if (engine->due.first != NULL)
        return true;
    if (op != NULL)
        return rueda_op_status(op) != RUEDA_IN_PROGRESS;
    return atomic_load_explicit(&engine->callers, memory_order_relaxed) > 0 ||
           rueda_drive_is_idle(engine) ||
           rueda_policy_help_until_ns(&engine->policy) > rueda_clock_ns();
}

/* Is a rank gone without which an operation cannot end? */
static bool is_spoilt(const struct rueda_engine *engine)
{
    struct rueda_job *job = engine->job;

    return rueda_lanes_are_spoilt(&engine->lanes) ||
           (rueda_lanes_need_all(&engine->lanes) &&
            (rueda_failure_has_come(job) ||
             (engine->lanes.repairs && job->council->is_spoilt(job))));
}

/* How long to sleep at most. */
static int64_t patience_ns(const struct rueda_engine *engine,
                           int64_t deadline_ns)
{
    const struct rueda_hub *hub = engine->job->network;
    int64_t network = hub != NULL ? hub->ops->patience_ns(hub) : -1;
    bool is_silent = rueda_lanes_are_silent(&engine->lanes);

    if (rueda_failing_is_on(engine)) {
        network = RUEDA_FAILURE_POLL_NS;
        is_silent = false;
    }
    return rueda_policy_sleep_ns(&engine->policy, rueda_clock_ns(), deadline_ns,
                                 network, is_silent);
}

/* Is a check due, with what the negotiators want now? */
static bool is_time_to_check(struct rueda_engine *engine)
{
    rueda_drive_plan_check(engine);
    return rueda_policy_is_check_due(&engine->policy, rueda_clock_ns());
}

bool rueda_drive_check(struct rueda_engine *engine)
{
    bool has_moved = rueda_engine_check(engine);

    for (int i = 1; i < CHECK_TURNS && has_moved; i++)
        if (!rueda_engine_check(engine))
            break;
    rueda_policy_has_checked(&engine->policy, rueda_clock_ns());
    rueda_watch_check(engine);
    /* The holder may sleep next. */
    rueda_drive_plan_check(engine);
    return has_moved;
}

/* The calling thread waits without end, and is about to sleep: it counts as one
 * that does nothing else. Not before it sleeps, so that short waits cost
 * nothing. */
static void count_as_waiting(struct rueda_engine *engine, struct rueda_op *op)
{
    const uint64_t deliveries = rueda_census_deliveries(&engine->census);

    if (rueda_op_status(op) == RUEDA_IN_PROGRESS)
        rueda_census_wait(&engine->census, deliveries);
}

/* Nothing has moved for long: sleep until a doorbell rings or a peer dies. A
 * peer that is gone may have done its part before, so there is one more turn
 * between seeing that and failing because of it. */
static void sleep_until_woken(struct rueda_engine *engine, struct rueda_op *op,
                              int64_t deadline_ns)
{
    struct rueda_segment *segment = engine->job->segment;
    struct rueda_hub *hub = engine->job->network;
    bool has_lost;

    if (op != NULL && engine->is_endless)
        count_as_waiting(engine, op);
    rueda_segment_arm(segment);
    if (hub != NULL) {
        hub->ops->tend(hub);
        hub->ops->before_sleep(hub);
    }
    has_lost = !rueda_failing_is_on(engine) && is_spoilt(engine);
    if ((is_time_to_check(engine) ? rueda_drive_check(engine)
                                  : engine_turn(engine)) ||
        is_enough(engine, op) || rueda_drive_has_arrivals(engine)) {
        rueda_segment_disarm(segment);
        return;
    }
    if (!has_lost) {
        rueda_segment_wait(segment, patience_ns(engine, deadline_ns));
        return;
    }
    rueda_segment_disarm(segment);
    rueda_failing_begin_by_peer(engine, -1);
}

/* Did other threads of this system have my core for most of that time? If the
 * hypervisor took it, sleeping would only give it more to take. */
static bool was_shared(struct rueda_engine *engine, int64_t away_ns)
{
    const bool is_known = pthread_equal(engine->yielder, pthread_self());
    const int64_t before = engine->delay_ns;

    engine->yielder = pthread_self();
    engine->delay_ns = rueda_thread_delay_ns();
    return engine->delay_ns < 0 ||
           (is_known && engine->delay_ns - before > away_ns / 2);
}

/* Give up the core, and remember it if the core was long gone. */
static void give_way(struct rueda_engine *engine, int64_t now_ns,
                     struct rueda_backoff *backoff)
{
    int64_t back_ns;

    rueda_yield();
    back_ns = rueda_clock_ns();
    if (!rueda_policy_is_long_yield(back_ns - now_ns) ||
        !was_shared(engine, back_ns - now_ns))
        return;
    rueda_policy_be_busy(&engine->policy, back_ns);
    backoff->yield_ns = 0;
}

/* How long to yield before sleeping. */
static int64_t awake_ns(struct rueda_engine *engine, bool is_waited_for)
{
    struct rueda_policy *policy = &engine->policy;
    const int64_t now = rueda_policy_wants_time(policy) ? rueda_clock_ns() : 0;

    return rueda_policy_awake_ns(policy, is_waited_for, now);
}

void rueda_drive(struct rueda_engine *engine, struct rueda_op *op,
                 int64_t deadline_ns)
{
    struct rueda_backoff backoff;

    if (op == NULL && !engine->policy.has_room)
        rueda_backoff_init(&backoff, 0, 0);
    else
        rueda_backoff_init(&backoff, engine->policy.spin_ns,
                           awake_ns(engine, op != NULL));
    for (;;) {
        bool moved = engine_turn(engine);
        int64_t now = 0;

        if (is_enough(engine, op))
            return;
        if (moved)
            rueda_backoff_reset(&backoff);
        if (deadline_ns >= 0 || (!moved && rueda_backoff_wants_time(&backoff)))
            now = rueda_clock_ns();
        if (deadline_ns >= 0 && now >= deadline_ns)
            return;
        if (moved)
            continue;
        switch (rueda_backoff_next(&backoff, now)) {
        case RUEDA_SPIN:
            rueda_relax();
            break;
        case RUEDA_YIELD:
            give_way(engine, now, &backoff);
            break;
        case RUEDA_SLEEP:
            sleep_until_woken(engine, op, deadline_ns);
            break;
        }
    }
}

/* Wait until the holder has delivered op or has let go of the token. */
static void park(struct rueda_engine *engine, struct rueda_op *op,
                 int64_t deadline_ns)
{
    pthread_mutex_lock(&engine->lock);
    atomic_fetch_add(&engine->parked, 1);
    rueda_fence();
    if (rueda_op_status(op) == RUEDA_IN_PROGRESS &&
        atomic_load(&engine->token) != 0)
        rueda_condition_wait(&engine->changed, &engine->lock, deadline_ns);
    atomic_fetch_sub(&engine->parked, 1);
    pthread_mutex_unlock(&engine->lock);
}

/* Wait; is_endless: the caller waits on at the deadline, if there is one. */
static rueda_status wait_for(struct rueda_engine *engine, struct rueda_op *op,
                             int64_t deadline_ns, bool is_endless)
{
    bool has_waited = false;

    while (rueda_op_status(op) == RUEDA_IN_PROGRESS) {
        if (rueda_drive_take(engine)) {
            engine->is_endless = is_endless;
            rueda_drive(engine, op, deadline_ns);
            rueda_drive_release(engine);
        } else {
            if (!has_waited) {
                /* The background thread may sleep: it should let go. */
                has_waited = true;
                atomic_fetch_add(&engine->callers, 1);
                rueda_drive_wake_holder(engine);
            }
            if (is_endless)
                count_as_waiting(engine, op);
            park(engine, op, deadline_ns);
        }
        if (deadline_ns >= 0 && rueda_clock_ns() >= deadline_ns)
            break;
    }
    if (has_waited) {
        /* While we were counted, no thread told the background thread. */
        atomic_fetch_sub(&engine->callers, 1);
        rueda_drive_tell(engine);
    }
    if (rueda_op_status(op) == RUEDA_IN_PROGRESS) {
        /* Perhaps no thread drives now, and the operation runs on. */
        rueda_drive_tell(engine);
        return RUEDA_ERR_TIMEOUT;
    }
    rueda_census_act(&engine->census);
    return rueda_op_status(op);
}

/* Without other threads it goes to the engine by plain stores, and its delivery
 * wakes no thread. */
rueda_status rueda_engine_run(struct rueda_engine *engine, struct rueda_op *op)
{
    if (!rueda_drive_take(engine)) {
        rueda_op_push(&engine->lanes.arrived, op);
        return wait_for(engine, op, -1, true);
    }
    rueda_op_append(&engine->lanes.arrived, op);
    engine->own = op;
    engine->is_endless = true;
    rueda_drive(engine, op, -1);
    rueda_drive_release(engine);
    return wait_for(engine, op, -1, true);
}

rueda_status rueda_engine_wait(struct rueda_engine *engine, struct rueda_op *op,
                               int64_t deadline_ns)
{
    if (deadline_ns >= 0)
        rueda_census_act(&engine->census);
    return wait_for(engine, op, deadline_ns, deadline_ns < 0);
}

rueda_status rueda_engine_wait_slice(struct rueda_engine *engine,
                                     struct rueda_op *op, int64_t deadline_ns)
{
    return wait_for(engine, op, deadline_ns, true);
}
