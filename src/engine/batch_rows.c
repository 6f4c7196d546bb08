/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds whose rows differ between members: first everybody tells how many it
 * brings, and then the rows travel.
 */
#include "engine/batch.h"
#include "engine/lane.h"

#include <stdlib.h>

/* What is at work. */
struct rows {
    const struct rueda_request *request;
    struct rueda_named *named; /* or NULL */
    size_t row;                /* elements of one */
    size_t row_bytes;
    size_t *send;
    size_t *recv;
};

static struct rows rows_of(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_request *request =
        rueda_batch_request(batch, batch->item);
    const size_t row = rueda_request_row(request);

    return (struct rows){
        .request = request,
        .named = rueda_batch_named(batch, batch->item),
        .row = row,
        .row_bytes = row * rueda_dtype_size(request->dtype),
        .send = batch->counts,
        .recv = batch->counts + lane->set->size,
    };
}

static size_t own_rows(const struct rows *rows)
{
    if (rows->named == NULL)
        return 0;
    return rows->request->dims > 0 ? rows->request->shape[0] : 1;
}

/* What members have told as counts of elements. Their sum in rows; false if
 * that is more than fits any memory. */
static bool take_counts(struct rueda_lane *lane, const struct rows *rows,
                        size_t *out_total)
{
    const size_t most =
        SIZE_MAX / 16 / (rows->row_bytes > 0 ? rows->row_bytes : 1);
    size_t total = 0;

    for (int i = 0; i < lane->set->size; i++) {
        uint64_t told = lane->batch.answer[i];

        if (told > most || total + told > most)
            return false;
        total += told;
        rows->recv[i] = (size_t)told * rows->row;
    }
    *out_total = total;
    return true;
}

static rueda_batch_next too_much(struct rueda_lane *lane)
{
    return rueda_batch_fail(lane, RUEDA_ERR_LIMIT,
                            "members bring more rows than fit any memory");
}

/* Two tasks an item: what the first one brought, and the second. */
static rueda_batch_next
in_two_steps(struct rueda_lane *lane,
             rueda_batch_next (*ask)(struct rueda_lane *),
             rueda_batch_next (*move)(struct rueda_lane *))
{
    struct rueda_batch *batch = &lane->batch;
    rueda_batch_next next = RUEDA_BATCH_END;

    while (next == RUEDA_BATCH_END) {
        if (batch->stage == 0) {
            batch->item = batch->after;
            if (batch->item == batch->decision->count)
                return RUEDA_BATCH_END;
            batch->after++;
        }
        next = batch->stage == 0 ? ask(lane) : move(lane);
        batch->stage = 1 - batch->stage;
    }
    return next;
}

/* ---- Allgather -------------------------------------------------------- */

static rueda_batch_next ask_allgather(struct rueda_lane *lane)
{
    const struct rows rows = rows_of(lane);
    struct rueda_coll *coll = rueda_batch_words(lane, RUEDA_ALLGATHER);

    lane->batch.words[0] = own_rows(&rows);
    coll->count = 1;
    return RUEDA_BATCH_TASK;
}

static rueda_batch_next move_allgather(struct rueda_lane *lane)
{
    const struct rows rows = rows_of(lane);
    struct rueda_coll *coll;
    rueda_batch_next next;
    size_t total;
    void *recv;

    if (!take_counts(lane, &rows, &total))
        return too_much(lane);
    next = rueda_batch_result(lane, lane->batch.item, total,
                              total * rows.row_bytes, &recv);
    if (next != RUEDA_BATCH_TASK)
        return next;
    coll = rueda_batch_coll(lane, RUEDA_ALLGATHER, lane->batch.item);
    coll->send = rows.named != NULL ? rows.named->send : NULL;
    coll->recv = recv;
    coll->count = own_rows(&rows) * rows.row;
    coll->recv_counts = rows.recv;
    return total * rows.row > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

rueda_batch_next rueda_batch_allgather(struct rueda_lane *lane)
{
    return in_two_steps(lane, ask_allgather, move_allgather);
}

/* ---- Alltoall --------------------------------------------------------- */

static rueda_batch_next ask_alltoall(struct rueda_lane *lane)
{
    const struct rows rows = rows_of(lane);
    const size_t size = (size_t)lane->set->size;
    struct rueda_coll *coll = rueda_batch_words(lane, RUEDA_ALLTOALL);

    for (size_t i = 0; i < size; i++) {
        uint64_t mine = own_rows(&rows) / size;

        if (rows.named != NULL && rows.named->splits != NULL)
            mine = rows.named->splits[i];
        lane->batch.words[i] = mine;
        rows.send[i] = (size_t)mine * rows.row;
    }
    coll->count = 1;
    return RUEDA_BATCH_TASK;
}

/* The result tells from whom it came. */
static void tell_rows(struct rueda_lane *lane, struct rueda_named *named)
{
    const size_t size = (size_t)lane->set->size;

    if (named->rows_from == NULL)
        named->rows_from = calloc(size, sizeof(size_t));
    if (named->rows_from == NULL) {
        rueda_batch_refuse(named, RUEDA_ERR_NOMEM,
                           "no memory for the rows of each member");
        return;
    }
    for (size_t i = 0; i < size; i++)
        named->rows_from[i] = (size_t)lane->batch.answer[i];
}

/* Nobody knows whether others have anything to pass on, so there is a second
 * task in any case. */
static rueda_batch_next move_alltoall(struct rueda_lane *lane)
{
    const struct rows rows = rows_of(lane);
    struct rueda_coll *coll;
    rueda_batch_next next;
    size_t total;
    void *recv;

    if (!take_counts(lane, &rows, &total))
        return too_much(lane);
    if (rows.named != NULL)
        tell_rows(lane, rows.named);
    next = rueda_batch_result(lane, lane->batch.item, total,
                              total * rows.row_bytes, &recv);
    if (next != RUEDA_BATCH_TASK)
        return next;
    coll = rueda_batch_coll(lane, RUEDA_ALLTOALL, lane->batch.item);
    coll->send = rows.named != NULL ? rows.named->send : NULL;
    coll->recv = recv;
    coll->send_counts = rows.send;
    coll->recv_counts = rows.recv;
    return RUEDA_BATCH_TASK;
}

rueda_batch_next rueda_batch_alltoall(struct rueda_lane *lane)
{
    return in_two_steps(lane, ask_alltoall, move_alltoall);
}
