/* SPDX-License-Identifier: Apache-2.0 */
/* What a job costs while it does nothing, what memory it takes, and what is
 * left of it in the end. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/coll_check.h"
#include "support/processes.h"

/* Under a sanitizer neither times nor sizes mean anything. */
static void skip_if_slow(void)
{
    if (RANK_IS_SLOW) {
        print_message("skipped: a sanitizer takes time and memory\n");
        skip();
    }
}

/* ---- Time ---------------------------------------------------------------- */

static int64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static int idle(struct test_rank *me)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    rueda_handle handle;
    int64_t before;
    int64_t used;

    args.kind = RUEDA_BARRIER;
    for (int i = 0; i < 10; i++)
        if (rank_expect(me, rueda_start(me->ctx, &args, &handle), RUEDA_OK,
                        "start") ||
            rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_OK, "wait"))
            return 1;
    rank_sleep_ms(50);
    before = cpu_us();
    rank_sleep_ms(1000);
    used = cpu_us() - before;
    if (used >= 10000)
        return rank_says(me, "%d us of idling", (int)used);
    return 0;
}

static void a_second_of_idling_takes_under_10_ms_of_cpu(void **state)
{
    skip_if_slow();
    rank_run(*state, 2, idle, NULL);
}

/* Rank 1 comes a second late; `arg` says whether the background thread waits,
 * or a caller. */
static int waits(struct test_rank *me)
{
    const bool *in_background = me->arg;
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    rueda_status status = RUEDA_OK;
    rueda_handle handle;
    int64_t before;
    int64_t used;

    args.kind = RUEDA_BARRIER;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_OK, "barrier") != 0)
        return 1;
    before = cpu_us();
    if (me->rank == 1)
        rank_sleep_ms(1000);
    if (*in_background) {
        status = rueda_start(me->ctx, &args, &handle);
        rank_sleep_ms(me->rank == 0 ? 900 : 0);
        if (status == RUEDA_OK)
            status = rueda_wait(me->ctx, handle, -1);
    } else {
        status = rueda_run(me->ctx, &args);
    }
    used = cpu_us() - before;
    if (rank_expect(me, status, RUEDA_OK, "late barrier") != 0)
        return 1;
    if (used >= 50000)
        return rank_says(me, "%d us of waiting", (int)used);
    return 0;
}

static void a_second_of_waiting_takes_under_50_ms_of_cpu(void **state)
{
    bool in_background = false;

    skip_if_slow();
    rank_run(*state, 2, waits, &in_background);
    in_background = true;
    rank_run(*state, 2, waits, &in_background);
}

/* ---- Notes --------------------------------------------------------------- */

#define STEPS 5

static int step(struct test_rank *me, int i)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle;
    char name[16];
    float x = 1;

    snprintf(name, sizeof(name), "step.%d", i);
    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.send = &x;
    args.recv = &x;
    return rank_expect(me, rueda_submit(me->ctx, &args, &handle), RUEDA_OK,
                       "submit") ||
           rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK,
                       "wait");
}

/* Some work, and a rest, in which rank 1 is killed. */
static int rests(struct test_rank *me)
{
    for (int i = 0; i < STEPS; i++)
        if (step(me, i) != 0)
            return 1;
    rank_sleep_ms(me->rank == 0 ? 900 : 500);
    if (me->rank == 1)
        kill(getpid(), SIGKILL);
    return 0;
}

/* Operations of rank 1 whose end is in the timeline. */
static int count_ends(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[512];
    int count = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strstr(line, "\"tid\": 1") != NULL &&
            strstr(line, "\"dtype\"") != NULL)
            count++;
    if (file != NULL)
        fclose(file);
    return count;
}

static void who_is_killed_at_rest_has_told_the_timeline_all(void **state)
{
    const struct rank_setup *setup = *state;
    struct processes processes;
    char path[64];

    rank_skip_without_fork();
    snprintf(path, sizeof(path), "/tmp/rueda_idle_%d.json", (int)getpid());
    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    setenv("RUEDA_TIMELINE", path, 1);
    processes_start(&processes, 2, processes_join, rests, NULL);
    unsetenv("RUEDA_TIMELINE");
    unsetenv("RUEDA_TRANSPORT");
    processes.expected[1] = PROCESS_SIGNAL - SIGKILL;

    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
    assert_int_equal(count_ends(path), STEPS);
    unlink(path);
}

/* ---- Memory -------------------------------------------------------------- */

/* Private and shared pages of this process that are in memory. */
static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long total = 0;
    long kib;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kib) == 1 ||
            sscanf(line, "RssShmem: %ld", &kib) == 1)
            total += kib;
    if (file != NULL)
        fclose(file);
    return total;
}

/* Joins by itself, so that all of the context is counted. */
static int takes_memory(struct test_rank *me)
{
    const size_t count = 32 << 20;
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    long *growth = (long *)me->board->room;
    float *buf = malloc(count * sizeof(*buf));
    rueda_status status;
    long before;

    for (size_t i = 0; i < count; i++)
        buf[i] = (float)(i % 64);
    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    before = resident_kib();
    if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_OK, "init") != 0)
        return 1;
    status =
        rueda_allreduce(me->ctx, buf, buf, count, RUEDA_FLOAT32, RUEDA_SUM);
    growth[me->rank] = resident_kib() - before;
    if (rank_expect(me, status, RUEDA_OK, "allreduce") != 0)
        return 1;
    for (size_t i = 0; i < count; i++)
        if (buf[i] != (float)(i % 64 * 2))
            return rank_says(me, "wrong at %zu", i);
    status = rueda_barrier(me->ctx);
    rueda_shutdown(me->ctx);
    if (growth[0] + growth[1] > 64 << 10)
        return rank_says(me, "%ld and %ld KiB", growth[0], growth[1]);
    return rank_expect(me, status, RUEDA_OK, "barrier");
}

static void an_allreduce_of_128_mib_takes_under_64_mib(void **state)
{
    const struct rank_setup *setup = *state;
    struct processes processes;

    skip_if_slow();
    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    processes_start(&processes, 2, processes_by_self, takes_memory, NULL);
    unsetenv("RUEDA_TRANSPORT");
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* ---- What is left ---------------------------------------------------- */

static bool has_file_like(const char *path, const char *name)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    bool found = false;

    if (folder == NULL)
        return false;
    for (entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (strstr(entry->d_name, name) != NULL)
            found = true;
    closedir(folder);
    return found;
}

static bool has_socket(const char *job)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char line[512];
    bool found = false;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strstr(line, job) != NULL)
            found = true;
    if (file != NULL)
        fclose(file);
    return found;
}

static int works_until_killed(struct test_rank *me)
{
    const struct coll_what what = {
        .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 100000};

    while (coll_check(me, &what) == 0)
        continue;
    /* Others were killed first. */
    return pause();
}

/* The last rank never comes, so the others stay at the door. */
static int waits_until_killed(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    args.rank = me->rank;
    args.size = me->size + 1;
    args.job = me->job;
    if (rueda_init(&args, &me->ctx) == RUEDA_OK)
        return rank_says(me, "a job started without its last rank");
    return pause();
}

static void check_nothing_is_left(processes_way way, rank_fn body)
{
    struct processes processes;

    processes_start(&processes, 3, way, body, NULL);
    rank_sleep_ms(200);
    for (int i = 0; i < 3; i++) {
        kill(processes.pids[i], SIGKILL);
        processes.expected[i] = PROCESS_SIGNAL - SIGKILL;
    }

    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
    assert_false(has_socket(processes.job));
    assert_false(has_file_like("/dev/shm", "rueda"));
    assert_false(has_file_like("/dev/shm", processes.job));
}

static void nothing_is_left_when_all_are_killed(void **state)
{
    (void)state;
    check_nothing_is_left(processes_join, works_until_killed);
    check_nothing_is_left(processes_by_self, waits_until_killed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(a_second_of_idling_takes_under_10_ms_of_cpu),
        RANK_EVERYWHERE(a_second_of_waiting_takes_under_50_ms_of_cpu),
        RANK_IN_PROCESSES(who_is_killed_at_rest_has_told_the_timeline_all),
        RANK_IN_PROCESSES(an_allreduce_of_128_mib_takes_under_64_mib),
        cmocka_unit_test(nothing_is_left_when_all_are_killed),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
