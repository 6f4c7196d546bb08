/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce with Adasum (Maleki et al., 2020), by vector halving and distance
 * doubling.
 *
 * Adasum of two vectors is
 *
 *      a (+) b = (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b
 *
 * which is their sum if they are orthogonal and their average if they are
 * equal; where a norm is zero, that vector's factor is 1. It is not
 * associative, so the order is part of the result: with n ranks, of which the
 * first m = 2^k are the core (core.h),
 *
 *      t(r, 0)     = v(r) (+) v(r + m), or v(r) if there is no rank r + m
 *      t(r, l + 1) = t(r, l) (+) t(r + 2^l, l)    for r a multiple of 2^(l+1)
 *
 * and t(0, k) is the result: neighbours first.
 *
 * On level l the ranks of a block of 2^(l+1) hold two vectors in parts. Each
 * meets the rank at distance 2^l, keeps half of its part and gives the other
 * half away, so that it has both vectors' numbers for the half it keeps. The
 * products a.b, a.a and b.b of these parts are added over the block, by l+1
 * exchanges of three numbers, and every rank of it finds the same factors.
 * Afterwards the parts are shared as in halving_doubling.c.
 *
 * Vectors are kept in their dtype between levels; products are in fp64. The
 * partner's half has to be there as a whole before the factors are known, so
 * the task allocates memory for it, once; half the vector, or all of it where
 * a rank beyond the core is taken in.
 *
 * Cost: as halving_doubling.c, and log2(size)(log2(size)+1)/2 short exchanges.
 */
#include <stdlib.h>

#include "algo/core.h"
#include "algo/local.h"
#include "algo/registry.h"

enum adasum_stage {
    FOLD,   /* the core takes in the ranks beyond it */
    HALVE,  /* level 0 and up: get the partner's numbers of my half */
    SUM,    /* the products, over the block of the level */
    DOUBLE, /* the last level and down */
    UNFOLD, /* the ranks beyond the core get the result */
    DONE,
};

struct adasum {
    enum adasum_stage stage;
    int level;
    int distance; /* log2 of it, in SUM: 0 up to level */
    char *theirs; /* what came from the partner; owned */
    double dots[3];
    double other_dots[3];
    struct rueda_exchange exchange;
};
_Static_assert(sizeof(struct adasum) <= RUEDA_TASK_STATE_BYTES, "state");

/* ---- Arithmetic ------------------------------------------------------ */

/* recv[range] (+)= theirs, in the order of ranks, by the whole products. */
static void combine(struct rueda_task *task, struct rueda_range range,
                    bool is_mine_first)
{
    struct adasum *adasum = (struct adasum *)task->state;
    const double *dots = adasum->dots;
    char *mine = rueda_local_at(task->coll.recv, task, range.at);
    const double by[2] = {
        dots[1] == 0.0 ? 1.0 : 1.0 - dots[0] / (2.0 * dots[1]),
        dots[2] == 0.0 ? 1.0 : 1.0 - dots[0] / (2.0 * dots[2]),
    };
    const void *const src[2] = {
        is_mine_first ? mine : adasum->theirs,
        is_mine_first ? adasum->theirs : mine,
    };

    if (range.count > 0)
        rueda_device_combine(task->place->device, &task->work,
                             task->coll.arith.dtype, mine, src, by,
                             range.count);
}

static void multiply(struct rueda_task *task, struct rueda_range range,
                     bool is_mine_first)
{
    struct adasum *adasum = (struct adasum *)task->state;
    const char *mine = rueda_local_at(task->coll.recv, task, range.at);

    adasum->dots[0] = adasum->dots[1] = adasum->dots[2] = 0.0;
    if (range.count > 0)
        rueda_device_dots(
            task->place->device, &task->work, task->coll.arith.dtype,
            is_mine_first ? mine : adasum->theirs,
            is_mine_first ? adasum->theirs : mine, range.count, adasum->dots);
}

static bool is_lower(const struct rueda_task *task, int level)
{
    return (task->place->mesh->rank >> level & 1) == 0;
}

/* ---- Stages ---------------------------------------------------------- */

static void begin_fold(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    struct rueda_exchange *exchange = &adasum->exchange;
    const size_t bytes = task->coll.count * task->coll.elem_bytes;
    const int folded = rueda_algo_core_folded(task);

    if (folded < 0)
        return;
    if (rueda_algo_core_has(task)) {
        exchange->from = folded;
        exchange->in = adasum->theirs;
        exchange->in_bytes = bytes;
    } else {
        exchange->to = folded;
        exchange->out = task->coll.recv;
        exchange->out_bytes = bytes;
    }
}

static void begin_halving(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    struct rueda_exchange *exchange = &adasum->exchange;
    const struct rueda_range kept = rueda_algo_core_mine(task, adasum->level);
    const struct rueda_range given =
        rueda_algo_core_theirs(task, adasum->level);

    exchange->to = rueda_algo_core_partner(task, adasum->level);
    exchange->out = rueda_local_at(task->coll.recv, task, given.at);
    exchange->out_bytes = given.count * task->coll.elem_bytes;
    exchange->from = exchange->to;
    exchange->in = adasum->theirs;
    exchange->in_bytes = kept.count * task->coll.elem_bytes;
}

static void begin_sum(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    struct rueda_exchange *exchange = &adasum->exchange;

    exchange->to = rueda_algo_core_partner(task, adasum->distance);
    exchange->out = (const char *)adasum->dots;
    exchange->out_bytes = sizeof(adasum->dots);
    exchange->from = exchange->to;
    exchange->in = (char *)adasum->other_dots;
    exchange->in_bytes = sizeof(adasum->other_dots);
}

static void begin(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;

    rueda_exchange_begin(&adasum->exchange);
    switch (adasum->stage) {
    case FOLD:
        begin_fold(task);
        break;
    case HALVE:
        begin_halving(task);
        break;
    case SUM:
        begin_sum(task);
        break;
    case DOUBLE:
        rueda_algo_core_double(&adasum->exchange, task, adasum->level);
        break;
    case UNFOLD:
        rueda_algo_core_unfold(&adasum->exchange, task);
        break;
    case DONE:
        break;
    }
}

static void end_fold(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    const struct rueda_range all = {0, task->coll.count};

    if (!rueda_algo_core_has(task)) {
        adasum->stage = UNFOLD;
        return;
    }
    if (rueda_algo_core_folded(task) >= 0) {
        multiply(task, all, true);
        combine(task, all, true);
    }
    adasum->stage = HALVE;
}

/* Adds up the same way on both sides: x + y is y + x. */
static void end_sum(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    const struct rueda_range mine = rueda_algo_core_mine(task, adasum->level);

    for (int i = 0; i < 3; i++)
        adasum->dots[i] += adasum->other_dots[i];
    if (adasum->distance < adasum->level) {
        adasum->distance++;
        return;
    }
    combine(task, mine, is_lower(task, adasum->level));
    if (adasum->level < rueda_algo_core_levels(task) - 1) {
        adasum->stage = HALVE;
        adasum->level++;
    } else {
        rueda_local_postscale(task, mine.at, mine.count);
        adasum->stage = DOUBLE;
    }
}

/* Work with what has come, and go to what comes next. */
static void advance(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;

    switch (adasum->stage) {
    case FOLD:
        end_fold(task);
        break;
    case HALVE:
        multiply(task, rueda_algo_core_mine(task, adasum->level),
                 is_lower(task, adasum->level));
        adasum->stage = SUM;
        adasum->distance = 0;
        break;
    case SUM:
        end_sum(task);
        break;
    case DOUBLE:
        if (adasum->level == 0)
            adasum->stage = UNFOLD;
        else
            adasum->level--;
        break;
    case UNFOLD:
    case DONE:
        adasum->stage = DONE;
        break;
    }
}

/* ---- The task -------------------------------------------------------- */

static rueda_status adasum_progress(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;

    while (adasum->stage != DONE) {
        const rueda_status status =
            rueda_exchange_progress(&adasum->exchange, task);

        if (status != RUEDA_OK)
            return status;
        advance(task);
        begin(task);
    }
    return RUEDA_OK;
}

/* Elements that `theirs` has to hold. */
static size_t theirs_count(const struct rueda_task *task)
{
    if (!rueda_algo_core_has(task))
        return 0;
    if (rueda_algo_core_folded(task) >= 0)
        return task->coll.count;
    return rueda_algo_core_mine(task, 0).count;
}

static rueda_status adasum_post(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    const struct rueda_device *device = task->place->device;
    size_t count;

    adasum->theirs = NULL;
    adasum->stage = DONE;
    if (task->coll.count == 0)
        return RUEDA_OK;
    if (task->place->mesh->size == 1) {
        rueda_local_alone(task);
        return RUEDA_OK;
    }
    count = theirs_count(task);
    if (count > 0) {
        adasum->theirs =
            device->ops->alloc(device, count * task->coll.elem_bytes);
        if (adasum->theirs == NULL)
            return RUEDA_ERR_NOMEM;
    }
    rueda_local_take(task, task->coll.count);
    adasum->stage = FOLD;
    adasum->level = 0;
    begin(task);
    return adasum_progress(task);
}

static void adasum_finish(struct rueda_task *task)
{
    struct adasum *adasum = (struct adasum *)task->state;
    const struct rueda_device *device = task->place->device;

    device->ops->free(device, adasum->theirs);
}

const struct rueda_algo rueda_algo_adasum = {
    .name = "adasum",
    .about = "Adasum by halves exchanged at doubling distances",
    .kinds = 1u << RUEDA_ALLREDUCE,
    .memory = RUEDA_MEMKIND_ANY,
    .does_adasum = true,
    .post = adasum_post,
    .progress = adasum_progress,
    .finish = adasum_finish,
};
