/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results are made in memory of the lane, steps are counted, and a step is
 * agreed upon when all members have it: as they read in the segment, or,
 * between hosts, by a barrier that takes the place of the task on the track.
 */
#include "engine/kept.h"

#include "engine/lane.h"
#include "engine/lanes.h"
#include "job/council.h"
#include "os/memory.h"

static bool takes_barriers(const struct rueda_lane *lane)
{
    return lane->lanes->job->council->takes_barriers;
}

static void publish(const struct rueda_lane *lane)
{
    if (!takes_barriers(lane))
        rueda_vote_publish(lane->formation, lane->kept.lane, lane->kept.has);
}

void rueda_kept_init(struct rueda_lane *lane)
{
    lane->kept.is_on =
        lane->lanes->repairs && lane->set->id == RUEDA_SET_GLOBAL;
    lane->kept.lane = lane->is_ordered ? 0 : 1;
    if (lane->kept.is_on)
        publish(lane);
}

void rueda_kept_fini(struct rueda_lane *lane)
{
    if (lane->kept.staging != NULL)
        rueda_memory_unmap(lane->kept.staging, lane->kept.room);
    lane->kept.staging = NULL;
    lane->kept.room = 0;
}

static rueda_status make_room(struct rueda_lane *lane, size_t bytes)
{
    struct rueda_kept *kept = &lane->kept;

    if (kept->room >= bytes)
        return RUEDA_OK;
    rueda_kept_fini(lane);
    kept->staging = rueda_memory_map_private(bytes);
    if (kept->staging == NULL)
        return RUEDA_ERR_NOMEM;
    kept->room = bytes;
    return RUEDA_OK;
}

rueda_status rueda_kept_begin(struct rueda_lane *lane)
{
    struct rueda_kept *kept = &lane->kept;
    struct rueda_coll *coll = &lane->track.task.coll;
    rueda_status status;

    if (kept->is_frozen)
        return RUEDA_IN_PROGRESS;
    kept->result = NULL;
    kept->bytes = coll->count * coll->elem_bytes;
    if (coll->kind != RUEDA_ALLREDUCE || lane->batch.is_packed ||
        kept->bytes == 0)
        return RUEDA_OK;
    status = make_room(lane, kept->bytes);
    if (status != RUEDA_OK)
        return status;
    kept->result = coll->recv;
    if (coll->send == NULL)
        coll->send = coll->recv;
    coll->recv = kept->staging;
    return RUEDA_OK;
}

/* One more, of which the others hear. */
static void count_step(struct rueda_lane *lane)
{
    lane->kept.has_step = true;
    lane->kept.has++;
    publish(lane);
}

void rueda_kept_count(struct rueda_lane *lane)
{
    count_step(lane);
}

/* The barrier has ended: the task before it is at work again. */
static void end_barrier(struct rueda_lane *lane, rueda_status status)
{
    rueda_track_finish(&lane->track, status);
    lane->track.task.coll = lane->kept.asked_for;
    lane->kept.is_asking = false;
    lane->moves++;
}

/* A member that leaves the barrier knows that all have entered it, each with
 * this step. */
static rueda_status ask_all(struct rueda_lane *lane)
{
    struct rueda_kept *kept = &lane->kept;
    struct rueda_track *track = &lane->track;
    rueda_status status;

    if (kept->agreed == kept->has)
        return RUEDA_OK;
    if (!kept->is_asking) {
        kept->is_asking = true;
        kept->asked_for = track->task.coll;
        track->task.coll = (struct rueda_coll){
            .kind = RUEDA_BARRIER,
            .root = -1,
            .arith = kept->asked_for.arith,
            .elem_bytes = 1,
        };
        lane->moves++;
        status = rueda_track_start(track);
    } else {
        status = rueda_track_progress(track);
    }
    if (status == RUEDA_IN_PROGRESS)
        return status;
    end_barrier(lane, status);
    if (status == RUEDA_OK)
        kept->agreed = kept->has;
    return status;
}

void rueda_kept_freeze(struct rueda_lane *lane)
{
    lane->kept.is_frozen = true;
    if (lane->kept.is_asking)
        end_barrier(lane, RUEDA_ERR_PEER_LOST);
}

static rueda_status find_agreed(struct rueda_lane *lane)
{
    const struct rueda_kept *kept = &lane->kept;
    bool is_agreed;

    if (kept->is_frozen)
        is_agreed = kept->has <= kept->limit;
    else if (takes_barriers(lane))
        return ask_all(lane);
    else
        is_agreed =
            rueda_vote_is_carried(lane->formation, kept->lane, kept->has);
    return is_agreed ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

rueda_status rueda_kept_agree(struct rueda_lane *lane)
{
    struct rueda_kept *kept = &lane->kept;
    const rueda_status status = find_agreed(lane);

    if (status != RUEDA_OK)
        return status;
    if (kept->result != NULL)
        rueda_device_copy(lane->track.place.device, &lane->batch.work,
                          kept->result, kept->staging, kept->bytes);
    kept->result = NULL;
    kept->after = lane->batch.after;
    lane->moves++;
    return RUEDA_OK;
}

rueda_status rueda_kept_conclude(struct rueda_lane *lane)
{
    struct rueda_kept *kept = &lane->kept;

    if (!kept->has_step && kept->is_frozen)
        return RUEDA_IN_PROGRESS;
    if (!kept->has_step)
        count_step(lane);
    return find_agreed(lane);
}
