/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "support/coll_case.h"

static void allreduce_is_right_for_all_sizes(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_ALLREDUCE,
                                .dtype = RUEDA_FLOAT32};

    (void)state;
    coll_case_check_sizes(&c);
}

static void allreduce_is_right_for_all_numbers(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_ALLREDUCE};

    (void)state;
    coll_case_check_numbers(&c);
}

static void allreduce_applies_both_scales(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_ALLREDUCE};

    (void)state;
    coll_case_check_scales(&c);
}

/* Every chunk takes several turns of the columns. */
static void allreduce_of_a_long_vector_is_right(void **state)
{
    struct coll_case c = {.algo = &rueda_algo_ring,
                          .kind = RUEDA_ALLREDUCE,
                          .dtype = RUEDA_FLOAT64,
                          .count = 200003};

    (void)state;
    for (int size = 2; size <= 3; size++) {
        struct ranks *ranks = ranks_open(size);

        coll_case_check(ranks, &c);
        c.is_in_place = true;
        c.prescale = 4.0;
        coll_case_check(ranks, &c);
        ranks_close(ranks);
    }
}

static void reduce_scatter_is_right_for_all_sizes(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_REDUCE_SCATTER,
                                .dtype = RUEDA_FLOAT32};

    (void)state;
    coll_case_check_sizes(&c);
}

static void reduce_scatter_is_right_for_all_numbers(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_REDUCE_SCATTER,
                                .is_uneven = true};

    (void)state;
    coll_case_check_numbers(&c);
}

static void reduce_scatter_applies_both_scales(void **state)
{
    struct coll_case c = {.algo = &rueda_algo_ring,
                          .kind = RUEDA_REDUCE_SCATTER};

    (void)state;
    coll_case_check_scales(&c);
    c.is_uneven = true;
    coll_case_check_scales(&c);
}

static void allgather_is_right_for_all_sizes(void **state)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_ALLGATHER,
                                .dtype = RUEDA_INT16};

    (void)state;
    coll_case_check_sizes(&c);
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    struct coll_case c = {.algo = &rueda_algo_ring,
                          .kind = RUEDA_ALLREDUCE,
                          .dtype = RUEDA_FLOAT32,
                          .count = 2000000};

    (void)state;
    coll_case_check_leaving(&c, 4);
    c.kind = RUEDA_REDUCE_SCATTER;
    coll_case_check_leaving(&c, 3);
    c.kind = RUEDA_ALLGATHER;
    c.count = 2000000;
    coll_case_check_leaving(&c, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_is_right_for_all_sizes),
        cmocka_unit_test(allreduce_is_right_for_all_numbers),
        cmocka_unit_test(allreduce_applies_both_scales),
        cmocka_unit_test(allreduce_of_a_long_vector_is_right),
        cmocka_unit_test(reduce_scatter_is_right_for_all_sizes),
        cmocka_unit_test(reduce_scatter_is_right_for_all_numbers),
        cmocka_unit_test(reduce_scatter_applies_both_scales),
        cmocka_unit_test(allgather_is_right_for_all_sizes),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
