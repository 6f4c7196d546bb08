/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of the engine: the walk of an operation on one screen. */
#define RUEDA_LOG_TAG "engine"

#include "engine/engine.h"

#include <string.h>

#include "base/fence.h"
#include "base/log.h"
#include "engine/sets.h"
#include "os/clock.h"

/* What the algorithms see of an operation. A broadcast looks at send only in
 * its root. */
static void fill_in(struct rueda_engine *engine,
                    const struct rueda_coll_args *args, struct rueda_coll *out)
{
    bool is_average = args->reduction == RUEDA_AVERAGE;
    double divisor = is_average ? engine->formation->size : 1;
    bool is_sent =
        args->kind != RUEDA_BROADCAST || args->root == engine->formation->rank;

    *out = (struct rueda_coll){
        .kind = args->kind,
        .root = args->root,
        .arith = {.dtype = args->dtype,
                  .reduction = is_average ? RUEDA_SUM : args->reduction,
                  .prescale = args->prescale,
                  .postscale = args->postscale / divisor},
        .elem_bytes = rueda_dtype_size(args->dtype),
        .send = is_sent ? args->send : args->recv,
        .recv = args->recv,
        .count = args->kind == RUEDA_BARRIER ? 0 : args->count,
        .send_counts = args->send_counts,
        .recv_counts = args->recv_counts,
        .compression = args->compression,
    };
}

/* The caller may free op as soon as its status is stored. Nobody can have asked
 * to be called for one that has no handle. */
static void tell(struct rueda_engine *engine, struct rueda_op *op,
                 rueda_status status)
{
    if (op->is_named ||
        atomic_load_explicit(&op->handle, memory_order_relaxed) != 0)
        rueda_op_deliver(op, status, &engine->due);
    else
        atomic_store_explicit(&op->status, status, memory_order_release);
}

/* The fence: either we see who has parked, or it sees the status. */
static void wake_waiters(struct rueda_engine *engine)
{
    rueda_census_delivered(&engine->census);
    rueda_fence();
    if (atomic_load(&engine->parked) > 0) {
        pthread_mutex_lock(&engine->lock);
        pthread_cond_broadcast(&engine->changed);
        pthread_mutex_unlock(&engine->lock);
    }
}

static void deliver(struct rueda_engine *engine, struct rueda_op *op,
                    rueda_status status)
{
    rueda_op_pop(&engine->queue);
    tell(engine, op, status);
    wake_waiters(engine);
}

static void deliver_named(struct rueda_engine *engine)
{
    struct rueda_named *named = rueda_lanes_pop_ended(&engine->lanes);

    if (named == NULL)
        return;
    while (named != NULL) {
        struct rueda_named *next = rueda_lanes_pop_ended(&engine->lanes);

        tell(engine, &named->op, named->op.outcome);
        named = next;
    }
    wake_waiters(engine);
}

/* The running operation, the oldest of all, has ended. */
static void finish(struct rueda_engine *engine, rueda_status status)
{
    rueda_track_finish(&engine->track, status);
    deliver(engine, rueda_op_peek(&engine->queue), status);
}

bool rueda_engine_keep_first(struct rueda_engine *engine, rueda_status status,
                             const char *why)
{
    if (atomic_exchange(&engine->is_failing, true))
        return false;
    rueda_text_set(&engine->error, "%s", why);
    atomic_store(&engine->failed, status);
    return true;
}

void rueda_engine_end(struct rueda_engine *engine, rueda_status status,
                      const char *why)
{
    struct rueda_op *op;

    rueda_engine_keep_first(engine, status, why);
    while (atomic_load(&engine->failed) == RUEDA_OK)
        rueda_yield(); /* another thread is writing its words */
    status = (rueda_status)atomic_load(&engine->failed);
    rueda_mesh_cancel(&engine->formation->mesh, status);
    if (engine->track.is_running)
        finish(engine, status);
    while ((op = rueda_op_peek(&engine->queue)) != NULL)
        deliver(engine, op, status);
    rueda_lanes_end(&engine->lanes, status);
    deliver_named(engine);
}

/*
 * Get on with the oldest ordered operation. A peer that is lost is no failure
 * by itself, as it may have done its part before: if this operation still needs
 * it, then its requests have ended, and the algorithm says so.
 */
static bool turn_ordered(struct rueda_engine *engine, struct rueda_op *op,
                         int peer)
{
    struct rueda_track *track = &engine->track;
    const bool is_first = !track->is_running;
    const uint64_t moves = track->task.moves;
    rueda_status status;

    if (is_first)
        fill_in(engine, &op->args, &track->task.coll);
    status = is_first ? rueda_track_start(track) : rueda_track_progress(track);
    if (status == RUEDA_IN_PROGRESS)
        return is_first || track->task.moves != moves;
    if (status < 0)
        rueda_failing_take(engine, status, peer, rueda_status_str(status));
    else
        finish(engine, RUEDA_OK);
    return true;
}

static bool turn_named(struct rueda_engine *engine, int peer)
{
    struct rueda_text error;
    rueda_status status;

    error.chars[0] = '\0';
    status = rueda_lanes_turn(&engine->lanes, &error);
    if (status < 0) {
        if (rueda_text_is_empty(&error))
            rueda_text_set(&error, "%s", rueda_status_str(status));
        rueda_failing_take(engine, status, peer, error.chars);
    } else {
        deliver_named(engine);
    }
    return status != RUEDA_IN_PROGRESS;
}

/* Has the engine failed, or does it wait for the words of a failure? */
static bool is_failing(const struct rueda_engine *engine)
{
    return atomic_load_explicit(&engine->failed, memory_order_relaxed) < 0 ||
           rueda_failing_is_on(engine);
}

/* Lanes without work of their own get a turn when messages have come, or when
 * somebody looks after them. */
static bool turn(struct rueda_engine *engine, struct rueda_op *op,
                 bool is_check)
{
    bool has_moved = false;
    rueda_status messages;
    int peer = -1;

    if (is_failing(engine)) {
        has_moved = op != NULL || rueda_lanes_have_work(&engine->lanes);
        return rueda_failing_turn(engine) && has_moved;
    }
    messages = rueda_mesh_progress(&engine->formation->mesh, &peer);
    if (op != NULL)
        has_moved = turn_ordered(engine, op, peer);
    if ((is_check || messages == RUEDA_OK ||
         rueda_lanes_have_work(&engine->lanes)) &&
        !is_failing(engine))
        has_moved = turn_named(engine, peer) || has_moved;
    has_moved = has_moved || messages == RUEDA_OK;
    /* Between threads nobody else tells those who sleep of messages. */
    if (has_moved && engine->job->hub != NULL &&
        engine->formation->mesh.open_count > 0)
        rueda_segment_notify_all(engine->job->segment);
    return has_moved;
}

bool engine_turn(struct rueda_engine *engine)
{
    struct rueda_op *op = rueda_op_peek(&engine->queue);

    if (op == NULL && !rueda_lanes_are_busy(&engine->lanes) &&
        !rueda_failing_is_on(engine))
        return false;
    return turn(engine, op, op == NULL);
}

bool rueda_engine_check(struct rueda_engine *engine)
{
    rueda_lanes_wake(&engine->lanes);
    return turn(engine, rueda_op_peek(&engine->queue), true);
}

const struct rueda_set *rueda_engine_set(const struct rueda_engine *engine,
                                         int id)
{
    return rueda_sets_find(&engine->lanes, id);
}
