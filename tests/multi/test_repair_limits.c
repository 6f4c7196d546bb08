/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What RUEDA_REPAIR=1 covers, and what ends the job as it does without. Rank 1
 * leaves, which is the death that threads can have.
 */
#include <string.h>

#include "support/processes.h"

#define RANKS 3
#define COUNT 20000
#define GOES  1

static rueda_status sum(struct test_rank *me, int64_t *values)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = (int64_t)1 << me->rank;
    return rueda_allreduce(me->ctx, values, values, COUNT, RUEDA_INT64,
                           RUEDA_SUM);
}

/* Two boundaries, a sum of all ranks, and rank 1 is gone. */
static int begin(struct test_rank *me, int64_t *values)
{
    rueda_status status = rueda_step(me->ctx);

    if (status == RUEDA_OK)
        status = sum(me, values);
    if (status != RUEDA_OK || values[COUNT - 1] != 7)
        return rank_says(me, "the first sum: %s", rueda_error(me->ctx));
    if (me->rank == GOES)
        rueda_shutdown(me->ctx);
    return 0;
}

/* The sum of those that are left, with the numbers of all. */
static int sum_of_two(struct test_rank *me, int64_t *values)
{
    const rueda_status status = sum(me, values);

    if (status != RUEDA_OK)
        return rank_says(me, "the second sum: %s", rueda_error(me->ctx));
    for (int i = 0; i < COUNT; i++)
        if (values[i] != 5)
            return rank_says(me, "value %d is %d", i, (int)values[i]);
    if (rueda_size(me->ctx) != RANKS || rueda_rank(me->ctx) != me->rank)
        return rank_says(me, "other numbers before the boundary");
    return 0;
}

static void run(const struct rank_setup *setup, rank_fn body)
{
    rank_hush();
    setenv("RUEDA_REPAIR", "1", 1);
    rank_run(setup, RANKS, body, NULL);
    unsetenv("RUEDA_REPAIR");
}

/* ---- Going on ----------------------------------------------------------- */

static int go_on(struct test_rank *me)
{
    const int number = me->rank == 0 ? 0 : 1;
    void *memory;
    int64_t gathered[2] = {0, 0};
    int code;

    if (rueda_alloc(me->ctx, COUNT * sizeof(int64_t), &memory) != RUEDA_OK)
        return rank_says(me, "no memory");
    code = begin(me, memory);
    if (me->rank == GOES || code != 0)
        return code;
    code = sum_of_two(me, memory);
    if (code != 0)
        return code;
    if (rank_expect(me, rueda_step(me->ctx), RUEDA_OK, "step") != 0)
        return 1;
    if (rueda_size(me->ctx) != 2 || rueda_rank(me->ctx) != number ||
        rueda_local_size(me->ctx) != 2 || rueda_set_size(me->ctx, 0) != 2)
        return rank_says(me, "rank %d of %d", rueda_rank(me->ctx),
                         rueda_size(me->ctx));
    if (rank_expect(me,
                    rueda_allgather(me->ctx, &(int64_t){number + 10}, gathered,
                                    1, RUEDA_INT64),
                    RUEDA_OK, "allgather") != 0)
        return 1;
    return gathered[0] == 10 && gathered[1] == 11
               ? 0
               : rank_says(me, "gathered %d and %d", (int)gathered[0],
                           (int)gathered[1]);
}

static void others_go_on_with_new_numbers_after_a_boundary(void **state)
{
    run(*state, go_on);
}

/* ---- The end ------------------------------------------------------------ */

static int gather_in_flight(struct test_rank *me)
{
    int64_t *values = calloc((size_t)RANKS * COUNT, sizeof(int64_t));
    int code = begin(me, values);

    if (me->rank != GOES && code == 0)
        code = rank_expect(me,
                           rueda_allgather(me->ctx, values, values + COUNT,
                                           COUNT / 4, RUEDA_INT64),
                           RUEDA_ERR_PEER_LOST, "allgather");
    free(values);
    return code;
}

static void what_is_not_covered_ends_the_job(void **state)
{
    run(*state, gather_in_flight);
}

static int no_boundary(struct test_rank *me)
{
    int64_t *values = calloc(COUNT, sizeof(int64_t));
    int code = rank_expect(me, sum(me, values), RUEDA_OK, "the first sum");

    if (me->rank == GOES)
        rueda_shutdown(me->ctx);
    else if (code == 0)
        code = rank_expect(me, sum(me, values), RUEDA_ERR_PEER_LOST,
                           "the second sum");
    free(values);
    return code;
}

static void without_boundaries_a_death_ends_the_job(void **state)
{
    run(*state, no_boundary);
}

/* Either this rank is refused, or it misses one that was. */
static int old_numbers(struct test_rank *me)
{
    int64_t *values = calloc((size_t)RANKS * COUNT, sizeof(int64_t));
    rueda_status status;
    int code = begin(me, values);

    if (me->rank != GOES && code == 0)
        code = sum_of_two(me, values);
    if (me->rank != GOES && code == 0) {
        status =
            rueda_allgather(me->ctx, values, values + COUNT, 10, RUEDA_INT64);
        if (status != RUEDA_ERR_CANCELLED && status != RUEDA_ERR_PEER_LOST)
            code =
                rank_says(me, "with old numbers: %s", rueda_status_str(status));
        else if (strstr(rueda_error(me->ctx), "Restore the last commit") ==
                 NULL)
            code = rank_says(me, "words: %s", rueda_error(me->ctx));
    }
    free(values);
    return code;
}

static void old_numbers_are_refused_until_the_boundary(void **state)
{
    run(*state, old_numbers);
}

static int failing_rank(struct test_rank *me)
{
    int64_t *values = calloc(COUNT, sizeof(int64_t));
    int code = rank_expect(me, rueda_step(me->ctx), RUEDA_OK, "step");

    if (code == 0)
        code = rank_expect(me, sum(me, values), RUEDA_OK, "the first sum");
    if (me->rank == GOES)
        rueda_fail(me->ctx, "the disk is full");
    else if (code == 0)
        code = rank_expect(me, sum(me, values), RUEDA_ERR_PEER_LOST,
                           "the second sum");
    if (code == 0 && strstr(rueda_error(me->ctx), "the disk is full") == NULL)
        code = rank_says(me, "words: %s", rueda_error(me->ctx));
    free(values);
    return code;
}

static void a_rank_that_fails_ends_the_job(void **state)
{
    run(*state, failing_rank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(others_go_on_with_new_numbers_after_a_boundary),
        RANK_EVERYWHERE(what_is_not_covered_ends_the_job),
        RANK_TEST(without_boundaries_a_death_ends_the_job, threads),
        RANK_EVERYWHERE(old_numbers_are_refused_until_the_boundary),
        RANK_EVERYWHERE(a_rank_that_fails_ends_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
