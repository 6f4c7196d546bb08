/* SPDX-License-Identifier: Apache-2.0 */
/* One operation after another, and those that are refused. */
#include "support/coll_check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Wrong arguments --------------------------------------------------- */

/* Refused on all ranks alike, and the context is as good as before. */
static int wrong_arguments(struct test_rank *me)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    float buf[16] = {0};
    rueda_handle handle;

    args.kind = RUEDA_ALLTOALL;
    args.send = buf;
    args.recv = buf;
    args.count = 2;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                    "alltoall in place") != 0)
        return 1;
    args.kind = RUEDA_ALLREDUCE;
    args.recv = buf + 1;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                    "overlap") != 0)
        return 1;
    args.recv = NULL;
    if (rank_expect(me, rueda_start(me->ctx, &args, &handle), RUEDA_ERR_INVALID,
                    "no result") != 0)
        return 1;
    args.recv = buf;
    args.dtype = (rueda_dtype)77;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                    "dtype") != 0)
        return 1;
    args.dtype = RUEDA_INT32;
    args.reduction = RUEDA_ADASUM;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                    "adasum of whole numbers") != 0)
        return 1;
    args.reduction = RUEDA_SUM;
    args.kind = RUEDA_BROADCAST;
    args.root = me->size;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID, "root") !=
        0)
        return 1;
    if (rueda_error(me->ctx)[0] != '\0')
        return rank_says(me, "failed for good: %s", rueda_error(me->ctx));
    return rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
}

static void wrong_arguments_are_refused_and_do_no_harm(void **state)
{
    rank_run(*state, 2, wrong_arguments, NULL);
}

/* A barrier has no elements, whatever its arguments say. */
static int barrier_with_count(struct test_rank *me)
{
    static const size_t counts[] = {1, 10, 1000000};
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

    args.kind = RUEDA_BARRIER;
    for (size_t i = 0; i < LENGTH(counts); i++) {
        args.count = counts[i];
        if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_OK,
                        "barrier with a count") != 0)
            return 1;
    }
    return 0;
}

static void a_barrier_does_not_look_at_its_count(void **state)
{
    rank_run(*state, 2, barrier_with_count, NULL);
}

/* ---- Sequences --------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* The same on every rank, as it depends on the seed alone. */
static struct coll_what mixed(uint32_t *seed, int size)
{
    static const size_t counts[] = {0,   1,    3,    14,   15,   100,
                                    999, 4097, 8193, 9001, 40009};
    struct coll_what what = {
        .kind = (rueda_kind)(next_random(seed) % RUEDA_KIND_COUNT),
        .dtype = (rueda_dtype)(next_random(seed) % RUEDA_DTYPE_COUNT),
        .reduction = (rueda_reduction)(next_random(seed) % RUEDA_ADASUM),
        .root = (int)(next_random(seed) % (unsigned)size),
        .count = counts[next_random(seed) % LENGTH(counts)],
        .is_in_place = next_random(seed) % 2 == 0,
        .is_uneven = next_random(seed) % 2 == 0,
        .salt = next_random(seed) % 1000,
    };

    if (next_random(seed) % 4 == 0)
        what.shared = next_random(seed) % (1u << size);
    if (next_random(seed) % 8 == 0)
        what.shared = (1u << size) - 1;
    if (what.kind == RUEDA_ALLTOALL || what.kind == RUEDA_REDUCE_SCATTER)
        what.is_in_place = false;
    return what;
}

static int mixed_operations(struct test_rank *me)
{
    const int operations = RANK_IS_SLOW ? 300 : 2000;
    uint32_t seed = 20261115;

    for (int i = 0; i < operations; i++) {
        struct coll_what what = mixed(&seed, me->size);

        if (coll_check(me, &what) != 0)
            return 1;
    }
    return 0;
}

static void two_thousand_mixed_operations_are_right(void **state)
{
    rank_run(*state, 4, mixed_operations, NULL);
}

/* The root of a broadcast waits for no rank, so it comes to the next operation
 * while others still read what it showed in the one before. Nothing else is
 * done in between, so that it gets far. */
static int tiny_around_broadcast(struct test_rank *me)
{
    const int rounds = RANK_IS_SLOW ? 2000 : 30000;

    for (int i = 0; i < rounds; i++) {
        float numbers[3] = {(float)(i % 64 + me->rank), 0, (float)(i % 7)};
        float spread[20] = {[19] = (float)me->rank};
        int root = i % me->size;
        float wanted = 0;

        for (int rank = 0; rank < me->size; rank++)
            wanted += (float)(i % 64 + rank);
        if (rank_expect(me,
                        rueda_allreduce(me->ctx, &numbers[0], &numbers[0], 1,
                                        RUEDA_FLOAT32, RUEDA_SUM),
                        RUEDA_OK, "first") ||
            rank_expect(
                me, rueda_broadcast(me->ctx, spread, 20, RUEDA_FLOAT32, root),
                RUEDA_OK, "broadcast") ||
            rank_expect(me,
                        rueda_allreduce(me->ctx, &numbers[2], &numbers[2], 1,
                                        RUEDA_FLOAT32, RUEDA_SUM),
                        RUEDA_OK, "last"))
            return 1;
        numbers[1] = spread[19];
        if (numbers[0] != wanted || numbers[1] != (float)root ||
            numbers[2] != (float)(me->size * (i % 7)))
            return rank_says(me, "%g, %g and %g in round %d",
                             (double)numbers[0], (double)numbers[1],
                             (double)numbers[2], i);
    }
    return 0;
}

static void a_root_that_runs_ahead_spoils_nothing(void **state)
{
    rank_run(*state, 3, tiny_around_broadcast, NULL);
}

/* Operations of no elements use up no block, and what a rank has shown for one
 * must not pass for what it shows for the next. */
static int empty_before_full(struct test_rank *me)
{
    const int rounds = RANK_IS_SLOW ? 20 : 100;

    for (int i = 0; i < rounds; i++) {
        struct coll_what what = {
            .kind = RUEDA_ALLTOALL, .dtype = RUEDA_INT32, .salt = (unsigned)i};

        if (coll_check(me, &what) != 0)
            return 1;
        what.count = 20001;
        what.is_uneven = true;
        if (coll_check(me, &what) != 0)
            return 1;
        what.count = 0;
        if (coll_check(me, &what) != 0)
            return 1;
        what.kind = RUEDA_ALLREDUCE;
        what.count = 10001;
        what.is_uneven = false;
        what.shared = (1u << me->size) - 1;
        if (coll_check(me, &what) != 0)
            return 1;
    }
    return 0;
}

static void an_empty_operation_is_not_taken_for_the_next(void **state)
{
    rank_run(*state, 3, empty_before_full, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(wrong_arguments_are_refused_and_do_no_harm),
        RANK_EVERYWHERE(a_barrier_does_not_look_at_its_count),
        RANK_EVERYWHERE(two_thousand_mixed_operations_are_right),
        RANK_EVERYWHERE(a_root_that_runs_ahead_spoils_nothing),
        RANK_EVERYWHERE(an_empty_operation_is_not_taken_for_the_next),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
