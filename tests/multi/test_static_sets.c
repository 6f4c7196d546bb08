/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that are there from the start, by a setting or by arguments. */
#include <stdio.h>
#include <string.h>

#include "support/processes.h"

#define RANKS 4
#define SETS  "0,2;1-3"

/* The sum of one's rank over the members of a set. */
static int add_in_set(struct test_rank *me, int set, float wanted)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    float x = (float)me->rank;
    rueda_handle handle;
    rueda_status status;

    if (rueda_set_rank(me->ctx, set) < 0)
        return 0;
    args.kind = RUEDA_ALLREDUCE;
    args.set = set;
    args.send = &x;
    args.recv = &x;
    status = rueda_submit(me->ctx, &args, &handle);
    if (status == RUEDA_OK)
        status = rueda_wait(me->ctx, handle, RANK_DEADLINE_MS);
    if (rank_expect(me, status, RUEDA_OK, "an allreduce of the set") != 0)
        return 1;
    if (x != wanted)
        return rank_says(me, "set %d: %g instead of %g", set, (double)x,
                         (double)wanted);
    return 0;
}

static int use_sets(struct test_rank *me)
{
    if (rueda_set_size(me->ctx, 1) != 2 || rueda_set_size(me->ctx, 2) != 3 ||
        rueda_set_size(me->ctx, 3) != -1)
        return rank_says(me, "sets of %d, %d and %d ranks",
                         rueda_set_size(me->ctx, 1), rueda_set_size(me->ctx, 2),
                         rueda_set_size(me->ctx, 3));
    return add_in_set(me, 1, 0 + 2) + add_in_set(me, 2, 1 + 2 + 3);
}

static rueda_status join(struct test_rank *me, const char *sets, char *words,
                         size_t bytes)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    args.process_sets = sets;
    args.error = words;
    args.error_bytes = bytes;
    return rueda_init(&args, &me->ctx);
}

static int by_arguments(struct test_rank *me)
{
    char words[512] = "";
    int failed;

    if (join(me, SETS, words, sizeof(words)) != RUEDA_OK)
        return rank_says(me, "%s", words);
    failed = use_sets(me);
    rueda_shutdown(me->ctx);
    return failed;
}

/* Those who have sets from the start make no more, and drop none. */
static int stays_as_it_is(struct test_rank *me)
{
    static const int pair[] = {2, 3};
    int set = 77;

    if (rank_expect(me, rueda_set_create(me->ctx, pair, 2, &set),
                    RUEDA_ERR_INVALID, "make a set") != 0 ||
        rank_expect(me, rueda_set_destroy(me->ctx, 1), RUEDA_ERR_INVALID,
                    "drop a set") != 0)
        return 1;
    if (set != 77 ||
        strstr(rueda_last_error(), "HOROVOD_DYNAMIC_PROCESS_SETS=1") == NULL)
        return rank_says(me, "set %d: %s", set, rueda_last_error());
    return use_sets(me);
}

static int makes_and_drops(struct test_rank *me)
{
    static const int pair[] = {2, 3};
    int set = 77;

    if (rank_expect(me, rueda_set_create(me->ctx, pair, 2, &set), RUEDA_OK,
                    "make a set") != 0 ||
        add_in_set(me, set, 2 + 3) != 0)
        return 1;
    return rank_expect(me, rueda_set_destroy(me->ctx, set), RUEDA_OK,
                       "drop a set");
}

static int by_the_word(struct test_rank *me)
{
    char words[512] = "";
    int failed;

    if (join(me, "dynamic", words, sizeof(words)) != RUEDA_OK)
        return rank_says(me, "%s", words);
    failed = makes_and_drops(me);
    rueda_shutdown(me->ctx);
    return failed;
}

/* A list of one rank, that of the others, and what all are told. */
struct lists {
    int odd;
    const char *list;
    const char *others;
    const char *words;
};

/* No rank has a context, and all know why, at once. Then there is one. */
static int by_different_arguments(struct test_rank *me)
{
    const struct lists *lists = me->arg;
    const char *sets = me->rank == lists->odd ? lists->list : lists->others;
    char words[512] = "";

    if (rank_expect(me, join(me, sets, words, sizeof(words)),
                    RUEDA_ERR_MISMATCH, "different sets") != 0)
        return 1;
    if (strstr(words, lists->words) == NULL)
        return rank_says(me, "says: %s", words);
    return by_arguments(me);
}

static void run_with(processes_way way, rank_fn body, void *arg)
{
    struct processes processes;

    memset(&processes, 0, sizeof(processes));
    processes_start(&processes, RANKS, way, body, arg);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

static void run(processes_way way, rank_fn body)
{
    run_with(way, body, NULL);
}

static void test_by_setting(void **state)
{
    (void)state;
    setenv("RUEDA_PROCESS_SETS", SETS, 1);
    run(processes_join, use_sets);
    unsetenv("RUEDA_PROCESS_SETS");
}

static void test_by_arguments(void **state)
{
    (void)state;
    run(processes_by_self, by_arguments);
}

static void test_sets_do_not_change_without_leave(void **state)
{
    (void)state;
    setenv("RUEDA_PROCESS_SETS", SETS, 1);
    run(processes_join, stays_as_it_is);
    setenv("RUEDA_DYNAMIC_SETS", "1", 1);
    run(processes_join, makes_and_drops);
    unsetenv("RUEDA_DYNAMIC_SETS");
    unsetenv("RUEDA_PROCESS_SETS");
    setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1", 1);
    run(processes_join, makes_and_drops);
    unsetenv("HOROVOD_DYNAMIC_PROCESS_SETS");
    run(processes_by_self, by_the_word);
}

static void test_differences_are_told(void **state)
{
    static struct lists all[] = {
        {3, "0,2;1,2", SETS,
         "rank 0 has \"" SETS "\", but rank 3 has \"0,2;1,2\""},
        {1, "0,2", SETS, "rank 0 has \"" SETS "\", but rank 1 has \"0,2\""},
        {0, "0,2", SETS, "rank 0 has \"0,2\", but rank 1 has \"" SETS "\""},
        {2, "", SETS, "rank 0 has \"" SETS "\", but rank 2 has none"},
        {0, "", SETS, "rank 0 has none, but rank 1 has \"" SETS "\""},
        {2, "dynamic", "0", "rank 0 has \"0\", but rank 2 has none"},
        {2, "1-3;0,2", SETS, "Mismatched process sets"},
        {2, "0,2;1-9", SETS, "but rank 2 has \"0,2;1-9\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        run_with(processes_by_self, by_different_arguments, &all[i]);
}

/* In other words the same. */
static int by_other_words(struct test_rank *me)
{
    static const char *const words[RANKS] = {"0,2;1-3", "2,0;3,1-2",
                                             "; 0,2;1,2,3;", "0,2;2-3,1"};
    char error[512] = "";
    int failed;

    if (join(me, words[me->rank], error, sizeof(error)) != RUEDA_OK)
        return rank_says(me, "%s", error);
    failed = use_sets(me);
    rueda_shutdown(me->ctx);
    return failed;
}

static void test_the_same_sets_may_be_written_in_other_words(void **state)
{
    (void)state;
    run(processes_by_self, by_other_words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_setting),
        cmocka_unit_test(test_by_arguments),
        cmocka_unit_test(test_sets_do_not_change_without_leave),
        cmocka_unit_test(test_differences_are_told),
        cmocka_unit_test(test_the_same_sets_may_be_written_in_other_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
