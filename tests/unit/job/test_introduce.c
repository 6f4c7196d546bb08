/* SPDX-License-Identifier: Apache-2.0 */
/* What a process remembers of its launcher, and a fork while it is learned. */
#include <pthread.h>
#include <stdatomic.h>

#include "job/introduce.h"
#include "os/clock.h"
#include "unit/unit.h"

#define MS      ((int64_t)1000000)
#define LIMIT_S 20

static atomic_bool is_inside;
static atomic_bool may_go;

/* The launcher's exchange takes its time. */
static int exchange_slowly(void *arg, void *bytes, size_t len)
{
    (void)arg;
    (void)bytes;
    (void)len;
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_go))
        rueda_sleep_ns(MS);
    return -1;
}

static int exchange_in_vain(void *arg, void *bytes, size_t len)
{
    (void)arg;
    (void)bytes;
    (void)len;
    return -1;
}

static rueda_status introduce(int (*exchange)(void *, void *, size_t))
{
    static const struct rueda_key none = {.present = false};
    const struct rueda_seat seat = {
        .introduction = RUEDA_INTRODUCE_CALLER, .rank = 1, .size = 2};
    const struct rueda_introduce_args args = {
        .seat = &seat,
        .key = &none,
        .exchange = exchange,
        .deadline_ns = rueda_clock_ns() + MS * 1000 * LIMIT_S,
    };
    struct rueda_text error = {{0}};
    struct rueda_contact contact;

    return rueda_introduce(&args, &contact, &error);
}

static void *start(void *arg)
{
    (void)arg;
    introduce(exchange_slowly);
    return NULL;
}

static void a_child_forked_during_a_start_can_start_by_itself(void **state)
{
    pthread_t thread;
    int how = -1;
    pid_t child;

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(pthread_create(&thread, NULL, start, NULL), 0);
    while (!atomic_load(&is_inside))
        rueda_sleep_ns(MS);
    child = fork();
    if (child == 0) {
        alarm(LIMIT_S); /* without it the test would wait for a lost lock */
        _exit(introduce(exchange_in_vain) == RUEDA_ERR_IO ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    atomic_store(&may_go, true);
    pthread_join(thread, NULL);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_forked_during_a_start_can_start_by_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
