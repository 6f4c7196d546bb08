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

struct party {
    int size;
    rueda_ctx *ctx[MOST_RANKS];
    int32_t *send[MOST_RANKS];
    int32_t *recv[MOST_RANKS];
};

static void party_open(struct party *party, int size)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    for (size_t i = 0; i < count; i++)
        unsetenv(settings[i].name);
    party->size = size;
    for (int rank = 0; rank < size; rank++) {
        party->send[rank] = malloc(ELEMENTS * sizeof(int32_t));
        party->recv[rank] = malloc(ELEMENTS * sizeof(int32_t));
        assert_non_null(party->send[rank]);
        assert_non_null(party->recv[rank]);
    }
    assert_int_equal(rueda_init_threads(size, NULL, party->ctx), RUEDA_OK);
}

static void party_close(struct party *party)
{
    for (int rank = 0; rank < party->size; rank++) {
        rueda_shutdown(party->ctx[rank]);
        free(party->send[rank]);
        free(party->recv[rank]);
    }
}

static struct rueda_slab *slab_of(const struct party *party, int rank)
{
    return &party->ctx[rank]->job->slab;
}

/* What a rank brings to operation number `turn`. */
static int32_t number(int turn, int rank, size_t i)
{
    return (int32_t)(3 * i) + 10000000 * rank + turn;
}

static void run(struct party *party, int turn, rueda_kind kind, size_t count,
                bool is_in_place)
{
    rueda_handle handles[MOST_RANKS];

    for (int rank = 0; rank < party->size; rank++) {
        struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

        for (size_t i = 0; i < count; i++) {
            party->send[rank][i] = number(turn, rank, i);
            party->recv[rank][i] = is_in_place ? number(turn, rank, i) : -1;
        }
        args.kind = kind;
        args.dtype = RUEDA_INT32;
        args.count = count;
        args.send = is_in_place ? party->recv[rank] : party->send[rank];
        args.recv = party->recv[rank];
        assert_int_equal(rueda_start(party->ctx[rank], &args, &handles[rank]),
                         RUEDA_OK);
    }
    for (int rank = 0; rank < party->size; rank++)
        assert_int_equal(rueda_wait(party->ctx[rank], handles[rank], 50000),
                         RUEDA_OK);
}

static int32_t expected(const struct party *party, int turn, rueda_kind kind,
                        size_t i)
{
    int32_t sum = 0;

    if (kind == RUEDA_BROADCAST)
        return number(turn, 0, i);
    for (int rank = 0; rank < party->size; rank++)
        sum += number(turn, rank, i);
    return sum;
}

static void run_and_check(struct party *party, int turn, rueda_kind kind,
                          size_t count, bool is_in_place)
{
    run(party, turn, kind, count, is_in_place);
    for (int rank = 0; rank < party->size; rank++)
        for (size_t i = 0; i < count; i++) {
            int32_t wanted = expected(party, turn, kind, i);

            if (party->recv[rank][i] != wanted)
                fail_msg("turn %d, count %zu: rank %d has %d at %zu, not %d",
                         turn, count, rank, (int)party->recv[rank][i], i,
                         (int)wanted);
            if (!is_in_place && party->send[rank][i] != number(turn, rank, i))
                fail_msg("turn %d: input %zu of rank %d is spoilt", turn, i,
                         rank);
        }
}

static void run_all_lengths(struct party *party)
{
    /* Odd ones, so that slices end anywhere, or are empty. */
    static const size_t counts[] = {ELEMENTS, 5001,  131072, 32769,
                                    200003,   70001, 16385};
    const int lengths = (int)(sizeof(counts) / sizeof(counts[0]));

    for (int turn = 0; turn < 2 * lengths; turn++) {
        run_and_check(party, turn, RUEDA_ALLREDUCE, counts[turn % lengths],
                      turn % 2 == 0);
        if (turn % 3 == 0)
            run_and_check(party, turn, RUEDA_BROADCAST, 100003, false);
    }
}

static void some_ranks_add_their_own_slices(void **state)
{
    struct party party;

    (void)state;
    party_open(&party, 3);
    run_all_lengths(&party);
    for (int rank = 0; rank < party.size; rank++)
        assert_int_equal(slab_of(&party, rank)->piles_used, 0);
    party_close(&party);
}

static void many_ranks_take_slices_as_they_come(void **state)
{
    struct party party;

    (void)state;
    party_open(&party, MOST_RANKS);
    run_all_lengths(&party);
    assert_true(slab_of(&party, 0)->piles_used > RUEDA_TRAYS);
    for (int rank = 1; rank < party.size; rank++)
        assert_int_equal(slab_of(&party, rank)->piles_used,
                         slab_of(&party, 0)->piles_used);
    party_close(&party);
}

/* In trays nothing is streamed. */
static void trays_are_not_tried(void **state)
{
    struct party party;

    (void)state;
    party_open(&party, 3);
    run_and_check(&party, 0, RUEDA_ALLREDUCE, ELEMENTS, true);
    for (int rank = 0; rank < party.size; rank++)
        assert_int_equal(slab_of(&party, rank)->trial.blocks, 0);
    party_close(&party);
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
