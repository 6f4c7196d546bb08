/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Systems that lack something. Without pidfd_open() (Linux before 5.3, or a
 * container that forbids it) ranks start, run, and see each other die, also one
 * whose child lives on. With few addresses the segment is smaller. The linker
 * directs the library's system calls by number to __wrap_syscall()
 * (CMakeLists.txt).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/processes.h"

enum {
    RANKS = 3,
    VICTIM = 1,
    LATE_MS = 10000,
};

static int code; /* of pidfd_open() */

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
long __real_syscall(long number, long a, long b, long c, long d, long e,
                    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
                    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_pidfd_open) {
        errno = code;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

static int add(struct test_rank *me)
{
    float sum = 1;

    if (rank_expect(
            me,
            rueda_allreduce(me->ctx, &sum, &sum, 1, RUEDA_FLOAT32, RUEDA_SUM),
            RUEDA_OK, "an allreduce") != 0)
        return 1;
    return sum == (float)me->size ? 0 : rank_says(me, "sum %g", (double)sum);
}

static int a_rank_dies(struct test_rank *me)
{
    const int64_t start = rank_now_ms();

    if (add(me) != 0)
        return 1;
    if (me->rank == VICTIM) {
        if (fork() == 0) {
            close(STDOUT_FILENO);
            close(STDERR_FILENO);
            sleep(LATE_MS / 1000 + 2);
            _exit(0);
        }
        raise(SIGKILL);
    }
    if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_ERR_PEER_LOST,
                    "a barrier without the victim") != 0)
        return 1;
    if (strstr(rueda_last_error(), "rank 1 (pid ") == NULL ||
        strstr(rueda_last_error(), "died") == NULL)
        return rank_says(me, "said \"%s\"", rueda_last_error());
    return rank_now_ms() - start < LATE_MS ? 0 : rank_says(me, "late");
}

/* Some GiB, of which one segment of two ranks would take 128. */
static int in_few_addresses(struct test_rank *me)
{
    const struct rlimit limit = {(rlim_t)3 << 30, (rlim_t)3 << 30};
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[RANK_WORDS] = "";
    void *memory;
    int wrong;

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    args.error = words;
    args.error_bytes = sizeof(words);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return rank_says(me, "no limit: %s", strerror(errno));
    if (rueda_init(&args, &me->ctx) != RUEDA_OK)
        return rank_says(me, "%s", words);
    wrong = add(me);
    if (wrong == 0)
        wrong = rank_expect(me, rueda_alloc(me->ctx, 8 << 20, &memory),
                            RUEDA_OK, "memory of the segment");
    if (wrong == 0)
        memset(memory, 1, 8 << 20);
    rueda_shutdown(me->ctx);
    return wrong;
}

static void run_so(processes_way way, rank_fn body, int errno_of_it, int victim)
{
    struct processes processes;

    code = errno_of_it;
    memset(&processes, 0, sizeof(processes));
    processes_start(&processes, RANKS, way, body, NULL);
    if (victim >= 0)
        processes.expected[victim] = PROCESS_SIGNAL - SIGKILL;
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

static void run(rank_fn body, int errno_of_it, int victim)
{
    run_so(processes_join, body, errno_of_it, victim);
}

static void a_segment_fits_few_addresses(void **state)
{
    (void)state;
    if (RANK_IS_SLOW)
        skip(); /* the shadow of a sanitizer takes more */
    run_so(processes_by_self, in_few_addresses, ENOSYS, -1);
}

static void ranks_start_and_leave_without_pidfds(void **state)
{
    (void)state;
    run(add, ENOSYS, -1);
    run(add, EPERM, -1);
}

static void a_death_is_seen_without_pidfds(void **state)
{
    (void)state;
    run(a_rank_dies, ENOSYS, VICTIM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_start_and_leave_without_pidfds),
        cmocka_unit_test(a_death_is_seen_without_pidfds),
        cmocka_unit_test(a_segment_fits_few_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
