/* SPDX-License-Identifier: Apache-2.0 */
/* The default context: one for all, and gone only when no thread is inside. */
#include "unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "api/default.h"
#include "os/clock.h"

#define MS ((int64_t)1000000)

static void there_is_one_for_all(void **state)
{
    rueda_ctx *ctx;

    (void)state;
    assert_null(rueda_default_enter());
    rueda_default_close(); /* of none */
    assert_int_equal(rueda_default_open(NULL, NULL, NULL), RUEDA_OK);
    ctx = rueda_default_enter();
    assert_non_null(ctx);
    assert_int_equal(rueda_size(ctx), 1);
    assert_int_equal(rueda_default_open(NULL, NULL, NULL), RUEDA_OK);
    assert_true(rueda_default_is(ctx));
    rueda_default_leave();
    rueda_default_close();
    assert_false(rueda_default_is(ctx));
    assert_null(rueda_default_enter());
}

static atomic_bool has_left;

/* Stays inside until the context is no longer the one. */
static void *stay(void *arg)
{
    const rueda_ctx *ctx = arg;

    while (rueda_default_is(ctx))
        rueda_sleep_ns(MS);
    rueda_sleep_ns(20 * MS);
    assert_int_equal(rueda_rank(ctx), 0); /* it is still there */
    atomic_store(&has_left, true);
    rueda_default_leave();
    return NULL;
}

static void close_waits_for_those_inside(void **state)
{
    pthread_t thread;
    rueda_ctx *ctx;

    (void)state;
    assert_int_equal(rueda_default_open(NULL, NULL, NULL), RUEDA_OK);
    ctx = rueda_default_enter();
    assert_non_null(ctx);
    assert_int_equal(pthread_create(&thread, NULL, stay, ctx), 0);
    rueda_default_close();
    assert_true(atomic_load(&has_left));
    pthread_join(thread, NULL);
}

/* The parent's is dead in a child, also if a thread was inside when it forked,
 * and the child can have its own. */
static int be_child(void)
{
    rueda_ctx *ctx = rueda_default_enter();

    if (ctx == NULL || rueda_barrier(ctx) != RUEDA_ERR_FORKED)
        return 1;
    rueda_default_leave();
    rueda_default_close();
    if (rueda_default_open(NULL, NULL, NULL) != RUEDA_OK)
        return 2;
    ctx = rueda_default_enter();
    if (ctx == NULL || rueda_barrier(ctx) != RUEDA_OK)
        return 3;
    rueda_default_leave();
    rueda_default_close();
    return 0;
}

static void a_child_has_none(void **state)
{
    int how = -1;
    pid_t child;

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(rueda_default_open(NULL, NULL, NULL), RUEDA_OK);
    assert_non_null(rueda_default_enter());
    child = fork();
    if (child == 0)
        _exit(be_child());
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    rueda_default_leave();
    rueda_default_close();
}

/* ---- A fork while another thread closes the context ------------------- */

static void *close_it(void *arg)
{
    (void)arg;
    rueda_default_close();
    return NULL;
}

static int have_ones_own(void)
{
    rueda_ctx *ctx;

    alarm(20); /* without it the test would wait for a lost lock */
    rueda_default_close();
    if (rueda_default_open(NULL, NULL, NULL) != RUEDA_OK)
        return 1;
    ctx = rueda_default_enter();
    if (ctx == NULL || rueda_barrier(ctx) != RUEDA_OK)
        return 2;
    rueda_default_leave();
    rueda_default_close();
    return 0;
}

static void a_child_forked_during_a_close_does_not_wait_for_it(void **state)
{
    int how = -1;
    pthread_t thread;
    rueda_ctx *ctx;
    pid_t child;

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(rueda_default_open(NULL, NULL, NULL), RUEDA_OK);
    ctx = rueda_default_enter();
    assert_int_equal(pthread_create(&thread, NULL, close_it, NULL), 0);
    while (rueda_default_is(ctx))
        rueda_sleep_ns(MS);
    child = fork();
    if (child == 0)
        _exit(have_ones_own());
    assert_int_equal(waitpid(child, &how, 0), child);
    rueda_default_leave();
    pthread_join(thread, NULL);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* ---- Starts that take their time -------------------------------------- */

/* Goes on this many times, then no more. */
static bool count_down(void *arg)
{
    return atomic_fetch_sub((atomic_int *)arg, 1) > 1;
}

/* Rank 0 of two, whose other rank does not come. The name of the job keeps out
 * the same test of another process. */
static struct rueda_init_args lonely(int timeout_ms, char *words, size_t bytes)
{
    static char job[64];
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    snprintf(job, sizeof(job), "test-default-%d", (int)getpid());
    args.rank = 0;
    args.size = 2;
    args.job = job;
    args.timeout_ms = timeout_ms;
    args.error = words;
    args.error_bytes = bytes;
    return args;
}

static void a_start_can_be_left_and_waited_for_again(void **state)
{
    char words[256] = "";
    char others[256] = "";
    struct rueda_init_args args = lonely(1500, words, sizeof(words));
    struct rueda_init_args again = lonely(1, others, sizeof(others));
    atomic_int left = 2;

    (void)state;
    assert_int_equal(rueda_default_open(&args, count_down, &left),
                     RUEDA_ERR_CANCELLED);
    assert_string_equal(words, "");
    assert_null(rueda_default_enter());
    /* It is the same start, with the arguments of the first. */
    assert_int_equal(rueda_default_open(&again, NULL, NULL), RUEDA_ERR_TIMEOUT);
    assert_non_null(strstr(others, "did not come in time"));
    assert_string_equal(words, "");
}

static void a_start_that_is_closed_ends_in_nothing(void **state)
{
    struct rueda_init_args args = lonely(1000, NULL, 0);
    atomic_int left = 1;

    (void)state;
    assert_int_equal(rueda_default_open(&args, count_down, &left),
                     RUEDA_ERR_CANCELLED);
    rueda_default_close(); /* waits for no thread */
    assert_int_equal(rueda_default_open(&args, NULL, NULL), RUEDA_ERR_TIMEOUT);
}

/* Passes nothing on, and notes which thread it was asked on. */
static int refuse(void *arg, void *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    *(pthread_t *)arg = pthread_self();
    return -1;
}

static void an_exchange_is_asked_on_the_callers_thread(void **state)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    pthread_t asked;

    (void)state;
    memset(&asked, 0, sizeof(asked));
    args.rank = 1;
    args.size = 2;
    args.exchange = refuse;
    args.exchange_arg = &asked;
    assert_int_not_equal(rueda_default_open(&args, NULL, NULL), RUEDA_OK);
    assert_true(pthread_equal(asked, pthread_self()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_one_for_all),
        cmocka_unit_test(close_waits_for_those_inside),
        cmocka_unit_test(a_child_has_none),
        cmocka_unit_test(a_child_forked_during_a_close_does_not_wait_for_it),
        cmocka_unit_test(a_start_can_be_left_and_waited_for_again),
        cmocka_unit_test(a_start_that_is_closed_ends_in_nothing),
        cmocka_unit_test(an_exchange_is_asked_on_the_callers_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
