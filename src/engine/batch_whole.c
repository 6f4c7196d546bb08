/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce and broadcast: tensors of sizes that all members know, which lie in
 * the slab whole.
 */
#include "engine/batch.h"
#include "engine/lane.h"
#include "engine/lanes.h"

/* How many items ahead of the one at work. */
#define AHEAD 8

/* Prefetch items that are needed next; most of them have left the cache since
 * they were submitted. */
static void fetch_ahead(const struct rueda_batch *batch, int item, int count)
{
    for (; count > 0 && item < batch->decision->count; count--, item++) {
        const struct rueda_request *request = rueda_batch_request(batch, item);
        const struct rueda_ticket *ticket = rueda_batch_ticket(batch, item);

        __builtin_prefetch(request);
        __builtin_prefetch(request->shape);
        if (ticket != NULL)
            __builtin_prefetch(&ticket->send, 1);
    }
}

/* As many as fit the slab. One that does not runs by itself. */
static struct rueda_round *choose_round(struct rueda_lane *lane,
                                        rueda_kind kind)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_round *round = rueda_batch_round(lane, kind);

    fetch_ahead(batch, batch->item, AHEAD);
    for (; batch->after < batch->decision->count; batch->after++) {
        const struct rueda_request *request =
            rueda_batch_request(batch, batch->after);
        const struct rueda_ticket *ticket =
            rueda_batch_ticket(batch, batch->after);
        struct rueda_part *part = &round->parts[round->count];

        fetch_ahead(batch, batch->after + AHEAD, 1);
        if (!rueda_round_add(round, request))
            break;
        part->send = ticket != NULL ? ticket->send : NULL;
        part->recv = rueda_batch_own(lane, batch->after,
                                     rueda_batch_rows(request), part->bytes);
    }
    return round;
}

static rueda_batch_next start_packed(struct rueda_lane *lane,
                                     struct rueda_coll *coll)
{
    coll->recv = rueda_batch_claim(lane);
    coll->send = coll->recv;
    coll->count = lane->batch.round.end / coll->elem_bytes;
    return coll->count > 0 ? RUEDA_BATCH_TASK : RUEDA_BATCH_END;
}

/* Larger than the slab, or too large to be packed. */
static rueda_batch_next start_alone(struct rueda_lane *lane,
                                    struct rueda_coll *coll)
{
    const struct rueda_request *request =
        rueda_batch_request(&lane->batch, lane->batch.item);

    coll->count = rueda_request_count(request);
    return rueda_batch_alone(lane, coll, rueda_batch_rows(request));
}

/* ---- Allreduce -------------------------------------------------------- */

/* The largest of the round that I do not have, as I have joined; -1: none. */
static int find_absent(const struct rueda_batch *batch)
{
    size_t most = 0;
    int found = -1;

    for (int i = batch->item; i < batch->after; i++) {
        const size_t bytes = batch->round.parts[i - batch->item].bytes;

        if (rueda_batch_ticket(batch, i) == NULL && bytes > most) {
            most = bytes;
            found = i;
        }
    }
    return found;
}

/* What I give for those: one piece of memory for all, but nothing for zeros. */
static rueda_batch_next stand_in(struct rueda_lane *lane,
                                 const struct rueda_arith *arith)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_part *parts = batch->round.parts;
    rueda_batch_next next;
    const void *neutral;
    int absent;

    if (batch->decision->live == lane->set->size || rueda_arith_has_zero(arith))
        return RUEDA_BATCH_TASK;
    absent = find_absent(batch);
    if (absent < 0)
        return RUEDA_BATCH_TASK;
    next = rueda_batch_input(lane, absent, parts[absent - batch->item].bytes,
                             &neutral);
    for (int i = batch->item; i < batch->after; i++)
        if (rueda_batch_ticket(batch, i) == NULL)
            parts[i - batch->item].send = neutral;
    return next;
}

rueda_batch_next rueda_batch_allreduce(struct rueda_lane *lane)
{
    const struct rueda_round *round;
    struct rueda_coll *coll;

    if (rueda_batch_must_wait(lane))
        return RUEDA_BATCH_WAIT;
    round = choose_round(lane, RUEDA_ALLREDUCE);
    coll = rueda_batch_coll(lane, RUEDA_ALLREDUCE, lane->batch.item);
    if (round->count == 0)
        return start_alone(lane, coll);
    if (stand_in(lane, &coll->arith) != RUEDA_BATCH_TASK)
        return RUEDA_BATCH_FAIL;
    /* In parts, results would reach the callers' memory one by one. */
    coll->parts = lane->kept.is_on ? NULL : round->parts;
    coll->part_count = lane->kept.is_on ? 0 : round->count;
    return start_packed(lane, coll);
}

/* ---- Broadcast -------------------------------------------------------- */

/* The root's tensors are where they belong, if they are in place. */
static void leave_in_place(struct rueda_round *round)
{
    for (int i = 0; i < round->count && round->me == round->root; i++) {
        struct rueda_part *part = &round->parts[i];

        if (part->send == NULL)
            part->send = part->recv;
        if (part->send == part->recv)
            part->recv = NULL;
    }
}

rueda_batch_next rueda_batch_broadcast(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    const int root = rueda_set_index(
        lane->set, rueda_batch_request(batch, batch->item)->root);
    struct rueda_round *round;
    struct rueda_coll *coll;

    if (root < 0)
        return rueda_batch_fail(lane, RUEDA_ERR_MISMATCH,
                                "a broadcast from no member of its set");
    if (rueda_batch_must_wait(lane))
        return RUEDA_BATCH_WAIT;
    round = choose_round(lane, RUEDA_BROADCAST);
    round->root = root;
    coll = rueda_batch_coll(lane, RUEDA_BROADCAST, batch->item);
    coll->root = root;
    if (round->count == 0)
        return start_alone(lane, coll);
    leave_in_place(round);
    return start_packed(lane, coll);
}
