/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on several hosts, without shared memory: that `direct` does the stages
 * inside a host is shown in tests/python/test_hier.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "algo/hier.h"
#include "algo/registry.h"
#include "support/coll_case.h"

/* Where ranks are: evenly, unevenly, one a host, and all mixed up. */
struct shape {
    int size;
    int carriers;
    int hosts[9];
};

static const struct shape shapes[] = {
    {4, 2, {0, 0, 1, 1}},       {4, 1, {0, 0, 0, 1}},
    {3, 1, {0, 1, 2}},          {9, 2, {0, 0, 0, 0, 1, 1, 2, 2, 2}},
    {6, 2, {2, 0, 2, 0, 0, 0}}, {7, 3, {5, 5, 5, 1, 1, 1, 1}},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static struct ranks *arranged(const struct shape *shape)
{
    struct ranks *ranks = ranks_open(shape->size);

    ranks_arrange(ranks, shape->hosts);
    return ranks;
}

/* ---- The hierarchy ---------------------------------------------------- */

static void carriers_are_what_the_smallest_host_has(void **state)
{
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        for (int i = 0; i < ranks->size; i++)
            assert_int_equal(ranks->place[i].hier->carriers,
                             shapes[s].carriers);
        ranks_close(ranks);
    }
}

static void one_host_has_no_hierarchy(void **state)
{
    const int hosts[3] = {1, 1, 1};
    struct ranks *ranks = ranks_open(3);

    (void)state;
    ranks_arrange(ranks, hosts);
    for (int i = 0; i < 3; i++)
        assert_null(ranks->place[i].hier);
    ranks_close(ranks);
}

static void members_of_a_slice_have_one_place_on_their_hosts(void **state)
{
    struct ranks *ranks = arranged(&shapes[4]); /* 2 0 2 0 0 0 */
    const struct rueda_hier *hier = ranks->place[4].hier;
    const struct rueda_mesh *mesh = &ranks->place[2].hier->level[1].mesh;

    (void)state;
    assert_int_equal(hier->index, 2);
    assert_false(rueda_hier_has_slice(hier));
    assert_int_equal(hier->level[RUEDA_HIER_LOCAL].mesh.size, 4);
    assert_int_equal(hier->level[RUEDA_HIER_LOCAL].mesh.ranks[0], 1);
    assert_int_equal(hier->level[RUEDA_HIER_LOCAL].mesh.rank, 2);
    assert_int_equal(mesh->size, 2);
    assert_int_equal(mesh->rank, 0);
    assert_int_equal(mesh->ranks[0], 2);
    assert_int_equal(mesh->ranks[1], 3);
    ranks_close(ranks);
}

/* ---- Exact numbers ---------------------------------------------------- */

static void allreduce_is_right_for_all_shapes(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, 1000, 70001};
    struct coll_case c = {.algo = &rueda_algo_hier,
                          .kind = RUEDA_ALLREDUCE,
                          .dtype = RUEDA_FLOAT32};

    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            for (int in_place = 0; in_place < 2; in_place++) {
                c.count = counts[k];
                c.is_in_place = in_place != 0;
                coll_case_check(ranks, &c);
            }
        ranks_close(ranks);
    }
}

static void allreduce_is_right_for_all_numbers(void **state)
{
    static const rueda_reduction reductions[] = {RUEDA_SUM, RUEDA_MIN,
                                                 RUEDA_MAX, RUEDA_PRODUCT};
    struct coll_case c = {
        .algo = &rueda_algo_hier, .kind = RUEDA_ALLREDUCE, .count = 3001};

    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
            for (int r = 0; r < 4; r++) {
                c.dtype = (rueda_dtype)dtype;
                c.reduction = reductions[r];
                c.is_in_place = r % 2 != 0;
                coll_case_check(ranks, &c);
            }
        ranks_close(ranks);
    }
}

static void allreduce_applies_both_scales_once(void **state)
{
    static const rueda_dtype dtypes[] = {RUEDA_INT32, RUEDA_FLOAT16,
                                         RUEDA_FLOAT64};
    static const double scales[][2] = {{2.0, 0.5}, {0.5, 2.0}, {1.0, -4.0}};
    struct coll_case c = {
        .algo = &rueda_algo_hier, .kind = RUEDA_ALLREDUCE, .count = 20001};

    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        for (int i = 0; i < 9; i++) {
            c.dtype = dtypes[i % 3];
            c.prescale = scales[i / 3][0];
            c.postscale = scales[i / 3][1];
            c.is_in_place = i % 2 != 0;
            if (c.dtype == RUEDA_INT32 && c.prescale != 2.0)
                c.prescale = 1.0; /* halves of odd numbers are cut */
            coll_case_check(ranks, &c);
        }
        ranks_close(ranks);
    }
}

/* Some of these have their hosts mixed up, and no hierarchical allgather. */
static void allgather_is_right_for_all_shapes(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, 1000, 70001};
    struct coll_case c = {.algo = &rueda_algo_hier, .kind = RUEDA_ALLGATHER};
    size_t checked = 0;

    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        if (ranks->place[0].hier->firsts == NULL) {
            ranks_close(ranks);
            continue;
        }
        checked++;
        for (int i = 0; i < 28; i++) {
            c.dtype = i % 3 == 0 ? RUEDA_FLOAT64 : RUEDA_UINT8;
            c.count = counts[i % 7];
            c.is_in_place = i / 7 % 2 != 0;
            c.is_uneven = i / 14 != 0;
            coll_case_check(ranks, &c);
        }
        ranks_close(ranks);
    }
    assert_int_equal(checked, SHAPES - 1);
}

static void long_pieces_are_gathered_in_blocks(void **state)
{
    struct coll_case c = {.algo = &rueda_algo_hier,
                          .kind = RUEDA_ALLGATHER,
                          .dtype = RUEDA_FLOAT64,
                          .count = 250007};

    (void)state;
    for (size_t s = 0; s < 4; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        c.is_in_place = s % 2 != 0;
        c.is_uneven = s / 2 != 0;
        coll_case_check(ranks, &c);
        ranks_close(ranks);
    }
}

static void a_rank_that_leaves_ends_a_gathering(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_hier,
                                .kind = RUEDA_ALLGATHER,
                                .dtype = RUEDA_FLOAT32,
                                .count = 100000};

    (void)state;
    coll_case_check_leaving_hosts(&c, 4, shapes[0].hosts);
    coll_case_check_leaving_hosts(&c, 4, shapes[1].hosts);
}

/* More blocks than buffers, of which each is as long as may be. */
static void long_vectors_go_through_in_blocks(void **state)
{
    struct coll_case c = {.algo = &rueda_algo_hier,
                          .kind = RUEDA_ALLREDUCE,
                          .dtype = RUEDA_FLOAT64,
                          .count = 1300007};

    (void)state;
    for (size_t s = 0; s < 4; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        c.is_in_place = s % 2 != 0;
        coll_case_check(ranks, &c);
        c.prescale = 4.0;
        coll_case_check(ranks, &c);
        ranks_close(ranks);
    }
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_hier,
                                .kind = RUEDA_ALLREDUCE,
                                .dtype = RUEDA_FLOAT32,
                                .count = 200000};

    (void)state;
    coll_case_check_leaving_hosts(&c, 4, shapes[0].hosts);
    coll_case_check_leaving_hosts(&c, 4, shapes[1].hosts);
}

/* ---- Compression ------------------------------------------------------ */

/* Small whole numbers, and halves of them, are exact in 16 bits. */
static void compressed_numbers_that_fit_are_exact(void **state)
{
    static const size_t counts[] = {0, 1, 17, 70001};
    struct coll_case c = {.algo = &rueda_algo_hier, .kind = RUEDA_ALLREDUCE};

    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct ranks *ranks = arranged(&shapes[s]);

        for (int i = 0; i < 16; i++) {
            c.compression =
                i % 2 == 0 ? RUEDA_COMPRESS_FP16 : RUEDA_COMPRESS_BF16;
            c.dtype = i / 2 % 2 == 0 ? RUEDA_FLOAT32 : RUEDA_FLOAT64;
            c.postscale = i / 4 % 2 == 0 ? 0.5 : 4.0;
            c.prescale = i / 8 % 2 == 0 ? 1.0 : 2.0;
            c.is_in_place = i % 3 == 0;
            c.count = counts[(size_t)i % 4];
            coll_case_check(ranks, &c);
        }
        ranks_close(ranks);
    }
}

#define COUNT ((size_t)100003)

/* Numbers of all sizes, whose sum does not lose its first digits. */
static double number_of(int rank, size_t i)
{
    const double mantissa =
        1.0 +
        (double)((i * 7919 + (size_t)rank * 104729) % 1000003) / 1000003.0;

    return ldexp(mantissa, (int)(i % 11) - 5);
}

static void put(rueda_dtype dtype, void *buf, size_t i, double number)
{
    if (dtype == RUEDA_FLOAT32)
        ((float *)buf)[i] = (float)number;
    else
        ((double *)buf)[i] = number;
}

static double get(rueda_dtype dtype, const void *buf, size_t i)
{
    return dtype == RUEDA_FLOAT32 ? (double)((const float *)buf)[i]
                                  : ((const double *)buf)[i];
}

/* The largest relative error of an average of compressed numbers times `by`;
 * asserts that all ranks have the same bytes. */
static double worst_error(const struct shape *shape, rueda_dtype dtype,
                          rueda_compression compression, double by)
{
    const size_t elem = rueda_dtype_size(dtype);
    struct ranks *ranks = arranged(shape);
    struct rueda_coll coll[9];
    double worst = 0;

    for (int r = 0; r < shape->size; r++) {
        void *buf = malloc(COUNT * elem);

        assert_non_null(buf);
        for (size_t i = 0; i < COUNT; i++)
            put(dtype, buf, i, by * number_of(r, i));
        coll[r] = (struct rueda_coll){
            .kind = RUEDA_ALLREDUCE,
            .arith = {dtype, RUEDA_SUM, 1.0, 1.0 / shape->size},
            .elem_bytes = elem,
            .send = buf,
            .recv = buf,
            .count = COUNT,
            .compression = compression,
        };
    }
    assert_int_equal(ranks_run(ranks, &rueda_algo_hier, coll), RUEDA_OK);
    for (size_t i = 0; i < COUNT; i++) {
        double wanted = 0;

        for (int r = 0; r < shape->size; r++)
            wanted += by * number_of(r, i) / shape->size;
        worst = fmax(worst, fabs(get(dtype, coll[0].recv, i) / wanted - 1));
    }
    for (int r = 1; r < shape->size; r++)
        assert_memory_equal(coll[r].recv, coll[0].recv, COUNT * elem);
    for (int r = 0; r < shape->size; r++)
        free(coll[r].recv);
    ranks_close(ranks);
    return worst;
}

/* One rounding for each host and one for each sum, of half a last digit. */
static void compression_costs_no_more_than_its_digits(void **state)
{
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        for (int d = 0; d < 2; d++) {
            const rueda_dtype dtype = d == 0 ? RUEDA_FLOAT32 : RUEDA_FLOAT64;
            const double fp16 =
                worst_error(&shapes[s], dtype, RUEDA_COMPRESS_FP16, 1.0);
            const double bf16 =
                worst_error(&shapes[s], dtype, RUEDA_COMPRESS_BF16, 1.0);
            const double none =
                worst_error(&shapes[s], dtype, RUEDA_COMPRESS_NONE, 1.0);

            assert_true(fp16 < 3 * 0x1p-11 && fp16 > 0x1p-13);
            assert_true(bf16 < 3 * 0x1p-8 && bf16 > 0x1p-10);
            assert_true(none < 0x1p-20);
        }
}

/* Sums of these are beyond the largest fp16, 65504. */
static void averages_that_fit_do_not_overflow_on_their_way(void **state)
{
    (void)state;
    for (size_t s = 0; s < SHAPES; s++)
        assert_true(worst_error(&shapes[s], RUEDA_FLOAT32, RUEDA_COMPRESS_FP16,
                                1000.0) < 3 * 0x1p-11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carriers_are_what_the_smallest_host_has),
        cmocka_unit_test(one_host_has_no_hierarchy),
        cmocka_unit_test(members_of_a_slice_have_one_place_on_their_hosts),
        cmocka_unit_test(allreduce_is_right_for_all_shapes),
        cmocka_unit_test(allreduce_is_right_for_all_numbers),
        cmocka_unit_test(allreduce_applies_both_scales_once),
        cmocka_unit_test(allgather_is_right_for_all_shapes),
        cmocka_unit_test(long_pieces_are_gathered_in_blocks),
        cmocka_unit_test(a_rank_that_leaves_ends_a_gathering),
        cmocka_unit_test(long_vectors_go_through_in_blocks),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
        cmocka_unit_test(compressed_numbers_that_fit_are_exact),
        cmocka_unit_test(compression_costs_no_more_than_its_digits),
        cmocka_unit_test(averages_that_fit_do_not_overflow_on_their_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
