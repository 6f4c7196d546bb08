/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/batch.h"

#include <stdlib.h>
#include <string.h>

#include "engine/lane.h"
#include "engine/lanes.h"
#include "fuse/pack.h"
#include "os/memory.h"

/* How many items ahead of the one at work. */
#define AHEAD 8

/* What is packed walks through so much of the slab before it begins anew: lines
 * that others have read lately, and still have in their caches, are written at
 * a fraction of the speed. */
#define WALK_BYTES ((size_t)4 << 20)

/* ---- What all kinds need ---------------------------------------------- */

rueda_status rueda_batch_init(struct rueda_batch *batch, int members)
{
    batch->counts = calloc(2 * (size_t)members, sizeof(size_t));
    batch->words =
        calloc(2 * (size_t)members + RUEDA_BATCH_ASKED, sizeof(uint64_t));
    batch->answer =
        calloc(RUEDA_BATCH_ASKED * (size_t)members, sizeof(uint64_t));
    batch->parts = calloc(RUEDA_BATCH_PARTS, sizeof(struct rueda_part));
    return batch->counts != NULL && batch->words != NULL &&
                   batch->answer != NULL && batch->parts != NULL
               ? RUEDA_OK
               : RUEDA_ERR_NOMEM;
}

static void spare_unmap(struct rueda_spare *spare)
{
    if (spare->at != NULL)
        rueda_memory_unmap(spare->at, spare->bytes);
    spare->at = NULL;
}

static void *spare_map(struct rueda_spare *spare, size_t bytes)
{
    spare_unmap(spare);
    spare->bytes = bytes > 0 ? bytes : 1;
    spare->at = rueda_memory_map_private(spare->bytes);
    return spare->at;
}

void rueda_batch_fini(struct rueda_batch *batch)
{
    spare_unmap(&batch->neutral);
    spare_unmap(&batch->sink);
    free(batch->counts);
    free(batch->words);
    free(batch->answer);
    free(batch->parts);
}

rueda_batch_next rueda_batch_fail(struct rueda_lane *lane, rueda_status status,
                                  const char *words)
{
    lane->batch.status = status;
    rueda_text_set(lane->batch.error, "%s", words);
    return RUEDA_BATCH_FAIL;
}

void rueda_batch_refuse(struct rueda_named *named, rueda_status status,
                        const char *words)
{
    named->op.outcome = status;
    free(named->error);
    named->error = strdup(words);
    named->op.has_own = true;
}

char *rueda_batch_room(struct rueda_lane *lane, size_t bytes)
{
    struct rueda_batch *batch = &lane->batch;
    size_t at = batch->slab_used;

    if (at >= WALK_BYTES || lane->fusion_bytes - at < bytes)
        at = 0;
    batch->slab_used =
        (at + bytes + RUEDA_CACHE_LINE - 1) & ~((size_t)RUEDA_CACHE_LINE - 1);
    if (batch->slab_used > lane->fusion_bytes)
        batch->slab_used = lane->fusion_bytes;
    return lane->fusion + at;
}

struct rueda_pack rueda_batch_pack(struct rueda_lane *lane, void *slab,
                                   bool is_out)
{
    return (struct rueda_pack){
        .device = lane->track.place.device,
        .work = &lane->batch.work,
        .slab = slab,
        .is_out = is_out,
        .parts = lane->batch.parts,
        .room = RUEDA_BATCH_PARTS,
    };
}

bool rueda_batch_must_wait(struct rueda_lane *lane)
{
    lane->batch.is_waiting = rueda_lane_has_lent(lane);
    return lane->batch.is_waiting;
}

static size_t rows_of(const struct rueda_request *request)
{
    return request->dims > 0 ? request->shape[0] : 1;
}

struct rueda_coll *rueda_batch_coll(struct rueda_lane *lane, rueda_kind kind,
                                    int item)
{
    const struct rueda_request *request =
        rueda_batch_request(&lane->batch, item);
    const bool is_average = request->reduction == RUEDA_AVERAGE;
    const int live = (request->flags & RUEDA_LIVE_AVERAGE) != 0
                         ? lane->batch.decision->live
                         : lane->set->size;
    struct rueda_coll *coll = &lane->track.task.coll;

    *coll = (struct rueda_coll){
        .kind = kind,
        .root = -1,
        .arith = {.dtype = request->dtype,
                  .reduction = is_average ? RUEDA_SUM : request->reduction,
                  .prescale = request->prescale,
                  .postscale = is_average ? request->postscale / live
                                          : request->postscale},
        .elem_bytes = rueda_dtype_size(request->dtype),
        .compression = request->compression,
    };
    return coll;
}

struct rueda_coll *rueda_batch_words(struct rueda_lane *lane, rueda_kind kind)
{
    struct rueda_coll *coll = &lane->track.task.coll;

    *coll = (struct rueda_coll){
        .kind = kind,
        .root = -1,
        .arith = {.dtype = RUEDA_INT64,
                  .reduction = RUEDA_SUM,
                  .prescale = 1,
                  .postscale = 1},
        .elem_bytes = sizeof(uint64_t),
        .send = lane->batch.words,
        .recv = lane->batch.answer,
    };
    return coll;
}

/* The owner's memory for a result, or NULL. */
static void *own_memory(struct rueda_named *named, size_t rows, size_t bytes)
{
    named->rows = rows;
    named->data = named->recv;
    if (named->data == NULL && named->alloc != NULL)
        named->data = named->alloc(named->alloc_arg, rows, bytes);
    if (named->data == NULL && bytes > 0)
        rueda_batch_refuse(named, RUEDA_ERR_NOMEM,
                           "no memory was given for the result");
    return named->data;
}

void *rueda_batch_own(struct rueda_lane *lane, int item, size_t rows,
                      size_t bytes)
{
    struct rueda_named *named = rueda_batch_named(&lane->batch, item);

    if (named == NULL)
        return NULL;
    if (named->recv == NULL && named->alloc != NULL)
        rueda_relay_step(lane, item, item + 1, RUEDA_TIMELINE_ALLOCATE_OUTPUT);
    return own_memory(named, rows, bytes);
}

rueda_batch_next rueda_batch_result(struct rueda_lane *lane, int item,
                                    size_t rows, size_t bytes, void **out)
{
    *out = rueda_batch_own(lane, item, rows, bytes);
    if (*out != NULL || bytes == 0)
        return RUEDA_BATCH_TASK;
    *out = spare_map(&lane->batch.sink, bytes);
    return *out != NULL ? RUEDA_BATCH_TASK
                        : rueda_batch_fail(lane, RUEDA_ERR_NOMEM,
                                           "no memory to take part in an "
                                           "operation");
}

static struct rueda_arith arith_of(const struct rueda_request *request)
{
    return (struct rueda_arith){
        .dtype = request->dtype,
        .reduction = request->reduction,
        .prescale = request->prescale,
        .postscale = request->postscale,
    };
}

/* What changes nothing in the result of an item. */
static void *map_neutral(struct rueda_lane *lane, int item, size_t bytes)
{
    const struct rueda_arith arith =
        arith_of(rueda_batch_request(&lane->batch, item));
    void *at = spare_map(&lane->batch.neutral, bytes);

    if (at != NULL && !rueda_arith_has_zero(&arith))
        rueda_device_neutral(lane->track.place.device, &lane->batch.work,
                             &arith, at, bytes / rueda_dtype_size(arith.dtype));
    return at;
}

rueda_batch_next rueda_batch_input(struct rueda_lane *lane, int item,
                                   size_t bytes, const void **out)
{
    struct rueda_named *named = rueda_batch_named(&lane->batch, item);

    *out = named != NULL ? named->send : NULL;
    if (named != NULL || bytes == 0)
        return RUEDA_BATCH_TASK;
    *out = map_neutral(lane, item, bytes);
    return *out != NULL ? RUEDA_BATCH_TASK
                        : rueda_batch_fail(lane, RUEDA_ERR_NOMEM,
                                           "no memory for what a rank gives "
                                           "that has joined");
}

/* ---- Allreduce -------------------------------------------------------- */

/* Items that are going to be looked at: into the cache, which they have mostly
 * left since they were submitted. */
static void fetch_ahead(const struct rueda_batch *batch, int item, int count)
{
    for (; count > 0 && item < batch->decision->count; count--, item++) {
        const struct rueda_request *request = rueda_batch_request(batch, item);
        const struct rueda_named *named = rueda_batch_named(batch, item);

        __builtin_prefetch(request);
        __builtin_prefetch(request->shape);
        if (named != NULL)
            __builtin_prefetch(&named->send, 1);
    }
}

/*
 * Tensors that fit the fusion slab go through it in rounds of as many as fit,
 * as parts of one vector; one that does not, by itself. What a round holds
 * depends on what all members know; where parts come from and where they go is
 * each one's own business.
 */
static void choose_round(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_layout layout = {0};
    int count = 0;

    fetch_ahead(batch, batch->item, AHEAD);
    for (; batch->item + count < batch->decision->count &&
           count < RUEDA_BATCH_PARTS && lane->fusion != NULL;
         count++) {
        const int item = batch->item + count;
        const struct rueda_request *request = rueda_batch_request(batch, item);
        const struct rueda_named *named = rueda_batch_named(batch, item);
        struct rueda_part *part = &batch->parts[count];

        fetch_ahead(batch, item + AHEAD, 1);
        part->bytes = rueda_request_bytes(request);
        if (!rueda_layout_add(&layout, lane->fusion_bytes, part->bytes,
                              &part->at))
            break;
        part->send = named != NULL ? named->send : NULL;
        part->recv = rueda_batch_own(lane, item, rows_of(request), part->bytes);
    }
    batch->is_packed = count > 0;
    batch->after = batch->item + (count > 0 ? count : 1);
    batch->bytes = layout.end;
    if (count > 0)
        batch->slab = rueda_batch_room(lane, layout.end);
}

/* The largest of the round that I do not have, as I have joined; -1: none. */
static int find_absent(const struct rueda_batch *batch)
{
    size_t most = 0;
    int found = -1;

    for (int i = batch->item; i < batch->after; i++) {
        const size_t bytes = batch->parts[i - batch->item].bytes;

        if (rueda_batch_named(batch, i) == NULL && bytes > most) {
            most = bytes;
            found = i;
        }
    }
    return found;
}

/* What I give for those: one piece of memory for all, but nothing for zeros. */
static rueda_batch_next stand_in(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_arith arith =
        arith_of(rueda_batch_request(batch, batch->item));
    rueda_batch_next next;
    const void *neutral;
    int absent;

    if (batch->decision->live == lane->set->size ||
        rueda_arith_has_zero(&arith))
        return RUEDA_BATCH_TASK;
    absent = find_absent(batch);
    if (absent < 0)
        return RUEDA_BATCH_TASK;
    next = rueda_batch_input(
        lane, absent, batch->parts[absent - batch->item].bytes, &neutral);
    for (int i = batch->item; i < batch->after; i++)
        if (rueda_batch_named(batch, i) == NULL)
            batch->parts[i - batch->item].send = neutral;
    return next;
}

/* What is told of several tensors that share the slab. */
static void note(struct rueda_lane *lane, rueda_timeline_activity activity)
{
    const struct rueda_batch *batch = &lane->batch;

    if (batch->after > batch->item + 1)
        rueda_relay_step(lane, batch->item, batch->after, activity);
}

static void note_start(struct rueda_lane *lane)
{
    const struct rueda_batch *batch = &lane->batch;

    rueda_relay_step(lane, batch->item, batch->after,
                     rueda_timeline_collective(
                         RUEDA_ALLREDUCE,
                         rueda_batch_request(batch, batch->item)->reduction));
}

/* As a vector in the slab, unless the algorithm takes parts where they are. */
static rueda_batch_next start_packed(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_coll *coll;

    if (stand_in(lane) != RUEDA_BATCH_TASK)
        return RUEDA_BATCH_FAIL;
    note(lane, RUEDA_TIMELINE_MEMCPY_IN_FUSION_BUFFER);
    coll = rueda_batch_coll(lane, RUEDA_ALLREDUCE, batch->item);
    coll->send = batch->slab;
    coll->recv = batch->slab;
    coll->count = batch->bytes / coll->elem_bytes;
    coll->parts = batch->parts;
    coll->part_count = batch->after - batch->item;
    if (coll->count > 0 && !rueda_track_takes_parts(&lane->track))
        rueda_device_gather(lane->track.place.device, &batch->work, batch->slab,
                            batch->parts, coll->part_count);
    note_start(lane);
    return coll->count > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* Larger than the slab: straight from and to the caller's memory. */
static rueda_batch_next start_single(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_request *request =
        rueda_batch_request(batch, batch->item);
    const size_t bytes = rueda_request_bytes(request);
    rueda_batch_next next;
    struct rueda_coll *coll;
    const void *send;
    void *recv;

    next = rueda_batch_input(lane, batch->item, bytes, &send);
    if (next == RUEDA_BATCH_TASK)
        next = rueda_batch_result(lane, batch->item, rows_of(request), bytes,
                                  &recv);
    if (next != RUEDA_BATCH_TASK)
        return next;
    note_start(lane);
    coll = rueda_batch_coll(lane, RUEDA_ALLREDUCE, batch->item);
    coll->send = send;
    coll->recv = recv;
    coll->count = rueda_request_count(request);
    return coll->count > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* Results to their owners, as far as they are not there yet. */
static void unpack(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;

    note(lane, RUEDA_TIMELINE_MEMCPY_OUT_FUSION_BUFFER);
    rueda_device_scatter(lane->track.place.device, &batch->work, batch->slab,
                         batch->parts, lane->track.task.coll.part_count);
}

static rueda_batch_next allreduce(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    rueda_batch_next next = RUEDA_BATCH_END;

    /* A round of empty tensors has no task. */
    while (next == RUEDA_BATCH_END) {
        if (batch->is_packed)
            unpack(lane);
        batch->item = batch->after;
        batch->is_packed = false;
        if (batch->item == batch->decision->count)
            return RUEDA_BATCH_END;
        if (rueda_batch_must_wait(lane))
            return RUEDA_BATCH_WAIT;
        choose_round(lane);
        next = batch->is_packed ? start_packed(lane) : start_single(lane);
    }
    return next;
}

/* ---- The kinds whose sizes are known to all --------------------------- */

static rueda_batch_next start_broadcast(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_request *request =
        rueda_batch_request(batch, batch->item);
    const size_t bytes = rueda_request_bytes(request);
    const int root = rueda_set_index(lane->set, request->root);
    rueda_batch_next next;
    struct rueda_coll *coll;
    const void *send = NULL;
    void *recv;

    if (root < 0)
        return rueda_batch_fail(lane, RUEDA_ERR_MISMATCH,
                                "a broadcast from no member of its set");
    next =
        rueda_batch_result(lane, batch->item, rows_of(request), bytes, &recv);
    if (next == RUEDA_BATCH_TASK && root == lane->set->me)
        next = rueda_batch_input(lane, batch->item, bytes, &send);
    if (next != RUEDA_BATCH_TASK)
        return next;
    rueda_relay_step(lane, batch->item, batch->after,
                     RUEDA_TIMELINE_RUEDA_BCAST);
    coll = rueda_batch_coll(lane, RUEDA_BROADCAST, batch->item);
    coll->root = root;
    coll->send = send != NULL ? send : recv;
    coll->recv = recv;
    coll->count = rueda_request_count(request);
    return coll->count > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

static rueda_batch_next start_barrier(struct rueda_lane *lane)
{
    rueda_batch_words(lane, RUEDA_BARRIER);
    return RUEDA_BATCH_TASK;
}

/* One task an item. */
static rueda_batch_next
one_by_one(struct rueda_lane *lane,
           rueda_batch_next (*start)(struct rueda_lane *))
{
    struct rueda_batch *batch = &lane->batch;
    rueda_batch_next next = RUEDA_BATCH_END;

    while (next == RUEDA_BATCH_END) {
        batch->item = batch->after;
        if (batch->item == batch->decision->count)
            return RUEDA_BATCH_END;
        batch->after++;
        next = start(lane);
    }
    return next;
}

static rueda_batch_next broadcast(struct rueda_lane *lane)
{
    return one_by_one(lane, start_broadcast);
}

static rueda_batch_next barrier(struct rueda_lane *lane)
{
    return one_by_one(lane, start_barrier);
}

/* ---- Accelerators ----------------------------------------------------- */

/* All members have theirs on one, so all refuse alike. */
static rueda_batch_next refuse_all(struct rueda_lane *lane)
{
    const struct rueda_batch *batch = &lane->batch;

    for (int i = 0; i < batch->decision->count; i++) {
        struct rueda_named *named = rueda_batch_named(batch, i);

        if (named != NULL)
            rueda_batch_refuse(named, RUEDA_ERR_UNSUPPORTED,
                               "the tensor is on an accelerator on all ranks, "
                               "and only tensors in the memory of the host are "
                               "taken; copy it there first");
    }
    return RUEDA_BATCH_END;
}

/* ---- Carrying out ----------------------------------------------------- */

static rueda_batch_next unknown(struct rueda_lane *lane)
{
    return rueda_batch_fail(lane, RUEDA_ERR_MISMATCH,
                            "a decision about an operation of no known kind");
}

void rueda_batch_begin(struct rueda_lane *lane,
                       const struct rueda_decision *decision)
{
    static rueda_batch_next (*const kinds[])(struct rueda_lane *) = {
        [RUEDA_ALLREDUCE] = allreduce,
        [RUEDA_ALLGATHER] = rueda_batch_allgather,
        [RUEDA_BROADCAST] = broadcast,
        [RUEDA_ALLTOALL] = rueda_batch_alltoall,
        [RUEDA_REDUCE_SCATTER] = rueda_batch_reduce_scatter,
        [RUEDA_BARRIER] = barrier,
        [RUEDA_JOIN] = unknown,
        [RUEDA_SEND] = unknown,
        [RUEDA_RECV] = unknown,
        [RUEDA_SET_ADD] = rueda_batch_set_add,
        [RUEDA_SET_DROP] = rueda_batch_set_drop,
    };
    struct rueda_batch *batch = &lane->batch;
    int kind = decision->kind == RUEDA_DECIDED_RUN
                   ? decision->items[0].request->kind
                   : -1;

    batch->decision = decision;
    batch->item = 0;
    batch->after = 0;
    batch->step = 0;
    batch->stage = RUEDA_STAGE_WAIT_FOR_DATA;
    batch->work = (struct rueda_work){.status = RUEDA_OK};
    batch->asked = 0;
    batch->asked_after = 0;
    batch->is_packed = false;
    batch->next = kind >= 0 && kind <= RUEDA_SET_DROP ? kinds[kind] : unknown;
    if (kind >= 0 && decision->items[0].request->device != RUEDA_DEVICE_HOST)
        batch->next = refuse_all;
    if (kind > RUEDA_REDUCE_SCATTER) /* the others have more to tell */
        rueda_relay_step(lane, 0, decision->count,
                         rueda_timeline_collective(
                             kind, decision->items[0].request->reduction));
}

/* Let the kind choose what comes next: unpack the last round, pack the next. */
static rueda_status choose_next(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;

    switch (batch->next(lane)) {
    case RUEDA_BATCH_TASK:
        batch->stage = RUEDA_STAGE_PACK;
        return RUEDA_OK;
    case RUEDA_BATCH_END:
        batch->stage = RUEDA_STAGE_DELIVER;
        return RUEDA_OK;
    case RUEDA_BATCH_WAIT:
        batch->stage = RUEDA_STAGE_WAIT_FOR_DATA;
        return RUEDA_IN_PROGRESS;
    case RUEDA_BATCH_FAIL:
        break;
    }
    return batch->status;
}

static rueda_status run(struct rueda_lane *lane)
{
    struct rueda_track *track = &lane->track;
    rueda_status status;

    if (track->is_running) {
        status = rueda_track_progress(track);
    } else {
        lane->moves++;
        lane->batch.stage = RUEDA_STAGE_RUN;
        status = rueda_track_start(track);
    }
    if (status == RUEDA_OK) {
        rueda_track_finish(track, RUEDA_OK);
        lane->moves++;
        lane->batch.stage = RUEDA_STAGE_UNPACK;
    }
    return status;
}

rueda_status rueda_batch_turn(struct rueda_lane *lane, struct rueda_text *error)
{
    struct rueda_batch *batch = &lane->batch;
    rueda_status status = RUEDA_OK;

    batch->error = error;
    while (status == RUEDA_OK) {
        /* The calls of a row take effect in order, so that a round can be
         * packed before the last one is unpacked; what is packed must be there
         * before it runs, and what is unpacked before it is delivered. */
        switch (batch->stage) {
        case RUEDA_STAGE_PACK:
            status = rueda_device_poll(lane->track.place.device, &batch->work);
            if (status == RUEDA_OK)
                status = run(lane);
            break;
        case RUEDA_STAGE_RUN:
            status = run(lane);
            break;
        case RUEDA_STAGE_WAIT_FOR_DATA:
        case RUEDA_STAGE_UNPACK:
            status = choose_next(lane);
            break;
        case RUEDA_STAGE_DELIVER:
            return rueda_device_poll(lane->track.place.device, &batch->work);
        }
    }
    return status;
}

void rueda_batch_drop(struct rueda_lane *lane)
{
    lane->batch.decision = NULL;
    lane->batch.is_waiting = false;
    spare_unmap(&lane->batch.neutral);
    spare_unmap(&lane->batch.sink);
    if (lane->batch.made != NULL)
        rueda_lane_free(lane->batch.made);
    lane->batch.made = NULL;
}
