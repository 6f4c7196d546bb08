/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the collectives of one lane run, one after another: a place for
 * the algorithms, and the task that runs in it. Several tracks run at the same
 * time, kept apart by their tags and slabs.
 *
 * Used by the thread that holds the engine's token.
 */
#ifndef RUEDA_ENGINE_TRACK_H
#define RUEDA_ENGINE_TRACK_H

#include "algo/algo.h"
#include "algo/select.h"
#include "job/job.h"

/* The algorithm of a task, and all that the choice depends on in one place
 * where pieces are equal. */
struct rueda_choice {
    const struct rueda_algo *algo; /* NULL: none was chosen yet */
    const struct rueda_place *place;
    rueda_kind kind;
    rueda_dtype dtype;
    rueda_reduction reduction;
    rueda_compression compression;
    bool is_short_handed;
    int part_count;
    size_t bytes;
};

struct rueda_track {
    struct rueda_job *job; /* borrowed, like the next */
    const struct rueda_select *select;
    struct rueda_place place; /* of tensors on the host; task.place is this or
                                 another of the same members */
    struct rueda_tag tag;     /* of the next task */
    bool is_chosen;           /* task.algo is that of the next task */
    struct rueda_choice last; /* what was searched for last */
    bool is_running;
    struct rueda_task task;
};

struct rueda_track_args {
    struct rueda_job *job;
    const struct rueda_select *select;
    const struct rueda_device *device;
    struct rueda_mesh *mesh;
    struct rueda_slab *slab; /* of the members of this host, or NULL; may be
                                filled in later, before the first task */
    const int *hosts;        /* [mesh->size] the number of each one's host;
                                NULL: all are here */
    int host_limit;          /* up to, but without this */
    uint32_t set;            /* in tags */
};

/* Borrows what args points to, but for hosts. On failure (RUEDA_ERR_NOMEM)
 * nothing is left. */
rueda_status rueda_track_open(struct rueda_track *track,
                              const struct rueda_track_args *args);

/* Before its mesh; no task runs. */
void rueda_track_close(struct rueda_track *track);

/*
 * The tag of messages with numbers of this type. A program may unpickle bytes,
 * or use integers as lengths and places, as the functions for objects of
 * torch.distributed do, whose tensors nothing tells from others. So all that is
 * not a floating-point number is proven (SECURITY.md).
 */
static inline struct rueda_tag rueda_track_tag(struct rueda_tag tag,
                                               rueda_dtype dtype)
{
    if (!rueda_dtype_is_float(dtype))
        tag.sequence |= RUEDA_TAG_PROVEN;
    return tag;
}

/* Begin what has been written to track->task.coll; the algorithm is chosen.
 * Returns as the algorithm's post() does; no task runs yet. */
rueda_status rueda_track_start(struct rueda_track *track);

/* Will what has been written there be taken in parts? Chooses the algorithm;
 * the coll is started next, with nothing changed that the choice depends on. */
bool rueda_track_takes_parts(struct rueda_track *track);

/* What has been written there is run by this algorithm. */
static inline void rueda_track_use(struct rueda_track *track,
                                   const struct rueda_algo *algo)
{
    track->task.algo = algo;
    track->is_chosen = true;
}

static inline rueda_status rueda_track_progress(struct rueda_track *track)
{
    return rueda_task_progress(&track->task);
}

/* The task has ended with this status. If that is a failure, what it had in
 * flight has been cancelled. */
void rueda_track_finish(struct rueda_track *track, rueda_status status);

/* Does a task run in which all members of this host wait for each other,
 * because they share memory? Messages are lost with their endpoint, so a peer
 * that left in good order fails no other operation. */
bool rueda_track_shares(const struct rueda_track *track);

#endif /* RUEDA_ENGINE_TRACK_H */
