/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A track: it chooses the algorithm of a task, starts it, and remembers the
 * choice for the next task that is alike.
 */
#define RUEDA_LOG_TAG "engine"

#include "engine/track.h"

#include <string.h>

#include "algo/hier.h"
#include "algo/staged.h"
#include "base/log.h"
#include "os/memory.h"
#include "trace/flight.h"

static bool is_one_host(const struct rueda_track_args *args)
{
    for (int i = 1; args->hosts != NULL && i < args->mesh->size; i++)
        if (args->hosts[i] != args->hosts[0])
            return false;
    return true;
}

/* Members of several hosts; those of this one may share a slab. */
static rueda_status open_hierarchy(struct rueda_track *track,
                                   const struct rueda_track_args *args)
{
    const struct rueda_hier_args hier = {
        .hosts = args->hosts,
        .host_limit = args->host_limit,
        .slab = args->slab,
        .select = args->select,
    };

    return rueda_hier_new(&track->place, &hier, &track->place.hier);
}

rueda_status rueda_track_open(struct rueda_track *track,
                              const struct rueda_track_args *args)
{
    bool is_here = is_one_host(args);

    memset(track, 0, sizeof(*track));
    track->job = args->job;
    track->select = args->select;
    track->tag.set = args->set;
    track->place.mesh = args->mesh;
    track->place.slab = is_here ? args->slab : NULL;
    track->place.device = args->device;
    track->place.is_on_hosts = !is_here;
    track->place.scratch_bytes = RUEDA_SCRATCH_BYTES;
    track->place.scratch = rueda_memory_map_private(RUEDA_SCRATCH_BYTES);
    track->task.place = &track->place;
    if (track->place.scratch == NULL)
        return RUEDA_ERR_NOMEM;
    if (is_here || open_hierarchy(track, args) == RUEDA_OK)
        return RUEDA_OK;
    rueda_track_close(track);
    return RUEDA_ERR_NOMEM;
}

void rueda_track_close(struct rueda_track *track)
{
    rueda_hier_free(track->place.hier);
    if (track->place.scratch != NULL)
        rueda_memory_unmap(track->place.scratch, track->place.scratch_bytes);
    memset(&track->place, 0, sizeof(track->place));
}

static uint64_t number_of(const struct rueda_task *task)
{
    return task->tag.sequence & ~RUEDA_PROVEN_SEQUENCE;
}

/* For the flight recorder. */
static void note(const struct rueda_track *track, rueda_flight_step step)
{
    const struct rueda_coll *coll = &track->task.coll;
    const struct rueda_flight_event event = {
        .step = step,
        .kind = coll->kind,
        .number = number_of(&track->task),
        .bytes = coll->count * coll->elem_bytes,
    };

    rueda_flight_note(track->job->segment, &event);
}

static bool is_equal(const struct rueda_choice *a, const struct rueda_choice *b)
{
    return a->place == b->place && a->kind == b->kind && a->dtype == b->dtype &&
           a->reduction == b->reduction && a->compression == b->compression &&
           a->is_short_handed == b->is_short_handed &&
           a->part_count == b->part_count && a->bytes == b->bytes;
}

/* The search costs as much as a short task takes, and most tasks are like the
 * one before. */
static void choose(struct rueda_track *track)
{
    const struct rueda_coll *coll = &track->task.coll;
    struct rueda_choice choice = {
        .place = track->task.place,
        .kind = coll->kind,
        .dtype = coll->arith.dtype,
        .reduction = coll->arith.reduction,
        .compression = coll->compression,
        .is_short_handed = coll->is_short_handed,
        .part_count = coll->parts != NULL ? coll->part_count : 0,
        .bytes = coll->count * coll->elem_bytes,
    };

    track->is_chosen = true;
    if (track->last.algo != NULL && coll->recv_counts == NULL &&
        is_equal(&choice, &track->last)) {
        track->task.algo = track->last.algo;
        return;
    }
    choice.algo = rueda_select_choose(track->select, track->task.place, coll);
    track->task.algo = choice.algo;
    if (coll->recv_counts == NULL)
        track->last = choice;
}

bool rueda_track_takes_parts(struct rueda_track *track)
{
    const struct rueda_algo *algo;

    choose(track);
    algo = track->task.algo;
    return algo != NULL && algo->takes_parts != NULL &&
           algo->takes_parts(track->task.place, &track->task.coll);
}

rueda_status rueda_track_start(struct rueda_track *track)
{
    struct rueda_task *task = &track->task;
    struct rueda_hub *hub = track->job->network;

    if (hub != NULL)
        hub->ops->tend_seldom(hub);
    task->moves = 0;
    task->tag = rueda_track_tag(track->tag, task->coll.arith.dtype);
    track->tag.sequence++;
    if (!track->is_chosen)
        choose(track);
    track->is_chosen = false;
    if (task->algo == NULL) {
        log_error("no algorithm for %s of tensors in this memory: the "
                  "transports between these ranks do not reach it",
                  rueda_kind_str(task->coll.kind));
        return RUEDA_ERR_UNSUPPORTED;
    }
    track->is_running = true;
    note(track, RUEDA_FLIGHT_STARTED);
    log_trace("%s number %llu of set %u, %zu bytes, runs as %s",
              rueda_kind_str(task->coll.kind),
              (unsigned long long)number_of(task), task->tag.set,
              task->coll.count * task->coll.elem_bytes, task->algo->name);
    return rueda_task_post(task);
}

void rueda_track_finish(struct rueda_track *track, rueda_status status)
{
    if (track->task.algo->finish != NULL)
        track->task.algo->finish(&track->task);
    track->is_running = false;
    note(track, status == RUEDA_OK ? RUEDA_FLIGHT_ENDED : RUEDA_FLIGHT_FAILED);
}

bool rueda_track_shares(const struct rueda_track *track)
{
    const struct rueda_task *task = &track->task;

    if (!track->is_running)
        return false;
    task = rueda_staged_inner(task);
    return task->algo != NULL &&
           (task->algo->needs_slab || rueda_hier_shares(task));
}
