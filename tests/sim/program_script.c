/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_script_op.h"

#include <stdio.h>
#include <string.h>

#define JOINS_IN 3 /* one round in this many */

static int below(struct rueda_dice *dice, int n)
{
    return (int)rueda_dice_below(dice, (uint64_t)n);
}

int script_index(const struct script_set *set, int rank)
{
    for (int i = 0; i < set->size; i++)
        if (set->ranks[i] == rank)
            return i;
    return -1;
}

int script_taker_count(const struct script_op *op)
{
    return __builtin_popcount(op->takers);
}

int script_level(const struct script_round *round, int which)
{
    const uint64_t group = round->ops[which].request.group;

    while (group != 0 && which > 0 &&
           round->ops[which - 1].request.group == group)
        which--;
    return which;
}

/* ---- Groups and joins ---------------------------------------------------- */

/* Those from `first` on are a group, as like as they have to be. */
static void make_group(struct script *script, struct script_round *round,
                       int first, int count, struct rueda_dice *dice)
{
    static const int kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,
                                RUEDA_ALLGATHER, RUEDA_REDUCE_SCATTER,
                                RUEDA_BROADCAST, RUEDA_ALLTOALL};
    const int kind = kinds[below(dice, 6)];
    const int set = round->ops[first].set;
    rueda_status expected = RUEDA_OK;

    for (int i = first; i < first + count; i++) {
        struct script_op *op = &round->ops[i];

        script_make_member(script, op, kind, set, dice);
        if (script->sets[set].size > 1 && below(dice, 16) == 0)
            script_make_odd(script, op, dice);
        if (op->expected != RUEDA_OK)
            expected = op->expected;
        op->request.group_count = (uint32_t)count;
    }
    for (int i = first; i < first + count; i++)
        round->ops[i].expected = expected;
}

/* What the number of a group is made of: all that are in it. */
static void number_group(struct script_round *round, int first, int count,
                         int index)
{
    uint64_t group = 0;

    for (int i = first; i < first + count; i++) {
        const char *name = round->ops[i].name;

        group += name[0] != '\0' ? rueda_name_hash(name, strlen(name))
                                 : rueda_hash_mix((uint64_t)index * SCRIPT_OPS +
                                                  (uint64_t)i + 1);
    }
    for (int i = first; i < first + count; i++)
        round->ops[i].request.group = group;
}

/* The rank has another one instead, which no other rank has. */
static void replace_last(struct script *script, struct script_round *round,
                         int rank, struct rueda_dice *dice)
{
    const struct script_op *last = &round->ops[round->count - 1];
    struct script_op *op = &round->ops[round->count++];

    script_make_member(script, op, last->request.kind, last->set, dice);
    snprintf(op->name, sizeof(op->name), "only%d", rank);
    op->takers = 1u << rank;
    op->request.group = last->request.group;
    op->request.group_count = last->request.group_count;
    op->may_end_early = last->may_end_early;
    op->odd_rank = rank;
    op->odd = SCRIPT_ODD_GROUP;
    op->odd_count = (int)last->request.group_count;
    op->expected = RUEDA_ERR_MISMATCH;
}

/* One rank leaves the last of a group, which is the last of the round so far,
 * out of it. */
static void split_group(struct script *script, struct script_round *round,
                        int first, struct rueda_dice *dice)
{
    const struct script_set *set = &script->sets[round->ops[first].set];
    const int rank = set->ranks[below(dice, set->size)];
    const int count = round->count - first;
    struct script_op *last = &round->ops[round->count - 1];
    /* A rank that goes on must not find the name in flight elsewhere. */
    const bool is_of_round = last->name[0] == 'r';
    const int how = is_of_round ? below(dice, 3) : 0;

    for (int i = first; i < round->count; i++) {
        round->ops[i].odd_rank = rank;
        round->ops[i].odd = SCRIPT_ODD_GROUP;
        round->ops[i].odd_count = how == 2 ? count : count - 1;
        round->ops[i].expected = RUEDA_ERR_MISMATCH;
    }
    last->odd = SCRIPT_ODD_ALONE;
    if (how > 0)
        last->takers &= ~(1u << rank);
    if (how == 2)
        replace_last(script, round, rank, dice);
}

/* Every member stops somewhere in the round, and joins. */
static void make_joins(struct script *script, struct script_round *round,
                       int set, struct rueda_dice *dice)
{
    const struct script_set *all = &script->sets[set];

    round->is_polite = below(dice, 2) == 0;
    for (int m = 0; m < all->size; m++) {
        int stop = below(dice, 3) == 0 ? SCRIPT_OPS : below(dice, round->count);

        for (int i = stop; i < round->count; i++)
            if (round->ops[i].set == set)
                round->ops[i].takers &= ~(1u << all->ranks[m]);
    }
    for (int i = 0; i < round->count; i++) {
        struct script_op *op = &round->ops[i];

        if (op->set != set)
            continue;
        op->odd_rank = -1;
        op->expected = script_expects(script, op);
    }
    script_begin(script, &round->ops[round->count++], RUEDA_JOIN, set, dice);
}

/* ---- Sets ---------------------------------------------------------------- */

static bool has_set(const struct script *script, int set, int round)
{
    return script->sets[set].made_in < round &&
           script->sets[set].dropped_in >= round;
}

/* Is there one of these ranks, that round? */
static bool is_there(const struct script *script, unsigned bits, int round)
{
    for (int i = 0; i < script->set_count; i++)
        if (script->sets[i].dropped_in >= round &&
            script_bits(&script->sets[i]) == bits)
            return true;
    return false;
}

static void add_set(struct script *script, int round, struct rueda_dice *dice)
{
    struct script_round *now = &script->round[round];
    struct script_op *op = &now->ops[now->count];
    struct script_set *set = &script->sets[script->set_count];
    bool is_double;
    unsigned bits;

    set->size = 0;
    for (int rank = 0; rank < script->size; rank++)
        if (below(dice, 5) > 1)
            set->ranks[set->size++] = rank;
    if (set->size == 0)
        set->ranks[set->size++] = below(dice, script->size);
    bits = script_bits(set);
    is_double = is_there(script, bits, round + 1);
    script_begin(script, op, RUEDA_SET_ADD, 0, dice);
    snprintf(op->name, sizeof(op->name), "rueda.process_set");
    op->request.dims = 2;
    op->request.shape[0] = (uint64_t)set->size;
    op->request.shape[1] = bits;
    op->changed = script->set_count;
    set->made_in = round;
    set->dropped_in = SCRIPT_ROUNDS;
    now->count++;
    if (is_double) {
        op->expected = RUEDA_ERR_INVALID;
    } else if (script->size > 1 && below(dice, 6) == 0) {
        op->odd_rank = below(dice, script->size);
        op->odd = SCRIPT_ODD_SHAPE;
        op->expected = RUEDA_ERR_MISMATCH;
    }
    if (op->expected != RUEDA_OK)
        set->dropped_in = -1; /* there never is such a set */
    script->set_count++;
}

static void drop_set(struct script *script, int round, struct rueda_dice *dice)
{
    struct script_round *now = &script->round[round];
    struct script_op *op = &now->ops[now->count];
    int set = 1 + below(dice, script->set_count);

    if (set >= script->set_count || !has_set(script, set, round) ||
        script->sets[set].dropped_in == round)
        return;
    script_begin(script, op, RUEDA_SET_DROP, 0, dice);
    snprintf(op->name, sizeof(op->name), "rueda.process_set");
    op->request.dims = 2;
    op->request.shape[0] = 1;
    op->request.shape[1] = (uint64_t)set;
    op->changed = set;
    script->sets[set].dropped_in = round;
    now->count++;
}

/* ---- Rounds -------------------------------------------------------------- */

static int choose_set(struct script *script, int round, struct rueda_dice *dice)
{
    int set = below(dice, script->set_count + 1);

    return set < script->set_count && has_set(script, set, round) ? set : 0;
}

/* The set that is joined in this round, or -1: none. Joins spoil changes, which
 * are there already, and what is not rolled for such a set: groups and
 * messages.
 */
static int choose_join(struct script *script, int round,
                       struct rueda_dice *dice)
{
    int set = choose_set(script, round, dice);

    if (below(dice, JOINS_IN) > 0 || script->sets[set].dropped_in == round ||
        (set == 0 && script->round[round].count > 0))
        return -1;
    return set;
}

static void choose_ops(struct script *script, int round,
                       struct rueda_dice *dice)
{
    struct script_round *now = &script->round[round];
    int count = now->count + 1 + below(dice, SCRIPT_OPS - 1 - now->count);

    while (now->count < count) {
        int i = now->count++;
        struct script_op *op = &now->ops[i];
        int set = choose_set(script, round, dice);
        bool is_doomed = script->sets[set].dropped_in == round;
        bool is_joined = set == script->joined;
        int group = 2 + below(dice, 4);

        if (script->sets[set].size > 1 && !is_doomed && !is_joined &&
            below(dice, 6) == 0) {
            script_make_message(script, op, set, i, dice);
            continue;
        }
        script_make_collective(script, op, set, dice);
        if (script->sets[set].size > 1 && below(dice, 10) == 0)
            script_make_odd(script, op, dice);
        if (!is_joined && below(dice, 8) == 0 && i + group < SCRIPT_OPS - 1) {
            make_group(script, now, i, group, dice);
            now->count = i + group;
        }
        for (int k = i; k < now->count; k++) {
            now->ops[k].may_end_early = is_doomed;
            script_name(&now->ops[k], round, k, dice);
        }
        if (op->request.group_count > 0)
            number_group(now, i, group, round);
        if (op->request.group_count > 0 && script->sets[set].size > 1 &&
            now->count < SCRIPT_OPS - 1 && below(dice, 8) == 0)
            split_group(script, now, i, dice);
    }
}

/* Has it a name that another may have when it has ended? One that is taken over
 * already has an heir. */
static bool has_free_name(const struct script_round *round, int which)
{
    const struct script_op *op = &round->ops[which];

    for (int i = which + 1; i < round->count; i++)
        if (round->ops[i].set == op->set &&
            strcmp(round->ops[i].name, op->name) == 0)
            return false;
    return op->name[0] != '\0' && !script_is_message(op) &&
           !script_is_change(op) && op->request.group == 0;
}

/* Some wait for one before them, of any set, and some take over its name. */
static void choose_order(struct script_round *round, struct rueda_dice *dice)
{
    for (int i = 1; i < round->count; i++) {
        struct script_op *op = &round->ops[i];

        if (script_is_numbered(op) || script_is_change(op) ||
            op->request.group != 0 || below(dice, 4) > 0)
            continue;
        op->after = below(dice, i);
        if (!script_is_message(op) && round->ops[op->after].set == op->set &&
            has_free_name(round, op->after) && below(dice, 2) == 0)
            memcpy(op->name, round->ops[op->after].name, sizeof(op->name));
    }
}

/* No rank is gone before all others have got what they wait for. */
static void meet(struct script *script, struct script_round *round,
                 struct rueda_dice *dice)
{
    struct script_op *op = &round->ops[round->count++];

    script_begin(script, op, RUEDA_BARRIER, 0, dice);
    snprintf(op->name, sizeof(op->name), "the end");
}

void script_make(struct script *script, int size, size_t most_bytes,
                 struct rueda_dice *dice)
{
    struct script_set *all = &script->sets[0];

    memset(script, 0, sizeof(*script));
    script->size = size;
    script->most_bytes = most_bytes;
    script->rounds = 1 + below(dice, SCRIPT_ROUNDS);
    script->set_count = 1;
    for (int rank = 0; rank < size; rank++)
        all->ranks[all->size++] = rank;
    all->made_in = -1;
    all->dropped_in = SCRIPT_ROUNDS;
    for (int r = 0; r < script->rounds; r++) {
        int changes = below(dice, 4);

        script->is_alike = below(dice, 3) == 0;
        script->alike_flags = below(dice, 2) == 0 ? RUEDA_LIVE_AVERAGE : 0;
        script->alike_compression =
            (rueda_compression)below(dice, RUEDA_COMPRESSION_COUNT);
        for (int i = 0; i < changes; i++) {
            if (below(dice, 3) == 0)
                drop_set(script, r, dice);
            else if (script->set_count < SCRIPT_SETS)
                add_set(script, r, dice);
        }
        script->joined = choose_join(script, r, dice);
        choose_ops(script, r, dice);
        choose_order(&script->round[r], dice);
        if (script->joined >= 0)
            make_joins(script, &script->round[r], script->joined, dice);
    }
    meet(script, &script->round[script->rounds++], dice);
}
