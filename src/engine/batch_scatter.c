/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduce-scatter: equal shares of the rows of each tensor, one more for the
 * lowest members. Several tensors run together in the fusion slab, by members:
 *
 *      send   | a, b, c for member 0 | a, b, c for member 1 | ...
 *      recv   | a, b, c for me       behind it
 */
#include "engine/batch.h"
#include "engine/lane.h"
#include "engine/lanes.h"
#include "fuse/layout.h"

/* A tensor, and what of it goes to a member: from `at` on, in rows. */
struct share {
    size_t row_bytes;
    size_t at;
    size_t rows;
};

static struct share share_of(const struct rueda_lane *lane, int item,
                             int member)
{
    const struct rueda_request *request =
        rueda_batch_request(&lane->batch, item);
    const size_t rows = request->dims > 0 ? request->shape[0] : 1;
    const size_t size = (size_t)lane->set->size;
    const size_t index = (size_t)member;
    const size_t larger = rows % size;

    return (struct share){
        .row_bytes =
            rueda_request_row(request) * rueda_dtype_size(request->dtype),
        .at = rows / size * index + (index < larger ? index : larger),
        .rows = rows / size + (index < larger ? 1 : 0),
    };
}

static size_t share_bytes(const struct rueda_lane *lane, int item, int member)
{
    const struct share share = share_of(lane, item, member);

    return share.rows * share.row_bytes;
}

static size_t tensor_bytes(const struct rueda_lane *lane, int item)
{
    const struct rueda_request *request =
        rueda_batch_request(&lane->batch, item);

    return rueda_request_count(request) * rueda_dtype_size(request->dtype);
}

/* As many as fit the slab together with the largest share of the result, or
 * one. What a round holds depends on what all members know. */
static void choose_round(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    size_t room = RUEDA_LAYOUT_ALIGN;

    batch->after = batch->item;
    while (batch->after < batch->decision->count && lane->fusion != NULL) {
        room += tensor_bytes(lane, batch->after) +
                share_bytes(lane, batch->after, 0);
        if (room > lane->fusion_bytes)
            break;
        batch->after++;
    }
    if (batch->after == batch->item)
        batch->after++;
}

/* What each member gets, in elements; the sum of it. */
static size_t count_shares(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const size_t elem_bytes =
        rueda_dtype_size(rueda_batch_request(batch, batch->item)->dtype);
    size_t total = 0;

    for (int member = 0; member < lane->set->size; member++) {
        batch->counts[member] = 0;
        for (int i = batch->item; i < batch->after; i++)
            batch->counts[member] += share_bytes(lane, i, member) / elem_bytes;
        total += batch->counts[member];
    }
    return total;
}

static void note_start(struct rueda_lane *lane)
{
    rueda_relay_step(lane, lane->batch.item, lane->batch.after,
                     RUEDA_TIMELINE_RUEDA_REDUCESCATTER);
}

/* ---- One tensor, where it is ------------------------------------------- */

static rueda_batch_next start_single(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const struct share mine = share_of(lane, batch->item, lane->set->me);
    rueda_batch_next next;
    struct rueda_coll *coll;
    const void *send;
    void *recv;

    next = rueda_batch_input(lane, batch->item, tensor_bytes(lane, batch->item),
                             &send);
    if (next == RUEDA_BATCH_TASK)
        next = rueda_batch_result(lane, batch->item, mine.rows,
                                  mine.rows * mine.row_bytes, &recv);
    if (next != RUEDA_BATCH_TASK)
        return next;
    note_start(lane);
    coll = rueda_batch_coll(lane, RUEDA_REDUCE_SCATTER, batch->item);
    coll->send = send;
    coll->recv = recv;
    coll->recv_counts = batch->counts;
    return count_shares(lane) > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* ---- Several, in the slab ---------------------------------------------- */

static void pack(struct rueda_lane *lane)
{
    const struct rueda_batch *batch = &lane->batch;
    struct rueda_pack pack = rueda_batch_pack(lane, batch->slab, false);

    for (int member = 0; member < lane->set->size; member++)
        for (int i = batch->item; i < batch->after; i++) {
            const struct rueda_named *named = rueda_batch_named(batch, i);
            const struct share share = share_of(lane, i, member);
            const char *send = named != NULL ? named->send : NULL;

            if (send != NULL)
                send += share.at * share.row_bytes;
            rueda_pack_in(&pack, send, share.rows * share.row_bytes);
        }
    rueda_pack_flush(&pack);
}

static rueda_batch_next start_packed(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const size_t total = count_shares(lane);
    struct rueda_coll *coll;
    size_t bytes;

    for (int i = batch->item; i < batch->after; i++)
        rueda_batch_own(lane, i, share_of(lane, i, lane->set->me).rows,
                        share_bytes(lane, i, lane->set->me));
    rueda_relay_step(lane, batch->item, batch->after,
                     RUEDA_TIMELINE_MEMCPY_IN_FUSION_BUFFER);
    coll = rueda_batch_coll(lane, RUEDA_REDUCE_SCATTER, batch->item);
    bytes = rueda_layout_span(total * coll->elem_bytes);
    batch->slab = rueda_batch_room(lane, bytes + batch->counts[lane->set->me] *
                                                     coll->elem_bytes);
    coll->send = batch->slab;
    coll->recv = batch->slab + bytes;
    coll->recv_counts = batch->counts;
    pack(lane);
    note_start(lane);
    batch->is_packed = true;
    return total > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

static void unpack(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_pack pack =
        rueda_batch_pack(lane, lane->track.task.coll.recv, true);

    if (!batch->is_packed)
        return;
    batch->is_packed = false;
    rueda_relay_step(lane, batch->item, batch->after,
                     RUEDA_TIMELINE_MEMCPY_OUT_FUSION_BUFFER);
    for (int i = batch->item; i < batch->after; i++) {
        const struct rueda_named *named = rueda_batch_named(batch, i);

        rueda_pack_out(&pack, named != NULL ? named->data : NULL,
                       share_bytes(lane, i, lane->set->me));
    }
    rueda_pack_flush(&pack);
}

rueda_batch_next rueda_batch_reduce_scatter(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    rueda_batch_next next = RUEDA_BATCH_END;

    while (next == RUEDA_BATCH_END) {
        unpack(lane);
        batch->item = batch->after;
        if (batch->item == batch->decision->count)
            return RUEDA_BATCH_END;
        if (rueda_batch_must_wait(lane))
            return RUEDA_BATCH_WAIT;
        choose_round(lane);
        next = batch->after > batch->item + 1 ? start_packed(lane)
                                              : start_single(lane);
    }
    return next;
}
