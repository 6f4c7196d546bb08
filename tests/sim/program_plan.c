/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_plan.h"

#include <stdio.h>
#include <string.h>

#define JOINS_IN 3 /* one round of so many */

static int below(struct rueda_dice *dice, int n)
{
    return (int)rueda_dice_below(dice, (uint64_t)n);
}

int plan_index(const struct plan_set *set, int rank)
{
    for (int i = 0; i < set->size; i++)
        if (set->ranks[i] == rank)
            return i;
    return -1;
}

int plan_taker_count(const struct plan_op *op)
{
    return __builtin_popcount(op->takers);
}

static unsigned bits_of(const struct plan_set *set)
{
    unsigned bits = 0;

    for (int i = 0; i < set->size; i++)
        bits |= 1u << set->ranks[i];
    return bits;
}

static bool is_reduced(const struct plan_op *op)
{
    return op->request.kind == RUEDA_ALLREDUCE ||
           op->request.kind == RUEDA_REDUCE_SCATTER;
}

/* ---- One operation ------------------------------------------------------ */

static void choose_shape(struct plan *plan, struct plan_op *op,
                         struct rueda_dice *dice)
{
    struct rueda_request *request = &op->request;
    size_t most = plan->most_bytes / rueda_dtype_size(request->dtype);

    if (below(dice, 2) == 0)
        most = 40;
    request->dims = 1 + (uint32_t)below(dice, 2);
    request->shape[0] = (uint64_t)below(dice, (int)most + 1);
    request->shape[1] = 1;
    if (request->dims == 2) {
        request->shape[1] = 1 + (uint64_t)below(dice, 9);
        request->shape[0] /= request->shape[1];
    }
    if ((request->kind == RUEDA_ALLREDUCE ||
         request->kind == RUEDA_BROADCAST) &&
        below(dice, 12) == 0)
        request->dims = 0;
    op->is_uneven = below(dice, 3) > 0;
}

static void choose_numbers(struct plan_op *op, struct rueda_dice *dice)
{
    static const rueda_dtype dtypes[] = {
        RUEDA_FLOAT32, RUEDA_FLOAT32, RUEDA_FLOAT64, RUEDA_BFLOAT16,
        RUEDA_INT32,   RUEDA_INT64,   RUEDA_UINT8};
    static const rueda_reduction reductions[] = {RUEDA_SUM,     RUEDA_SUM,
                                                 RUEDA_AVERAGE, RUEDA_MIN,
                                                 RUEDA_MAX,     RUEDA_PRODUCT};
    struct rueda_request *request = &op->request;

    request->dtype = dtypes[below(dice, 7)];
    if (!is_reduced(op))
        return;
    request->reduction = reductions[below(dice, 6)];
    /* Up to 2 to the power of the ranks. */
    if (request->reduction == RUEDA_PRODUCT && request->dtype == RUEDA_UINT8)
        request->dtype = RUEDA_INT64;
    if (below(dice, 4) == 0)
        request->prescale = 2;
    if (below(dice, 4) == 0 && rueda_dtype_is_float(request->dtype))
        request->postscale = 0.5;
    /* No power of two: the result would not be exact in any order. */
    if (request->reduction == RUEDA_PRODUCT)
        request->prescale = 1;
}

static void choose_root(const struct plan *plan, struct plan_op *op,
                        struct rueda_dice *dice)
{
    const struct plan_set *set = &plan->sets[op->set];

    if (op->request.kind == RUEDA_BROADCAST)
        op->request.root = set->ranks[below(dice, set->size)];
}

/* One that members of a set do together; its kind is there. */
static void begin_op(struct plan *plan, struct plan_op *op, int kind, int set,
                     struct rueda_dice *dice)
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
    op->takers = bits_of(&plan->sets[set]);
    op->salt = (unsigned)below(dice, 1000);
    op->odd_rank = -1;
    op->changed = -1;
}

/* Names that stay, names of one round, and none. */
static void name_it(struct plan_op *op, int round, int index,
                    struct rueda_dice *dice)
{
    int how = below(dice, 6);

    if (how > 1)
        snprintf(op->name, sizeof(op->name), "t%d", index);
    else if (how == 1)
        snprintf(op->name, sizeof(op->name), "r%d.t%d", round, index);
}

static void make_odd(struct plan *plan, struct plan_op *op,
                     struct rueda_dice *dice)
{
    const struct plan_set *set = &plan->sets[op->set];

    op->odd_rank = set->ranks[below(dice, set->size)];
    op->odd = (enum plan_odd)below(dice, PLAN_ODDS);
    if (op->request.kind == RUEDA_BARRIER)
        op->odd = PLAN_ODD_DTYPE; /* that is all it has */
    if (op->odd == PLAN_ODD_SHAPE && op->request.dims < 2)
        op->odd = PLAN_ODD_DTYPE;
    if (op->odd == PLAN_ODD_SCALE && !is_reduced(op))
        op->odd = PLAN_ODD_KIND;
    op->expected = RUEDA_ERR_MISMATCH;
}

static void make_collective(struct plan *plan, struct plan_op *op, int set,
                            struct rueda_dice *dice)
{
    static const int kinds[] = {
        RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,      RUEDA_ALLREDUCE,
        RUEDA_ALLREDUCE, RUEDA_ALLGATHER,      RUEDA_BROADCAST,
        RUEDA_ALLTOALL,  RUEDA_REDUCE_SCATTER, RUEDA_BARRIER};

    begin_op(plan, op, kinds[below(dice, 9)], set, dice);
    op->request.priority = below(dice, 4) == 0 ? below(dice, 3) : 0;
    if (plan->is_alike && below(dice, 8) > 0)
        op->request.kind = RUEDA_ALLREDUCE;
    if (op->request.kind == RUEDA_BARRIER)
        return;
    choose_numbers(op, dice);
    if (plan->is_alike && op->request.kind == RUEDA_ALLREDUCE) {
        op->request.dtype = RUEDA_FLOAT32;
        op->request.reduction = RUEDA_AVERAGE;
        op->request.prescale = 1;
        op->request.postscale = 1;
    }
    choose_shape(plan, op, dice);
    choose_root(plan, op, dice);
}

static void make_message(struct plan *plan, struct plan_op *op, int set,
                         int index, struct rueda_dice *dice)
{
    const struct plan_set *all = &plan->sets[set];
    int from = below(dice, all->size);
    int to = (from + 1 + below(dice, all->size - 1)) % all->size;

    begin_op(plan, op, RUEDA_SEND, set, dice);
    choose_numbers(op, dice);
    choose_shape(plan, op, dice);
    op->from = all->ranks[from];
    op->to = all->ranks[to];
    op->takers = 1u << op->from | 1u << op->to;
    op->request.number = (uint64_t)index; /* its tag */
    if (below(dice, 8) == 0) {
        op->odd_rank = op->to;
        op->odd = PLAN_ODD_SHAPE;
        op->request.dims = 2;
        op->request.shape[1] = 3;
        op->request.shape[0] = op->request.shape[0] / 3 + 1;
        op->expected = RUEDA_ERR_MISMATCH;
    }
}

/* ---- Groups and joins ---------------------------------------------------- */

/* Those from `first` on are a group, as like as they have to be. */
static void make_group(struct plan *plan, struct plan_round *round, int first,
                       int count, struct rueda_dice *dice)
{
    static const int kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,
                                RUEDA_ALLGATHER, RUEDA_REDUCE_SCATTER,
                                RUEDA_BROADCAST, RUEDA_ALLTOALL};
    const int kind = kinds[below(dice, 6)];
    const int set = round->ops[first].set;
    rueda_status expected = RUEDA_OK;

    for (int i = first; i < first + count; i++) {
        struct plan_op *op = &round->ops[i];

        begin_op(plan, op, kind, set, dice);
        choose_numbers(op, dice);
        choose_shape(plan, op, dice);
        choose_root(plan, op, dice);
        if (plan->sets[set].size > 1 && below(dice, 16) == 0)
            make_odd(plan, op, dice);
        if (op->expected != RUEDA_OK)
            expected = op->expected;
        op->request.group = 77 + (uint64_t)first;
        op->request.group_count = (uint32_t)count;
    }
    for (int i = first; i < first + count; i++)
        round->ops[i].expected = expected;
}

/* Every member stops somewhere in the round, and joins. */
static void make_joins(struct plan *plan, struct plan_round *round, int set,
                       struct rueda_dice *dice)
{
    const struct plan_set *all = &plan->sets[set];

    round->is_polite = below(dice, 2) == 0;
    for (int m = 0; m < all->size; m++) {
        int stop = below(dice, 3) == 0 ? PLAN_OPS : below(dice, round->count);

        for (int i = stop; i < round->count; i++)
            if (round->ops[i].set == set)
                round->ops[i].takers &= ~(1u << all->ranks[m]);
    }
    for (int i = 0; i < round->count; i++) {
        struct plan_op *op = &round->ops[i];

        if (op->set != set)
            continue;
        if (op->request.reduction == RUEDA_AVERAGE)
            op->request.flags = RUEDA_LIVE_AVERAGE;
        op->odd_rank = -1;
        op->expected = plan_taker_count(op) < all->size &&
                               op->request.kind != RUEDA_ALLREDUCE &&
                               op->request.kind != RUEDA_BARRIER
                           ? RUEDA_ERR_MISMATCH
                           : RUEDA_OK;
    }
    begin_op(plan, &round->ops[round->count++], RUEDA_JOIN, set, dice);
}

/* ---- Sets ---------------------------------------------------------------- */

static bool has_set(const struct plan *plan, int set, int round)
{
    return plan->sets[set].made_in < round &&
           plan->sets[set].dropped_in >= round;
}

/* Is there one of these ranks, that round? */
static bool is_there(const struct plan *plan, unsigned bits, int round)
{
    for (int i = 0; i < plan->set_count; i++)
        if (plan->sets[i].dropped_in >= round &&
            bits_of(&plan->sets[i]) == bits)
            return true;
    return false;
}

static void add_set(struct plan *plan, int round, struct rueda_dice *dice)
{
    struct plan_round *now = &plan->round[round];
    struct plan_op *op = &now->ops[now->count];
    struct plan_set *set = &plan->sets[plan->set_count];
    bool is_double;
    unsigned bits;

    set->size = 0;
    for (int rank = 0; rank < plan->size; rank++)
        if (below(dice, 5) > 1)
            set->ranks[set->size++] = rank;
    if (set->size == 0)
        set->ranks[set->size++] = below(dice, plan->size);
    bits = bits_of(set);
    is_double = is_there(plan, bits, round + 1);
    begin_op(plan, op, RUEDA_SET_ADD, 0, dice);
    snprintf(op->name, sizeof(op->name), "rueda.process_set");
    op->request.dims = 2;
    op->request.shape[0] = (uint64_t)set->size;
    op->request.shape[1] = bits;
    op->changed = plan->set_count;
    set->made_in = round;
    set->dropped_in = PLAN_ROUNDS;
    now->count++;
    if (is_double) {
        op->expected = RUEDA_ERR_INVALID;
    } else if (plan->size > 1 && below(dice, 6) == 0) {
        op->odd_rank = below(dice, plan->size);
        op->odd = PLAN_ODD_SHAPE;
        op->expected = RUEDA_ERR_MISMATCH;
    }
    if (op->expected != RUEDA_OK)
        set->dropped_in = -1; /* there never is such a set */
    plan->set_count++;
}

static void drop_set(struct plan *plan, int round, struct rueda_dice *dice)
{
    struct plan_round *now = &plan->round[round];
    struct plan_op *op = &now->ops[now->count];
    int set = 1 + below(dice, plan->set_count);

    if (set >= plan->set_count || !has_set(plan, set, round) ||
        plan->sets[set].dropped_in == round)
        return;
    begin_op(plan, op, RUEDA_SET_DROP, 0, dice);
    snprintf(op->name, sizeof(op->name), "rueda.process_set");
    op->request.dims = 2;
    op->request.shape[0] = 1;
    op->request.shape[1] = (uint64_t)set;
    op->changed = set;
    plan->sets[set].dropped_in = round;
    now->count++;
}

/* ---- Rounds -------------------------------------------------------------- */

static int choose_set(struct plan *plan, int round, struct rueda_dice *dice)
{
    int set = below(dice, plan->set_count + 1);

    return set < plan->set_count && has_set(plan, set, round) ? set : 0;
}

static void choose_ops(struct plan *plan, int round, struct rueda_dice *dice)
{
    struct plan_round *now = &plan->round[round];
    int count = now->count + 1 + below(dice, PLAN_OPS - 1 - now->count);

    while (now->count < count) {
        int i = now->count++;
        struct plan_op *op = &now->ops[i];
        int set = choose_set(plan, round, dice);
        bool is_doomed = plan->sets[set].dropped_in == round;
        int group = 2 + below(dice, 4);

        if (plan->sets[set].size > 1 && !is_doomed && below(dice, 6) == 0) {
            make_message(plan, op, set, i, dice);
            continue;
        }
        make_collective(plan, op, set, dice);
        if (plan->sets[set].size > 1 && below(dice, 10) == 0)
            make_odd(plan, op, dice);
        if (below(dice, 8) == 0 && i + group < PLAN_OPS - 1) {
            make_group(plan, now, i, group, dice);
            now->count = i + group;
        }
        for (; i < now->count; i++) {
            now->ops[i].may_end_early = is_doomed;
            name_it(&now->ops[i], round, i, dice);
        }
    }
}

/* Of what there is in the round, joins spoil groups, messages and changes. */
static int choose_join(struct plan *plan, int round, struct rueda_dice *dice)
{
    const struct plan_round *now = &plan->round[round];
    int set = choose_set(plan, round, dice);

    if (below(dice, JOINS_IN) > 0 || plan->sets[set].dropped_in == round)
        return -1;
    for (int i = 0; i < now->count; i++)
        if (now->ops[i].set == set &&
            (now->ops[i].request.group_count > 0 ||
             plan_is_change(&now->ops[i]) || plan_is_message(&now->ops[i])))
            return -1;
    return now->count < PLAN_OPS ? set : -1;
}

void plan_make(struct plan *plan, int size, size_t most_bytes,
               struct rueda_dice *dice)
{
    struct plan_set *all = &plan->sets[0];

    memset(plan, 0, sizeof(*plan));
    plan->size = size;
    plan->most_bytes = most_bytes;
    plan->rounds = 1 + below(dice, PLAN_ROUNDS);
    plan->set_count = 1;
    for (int rank = 0; rank < size; rank++)
        all->ranks[all->size++] = rank;
    all->made_in = -1;
    all->dropped_in = PLAN_ROUNDS;
    for (int r = 0; r < plan->rounds; r++) {
        int changes = below(dice, 4);
        int join;

        plan->is_alike = below(dice, 3) == 0;
        for (int i = 0; i < changes; i++) {
            if (below(dice, 3) == 0)
                drop_set(plan, r, dice);
            else if (plan->set_count < PLAN_SETS)
                add_set(plan, r, dice);
        }
        choose_ops(plan, r, dice);
        join = choose_join(plan, r, dice);
        if (join >= 0)
            make_joins(plan, &plan->round[r], join, dice);
    }
}
