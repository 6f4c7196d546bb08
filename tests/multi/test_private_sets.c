/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets of which only their members know. */
#include <string.h>

#include "support/processes.h"

#define RANKS 4
#define FIRST RUEDA_PRIVATE_SETS
#define MANY  (RANK_IS_SLOW ? 100 : 600)

/* Wait for a change; its status. */
static rueda_status finish(struct test_rank *me, rueda_status status,
                           const rueda_handle *handle)
{
    return status == RUEDA_OK ? rueda_wait(me->ctx, *handle, RANK_DEADLINE_MS)
                              : status;
}

static rueda_status open_set(struct test_rank *me, int set, const int *ranks,
                             int count)
{
    rueda_handle handle = 0;

    return finish(me, rueda_set_open_async(me->ctx, ranks, count, set, &handle),
                  &handle);
}

static rueda_status close_set(struct test_rank *me, int set)
{
    rueda_handle handle = 0;

    return finish(me, rueda_set_close_async(me->ctx, set, &handle), &handle);
}

/* The sum of `count` numbers, mine being my rank, over the members of a set. */
static int add(struct test_rank *me, int set, size_t count, float wanted,
               unsigned flags)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    float *numbers = malloc(count * sizeof(float));
    rueda_handle handle = 0;
    rueda_status status;
    int failed;

    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)me->rank;
    args.kind = RUEDA_ALLREDUCE;
    args.set = set;
    args.send = numbers;
    args.recv = numbers;
    args.dims = 1;
    args.shape = &count;
    args.flags = flags;
    status = finish(me, rueda_submit(me->ctx, &args, &handle), &handle);
    failed = rank_expect(me, status, RUEDA_OK, "an allreduce of the set");
    for (size_t i = 0; i < count && failed == 0; i++)
        if (numbers[i] != wanted)
            failed = rank_says(me, "set %d: %g instead of %g", set,
                               (double)numbers[i], (double)wanted);
    free(numbers);
    return failed;
}

/* Negotiated, and in the order of the program. */
static int add_up(struct test_rank *me, int set, size_t count, float wanted)
{
    return add(me, set, count, wanted, 0) +
           add(me, set, count, wanted, RUEDA_ORDERED);
}

/* ---- Members only ----------------------------------------------------- */

/* Ranks 0 and 1 do nothing at all; 3 and 2 list themselves in two orders. */
static int without_the_others(struct test_rank *me)
{
    static const int ranks[] = {2, 3}, turned[] = {3, 2};

    if (me->rank < 2)
        return rueda_set_size(me->ctx, FIRST) == -1
                   ? 0
                   : rank_says(me, "a stranger knows the set");
    if (rank_expect(me, open_set(me, FIRST, me->rank == 2 ? ranks : turned, 2),
                    RUEDA_OK, "open") != 0)
        return 1;
    if (rueda_set_size(me->ctx, FIRST) != 2 ||
        rueda_set_rank(me->ctx, FIRST) != me->rank - 2)
        return rank_says(me, "the set is another one");
    return add_up(me, FIRST, 10, 5) + add_up(me, FIRST, 200000, 5) +
           rank_expect(me, close_set(me, FIRST), RUEDA_OK, "close");
}

static void members_alone_make_a_set(void **state)
{
    rank_run(*state, RANKS, without_the_others, NULL);
}

/* ---- Several ---------------------------------------------------------- */

/* Sets that overlap, two of the same ranks, one of one rank. */
static int overlapping(struct test_rank *me)
{
    static const int all[] = {0, 1, 2, 3}, low[] = {0, 1, 2}, ends[] = {3, 0};
    int failed = rank_expect(me, open_set(me, FIRST, all, 4), RUEDA_OK, "all");

    failed += rank_expect(me, open_set(me, FIRST + 1, all, 4), RUEDA_OK, "2nd");
    if (me->rank < 3)
        failed +=
            rank_expect(me, open_set(me, FIRST + 2, low, 3), RUEDA_OK, "low");
    if (me->rank % 3 == 0)
        failed +=
            rank_expect(me, open_set(me, FIRST + 3, ends, 2), RUEDA_OK, "ends");
    failed += rank_expect(me, open_set(me, FIRST + 4 + me->rank, &me->rank, 1),
                          RUEDA_OK, "own");
    if (failed > 0)
        return failed;
    if (me->rank < 3)
        failed += add_up(me, FIRST + 2, 5000, 3);
    failed += add_up(me, FIRST + 1, 5, 6) + add_up(me, FIRST, 5, 6);
    if (me->rank % 3 == 0)
        failed += add_up(me, FIRST + 3, 5, 3);
    failed += add_up(me, FIRST + 4 + me->rank, 5, (float)me->rank);
    /* Some are closed and some are left to the end of the context. */
    failed += rank_expect(me, close_set(me, FIRST), RUEDA_OK, "close");
    return failed + add_up(me, FIRST + 1, 70000, 6);
}

static void sets_may_overlap_and_have_the_same_ranks(void **state)
{
    rank_run(*state, RANKS, overlapping, NULL);
}

/* ---- Made and dropped ------------------------------------------------- */

/* Far more than there is room for at a time. Each is closed without waiting. */
static int one_after_another(struct test_rank *me)
{
    static const int ranks[] = {0, 1, 2};
    int failed = 0;

    for (int i = 0; i < MANY && failed == 0; i++) {
        rueda_handle handle = 0;

        failed = rank_expect(me, open_set(me, FIRST + i, ranks, 3), RUEDA_OK,
                             "open one of many") +
                 add_up(me, FIRST + i, i % 7 == 0 ? 30000 : 3, 3);
        if (failed == 0)
            failed = rank_expect(
                me, rueda_set_close_async(me->ctx, FIRST + i, &handle),
                RUEDA_OK, "close one of many");
    }
    return failed;
}

/* The fusion slabs alone would need more than the segment has. */
static void sets_come_and_go_and_their_memory_comes_back(void **state)
{
    rank_skip_without_fork();
    setenv("RUEDA_FUSION_BYTES", "512M", 1);
    rank_run(*state, 3, one_after_another, NULL);
    unsetenv("RUEDA_FUSION_BYTES");
}

/* ---- What can be wrong ------------------------------------------------ */

static int in_many_ways(struct test_rank *me)
{
    static const int pair[] = {0, 1}, others[] = {2, 3};
    int failed = 0;

    if (me->rank > 1)
        return 0;
    failed += rank_expect(me, open_set(me, 7, pair, 2), RUEDA_ERR_INVALID,
                          "an id of other sets");
    failed += rank_expect(me, open_set(me, FIRST, others, 2), RUEDA_ERR_INVALID,
                          "a stranger's set");
    failed += rank_expect(me, close_set(me, FIRST), RUEDA_ERR_INVALID,
                          "close what is not open");
    failed += rank_expect(me, open_set(me, FIRST, pair, 2), RUEDA_OK, "open");
    failed += rank_expect(me, open_set(me, FIRST, pair, 2), RUEDA_ERR_INVALID,
                          "the same id again");
    return failed + add_up(me, FIRST, 3, 1);
}

static void what_is_wrong_is_refused(void **state)
{
    rank_run(*state, RANKS, in_many_ways, NULL);
}

/* Rank 2 lists another rank than 0 and 1 do. */
static int differing(struct test_rank *me)
{
    static const int low[] = {0, 1, 2}, other[] = {0, 2, 3};
    rueda_status status;

    if (me->rank == 3)
        return 0;
    status = open_set(me, FIRST, me->rank == 2 ? other : low, 3);
    if (rank_expect(me, status, RUEDA_ERR_MISMATCH, "open") != 0)
        return 1;
    if (strstr(rueda_last_error(), "rank 2 lists other ranks") == NULL)
        return rank_says(me, "%s", rueda_last_error());
    return add_up(me, RUEDA_ALL_RANKS, 1, 6);
}

static int differing_all(struct test_rank *me)
{
    int failed = differing(me);

    return me->rank == 3 ? add_up(me, RUEDA_ALL_RANKS, 1, 6) : failed;
}

static void members_that_list_other_ranks_are_named(void **state)
{
    rank_run(*state, RANKS, differing_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(members_alone_make_a_set),
        RANK_EVERYWHERE(sets_may_overlap_and_have_the_same_ranks),
        RANK_IN_PROCESSES(sets_come_and_go_and_their_memory_comes_back),
        RANK_EVERYWHERE(what_is_wrong_is_refused),
        RANK_EVERYWHERE(members_that_list_other_ranks_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
