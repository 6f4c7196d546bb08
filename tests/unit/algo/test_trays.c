/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduces through trays, of some ranks and of so many that they take slices
 * from piles. Ranks are threads. One operation follows another, of all lengths,
 * in place and not, and others through the rings between them.
 */
#include "api/ctx.h"
#include "base/config.h"
#include "unit/unit.h"

#define MOST_RANKS 9
#define ELEMENTS   ((size_t)400000) /* of int32: a dozen blocks */

struct tray_ranks {
    int size;
    rueda_ctx *ctx[MOST_RANKS];
    int32_t *send[MOST_RANKS];
    int32_t *recv[MOST_RANKS];
};

static void ranks_open(struct tray_ranks *ranks, int size)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    for (size_t i = 0; i < count; i++)
        unsetenv(settings[i].name);
    ranks->size = size;
    for (int rank = 0; rank < size; rank++) {
        ranks->send[rank] = malloc(ELEMENTS * sizeof(int32_t));
        ranks->recv[rank] = malloc(ELEMENTS * sizeof(int32_t));
        assert_non_null(ranks->send[rank]);
        assert_non_null(ranks->recv[rank]);
    }
    assert_int_equal(rueda_init_threads(size, NULL, ranks->ctx), RUEDA_OK);
}

static void ranks_close(struct tray_ranks *ranks)
{
    for (int rank = 0; rank < ranks->size; rank++) {
        rueda_shutdown(ranks->ctx[rank]);
        free(ranks->send[rank]);
        free(ranks->recv[rank]);
    }
}

static struct rueda_slab *slab_of(const struct tray_ranks *ranks, int rank)
{
    return rueda_engine_place(&ranks->ctx[rank]->engine)->slab;
}

/* What a rank brings to operation number `turn`. */
static int32_t number(int turn, int rank, size_t i)
{
    return (int32_t)(3 * i) + 10000000 * rank + turn;
}

static void run(struct tray_ranks *ranks, int turn, rueda_kind kind,
                size_t count, bool is_in_place)
{
    rueda_handle handles[MOST_RANKS];

    for (int rank = 0; rank < ranks->size; rank++) {
        struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

        for (size_t i = 0; i < count; i++) {
            ranks->send[rank][i] = number(turn, rank, i);
            ranks->recv[rank][i] = is_in_place ? number(turn, rank, i) : -1;
        }
        args.kind = kind;
        args.dtype = RUEDA_INT32;
        args.count = count;
        args.send = is_in_place ? ranks->recv[rank] : ranks->send[rank];
        args.recv = ranks->recv[rank];
        assert_int_equal(rueda_start(ranks->ctx[rank], &args, &handles[rank]),
                         RUEDA_OK);
    }
    for (int rank = 0; rank < ranks->size; rank++)
        assert_int_equal(rueda_wait(ranks->ctx[rank], handles[rank], 50000),
                         RUEDA_OK);
}

static int32_t expected(const struct tray_ranks *ranks, int turn,
                        rueda_kind kind, size_t i)
{
    int32_t sum = 0;

    if (kind == RUEDA_BROADCAST)
        return number(turn, 0, i);
    for (int rank = 0; rank < ranks->size; rank++)
        sum += number(turn, rank, i);
    return sum;
}

static void run_and_check(struct tray_ranks *ranks, int turn, rueda_kind kind,
                          size_t count, bool is_in_place)
{
    run(ranks, turn, kind, count, is_in_place);
    for (int rank = 0; rank < ranks->size; rank++)
        for (size_t i = 0; i < count; i++) {
            int32_t wanted = expected(ranks, turn, kind, i);

            if (ranks->recv[rank][i] != wanted)
                fail_msg("turn %d, count %zu: rank %d has %d at %zu, not %d",
                         turn, count, rank, (int)ranks->recv[rank][i], i,
                         (int)wanted);
            if (!is_in_place && ranks->send[rank][i] != number(turn, rank, i))
                fail_msg("turn %d: input %zu of rank %d is spoilt", turn, i,
                         rank);
        }
}

static void run_all_lengths(struct tray_ranks *ranks)
{
    /* Odd ones, so that slices end anywhere, or are empty. */
    static const size_t counts[] = {ELEMENTS, 5001,  131072, 32769,
                                    200003,   70001, 16385};
    const int lengths = (int)(sizeof(counts) / sizeof(counts[0]));

    for (int turn = 0; turn < 2 * lengths; turn++) {
        run_and_check(ranks, turn, RUEDA_ALLREDUCE, counts[turn % lengths],
                      turn % 2 == 0);
        if (turn % 3 == 0)
            run_and_check(ranks, turn, RUEDA_BROADCAST, 100003, false);
    }
}

static void some_ranks_add_their_own_slices(void **state)
{
    struct tray_ranks ranks;

    (void)state;
    ranks_open(&ranks, 3);
    run_all_lengths(&ranks);
    for (int rank = 0; rank < ranks.size; rank++)
        assert_int_equal(slab_of(&ranks, rank)->piles_used, 0);
    ranks_close(&ranks);
}

static void many_ranks_take_slices_as_they_come(void **state)
{
    struct tray_ranks ranks;

    (void)state;
    ranks_open(&ranks, MOST_RANKS);
    run_all_lengths(&ranks);
    assert_true(slab_of(&ranks, 0)->piles_used > RUEDA_TRAYS);
    for (int rank = 1; rank < ranks.size; rank++)
        assert_int_equal(slab_of(&ranks, rank)->piles_used,
                         slab_of(&ranks, 0)->piles_used);
    ranks_close(&ranks);
}

/* In trays nothing is streamed. */
static void trays_are_not_tried(void **state)
{
    struct tray_ranks ranks;

    (void)state;
    ranks_open(&ranks, 3);
    run_and_check(&ranks, 0, RUEDA_ALLREDUCE, ELEMENTS, true);
    for (int rank = 0; rank < ranks.size; rank++)
        assert_int_equal(slab_of(&ranks, rank)->trial.blocks, 0);
    ranks_close(&ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_ranks_add_their_own_slices),
        cmocka_unit_test(many_ranks_take_slices_as_they_come),
        cmocka_unit_test(trays_are_not_tried),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
