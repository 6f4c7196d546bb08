/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "os/clock.h"
#include "os/event.h"
#include "os/unix_socket.h"
#include "unit/unit.h"

#define MS     ((int64_t)1000000)
#define SECOND (1000 * MS)

/* A poller that watches `count` doorbells, numbered from 10 on. */
struct bells {
    int poller;
    int count;
    int fds[40];
};

static void bells_open(struct bells *bells, int count)
{
    bells->count = count;
    assert_int_equal(rueda_poller_open(&bells->poller), RUEDA_OK);
    for (int i = 0; i < count; i++) {
        assert_int_equal(rueda_doorbell_open(&bells->fds[i]), RUEDA_OK);
        assert_int_equal(
            rueda_poller_add(bells->poller, bells->fds[i], (uint32_t)(10 + i)),
            RUEDA_OK);
    }
}

static void bells_close(struct bells *bells)
{
    for (int i = 0; i < bells->count; i++)
        rueda_fd_close(bells->fds[i]);
    rueda_fd_close(bells->poller);
}

static void a_bell_rings_until_it_is_cleared(void **state)
{
    struct bells bells;
    uint32_t number = 0;

    (void)state;
    bells_open(&bells, 2);
    assert_int_equal(rueda_poller_wait(bells.poller, 0, &number, 1), 0);

    rueda_doorbell_ring(bells.fds[1]);
    rueda_doorbell_ring(bells.fds[1]);
    assert_int_equal(rueda_poller_wait(bells.poller, -1, &number, 1), 1);
    assert_int_equal(number, 11);
    assert_int_equal(rueda_poller_wait(bells.poller, 0, &number, 1), 1);

    rueda_doorbell_clear(bells.fds[1]);
    assert_int_equal(rueda_poller_wait(bells.poller, 0, &number, 1), 0);
    rueda_doorbell_clear(bells.fds[1]);
    bells_close(&bells);
}

static void a_full_bell_takes_more_rings(void **state)
{
    uint64_t most = UINT64_MAX - 1;
    struct bells bells;
    uint32_t number;

    (void)state;
    bells_open(&bells, 1);
    assert_int_equal(write(bells.fds[0], &most, sizeof(most)), sizeof(most));

    rueda_doorbell_ring(bells.fds[0]);

    assert_int_equal(rueda_poller_wait(bells.poller, 0, &number, 1), 1);
    bells_close(&bells);
}

static void every_bell_that_rings_is_seen_in_some_wait(void **state)
{
    struct bells bells;
    uint32_t numbers[40];
    bool seen[40] = {false};
    int total = 0;

    (void)state;
    bells_open(&bells, 40);
    for (int i = 0; i < 40; i++)
        rueda_doorbell_ring(bells.fds[i]);
    assert_int_equal(rueda_poller_wait(bells.poller, 0, numbers, 3), 3);

    for (int turn = 0; turn < 40 && total < 40; turn++) {
        int found = rueda_poller_wait(bells.poller, 0, numbers, 40);

        for (int i = 0; i < found; i++) {
            int bell = (int)numbers[i] - 10;

            assert_false(seen[bell]);
            seen[bell] = true;
            rueda_doorbell_clear(bells.fds[bell]);
            total++;
        }
    }
    assert_int_equal(total, 40);
    bells_close(&bells);
}

static void a_bell_that_was_removed_is_not_seen(void **state)
{
    struct bells bells;
    uint32_t number;

    (void)state;
    bells_open(&bells, 1);
    rueda_doorbell_ring(bells.fds[0]);
    rueda_poller_remove(bells.poller, bells.fds[0]);

    assert_int_equal(rueda_poller_wait(bells.poller, 0, &number, 1), 0);
    bells_close(&bells);
}

static void a_wait_lasts_as_long_as_asked(void **state)
{
    struct bells bells;
    uint32_t number;
    int64_t before = rueda_clock_ns();

    (void)state;
    bells_open(&bells, 1);
    assert_int_equal(rueda_poller_wait(bells.poller, 3 * MS - 1, &number, 1),
                     0);
    assert_true(rueda_clock_ns() - before >= 3 * MS - 1);
    bells_close(&bells);
}

static void what_cannot_be_watched_leaves_the_cause(void **state)
{
    uint32_t number;
    int poller;

    (void)state;
    assert_int_equal(rueda_poller_open(&poller), RUEDA_OK);
    assert_int_equal(rueda_poller_add(poller, -1, 0), RUEDA_ERR_IO);
    assert_int_equal(errno, EBADF);
    rueda_fd_close(poller);
    assert_int_equal(rueda_poller_wait(-1, 0, &number, 1), 0);
}

static void closing_no_descriptor_is_allowed(void **state)
{
    (void)state;
    errno = 0;
    rueda_fd_close(-1);
    assert_int_equal(errno, 0);
}

static void descriptors_do_not_pass_to_other_programs(void **state)
{
    int fds[3];

    (void)state;
    assert_int_equal(rueda_doorbell_open(&fds[0]), RUEDA_OK);
    assert_int_equal(rueda_death_open_self(&fds[1]), RUEDA_OK);
    assert_int_equal(rueda_poller_open(&fds[2]), RUEDA_OK);
    for (int i = 0; i < 3; i++) {
        assert_true((fcntl(fds[i], F_GETFD) & FD_CLOEXEC) != 0);
        rueda_fd_close(fds[i]);
    }
}

/* In the child: pass a descriptor of my death, then wait to be told to die. */
static int die_when_told(int socket)
{
    char byte;
    int fd;

    if (rueda_death_open_self(&fd) != RUEDA_OK ||
        rueda_unix_send_fds(socket, &fd, 1) != RUEDA_OK)
        return 1;
    return read(socket, &byte, 1) == 1 ? 0 : 1;
}

static void
the_death_of_a_process_is_seen_by_who_holds_its_descriptor(void **state)
{
    int ends[2];
    uint32_t number;
    int poller;
    int death;
    int how;
    pid_t child;

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    child = fork();
    if (child == 0)
        _exit(die_when_told(ends[1]));
    assert_true(child > 0);
    assert_int_equal(rueda_poller_open(&poller), RUEDA_OK);
    assert_int_equal(rueda_unix_recv_fds(ends[0], &death, 1), RUEDA_OK);
    assert_int_equal(rueda_poller_add(poller, death, 77), RUEDA_OK);
    assert_int_equal(rueda_poller_wait(poller, 5 * MS, &number, 1), 0);

    assert_int_equal(write(ends[0], "x", 1), 1);

    assert_int_equal(rueda_poller_wait(poller, 10 * SECOND, &number, 1), 1);
    assert_int_equal(number, 77);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    rueda_fd_close(death);
    rueda_fd_close(poller);
    close(ends[0]);
    close(ends[1]);
}

static void what_is_watched_for_news_may_be_named_again(void **state)
{
    struct bells bells;
    uint32_t number = 0;

    (void)state;
    bells_open(&bells, 0);
    assert_int_equal(rueda_doorbell_open(&bells.fds[0]), RUEDA_OK);
    bells.count = 1;

    assert_int_equal(rueda_poller_add_edges(bells.poller, bells.fds[0], 7),
                     RUEDA_OK);
    assert_int_equal(rueda_poller_add_edges(bells.poller, bells.fds[0], 7),
                     RUEDA_OK);

    assert_int_equal(rueda_poller_wait(bells.poller, 0, &number, 1), 1);
    assert_int_equal(number, 7);
    bells_close(&bells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bell_rings_until_it_is_cleared),
        cmocka_unit_test(a_full_bell_takes_more_rings),
        cmocka_unit_test(every_bell_that_rings_is_seen_in_some_wait),
        cmocka_unit_test(a_bell_that_was_removed_is_not_seen),
        cmocka_unit_test(what_is_watched_for_news_may_be_named_again),
        cmocka_unit_test(a_wait_lasts_as_long_as_asked),
        cmocka_unit_test(what_cannot_be_watched_leaves_the_cause),
        cmocka_unit_test(closing_no_descriptor_is_allowed),
        cmocka_unit_test(descriptors_do_not_pass_to_other_programs),
        cmocka_unit_test(
            the_death_of_a_process_is_seen_by_who_holds_its_descriptor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
