/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank that dies, leaves or is stopped while others are in the middle of
 * something. The victim is always rank 1.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/coll_check.h"
#include "support/processes.h"

/* Ten times what is meant, since a busy machine takes its time. */
#define DEATH_LATE_MS 10000
#define AT_ONCE_MS    10000

#define VICTIM 1
#define RANKS  3

/* Where the victim writes when it goes. */
static volatile int64_t *time_of_death(struct test_rank *me)
{
    return (volatile int64_t *)me->board->room;
}

struct death {
    struct coll_what what;
    const char *how; /* what the others should say of it */
    void (*go)(struct test_rank *me);
};

/* ---- Ways to go ---------------------------------------------------------- */

static void be_killed(struct test_rank *me)
{
    *time_of_death(me) = rank_now_ms();
    raise(SIGKILL);
}

/* The child has all that its parent had, and lives on. */
static void be_killed_with_a_child(struct test_rank *me)
{
    if (fork() == 0) {
        sleep(3);
        _exit(0);
    }
    be_killed(me);
}

static void exit_without_shutdown(struct test_rank *me)
{
    *time_of_death(me) = rank_now_ms();
    _exit(0);
}

static void shut_down(struct test_rank *me)
{
    *time_of_death(me) = rank_now_ms();
    rueda_shutdown(me->ctx);
    /* Still alive, so that no rank takes it for dead. */
    rank_sleep_ms(300);
    _exit(0);
}

/* As a program does that ends by an exception. */
static void say_why_and_exit(struct test_rank *me)
{
    *time_of_death(me) = rank_now_ms();
    rueda_fail(me->ctx, "ValueError: the loss is NaN");
    if (rueda_barrier(me->ctx) != RUEDA_ERR_CANCELLED ||
        strcmp(rueda_error(me->ctx), "ValueError: the loss is NaN") != 0)
        rank_says(me, "its own words are \"%s\"", rueda_error(me->ctx));
    _exit(3);
}

/* ---- The others ------------------------------------------------------ */

/* After a failure: who is named, how soon it came, and what comes after. */
static int check_words(struct test_rank *me, const char *how)
{
    int64_t took = rank_now_ms() - *time_of_death(me);
    char words[RANK_WORDS];
    char who[32];
    int64_t start;

    snprintf(words, sizeof(words), "%s", rueda_error(me->ctx));
    if (strcmp(rueda_last_error(), words) != 0)
        return rank_says(me, "said last \"%s\"", rueda_last_error());
    snprintf(who, sizeof(who), "rank %d ", VICTIM);
    if (strncmp(words, who, strlen(who)) != 0 || strstr(words, how) == NULL)
        return rank_says(me, "said \"%s\"", words);
    if (*time_of_death(me) == 0 || took > DEATH_LATE_MS)
        return rank_says(me, "took %d ms", (int)took);
    start = rank_now_ms();
    if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_ERR_PEER_LOST,
                    "barrier afterwards") != 0)
        return 1;
    if (rank_now_ms() - start > AT_ONCE_MS)
        return rank_says(me, "the next call did not fail at once");
    if (strcmp(words, rueda_error(me->ctx)) != 0)
        return rank_says(me, "said \"%s\", then \"%s\"", words,
                         rueda_error(me->ctx));
    return 0;
}

/* The victim goes while the others are blocked. */
static int blocked(struct test_rank *me)
{
    const struct death *death = me->arg;
    struct coll_run run;
    char words[160];

    if (coll_prepare(me, &death->what, &run) != 0 ||
        rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
        return 1;
    if (me->rank == VICTIM) {
        rank_sleep_ms(100);
        death->go(me);
    }
    if (rank_expect(me, rueda_run(me->ctx, &run.args), RUEDA_ERR_PEER_LOST,
                    coll_describe(&death->what, words, sizeof(words))) != 0)
        return 1;
    coll_release(me, &run);
    return check_words(me, death->how);
}

static void *kill_soon(void *arg)
{
    rank_sleep_ms(40);
    be_killed(arg);
    return NULL;
}

/* The victim goes while all are busy. */
static int streaming(struct test_rank *me)
{
    const struct death *death = me->arg;
    rueda_status status = RUEDA_OK;
    struct coll_run run;
    pthread_t killer;

    if (coll_prepare(me, &death->what, &run) != 0 ||
        rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
        return 1;
    if (me->rank == VICTIM)
        pthread_create(&killer, NULL, kill_soon, me);
    while (status == RUEDA_OK)
        status = rueda_run(me->ctx, &run.args);
    if (rank_expect(me, status, RUEDA_ERR_PEER_LOST, "streaming") != 0)
        return 1;
    coll_release(me, &run);
    return check_words(me, death->how);
}

static void run_death(const struct rank_setup *setup, rank_fn body,
                      struct death *death, int code)
{
    struct processes processes;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    processes_start(&processes, RANKS, processes_join, body, death);
    unsetenv("RUEDA_TRANSPORT");
    processes.expected[VICTIM] = code;
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* ---- Tests ----------------------------------------------------------- */

/* Of the victim's own data, where only one rank's data matter. */
static struct death death_for(int kind, size_t count)
{
    return (struct death){
        .what = {.kind = (rueda_kind)kind,
                 .dtype = RUEDA_FLOAT32,
                 .count = count,
                 .root = VICTIM},
        .how = "died",
        .go = be_killed,
    };
}

static void a_death_is_named_by_all_who_wait_in_any_kind(void **state)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        struct death few = death_for(kind, 4);
        struct death many = death_for(kind, 500000);

        run_death(*state, blocked, &few, PROCESS_SIGNAL - SIGKILL);
        run_death(*state, blocked, &many, PROCESS_SIGNAL - SIGKILL);
    }
}

static void a_death_is_named_by_all_who_stream_in_any_kind(void **state)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        struct death death = death_for(kind, 700001);

        run_death(*state, streaming, &death, PROCESS_SIGNAL - SIGKILL);
    }
}

static void a_death_is_seen_although_a_child_lives_on(void **state)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        struct death death = death_for(kind, 500000);

        death.go = be_killed_with_a_child;
        run_death(*state, blocked, &death, PROCESS_SIGNAL - SIGKILL);
    }
}

static void an_exit_without_shutdown_counts_as_death(void **state)
{
    struct death death = death_for(RUEDA_ALLREDUCE, 500000);

    death.go = exit_without_shutdown;
    run_death(*state, blocked, &death, 0);
}

static void a_rank_that_shut_down_is_named_as_such(void **state)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        struct death death = death_for(kind, 500000);

        death.how = "shut down";
        death.go = shut_down;
        if (kind == RUEDA_ALLREDUCE || kind == RUEDA_BARRIER)
            run_death(*state, blocked, &death, 0);
    }
}

/* Another thread of the failing rank waits in an operation meanwhile. */
static void *fail_soon(void *arg)
{
    struct test_rank *me = arg;

    rank_sleep_ms(50);
    rueda_fail(me->ctx, "told by another thread");
    rueda_fail(me->ctx, "and again");
    return NULL;
}

static int failed_while_waiting(struct test_rank *me)
{
    float numbers[3] = {0};
    rueda_status status;
    pthread_t other;

    if (me->rank == VICTIM)
        pthread_create(&other, NULL, fail_soon, me);
    else
        rank_sleep_ms(200);
    status =
        rueda_allreduce(me->ctx, numbers, numbers, 3, RUEDA_FLOAT32, RUEDA_SUM);
    if (me->rank == VICTIM)
        pthread_join(other, NULL);
    else if (status == RUEDA_OK) /* it had done its part in that one */
        status = rueda_barrier(me->ctx);
    if (rank_expect(me, status,
                    me->rank == VICTIM ? RUEDA_ERR_CANCELLED
                                       : RUEDA_ERR_PEER_LOST,
                    "after the failure") != 0)
        return 1;
    if (strstr(rueda_error(me->ctx), "told by another thread") == NULL)
        return rank_says(me, "said \"%s\"", rueda_error(me->ctx));
    rank_sleep_ms(300);
    return 0;
}

static void a_failure_ends_what_other_threads_wait_for(void **state)
{
    rank_run(*state, RANKS, failed_while_waiting, NULL);
}

/* ---- Blame ----------------------------------------------------------- */

/* Those who see the death leave at once, and some see it later. */
static int late_to_see(struct test_rank *me)
{
    const struct death *death = me->arg;

    if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
        return 1;
    if (me->rank == VICTIM)
        death->go(me);
    if (me->rank == me->size - 1)
        rank_sleep_ms(300);
    if (rank_expect(me, rueda_barrier(me->ctx), RUEDA_ERR_PEER_LOST,
                    "barrier") != 0)
        return 1;
    return check_words(me, death->how);
}

static void those_who_left_because_of_a_death_are_not_blamed(void **state)
{
    struct death death = death_for(RUEDA_BARRIER, 0);

    run_death(*state, late_to_see, &death, PROCESS_SIGNAL - SIGKILL);
}

static void the_words_of_a_failure_reach_all(void **state)
{
    struct death few = death_for(RUEDA_ALLREDUCE, 4);
    struct death many = death_for(RUEDA_ALLGATHER, 500000);

    few.how = "failed: ValueError: the loss is NaN while rank";
    few.go = say_why_and_exit;
    many.how = few.how;
    many.go = few.go;
    run_death(*state, blocked, &few, 3);
    run_death(*state, blocked, &many, 3);
    run_death(*state, late_to_see, &few, 3);
}

/* In a ring of messages most ranks have no dealings with the victim, only with
 * those who have; all fail nevertheless, and none has to shut down for it. */
static int failed_and_stays(struct test_rank *me)
{
    const struct death *death = me->arg;
    struct coll_run run;

    if (coll_prepare(me, &death->what, &run) != 0 ||
        rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
        return 1;
    if (me->rank == VICTIM) {
        /* A failure also ends what others have not quite finished. */
        rank_sleep_ms(200);
        coll_release(me, &run);
        rueda_shutdown(me->ctx);
        me->ctx = NULL;
        rank_sleep_ms(250);
        return 0;
    }
    if (rank_expect(me, rueda_run(me->ctx, &run.args), RUEDA_ERR_PEER_LOST,
                    "operation") != 0)
        return 1;
    /* As if it had more important things to do than to shut down. */
    rank_sleep_ms(250);
    coll_release(me, &run);
    return 0;
}

static void a_failure_spreads_to_those_who_wait_for_the_failed(void **state)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLGATHER};

    for (size_t i = 0; i < 2; i++) {
        struct death death = death_for((int)kinds[i], 500000);

        rank_run(*state, 5, failed_and_stays, &death);
    }
}

/* ---- Not dead -------------------------------------------------------- */

/* All have to stop after the same operation: rank 0 tells how many there will
 * be. */
static int patient_rounds(struct test_rank *me)
{
    volatile unsigned char *is_over = me->board->room;
    int32_t goes_on = 1;

    while (goes_on) {
        const struct coll_what what = {
            .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 50003};

        if (coll_check(me, &what) != 0)
            return 1;
        goes_on = *is_over == 0;
        if (rank_expect(me,
                        rueda_broadcast(me->ctx, &goes_on, 1, RUEDA_INT32, 0),
                        RUEDA_OK, "broadcast") != 0)
            return 1;
    }
    return 0;
}

static void a_rank_that_is_stopped_for_five_seconds_is_waited_for(void **state)
{
    const struct rank_setup *setup = *state;
    struct processes processes;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    processes_start(&processes, RANKS, processes_join, patient_rounds, NULL);
    unsetenv("RUEDA_TRANSPORT");
    rank_sleep_ms(200);
    kill(processes.pids[VICTIM], SIGSTOP);
    rank_sleep_ms(5000);
    kill(processes.pids[VICTIM], SIGCONT);
    rank_sleep_ms(100);
    processes.board->room[0] = 1;

    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(a_death_is_named_by_all_who_wait_in_any_kind),
        RANK_IN_PROCESSES(a_death_is_named_by_all_who_stream_in_any_kind),
        RANK_IN_PROCESSES(a_death_is_seen_although_a_child_lives_on),
        RANK_IN_PROCESSES(an_exit_without_shutdown_counts_as_death),
        RANK_IN_PROCESSES(a_rank_that_shut_down_is_named_as_such),
        RANK_IN_PROCESSES(those_who_left_because_of_a_death_are_not_blamed),
        RANK_IN_PROCESSES(the_words_of_a_failure_reach_all),
        RANK_EVERYWHERE(a_failure_ends_what_other_threads_wait_for),
        RANK_EVERYWHERE(a_failure_spreads_to_those_who_wait_for_the_failed),
        RANK_IN_PROCESSES(
            a_rank_that_is_stopped_for_five_seconds_is_waited_for),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
