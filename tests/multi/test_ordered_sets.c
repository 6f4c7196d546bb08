/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered operations in any process set, beside named ones. */
#include <stdio.h>
#include <string.h>

#include "api/ctx.h"
#include "os/clock.h"
#include "support/named_op.h"

#define MANY  40
#define SETS  4
#define RANKS 4

static const int members[SETS][RANKS] = {{0, 1}, {0, 2, 3}, {3}, {0, 1, 2, 3}};
static const int sizes[SETS] = {2, 3, 1, 4};

/* The same list on every member; in the last, the set of all ranks. */
static struct named_what nth(int i, int set, int at)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE,      RUEDA_ALLGATHER,
                                       RUEDA_BROADCAST,      RUEDA_ALLTOALL,
                                       RUEDA_REDUCE_SCATTER, RUEDA_BARRIER};
    static const rueda_dtype dtypes[] = {RUEDA_FLOAT32, RUEDA_INT64,
                                         RUEDA_UINT8, RUEDA_FLOAT64};
    static const size_t rows[] = {5, 0, 1, 700, 33, 4001, 60000};
    struct named_what what = {
        .kind = kinds[i % 6],
        .dtype = dtypes[i % 4],
        .reduction = RUEDA_SUM,
        .set = set,
        .size = sizes[at],
        .rows = rows[i % 7],
        .row = (size_t)(1 + i % 3),
        .root = members[at][i % sizes[at]],
        .salt = (unsigned)(13 * i + at),
        .in_place = i % 2 == 0,
        .by_alloc = i % 5 == 1,
        .is_ordered = true,
    };

    memcpy(what.members, members[at], sizeof(members[at]));
    return what;
}

static bool is_in(int rank, int at)
{
    for (int i = 0; i < sizes[at]; i++)
        if (members[at][i] == rank)
            return true;
    return false;
}

/* Make the sets but the last, which there is. */
static int make_sets(struct test_rank *me, int *sets)
{
    for (int at = 0; at < SETS - 1; at++) {
        sets[at] = named_add_set(me, members[at], sizes[at]);
        if (sets[at] < 0)
            return rank_says(me, "set %d cannot be made", at);
    }
    sets[SETS - 1] = RUEDA_SET_GLOBAL;
    return 0;
}

/* ---- All kinds, in all sets at once ----------------------------------- */

/* Each rank goes through the sets in an order of its own, but within a set all
 * go by the same one; a named operation follows each ordered one. */
static int in_sets(struct test_rank *me)
{
    struct named_op *ops = named_ops_new((size_t)2 * SETS * MANY);
    int failed = 0;
    int sets[SETS];

    failed = make_sets(me, sets);
    for (int k = 0; k < SETS * MANY && failed == 0; k++) {
        const int at = (k + me->rank) % SETS;
        const int i = k / SETS;
        const size_t own = 2 * ((size_t)at * MANY + (size_t)i);
        struct named_what what = nth(i, sets[at], at);

        if (!is_in(me->rank, at))
            continue;
        named_submit(me, &what, &ops[own]);
        what.is_ordered = false;
        snprintf(what.name, sizeof(what.name), "op.%d.%d", sets[at], i);
        named_submit(me, &what, &ops[own + 1]);
    }
    for (int i = 0; i < 2 * SETS * MANY && failed == 0; i++)
        if (is_in(me->rank, i / (2 * MANY)))
            failed = named_check(me, &ops[i]);
    for (int at = 0; at < SETS - 1 && failed == 0; at++)
        failed = rank_expect(me, named_drop_set(me, sets[at]), RUEDA_OK,
                             "drop a set");
    free(ops);
    return failed;
}

static void ordered_and_named_run_beside_each_other_in_all_sets(void **state)
{
    rank_run(*state, RANKS, in_sets, NULL);
}

/* ---- By the public functions ------------------------------------------ */

static int run(struct test_rank *me, const struct rueda_submit_args *args)
{
    rueda_handle handle;

    return rank_expect(me, rueda_submit(me->ctx, args, &handle), RUEDA_OK,
                       "submit") ||
           rank_expect(me, rueda_wait(me->ctx, handle, RANK_DEADLINE_MS),
                       RUEDA_OK, "wait");
}

/* rueda_run() and RUEDA_ORDERED count in one order in the set of all ranks. */
static int with_plain_calls(struct test_rank *me)
{
    static const size_t shape[] = {3};
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    float numbers[3];

    args.kind = RUEDA_ALLREDUCE;
    args.send = numbers;
    args.recv = numbers;
    args.dims = 1;
    args.shape = shape;
    args.flags = RUEDA_ORDERED;
    for (int i = 0; i < 200; i++) {
        const int ranks = me->size * (me->size - 1) / 2; /* their sum */

        for (int k = 0; k < 3; k++)
            numbers[k] = (float)(me->rank + i + k);
        if (run(me, &args) != 0 ||
            rank_expect(me,
                        rueda_allreduce(me->ctx, numbers, numbers, 3,
                                        RUEDA_FLOAT32, RUEDA_MAX),
                        RUEDA_OK, "allreduce") != 0)
            return 1;
        for (int k = 0; k < 3; k++)
            if (numbers[k] != (float)(me->size * (i + k) + ranks))
                return rank_says(me, "%g in round %d", (double)numbers[k], i);
    }
    return 0;
}

static void plain_and_ordered_calls_are_in_one_order(void **state)
{
    rank_run(*state, 3, with_plain_calls, NULL);
}

/* A message is not matched with one that is not ordered. */
static int messages(struct test_rank *me)
{
    static const size_t shape[] = {1};
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handles[2];
    int numbers[2] = {10, 20};

    args.kind = me->rank == 0 ? RUEDA_SEND : RUEDA_RECV;
    args.dtype = RUEDA_INT32;
    args.peer = 1 - me->rank;
    args.dims = 1;
    args.shape = shape;
    for (int k = 0; k < 2; k++) {
        /* The sender begins with the ordered one, the receiver with the
         * other. */
        const int i = me->rank == 0 ? k : 1 - k;

        args.flags = i == 0 ? RUEDA_ORDERED : 0;
        args.send = me->rank == 0 ? &numbers[i] : NULL;
        args.recv = me->rank == 0 ? NULL : &numbers[i];
        if (me->rank == 1)
            numbers[i] = 0;
        if (rank_expect(me, rueda_submit(me->ctx, &args, &handles[k]), RUEDA_OK,
                        "submit") != 0)
            return 1;
    }
    for (int k = 0; k < 2; k++)
        if (rank_expect(me, rueda_wait(me->ctx, handles[k], RANK_DEADLINE_MS),
                        RUEDA_OK, "wait") != 0)
            return 1;
    if (numbers[0] != 10 || numbers[1] != 20)
        return rank_says(me, "%d and %d have come", numbers[0], numbers[1]);
    return 0;
}

static void ordered_messages_have_tags_of_their_own(void **state)
{
    rank_run(*state, 2, messages, NULL);
}

/* ---- Dropping a set --------------------------------------------------- */

static int dropped_meanwhile(struct test_rank *me)
{
    struct named_op *ops = named_ops_new(1);
    int failed = 0;

    for (int i = 0; i < 10 && failed == 0; i++) {
        const int set = named_add_set(me, members[0], 2);
        struct named_what what = nth(i, set, 0);

        if (is_in(me->rank, 0))
            named_submit(me, &what, ops);
        failed = rank_expect(me, named_drop_set(me, set), RUEDA_OK, "drop");
        if (failed == 0 && is_in(me->rank, 0)) {
            rueda_status status = named_wait(me, ops, RANK_DEADLINE_MS);

            if (status != RUEDA_OK && status != RUEDA_ERR_CANCELLED)
                failed = rank_expect(me, status, RUEDA_OK, "ordered");
        }
        if (failed == 0 && is_in(me->rank, 0)) {
            named_submit(me, &what, ops);
            failed = rank_expect(me, named_wait(me, ops, RANK_DEADLINE_MS),
                                 RUEDA_ERR_CANCELLED, "after the drop");
        }
    }
    free(ops);
    return failed;
}

static void a_set_can_be_dropped_while_ordered_operations_run(void **state)
{
    rank_run(*state, 3, dropped_meanwhile, NULL);
}

/* What a member has begun is carried out by all, also by one that submits its
 * first ordered operation only while the set is being dropped. */
static int submitted_late(struct test_rank *me)
{
    static const int64_t ms = 1000000;
    const int set = named_add_set(me, members[0], 2);
    struct rueda_engine *engine = &me->ctx->engine;
    struct named_what what = nth(0, set, 0);
    struct named_op *ops = named_ops_new(2);
    struct named_op *drop = &ops[1];
    int failed = 0;

    named_begin(drop, RUEDA_SET_DROP, "drop", RUEDA_ALL_RANKS);
    drop->ticket.ranks = (int *)&set;
    drop->ticket.rank_count = 1;
    /* Waiting takes turns, so that this begins before the other does. */
    if (me->rank == 0) {
        named_submit(me, &what, ops);
        rueda_engine_wait(engine, &ops->ticket.op, rueda_clock_ns() + 50 * ms);
    }
    named_hand_over(me, drop);
    if (me->rank == 1) {
        rueda_engine_wait(engine, &drop->ticket.op,
                          rueda_clock_ns() + 300 * ms);
        named_submit(me, &what, ops);
    }
    if (is_in(me->rank, 0))
        failed = named_check(me, ops);
    if (failed == 0)
        failed = rank_expect(
            me,
            rueda_engine_wait(engine, &drop->ticket.op,
                              rueda_clock_ns() + RANK_DEADLINE_MS * ms),
            RUEDA_OK, "drop");
    free(ops);
    return failed;
}

static void what_a_member_has_begun_is_carried_out_by_all(void **state)
{
    rank_run(*state, 3, submitted_late, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(ordered_and_named_run_beside_each_other_in_all_sets),
        RANK_EVERYWHERE(plain_and_ordered_calls_are_in_one_order),
        RANK_EVERYWHERE(ordered_messages_have_tags_of_their_own),
        RANK_EVERYWHERE(a_set_can_be_dropped_while_ordered_operations_run),
        RANK_EVERYWHERE(what_a_member_has_begun_is_carried_out_by_all),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
