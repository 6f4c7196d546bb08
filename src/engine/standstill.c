/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of this rank for the search for deadlocks (negotiate/still.c): does
 * every thread of the program that uses the context wait, and is all that it
 * has submitted undecided?
 */
#include <stdio.h>

#include "base/hash.h"
#include "base/least.h"
#include "engine/drive.h"

/* Operations that are named. */
#define MOST_NAMED 3

/* ---- Has anything changed? -------------------------------------------- */

static uint64_t add(uint64_t version, uint64_t number)
{
    return rueda_hash_mix(version + number + 1);
}

static uint64_t add_track(uint64_t version, const struct rueda_track *track)
{
    version = add(version, track->tag.sequence);
    return add(version, track->task.moves);
}

static uint64_t version_of(struct rueda_engine *engine)
{
    const struct rueda_lanes *lanes = &engine->lanes;
    uint64_t version = rueda_census_deliveries(&engine->census);

    for (int i = 0; i < lanes->count; i++) {
        const struct rueda_lane *lane = lanes->all[i];

        version = add(version, lane->moves);
        version = add(version, (uint64_t)lane->count);
        version = add_track(version, &lane->track);
    }
    return version;
}

/* ---- What this rank is at --------------------------------------------- */

/* Is all in the lane undecided, and nothing of its order in flight to another
 * rank? The lane that asks sends its answers itself. */
static bool is_undecided(const struct rueda_lane *lane, bool is_asking)
{
    return lane->messages.count == 0 && lane->batch.decision == NULL &&
           lane->limit == UINT64_MAX &&
           rueda_order_next(&lane->order) == NULL &&
           (is_asking || !rueda_order_is_sending(&lane->order));
}

static bool is_stuck(struct rueda_engine *engine, const struct rueda_lane *asks)
{
    const struct rueda_lanes *lanes = &engine->lanes;

    if (lanes->undelivered == 0 || lanes->ordered > 0 ||
        lanes->relay.stop != NULL || lanes->openings != NULL ||
        lanes->dropped_count > 0)
        return false;
    for (int i = 0; i < lanes->count; i++)
        if ((lanes->all[i] == asks || asks->set->id == RUEDA_SET_GLOBAL) &&
            !is_undecided(lanes->all[i], lanes->all[i] == asks))
            return false;
    return true;
}

/* Can the members of this set alone help this rank? */
static bool is_of_set(struct rueda_engine *engine,
                      const struct rueda_lane *lane)
{
    return lane->set->id == RUEDA_SET_GLOBAL ||
           engine->lanes.undelivered == lane->count;
}

/* Threads first: what one of them has pushed before it waited is seen then. */
static rueda_still_level level_of(struct rueda_engine *engine,
                                  const struct rueda_lane *lane)
{
    if (atomic_load(&engine->failed) < 0 || engine->due.first != NULL ||
        engine->lanes.ended != NULL || !rueda_lanes_have_work(&engine->lanes) ||
        !rueda_census_all_wait(&engine->census) ||
        rueda_drive_has_arrivals(engine) || !is_of_set(engine, lane))
        return RUEDA_STILL_NOT;
    return is_stuck(engine, lane) ? RUEDA_STILL_STUCK : RUEDA_STILL_WAITS;
}

/* ---- In words --------------------------------------------------------- */

/* Of ordered operations only the oldest one is told. */
static const struct rueda_ticket *
next_to_tell(const struct rueda_lane *lane, const struct rueda_ticket *ticket)
{
    return lane->is_ordered ? NULL
                            : (const struct rueda_ticket *)ticket->op.next;
}

static void tell_lanes(const struct rueda_lanes *lanes, struct rueda_text *out)
{
    int count = 0;

    for (int i = 0; i < lanes->count; i++) {
        const struct rueda_lane *lane = lanes->all[i];

        for (const struct rueda_ticket *ticket = lane->first;
             ticket != NULL && count <= MOST_NAMED;
             ticket = next_to_tell(lane, ticket), count++) {
            if (!rueda_text_is_empty(out))
                rueda_text_add(out, count < MOST_NAMED ? " and " : " ...");
            if (count < MOST_NAMED)
                rueda_lane_tell_op(lane, &ticket->request, out);
        }
    }
}

void rueda_standstill_look(void *arg, struct rueda_still *out)
{
    const struct rueda_lane *lane = arg;
    struct rueda_engine *engine = lane->lanes->engine;
    struct rueda_text what = {{0}};

    out->level = engine != NULL ? level_of(engine, lane) : RUEDA_STILL_NOT;
    if (out->level == RUEDA_STILL_NOT)
        return;
    out->version = version_of(engine);
    for (int i = 0; i < engine->lanes.count; i++) {
        const struct rueda_lane *other = engine->lanes.all[i];
        struct rueda_negotiator_counts counts;

        /* What a set alone can help needs no message of another. */
        if (other == lane || other->is_ordered ||
            lane->set->id != RUEDA_SET_GLOBAL)
            continue;
        counts = rueda_negotiator_counts(other->negotiator);
        out->sent += counts.sent;
        out->received += counts.received;
    }
    out->version = add(add(out->version, out->sent), out->received);
    if (out->what == NULL)
        return;
    tell_lanes(&engine->lanes, &what);
    snprintf(out->what, out->what_bytes, "%s", what.chars);
}

int64_t rueda_standstill_due_ns(const struct rueda_lanes *lanes)
{
    int64_t next = INT64_MAX;

    if (lanes->engine == NULL || !rueda_lanes_have_work(lanes))
        return INT64_MAX;
    for (int i = 0; i < lanes->count; i++)
        if (!lanes->all[i]->is_ordered)
            next = rueda_sooner(
                next, rueda_negotiator_look_ns(lanes->all[i]->negotiator));
    return next;
}

rueda_status rueda_standstill_found(const struct rueda_lanes *lanes,
                                    struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < lanes->count && status == RUEDA_OK; i++)
        if (!lanes->all[i]->is_ordered)
            status =
                rueda_negotiator_standstill(lanes->all[i]->negotiator, error);
    return status;
}
