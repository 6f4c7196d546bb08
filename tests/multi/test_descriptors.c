/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that has no descriptor left for the connections of its first
 * operation: every rank gets an error that names the descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/processes.h"

#define RANKS    2
#define LIMIT    256
#define START_MS 3000
#define LATE_MS  40000

struct plan {
    int victim;
    /* It keeps the descriptors that it has, and each that it closes can be
     * used again, as in a process that leaks; else not even that. */
    bool is_full;
};

static int use_up(bool is_full)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    limit.rlim_cur = is_full ? LIMIT : 0;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    while (is_full && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        continue;
    return is_full && errno != EMFILE ? -1 : 0;
}

static int join(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    args.timeout_ms = START_MS;
    return rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_OK, "init");
}

static int run_short(struct test_rank *me)
{
    const struct plan *plan = me->arg;
    float one = 1;

    if (join(me) != 0)
        return 1;
    if (me->rank == plan->victim && use_up(plan->is_full) != 0)
        return rank_says(me, "cannot use up its descriptors");
    if (rank_expect(
            me,
            rueda_allreduce(me->ctx, &one, &one, 1, RUEDA_FLOAT32, RUEDA_SUM),
            RUEDA_ERR_PEER_LOST, "allreduce") != 0)
        return 1;
    if (strstr(rueda_error(me->ctx), "ulimit -n") == NULL)
        return rank_says(me, "said \"%s\"", rueda_error(me->ctx));
    rueda_shutdown(me->ctx);
    return 0;
}

static void check(struct plan plan)
{
    struct processes processes;

    processes_start(&processes, RANKS, processes_by_self, run_short, &plan);
    assert_int_equal(processes_end(&processes, LATE_MS), 0);
}

static void a_rank_that_cannot_accept_is_named(void **state)
{
    (void)state;
    check((struct plan){.victim = 1, .is_full = true});
}

static void a_rank_that_cannot_even_hang_up_is_named(void **state)
{
    (void)state;
    check((struct plan){.victim = 1});
}

static void a_rank_that_cannot_dial_is_named(void **state)
{
    (void)state;
    check((struct plan){.victim = 0, .is_full = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_cannot_accept_is_named),
        cmocka_unit_test(a_rank_that_cannot_even_hang_up_is_named),
        cmocka_unit_test(a_rank_that_cannot_dial_is_named),
    };

    rank_hush();
    setenv("RUEDA_TRANSPORT", "tcp", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
