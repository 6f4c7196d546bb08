/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch goes through its stages: wait for data, pack, run, unpack, deliver
 * (batch.h). This file has the walk and what all kinds of operation share;
 * which task a stage starts is in batch_whole.c and batch_rows.c.
 */
#include "engine/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/seldom.h"
#include "engine/lane.h"
#include "engine/lanes.h"
#include "fuse/pack.h"
#include "os/memory.h"

/* Packing walks through this much of the slab before it starts again at the
 * beginning: lines that other ranks have read lately, and still have in their
 * caches, are written at a fraction of the speed. */
#define WALK_BYTES ((size_t)4 << 20)

/* The names of the stages in the timeline. A collective has that of its kind,
 * and what is delivered is noted as the end of the whole operation. */
static const rueda_timeline_activity stage_names[] = {
    [RUEDA_STAGE_WAIT_FOR_DATA] = RUEDA_TIMELINE_WAIT_FOR_DATA,
    [RUEDA_STAGE_PACK] = RUEDA_TIMELINE_MEMCPY_IN_FUSION_BUFFER,
    [RUEDA_STAGE_RUN] = RUEDA_TIMELINE_ACTIVITIES,
    [RUEDA_STAGE_UNPACK] = RUEDA_TIMELINE_MEMCPY_OUT_FUSION_BUFFER,
};

/* ---- What all kinds need ---------------------------------------------- */

rueda_status rueda_batch_init(struct rueda_batch *batch, int members)
{
    batch->counts = calloc(2 * (size_t)members, sizeof(size_t));
    batch->words =
        calloc(2 * (size_t)members + RUEDA_BATCH_ASKED, sizeof(uint64_t));
    batch->answer =
        calloc(RUEDA_BATCH_ASKED * (size_t)members, sizeof(uint64_t));
    batch->round.parts = calloc(RUEDA_ROUND_MOST, sizeof(struct rueda_part));
    batch->round.tensors =
        calloc(RUEDA_ROUND_MOST, sizeof(struct rueda_tensor));
    return batch->counts != NULL && batch->words != NULL &&
                   batch->answer != NULL && batch->round.parts != NULL &&
                   batch->round.tensors != NULL
               ? RUEDA_OK
               : RUEDA_ERR_NOMEM;
}

static void spare_unmap(struct rueda_batch_spare *spare)
{
    if (spare->at != NULL && spare->device != NULL)
        spare->device->ops->free(spare->device, spare->at);
    else if (spare->at != NULL)
        rueda_memory_unmap(spare->at, spare->bytes);
    spare->at = NULL;
}

/* Where the tensors of the batch are; on the host, memory is zeroed and costs
 * nothing until it is touched. */
static void *spare_map(const struct rueda_lane *lane,
                       struct rueda_batch_spare *spare, size_t bytes)
{
    spare_unmap(spare);
    spare->bytes = bytes > 0 ? bytes : 1;
    spare->device = lane->batch.is_away ? lane->away.place.device : NULL;
    spare->at = spare->device != NULL
                    ? spare->device->ops->alloc(spare->device, spare->bytes)
                    : rueda_memory_map_private(spare->bytes);
    return spare->at;
}

void rueda_batch_fini(struct rueda_batch *batch)
{
    spare_unmap(&batch->neutral);
    spare_unmap(&batch->sink);
    free(batch->counts);
    free(batch->words);
    free(batch->answer);
    free(batch->round.parts);
    free(batch->round.tensors);
}

rueda_batch_next rueda_batch_fail(struct rueda_lane *lane, rueda_status status,
                                  const char *words)
{
    lane->batch.status = status;
    rueda_text_set(lane->batch.error, "%s", words);
    return RUEDA_BATCH_FAIL;
}

void rueda_batch_refuse(struct rueda_ticket *ticket, rueda_status status,
                        const char *words)
{
    ticket->op.outcome = status;
    free(ticket->error);
    ticket->error = strdup(words);
    ticket->op.has_own = true;
}

/* Where the tensors of the batch run. */
static struct rueda_place *place_of(struct rueda_lane *lane)
{
    return lane->batch.is_away ? &lane->away.place : &lane->track.place;
}

struct rueda_round *rueda_batch_round(struct rueda_lane *lane, rueda_kind kind)
{
    struct rueda_batch *batch = &lane->batch;

    batch->round = (struct rueda_round){
        .kind = kind,
        .members = lane->set->size,
        .me = lane->set->me,
        .most = lane->fusion != NULL ? RUEDA_ROUND_MOST : 0,
        .room = lane->fusion_bytes,
        .parts = batch->round.parts,
        .tensors = batch->round.tensors,
    };
    return &batch->round;
}

char *rueda_batch_claim(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const size_t bytes = rueda_round_bytes(&batch->round);
    size_t at = batch->slab_used;

    if (at >= WALK_BYTES || lane->fusion_bytes - at < bytes)
        at = 0;
    batch->slab_used = rueda_layout_span(at + bytes);
    if (batch->slab_used > lane->fusion_bytes)
        batch->slab_used = lane->fusion_bytes;
    batch->round.slab =
        (batch->is_away ? lane->away.fusion : lane->fusion) + at;
    batch->is_packed = true;
    return batch->round.slab;
}

bool rueda_batch_must_wait(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const bool was_waiting = batch->is_waiting;

    batch->is_waiting = rueda_lane_has_lent(lane);
    if (batch->is_waiting && !was_waiting)
        rueda_relay_step(lane, batch->item, batch->decision->count,
                         stage_names[RUEDA_STAGE_WAIT_FOR_DATA]);
    return batch->is_waiting;
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

    lane->track.task.place = place_of(lane);
    *coll = (struct rueda_coll){
        .kind = kind,
        .root = -1,
        .arith = {.dtype = request->dtype,
                  .reduction = is_average ? RUEDA_SUM : request->reduction,
                  .prescale = request->prescale,
                  .postscale = is_average ? request->postscale / live
                                          : request->postscale},
        .elem_bytes = rueda_dtype_bytes(request->dtype),
        .compression = request->compression,
        .is_short_handed =
            lane->batch.decision->live < lane->set->size || lane->kept.is_on,
    };
    return coll;
}

struct rueda_coll *rueda_batch_words(struct rueda_lane *lane, rueda_kind kind)
{
    struct rueda_coll *coll = &lane->track.task.coll;

    lane->track.task.place = &lane->track.place; /* words are on the host */
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
static void *own_memory(struct rueda_ticket *ticket, size_t rows, size_t bytes)
{
    ticket->rows = rows;
    if (ticket->recv != NULL)
        ticket->data = ticket->recv;
    /* One that runs again has its memory already. */
    if (ticket->data == NULL && ticket->alloc != NULL)
        ticket->data = ticket->alloc(ticket->alloc_arg, rows, bytes);
    if (ticket->data == NULL && bytes > 0)
        rueda_batch_refuse(ticket, RUEDA_ERR_NOMEM,
                           "no memory was given for the result");
    return ticket->data;
}

void *rueda_batch_own(struct rueda_lane *lane, int item, size_t rows,
                      size_t bytes)
{
    struct rueda_ticket *ticket = rueda_batch_ticket(&lane->batch, item);

    if (ticket == NULL)
        return NULL;
    if (ticket->recv == NULL && ticket->alloc != NULL)
        rueda_relay_step(lane, item, item + 1, RUEDA_TIMELINE_ALLOCATE_OUTPUT);
    return own_memory(ticket, rows, bytes);
}

rueda_batch_next rueda_batch_result(struct rueda_lane *lane, int item,
                                    size_t rows, size_t bytes, void **out)
{
    *out = rueda_batch_own(lane, item, rows, bytes);
    if (*out != NULL || bytes == 0)
        return RUEDA_BATCH_TASK;
    *out = spare_map(lane, &lane->batch.sink, bytes);
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
    void *at = spare_map(lane, &lane->batch.neutral, bytes);
    const bool is_zeroed = lane->batch.neutral.device == NULL;

    if (at != NULL && !(is_zeroed && rueda_arith_has_zero(&arith)))
        rueda_device_neutral(place_of(lane)->device, &lane->batch.work, &arith,
                             at, bytes / rueda_dtype_divisor(arith.dtype));
    return at;
}

rueda_batch_next rueda_batch_input(struct rueda_lane *lane, int item,
                                   size_t bytes, const void **out)
{
    struct rueda_ticket *ticket = rueda_batch_ticket(&lane->batch, item);

    *out = ticket != NULL ? ticket->send : NULL;
    if (ticket != NULL || bytes == 0)
        return RUEDA_BATCH_TASK;
    *out = map_neutral(lane, item, bytes);
    return *out != NULL ? RUEDA_BATCH_TASK
                        : rueda_batch_fail(lane, RUEDA_ERR_NOMEM,
                                           "no memory for what a rank gives "
                                           "that has joined");
}

rueda_batch_next rueda_batch_alone(struct rueda_lane *lane,
                                   struct rueda_coll *coll, size_t rows)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_request *request =
        rueda_batch_request(batch, batch->item);
    const size_t bytes = rueda_request_bytes(request);
    rueda_batch_next next;

    batch->after = batch->item + 1;
    next = rueda_batch_result(
        lane, batch->item, rows,
        rows * rueda_request_row(request) * coll->elem_bytes, &coll->recv);
    if (next == RUEDA_BATCH_TASK &&
        (coll->root < 0 || coll->root == lane->set->me))
        next = rueda_batch_input(lane, batch->item, bytes, &coll->send);
    if (coll->send == NULL)
        coll->send = coll->recv;
    return next == RUEDA_BATCH_TASK && bytes == 0 ? RUEDA_BATCH_END : next;
}

/* ---- Accelerators ----------------------------------------------------- */

/* The row of work goes on when the application's streams have written these. */
static void wait_for_streams(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_ticket *last = NULL;

    for (int i = batch->item; i < batch->after; i++) {
        const struct rueda_ticket *ticket = rueda_batch_ticket(batch, i);

        if (ticket == NULL || !rueda_request_is_away(&ticket->request) ||
            (last != NULL && last->mark[0] == ticket->mark[0]))
            continue;
        rueda_device_after(
            lane->away.place.device, &batch->work,
            &(struct rueda_event){{ticket->mark[0], ticket->mark[1]}});
        last = ticket;
    }
}

/* The same where the row has nothing to do yet: it is spared work of its own,
 * which costs more than a few questions where ranks take turns on one device.
 */
static rueda_status watch_streams(struct rueda_lane *lane)
{
    const struct rueda_device *device = lane->away.place.device;
    struct rueda_batch *batch = &lane->batch;
    const void *reached = NULL;

    for (; batch->watched < batch->after; batch->watched++) {
        const struct rueda_ticket *ticket =
            rueda_batch_ticket(batch, batch->watched);
        struct rueda_event event;
        rueda_status status;

        if (ticket == NULL || !rueda_request_is_away(&ticket->request) ||
            ticket->mark[0] == reached)
            continue;
        event = (struct rueda_event){{ticket->mark[0], ticket->mark[1]}};
        status = device->ops->is_done(device, &event);
        if (status != RUEDA_OK)
            return status;
        reached = ticket->mark[0];
    }
    batch->is_watching = false;
    return RUEDA_OK;
}

void rueda_batch_settle(struct rueda_lane *lane)
{
    if (lane->batch.decision != NULL && lane->batch.is_away &&
        lane->away.place.device != NULL)
        rueda_device_settle(lane->away.place.device, &lane->batch.work);
}

/* ---- Stages ----------------------------------------------------------- */

static rueda_batch_next barrier(struct rueda_lane *lane)
{
    lane->batch.after = lane->batch.item + 1;
    rueda_batch_words(lane, RUEDA_BARRIER);
    return RUEDA_BATCH_TASK;
}

static rueda_batch_next unknown(struct rueda_lane *lane)
{
    return rueda_batch_fail(lane, RUEDA_ERR_MISMATCH,
                            "a decision about an operation of no known kind");
}

/* In order, and the caller has said where all pieces lie: one task. */
static rueda_batch_next laid_out(struct rueda_lane *lane)
{
    const struct rueda_ticket *ticket = rueda_batch_ticket(&lane->batch, 0);
    const struct rueda_request *request = &ticket->request;
    const bool is_sent = request->kind != RUEDA_BROADCAST ||
                         request->root == lane->formation->rank;
    struct rueda_coll *coll =
        rueda_batch_coll(lane, (rueda_kind)request->kind, 0);

    lane->batch.after = 1;
    if (request->kind == RUEDA_BROADCAST)
        coll->root = rueda_set_index(lane->set, request->root);
    coll->send = is_sent ? ticket->send : ticket->recv;
    coll->recv = ticket->recv;
    coll->count = request->kind == RUEDA_BARRIER ? 0 : ticket->count;
    coll->send_counts = ticket->send_counts;
    coll->recv_counts = ticket->recv_counts;
    return RUEDA_BATCH_TASK;
}

/* What chooses the rounds of a decision. */
static rueda_batch_fn fn_of(const struct rueda_lane *lane,
                            const struct rueda_decision *decision)
{
    static const rueda_batch_fn kinds[] = {
        [RUEDA_ALLREDUCE] = rueda_batch_allreduce,
        [RUEDA_ALLGATHER] = rueda_batch_allgather,
        [RUEDA_BROADCAST] = rueda_batch_broadcast,
        [RUEDA_ALLTOALL] = rueda_batch_alltoall,
        [RUEDA_REDUCE_SCATTER] = rueda_batch_reduce_scatter,
        [RUEDA_BARRIER] = barrier,
        [RUEDA_JOIN] = unknown,
        [RUEDA_SEND] = unknown,
        [RUEDA_RECV] = unknown,
        [RUEDA_SET_ADD] = rueda_batch_set_add,
        [RUEDA_SET_DROP] = rueda_batch_set_drop,
        [RUEDA_SET_CLOSE] = rueda_batch_set_close,
    };
    const struct rueda_decision_item *item = &decision->items[0];
    const struct rueda_ticket *ticket = item->mine;

    if (decision->kind != RUEDA_DECIDED_RUN || item->request->kind < 0 ||
        item->request->kind > RUEDA_SET_CLOSE)
        return unknown;
    if (lane->is_ordered && !lane->is_open)
        return rueda_batch_open;
    if (ticket != NULL && ticket->op.is_laid_out)
        return laid_out;
    return kinds[item->request->kind];
}

/* The first step of a batch of tensors on accelerators. */
static rueda_batch_next enter_away(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_text words = {{0}};
    const rueda_status status = rueda_away_enter(lane, &words);

    if (status != RUEDA_OK)
        return rueda_batch_fail(lane, status, words.chars);
    batch->next = fn_of(lane, batch->decision);
    return batch->next(lane);
}

void rueda_batch_begin(struct rueda_lane *lane,
                       const struct rueda_decision *decision)
{
    const struct rueda_request *request = decision->items[0].request;
    struct rueda_batch *batch = &lane->batch;

    batch->decision = decision;
    batch->item = 0;
    batch->after = 0;
    batch->step = 0;
    batch->stage = RUEDA_STAGE_WAIT_FOR_DATA;
    batch->work = (struct rueda_work){.status = RUEDA_OK};
    batch->is_packed = false;
    batch->is_watching = false;
    batch->asked = 0;
    batch->asked_after = 0;
    batch->is_away =
        decision->kind == RUEDA_DECIDED_RUN && rueda_request_is_away(request);
    batch->next = batch->is_away ? enter_away : fn_of(lane, decision);
    if (batch->next == laid_out) {
        /* Nothing is to be waited for, nor packed. */
        laid_out(lane);
        batch->stage = RUEDA_STAGE_RUN;
        return;
    }
    if (decision->kind == RUEDA_DECIDED_RUN &&
        request->kind > RUEDA_BARRIER) /* several tasks, and no round */
        rueda_relay_step(
            lane, 0, decision->count,
            rueda_timeline_collective(request->kind, request->reduction));
}

/* Note the stage of the round in the timeline. A tensor that is alone in the
 * slab is not said to be packed: there it takes the place of its buffers. */
static void note_stage(struct rueda_lane *lane)
{
    const struct rueda_batch *batch = &lane->batch;
    rueda_timeline_activity name = stage_names[batch->stage];

    if (lane->lanes->timeline == NULL || batch->item == batch->after)
        return;
    if (batch->stage == RUEDA_STAGE_RUN) {
        const struct rueda_request *request =
            rueda_batch_request(batch, batch->item);

        name = rueda_timeline_collective(request->kind, request->reduction);
    } else if (!batch->is_packed || batch->after == batch->item + 1) {
        return;
    }
    rueda_relay_step(lane, batch->item, batch->after, name);
}

/* Unless the tensor is alone, or the algorithm takes parts where they are. */
static void pack(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_track *track = &lane->track;
    const bool is_taken =
        !batch->is_packed ||
        (track->task.coll.parts != NULL && rueda_track_takes_parts(track));

    batch->is_watching = batch->is_away && is_taken;
    batch->watched = batch->item;
    if (batch->is_away && !is_taken)
        wait_for_streams(lane);
    if (!is_taken)
        rueda_pack_in(&batch->round, place_of(lane)->device, &batch->work);
}

/* RUEDA_OK: the data are where the task reads them. */
static rueda_status await_data(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const rueda_status status =
        batch->is_watching ? watch_streams(lane) : RUEDA_OK;

    if (status != RUEDA_OK)
        return status;
    return rueda_device_poll(place_of(lane)->device, &batch->work);
}

/* As far as the algorithm has not done so. */
static void unpack(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_coll *coll = &lane->track.task.coll;

    if (coll->parts == NULL || coll->part_count > 0)
        rueda_pack_out(&batch->round, place_of(lane)->device, &batch->work);
}

static void enter(struct rueda_lane *lane, rueda_batch_stage stage)
{
    struct rueda_batch *batch = &lane->batch;

    batch->stage = stage;
    note_stage(lane);
    if (stage == RUEDA_STAGE_PACK)
        pack(lane);
    if (stage == RUEDA_STAGE_UNPACK && batch->is_packed)
        unpack(lane);
}

/* The round is over: the next one, if there is any. */
static void go_on(struct rueda_batch *batch)
{
    batch->item = batch->after;
    batch->is_packed = false;
    batch->stage = batch->item < batch->decision->count
                       ? RUEDA_STAGE_WAIT_FOR_DATA
                       : RUEDA_STAGE_DELIVER;
}

static rueda_status choose_next(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;

    switch (batch->next(lane)) {
    case RUEDA_BATCH_TASK:
        enter(lane, RUEDA_STAGE_PACK);
        return RUEDA_OK;
    case RUEDA_BATCH_END:
        if (batch->after == batch->item)
            batch->after = batch->decision->count;
        go_on(batch);
        return RUEDA_OK;
    case RUEDA_BATCH_WAIT:
        return RUEDA_IN_PROGRESS;
    case RUEDA_BATCH_FAIL:
        break;
    }
    return batch->status;
}

/* The task has ended. */
static void end_run(struct rueda_lane *lane)
{
    rueda_track_finish(&lane->track, RUEDA_OK);
    lane->moves++;
    if (lane->kept.is_on) {
        rueda_kept_count(lane);
        lane->batch.stage = RUEDA_STAGE_AGREE;
    } else {
        enter(lane, RUEDA_STAGE_UNPACK);
    }
}

static rueda_status run(struct rueda_lane *lane)
{
    rueda_status status = lane->kept.is_on ? rueda_kept_begin(lane) : RUEDA_OK;

    if (status != RUEDA_OK)
        return status;
    lane->moves++;
    status = rueda_track_start(&lane->track);
    if (status == RUEDA_OK)
        end_run(lane);
    return status;
}

static rueda_status agree(struct rueda_lane *lane)
{
    const rueda_status status = rueda_kept_agree(lane);

    if (status == RUEDA_OK)
        enter(lane, RUEDA_STAGE_UNPACK);
    return status;
}

/* From stage to stage, while no task runs. */
RUEDA_SELDOM static rueda_status walk(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK) {
        switch (batch->stage) {
        case RUEDA_STAGE_WAIT_FOR_DATA:
            status = choose_next(lane);
            break;
        case RUEDA_STAGE_PACK:
            status = await_data(lane);
            if (status == RUEDA_OK)
                enter(lane, RUEDA_STAGE_RUN);
            break;
        case RUEDA_STAGE_RUN:
            status = run(lane);
            break;
        case RUEDA_STAGE_AGREE:
            status = agree(lane);
            break;
        case RUEDA_STAGE_UNPACK:
            status = rueda_device_poll(place_of(lane)->device, &batch->work);
            if (status == RUEDA_OK)
                go_on(batch);
            break;
        case RUEDA_STAGE_DELIVER:
            return RUEDA_OK;
        }
    }
    return status;
}

/* Most turns find a task that runs, and goes on running. */
rueda_status rueda_batch_turn(struct rueda_lane *lane, struct rueda_text *error)
{
    struct rueda_track *track = &lane->track;
    rueda_status status = RUEDA_OK;

    lane->batch.error = error;
    /* In other stages a barrier runs there (kept.h). */
    if (track->is_running && lane->batch.stage == RUEDA_STAGE_RUN) {
        status = rueda_track_progress(track);
        if (status == RUEDA_OK)
            end_run(lane);
    }
    if (status == RUEDA_OK)
        status = walk(lane);
    /* A device rings no bell when it is done: the next turn comes soon. */
    if (lane->batch.is_watching ||
        lane->batch.work.status == RUEDA_IN_PROGRESS ||
        (track->is_running && track->task.work.status == RUEDA_IN_PROGRESS))
        lane->moves++;
    if (status < 0 && lane->batch.is_away && rueda_text_is_empty(error) &&
        status != RUEDA_ERR_PEER_LOST)
        lane->away.place.device->ops->tell(lane->away.place.device, error);
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
