/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are started and waited for later, or never. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "support/coll_check.h"
#include "support/processes.h"

#define MANY    100
#define WAITERS 4

static struct coll_what nth(int i)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                       RUEDA_BROADCAST, RUEDA_ALLTOALL,
                                       RUEDA_REDUCE_SCATTER};
    static const size_t counts[] = {3, 500, 9001, 40001};

    return (struct coll_what){
        .kind = kinds[i % 5],
        .dtype = RUEDA_FLOAT32,
        .count = counts[i % 4],
        .salt = (unsigned)i,
    };
}

static int start_all(struct test_rank *me, struct coll_run *runs,
                     rueda_handle *handles)
{
    for (int i = 0; i < MANY; i++) {
        struct coll_what what = nth(i);

        if (coll_prepare(me, &what, &runs[i]) != 0 ||
            rank_expect(me, rueda_start(me->ctx, &runs[i].args, &handles[i]),
                        RUEDA_OK, "start") != 0)
            return 1;
    }
    return 0;
}

/* ---- Many at once ------------------------------------------------------ */

static int in_reverse(struct test_rank *me)
{
    struct coll_run *runs = calloc(MANY, sizeof(*runs));
    rueda_handle handles[MANY];
    int failed = start_all(me, runs, handles);

    for (int i = MANY - 1; i >= 0 && failed == 0; i--) {
        failed = rank_expect(me, rueda_wait(me->ctx, handles[i], -1), RUEDA_OK,
                             "wait");
        if (failed == 0)
            failed = coll_verify(me, &runs[i]);
    }
    for (int i = 0; i < MANY && failed == 0; i++)
        coll_release(me, &runs[i]);
    free(runs);
    return failed;
}

static void a_hundred_in_flight_can_be_waited_for_in_reverse(void **state)
{
    rank_run(*state, 3, in_reverse, NULL);
}

/* No caller waits; polling makes no progress by itself. */
static int by_polling(struct test_rank *me)
{
    struct coll_run *runs = calloc(MANY, sizeof(*runs));
    rueda_handle handles[MANY];
    int failed = start_all(me, runs, handles);

    for (int i = 0; i < MANY && failed == 0; i++) {
        rueda_status status = rueda_poll(me->ctx, handles[i]);

        while (status == RUEDA_IN_PROGRESS) {
            rank_sleep_ms(1);
            status = rueda_poll(me->ctx, handles[i]);
        }
        failed = rank_expect(me, status, RUEDA_OK, "poll");
        if (failed == 0)
            failed = coll_verify(me, &runs[i]);
        /* Polling does not end the handle, waiting does. */
        if (failed == 0)
            failed = rank_expect(me, rueda_wait(me->ctx, handles[i], 0),
                                 RUEDA_OK, "wait after poll");
    }
    for (int i = 0; i < MANY && failed == 0; i++)
        coll_release(me, &runs[i]);
    free(runs);
    return failed;
}

static void the_background_thread_alone_finishes_everything(void **state)
{
    rank_run(*state, 2, by_polling, NULL);
}

struct waiter {
    pthread_t id;
    struct test_rank *me;
    const rueda_handle *handles;
    int first;
    rueda_status status;
};

static void *wait_for_some(void *arg)
{
    struct waiter *waiter = arg;

    for (int i = waiter->first; i < MANY && waiter->status == RUEDA_OK;
         i += WAITERS)
        waiter->status = rueda_wait(waiter->me->ctx, waiter->handles[i], -1);
    return NULL;
}

static int by_threads(struct test_rank *me)
{
    struct coll_run *runs = calloc(MANY, sizeof(*runs));
    struct waiter waiters[WAITERS];
    rueda_handle handles[MANY];
    int failed = start_all(me, runs, handles);

    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.me = me, .handles = handles, .first = i};
        if (pthread_create(&waiters[i].id, NULL, wait_for_some, &waiters[i]))
            return rank_says(me, "no thread");
    }
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].id, NULL);
        failed |= rank_expect(me, waiters[i].status, RUEDA_OK, "waiter");
    }
    for (int i = 0; i < MANY && failed == 0; i++) {
        failed = coll_verify(me, &runs[i]);
        coll_release(me, &runs[i]);
    }
    free(runs);
    return failed;
}

static void several_threads_wait_for_different_handles(void **state)
{
    rank_run(*state, 2, by_threads, NULL);
}

/* ---- No wake-up is lost ------------------------------------------------ */

static void *wait_for_one(void *arg)
{
    struct waiter *waiter = arg;

    waiter->status = rueda_wait(waiter->me->ctx, waiter->handles[0], -1);
    return NULL;
}

/* One thread lets go of the engine while another hands it more. */
static int handovers(struct test_rank *me)
{
    const int rounds = RANK_IS_SLOW ? 200 : 1500;
    float in[2] = {1, 2};
    float out[2][2];
    rueda_handle handles[2];

    for (int i = 0; i < rounds; i++) {
        struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
        struct waiter waiter = {.me = me, .handles = handles};

        args.kind = RUEDA_ALLREDUCE;
        args.send = in;
        args.count = 2;
        args.recv = out[0];
        if (rank_expect(me, rueda_start(me->ctx, &args, &handles[0]), RUEDA_OK,
                        "first") != 0)
            return 1;
        if (pthread_create(&waiter.id, NULL, wait_for_one, &waiter))
            return rank_says(me, "no thread");
        args.recv = out[1];
        if (rank_expect(me, rueda_start(me->ctx, &args, &handles[1]), RUEDA_OK,
                        "second") != 0)
            return 1;
        while (rueda_poll(me->ctx, handles[1]) == RUEDA_IN_PROGRESS)
            sched_yield();
        pthread_join(waiter.id, NULL);
        if (rank_expect(me, waiter.status, RUEDA_OK, "waiter") != 0 ||
            rank_expect(me, rueda_wait(me->ctx, handles[1], 0), RUEDA_OK,
                        "poller") != 0)
            return 1;
    }
    return 0;
}

static void nothing_is_forgotten_when_the_engine_changes_hands(void **state)
{
    rank_run(*state, 2, handovers, NULL);
}

static int start_then_run(struct test_rank *me)
{
    const int rounds = RANK_IS_SLOW ? 50 : 500;

    for (int i = 0; i < rounds; i++) {
        struct coll_what what = nth(i);
        struct coll_what other = nth(i + 1);
        struct coll_run run;
        rueda_handle handle;

        if (coll_prepare(me, &what, &run) != 0 ||
            rank_expect(me, rueda_start(me->ctx, &run.args, &handle), RUEDA_OK,
                        "start") != 0 ||
            coll_check(me, &other) != 0)
            return 1;
        /* They run one after another: what was started before has ended. */
        if (rank_expect(me, rueda_poll(me->ctx, handle), RUEDA_OK, "poll") ||
            rank_expect(me, rueda_wait(me->ctx, handle, 0), RUEDA_OK, "wait"))
            return 1;
        if (coll_verify(me, &run) != 0)
            return 1;
        coll_release(me, &run);
    }
    return 0;
}

static void operations_end_in_the_order_of_their_start(void **state)
{
    rank_run(*state, 2, start_then_run, NULL);
}

/* ---- Handles ----------------------------------------------------------- */

static int late_peer(struct test_rank *me)
{
    const struct coll_what what = {
        .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 9001};
    atomic_int *has_waited = (atomic_int *)me->board->room;
    struct coll_run run;
    rueda_handle handle;
    int64_t start;
    int64_t took;

    if (coll_prepare(me, &what, &run) != 0)
        return 1;
    while (me->rank == 1 && atomic_load(has_waited) == 0)
        rank_sleep_ms(1);
    start = rank_now_ms();
    if (rank_expect(me, rueda_start(me->ctx, &run.args, &handle), RUEDA_OK,
                    "start") != 0)
        return 1;
    if (me->rank == 0) {
        if (rank_expect(me, rueda_wait(me->ctx, handle, 50), RUEDA_ERR_TIMEOUT,
                        "first wait") != 0)
            return 1;
        took = rank_now_ms() - start;
        if (took < 49 || took > 5000)
            return rank_says(me, "50 ms took %d", (int)took);
        if (rank_expect(me, rueda_wait(me->ctx, handle, 0), RUEDA_ERR_TIMEOUT,
                        "wait of no time") != 0)
            return 1;
        atomic_store(has_waited, 1);
    }
    if (rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_OK,
                    "last wait") != 0 ||
        coll_verify(me, &run) != 0)
        return 1;
    coll_release(me, &run);
    return 0;
}

static void a_wait_that_timed_out_can_be_repeated(void **state)
{
    rank_run(*state, 2, late_peer, NULL);
}

static int bad_handles(struct test_rank *me)
{
    static const rueda_handle bad[] = {0, 1, 65535, 65536, 1 << 20, UINT64_MAX};
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    rueda_handle handle;

    args.kind = RUEDA_BARRIER;
    if (rank_expect(me, rueda_start(me->ctx, &args, &handle), RUEDA_OK,
                    "start") != 0)
        return 1;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (bad[i] == handle)
            continue;
        if (rank_expect(me, rueda_poll(me->ctx, bad[i]), RUEDA_ERR_INVALID,
                        "poll of a bad handle") ||
            rank_expect(me, rueda_wait(me->ctx, bad[i], -1), RUEDA_ERR_INVALID,
                        "wait for a bad handle"))
            return 1;
    }
    if (rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_OK, "wait") ||
        rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_ERR_INVALID,
                    "second wait") ||
        rank_expect(me, rueda_poll(me->ctx, handle), RUEDA_ERR_INVALID,
                    "poll after wait"))
        return 1;
    return 0;
}

static void a_handle_is_gone_once_it_was_waited_for(void **state)
{
    rank_run(*state, 2, bad_handles, NULL);
}

/* ---- Shutting down ------------------------------------------------------ */

/* Rank 0 leaves with three operations unfinished; what rank 1 waits for can
 * then never end. */
static int unfinished(struct test_rank *me)
{
    static float buf[RANK_MOST][3][10000];
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    rueda_handle handle;

    args.kind = RUEDA_ALLREDUCE;
    args.count = 10000;
    for (int i = 0; i < 3; i++) {
        args.send = buf[me->rank][i];
        args.recv = buf[me->rank][i];
        if (me->rank == 0 &&
            rank_expect(me, rueda_start(me->ctx, &args, &handle), RUEDA_OK,
                        "start") != 0)
            return 1;
    }
    if (me->rank == 0) {
        rank_sleep_ms(50);
        return 0;
    }
    rank_sleep_ms(200);
    for (int i = 0; i < 3; i++) {
        rueda_status status = rueda_run(me->ctx, &args);

        if (status == RUEDA_ERR_PEER_LOST)
            break;
        if (i == 2)
            return rank_says(me, "operations of a rank that left went well");
    }
    if (strstr(rueda_error(me->ctx), "rank 0 ") == NULL ||
        strstr(rueda_error(me->ctx), "shut down") == NULL)
        return rank_says(me, "words: %s", rueda_error(me->ctx));
    return 0;
}

static void a_rank_may_shut_down_with_operations_unfinished(void **state)
{
    rank_run(*state, 2, unfinished, NULL);
}

/* A rank that has done its part may leave, although others are still waiting
 * for each other. */
static int early_leaver(struct test_rank *me)
{
    float number = me->rank == 0 ? 7 : 0;
    rueda_status status;

    if (me->rank == me->size - 1)
        rank_sleep_ms(100);
    status = rueda_broadcast(me->ctx, &number, 1, RUEDA_FLOAT32, 0);
    if (rank_expect(me, status, RUEDA_OK, "broadcast") != 0)
        return 1;
    return number == 7 ? 0 : rank_says(me, "got %g", (double)number);
}

static void a_rank_may_leave_after_its_part_of_the_last_operation(void **state)
{
    for (int i = 0; i < 3; i++)
        rank_run(*state, 7, early_leaver, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(a_hundred_in_flight_can_be_waited_for_in_reverse),
        RANK_EVERYWHERE(the_background_thread_alone_finishes_everything),
        RANK_EVERYWHERE(several_threads_wait_for_different_handles),
        RANK_EVERYWHERE(nothing_is_forgotten_when_the_engine_changes_hands),
        RANK_EVERYWHERE(operations_end_in_the_order_of_their_start),
        RANK_EVERYWHERE(a_wait_that_timed_out_can_be_repeated),
        RANK_EVERYWHERE(a_handle_is_gone_once_it_was_waited_for),
        RANK_EVERYWHERE(a_rank_may_shut_down_with_operations_unfinished),
        RANK_EVERYWHERE(a_rank_may_leave_after_its_part_of_the_last_operation),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
