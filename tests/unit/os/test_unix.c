/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

/* Two connected ends, by way of a name of this process's own. */
struct line {
    char name[64];
    int listener;
    int a;
    int b;
};

static int line_open(void **state)
{
    static struct line line;

    snprintf(line.name, sizeof(line.name), "rueda-unit-%d", (int)getpid());
    line.listener = line.a = line.b = -1;
    *state = &line;
    if (rueda_unix_listen(line.name, &line.listener) != RUEDA_OK ||
        rueda_unix_connect(line.name, &line.a) != RUEDA_OK)
        return -1;
    return rueda_stream_accept(line.listener, &line.b) == RUEDA_OK ? 0 : -1;
}

static int line_close(void **state)
{
    struct line *line = *state;

    rueda_fd_close(line->a);
    rueda_fd_close(line->b);
    rueda_fd_close(line->listener);
    return 0;
}

static void bytes_pass_both_ways(void **state)
{
    struct line *line = *state;
    char buf[8] = "";
    size_t moved;

    assert_int_equal(rueda_stream_send(line->a, "there", 6, &moved), RUEDA_OK);
    assert_int_equal(moved, 6);
    assert_int_equal(rueda_stream_recv(line->b, buf, sizeof(buf), &moved),
                     RUEDA_OK);
    assert_int_equal(moved, 6);
    assert_string_equal(buf, "there");
    assert_int_equal(rueda_stream_send(line->b, "back", 5, &moved), RUEDA_OK);
    assert_int_equal(rueda_stream_recv(line->a, buf, 2, &moved), RUEDA_OK);
    assert_int_equal(moved, 2);
    assert_memory_equal(buf, "ba", 2);
}

static void where_nobody_listens_a_caller_may_come_again(void **state)
{
    int fd = -7;

    (void)state;
    assert_int_equal(rueda_unix_connect("rueda-unit-unused", &fd),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(fd, -7);
}

static void a_name_is_taken_once_and_free_after_the_close(void **state)
{
    struct line *line = *state;
    int fd = -7;

    assert_int_equal(rueda_unix_listen(line->name, &fd), RUEDA_ERR_IO);
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(fd, -7);

    rueda_fd_close(line->listener);
    line->listener = -1;
    assert_int_equal(rueda_unix_listen(line->name, &line->listener), RUEDA_OK);
}

static void without_callers_accept_finds_nobody(void **state)
{
    struct line *line = *state;
    int fd = -7;

    assert_int_equal(rueda_stream_accept(line->listener, &fd),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(fd, -7);
    assert_int_equal(rueda_stream_accept(line->a, &fd), RUEDA_ERR_IO);
}

static bool leave_the_namespace(void)
{
    return unshare(CLONE_NEWUSER) == 0;
}

static bool become_another_user(void)
{
    return setresuid(1001, 1001, 1001) == 0;
}

static bool stay(void)
{
    return true;
}

/* A child changes itself and connects: is it of our user? */
static bool is_child_us(const struct line *line, bool (*change)(void))
{
    pid_t child = fork();
    bool is_us;
    int fd = -1;
    int how;

    if (child == 0) {
        if (!change() || rueda_unix_connect(line->name, &fd) != RUEDA_OK)
            _exit(1);
        pause();
    }
    rueda_fd_wait(line->listener, false, 10000 * MS);
    assert_int_equal(rueda_stream_accept(line->listener, &fd), RUEDA_OK);
    is_us = rueda_unix_peer_is_us(fd);
    rueda_fd_close(fd);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    return is_us;
}

static void only_our_own_user_is_us(void **state)
{
    struct line *line = *state;

    assert_true(rueda_unix_peer_is_us(line->a));
    assert_true(rueda_unix_peer_is_us(line->b));
    assert_false(rueda_unix_peer_is_us(-1));
    skip_where_forks_are_not_followed();
    assert_true(is_child_us(line, stay));
    if (geteuid() != 0)
        skip();
    assert_false(is_child_us(line, become_another_user));
    assert_false(is_child_us(line, leave_the_namespace));
}

/* Any user that a namespace does not map is shown as this one. */
static void the_overflow_user_is_not_us(void **state)
{
    pid_t child;
    int pair[2];
    int how;

    (void)state;
    if (geteuid() != 0)
        skip();
    child = fork();
    if (child == 0) {
        if (setresuid(65534, 65534, 0) != 0 ||
            socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            _exit(2);
        _exit(rueda_unix_peer_is_us(pair[0]) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void without_news_a_receive_is_in_progress(void **state)
{
    struct line *line = *state;
    size_t moved = 9;
    char byte;
    int fd = -7;

    assert_int_equal(rueda_stream_recv(line->a, &byte, 1, &moved),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(moved, 0);
    assert_int_equal(rueda_unix_recv_fds(line->a, &fd, 1), RUEDA_IN_PROGRESS);
    assert_int_equal(fd, -7);
}

static void a_full_socket_takes_no_more(void **state)
{
    static char bytes[65536];
    struct line *line = *state;
    rueda_status status;
    size_t moved;
    int sends = 0;

    do
        status = rueda_stream_send(line->a, bytes, sizeof(bytes), &moved);
    while (status == RUEDA_OK && ++sends < 10000);

    assert_int_equal(status, RUEDA_IN_PROGRESS);
    assert_int_equal(moved, 0);
    assert_true(sends > 0);
    assert_int_equal(rueda_unix_send_fds(line->a, &line->b, 1),
                     RUEDA_IN_PROGRESS);
}

static void the_end_of_the_stream_is_a_lost_peer(void **state)
{
    struct line *line = *state;
    size_t moved = 9;
    char byte;
    int fd;

    rueda_fd_close(line->b);
    line->b = -1;

    assert_int_equal(rueda_stream_recv(line->a, &byte, 1, &moved),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(moved, 0);
    assert_int_equal(rueda_unix_recv_fds(line->a, &fd, 1), RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_stream_send(line->a, "x", 1, &moved),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_unix_send_fds(line->a, &line->a, 1),
                     RUEDA_ERR_PEER_LOST);
}

static void a_descriptor_passes_and_works(void **state)
{
    struct line *line = *state;
    char got[8] = "";
    int ends[2];
    int passed;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(rueda_unix_send_fds(line->a, &ends[1], 1), RUEDA_OK);
    assert_int_equal(rueda_unix_recv_fds(line->b, &passed, 1), RUEDA_OK);

    assert_true((fcntl(passed, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(write(passed, "through", 8), 8);
    assert_int_equal(read(ends[0], got, 8), 8);
    assert_string_equal(got, "through");
    close(passed);
    close(ends[0]);
    close(ends[1]);
}

static void as_many_descriptors_pass_as_one_message_holds(void **state)
{
    struct line *line = *state;
    int sent[RUEDA_UNIX_MOST_FDS];
    int got[RUEDA_UNIX_MOST_FDS];
    int before = count_descriptors();

    for (int i = 0; i < RUEDA_UNIX_MOST_FDS; i++)
        sent[i] = line->a;
    assert_int_equal(rueda_unix_send_fds(line->a, sent, RUEDA_UNIX_MOST_FDS),
                     RUEDA_OK);
    assert_int_equal(rueda_unix_recv_fds(line->b, got, RUEDA_UNIX_MOST_FDS),
                     RUEDA_OK);

    assert_int_equal(count_descriptors(), before + RUEDA_UNIX_MOST_FDS);
    for (int i = 0; i < RUEDA_UNIX_MOST_FDS; i++)
        close(got[i]);
    assert_int_equal(count_descriptors(), before);
}

static void a_wrong_number_of_descriptors_is_refused_and_closed(void **state)
{
    struct line *line = *state;
    int sent[3] = {line->a, line->a, line->a};
    int before = count_descriptors();
    int got[4] = {-7, -7, -7, -7};
    size_t moved;

    assert_int_equal(rueda_unix_send_fds(line->a, sent, 3), RUEDA_OK);
    assert_int_equal(rueda_unix_recv_fds(line->b, got, 2), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_unix_send_fds(line->a, sent, 3), RUEDA_OK);
    assert_int_equal(rueda_unix_recv_fds(line->b, got, 4), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_stream_send(line->a, "f", 1, &moved), RUEDA_OK);
    assert_int_equal(rueda_unix_recv_fds(line->b, got, 1), RUEDA_ERR_INVALID);

    assert_int_equal(count_descriptors(), before);
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], -7);
}

/* In a child without privileges: send messages with descriptors that are never
 * received, until the kernel takes no more. */
static int send_until_too_many(void *arg)
{
    struct line *line = arg;
    struct rlimit few = {.rlim_cur = 16, .rlim_max = 16};

    if ((geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) ||
        setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 2;
    for (int i = 0; i < 100; i++) {
        rueda_status status = rueda_unix_send_fds(line->a, &line->b, 1);

        if (status != RUEDA_OK)
            return status == RUEDA_IN_PROGRESS ? 0 : 1;
    }
    return 3;
}

static void too_many_descriptors_under_way_is_not_yet_a_failure(void **state)
{
    skip_where_forks_are_not_followed();
    assert_int_equal(in_child(send_until_too_many, *state), 0);
}

static void a_wait_ends_with_news_or_with_the_time(void **state)
{
    struct line *line = *state;
    int64_t before = rueda_clock_ns();
    size_t moved;

    rueda_fd_wait(line->a, false, 3 * MS);
    assert_true(rueda_clock_ns() - before >= 3 * MS);

    assert_int_equal(rueda_stream_send(line->b, "x", 1, &moved), RUEDA_OK);
    before = rueda_clock_ns();
    rueda_fd_wait(line->a, false, 60000 * MS);
    rueda_fd_wait(line->a, true, 60000 * MS);
    assert_true(rueda_clock_ns() - before < 30000 * MS);
}

static void a_wait_for_a_time_that_is_over_ends_at_once(void **state)
{
    struct line *line = *state;

    alarm(20); /* it would be a wait for ever */
    rueda_fd_wait(line->a, false, -5 * MS);
    rueda_fd_wait(line->a, false, INT64_MIN / 2);
    alarm(0);
}

#define LINE(test) cmocka_unit_test_setup_teardown(test, line_open, line_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINE(bytes_pass_both_ways),
        LINE(where_nobody_listens_a_caller_may_come_again),
        LINE(a_name_is_taken_once_and_free_after_the_close),
        LINE(without_callers_accept_finds_nobody),
        LINE(only_our_own_user_is_us),
        LINE(the_overflow_user_is_not_us),
        LINE(without_news_a_receive_is_in_progress),
        LINE(a_full_socket_takes_no_more),
        LINE(the_end_of_the_stream_is_a_lost_peer),
        LINE(a_descriptor_passes_and_works),
        LINE(as_many_descriptors_pass_as_one_message_holds),
        LINE(a_wrong_number_of_descriptors_is_refused_and_closed),
        LINE(too_many_descriptors_under_way_is_not_yet_a_failure),
        LINE(a_wait_ends_with_news_or_with_the_time),
        LINE(a_wait_for_a_time_that_is_over_ends_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
