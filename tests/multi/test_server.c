/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two workers that run collectives, and a server that is in none of them: it
 * receives from whichever worker sends first, and answers. The server is the
 * last of three ranks.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/processes.h"

enum {
    WORKERS = 2,
    RANKS = 3,
    SERVER = 2,
    STEPS = 20,
    MOST = 1000, /* numbers of a message */
    ASK = 1,     /* tags */
    ANSWER = 2,
    VICTIM = 1,
};

/* ---- Messages ----------------------------------------------------------- */

static rueda_status talk(struct test_rank *me, rueda_kind kind, int peer,
                         int tag, float *numbers, size_t count,
                         struct rueda_result *result)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle;
    rueda_status status;

    args.kind = kind;
    args.set = RUEDA_WHOLE_JOB;
    args.peer = peer;
    args.tag = tag;
    args.send = numbers;
    args.recv = numbers;
    args.dims = 1;
    args.shape = &count;
    status = rueda_submit(me->ctx, &args, &handle);
    return status == RUEDA_OK
               ? rueda_wait_for(me->ctx, handle, RANK_DEADLINE_MS, result)
               : status;
}

/* ---- The server --------------------------------------------------------- */

/* Answers each message with its sum, until all workers have left, or `most` are
 * answered. Counts them by their sender. */
static int serve(struct test_rank *me, int most, int answered[WORKERS])
{
    for (int count = 0; count < most; count++) {
        struct rueda_result result = RUEDA_RESULT_INIT;
        float numbers[MOST];
        float sum = 0;
        rueda_status status =
            talk(me, RUEDA_RECV, RUEDA_ANY_PEER, ASK, numbers, MOST, &result);

        if (status == RUEDA_ERR_PEER_LOST)
            return strstr(rueda_last_error(), "all other ranks") != NULL
                       ? 0
                       : rank_says(me, "ended by \"%s\"", rueda_last_error());
        if (rank_expect(me, status, RUEDA_OK, "receive from any") != 0)
            return 1;
        if (result.peer < 0 || result.peer >= WORKERS)
            return rank_says(me, "rank %d sent it", result.peer);
        for (size_t i = 0; i < result.rows; i++)
            sum += numbers[i];
        answered[result.peer]++;
        status = talk(me, RUEDA_SEND, result.peer, ANSWER, &sum, 1, &result);
        if (status != RUEDA_OK && !rueda_is_lost(me->ctx, result.peer))
            return rank_says(me, "answer: %s", rueda_last_error());
    }
    return 0;
}

/* No collective is the server's. */
static int is_outside(struct test_rank *me)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    const int pair[2] = {0, SERVER};
    rueda_handle handle;
    int set;

    if (!rueda_is_server(me->ctx) || rueda_rank(me->ctx) != SERVER ||
        rueda_size(me->ctx) != WORKERS || rueda_server_count(me->ctx) != 1 ||
        rueda_set_rank(me->ctx, RUEDA_ALL_RANKS) != -1 ||
        rueda_set_size(me->ctx, RUEDA_WHOLE_JOB) != RANKS)
        return rank_says(me, "is rank %d of %d", rueda_rank(me->ctx),
                         rueda_size(me->ctx));
    if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_ERR_INVALID,
                    "a barrier of the server") != 0)
        return 1;
    if (strstr(rueda_last_error(), "RUEDA_SERVERS") == NULL)
        return rank_says(me, "said \"%s\"", rueda_last_error());
    args.kind = RUEDA_BARRIER;
    args.name = "b";
    if (rank_expect(me, rueda_submit(me->ctx, &args, &handle),
                    RUEDA_ERR_INVALID, "a named barrier") != 0)
        return 1;
    args.set = RUEDA_WHOLE_JOB;
    return rank_expect(me, rueda_submit(me->ctx, &args, &handle),
                       RUEDA_ERR_INVALID, "a barrier of the whole job") +
           rank_expect(me, rueda_set_create(me->ctx, pair, 2, &set),
                       RUEDA_ERR_INVALID, "a set of the server") +
           rank_expect(me, rueda_timeline_stop(me->ctx), RUEDA_OK,
                       "the end of no timeline");
}

/* ---- A worker ----------------------------------------------------------- */

/* Messages of step + 1 numbers, or the most. */
static int ask(struct test_rank *me, int step)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    const size_t count = step % 5 == 4 ? MOST : (size_t)step + 1;
    float numbers[MOST];
    float sum = -1;
    rueda_status status;

    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(me->rank + 1);
    status = talk(me, RUEDA_SEND, SERVER, ASK, numbers, count, &result);
    if (status == RUEDA_OK)
        status = talk(me, RUEDA_RECV, SERVER, ANSWER, &sum, 1, &result);
    if (rank_expect(me, status, RUEDA_OK, "ask the server") != 0)
        return 1;
    if (sum != (float)(count * (size_t)(me->rank + 1)) || result.peer != SERVER)
        return rank_says(me, "%g for %zu numbers", (double)sum, count);
    return 0;
}

/* An ordered sum and a named one. */
static int add(struct test_rank *me, int step)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    const size_t count = MOST;
    float numbers[MOST];
    float sums[MOST];
    rueda_handle handle;
    rueda_status status;

    for (int i = 0; i < MOST; i++)
        numbers[i] = (float)(i + step + me->rank);
    status =
        rueda_allreduce(me->ctx, numbers, sums, MOST, RUEDA_FLOAT32, RUEDA_SUM);
    if (rank_expect(me, status, RUEDA_OK, "an allreduce") != 0)
        return 1;
    args.kind = RUEDA_ALLREDUCE;
    args.name = "gradient";
    args.send = sums;
    args.recv = numbers;
    args.reduction = RUEDA_AVERAGE;
    args.dims = 1;
    args.shape = &count;
    status = rueda_submit(me->ctx, &args, &handle);
    if (status == RUEDA_OK)
        status = rueda_wait(me->ctx, handle, RANK_DEADLINE_MS);
    if (rank_expect(me, status, RUEDA_OK, "a named allreduce") != 0)
        return 1;
    for (int i = 0; i < MOST; i++)
        if (numbers[i] != (float)(2 * (i + step) + 1))
            return rank_says(me, "place %d is %g", i, (double)numbers[i]);
    return 0;
}

static int train(struct test_rank *me)
{
    if (rueda_is_server(me->ctx) || rueda_size(me->ctx) != WORKERS ||
        rueda_rank(me->ctx) != me->rank)
        return rank_says(me, "a worker of %d", rueda_size(me->ctx));
    for (int step = 0; step < STEPS; step++)
        if (add(me, step) != 0 || ask(me, step) != 0)
            return 1;
    return rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "a barrier");
}

static int live(struct test_rank *me)
{
    int answered[WORKERS] = {0};

    if (me->rank != SERVER)
        return train(me);
    if (is_outside(me) != 0 || serve(me, INT_MAX, answered) != 0)
        return 1;
    for (int i = 0; i < WORKERS; i++)
        if (answered[i] != STEPS)
            return rank_says(me, "answered rank %d %d times", i, answered[i]);
    return 0;
}

/* ---- Deaths ------------------------------------------------------------- */

/* The victim dies, and the server goes on to serve the other worker. */
static int a_worker_dies(struct test_rank *me)
{
    int answered[WORKERS] = {0};

    if (me->rank == SERVER) {
        if (serve(me, INT_MAX, answered) != 0)
            return 1;
        if (!rueda_is_lost(me->ctx, VICTIM) || answered[0] != 2 * STEPS)
            return rank_says(me, "answered %d times", answered[0]);
        return rueda_error(me->ctx)[0] == '\0'
                   ? 0
                   : rank_says(me, "failed: %s", rueda_error(me->ctx));
    }
    for (int step = 0; step < STEPS; step++)
        if (ask(me, step) != 0)
            return 1;
    if (me->rank == VICTIM)
        raise(SIGKILL);
    for (int step = 0; step < STEPS; step++)
        if (ask(me, step) != 0)
            return 1;
    return 0;
}

/* Workers that miss it are told, and go on with their own collectives. */
static int the_server_dies(struct test_rank *me)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    float number = 1;
    int answered[WORKERS] = {0};
    rueda_status status;

    if (me->rank == SERVER)
        return serve(me, WORKERS, answered) + raise(SIGKILL);
    if (ask(me, 1) != 0)
        return 1;
    status = talk(me, RUEDA_RECV, SERVER, ANSWER, &number, 1, &result);
    if (rank_expect(me, status, RUEDA_ERR_PEER_LOST, "hear a dead server") != 0)
        return 1;
    if (strstr(rueda_last_error(), "rank 2 has left or died") == NULL)
        return rank_says(me, "said \"%s\"", rueda_last_error());
    if (!rueda_is_lost(me->ctx, SERVER) || rueda_is_lost(me->ctx, !me->rank))
        return rank_says(me, "does not know who is lost");
    return add(me, 1);
}

/* ---- Other jobs --------------------------------------------------------- */

/* A message from any worker to any other, where there is no server: longer and
 * shorter ones, of more rows than there is room for, and from a mate in a set
 * of all ranks. */
static int without_a_server(struct test_rank *me)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    float numbers[4] = {1, 2, 3, 4};
    rueda_status status;

    if (rueda_server_count(me->ctx) != 0 || rueda_size(me->ctx) != RANKS)
        return rank_says(me, "%d servers", rueda_server_count(me->ctx));
    if (me->rank > 0) {
        status = talk(me, RUEDA_SEND, 0, me->rank, numbers, 4, &result);
        return rank_expect(me, status, RUEDA_OK, "send") +
               rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
    }
    status = talk(me, RUEDA_RECV, RUEDA_ANY_PEER, 1, numbers, 3, &result);
    if (rank_expect(me, status, RUEDA_ERR_MISMATCH, "no room for it") != 0)
        return 1;
    numbers[3] = 0;
    status = talk(me, RUEDA_RECV, RUEDA_ANY_PEER, 2, numbers, 4, &result);
    if (rank_expect(me, status, RUEDA_OK, "receive") != 0)
        return 1;
    if (result.peer != 2 || result.rows != 4 || numbers[3] != 4)
        return rank_says(me, "%zu rows of rank %d", result.rows, result.peer);
    return rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
}

static int is_refused(struct test_rank *me, int servers, rueda_status wanted,
                      const char *words)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char error[512] = "";

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    args.servers = servers;
    args.error = error;
    args.error_bytes = sizeof(error);
    if (rank_expect(me, rueda_init(&args, &me->ctx), wanted, "init") != 0)
        return 1;
    return strstr(error, words) != NULL ? 0 : rank_says(me, "said %s", error);
}

static int with_other_settings(struct test_rank *me)
{
    return is_refused(me, RANKS, RUEDA_ERR_INVALID, "at least one") +
           is_refused(me, me->rank == 1 ? 0 : 1, RUEDA_ERR_MISMATCH,
                      "\"1 servers\"");
}

/* ---- Tests -------------------------------------------------------------- */

static void run(processes_way way, rank_fn body, int victim)
{
    struct processes processes;

    memset(&processes, 0, sizeof(processes));
    processes_start(&processes, RANKS, way, body, NULL);
    if (victim >= 0)
        processes.expected[victim] = PROCESS_SIGNAL - SIGKILL;
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

static void run_by(const char *transport, rank_fn body, int victim)
{
    setenv("RUEDA_TRANSPORT", transport, 1);
    setenv("RUEDA_SERVERS", "1", 1);
    run(processes_join, body, victim);
    unsetenv("RUEDA_SERVERS");
    unsetenv("RUEDA_TRANSPORT");
}

static void a_server_answers_the_worker_that_sends_first(void **state)
{
    (void)state;
    run_by("auto", live, -1);
    run_by("shm", live, -1);
    run_by("tcp", live, -1);
}

static void a_server_outlives_a_worker(void **state)
{
    (void)state;
    run_by("auto", a_worker_dies, VICTIM);
    run_by("tcp", a_worker_dies, VICTIM);
}

static void workers_outlive_a_server(void **state)
{
    (void)state;
    run_by("auto", the_server_dies, SERVER);
    run_by("tcp", the_server_dies, SERVER);
}

static void workers_receive_from_any_as_well(void **state)
{
    (void)state;
    run(processes_join, without_a_server, -1);
}

static void wrong_numbers_of_servers_are_refused(void **state)
{
    (void)state;
    run(processes_by_self, with_other_settings, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_answers_the_worker_that_sends_first),
        cmocka_unit_test(a_server_outlives_a_worker),
        cmocka_unit_test(workers_outlive_a_server),
        cmocka_unit_test(workers_receive_from_any_as_well),
        cmocka_unit_test(wrong_numbers_of_servers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
