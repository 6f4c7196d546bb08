/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "support/coll_case.h"

/* Both ways in which pairs of ranks meet (algo/core.h) pass the same tests. */
static struct coll_case allreduce = {
    .kind = RUEDA_ALLREDUCE,
    .dtype = RUEDA_FLOAT32,
};

static void allreduce_is_right_for_all_sizes(void **state)
{
    (void)state;
    coll_case_check_sizes(&allreduce);
}

static void allreduce_is_right_for_all_numbers(void **state)
{
    (void)state;
    coll_case_check_numbers(&allreduce);
}

static void allreduce_applies_both_scales(void **state)
{
    (void)state;
    coll_case_check_scales(&allreduce);
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    struct coll_case c = allreduce;

    (void)state;
    c.count = 2000000; /* more than is on the way */
    coll_case_check_leaving(&c, 4);
    coll_case_check_leaving(&c, 5);
}

static void ranks_that_disagree_about_the_count_are_told_so(void **state)
{
    struct ranks *ranks = ranks_open(2);
    float numbers[2][40] = {{0}};
    struct rueda_coll coll[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        coll[i] = (struct rueda_coll){
            .kind = RUEDA_ALLREDUCE,
            .arith = {RUEDA_FLOAT32, RUEDA_SUM, 1.0, 1.0},
            .elem_bytes = 4,
            .send = numbers[i],
            .recv = numbers[i],
            .count = i == 0 ? 40 : 20,
        };

    assert_int_equal(ranks_run(ranks, allreduce.algo, coll),
                     RUEDA_ERR_MISMATCH);

    ranks_close(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_is_right_for_all_sizes),
        cmocka_unit_test(allreduce_is_right_for_all_numbers),
        cmocka_unit_test(allreduce_applies_both_scales),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
        cmocka_unit_test(ranks_that_disagree_about_the_count_are_told_so),
    };

    int failed;

    allreduce.algo = &rueda_algo_halving_doubling;
    failed = cmocka_run_group_tests_name("halving", tests, NULL, NULL);
    allreduce.algo = &rueda_algo_doubling;
    return failed + cmocka_run_group_tests_name("doubling", tests, NULL, NULL);
}
