/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by recursive doubling (Thakur, Rabenseifner and Gropp, 2005).
 *
 * On level l rank r meets rank r ^ 2^l. Each gives the other all its numbers
 * and adds what it gets, so that after level l both have the sum of 2^(l+1)
 * ranks. With four ranks:
 *
 *                rank 0   rank 1   rank 2   rank 3
 *      before     0        1        2        3
 *      level 0    0+1      0+1      2+3      2+3      0 meets 1, 2 meets 3
 *      level 1    0+1+2+3 everywhere                  0 meets 2, 1 meets 3
 *
 * Both add the same two numbers, so all ranks get the same bits. Ranks beyond
 * the largest power of two are folded into the others (core.h). What is being
 * sent must not change, and the sum is written where it was: so numbers are
 * sent from a copy, and a longer vector goes in parts that fit there.
 *
 * Cost: log2(size) meetings, the least there can be, each of the whole vector:
 * for short vectors.
 */
#include "algo/core.h"
#include "algo/local.h"
#include "algo/registry.h"

enum doubling_stage {
    FOLD,   /* the core takes in the ranks beyond it */
    MEET,   /* level 0 and up */
    UNFOLD, /* the ranks beyond the core get the result */
    DONE,
};

struct doubling {
    enum doubling_stage stage;
    int level;
    struct rueda_range part; /* of the vector, in elements */
    size_t parts;            /* so far, this one among them */
    struct rueda_exchange exchange;
};
_Static_assert(sizeof(struct doubling) <= RUEDA_TASK_STATE_BYTES, "state");

/* Both ways at once, or only one of them. */
static void give(struct rueda_task *task, int rank)
{
    struct doubling *doubling = (struct doubling *)task->state;
    struct rueda_exchange *exchange = &doubling->exchange;
    const size_t bytes = doubling->part.count * task->coll.elem_bytes;

    exchange->to = rank;
    exchange->out = RUEDA_WINDOW_SPARE(task->place);
    exchange->out_bytes = bytes;
    rueda_local_move(task, RUEDA_WINDOW_SPARE(task->place),
                     rueda_local_at(task->coll.recv, task, doubling->part.at),
                     bytes);
}

static void get(struct rueda_task *task, int rank)
{
    struct doubling *doubling = (struct doubling *)task->state;
    struct rueda_exchange *exchange = &doubling->exchange;

    exchange->from = rank;
    exchange->in = rueda_local_at(task->coll.recv, task, doubling->part.at);
    exchange->in_bytes = doubling->part.count * task->coll.elem_bytes;
}

static void begin(struct rueda_task *task)
{
    struct doubling *doubling = (struct doubling *)task->state;
    struct rueda_exchange *exchange = &doubling->exchange;
    const int folded = rueda_algo_core_folded(task);
    const int partner = rueda_algo_core_partner(task, doubling->level);
    const bool is_last = doubling->level == rueda_algo_core_levels(task) - 1;

    rueda_exchange_begin(exchange);
    switch (doubling->stage) {
    case FOLD:
        if (folded < 0)
            break;
        if (!rueda_algo_core_has(task)) {
            give(task, folded);
            break;
        }
        get(task, folded);
        exchange->own = exchange->in;
        break;
    case MEET:
        give(task, partner);
        get(task, partner);
        exchange->own = exchange->in;
        if (is_last)
            exchange->postscale = task->coll.arith.postscale;
        break;
    case UNFOLD:
        if (folded < 0)
            break;
        if (rueda_algo_core_has(task))
            give(task, folded);
        else
            get(task, folded);
        break;
    case DONE:
        break;
    }
}

/* The next part of the vector; none is left: done. */
static void next_part(struct rueda_task *task)
{
    struct doubling *doubling = (struct doubling *)task->state;
    const struct rueda_range all = {0, task->coll.count};
    const size_t most = RUEDA_PIECE_BYTES / task->coll.elem_bytes;

    doubling->part = rueda_chunk_piece(all, most, doubling->parts++);
    doubling->level = 0;
    doubling->stage = doubling->part.count > 0 ? FOLD : DONE;
}

/* Go to what comes after the stage and level that have just ended. */
static void advance(struct rueda_task *task)
{
    struct doubling *doubling = (struct doubling *)task->state;

    switch (doubling->stage) {
    case FOLD:
        doubling->stage = rueda_algo_core_has(task) ? MEET : UNFOLD;
        break;
    case MEET:
        if (doubling->level == rueda_algo_core_levels(task) - 1)
            doubling->stage = UNFOLD;
        else
            doubling->level++;
        break;
    case UNFOLD:
        next_part(task);
        break;
    case DONE:
        break;
    }
}

static rueda_status doubling_progress(struct rueda_task *task)
{
    struct doubling *doubling = (struct doubling *)task->state;

    while (doubling->stage != DONE) {
        const rueda_status status =
            rueda_exchange_progress(&doubling->exchange, task);

        if (status != RUEDA_OK)
            return status;
        advance(task);
        begin(task);
    }
    return RUEDA_OK;
}

static rueda_status doubling_post(struct rueda_task *task)
{
    struct doubling *doubling = (struct doubling *)task->state;

    doubling->stage = DONE;
    if (task->place->mesh->size == 1) {
        rueda_local_alone(task);
        return RUEDA_OK;
    }
    rueda_local_take(task, task->coll.count);
    doubling->parts = 0;
    next_part(task);
    begin(task);
    return doubling_progress(task);
}

const struct rueda_algo rueda_algo_doubling = {
    .name = "doubling",
    .about = "whole vectors exchanged at doubling distances; fewest steps",
    .kinds = 1u << RUEDA_ALLREDUCE,
    .memory = RUEDA_MEMKIND_ANY,
    .post = doubling_post,
    .progress = doubling_progress,
};
