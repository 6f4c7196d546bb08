/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that is stopped while others need it: ranks that wait say so,
 * whichever operation they are in and whichever rank it is, and end the job
 * where that is asked for. A rank that only takes long is left alone.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "support/processes.h"
#include "support/test_rank.h"

/* Much longer than any limit here. */
#define SOON_MS 20000

#define BIG ((size_t)4 << 20)

static const size_t shape_4[] = {4};
static const size_t shape_big[] = {BIG};

/* Of all ranks, in memory that they share. */
static volatile pid_t *pids;

static char warnings[8192];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_line(void *arg, rueda_log_level level, const char *line)
{
    size_t used;

    (void)arg;
    pthread_mutex_lock(&lock);
    used = strlen(warnings);
    if (level == RUEDA_LOG_WARN)
        snprintf(warnings + used, sizeof(warnings) - used, "%s\n", line);
    pthread_mutex_unlock(&lock);
}

static void begin(struct test_rank *me)
{
    pids[me->rank] = getpid();
    rueda_log_set_sink(keep_line, NULL);
    while (pids[1 - me->rank] == 0)
        rank_sleep_ms(1);
}

static rueda_status submit(struct test_rank *me, const char *name, bool is_big,
                           rueda_handle *out)
{
    static float small[4];
    static float result[4];
    static float *big;
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    if (big == NULL)
        big = calloc(BIG, sizeof(float));
    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.send = is_big ? big : small;
    args.recv = is_big ? big : result;
    args.dims = 1;
    args.shape = is_big ? shape_big : shape_4;
    args.reduction = RUEDA_SUM;
    return rueda_submit(me->ctx, &args, out);
}

/* The wait of this rank has ended so, and the log names the stopped process. */
static int has_ended(struct test_rank *me, rueda_status status,
                     int64_t begin_ms)
{
    const int64_t took_ms = rank_now_ms() - begin_ms;
    char words[64];

    kill(pids[1 - me->rank], SIGCONT);
    if (rank_expect(me, status, RUEDA_ERR_STALLED, "a stopped rank") != 0)
        return 1;
    if (took_ms > SOON_MS)
        return rank_says(me, "that took %d ms", (int)took_ms);
    snprintf(words, sizeof(words), "pid %d", (int)pids[1 - me->rank]);
    if (strstr(rueda_error(me->ctx), words) == NULL &&
        strstr(warnings, words) == NULL)
        return rank_says(me, "no \"%s\" in \"%s\" and \"%s\"", words,
                         rueda_error(me->ctx), warnings);
    if (strstr(rueda_error(me->ctx), "is stopped") == NULL &&
        strstr(warnings, "is stopped") == NULL)
        return rank_says(me, "nobody says stopped: \"%s\" and \"%s\"",
                         rueda_error(me->ctx), warnings);
    return 0;
}

static void prepare(const char *const *settings)
{
    rank_skip_without_fork();
    pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    unsetenv("RUEDA_STALL_SHUTDOWN");
    unsetenv("RUEDA_STALL_GIVE_UP");
    for (int i = 0; settings[i] != NULL; i += 2)
        setenv(settings[i], settings[i + 1], 1);
}

static void clean_up(const char *const *settings)
{
    for (int i = 0; settings[i] != NULL; i += 2)
        unsetenv(settings[i]);
    munmap((void *)pids, 4096);
}

static void run(const struct rank_setup *setup, rank_fn body,
                const char *const *settings)
{
    prepare(settings);
    rank_run(setup, 2, body, NULL);
    clean_up(settings);
}

static const char *const ends_soon[] = {"RUEDA_STALL_WARN", "400ms",
                                        "RUEDA_STALL_SHUTDOWN", "1500ms", NULL};
static const char *const gives_up_soon[] = {
    "RUEDA_STALL_WARN", "400ms", "RUEDA_STALL_GIVE_UP", "1500ms", NULL};

/* ---- In the middle of large tensors ----------------------------------- */

static void *stop_rank_1(void *arg)
{
    (void)arg;
    rank_sleep_ms(100);
    kill(pids[1], SIGSTOP);
    return NULL;
}

static int stop_in_the_middle(struct test_rank *me)
{
    int64_t begin_ms = rank_now_ms();
    rueda_status status = RUEDA_OK;
    rueda_handle handle;
    pthread_t thread;

    begin(me);
    if (me->rank == 0 && pthread_create(&thread, NULL, stop_rank_1, NULL) != 0)
        return 1;
    while (status == RUEDA_OK && rank_now_ms() - begin_ms < SOON_MS) {
        status = submit(me, "big", true, &handle);
        if (status == RUEDA_OK)
            status = rueda_wait(me->ctx, handle, -1);
    }
    if (me->rank == 0) {
        pthread_join(thread, NULL);
        return has_ended(me, status, begin_ms);
    }
    return rank_expect(me, status, RUEDA_ERR_PEER_LOST, "the end");
}

static void a_rank_stopped_in_the_middle_is_told_and_ends_the_job(void **state)
{
    run(*state, stop_in_the_middle, ends_soon);
}

static void a_rank_that_stays_stopped_ends_the_job_by_default(void **state)
{
    run(*state, stop_in_the_middle, gives_up_soon);
}

/* ---- Rank 0 ----------------------------------------------------------- */

static int stop_rank_0(struct test_rank *me)
{
    const int64_t begin_ms = rank_now_ms();
    rueda_status status;
    rueda_handle handle;

    begin(me);
    if (me->rank == 0) {
        /* The context may have failed meanwhile, because of rank 1. */
        rank_sleep_ms(1000);
        status = submit(me, "a", false, &handle);
        if (status == RUEDA_OK)
            status = rueda_wait(me->ctx, handle, -1);
        return rank_expect(me, status, RUEDA_ERR_PEER_LOST, "the end");
    }
    rank_sleep_ms(200);
    kill(pids[0], SIGSTOP);
    submit(me, "a", false, &handle);
    return has_ended(me, rueda_wait(me->ctx, handle, -1), begin_ms);
}

static void also_a_stopped_rank_0_is_told_and_ends_the_job(void **state)
{
    run(*state, stop_rank_0, ends_soon);
}

/* ---- Ordered operations ----------------------------------------------- */

static int stop_before_an_ordered_one(struct test_rank *me)
{
    const int64_t begin_ms = rank_now_ms();
    float values[4] = {0};
    rueda_status status;

    begin(me);
    if (me->rank == 1)
        raise(SIGSTOP);
    status =
        rueda_allreduce(me->ctx, values, values, 4, RUEDA_FLOAT32, RUEDA_SUM);
    /* Rank 0 has left its part, so the other may have ended it. */
    return me->rank == 1 ? 0 : has_ended(me, status, begin_ms);
}

static void an_ordered_operation_is_watched_too(void **state)
{
    run(*state, stop_before_an_ordered_one, ends_soon);
}

/* All wait, one of them in an ordered operation: nothing is proven, so time has
 * to pass. */
static int wait_in_other_ways(struct test_rank *me)
{
    float values[4] = {0};
    rueda_handle handle;
    rueda_status status;

    begin(me);
    if (me->rank == 0) {
        status = rueda_allreduce(me->ctx, values, values, 4, RUEDA_FLOAT32,
                                 RUEDA_SUM);
    } else {
        submit(me, "a", false, &handle);
        status = rueda_wait(me->ctx, handle, -1);
    }
    if (status == RUEDA_ERR_PEER_LOST)
        return 0;
    return rank_expect(me, status, RUEDA_ERR_STALLED, "no rank moves");
}

static void ranks_that_all_wait_end_the_job_by_default(void **state)
{
    run(*state, wait_in_other_ways, gives_up_soon);
}

/* ---- A job that is stopped as a whole --------------------------------- */

/* In the shared memory, behind the two processes. */
#define WAITS   2 /* rank 1 is about to wait */
#define GOES_ON 3 /* all have been continued */

static const char *const gives_up_in_any_way[] = {"RUEDA_STALL_WARN",
                                                  "400ms",
                                                  "RUEDA_STALL_SHUTDOWN",
                                                  "1500ms",
                                                  "RUEDA_STALL_GIVE_UP",
                                                  "1500ms",
                                                  NULL};

static int run_named(struct test_rank *me)
{
    rueda_handle handle;
    rueda_status status = submit(me, "a", false, &handle);

    return status == RUEDA_OK ? rueda_wait(me->ctx, handle, -1) : status;
}

static int run_ordered(struct test_rank *me)
{
    float values[4] = {0};

    return rueda_allreduce(me->ctx, values, values, 4, RUEDA_FLOAT32,
                           RUEDA_SUM);
}

static int wait_through(struct test_rank *me, rank_fn operation)
{
    begin(me);
    if (me->rank == 0) {
        while (pids[GOES_ON] == 0)
            rank_sleep_ms(1);
        rank_sleep_ms(200);
    } else {
        pids[WAITS] = 1;
    }
    return rank_expect(me, (rueda_status)operation(me), RUEDA_OK,
                       "an operation that was in flight meanwhile");
}

static int wait_through_named(struct test_rank *me)
{
    return wait_through(me, run_named);
}

static int wait_through_ordered(struct test_rank *me)
{
    return wait_through(me, run_ordered);
}

/* As a batch system does that suspends a job for another one. */
static void suspend(const struct processes *processes)
{
    const int64_t begin_ms = rank_now_ms();

    while (pids[WAITS] == 0 && rank_now_ms() - begin_ms < SOON_MS)
        rank_sleep_ms(1);
    rank_sleep_ms(300);
    for (int i = 0; i < 2; i++)
        kill(processes->pids[i], SIGSTOP);
    rank_sleep_ms(3000);
    for (int i = 0; i < 2; i++)
        kill(processes->pids[i], SIGCONT);
    pids[GOES_ON] = 1;
}

static void a_job_that_is_suspended_as_a_whole_goes_on(void **state)
{
    static const rank_fn bodies[] = {wait_through_named, wait_through_ordered};

    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct processes processes;
        int failures;

        prepare(gives_up_in_any_way);
        processes_start(&processes, 2, processes_join, bodies[i], NULL);
        suspend(&processes);
        failures = processes_end(&processes, RANK_DEADLINE_MS);
        clean_up(gives_up_in_any_way);
        assert_int_equal(failures, 0);
    }
}

/* ---- A rank that takes long ------------------------------------------- */

static int take_long(struct test_rank *me)
{
    float values[4] = {0};
    rueda_handle handle;

    begin(me);
    if (me->rank == 1)
        rank_sleep_ms(2500);
    submit(me, "a", false, &handle);
    if (rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_OK,
                    "a late tensor") != 0)
        return 1;
    if (me->rank == 1)
        rank_sleep_ms(2500);
    return rank_expect(
        me,
        rueda_allreduce(me->ctx, values, values, 4, RUEDA_FLOAT32, RUEDA_SUM),
        RUEDA_OK, "a late rank");
}

static void a_rank_that_sleeps_elsewhere_is_never_ended_by_default(void **state)
{
    run(*state, take_long, gives_up_soon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(
            a_rank_stopped_in_the_middle_is_told_and_ends_the_job),
        RANK_TEST(a_rank_that_stays_stopped_ends_the_job_by_default, processes),
        RANK_TEST(also_a_stopped_rank_0_is_told_and_ends_the_job, processes),
        RANK_TEST(an_ordered_operation_is_watched_too, processes),
        RANK_TEST(ranks_that_all_wait_end_the_job_by_default, processes),
        cmocka_unit_test(a_job_that_is_suspended_as_a_whole_goes_on),
        RANK_TEST(a_rank_that_sleeps_elsewhere_is_never_ended_by_default,
                  processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
