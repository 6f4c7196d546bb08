/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "support/coll_case.h"

static const struct coll_case allreduce = {
    .algo = &rueda_algo_tree,
    .kind = RUEDA_ALLREDUCE,
    .dtype = RUEDA_FLOAT32,
};

static const struct coll_case broadcast = {
    .algo = &rueda_algo_tree,
    .kind = RUEDA_BROADCAST,
    .dtype = RUEDA_FLOAT64,
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

static void broadcast_is_right_for_all_sizes(void **state)
{
    (void)state;
    coll_case_check_sizes(&broadcast);
}

static void broadcast_is_right_from_every_root(void **state)
{
    struct coll_case c = broadcast;

    (void)state;
    c.count = 5000;
    for (int size = 1; size <= 8; size++) {
        struct ranks *ranks = ranks_open(size);

        for (c.root = 0; c.root < size; c.root++)
            coll_case_check(ranks, &c);
        ranks_close(ranks);
    }
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    struct coll_case c = allreduce;

    (void)state;
    c.count = 2000000;
    coll_case_check_leaving(&c, 5);
    c = broadcast;
    c.count = 2000000;
    coll_case_check_leaving(&c, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allreduce_is_right_for_all_sizes),
        cmocka_unit_test(allreduce_is_right_for_all_numbers),
        cmocka_unit_test(allreduce_applies_both_scales),
        cmocka_unit_test(broadcast_is_right_for_all_sizes),
        cmocka_unit_test(broadcast_is_right_from_every_root),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
