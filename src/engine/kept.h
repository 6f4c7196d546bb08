/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a lane keeps what it may have to run again (RUEDA_REPAIR=1): results of
 * an allreduce are made in memory of the lane's own, and reach the caller's
 * only when all members have theirs. Until then the inputs stay whole.
 *
 * A lane counts its steps: each task, and the end of each decision that runs
 * none. All members carry out the same steps. That all of them have one is read
 * in the segment (job/vote.h) if they are on one host; else a barrier is run
 * behind it.
 *
 * Used by the thread that holds the engine's token. Nothing blocks.
 */
#ifndef RUEDA_ENGINE_KEPT_H
#define RUEDA_ENGINE_KEPT_H

#include <rueda/rueda.h>

#include "algo/algo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rueda_lane;

struct rueda_kept {
    bool is_on;
    int lane;      /* its number in votes */
    uint64_t has;  /* steps */
    bool has_step; /* the decision at work has counted one, and */
    int after;     /* all members have what is before this item of it */

    /* The barrier behind a step, where members learn by it that all others have
     * the step: the task whose place it takes on the track waits here. */
    bool is_asking;
    uint64_t agreed; /* all members have this number of steps */
    struct rueda_coll asked_for;

    /* The result of the task at work, or NULL: it is in the slab. */
    void *result; /* in the caller's memory */
    size_t bytes;
    void *staging; /* [room]; stays for later tasks */
    size_t room;

    /* The term ends: no step begins, those up to the limit are delivered. */
    bool is_frozen;
    uint64_t limit;
};

/* For a lane that is new: of all ranks, or of some; frees nothing. */
void rueda_kept_init(struct rueda_lane *lane);
void rueda_kept_fini(struct rueda_lane *lane);

/* The task of the lane is about to start: it writes its result where it can be
 * dropped. RUEDA_IN_PROGRESS: none starts in this term any more. */
rueda_status rueda_kept_begin(struct rueda_lane *lane);

/* The task has ended well. */
void rueda_kept_count(struct rueda_lane *lane);

/* The term ends: no step begins, and no member is asked any more. */
void rueda_kept_freeze(struct rueda_lane *lane);

/* RUEDA_OK: all members have it, and its result is where the caller wants it.
 * RUEDA_IN_PROGRESS: not yet. */
rueda_status rueda_kept_agree(struct rueda_lane *lane);

/* The decision has been carried out. RUEDA_OK: by all members. */
rueda_status rueda_kept_conclude(struct rueda_lane *lane);

#endif /* RUEDA_ENGINE_KEPT_H */
