/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adasum against a serial reference that combines whole vectors in fp64, in the
 * order that adasum.c promises.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "device/host.h"
#include "support/adasum.h"
#include "support/coll_case.h"
#include "support/numbers.h"

#define MAX_RANKS 16

/* ---- One run --------------------------------------------------------- */

static double number_of(int rank, size_t i)
{
    return sin((double)(i * 3 + 1) * 0.37 + rank) + (rank % 3 == 0 ? 0.5 : 0.0);
}

/* Relative to the largest number of the result. */
static double tolerance_of(rueda_dtype dtype)
{
    switch (dtype) {
    case RUEDA_FLOAT64:
        return 1e-12;
    case RUEDA_FLOAT32:
        return 1e-5;
    case RUEDA_FLOAT16:
        return 5e-3;
    default:
        return 4e-2;
    }
}

struct run {
    int size;
    rueda_dtype dtype;
    size_t count;
    bool is_in_place;
    double prescale;
    double postscale;
    double (*number_of)(int rank, size_t i);
    double *numbers[MAX_RANKS]; /* the inputs; [0]: then the reference */
    char *send[MAX_RANKS];
    char *recv[MAX_RANKS];
    struct rueda_coll coll[MAX_RANKS];
};

static void prepare(struct run *run, int rank)
{
    const size_t bytes = run->count * rueda_dtype_size(run->dtype);
    struct rueda_coll *coll = &run->coll[rank];

    run->numbers[rank] = calloc(run->count + 1, sizeof(double));
    run->send[rank] = malloc(bytes + 1);
    run->recv[rank] = run->is_in_place ? run->send[rank] : malloc(bytes + 1);
    assert_true(run->numbers[rank] && run->send[rank] && run->recv[rank]);
    for (size_t i = 0; i < run->count; i++) {
        numbers_store(run->dtype, run->send[rank], i, run->number_of(rank, i));
        run->numbers[rank][i] =
            numbers_load(run->dtype, run->send[rank], i) * run->prescale;
    }
    memset(coll, 0, sizeof(*coll));
    coll->kind = RUEDA_ALLREDUCE;
    coll->arith = (struct rueda_arith){run->dtype, RUEDA_ADASUM, run->prescale,
                                       run->postscale};
    coll->elem_bytes = rueda_dtype_size(run->dtype);
    coll->count = run->count;
    coll->send = run->send[rank];
    coll->recv = run->recv[rank];
}

static void compare(const struct run *run, int rank)
{
    const double *right = run->numbers[0];
    const size_t bytes = run->count * rueda_dtype_size(run->dtype);
    double largest = 0.0;

    /* All ranks have the same bits. */
    assert_memory_equal(run->recv[rank], run->recv[0], bytes);
    for (size_t i = 0; i < run->count; i++)
        largest = fmax(largest, fabs(right[i]));
    for (size_t i = 0; i < run->count; i++) {
        const double result = numbers_load(run->dtype, run->recv[rank], i);
        const double error = fabs(result - right[i] * run->postscale);

        if (!(error <= tolerance_of(run->dtype) * largest * run->postscale))
            fail_msg("%d ranks, %s, number %zu of %zu: %g, not %g", run->size,
                     rueda_dtype_str(run->dtype), i, run->count, result,
                     right[i] * run->postscale);
    }
}

static void check_run(struct run *run)
{
    struct ranks *ranks = ranks_open(run->size);

    for (int i = 0; i < run->size; i++)
        prepare(run, i);
    adasum_serial(run->numbers, run->size, run->count);

    assert_int_equal(ranks_run(ranks, &rueda_algo_adasum, run->coll), RUEDA_OK);

    for (int i = 0; i < run->size; i++)
        compare(run, i);
    for (int i = 0; i < run->size; i++) {
        for (size_t k = 0; k < run->count && !run->is_in_place; k += 97) {
            char whole[8] = {0};

            numbers_store(run->dtype, whole, 0, run->number_of(i, k));
            assert_memory_equal(whole,
                                run->send[i] + k * rueda_dtype_size(run->dtype),
                                rueda_dtype_size(run->dtype));
        }
        if (!run->is_in_place)
            free(run->recv[i]);
        free(run->send[i]);
        free(run->numbers[i]);
    }
    ranks_close(ranks);
}

static struct run run_of(int size, rueda_dtype dtype, size_t count)
{
    struct run run = {
        .size = size,
        .dtype = dtype,
        .count = count,
        .prescale = 1.0,
        .postscale = 1.0,
        .number_of = number_of,
    };

    return run;
}

/* ---- Tests ----------------------------------------------------------- */

static void adasum_agrees_with_the_reference_for_all_sizes(void **state)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 16};
    static const size_t counts[] = {0, 1, 2, 3, 17, 1000, 70001};

    (void)state;
    for (int s = 0; s < 8; s++)
        for (int k = 0; k < 7; k++) {
            struct run run = run_of(sizes[s], RUEDA_FLOAT32, counts[k]);

            run.is_in_place = (s + k) % 2 == 0;
            check_run(&run);
        }
}

static void adasum_agrees_with_the_reference_for_all_floats(void **state)
{
    static const rueda_dtype dtypes[] = {RUEDA_FLOAT16, RUEDA_BFLOAT16,
                                         RUEDA_FLOAT32, RUEDA_FLOAT64};

    (void)state;
    for (int d = 0; d < 4; d++)
        for (int size = 2; size <= 8; size += 3) {
            struct run run = run_of(size, dtypes[d], 501);

            check_run(&run);
        }
}

static void adasum_applies_both_scales(void **state)
{
    struct run run = run_of(6, RUEDA_FLOAT64, 1000);

    (void)state;
    run.prescale = 0.5;
    run.postscale = 8.0;
    check_run(&run);
}

static double zero_on_even_ranks(int rank, size_t i)
{
    return rank % 2 == 0 ? 0.0 : number_of(rank, i);
}

static void vectors_of_zeros_add_nothing(void **state)
{
    struct run run = run_of(5, RUEDA_FLOAT32, 300);

    (void)state;
    run.number_of = zero_on_even_ranks;
    check_run(&run);
}

static double same_everywhere(int rank, size_t i)
{
    (void)rank;
    return (double)(i % 8) + 1.0;
}

static void equal_vectors_give_the_same_vector(void **state)
{
    struct run run = run_of(8, RUEDA_FLOAT32, 100);

    (void)state;
    run.number_of = same_everywhere;
    check_run(&run);
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_adasum,
                                .kind = RUEDA_ALLREDUCE,
                                .dtype = RUEDA_FLOAT32,
                                .reduction = RUEDA_ADASUM,
                                .count = 50000};

    (void)state;
    coll_case_check_leaving(&c, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adasum_agrees_with_the_reference_for_all_sizes),
        cmocka_unit_test(adasum_agrees_with_the_reference_for_all_floats),
        cmocka_unit_test(adasum_applies_both_scales),
        cmocka_unit_test(vectors_of_zeros_add_nothing),
        cmocka_unit_test(equal_vectors_give_the_same_vector),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
