/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: carrying out one decision of a lane's negotiator, as one or several
 * tasks in a row on the lane's track.
 *
 * Each kind has a function that is called when no task runs: it takes in what
 * the last task brought and fills in the next one. Tensors of an allreduce, an
 * allgather or a reduce-scatter run together in the fusion slab; the other
 * kinds run one after another.
 *
 * Where a member has joined, or has no memory for a result, it still takes part
 * with memory that nobody reads, so that the others get theirs.
 */
#ifndef RUEDA_ENGINE_BATCH_H
#define RUEDA_ENGINE_BATCH_H

#include "algo/algo.h"
#include "fuse/pack.h"
#include "job/set.h"
#include "negotiate/negotiator.h"
#include "op/named.h"

struct rueda_lane;

typedef enum rueda_batch_next {
    RUEDA_BATCH_TASK, /* track.task.coll is filled in: run it */
    RUEDA_BATCH_WAIT, /* ask again in the next turn */
    RUEDA_BATCH_END,  /* that was all */
    RUEDA_BATCH_FAIL, /* batch.status and batch.error say how */
} rueda_batch_next;

/* Tensors whose rows members tell each other at once, at most. */
#define RUEDA_BATCH_ASKED 32

/* Tensors in the slab at a time, at most. */
#define RUEDA_BATCH_PARTS 4096

/*
 * Where a batch is. The stages from WAIT_FOR_DATA to UNPACK repeat for each
 * round of tensors that run together. The
 * timeline has them as WAIT_FOR_DATA, MEMCPY_IN_FUSION_BUFFER, the name of the
 * collective, and MEMCPY_OUT_FUSION_BUFFER.
 */
typedef enum rueda_batch_stage {
    RUEDA_STAGE_WAIT_FOR_DATA, /* the next round is to be chosen */
    RUEDA_STAGE_PACK,          /* the device packs; the task is filled in */
    RUEDA_STAGE_RUN,           /* the task runs on the track */
    RUEDA_STAGE_UNPACK,        /* the kind unpacks, and goes on or ends */
    RUEDA_STAGE_DELIVER,       /* nothing but the device's work is left */
} rueda_batch_stage;

/* Private zeroed memory for one task. */
struct rueda_spare {
    void *at;
    size_t bytes;
};

struct rueda_batch {
    const struct rueda_decision *decision; /* NULL: none runs */
    rueda_batch_next (*next)(struct rueda_lane *lane);
    int item;  /* of the decision's: the first of those at work */
    int after; /* the first behind them */
    int step;  /* the kind's own */
    rueda_batch_stage stage;
    struct rueda_work work; /* packing and unpacking by the device */
    bool is_packed;
    bool is_waiting;          /* until others have let go of the fusion slab */
    struct rueda_part *parts; /* [RUEDA_BATCH_PARTS] of what is packed */
    char *slab;               /* where it is packed, */
    size_t bytes;             /* and how much it is */
    size_t slab_used;         /* the next is packed behind this */
    int asked;                /* the first item whose rows members have told */
    int asked_after;
    size_t *counts;   /* [2 * members] sent, received, in elements */
    uint64_t *words;  /* [2 * members + RUEDA_BATCH_ASKED] what I tell of
                         myself, */
    uint64_t *answer; /* [RUEDA_BATCH_ASKED * members] and what others tell */
    struct rueda_spare neutral; /* what I give where I have joined */
    struct rueda_spare sink;

    /* A set that is being made or dropped: its id, a copy that stays, its lane
     * if I am a member, which is the batch's own until it is opened, or which
     * is closed; the slab if that is mine to give. */
    int id;
    const struct rueda_set *set;
    struct rueda_lane *made;
    struct rueda_lane *closed;
    uint64_t offset;

    rueda_status status;
    struct rueda_text *error; /* borrowed for a turn */
};

/* Memory for a lane of so many members. */
rueda_status rueda_batch_init(struct rueda_batch *batch, int members);
void rueda_batch_fini(struct rueda_batch *batch);

/* Begin to carry out a decision. One to run takes turns then. */
void rueda_batch_begin(struct rueda_lane *lane,
                       const struct rueda_decision *decision);

/* RUEDA_OK: it is carried out, and each operation has its outcome.
 * RUEDA_IN_PROGRESS, or how it failed. */
rueda_status rueda_batch_turn(struct rueda_lane *lane,
                              struct rueda_text *error);

/* Let go of what it holds, in the end or before. */
void rueda_batch_drop(struct rueda_lane *lane);

/* ---- For the files of kinds -------------------------------------------- */

static inline const struct rueda_request *
rueda_batch_request(const struct rueda_batch *batch, int item)
{
    return batch->decision->items[item].request;
}

/* NULL: I have joined. */
static inline struct rueda_named *
rueda_batch_named(const struct rueda_batch *batch, int item)
{
    return batch->decision->items[item].mine;
}

/* Fill in the next task, of this kind and this item, but for its buffers and
 * counts. */
struct rueda_coll *rueda_batch_coll(struct rueda_lane *lane, rueda_kind kind,
                                    int item);

/* One of uint64_t. */
struct rueda_coll *rueda_batch_words(struct rueda_lane *lane, rueda_kind kind);

/* Where the result of an item goes: to its owner, or where nobody reads. */
rueda_batch_next rueda_batch_result(struct rueda_lane *lane, int item,
                                    size_t rows, size_t bytes, void **out);

/* The owner's memory for the result of an item, which is its data from then on;
 * NULL: there is none, or I have joined. */
void *rueda_batch_own(struct rueda_lane *lane, int item, size_t rows,
                      size_t bytes);

/* What an item gives; what changes nothing if I have joined. */
rueda_batch_next rueda_batch_input(struct rueda_lane *lane, int item,
                                   size_t bytes, const void **out);

/* Room in the fusion slab for this many bytes, which fit. */
char *rueda_batch_room(struct rueda_lane *lane, size_t bytes);

/* Do others still read in the fusion slab? Then nothing is written there, and
 * the next turn asks again. */
bool rueda_batch_must_wait(struct rueda_lane *lane);

/* Begin to pack tensors into batch.slab, or to take them out of it. */
struct rueda_pack rueda_batch_pack(struct rueda_lane *lane, void *slab,
                                   bool is_out);

/* Fail with these words. */
rueda_batch_next rueda_batch_fail(struct rueda_lane *lane, rueda_status status,
                                  const char *words);

/* An operation ends in this way, in these words, and nothing else does. */
void rueda_batch_refuse(struct rueda_named *named, rueda_status status,
                        const char *words);

rueda_batch_next rueda_batch_allgather(struct rueda_lane *lane);
rueda_batch_next rueda_batch_alltoall(struct rueda_lane *lane);
rueda_batch_next rueda_batch_reduce_scatter(struct rueda_lane *lane);
rueda_batch_next rueda_batch_set_add(struct rueda_lane *lane);
rueda_batch_next rueda_batch_set_drop(struct rueda_lane *lane);

#endif /* RUEDA_ENGINE_BATCH_H */
