/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, conditions and the clock they share. */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "os/clock.h"
#include "os/thread.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

static void *tell_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return arg;
}

static void a_thread_has_all_signals_blocked(void **state)
{
    static const int some[] = {SIGINT, SIGTERM, SIGCHLD, SIGUSR1};
    sigset_t before;
    sigset_t after;
    sigset_t mask;
    pthread_t thread;
    void *result;

    (void)state;
    sigemptyset(&mask);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(rueda_thread_start(&thread, tell_mask, &mask), RUEDA_OK);
    assert_int_equal(pthread_join(thread, &result), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);

    assert_ptr_equal(result, &mask);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sigismember(&mask, some[i]), 1);
        assert_int_equal(sigismember(&after, some[i]),
                         sigismember(&before, some[i]));
    }
}

static void the_clock_never_goes_back(void **state)
{
    int64_t last = rueda_clock_ns();

    (void)state;
    for (int i = 0; i < 10000; i++) {
        int64_t now = rueda_clock_ns();

        assert_true(now >= last);
        last = now;
    }
}

static void a_sleep_lasts_as_long_as_asked(void **state)
{
    int64_t before = rueda_clock_ns();

    (void)state;
    rueda_sleep_ns(2 * MS);
    rueda_yield();
    rueda_relax();
    assert_true(rueda_clock_ns() - before >= 2 * MS);
}

/* Another thread at work on a core. */
struct rival {
    cpu_set_t core;
    atomic_bool is_over;
};

static void *spin(void *arg)
{
    struct rival *rival = arg;

    pthread_setaffinity_np(pthread_self(), sizeof(rival->core), &rival->core);
    while (!atomic_load(&rival->is_over))
        rueda_relax();
    return NULL;
}

/* Two spin on one core for a while, so each waits for the other. */
static void others_on_its_core_delay_a_thread(void **state)
{
    struct rival rival = {.is_over = false};
    int64_t before;
    int64_t end;
    cpu_set_t usable;
    pthread_t thread;

    (void)state;
    pthread_getaffinity_np(pthread_self(), sizeof(usable), &usable);
    CPU_ZERO(&rival.core);
    for (int cpu = 0; CPU_COUNT(&rival.core) == 0; cpu++)
        if (CPU_ISSET(cpu, &usable))
            CPU_SET(cpu, &rival.core);
    pthread_setaffinity_np(pthread_self(), sizeof(rival.core), &rival.core);
    before = rueda_thread_delay_ns();
    assert_int_equal(rueda_thread_start(&thread, spin, &rival), RUEDA_OK);
    end = rueda_clock_ns() + 200 * MS;
    while (rueda_clock_ns() < end)
        rueda_relax();
    atomic_store(&rival.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_setaffinity_np(pthread_self(), sizeof(usable), &usable);

    assert_true(before >= 0);
    assert_true(rueda_thread_delay_ns() - before > 20 * MS);
}

/* A flag under a lock, with a condition for its change. */
struct flag {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_set; /* under lock */
};

static void *set_flag(void *arg)
{
    struct flag *flag = arg;

    pthread_mutex_lock(&flag->lock);
    flag->is_set = true;
    pthread_cond_signal(&flag->changed);
    pthread_mutex_unlock(&flag->lock);
    return NULL;
}

/* Wait for the flag; 0 for the time is no limit. */
static bool flag_wait(struct flag *flag, int64_t time_ns)
{
    int64_t deadline = time_ns > 0 ? rueda_clock_ns() + time_ns : -1;
    bool is_set;

    pthread_mutex_lock(&flag->lock);
    while (!flag->is_set && (deadline < 0 || rueda_clock_ns() < deadline))
        rueda_condition_wait(&flag->changed, &flag->lock, deadline);
    is_set = flag->is_set;
    pthread_mutex_unlock(&flag->lock);
    return is_set;
}

static void a_condition_wakes_or_times_out_by_our_clock(void **state)
{
    struct flag flag = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int64_t before = rueda_clock_ns();
    pthread_t thread;

    (void)state;
    rueda_condition_init(&flag.changed);
    assert_false(flag_wait(&flag, 3 * MS));
    assert_true(rueda_clock_ns() - before >= 3 * MS);

    for (int limited = 0; limited < 2; limited++) {
        flag.is_set = false;
        assert_int_equal(rueda_thread_start(&thread, set_flag, &flag),
                         RUEDA_OK);
        assert_true(flag_wait(&flag, limited ? 20000 * MS : 0));
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    pthread_cond_destroy(&flag.changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_has_all_signals_blocked),
        cmocka_unit_test(the_clock_never_goes_back),
        cmocka_unit_test(a_sleep_lasts_as_long_as_asked),
        cmocka_unit_test(others_on_its_core_delay_a_thread),
        cmocka_unit_test(a_condition_wakes_or_times_out_by_our_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
