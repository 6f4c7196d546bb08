/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds whose rows differ between members: first everybody tells how many it
 * brings, of several tensors at once where they run together, and then the rows
 * travel.
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
    const struct rueda_request *request = rueda_batch_request(batch, item);

    if (rueda_batch_named(batch, item) == NULL)
        return 0;
    return request->dims > 0 ? request->shape[0] : 1;
}

/* The rows of all members; false if that is more than fits any memory. */
static bool add_rows(const struct rueda_lane *lane, int item, size_t *out_total)
{
    const size_t row_bytes = row_bytes_of(&lane->batch, item);
    const size_t most = SIZE_MAX / 16 / (row_bytes > 0 ? row_bytes : 1);
    size_t total = 0;

    for (int i = 0; i < lane->set->size; i++) {
        uint64_t rows = told(&lane->batch, item, i);

        if (rows > most || total + rows > most)
            return false;
        total += rows;
    }
    *out_total = total;
    return true;
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
static void tell_rows(struct rueda_lane *lane, struct rueda_named *named)
{
    const size_t size = (size_t)lane->set->size;

    named->op.has_own = true;
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

/* The rows of the item at work, straight to their owners. Of an all-to-all
 * nobody knows whether others have anything to pass on, so there is a task in
 * any case. */
static rueda_batch_next move_rows(struct rueda_lane *lane, rueda_kind kind)
{
    struct rueda_batch *batch = &lane->batch;
    const int item = batch->item;
    const size_t row = row_of(batch, item);
    size_t *recv_counts = batch->counts + lane->set->size;
    struct rueda_named *named = rueda_batch_named(batch, item);
    struct rueda_coll *coll;
    rueda_batch_next next;
    size_t total;
    void *recv;

    if (!add_rows(lane, item, &total))
        return rueda_batch_fail(lane, RUEDA_ERR_LIMIT,
                                "members bring more rows than fit any memory");
    if (kind == RUEDA_ALLTOALL && named != NULL)
        tell_rows(lane, named);
    next = rueda_batch_result(lane, item, total,
                              total * row_bytes_of(batch, item), &recv);
    if (next != RUEDA_BATCH_TASK)
        return next;
    for (int i = 0; i < lane->set->size; i++)
        recv_counts[i] = (size_t)told(batch, item, i) * row;
    rueda_relay_step(lane, item, item + 1,
                     rueda_timeline_collective((int)kind, RUEDA_SUM));
    coll = rueda_batch_coll(lane, kind, item);
    coll->send = named != NULL ? named->send : NULL;
    coll->recv = recv;
    coll->recv_counts = recv_counts;
    if (kind == RUEDA_ALLTOALL)
        coll->send_counts = batch->counts;
    else
        coll->count = own_rows(batch, item) * row;
    return kind == RUEDA_ALLTOALL || total * row > 0 ? RUEDA_BATCH_TASK
                                                     : RUEDA_BATCH_END;
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

/* As many as fit the slab with the rows of all members, or one. All members
 * know the same. */
static void choose_round(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    size_t room = lane->fusion != NULL ? lane->fusion_bytes : 0;
    size_t total;

    batch->after = batch->item;
    while (batch->after < batch->asked_after && lane->fusion != NULL &&
           add_rows(lane, batch->after, &total) &&
           total * row_bytes_of(batch, batch->after) <= room) {
        room -= total * row_bytes_of(batch, batch->after);
        batch->after++;
    }
    if (batch->after == batch->item)
        batch->after++;
    if (batch->asked == batch->item)
        rueda_relay_step(lane, batch->after, batch->asked_after,
                         RUEDA_TIMELINE_QUEUE);
}

/* Elements of a member in the slab: its rows of one tensor after another, as
 * those of the member before it end. */
static size_t count_of(const struct rueda_batch *batch, int member)
{
    size_t count = 0;

    for (int i = batch->item; i < batch->after; i++)
        count += (size_t)told(batch, i, member) * row_of(batch, i);
    return count;
}

/* What this member gives, where it belongs. */
static void pack(struct rueda_lane *lane, char *at)
{
    const struct rueda_batch *batch = &lane->batch;
    struct rueda_pack pack = rueda_batch_pack(lane, at, false);

    for (int i = batch->item; i < batch->after; i++) {
        const struct rueda_named *named = rueda_batch_named(batch, i);

        if (named != NULL)
            rueda_pack_in(&pack, named->send,
                          own_rows(batch, i) * row_bytes_of(batch, i));
    }
    rueda_pack_flush(&pack);
}

static rueda_batch_next start_packed(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_coll *coll;
    size_t before = 0;
    size_t total = 0;

    for (int i = batch->item; i < batch->after; i++) {
        size_t rows = 0;

        add_rows(lane, i, &rows);
        rueda_batch_own(lane, i, rows, rows * row_bytes_of(batch, i));
    }
    for (int i = 0; i < lane->set->size; i++) {
        batch->counts[i] = count_of(batch, i);
        before += i < lane->set->me ? batch->counts[i] : 0;
        total += batch->counts[i];
    }
    rueda_relay_step(lane, batch->item, batch->after,
                     RUEDA_TIMELINE_MEMCPY_IN_FUSION_BUFFER);
    coll = rueda_batch_coll(lane, RUEDA_ALLGATHER, batch->item);
    batch->slab = rueda_batch_room(lane, total * coll->elem_bytes);
    coll->send = batch->slab + before * coll->elem_bytes;
    coll->recv = batch->slab;
    coll->count = batch->counts[lane->set->me];
    coll->recv_counts = batch->counts;
    pack(lane, batch->slab + before * coll->elem_bytes);
    batch->is_packed = true;
    rueda_relay_step(lane, batch->item, batch->after,
                     RUEDA_TIMELINE_RUEDA_ALLGATHER);
    return total > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* Each member's rows of each tensor to where the rows before them end. */
static void unpack(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    size_t done[RUEDA_BATCH_ASKED] = {0};
    struct rueda_pack pack = rueda_batch_pack(lane, batch->slab, true);

    if (!batch->is_packed)
        return;
    batch->is_packed = false;
    rueda_relay_step(lane, batch->item, batch->after,
                     RUEDA_TIMELINE_MEMCPY_OUT_FUSION_BUFFER);
    for (int member = 0; member < lane->set->size; member++)
        for (int i = batch->item; i < batch->after; i++) {
            const struct rueda_named *named = rueda_batch_named(batch, i);
            const size_t bytes =
                (size_t)told(batch, i, member) * row_bytes_of(batch, i);
            char *data = named != NULL ? named->data : NULL;

            if (data != NULL)
                data += done[i - batch->item];
            rueda_pack_out(&pack, data, bytes);
            done[i - batch->item] += bytes;
        }
    rueda_pack_flush(&pack);
}

rueda_batch_next rueda_batch_allgather(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    rueda_batch_next next = RUEDA_BATCH_END;

    while (next == RUEDA_BATCH_END) {
        unpack(lane);
        batch->item = batch->after;
        if (batch->item == batch->decision->count)
            return RUEDA_BATCH_END;
        if (batch->item == batch->asked_after)
            return ask_allgather(lane);
        if (rueda_batch_must_wait(lane))
            return RUEDA_BATCH_WAIT;
        choose_round(lane);
        next = batch->after > batch->item + 1
                   ? start_packed(lane)
                   : move_rows(lane, RUEDA_ALLGATHER);
    }
    return next;
}

/* ---- Alltoall --------------------------------------------------------- */

static rueda_batch_next ask_alltoall(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct rueda_named *named = rueda_batch_named(batch, batch->item);
    const size_t size = (size_t)lane->set->size;

    ask(lane, batch->item, batch->item + 1);
    for (size_t i = 0; i < size; i++) {
        uint64_t mine = own_rows(batch, batch->item) / size;

        if (named != NULL && named->splits != NULL)
            mine = named->splits[i];
        batch->words[i] = mine;
        batch->counts[i] = (size_t)mine * row_of(batch, batch->item);
    }
    rueda_batch_words(lane, RUEDA_ALLTOALL)->count = 1;
    return RUEDA_BATCH_TASK;
}

rueda_batch_next rueda_batch_alltoall(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;

    if (batch->item < batch->after) { /* its rows have travelled */
        batch->item = batch->after;
    } else if (batch->item < batch->asked_after) {
        batch->after++;
        return move_rows(lane, RUEDA_ALLTOALL);
    }
    if (batch->item == batch->decision->count)
        return RUEDA_BATCH_END;
    return ask_alltoall(lane);
}
