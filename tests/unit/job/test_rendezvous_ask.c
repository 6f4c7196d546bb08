/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks of the launcher's store, and a fork in the middle of it.
 * The store is a process of its own, so that it can be stopped. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "job/rendezvous.h"
#include "job/store/keeper.h"
#include "os/clock.h"
#include "os/tcp.h"
#include "unit/unit.h"

#define LIMIT_S 60
#define MS      ((int64_t)1000000)
#define WORKER  3

static const struct rueda_key key = {.bytes = {9}, .present = true};
static const struct rueda_rendezvous_ranks first = {
    .term = 1, .rank = 0, .size = 1, .local_size = 1, .cross_size = 1};

struct launcher {
    pid_t pid;
    char at[RUEDA_ADDRESS_TEXT];
};

static struct rueda_keeper *keeper;

/* The worker is ready, and gets its place. */
static void give_place(void *arg, const char *asked, size_t asked_bytes,
                       const void *value, size_t bytes)
{
    unsigned char place[RUEDA_RENDEZVOUS_BYTES];

    (void)arg;
    (void)asked;
    (void)asked_bytes;
    (void)value;
    (void)bytes;
    rueda_rendezvous_write(&first, place);
    rueda_keeper_set(keeper, RUEDA_RENDEZVOUS_RANKS "3", place, sizeof(place));
}

/* Keep the store of an elastic job, until this process is killed. */
static void be_launcher(int out)
{
    struct rueda_address address;
    const struct rueda_keeper_args args = {
        .most = 8,
        .key = &key,
        .addresses = &address,
        .address_count = 1,
        .watched = RUEDA_RENDEZVOUS_READY,
        .changed = give_place,
    };
    const struct rueda_address *taken;
    char text[RUEDA_ADDRESS_TEXT] = {0};
    struct rueda_text error;
    int count;

    alarm(LIMIT_S);
    if (rueda_address_find("127.0.0.1:0", &address, 1, &error) != 1 ||
        rueda_keeper_open(&args, &keeper, &error) != RUEDA_OK)
        _exit(1);
    taken = rueda_keeper_addresses(keeper, &count);
    rueda_address_text(taken, text, sizeof(text));
    if (write(out, text, sizeof(text)) != sizeof(text))
        _exit(1);
    for (;;)
        pause();
}

static struct launcher launcher_start(void)
{
    struct launcher launcher;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    launcher.pid = fork();
    if (launcher.pid == 0)
        be_launcher(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], launcher.at, sizeof(launcher.at)),
                     sizeof(launcher.at));
    close(ends[0]);
    return launcher;
}

static void launcher_end(const struct launcher *launcher)
{
    kill(launcher->pid, SIGKILL);
    waitpid(launcher->pid, NULL, 0);
}

static void take_place(const struct launcher *launcher)
{
    struct rueda_seat seat = {.worker = WORKER};
    struct rueda_text error = {{0}};

    snprintf(seat.store, sizeof(seat.store), "%s", launcher->at);
    if (rueda_rendezvous_take(&seat, &key, &error) != RUEDA_OK)
        fail_msg("%s", error.chars);
}

static atomic_int is_asking;

static void *count_on(void *arg)
{
    int64_t *sum = arg;

    atomic_store(&is_asking, 1);
    if (rueda_rendezvous_add("count", 10, sum) != RUEDA_OK)
        *sum = -1;
    atomic_store(&is_asking, 0);
    return NULL;
}

/* The child of a fork counts, too, over a connection of its own. */
static int count_in_child(const struct launcher *launcher)
{
    int64_t sum = 0;

    alarm(LIMIT_S / 2); /* without it the test would wait for a lost lock */
    kill(launcher->pid, SIGCONT);
    return rueda_rendezvous_add("count", 100, &sum) == RUEDA_OK && sum > 100
               ? 0
               : 1;
}

static void a_child_forked_while_a_thread_asks_can_ask_too(void **state)
{
    struct launcher launcher;
    pthread_t thread;
    int64_t sum = 0;
    int how = -1;
    pid_t child;

    (void)state;
    skip_where_forks_are_not_followed();
    launcher = launcher_start();
    take_place(&launcher);
    assert_int_equal(rueda_rendezvous_add("count", 1, &sum), RUEDA_OK);
    assert_int_equal(sum, 1);

    kill(launcher.pid, SIGSTOP);
    assert_int_equal(waitpid(launcher.pid, NULL, WUNTRACED), launcher.pid);
    assert_int_equal(pthread_create(&thread, NULL, count_on, &sum), 0);
    while (atomic_load(&is_asking) == 0)
        rueda_sleep_ns(MS);
    rueda_sleep_ns(100 * MS); /* it waits for the answer, with the lock */
    assert_int_equal(atomic_load(&is_asking), 1);
    child = fork();
    if (child == 0)
        _exit(count_in_child(&launcher));
    assert_int_equal(waitpid(child, &how, 0), child);
    pthread_join(thread, NULL);
    launcher_end(&launcher);

    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_true(sum == 11 || sum == 111);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_forked_while_a_thread_asks_can_ask_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
