/* SPDX-License-Identifier: Apache-2.0 */
/* The default context: one for all, and gone only when nobody is inside. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "api/default.h"
#include "os/clock.h"

#define MS ((int64_t)1000000)

static void there_is_one_for_all(void **state)
{
    rueda_ctx *ctx;

    (void)state;
    assert_null(rueda_default_enter());
    rueda_default_close(); /* of none */
    assert_int_equal(rueda_default_open(NULL), RUEDA_OK);
    ctx = rueda_default_enter();
    assert_non_null(ctx);
    assert_int_equal(rueda_size(ctx), 1);
    assert_int_equal(rueda_default_open(NULL), RUEDA_OK);
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
    assert_int_equal(rueda_default_open(NULL), RUEDA_OK);
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
    if (rueda_default_open(NULL) != RUEDA_OK)
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
    assert_int_equal(rueda_default_open(NULL), RUEDA_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_one_for_all),
        cmocka_unit_test(close_waits_for_those_inside),
        cmocka_unit_test(a_child_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
