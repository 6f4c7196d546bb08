/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ways to write a block (segment/trial.h) in operations of a job of two
 * ranks that are threads. A score out of all reach makes one way stay. That the
 * algorithm is right otherwise is shown in tests/multi.
 */
#include "api/ctx.h"
#include "base/config.h"
#include "unit/unit.h"

#define RANKS    2
#define SETTLED  1000
#define ELEMENTS ((size_t)1 << 20) /* of int32: what is added in one round */

struct pair {
    rueda_ctx *ctx[RANKS];
    int32_t *send[RANKS];
    int32_t *recv[RANKS];
};

static int pair_open(void **state)
{
    static struct pair pair;
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    for (size_t i = 0; i < count; i++)
        unsetenv(settings[i].name);
    *state = &pair;
    for (int rank = 0; rank < RANKS; rank++) {
        pair.send[rank] = malloc(ELEMENTS * sizeof(int32_t));
        pair.recv[rank] = malloc(ELEMENTS * sizeof(int32_t));
        if (pair.send[rank] == NULL || pair.recv[rank] == NULL)
            return -1;
    }
    return rueda_init_threads(RANKS, NULL, pair.ctx) == RUEDA_OK ? 0 : -1;
}

static int pair_close(void **state)
{
    struct pair *pair = *state;

    for (int rank = 0; rank < RANKS; rank++) {
        rueda_shutdown(pair->ctx[rank]);
        free(pair->send[rank]);
        free(pair->recv[rank]);
    }
    return 0;
}

static struct rueda_trial *trial_of(struct pair *pair, int rank)
{
    return &rueda_engine_place(&pair->ctx[rank]->engine)->slab->trial;
}

/* What a rank brings. */
static int32_t number(int rank, size_t i)
{
    return (int32_t)(3 * i) + 100000000 * rank;
}

/* What a rank must get, count as in the arguments. */
static int32_t expected(rueda_kind kind, size_t count, int rank, size_t i)
{
    const size_t mine = (size_t)rank * count;

    switch (kind) {
    case RUEDA_ALLREDUCE:
        return number(0, i) + number(1, i);
    case RUEDA_REDUCE_SCATTER:
        return number(0, mine + i) + number(1, mine + i);
    case RUEDA_ALLGATHER:
        return number((int)(i / count), i % count);
    case RUEDA_ALLTOALL:
        return number((int)(i / count), mine + i % count);
    default:
        return number(0, i);
    }
}

static void run(struct pair *pair, rueda_kind kind, size_t count)
{
    rueda_handle handles[RANKS];

    for (int rank = 0; rank < RANKS; rank++) {
        struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

        for (size_t i = 0; i < ELEMENTS; i++)
            pair->send[rank][i] = number(rank, i);
        memset(pair->recv[rank], 0, ELEMENTS * sizeof(int32_t));
        args.kind = kind;
        args.dtype = RUEDA_INT32;
        args.count = count;
        args.send = pair->send[rank];
        args.recv = pair->recv[rank];
        assert_int_equal(rueda_start(pair->ctx[rank], &args, &handles[rank]),
                         RUEDA_OK);
    }
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(rueda_wait(pair->ctx[rank], handles[rank], 50000),
                         RUEDA_OK);
}

static void check(const struct pair *pair, rueda_kind kind, size_t count)
{
    const bool has_pieces = kind == RUEDA_ALLGATHER || kind == RUEDA_ALLTOALL;

    for (int rank = 0; rank < RANKS; rank++)
        for (size_t i = 0; i < (has_pieces ? RANKS * count : count); i++)
            if (pair->recv[rank][i] != expected(kind, count, rank, i))
                fail_msg("kind %d, count %zu: rank %d has %d at %zu, not %d",
                         (int)kind, count, rank, (int)pair->recv[rank][i], i,
                         (int)expected(kind, count, rank, i));
}

static void every_collective_is_right_both_ways(void **state)
{
    static const struct {
        rueda_kind kind;
        size_t count; /* odd, so that slices end anywhere */
    } works[] = {
        {RUEDA_ALLREDUCE, ELEMENTS - 3},
        {RUEDA_REDUCE_SCATTER, ELEMENTS / 2 - 3},
        {RUEDA_ALLGATHER, ELEMENTS / 2 - 3},
        {RUEDA_ALLTOALL, ELEMENTS / 2 - 3},
        {RUEDA_BROADCAST, ELEMENTS / 2 - 3},
    };
    static const int scores[] = {-SETTLED, SETTLED};
    struct pair *pair = *state;

    for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++)
        for (int s = 0; s < 2; s++) {
            for (int rank = 0; rank < RANKS; rank++)
                trial_of(pair, rank)->score = scores[s];
            run(pair, works[w].kind, works[w].count);
            check(pair, works[w].kind, works[w].count);
        }
}

/* Members may come to different ends. */
static void one_may_stream_while_the_other_stores(void **state)
{
    struct pair *pair = *state;

    trial_of(pair, 0)->score = SETTLED;
    trial_of(pair, 1)->score = -SETTLED;
    run(pair, RUEDA_ALLREDUCE, ELEMENTS);
    check(pair, RUEDA_ALLREDUCE, ELEMENTS);
}

static void long_operations_are_tried_and_all_count_alike(void **state)
{
    struct pair *pair = *state;

    assert_int_equal(trial_of(pair, 0)->blocks, 0);
    run(pair, RUEDA_ALLREDUCE, ELEMENTS);
    check(pair, RUEDA_ALLREDUCE, ELEMENTS);
    assert_true(trial_of(pair, 0)->blocks > 2);
    assert_int_equal(trial_of(pair, 0)->blocks, trial_of(pair, 1)->blocks);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_not_equal(trial_of(pair, rank)->score, 0);
        assert_true(trial_of(pair, rank)->spent[RUEDA_WAY_STORE] > 0);
        assert_true(trial_of(pair, rank)->spent[RUEDA_WAY_STREAM] > 0);
    }
}

static void short_operations_are_not_tried(void **state)
{
    struct pair *pair = *state;

    run(pair, RUEDA_ALLREDUCE, 1000);
    check(pair, RUEDA_ALLREDUCE, 1000);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(trial_of(pair, rank)->blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_collective_is_right_both_ways,
                                        pair_open, pair_close),
        cmocka_unit_test_setup_teardown(one_may_stream_while_the_other_stores,
                                        pair_open, pair_close),
        cmocka_unit_test_setup_teardown(
            long_operations_are_tried_and_all_count_alike, pair_open,
            pair_close),
        cmocka_unit_test_setup_teardown(short_operations_are_not_tried,
                                        pair_open, pair_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
