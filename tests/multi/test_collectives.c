/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of collective, in processes and threads, directly and by
 * messages: sizes around every threshold, all numbers, all algorithms. */
#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "support/coll_check.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const int sizes[] = {1, 2, 3, 4, 7};

/* In place and not, even and uneven, with this many elements. */
static int check_ways(struct party *me, struct coll_what what)
{
    const bool has_pieces = what.kind == RUEDA_ALLGATHER ||
                            what.kind == RUEDA_ALLTOALL ||
                            what.kind == RUEDA_REDUCE_SCATTER;
    const bool has_in_place = what.kind != RUEDA_ALLTOALL &&
                              what.kind != RUEDA_REDUCE_SCATTER;

    for (int way = 0; way < 4; way++) {
        what.is_in_place = (way & 1) != 0;
        what.is_uneven = (way & 2) != 0;
        if ((what.is_uneven && !has_pieces) ||
            (what.is_in_place && !has_in_place))
            continue;
        if (coll_check(me, &what) != 0)
            return 1;
    }
    return 0;
}

static int check_counts(struct party *me, struct coll_what what,
                        const size_t *counts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        what.count = counts[i];
        what.salt++;
        if (check_ways(me, what) != 0)
            return 1;
    }
    return 0;
}

static void run_on_all_sizes(void **state, party_fn body, void *arg)
{
    for (size_t i = 0; i < LENGTH(sizes); i++)
        party_run(*state, sizes[i], body, arg);
}

/* ---- Sizes ------------------------------------------------------------- */

/* Tiny up to 14 floats; small up to 8192 of them on 2 ranks, fewer on more; a
 * block is 16384 to 65536. */
static const size_t float_counts[] = {
    0,    1,    13,   14,    15,    1365,  1366,  2730,  2731,   4096,
    8191, 8192, 8193, 16384, 16385, 65535, 65536, 65537, 100003,
};

static int allreduce_sizes(struct party *me)
{
    const struct coll_what what = {.kind = RUEDA_ALLREDUCE,
                                   .dtype = RUEDA_FLOAT32};

    return check_counts(me, what, float_counts, LENGTH(float_counts));
}

static void an_allreduce_is_right_around_every_threshold(void **state)
{
    run_on_all_sizes(state, allreduce_sizes, NULL);
}

static int large_allreduce(struct party *me)
{
    static const size_t counts[] = {1 << 20, (40 << 20) / 4};
    const struct coll_what what = {.kind = RUEDA_ALLREDUCE,
                                   .dtype = RUEDA_FLOAT32};

    return check_counts(me, what, counts, PARTY_IS_SLOW ? 1 : LENGTH(counts));
}

static void an_allreduce_of_40_mib_is_right(void **state)
{
    party_run(*state, 2, large_allreduce, NULL);
}

static int broadcasts(struct party *me)
{
    static const size_t counts[] = {0,    1,     14,    15,
                                    8193, 65536, 65537, 300001};
    struct coll_what what = {.kind = RUEDA_BROADCAST, .dtype = RUEDA_FLOAT32};

    for (what.root = 0; what.root < me->size; what.root++)
        if (check_counts(me, what, counts, LENGTH(counts)) != 0)
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

static int pieces(struct party *me)
{
    const rueda_kind *kind = me->arg;
    const struct coll_what what = {.kind = *kind, .dtype = RUEDA_INT32};

    return check_counts(me, what, piece_counts, LENGTH(piece_counts));
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

/* Everybody has written its number when the barrier ends. */
static int barriers(struct party *me)
{
    volatile unsigned char *came = me->board->room;

    for (unsigned char round = 1; round <= 100; round++) {
        came[me->rank] = round;
        if (party_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
            return 1;
        for (int i = 0; i < me->size; i++)
            if (came[i] != round)
                return party_says(me, "rank %d had not come in round %d", i,
                                  round);
        if (party_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
            return 1;
    }
    return 0;
}

static void a_barrier_ends_when_all_have_come(void **state)
{
#ifdef PARTY_TSAN
    const struct party_place *place = *state;

    if (place->is_threads) {
        print_message("skipped: the board is read without atomics\n");
        skip();
    }
#endif
    run_on_all_sizes(state, barriers, NULL);
}

/* ---- Numbers ----------------------------------------------------------- */

static bool is_float(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16 ||
           dtype == RUEDA_FLOAT32 || dtype == RUEDA_FLOAT64;
}

static int check_numbers(struct party *me, struct coll_what what)
{
    static const size_t counts[] = {5, 3001, 40001};

    return check_counts(me, what, counts,
                        what.kind == RUEDA_ALLREDUCE ? LENGTH(counts) : 2);
}

static int all_numbers(struct party *me)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_REDUCE_SCATTER};

    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (int reduction = 0; reduction < RUEDA_REDUCTION_COUNT; reduction++)
            for (size_t i = 0; i < LENGTH(kinds); i++) {
                struct coll_what what = {
                    .kind = kinds[i],
                    .dtype = (rueda_dtype)dtype,
                    .reduction = (rueda_reduction)reduction,
                };

                if (reduction == RUEDA_ADASUM &&
                    (!is_float(what.dtype) || what.kind != RUEDA_ALLREDUCE))
                    continue;
                if (check_numbers(me, what) != 0)
                    return 1;
            }
    return 0;
}

/* Averages are exact on powers of two. */
static void every_dtype_can_be_reduced_in_every_way(void **state)
{
    party_run(*state, 1, all_numbers, NULL);
    party_run(*state, 2, all_numbers, NULL);
    party_run(*state, 4, all_numbers, NULL);
}

static int scaled(struct party *me)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_REDUCE_SCATTER};

    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < LENGTH(kinds); i++) {
            const struct coll_what what = {
                .kind = kinds[i],
                .dtype = (rueda_dtype)dtype,
                .prescale = 2,
                .postscale = 0.25,
            };

            if (check_numbers(me, what) != 0)
                return 1;
        }
    return 0;
}

static void scales_are_applied_before_and_after(void **state)
{
    party_run(*state, 3, scaled, NULL);
    party_run(*state, 4, scaled, NULL);
}

/* ---- Algorithms -------------------------------------------------------- */

static int each_kind(struct party *me)
{
    static const size_t counts[] = {0, 1, 100, 5001, 70001};
    const rueda_kind *kind = me->arg;
    const struct coll_what what = {.kind = *kind,
                                   .dtype = RUEDA_FLOAT32,
                                   .root = me->size - 1};

    return check_counts(me, what, counts, LENGTH(counts));
}

static void every_algorithm_is_right_when_it_is_asked_for(void **state)
{
    const struct party_place *place = *state;

    for (int kind = 0; kind < RUEDA_BARRIER; kind++)
        for (int i = 0; rueda_algos[i] != NULL; i++) {
            rueda_kind one = (rueda_kind)kind;
            char text[64];

            if ((rueda_algos[i]->kinds >> kind & 1u) == 0 ||
                rueda_algos[i]->does_adasum)
                continue;
            snprintf(text, sizeof(text), "%s:%s", rueda_kind_str(one),
                     rueda_algos[i]->name);
            setenv("RUEDA_ALGO", text, 1);
            party_run(place, 3, each_kind, &one);
            party_run(place, 4, each_kind, &one);
            unsetenv("RUEDA_ALGO");
        }
}

/* ---- Wrong arguments --------------------------------------------------- */

/* Refused on all ranks alike, and the context is as good as before. */
static int wrong_arguments(struct party *me)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    float buf[16] = {0};
    rueda_handle handle;

    args.kind = RUEDA_ALLTOALL;
    args.send = buf;
    args.recv = buf;
    args.count = 2;
    if (party_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                     "alltoall in place") != 0)
        return 1;
    args.kind = RUEDA_ALLREDUCE;
    args.recv = buf + 1;
    if (party_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                     "overlap") != 0)
        return 1;
    args.recv = NULL;
    if (party_expect(me, rueda_start(me->ctx, &args, &handle),
                     RUEDA_ERR_INVALID, "no result") != 0)
        return 1;
    args.recv = buf;
    args.dtype = (rueda_dtype)77;
    if (party_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                     "dtype") != 0)
        return 1;
    args.dtype = RUEDA_INT32;
    args.reduction = RUEDA_ADASUM;
    if (party_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                     "adasum of whole numbers") != 0)
        return 1;
    args.reduction = RUEDA_SUM;
    args.kind = RUEDA_BROADCAST;
    args.root = me->size;
    if (party_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_INVALID,
                     "root") != 0)
        return 1;
    if (rueda_error(me->ctx)[0] != '\0')
        return party_says(me, "failed for good: %s", rueda_error(me->ctx));
    return party_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
}

static void wrong_arguments_are_refused_and_do_no_harm(void **state)
{
    party_run(*state, 2, wrong_arguments, NULL);
}

/* A barrier has no elements, whatever its arguments say. */
static int barrier_with_count(struct party *me)
{
    static const size_t counts[] = {1, 10, 1000000};
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

    args.kind = RUEDA_BARRIER;
    for (size_t i = 0; i < LENGTH(counts); i++) {
        args.count = counts[i];
        if (party_expect(me, rueda_run(me->ctx, &args), RUEDA_OK,
                         "barrier with a count") != 0)
            return 1;
    }
    return 0;
}

static void a_barrier_does_not_look_at_its_count(void **state)
{
    party_run(*state, 2, barrier_with_count, NULL);
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

static int mixed_operations(struct party *me)
{
    const int operations = PARTY_IS_SLOW ? 300 : 2000;
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
    party_run(*state, 4, mixed_operations, NULL);
}

/* The root of a broadcast waits for nobody, so it comes to the next operation
 * while others still read what it showed in the one before. */
static int tiny_around_broadcast(struct party *me)
{
    const int rounds = PARTY_IS_SLOW ? 500 : 4000;

    for (int i = 0; i < rounds; i++) {
        struct coll_what sum = {.kind = RUEDA_ALLREDUCE,
                                .dtype = RUEDA_FLOAT32,
                                .count = 3,
                                .salt = (unsigned)i};
        struct coll_what spread = {.kind = RUEDA_BROADCAST,
                                   .dtype = RUEDA_FLOAT32,
                                   .count = i % 2 == 0 ? 3 : 20,
                                   .root = i % me->size};

        if (coll_check(me, &sum) != 0 || coll_check(me, &spread) != 0)
            return 1;
        sum.salt += 77;
        if (coll_check(me, &sum) != 0)
            return 1;
    }
    return 0;
}

static void a_root_that_runs_ahead_spoils_nothing(void **state)
{
    party_run(*state, 3, tiny_around_broadcast, NULL);
}

/* Operations of no elements use up no block, and what a rank has shown for one
 * must not pass for what it shows for the next. */
static int empty_before_full(struct party *me)
{
    const int rounds = PARTY_IS_SLOW ? 20 : 100;

    for (int i = 0; i < rounds; i++) {
        struct coll_what what = {.kind = RUEDA_ALLTOALL,
                                 .dtype = RUEDA_INT32,
                                 .salt = (unsigned)i};

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
    party_run(*state, 3, empty_before_full, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PARTY_EVERYWHERE(an_allreduce_is_right_around_every_threshold),
        PARTY_EVERYWHERE(an_allreduce_of_40_mib_is_right),
        PARTY_EVERYWHERE(a_broadcast_is_right_from_every_root),
        PARTY_EVERYWHERE(an_allgather_is_right_with_even_and_uneven_pieces),
        PARTY_EVERYWHERE(an_alltoall_is_right_with_even_and_uneven_pieces),
        PARTY_EVERYWHERE(a_reduce_scatter_is_right_with_even_and_uneven_pieces),
        PARTY_EVERYWHERE(a_barrier_ends_when_all_have_come),
        PARTY_EVERYWHERE(every_dtype_can_be_reduced_in_every_way),
        PARTY_EVERYWHERE(scales_are_applied_before_and_after),
        PARTY_EVERYWHERE(every_algorithm_is_right_when_it_is_asked_for),
        PARTY_EVERYWHERE(wrong_arguments_are_refused_and_do_no_harm),
        PARTY_EVERYWHERE(a_barrier_does_not_look_at_its_count),
        PARTY_EVERYWHERE(two_thousand_mixed_operations_are_right),
        PARTY_EVERYWHERE(a_root_that_runs_ahead_spoils_nothing),
        PARTY_EVERYWHERE(an_empty_operation_is_not_taken_for_the_next),
    };

    party_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
