/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that all wait, for what can never match: an error within a second on
 * all of them, which names what each waits for. And programs that only look as
 * if: a rank that computes, a second thread, a rank that polls, or waits until
 * a deadline, all of which go on.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test_rank.h"

/* Ten times what is promised. */
#define SOON_MS 10000

/* Much longer than a deadlock takes to be told. */
#define LONG_MS 2500

static const size_t shape_4[] = {4};

static rueda_status submit_to(struct test_rank *me, int set, rueda_kind kind,
                              const char *name, rueda_handle *out)
{
    static _Thread_local float bufs[16][4];
    static _Thread_local float results[16][4];
    static _Thread_local int next;
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.set = set;
    args.kind = kind;
    args.name = name;
    args.send = bufs[next];
    args.recv = results[next];
    args.dims = 1;
    args.shape = shape_4;
    args.reduction = RUEDA_SUM;
    next = (next + 1) % 16;
    return rueda_submit(me->ctx, &args, out);
}

static rueda_status submit(struct test_rank *me, rueda_kind kind,
                           const char *name, rueda_handle *out)
{
    return submit_to(me, 0, kind, name, out);
}

/* Wait without end for what fails as a deadlock; these words are in it. */
static int fails(struct test_rank *me, rueda_handle handle,
                 const char *const *words)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    const int64_t begin_ms = rank_now_ms();
    char error[1024] = "";

    result.error = error;
    result.error_bytes = sizeof(error);
    if (rank_expect(me, rueda_wait_for(me->ctx, handle, -1, &result),
                    RUEDA_ERR_MISMATCH, "a deadlock") != 0)
        return rank_says(me, "the words: \"%s\"", error);
    if (rank_now_ms() - begin_ms > SOON_MS)
        return rank_says(me, "that took %d ms",
                         (int)(rank_now_ms() - begin_ms));
    for (; *words != NULL; words++)
        if (strstr(error, *words) == NULL)
            return rank_says(me, "no \"%s\" in \"%s\"", *words, error);
    return 0;
}

static int succeeds(struct test_rank *me, rueda_handle handle)
{
    return rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_OK,
                       "what all have in the end");
}

/* ---- Deadlocks -------------------------------------------------------- */

static int wait_for_other_names(struct test_rank *me)
{
    static const char *const words[] = {
        "deadlock: ", "rank 0 waits for broadcast \"b.g\" from rank 0",
        "2 for allreduce \"a.g\"", "; the ranks must call the same operation",
        NULL};
    rueda_handle handle;

    submit(me, me->rank == 0 ? RUEDA_BROADCAST : RUEDA_ALLREDUCE,
           me->rank == 0 ? "b.g" : "a.g", &handle);
    return fails(me, handle, words);
}

static void ranks_that_wait_for_other_names_fail_at_once(void **state)
{
    rank_run(*state, 3, wait_for_other_names, NULL);
}

/* All have the first, which works; one leaves the last out, and waits for the
 * next step. */
static int leave_one_out(struct test_rank *me)
{
    static const char *const words[] = {"deadlock: ", "allreduce \"last\"",
                                        "rank 1 for allreduce \"next\"", NULL};
    rueda_handle first;
    rueda_handle handle;

    submit(me, RUEDA_ALLREDUCE, "first", &first);
    submit(me, RUEDA_ALLREDUCE, me->rank == 1 ? "next" : "last", &handle);
    return succeeds(me, first) != 0 || fails(me, handle, words) != 0;
}

static void a_tensor_that_one_rank_leaves_out_is_a_deadlock(void **state)
{
    rank_run(*state, 4, leave_one_out, NULL);
}

/* By number, as operations without a name are matched, but one rank is at
 * another operation in between. */
static int wait_without_a_name(struct test_rank *me)
{
    static const char *const words[] = {
        "deadlock: ", "allreduce number 0 without a name",
        "allreduce \"other\"", NULL};
    rueda_handle handle;

    submit(me, RUEDA_ALLREDUCE, me->rank == 1 ? "other" : NULL, &handle);
    return fails(me, handle, words);
}

static void what_has_no_name_is_told_by_its_kind_and_number(void **state)
{
    rank_run(*state, 2, wait_without_a_name, NULL);
}

/* The same name, in other process sets. */
static int wait_in_other_sets(struct test_rank *me)
{
    static const char *const words[] = {
        "deadlock: ", "ranks 0, 2 wait for allreduce \"g\"",
        "rank 1 for allreduce \"g\" of process set 1", NULL};
    rueda_handle handle;

    submit_to(me, me->rank == 1 ? 1 : 0, RUEDA_ALLREDUCE, "g", &handle);
    return fails(me, handle, words);
}

static void the_same_name_in_other_process_sets_is_a_deadlock(void **state)
{
    setenv("RUEDA_PROCESS_SETS", "0,1", 1);
    rank_run(*state, 3, wait_in_other_sets, NULL);
    unsetenv("RUEDA_PROCESS_SETS");
}

/* The members of a set, while a rank that is none computes. */
static int wait_in_one_set(struct test_rank *me)
{
    static const char *const words[] = {
        "deadlock: ", "rank 0 waits for allreduce \"a\" of process set 1",
        "rank 2 for allreduce \"b\" of process set 1", NULL};
    rueda_handle handle;

    if (me->rank == 1) {
        rank_sleep_ms(LONG_MS);
        return 0;
    }
    submit_to(me, 1, RUEDA_ALLREDUCE, me->rank == 0 ? "a" : "b", &handle);
    return fails(me, handle, words);
}

static void members_of_a_set_fail_while_another_rank_computes(void **state)
{
    setenv("RUEDA_PROCESS_SETS", "0,2", 1);
    rank_run(*state, 3, wait_in_one_set, NULL);
    unsetenv("RUEDA_PROCESS_SETS");
}

/* Both wait in different sets for a while, and are helped: no deadlock. */
static int wait_in_turn(struct test_rank *me)
{
    rueda_handle first = 0;
    rueda_handle second;

    if (me->rank == 0)
        rank_sleep_ms(LONG_MS);
    if (me->rank != 2)
        submit_to(me, 1, RUEDA_ALLREDUCE, "s", &first);
    submit(me, RUEDA_ALLREDUCE, "g", &second);
    return (me->rank != 2 && succeeds(me, first) != 0) ||
           succeeds(me, second) != 0;
}

static void ranks_that_use_two_sets_go_on(void **state)
{
    setenv("RUEDA_PROCESS_SETS", "0,1", 1);
    rank_run(*state, 3, wait_in_turn, NULL);
    unsetenv("RUEDA_PROCESS_SETS");
}

/* One computes for long before it waits: only then it is one. */
static int compute_first(struct test_rank *me)
{
    static const char *const words[] = {"deadlock: ", NULL};
    rueda_handle handle;

    if (me->rank == 1)
        rank_sleep_ms(LONG_MS);
    submit(me, RUEDA_ALLREDUCE, me->rank == 1 ? "b" : "a", &handle);
    return fails(me, handle, words);
}

static void a_rank_that_computes_first_is_waited_for(void **state)
{
    rank_run(*state, 2, compute_first, NULL);
}

/* Slices of a wait without end, as Python waits. */
static int wait_in_slices(struct test_rank *me)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    const int64_t begin_ms = rank_now_ms();
    rueda_status status = RUEDA_ERR_TIMEOUT;
    char error[1024] = "";
    rueda_handle handle;

    result.is_slice = true;
    result.error = error;
    result.error_bytes = sizeof(error);
    submit(me, RUEDA_ALLREDUCE, me->rank == 1 ? "b" : "a", &handle);
    while (status == RUEDA_ERR_TIMEOUT && error[0] == '\0' &&
           rank_now_ms() - begin_ms < SOON_MS)
        status = rueda_wait_for(me->ctx, handle, 100, &result);
    return rank_expect(me, status, RUEDA_ERR_MISMATCH, "a deadlock");
}

static void a_wait_in_slices_counts_as_one_without_end(void **state)
{
    rank_run(*state, 2, wait_in_slices, NULL);
}

/* ---- Programs that go on ---------------------------------------------- */

static int compute_while_others_wait(struct test_rank *me)
{
    rueda_handle handle;

    if (me->rank == 1)
        rank_sleep_ms(LONG_MS);
    submit(me, RUEDA_ALLREDUCE, "a", &handle);
    return succeeds(me, handle);
}

static void a_rank_that_computes_is_no_deadlock(void **state)
{
    rank_run(*state, 3, compute_while_others_wait, NULL);
}

struct helper {
    struct test_rank *me;
    const char *first;
    const char *later;
    int result;
};

static void *wait_in_thread(void *arg)
{
    struct helper *helper = arg;
    rueda_handle handle;

    submit(helper->me, RUEDA_ALLREDUCE, helper->first, &handle);
    helper->result = succeeds(helper->me, handle);
    return NULL;
}

/* Each rank waits in one thread for what the other brings late by another,
 * which has used the context before. */
static int wait_in_two_threads(struct test_rank *me)
{
    struct helper helper = {.me = me, .first = me->rank == 0 ? "a" : "b"};
    rueda_handle handle;
    pthread_t thread;

    submit(me, RUEDA_ALLREDUCE, "both", &handle);
    if (succeeds(me, handle) != 0 ||
        pthread_create(&thread, NULL, wait_in_thread, &helper) != 0)
        return 1;
    rank_sleep_ms(LONG_MS);
    submit(me, RUEDA_ALLREDUCE, me->rank == 0 ? "b" : "a", &handle);
    if (succeeds(me, handle) != 0)
        return 1;
    pthread_join(thread, NULL);
    return helper.result;
}

static void a_second_thread_that_brings_it_late_is_no_deadlock(void **state)
{
    rank_run(*state, 2, wait_in_two_threads, NULL);
}

/* Rank 0 gives up waiting at its deadline, and brings what the other has. */
static int wait_until_a_deadline(struct test_rank *me)
{
    rueda_handle first;
    rueda_handle second;

    submit(me, RUEDA_ALLREDUCE, me->rank == 0 ? "a" : "b", &first);
    if (me->rank == 0 && rank_expect(me, rueda_wait(me->ctx, first, LONG_MS),
                                     RUEDA_ERR_TIMEOUT, "the deadline") != 0)
        return 1;
    if (me->rank == 1 && succeeds(me, first) != 0)
        return 1;
    submit(me, RUEDA_ALLREDUCE, me->rank == 0 ? "b" : "a", &second);
    return succeeds(me, second) != 0 ||
           (me->rank == 0 && succeeds(me, first) != 0);
}

static void a_wait_with_a_deadline_is_no_deadlock(void **state)
{
    rank_run(*state, 2, wait_until_a_deadline, NULL);
}

/* Rank 0 asks again and again, and then brings what the other waits for. */
static int poll_for_long(struct test_rank *me)
{
    const int64_t begin_ms = rank_now_ms();
    rueda_handle first;
    rueda_handle second;

    submit(me, RUEDA_ALLREDUCE, me->rank == 0 ? "a" : "b", &first);
    while (me->rank == 0 && rank_now_ms() - begin_ms < LONG_MS) {
        rueda_poll(me->ctx, first);
        rank_sleep_ms(1);
    }
    if (me->rank == 1 && succeeds(me, first) != 0)
        return 1;
    submit(me, RUEDA_ALLREDUCE, me->rank == 0 ? "b" : "a", &second);
    return succeeds(me, second) != 0 ||
           (me->rank == 0 && succeeds(me, first) != 0);
}

static void a_rank_that_polls_is_no_deadlock(void **state)
{
    rank_run(*state, 2, poll_for_long, NULL);
}

/* A rank that has joined waits for the others, which wait for one that is late.
 */
static int join_early(struct test_rank *me)
{
    rueda_handle handle;
    rueda_handle join;

    if (me->rank == 2)
        rank_sleep_ms(LONG_MS);
    if (me->rank != 0) {
        submit(me, RUEDA_ALLREDUCE, "a", &handle);
        if (succeeds(me, handle) != 0)
            return 1;
    }
    submit(me, RUEDA_JOIN, NULL, &join);
    return succeeds(me, join);
}

static void ranks_that_have_joined_are_no_deadlock(void **state)
{
    rank_run(*state, 3, join_early, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(ranks_that_wait_for_other_names_fail_at_once),
        RANK_TEST(a_tensor_that_one_rank_leaves_out_is_a_deadlock, processes),
        RANK_TEST(what_has_no_name_is_told_by_its_kind_and_number, processes),
        RANK_TEST(the_same_name_in_other_process_sets_is_a_deadlock, processes),
        RANK_TEST(members_of_a_set_fail_while_another_rank_computes, processes),
        RANK_TEST(ranks_that_use_two_sets_go_on, processes),
        RANK_TEST(a_rank_that_computes_first_is_waited_for, processes),
        RANK_TEST(a_wait_in_slices_counts_as_one_without_end, processes),
        RANK_TEST(a_rank_that_computes_is_no_deadlock, processes),
        RANK_TEST(a_second_thread_that_brings_it_late_is_no_deadlock,
                  processes),
        RANK_TEST(a_wait_with_a_deadline_is_no_deadlock, processes),
        RANK_TEST(a_rank_that_polls_is_no_deadlock, processes),
        RANK_TEST(ranks_that_have_joined_are_no_deadlock, processes),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
