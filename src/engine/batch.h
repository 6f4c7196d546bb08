/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: carrying out one decision of a lane's order source, as one or
 * several tasks in a row on the lane's track. A batch goes through these
 * stages, from the first to the last but one for each round of tensors that run
 * together:
 *
 *      WAIT_FOR_DATA   the kind's function chooses the next round and fills in
 *                      its task, or says that it has to wait
 *      PACK            the device packs the round into the fusion slab
 *      RUN             the task runs on the track
 *      AGREE           only where results are kept (kept.h): until all members
 *                      have theirs
 *      UNPACK          the device unpacks the round
 *      DELIVER         nothing is left to do
 *
 * PACK and UNPACK wait for the device by asking it in every turn. What runs
 * together, and where it lies in the slab, is in fuse/; a round of one tensor
 * usually runs where the tensor is, without the slab.
 *
 * Where a member has joined, or has no memory for a result, it still takes part
 * with memory that is never read, so that the others get theirs.
 */
#ifndef RUEDA_ENGINE_BATCH_H
#define RUEDA_ENGINE_BATCH_H

#include "algo/algo.h"
#include "fuse/pack.h"
#include "job/set.h"
#include "negotiate/negotiator.h"
#include "op/ticket.h"

struct rueda_lane;

typedef enum rueda_batch_next {
    RUEDA_BATCH_TASK, /* track.task.coll is filled in: run it */
    RUEDA_BATCH_WAIT, /* ask again in the next turn */
    RUEDA_BATCH_END,  /* nothing is to be run for those from batch.item to
                         batch.after; where these are the same, for all */
    RUEDA_BATCH_FAIL, /* batch.status and batch.error say how */
} rueda_batch_next;

typedef rueda_batch_next (*rueda_batch_fn)(struct rueda_lane *lane);

/* Tensors whose rows members tell each other at once, at most. */
#define RUEDA_BATCH_ASKED 32

typedef enum rueda_batch_stage {
    RUEDA_STAGE_WAIT_FOR_DATA,
    RUEDA_STAGE_PACK,
    RUEDA_STAGE_RUN,
    RUEDA_STAGE_AGREE,
    RUEDA_STAGE_UNPACK,
    RUEDA_STAGE_DELIVER,
} rueda_batch_stage;

/* Private zeroed memory for one task. */
struct rueda_batch_spare {
    void *at;
    size_t bytes;
    const struct rueda_device *device; /* whose memory it is; NULL: private
                                          pages of the host */
};

struct rueda_batch {
    const struct rueda_decision *decision; /* NULL: none runs */
    rueda_batch_fn next;
    int item;  /* of the decision's: the first of the round */
    int after; /* the first behind it */
    int step;  /* the kind's own */
    rueda_batch_stage stage;
    bool is_away;             /* the tensors are on accelerators */
    struct rueda_work work;   /* packing and unpacking by the device */
    struct rueda_round round; /* what is in the slab, */
    bool is_packed;           /* if anything is */
    bool is_watching; /* streams of the application's, up to this item */
    int watched;
    bool is_waiting;  /* until others have let go of the fusion slab */
    size_t slab_used; /* the next round begins behind this */
    int asked;        /* the first item whose rows members have told */
    int asked_after;
    size_t *counts;   /* [2 * members] sent, received, in elements */
    uint64_t *words;  /* [2 * members + RUEDA_BATCH_ASKED] what I tell of
                         myself, */
    uint64_t *answer; /* [RUEDA_BATCH_ASKED * members] and what others tell */
    struct rueda_batch_spare neutral; /* what I give where I have joined */
    struct rueda_batch_spare sink;

    /* A set that is being made or dropped: its id, a copy that stays, its lane
     * if I am a member, which is the batch's own until it is opened, or which
     * is closed; the slab if that is mine to give. */
    int id;
    const struct rueda_set *set;
    struct rueda_lane *made;
    struct rueda_lane *closed[2]; /* its lanes: of named and ordered ones */
    uint64_t offset;

    rueda_status status;
    struct rueda_text *error; /* borrowed for a turn */
};

/* Memory for a lane of this many members. */
rueda_status rueda_batch_init(struct rueda_batch *batch, int members);
void rueda_batch_fini(struct rueda_batch *batch);

/* Begin to carry out a decision. One to run takes turns then. */
void rueda_batch_begin(struct rueda_lane *lane,
                       const struct rueda_decision *decision);

/* RUEDA_OK: it is carried out, and each operation has its outcome.
 * RUEDA_IN_PROGRESS, or how it failed. */
rueda_status rueda_batch_turn(struct rueda_lane *lane,
                              struct rueda_text *error);

/* After a failure: wait until the device has let go of all memory. */
void rueda_batch_settle(struct rueda_lane *lane);

/* Let go of what it holds, in the end or before. */
void rueda_batch_drop(struct rueda_lane *lane);

/* ---- For the files of kinds -------------------------------------------- */

static inline const struct rueda_request *
rueda_batch_request(const struct rueda_batch *batch, int item)
{
    return batch->decision->items[item].request;
}

/* NULL: I have joined. */
static inline struct rueda_ticket *
rueda_batch_ticket(const struct rueda_batch *batch, int item)
{
    return batch->decision->items[item].mine;
}

/* Fill in the next task, of this kind and this item, but for its buffers and
 * counts. */
struct rueda_coll *rueda_batch_coll(struct rueda_lane *lane, rueda_kind kind,
                                    int item);

/* One of uint64_t. */
struct rueda_coll *rueda_batch_words(struct rueda_lane *lane, rueda_kind kind);

/* Where the result of an item goes: to its owner, or to memory that is never
 * read. */
rueda_batch_next rueda_batch_result(struct rueda_lane *lane, int item,
                                    size_t rows, size_t bytes, void **out);

/* The owner's memory for the result of an item, which is its data from then on;
 * NULL: there is none, or I have joined. */
void *rueda_batch_own(struct rueda_lane *lane, int item, size_t rows,
                      size_t bytes);

/* What an item gives; what changes nothing if I have joined. */
rueda_batch_next rueda_batch_input(struct rueda_lane *lane, int item,
                                   size_t bytes, const void **out);

/* A round of one tensor, straight from and to the caller's memory: all of coll
 * is filled in but counts, and its result has `rows` rows here. */
rueda_batch_next rueda_batch_alone(struct rueda_lane *lane,
                                   struct rueda_coll *coll, size_t rows);

/* Begin a round of this kind at batch.item, with nothing in it. */
struct rueda_round *rueda_batch_round(struct rueda_lane *lane, rueda_kind kind);

/* The round is chosen, and is going to be packed: it gets its place in the
 * slab. The tensors of it may be filled in before or after. */
char *rueda_batch_claim(struct rueda_lane *lane);

/* Do others still read in the fusion slab? Then nothing is written there, and
 * the next turn asks again. */
bool rueda_batch_must_wait(struct rueda_lane *lane);

/* Fail with these words. */
rueda_batch_next rueda_batch_fail(struct rueda_lane *lane, rueda_status status,
                                  const char *words);

/* An operation ends in this way, in these words, and nothing else does. */
void rueda_batch_refuse(struct rueda_ticket *ticket, rueda_status status,
                        const char *words);

/* The first dimension; 1 if there is none. */
static inline size_t rueda_batch_rows(const struct rueda_request *request)
{
    return request->dims > 0 ? request->shape[0] : 1;
}

rueda_batch_next rueda_batch_allreduce(struct rueda_lane *lane);
rueda_batch_next rueda_batch_broadcast(struct rueda_lane *lane);
rueda_batch_next rueda_batch_allgather(struct rueda_lane *lane);
rueda_batch_next rueda_batch_alltoall(struct rueda_lane *lane);
rueda_batch_next rueda_batch_reduce_scatter(struct rueda_lane *lane);

/* The first decision of a lane of ordered operations: its members make the
 * slab, and then carry out the decision. */
rueda_batch_next rueda_batch_open(struct rueda_lane *lane);

rueda_batch_next rueda_batch_set_add(struct rueda_lane *lane);
rueda_batch_next rueda_batch_set_drop(struct rueda_lane *lane);
rueda_batch_next rueda_batch_set_close(struct rueda_lane *lane);

#endif /* RUEDA_ENGINE_BATCH_H */
