/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce by vector halving and distance doubling (Rabenseifner, 2004;
 * Thakur, Rabenseifner and Gropp, 2005).
 *
 * On level l rank r meets rank r ^ 2^l. Each keeps half of what it is
 * responsible for, sends its numbers of the other half, and adds what it gets
 * for its own. With four ranks and a vector of eight numbers, what they are
 * responsible for is
 *
 *                rank 0   rank 1   rank 2   rank 3
 *      before     0-7      0-7      0-7      0-7
 *      level 0    0-3      4-7      0-3      4-7      0 meets 1, 2 meets 3
 *      level 1    0-1      4-5      2-3      6-7      0 meets 2, 1 meets 3
 *
 * Then the same meetings in the opposite order, in which each gives the other
 * the finished numbers it has.
 *
 * Ranks beyond the largest power of two are folded into the others (core.h).
 *
 * Cost: 2 log2(size) meetings, 2(size-1)/size of the vector sent by every rank
 * if size is a power of two; else two transfers of the whole vector more.
 */
#include "algo/core.h"
#include "algo/local.h"
#include "algo/registry.h"

enum halving_stage {
    FOLD,   /* the core takes in the ranks beyond it */
    HALVE,  /* level 0 and up */
    DOUBLE, /* the last level and down */
    UNFOLD, /* the ranks beyond the core get the result */
    DONE,
};

struct halving {
    enum halving_stage stage;
    int level;
    const char *own; /* my numbers so far: send, until some are in recv */
    struct rueda_exchange exchange;
};
_Static_assert(sizeof(struct halving) <= RUEDA_TASK_STATE_BYTES, "state");

static void begin_fold(struct rueda_task *task)
{
    struct halving *halving = (struct halving *)task->state;
    struct rueda_exchange *exchange = &halving->exchange;
    const size_t bytes = task->coll.count * task->coll.elem_bytes;
    const int folded = rueda_algo_core_folded(task);

    if (folded < 0)
        return;
    if (rueda_algo_core_has(task)) {
        exchange->from = folded;
        exchange->in = task->coll.recv;
        exchange->in_bytes = bytes;
        exchange->own = halving->own;
        halving->own = task->coll.recv;
    } else {
        exchange->to = folded;
        exchange->out = halving->own;
        exchange->out_bytes = bytes;
    }
}

static void begin_halving(struct rueda_task *task)
{
    struct halving *halving = (struct halving *)task->state;
    struct rueda_exchange *exchange = &halving->exchange;
    const struct rueda_range kept = rueda_algo_core_mine(task, halving->level);
    const struct rueda_range given =
        rueda_algo_core_theirs(task, halving->level);

    exchange->to = rueda_algo_core_partner(task, halving->level);
    exchange->out = rueda_local_const_at(halving->own, task, given.at);
    exchange->out_bytes = given.count * task->coll.elem_bytes;
    exchange->from = exchange->to;
    exchange->in = rueda_local_at(task->coll.recv, task, kept.at);
    exchange->in_bytes = kept.count * task->coll.elem_bytes;
    exchange->own = rueda_local_const_at(halving->own, task, kept.at);
    if (halving->level == rueda_algo_core_levels(task) - 1)
        exchange->postscale = task->coll.arith.postscale;
    halving->own = task->coll.recv;
}

static void begin(struct rueda_task *task)
{
    struct halving *halving = (struct halving *)task->state;

    rueda_exchange_begin(&halving->exchange);
    switch (halving->stage) {
    case FOLD:
        begin_fold(task);
        break;
    case HALVE:
        begin_halving(task);
        break;
    case DOUBLE:
        rueda_algo_core_double(&halving->exchange, task, halving->level);
        break;
    case UNFOLD:
        rueda_algo_core_unfold(&halving->exchange, task);
        break;
    case DONE:
        break;
    }
}

/* Go to what comes after the stage and level that have just ended. */
static void advance(struct rueda_task *task)
{
    struct halving *halving = (struct halving *)task->state;

    switch (halving->stage) {
    case FOLD:
        halving->stage = rueda_algo_core_has(task) ? HALVE : UNFOLD;
        break;
    case HALVE:
        if (halving->level == rueda_algo_core_levels(task) - 1)
            halving->stage = DOUBLE;
        else
            halving->level++;
        break;
    case DOUBLE:
        if (halving->level == 0)
            halving->stage = UNFOLD;
        else
            halving->level--;
        break;
    case UNFOLD:
    case DONE:
        halving->stage = DONE;
        break;
    }
}

static rueda_status halving_progress(struct rueda_task *task)
{
    struct halving *halving = (struct halving *)task->state;

    while (halving->stage != DONE) {
        const rueda_status status =
            rueda_exchange_progress(&halving->exchange, task);

        if (status != RUEDA_OK)
            return status;
        advance(task);
        begin(task);
    }
    return RUEDA_OK;
}

static rueda_status halving_post(struct rueda_task *task)
{
    struct halving *halving = (struct halving *)task->state;

    if (task->place->mesh->size == 1) {
        rueda_local_alone(task);
        halving->stage = DONE;
        return RUEDA_OK;
    }
    halving->stage = FOLD;
    halving->level = 0;
    halving->own = task->coll.send;
    if (task->coll.arith.prescale != 1.0) {
        rueda_local_take(task, task->coll.count);
        halving->own = task->coll.recv;
    }
    begin(task);
    return halving_progress(task);
}

const struct rueda_algo rueda_algo_halving_doubling = {
    .name = "halving_doubling",
    .about = "halves exchanged at doubling distances; few steps, least traffic",
    .kinds = 1u << RUEDA_ALLREDUCE,
    .memory = RUEDA_MEMKIND_ANY,
    .post = halving_post,
    .progress = halving_progress,
};
