/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "support/coll_case.h"

/* Enough for a rank to be cheated by ranks that wait for others. */
#define SIZE 16

static const struct coll_case barrier = {
    .algo = &rueda_algo_dissemination,
    .kind = RUEDA_BARRIER,
};

static void a_barrier_ends_on_any_number_of_ranks(void **state)
{
    (void)state;
    for (int size = 1; size <= 16; size++) {
        struct ranks *ranks = ranks_open(size);

        for (int again = 0; again < 3; again++)
            coll_case_check(ranks, &barrier);
        ranks_close(ranks);
    }
}

/* Drives all ranks but one by hand until nothing moves. */
static void no_rank_passes_before_the_last_has_come(void **state)
{
    const struct rueda_algo *algo = &rueda_algo_dissemination;

    (void)state;
    for (int late = 0; late < SIZE; late++) {
        struct ranks *ranks = ranks_open(SIZE);
        int lost;

        for (int i = 0; i < SIZE; i++) {
            ranks->task[i].algo = algo;
            ranks->task[i].place = &ranks->place[i];
            ranks->task[i].tag = (struct rueda_tag){1, 0, 1};
            ranks->task[i].coll.kind = RUEDA_BARRIER;
            if (i != late)
                algo->post(&ranks->task[i]);
        }
        for (int turn = 0; turn < 20; turn++)
            for (int i = 0; i < SIZE; i++)
                if (i != late) {
                    rueda_mesh_progress(&ranks->mesh[i], &lost);
                    assert_int_equal(algo->progress(&ranks->task[i]),
                                     RUEDA_IN_PROGRESS);
                }
        ranks_close(ranks);
    }
}

static void a_rank_that_leaves_ends_every_other_one(void **state)
{
    (void)state;
    coll_case_check_leaving(&barrier, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_barrier_ends_on_any_number_of_ranks),
        cmocka_unit_test(no_rank_passes_before_the_last_has_come),
        cmocka_unit_test(a_rank_that_leaves_ends_every_other_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
