/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kept.h"

#include "engine/lane.h"
#include "engine/lanes.h"
#include "job/vote.h"
#include "os/memory.h"

void rueda_kept_init(struct rueda_lane *lane)
{
    lane->kept.is_on =
        lane->lanes->repairs && lane->set->id == RUEDA_SET_GLOBAL;
    lane->kept.lane = lane->is_ordered ? 0 : 1;
    if (lane->kept.is_on)
        rueda_vote_publish(lane->formation, lane->kept.lane, 0);
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
    rueda_vote_publish(lane->formation, lane->kept.lane, ++lane->kept.has);
}

void rueda_kept_count(struct rueda_lane *lane)
{
    count_step(lane);
}

static bool is_agreed(const struct rueda_lane *lane)
{
    const struct rueda_kept *kept = &lane->kept;

    return kept->is_frozen
               ? kept->has <= kept->limit
               : rueda_vote_is_carried(lane->formation, kept->lane, kept->has);
}

rueda_status rueda_kept_agree(struct rueda_lane *lane)
{
    struct rueda_kept *kept = &lane->kept;

    if (!is_agreed(lane))
        return RUEDA_IN_PROGRESS;
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
    return is_agreed(lane) ? RUEDA_OK : RUEDA_IN_PROGRESS;
}
