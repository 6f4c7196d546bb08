/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "support/coll_case.h"

static const struct coll_case alltoall = {
    .algo = &rueda_algo_pairwise,
    .kind = RUEDA_ALLTOALL,
    .dtype = RUEDA_INT16,
};

static void alltoall_is_right_for_all_sizes(void **state)
{
    (void)state;
    coll_case_check_sizes(&alltoall);
}

static void alltoall_is_right_for_all_numbers(void **state)
{
    struct coll_case c = alltoall;

    (void)state;
    coll_case_check_numbers(&c);
    c.is_uneven = true;
    coll_case_check_numbers(&c);
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    struct coll_case c = alltoall;

    (void)state;
    c.count = 1000;
    coll_case_check_leaving(&c, 16);
    c.is_in_place = true;
    coll_case_check_leaving(&c, 16);
}

static void counts_that_do_not_fit_end_the_receiver(void **state)
{
    struct ranks *ranks = ranks_open(2);
    const size_t two[2] = {1, 2};
    const size_t three[2] = {3, 1};
    const size_t one[2] = {1, 1};
    char send[4] = {0};
    char recv[2][4] = {{0}};
    const struct rueda_coll coll[2] = {
        {.kind = RUEDA_ALLTOALL,
         .elem_bytes = 1,
         .send = send,
         .recv = recv[0],
         .send_counts = two,
         .recv_counts = one},
        {.kind = RUEDA_ALLTOALL,
         .elem_bytes = 1,
         .send = send,
         .recv = recv[1],
         .send_counts = one,
         .recv_counts = three},
    };

    (void)state;
    assert_int_not_equal(ranks_run(ranks, &rueda_algo_pairwise, coll),
                         RUEDA_OK);
    assert_int_equal(ranks->status[1], RUEDA_ERR_MISMATCH);
    ranks_close(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alltoall_is_right_for_all_sizes),
        cmocka_unit_test(alltoall_is_right_for_all_numbers),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
        cmocka_unit_test(counts_that_do_not_fit_end_the_receiver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
