/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_script_op.h"

#include <stdio.h>
#include <string.h>

static int below(struct rueda_dice *dice, int n)
{
    return (int)rueda_dice_below(dice, (uint64_t)n);
}

unsigned script_bits(const struct script_set *set)
{
    unsigned bits = 0;

    for (int i = 0; i < set->size; i++)
        bits |= 1u << set->ranks[i];
    return bits;
}

static bool is_reduced(const struct script_op *op)
{
    return op->request.kind == RUEDA_ALLREDUCE ||
           op->request.kind == RUEDA_REDUCE_SCATTER;
}

bool script_may_compress(const struct script_op *op)
{
    const struct rueda_request *request = &op->request;

    return request->kind == RUEDA_ALLREDUCE &&
           (request->dtype == RUEDA_FLOAT32 ||
            request->dtype == RUEDA_FLOAT64) &&
           (request->reduction == RUEDA_SUM ||
            request->reduction == RUEDA_AVERAGE);
}

static void choose_shape(struct script *script, struct script_op *op,
                         struct rueda_dice *dice)
{
    struct rueda_request *request = &op->request;
    size_t most = script->most_bytes / rueda_dtype_size(request->dtype);

    if (below(dice, 2) == 0)
        most = 40;
    request->dims = 1 + (uint32_t)below(dice, 2);
    request->shape[0] = (uint64_t)below(dice, (int)most + 1);
    request->shape[1] = 1;
    if (request->dims == 2) {
        request->shape[1] = 1 + (uint64_t)below(dice, 9);
        request->shape[0] /= request->shape[1];
    }
    if (request->kind != RUEDA_SEND && below(dice, 12) == 0)
        request->dims = 0;
    op->is_uneven = below(dice, 3) > 0;
}

/* Only where tensors of hosts meet on the network, but asked for anywhere. */
static void choose_compression(struct script_op *op, struct rueda_dice *dice)
{
    struct rueda_request *request = &op->request;

    if (script_may_compress(op) && below(dice, 3) == 0)
        request->compression =
            below(dice, 2) == 0 ? RUEDA_COMPRESS_FP16 : RUEDA_COMPRESS_BF16;
}

static void choose_reduction(struct script_op *op, struct rueda_dice *dice)
{
    static const rueda_reduction reductions[] = {
        RUEDA_SUM, RUEDA_SUM, RUEDA_AVERAGE, RUEDA_AVERAGE,
        RUEDA_MIN, RUEDA_MAX, RUEDA_PRODUCT, RUEDA_ADASUM};
    struct rueda_request *request = &op->request;
    const bool is_float = rueda_dtype_is_float(request->dtype);

    request->reduction = reductions[below(dice, 8)];
    if (request->reduction == RUEDA_ADASUM &&
        (!is_float || op->set != 0 || request->kind != RUEDA_ALLREDUCE))
        request->reduction = RUEDA_SUM;
    if (request->reduction == RUEDA_AVERAGE && below(dice, 2) == 0)
        request->flags = RUEDA_LIVE_AVERAGE;
    /* Up to 2 to the power of the ranks. */
    if (request->reduction == RUEDA_PRODUCT &&
        rueda_dtype_size(request->dtype) == 1)
        request->dtype = RUEDA_INT64;
    if (below(dice, 4) == 0)
        request->prescale = 2;
    if (below(dice, 4) == 0 && is_float)
        request->postscale = 0.5;
    /* No power of two: the result would not be exact in any order. */
    if (request->reduction == RUEDA_PRODUCT)
        request->prescale = 1;
    choose_compression(op, dice);
}

static void choose_numbers(struct script_op *op, struct rueda_dice *dice)
{
    op->request.dtype = below(dice, 4) == 0
                            ? RUEDA_FLOAT32
                            : (rueda_dtype)below(dice, RUEDA_DTYPE_COUNT);
    if (is_reduced(op))
        choose_reduction(op, dice);
}

static void choose_root(const struct script *script, struct script_op *op,
                        struct rueda_dice *dice)
{
    const struct script_set *set = &script->sets[op->set];

    if (op->request.kind == RUEDA_BROADCAST)
        op->request.root = set->ranks[below(dice, set->size)];
}

void script_begin(struct script *script, struct script_op *op, int kind,
                  int set, struct rueda_dice *dice)
{
    memset(op, 0, sizeof(*op));
    op->request = (struct rueda_request){
        .kind = kind,
        .dtype = RUEDA_UINT8,
        .root = -1,
        .device = RUEDA_DEVICE_HOST,
        .prescale = 1,
        .postscale = 1,
    };
    op->set = set;
    op->takers = script_bits(&script->sets[set]);
    op->salt = (unsigned)below(dice, 1000);
    op->odd_rank = -1;
    op->changed = -1;
    op->after = -1;
}

void script_name(struct script_op *op, int round, int index,
                 struct rueda_dice *dice)
{
    int how = below(dice, 6);

    if (how > 1)
        snprintf(op->name, sizeof(op->name), "t%d", index);
    else if (how == 1)
        snprintf(op->name, sizeof(op->name), "r%d.t%d", round, index);
}

/* Is there anything of the sort to differ in? */
static bool has_such(const struct script_op *op, enum script_odd odd)
{
    const struct rueda_request *request = &op->request;

    switch (odd) {
    case SCRIPT_ODD_SHAPE:
        return request->dims == 2 ||
               (request->dims == 1 && !rueda_request_has_free_rows(request));
    case SCRIPT_ODD_SCALE:
    case SCRIPT_ODD_REDUCTION:
        return is_reduced(op);
    case SCRIPT_ODD_ROOT:
        return request->kind == RUEDA_BROADCAST;
    case SCRIPT_ODD_DEVICE:
        return request->kind != RUEDA_BARRIER;
    case SCRIPT_ODD_COMPRESSION:
        return script_may_compress(op);
    case SCRIPT_ODD_AVERAGE:
        return is_reduced(op) && request->reduction == RUEDA_AVERAGE;
    default:
        return true;
    }
}

void script_make_odd(struct script *script, struct script_op *op,
                     struct rueda_dice *dice)
{
    const struct script_set *set = &script->sets[op->set];

    op->odd_rank = set->ranks[below(dice, set->size)];
    do
        op->odd = (enum script_odd)below(dice, SCRIPT_ODDS_OF_ONE);
    while (!has_such(op, op->odd));
    op->expected = RUEDA_ERR_MISMATCH;
}

/* What is given away by rows, and has none. */
static bool lacks_rows(const struct script_op *op)
{
    return op->request.dims == 0 &&
           (rueda_request_has_free_rows(&op->request) ||
            op->request.kind == RUEDA_REDUCE_SCATTER);
}

rueda_status script_expects(const struct script *script,
                            const struct script_op *op)
{
    const bool has_all = script_taker_count(op) == script->sets[op->set].size ||
                         op->request.kind == RUEDA_ALLREDUCE ||
                         op->request.kind == RUEDA_BARRIER;

    if (op->odd_rank >= 0 || !has_all || lacks_rows(op))
        return RUEDA_ERR_MISMATCH;
    return RUEDA_OK;
}

void script_make_collective(struct script *script, struct script_op *op,
                            int set, struct rueda_dice *dice)
{
    static const int kinds[] = {
        RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,      RUEDA_ALLREDUCE,
        RUEDA_ALLREDUCE, RUEDA_ALLGATHER,      RUEDA_BROADCAST,
        RUEDA_ALLTOALL,  RUEDA_REDUCE_SCATTER, RUEDA_BARRIER};

    script_begin(script, op, kinds[below(dice, 9)], set, dice);
    op->request.priority = below(dice, 4) == 0 ? below(dice, 3) : 0;
    if (script->is_alike && below(dice, 8) > 0)
        op->request.kind = RUEDA_ALLREDUCE;
    if (op->request.kind == RUEDA_BARRIER)
        return;
    choose_numbers(op, dice);
    if (script->is_alike && op->request.kind == RUEDA_ALLREDUCE) {
        op->request.dtype = RUEDA_FLOAT32;
        op->request.reduction = RUEDA_AVERAGE;
        op->request.prescale = 1;
        op->request.postscale = 1;
        op->request.flags = script->alike_flags;
        op->request.compression = script->alike_compression;
    }
    choose_shape(script, op, dice);
    choose_root(script, op, dice);
    op->is_on_device = below(dice, 40) == 0;
    op->expected = script_expects(script, op);
}

void script_make_message(struct script *script, struct script_op *op, int set,
                         int index, struct rueda_dice *dice)
{
    const struct script_set *all = &script->sets[set];
    int from = below(dice, all->size);
    int to = (from + 1 + below(dice, all->size - 1)) % all->size;

    script_begin(script, op, RUEDA_SEND, set, dice);
    choose_numbers(op, dice);
    choose_shape(script, op, dice);
    op->from = all->ranks[from];
    op->to = all->ranks[to];
    op->takers = 1u << op->from | 1u << op->to;
    op->request.number = (uint64_t)index; /* its tag */
    if (below(dice, 8) == 0) {
        op->odd_rank = op->to;
        op->odd = SCRIPT_ODD_SHAPE;
        op->request.dims = 2;
        op->request.shape[1] = 3;
        op->request.shape[0] = op->request.shape[0] / 3 + 1;
        op->expected = RUEDA_ERR_MISMATCH;
    }
}

void script_make_member(struct script *script, struct script_op *op, int kind,
                        int set, struct rueda_dice *dice)
{
    script_begin(script, op, kind, set, dice);
    choose_numbers(op, dice);
    choose_shape(script, op, dice);
    choose_root(script, op, dice);
    op->expected = script_expects(script, op);
}
