/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds that cut tensors by rows. Of an allgather and an all-to-all members
 * bring different rows: first each tells how many, of several tensors at once
 * where they run together, and then the rows travel. Of a reduce-scatter each
 * member gets an equal share of the rows, the lowest ones one more.
 */
#include "engine/batch.h"
#include "engine/lane.h"
#include "engine/lanes.h"

#include <stdlib.h>

/* ---- What members bring ------------------------------------------------ */

/* How many tensors were asked for, with the one at work. */
static int asked_count(const struct rueda_batch *batch)
{
    return batch->asked_after - batch->asked;
}

/* Rows of an item that a member brings, or has for me. */
static uint64_t told(const struct rueda_batch *batch, int item, int member)
{
    return batch->answer[member * asked_count(batch) + item - batch->asked];
}

static size_t row_of(const struct rueda_batch *batch, int item)
{
    return rueda_request_row(rueda_batch_request(batch, item));
}

static size_t row_bytes_of(const struct rueda_batch *batch, int item)
{
    return row_of(batch, item) *
           rueda_dtype_size(rueda_batch_request(batch, item)->dtype);
}

static size_t own_rows(const struct rueda_batch *batch, int item)
{
    return rueda_batch_ticket(batch, item) != NULL
               ? rueda_batch_rows(rueda_batch_request(batch, item))
               : 0;
}

/* Ask for the rows of these. */
static void ask(struct rueda_lane *lane, int item, int after)
{
    struct rueda_batch *batch = &lane->batch;

    batch->asked = item;
    batch->asked_after = after;
    rueda_relay_step(lane, item, after, RUEDA_TIMELINE_RUEDA_EXCHANGE_ROWS);
}

/* ---- One tensor at a time ---------------------------------------------- */

/* The result tells from whom it came. */
static void tell_rows(struct rueda_lane *lane, struct rueda_ticket *ticket)
{
    const size_t size = (size_t)lane->set->size;

    ticket->op.has_own = true;
    if (ticket->rows_from == NULL)
        ticket->rows_from = calloc(size, sizeof(size_t));
    if (ticket->rows_from == NULL) {
        rueda_batch_refuse(ticket, RUEDA_ERR_NOMEM,
                           "no memory for the rows of each member");
        return;
    }
    for (size_t i = 0; i < size; i++)
        ticket->rows_from[i] = (size_t)lane->batch.answer[i];
}

/* The rows of the item at work, straight to their owners. Of an all-to-all
 * no member knows whether others have anything to send, so there is a task in
 * any case. */
static rueda_batch_next move_rows(struct rueda_lane *lane, rueda_kind kind)
{
    struct rueda_batch *batch = &lane->batch;
    const int item = batch->item;
    const size_t row = row_of(batch, item);
    size_t *recv_counts = batch->counts + lane->set->size;
    struct rueda_ticket *ticket = rueda_batch_ticket(batch, item);
    struct rueda_coll *coll;
    rueda_batch_next next;
    size_t total;
    void *recv;

    if (!rueda_layout_total(&batch->answer[item - batch->asked],
                            asked_count(batch), lane->set->size,
                            row_bytes_of(batch, item), &total))
        return rueda_batch_fail(lane, RUEDA_ERR_LIMIT,
                                "members bring more rows than fit any memory");
    if (kind == RUEDA_ALLTOALL && ticket != NULL)
        tell_rows(lane, ticket);
    next = rueda_batch_result(lane, item, total,
                              total * row_bytes_of(batch, item), &recv);
    if (next != RUEDA_BATCH_TASK)
        return next;
    for (int i = 0; i < lane->set->size; i++)
        recv_counts[i] = (size_t)told(batch, item, i) * row;
    coll = rueda_batch_coll(lane, kind, item);
    coll->send = ticket != NULL ? ticket->send : NULL;
    coll->recv = recv;
    coll->recv_counts = recv_counts;
    if (kind == RUEDA_ALLTOALL)
        coll->send_counts = batch->counts;
    else
        coll->count = own_rows(batch, item) * row;
    return kind == RUEDA_ALLTOALL || total * row > 0 ? RUEDA_BATCH_TASK
                                                     : RUEDA_BATCH_END;
}

/* ---- Several, in the slab ---------------------------------------------- */

/* As many as fit the slab, up to `limit`, or one. */
static void choose_round(struct rueda_batch *batch, int limit)
{
    while (batch->after < limit &&
           rueda_round_add(&batch->round,
                           rueda_batch_request(batch, batch->after)))
        batch->after++;
    if (batch->after == batch->item)
        batch->after++;
}

/* Where a tensor of the round comes from and goes to; the result has `rows`
 * rows. */
static void fill_in(struct rueda_lane *lane, int item, size_t rows)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_ticket *ticket = rueda_batch_ticket(batch, item);
    struct rueda_tensor *tensor = &batch->round.tensors[item - batch->item];

    tensor->send = ticket != NULL ? ticket->send : NULL;
    tensor->recv = rueda_batch_own(lane, item, rows, rows * tensor->row_bytes);
}

/* The block of each member, in elements. */
static void count_blocks(struct rueda_lane *lane, struct rueda_coll *coll)
{
    struct rueda_batch *batch = &lane->batch;

    for (int i = 0; i < lane->set->size; i++)
        batch->counts[i] =
            rueda_round_block(&batch->round, i) / coll->elem_bytes;
    coll->recv_counts = batch->counts;
}

/* ---- Allgather --------------------------------------------------------- */

static rueda_batch_next ask_allgather(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const int left = batch->decision->count - batch->item;

    ask(lane, batch->item,
        batch->item + (left < RUEDA_BATCH_ASKED ? left : RUEDA_BATCH_ASKED));
    for (int i = batch->asked; i < batch->asked_after; i++)
        batch->words[i - batch->asked] = own_rows(batch, i);
    rueda_batch_words(lane, RUEDA_ALLGATHER)->count =
        (size_t)asked_count(batch);
    return RUEDA_BATCH_TASK;
}

static void choose_allgather(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_round *round = rueda_batch_round(lane, RUEDA_ALLGATHER);

    round->rows = batch->answer + (batch->item - batch->asked);
    round->stride = asked_count(batch);
    choose_round(batch, batch->asked_after);
    if (batch->asked == batch->item)
        rueda_relay_step(lane, batch->after, batch->asked_after,
                         RUEDA_TIMELINE_QUEUE);
}

rueda_batch_next rueda_batch_allgather(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_coll *coll;
    size_t begin;

    if (batch->item == batch->asked_after)
        return ask_allgather(lane);
    if (rueda_batch_must_wait(lane))
        return RUEDA_BATCH_WAIT;
    choose_allgather(lane);
    if (batch->after == batch->item + 1)
        return move_rows(lane, RUEDA_ALLGATHER);
    for (int i = batch->item; i < batch->after; i++)
        fill_in(lane, i, batch->round.tensors[i - batch->item].rows);
    coll = rueda_batch_coll(lane, RUEDA_ALLGATHER, batch->item);
    count_blocks(lane, coll);
    begin = rueda_round_begin(&batch->round, lane->set->me);
    coll->recv = rueda_batch_claim(lane);
    coll->send = batch->round.slab + begin;
    coll->count = batch->counts[lane->set->me];
    return batch->round.end > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* ---- Reduce-scatter ---------------------------------------------------- */

/* One tensor, where it is. */
static rueda_batch_next scatter_alone(struct rueda_lane *lane,
                                      struct rueda_coll *coll)
{
    struct rueda_batch *batch = &lane->batch;
    const size_t rows =
        rueda_batch_rows(rueda_batch_request(batch, batch->item));
    const int size = lane->set->size;

    for (int i = 0; i < size; i++)
        batch->counts[i] =
            rueda_layout_share(rows, size, i) * row_of(batch, batch->item);
    return rueda_batch_alone(lane, coll,
                             rueda_layout_share(rows, size, lane->set->me));
}

rueda_batch_next rueda_batch_reduce_scatter(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_round *round;
    struct rueda_coll *coll;

    if (rueda_batch_must_wait(lane))
        return RUEDA_BATCH_WAIT;
    round = rueda_batch_round(lane, RUEDA_REDUCE_SCATTER);
    choose_round(batch, batch->decision->count);
    coll = rueda_batch_coll(lane, RUEDA_REDUCE_SCATTER, batch->item);
    coll->recv_counts = batch->counts;
    if (batch->after == batch->item + 1)
        return scatter_alone(lane, coll);
    for (int i = batch->item; i < batch->after; i++)
        fill_in(lane, i, rueda_round_rows(round, i - batch->item, round->me));
    count_blocks(lane, coll);
    coll->send = rueda_batch_claim(lane);
    coll->recv = round->slab + rueda_layout_span(round->end);
    return round->end > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* ---- Alltoall --------------------------------------------------------- */

static rueda_batch_next ask_alltoall(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_ticket *ticket = rueda_batch_ticket(batch, batch->item);
    const size_t size = (size_t)lane->set->size;

    ask(lane, batch->item, batch->item + 1);
    for (size_t i = 0; i < size; i++) {
        uint64_t mine = own_rows(batch, batch->item) / size;

        if (ticket != NULL && ticket->splits != NULL)
            mine = ticket->splits[i];
        batch->words[i] = mine;
        batch->counts[i] = (size_t)mine * row_of(batch, batch->item);
    }
    rueda_batch_words(lane, RUEDA_ALLTOALL)->count = 1;
    return RUEDA_BATCH_TASK;
}

rueda_batch_next rueda_batch_alltoall(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;

    if (batch->item == batch->asked_after)
        return ask_alltoall(lane);
    batch->after++;
    return move_rows(lane, RUEDA_ALLTOALL);
}
