/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors as a program uses them: submit, wait, be called, sets. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "support/test_rank.h"

#define MANY  200
#define COUNT 100

static struct rueda_submit_args allreduce_of(const char *name, float *buf,
                                             const size_t *shape)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = RUEDA_ALLREDUCE;
    args.reduction = RUEDA_SUM;
    args.name = name;
    args.send = buf;
    args.recv = buf;
    args.dims = 1;
    args.shape = shape;
    return args;
}

static int check_sum(struct test_rank *me, const float *buf, int i)
{
    int sum = me->size * i + me->size * (me->size - 1) / 2;
    float wanted = (float)sum;

    for (int k = 0; k < COUNT; k++)
        if (buf[k] != wanted)
            return rank_says(me, "grad.%d is %f, not %f", i, (double)buf[k],
                             (double)wanted);
    return 0;
}

static void fill(struct test_rank *me, float *buf, int i)
{
    for (int k = 0; k < COUNT; k++)
        buf[k] = (float)(i + me->rank);
}

/* Every rank begins somewhere else; a step again and again. */
static int steps(struct test_rank *me)
{
    static const size_t shape = COUNT;
    float(*bufs)[COUNT] = calloc(MANY, sizeof(*bufs));
    rueda_handle handles[MANY];
    int failed = 0;

    for (int step = 0; step < 5 && failed == 0; step++) {
        for (int n = 0; n < MANY && failed == 0; n++) {
            int i = (n + me->rank * 37) % MANY;
            struct rueda_submit_args args;
            char name[32];

            snprintf(name, sizeof(name), "grad.%d", i);
            fill(me, bufs[i], i);
            args = allreduce_of(name, bufs[i], &shape);
            failed = rank_expect(me, rueda_submit(me->ctx, &args, &handles[i]),
                                 RUEDA_OK, "submit");
        }
        for (int i = 0; i < MANY && failed == 0; i++) {
            failed = rank_expect(me, rueda_wait(me->ctx, handles[i], 10000),
                                 RUEDA_OK, "wait");
            if (failed == 0)
                failed = check_sum(me, bufs[i], i);
        }
    }
    free(bufs);
    return failed;
}

static void steps_of_many_tensors_come_out_right(void **state)
{
    rank_run(*state, 3, steps, NULL);
}

/* ---- Callbacks -------------------------------------------------------- */

struct chain {
    struct test_rank *me;
    float buf[COUNT];
    atomic_int left;
    atomic_int failed;
};

static void go_on(void *arg, rueda_status status);

static void submit_next(struct chain *chain)
{
    static const size_t shape = COUNT;
    struct rueda_submit_args args = allreduce_of("chain", chain->buf, &shape);
    rueda_handle handle;
    rueda_status status;

    fill(chain->me, chain->buf, 7);
    status = rueda_submit(chain->me->ctx, &args, &handle);
    if (status == RUEDA_OK)
        status = rueda_handle_then(chain->me->ctx, handle, go_on, chain);
    if (status != RUEDA_OK)
        atomic_store(&chain->failed, 1);
}

/* No caller waits for the handles: they are left to the shutdown. */
static void go_on(void *arg, rueda_status status)
{
    struct chain *chain = arg;

    if (status != RUEDA_OK || check_sum(chain->me, chain->buf, 7) != 0)
        atomic_store(&chain->failed, 1);
    else if (atomic_fetch_sub(&chain->left, 1) > 1)
        submit_next(chain);
}

static int in_a_chain(struct test_rank *me)
{
    struct chain chain = {.me = me};
    int64_t until = rank_now_ms() + RANK_DEADLINE_MS;

    atomic_store(&chain.left, 50);
    submit_next(&chain);
    while (atomic_load(&chain.left) > 0 && atomic_load(&chain.failed) == 0) {
        if (rank_now_ms() > until)
            return rank_says(me, "%d are left", atomic_load(&chain.left));
        rank_sleep_ms(1);
    }
    return atomic_load(&chain.failed) != 0
               ? rank_says(me, "a link failed: %s", rueda_last_error())
               : 0;
}

static void callbacks_submit_the_next_operation(void **state)
{
    rank_run(*state, 2, in_a_chain, NULL);
}

struct visit {
    struct test_rank *me;
    rueda_handle other;
    rueda_status wait;
    rueda_status barrier;
    atomic_int is_over;
};

static void try_to_wait(void *arg, rueda_status status)
{
    struct visit *visit = arg;

    (void)status;
    visit->wait = rueda_wait(visit->me->ctx, visit->other, 2000);
    visit->barrier = rueda_barrier(visit->me->ctx);
    rueda_shutdown(visit->me->ctx); /* what follows needs the context */
    atomic_store(&visit->is_over, 1);
}

/* Each rank has an operation that the other brings only when both have been
 * called: a callback that waits for it would wait for ever. */
static int waits_in_a_callback(struct test_rank *me)
{
    static const size_t shape = COUNT;
    struct visit visit = {.me = me};
    float bufs[3][COUNT];
    struct rueda_submit_args first = allreduce_of("first", bufs[0], &shape);
    struct rueda_submit_args mine = allreduce_of("mine", bufs[1], &shape);
    struct rueda_submit_args theirs = allreduce_of("mine", bufs[2], &shape);
    char names[2][8];
    rueda_handle handle;

    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof(names[i]), "of.%d", (me->rank + i) % 2);
    mine.name = names[0];
    theirs.name = names[1];
    fill(me, bufs[1], 1);
    if (rank_expect(me, rueda_submit(me->ctx, &mine, &visit.other), RUEDA_OK,
                    "mine") != 0 ||
        rank_expect(me, rueda_submit(me->ctx, &first, &handle), RUEDA_OK,
                    "first") != 0 ||
        rank_expect(me, rueda_handle_then(me->ctx, handle, try_to_wait, &visit),
                    RUEDA_OK, "then") != 0 ||
        rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK, "wait") !=
            0)
        return 1;
    while (atomic_load(&visit.is_over) == 0)
        rank_sleep_ms(1);
    fill(me, bufs[2], 1);
    return rank_expect(me, visit.wait, RUEDA_ERR_INVALID, "wait inside") ||
           rank_expect(me, visit.barrier, RUEDA_ERR_INVALID, "run inside") ||
           rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") ||
           rank_expect(me, rueda_submit(me->ctx, &theirs, &handle), RUEDA_OK,
                       "theirs") ||
           rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK,
                       "wait for theirs") ||
           rank_expect(me, rueda_wait(me->ctx, visit.other, 10000), RUEDA_OK,
                       "wait for mine") ||
           check_sum(me, bufs[1], 1);
}

static void a_callback_that_would_wait_is_refused(void **state)
{
    rank_run(*state, 2, waits_in_a_callback, NULL);
}

/* A thread that submits makes progress as well, but might hold what callbacks
 * want. */
static _Thread_local bool is_submitting;

struct calls {
    float bufs[MANY][COUNT];
    atomic_int left;
    atomic_int misplaced;
};

static void note_call(void *arg, rueda_status status)
{
    struct calls *calls = arg;

    if (is_submitting || status != RUEDA_OK)
        atomic_fetch_add(&calls->misplaced, 1);
    atomic_fetch_sub(&calls->left, 1);
}

static int submit_one(struct test_rank *me, struct calls *calls, int i)
{
    static const size_t shape = COUNT;
    struct rueda_submit_args args;
    rueda_handle handle;
    rueda_status status;
    char name[32];

    snprintf(name, sizeof(name), "call.%d", i);
    args = allreduce_of(name, calls->bufs[i], &shape);
    is_submitting = true;
    status = rueda_submit(me->ctx, &args, &handle);
    is_submitting = false;
    if (status == RUEDA_OK)
        status = rueda_handle_then(me->ctx, handle, note_call, calls);
    return rank_expect(me, status, RUEDA_OK, "submit");
}

static int one_after_another(struct test_rank *me)
{
    struct calls *calls = calloc(1, sizeof(*calls));
    int64_t until = rank_now_ms() + RANK_DEADLINE_MS;
    int failed = 0;

    atomic_store(&calls->left, MANY);
    for (int i = 0; i < MANY && failed == 0; i++) {
        failed = submit_one(me, calls, i);
        rank_sleep_ms(i % 2); /* so that some are over when others come */
    }
    while (failed == 0 && atomic_load(&calls->left) > 0) {
        if (rank_now_ms() > until)
            failed = rank_says(me, "%d are left", atomic_load(&calls->left));
        rank_sleep_ms(1);
    }
    if (failed == 0 && atomic_load(&calls->misplaced) > 0)
        failed = rank_says(me, "%d callbacks ran within a submission",
                           atomic_load(&calls->misplaced));
    if (failed == 0)
        free(calls); /* else some of them may still be called */
    return failed;
}

static void callbacks_do_not_run_within_a_submission(void **state)
{
    rank_run(*state, 2, one_after_another, NULL);
}

/* ---- More that follow -------------------------------------------------- */

/* No caller waits for the first few before all have ended; one that nothing
 * follows ends when it is waited for. */
static int with_more(struct test_rank *me)
{
    enum {
        FEW = 10
    };
    static const size_t shape = COUNT;
    const int64_t until = rank_now_ms() + RANK_DEADLINE_MS;
    float bufs[FEW + 1][COUNT];
    rueda_handle handles[FEW + 1];
    int failed = 0;

    for (int i = 0; i <= FEW && failed == 0; i++) {
        struct rueda_submit_args args;
        char name[32];

        snprintf(name, sizeof(name), "more.%d", i);
        fill(me, bufs[i], i);
        args = allreduce_of(name, bufs[i], &shape);
        args.flags = i != FEW - 1 ? RUEDA_MORE : 0;
        failed = rank_expect(me, rueda_submit(me->ctx, &args, &handles[i]),
                             RUEDA_OK, "submit");
        for (int k = 0; i == FEW - 1 && k < FEW && failed == 0; k++)
            while (rueda_poll(me->ctx, handles[k]) == RUEDA_IN_PROGRESS &&
                   failed == 0) {
                rank_sleep_ms(1);
                if (rank_now_ms() > until)
                    failed = rank_says(me, "more.%d does not end", k);
            }
    }
    for (int i = 0; i <= FEW && failed == 0; i++)
        failed = rank_expect(me, rueda_wait(me->ctx, handles[i], 10000),
                             RUEDA_OK, "wait") ||
                 check_sum(me, bufs[i], i);
    return failed;
}

static void those_that_are_followed_go_with_the_last(void **state)
{
    rank_run(*state, 2, with_more, NULL);
}

/* ---- What is not done -------------------------------------------------- */

static int ends_with(struct test_rank *me, const struct rueda_submit_args *args,
                     rueda_status wanted, const char *words)
{
    rueda_handle handle;

    if (rank_expect(me, rueda_submit(me->ctx, args, &handle), RUEDA_OK,
                    "submit") != 0 ||
        rank_expect(me, rueda_wait(me->ctx, handle, 10000), wanted, words) != 0)
        return 1;
    return strstr(rueda_last_error(), words) != NULL
               ? 0
               : rank_says(me, "\"%s\"", rueda_last_error());
}

/* Rank 0 joins at once, the others when they have tried everything. */
static int try_without_rank_0(struct test_rank *me)
{
    static const struct {
        rueda_kind kind;
        const char *words;
    } all[] = {
        {RUEDA_ALLGATHER, "Allgather is not supported with Join"},
        {RUEDA_BROADCAST, "Broadcast is not supported with Join"},
        {RUEDA_ALLTOALL, "Alltoall is not supported with Join"},
        {RUEDA_REDUCE_SCATTER, "Reducescatter is not supported with Join"},
    };
    static const size_t shape = COUNT;
    static const size_t splits[8];
    struct rueda_submit_args join = RUEDA_SUBMIT_ARGS_INIT;
    float send[COUNT] = {0};
    float recv[8 * COUNT];
    int failed = 0;

    for (int i = 0; i < 4 && me->rank > 0 && failed == 0; i++) {
        struct rueda_submit_args args = allreduce_of("alone", send, &shape);

        args.kind = all[i].kind;
        args.recv = recv;
        args.splits = splits;
        failed = ends_with(me, &args, RUEDA_ERR_MISMATCH, all[i].words);
    }
    if (me->rank > 0 && failed == 0) {
        struct rueda_submit_args args = allreduce_of("alone", send, &shape);

        args.reduction = RUEDA_PRODUCT;
        args.prescale = 2;
        failed = ends_with(me, &args, RUEDA_ERR_MISMATCH,
                           "A product with a prescale factor is not supported "
                           "with Join");
    }
    join.kind = RUEDA_JOIN;
    return failed != 0 ? failed : ends_with(me, &join, RUEDA_OK, "");
}

static void what_needs_all_ranks_is_refused_when_one_has_joined(void **state)
{
    rank_run(*state, 3, try_without_rank_0, NULL);
}

/* ---- Sets ------------------------------------------------------------- */

static int with_sets(struct test_rank *me)
{
    static const int ranks[2] = {2, 0};
    static const size_t shape = COUNT;
    float buf[COUNT];
    int failed = 0;
    int set;

    if (rank_expect(me, rueda_set_create(me->ctx, ranks, 2, &set), RUEDA_OK,
                    "create") != 0)
        return 1;
    if (rueda_set_size(me->ctx, set) != 2 ||
        rueda_set_rank(me->ctx, set) != (me->rank == 1 ? -1 : me->rank / 2))
        return rank_says(me, "set %d has other ranks", set);
    if (me->rank != 1) {
        struct rueda_submit_args args = allreduce_of("pair", buf, &shape);
        rueda_handle handle;

        args.set = set;
        fill(me, buf, 0);
        failed = rank_expect(me, rueda_submit(me->ctx, &args, &handle),
                             RUEDA_OK, "submit") ||
                 rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK,
                             "wait") ||
                 (buf[0] != 2 && rank_says(me, "pair is %f", (double)buf[0]));
    }
    if (failed == 0)
        failed = rank_expect(me, rueda_set_destroy(me->ctx, set), RUEDA_OK,
                             "destroy");
    if (failed == 0 && rueda_set_size(me->ctx, set) != -1)
        failed = rank_says(me, "set %d is still there", set);
    return failed;
}

static void sets_are_made_used_and_removed(void **state)
{
    rank_run(*state, 3, with_sets, NULL);
}

/* What the others find before rank 0 has called it, too. */
static int begin_early(struct test_rank *me, const int *ranks,
                       rueda_handle *handle)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    int set;

    return rank_expect(me, rueda_set_create_async(me->ctx, ranks, 2, handle),
                       RUEDA_OK, "create") ||
           rank_expect(me, rueda_wait_for(me->ctx, *handle, 10, &result),
                       RUEDA_ERR_TIMEOUT, "a slice") ||
           rank_expect(me, rueda_set_create(me->ctx, ranks, 1, &set),
                       RUEDA_ERR_INVALID, "another");
}

static int with_set_handles(struct test_rank *me)
{
    static const int ranks[2] = {2, 0};
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_handle handle = 0;

    if ((me->rank > 0 && begin_early(me, ranks, &handle) != 0) ||
        rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier") != 0)
        return 1;
    if (me->rank == 0 &&
        rank_expect(me, rueda_set_create_async(me->ctx, ranks, 2, &handle),
                    RUEDA_OK, "create") != 0)
        return 1;
    if (rank_expect(me, rueda_wait_for(me->ctx, handle, 10000, &result),
                    RUEDA_OK, "wait") != 0)
        return 1;
    if (rueda_set_size(me->ctx, result.set) != 2)
        return rank_says(me, "there is no set %d of 2", result.set);
    if (rank_expect(me, rueda_set_destroy_async(me->ctx, result.set, &handle),
                    RUEDA_OK, "destroy") != 0 ||
        rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK,
                    "wait for that") != 0)
        return 1;
    return rueda_set_size(me->ctx, result.set) == -1
               ? 0
               : rank_says(me, "set %d is still there", result.set);
}

static void sets_are_waited_for_in_slices(void **state)
{
    rank_run(*state, 3, with_set_handles, NULL);
}

/* ---- Stalls ----------------------------------------------------------- */

static int64_t cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* No thread is busy without work. */
static int check_idle(struct test_rank *me, const char *when)
{
    int64_t before = cpu_us();
    int64_t used;

    rank_sleep_ms(500);
    used = cpu_us() - before;
    if (used < 50000 || RANK_IS_SLOW)
        return 0;
    return rank_says(me, "%d us of idling %s", (int)used, when);
}

/* One rank never calls the library; the other is not left alone with that. */
static int waits_or_sleeps(struct test_rank *me)
{
    const int *sleeper = me->arg;
    static const size_t shape = COUNT;
    struct rueda_submit_args args;
    rueda_handle handle;
    float buf[COUNT];

    if (me->rank == *sleeper) {
        rank_sleep_ms(3000);
        return 0;
    }
    args = allreduce_of("alone", buf, &shape);
    if (rank_expect(me, rueda_submit(me->ctx, &args, &handle), RUEDA_OK,
                    "submit") != 0)
        return 1;
    if (rueda_wait(me->ctx, handle, 20000) >= 0)
        return rank_says(me, "an operation of one rank alone ended well");
    return check_idle(me, "after a failure");
}

static void a_stall_ends_the_job_where_that_is_asked_for(void **state)
{
    setenv("RUEDA_STALL_WARN", "200ms", 1);
    setenv("RUEDA_STALL_SHUTDOWN", "500ms", 1);
    for (int sleeper = 0; sleeper < 2; sleeper++)
        rank_run(*state, 2, waits_or_sleeps, &sleeper);
    unsetenv("RUEDA_STALL_WARN");
    unsetenv("RUEDA_STALL_SHUTDOWN");
}

static int rests(struct test_rank *me)
{
    return steps(me) != 0 || check_idle(me, "after some steps");
}

static void who_has_nothing_to_do_takes_no_time(void **state)
{
    rank_run(*state, 2, rests, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(steps_of_many_tensors_come_out_right),
        RANK_EVERYWHERE(callbacks_submit_the_next_operation),
        RANK_EVERYWHERE(a_callback_that_would_wait_is_refused),
        RANK_EVERYWHERE(callbacks_do_not_run_within_a_submission),
        RANK_EVERYWHERE(those_that_are_followed_go_with_the_last),
        RANK_EVERYWHERE(what_needs_all_ranks_is_refused_when_one_has_joined),
        RANK_EVERYWHERE(sets_are_made_used_and_removed),
        RANK_EVERYWHERE(sets_are_waited_for_in_slices),
        RANK_IN_PROCESSES(who_has_nothing_to_do_takes_no_time),
        RANK_EVERYWHERE(a_stall_ends_the_job_where_that_is_asked_for),
    };

    setenv("RUEDA_DYNAMIC_SETS", "1", 1);
    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
