/* SPDX-License-Identifier: Apache-2.0 */
/* One turn of the engine: the walk of an operation on one screen. */
#include "engine/engine.h"

#include "base/fence.h"
#include "base/seldom.h"
#include "engine/sets.h"
#include "job/council.h"
#include "os/clock.h"

/* The fence: either we see that a thread has parked, or it sees the status. */
static void wake_waiters(struct rueda_engine *engine)
{
    rueda_fence();
    if (atomic_load(&engine->parked) > 0) {
        pthread_mutex_lock(&engine->lock);
        pthread_cond_broadcast(&engine->changed);
        pthread_mutex_unlock(&engine->lock);
    }
}

/* The device made the mark, if the tensor is on one. */
static void forget_mark(const struct rueda_device *device,
                        const struct rueda_ticket *ticket)
{
    struct rueda_event event = {{ticket->mark[0], ticket->mark[1]}};

    if (rueda_request_is_away(&ticket->request))
        device->ops->forget(device, &event);
}

/* The owner of an operation may free it as soon as its status is stored. */
void rueda_engine_deliver(struct rueda_engine *engine)
{
    const struct rueda_device *accelerator =
        rueda_accelerator_of(&engine->accelerator);
    struct rueda_ticket *ticket = rueda_lanes_pop_ended(&engine->lanes);
    bool is_awaited = false; /* by another thread, perhaps */

    while (ticket != NULL) {
        struct rueda_ticket *next = rueda_lanes_pop_ended(&engine->lanes);

        is_awaited = is_awaited || &ticket->op != engine->own;
        if (accelerator != NULL)
            forget_mark(accelerator, ticket);
        rueda_op_deliver(&ticket->op, ticket->op.outcome, &engine->due);
        ticket = next;
    }
    rueda_census_delivered(&engine->census);
    if (is_awaited)
        wake_waiters(engine);
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
    rueda_engine_keep_first(engine, status, why);
    while (atomic_load(&engine->failed) == RUEDA_OK)
        rueda_yield(); /* another thread is writing its words */
    status = (rueda_status)atomic_load(&engine->failed);
    rueda_mesh_cancel(&engine->formation->mesh, status);
    rueda_lanes_end(&engine->lanes, status);
    rueda_engine_deliver(engine);
}

/* A turn of the lanes has returned this status, and perhaps words for it. */
RUEDA_SELDOM static void end_turn(struct rueda_engine *engine,
                                  rueda_status status, int peer,
                                  struct rueda_text *error)
{
    if (status >= 0) {
        rueda_engine_deliver(engine);
        return;
    }
    if (rueda_text_is_empty(error))
        rueda_text_set(error, "%s", rueda_status_str(status));
    rueda_failing_take(engine, status, peer, error->chars);
}

/* Has the engine failed, or does it wait for the words of a failure? */
static bool is_failing(const struct rueda_engine *engine)
{
    return atomic_load_explicit(&engine->failed, memory_order_relaxed) < 0 ||
           (engine->failing.stage != RUEDA_FAILING_NOT &&
            rueda_failing_is_on(engine));
}

static bool turn_failing(struct rueda_engine *engine)
{
    const bool has_moved = rueda_lanes_have_work(&engine->lanes);

    return rueda_failing_turn(engine) && has_moved;
}

/* A member that is gone may have done its part before, so this comes only when
 * nothing else moves. */
static bool begin_called_term(struct rueda_engine *engine)
{
    if (!rueda_terms_is_called(engine))
        return false;
    rueda_failing_begin_by_peer(engine, -1);
    return true;
}

/*
 * Lanes without work of their own get a turn when messages have come, or in a
 * check. A peer that is lost is no failure by itself, as it may have done its
 * part before: if an operation still needs it, then its requests have ended,
 * and the algorithm says so.
 */
static bool turn(struct rueda_engine *engine, bool is_check)
{
    struct rueda_mesh *mesh = &engine->formation->mesh;
    rueda_status messages = RUEDA_IN_PROGRESS;
    struct rueda_text error;
    rueda_status status;
    int peer = -1;

    if (is_failing(engine))
        return turn_failing(engine);
    if (mesh->open_count > 0)
        messages = rueda_mesh_progress(mesh, &peer);
    error.chars[0] = '\0';
    status = rueda_lanes_turn(&engine->lanes, is_check || messages == RUEDA_OK,
                              &error);
    if (status < 0 || engine->lanes.ended != NULL)
        end_turn(engine, status, peer, &error);
    if (status == RUEDA_IN_PROGRESS && messages != RUEDA_OK)
        return engine->lanes.repairs && begin_called_term(engine);
    /* Between threads nothing else wakes a sleeping rank for messages. */
    if (engine->job->threads != NULL && mesh->open_count > 0)
        rueda_segment_notify_all(engine->job->segment);
    return true;
}

bool engine_turn(struct rueda_engine *engine)
{
    if (!rueda_lanes_are_busy(&engine->lanes) && !rueda_failing_is_on(engine))
        return false;
    return turn(engine, false);
}

bool rueda_engine_check(struct rueda_engine *engine)
{
    rueda_lanes_wake(&engine->lanes);
    rueda_store_council_poll(engine->job); /* others may have frozen */
    return turn(engine, true);
}

const struct rueda_place *rueda_engine_place(const struct rueda_engine *engine)
{
    return &rueda_lanes_find(&engine->lanes, RUEDA_SET_GLOBAL, true)
                ->track.place;
}

const struct rueda_set *rueda_engine_hold_set(struct rueda_engine *engine,
                                              int id)
{
    return rueda_sets_hold(&engine->lanes, id);
}

void rueda_engine_release_set(struct rueda_engine *engine,
                              const struct rueda_set *set)
{
    rueda_sets_release(&engine->lanes, set);
}
