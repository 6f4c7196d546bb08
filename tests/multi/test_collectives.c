/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of collective, in processes and threads, directly and by
 * messages, with sizes around every threshold. */
#include "support/coll_check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const int sizes[] = {1, 2, 3, 4, 7};

static void run_on_all_sizes(void **state, rank_fn body, void *arg)
{
    for (size_t i = 0; i < LENGTH(sizes); i++)
        rank_run(*state, sizes[i], body, arg);
}

/* ---- Sizes ------------------------------------------------------------- */

/* Tiny up to 14 floats; added by every rank up to 682, 1365 or 2048 on 7, 4 or
 * 3 ranks; shared memory is asked for from 8192 on; two blocks from 16384 on.
 */
static const size_t float_counts[] = {
    0,    1,    13,   14,   15,    682,   683,   1365,  1366,  2048,   2049,
    4096, 8191, 8192, 8193, 16384, 16385, 65535, 65536, 65537, 100003,
};

static int allreduce_sizes(struct test_rank *me)
{
    const struct coll_what what = {.kind = RUEDA_ALLREDUCE,
                                   .dtype = RUEDA_FLOAT32};

    return coll_check_counts(me, &what, float_counts, LENGTH(float_counts));
}

static void an_allreduce_is_right_around_every_threshold(void **state)
{
    run_on_all_sizes(state, allreduce_sizes, NULL);
}

static int large_allreduce(struct test_rank *me)
{
    static const size_t counts[] = {1 << 20, (1 << 20) + 1, (40 << 20) / 4};
    const struct coll_what what = {.kind = RUEDA_ALLREDUCE,
                                   .dtype = RUEDA_FLOAT32};

    return coll_check_counts(me, &what, counts,
                             RANK_IS_SLOW ? 1 : LENGTH(counts));
}

static void an_allreduce_of_40_mib_is_right(void **state)
{
    rank_run(*state, 2, large_allreduce, NULL);
}

static int broadcasts(struct test_rank *me)
{
    static const size_t counts[] = {0, 1, 14, 15, 8193, 65536, 65537, 150001};
    struct coll_what what = {.kind = RUEDA_BROADCAST, .dtype = RUEDA_FLOAT32};

    for (what.root = 0; what.root < me->size; what.root++)
        if (coll_check_counts(me, &what, counts, LENGTH(counts)) != 0)
            return 1;
    return 0;
}

static void a_broadcast_is_right_from_every_root(void **state)
{
    run_on_all_sizes(state, broadcasts, NULL);
}

/* Of one piece. */
static const size_t piece_counts[] = {0,    1,    14,    15,   1000,
                                      8191, 8193, 20001, 65537};

static int pieces(struct test_rank *me)
{
    const rueda_kind *kind = me->arg;
    const struct coll_what what = {.kind = *kind, .dtype = RUEDA_INT32};

    return coll_check_counts(me, &what, piece_counts, LENGTH(piece_counts));
}

static void an_allgather_is_right_with_even_and_uneven_pieces(void **state)
{
    rueda_kind kind = RUEDA_ALLGATHER;

    run_on_all_sizes(state, pieces, &kind);
}

static void an_alltoall_is_right_with_even_and_uneven_pieces(void **state)
{
    rueda_kind kind = RUEDA_ALLTOALL;

    run_on_all_sizes(state, pieces, &kind);
}

static void a_reduce_scatter_is_right_with_even_and_uneven_pieces(void **state)
{
    rueda_kind kind = RUEDA_REDUCE_SCATTER;

    run_on_all_sizes(state, pieces, &kind);
}

/* Every rank has written its number when the barrier ends. */
static int barriers(struct test_rank *me)
{
    volatile unsigned char *came = me->board->room;

    for (unsigned char round = 1; round <= 100; round++) {
        came[me->rank] = round;
        if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
            return 1;
        for (int i = 0; i < me->size; i++)
            if (came[i] != round)
                return rank_says(me, "rank %d had not come in round %d", i,
                                 round);
        if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
            return 1;
    }
    return 0;
}

static void a_barrier_ends_when_all_have_come(void **state)
{
    run_on_all_sizes(state, barriers, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(an_allreduce_is_right_around_every_threshold),
        RANK_EVERYWHERE(an_allreduce_of_40_mib_is_right),
        RANK_EVERYWHERE(a_broadcast_is_right_from_every_root),
        RANK_EVERYWHERE(an_allgather_is_right_with_even_and_uneven_pieces),
        RANK_EVERYWHERE(an_alltoall_is_right_with_even_and_uneven_pieces),
        RANK_EVERYWHERE(a_reduce_scatter_is_right_with_even_and_uneven_pieces),
        RANK_EVERYWHERE(a_barrier_ends_when_all_have_come),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
