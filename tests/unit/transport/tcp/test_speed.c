/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/frame.h"
#include "transport/tcp/speed.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

/* A socket that lets `rate` bytes out in a millisecond; more is written
 * whenever there is room, a look every half millisecond. */
struct socket {
    struct rueda_tcp_speed speed;
    uint64_t written;
    size_t unsent;
    size_t most_unsent;
    int64_t now;
};

static void run(struct socket *socket, size_t rate, int64_t ms)
{
    for (int64_t until = socket->now + ms * MS; socket->now < until;
         socket->now += MS / 2) {
        socket->unsent -= socket->unsent < rate / 2 ? socket->unsent : rate / 2;
        rueda_tcp_speed_sample(&socket->speed, socket->written, socket->unsent,
                               socket->now);
        while (rueda_tcp_speed_has_room(&socket->speed, socket->unsent)) {
            size_t piece = rueda_tcp_speed_piece(&socket->speed);

            socket->written += piece;
            socket->unsent += piece;
        }
        if (socket->unsent > socket->most_unsent)
            socket->most_unsent = socket->unsent;
    }
}

static void test_nothing_is_known_of_a_stream_that_is_never_full(void **state)
{
    struct rueda_tcp_speed speed = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        rueda_tcp_speed_sample(&speed, (uint64_t)i << 20, 0, i * MS);
    assert_int_equal(speed.moment, 0);
    assert_int_equal(rueda_tcp_speed_piece(&speed), RUEDA_TCP_PIECE_BYTES);
}

static void test_a_slow_stream_is_known_soon(void **state)
{
    struct socket socket = {.now = MS};

    (void)state;
    run(&socket, 10000, 100);
    assert_in_range(rueda_tcp_speed_piece(&socket.speed), 9000, 11000);
    /* What waits in it leaves within some moments. */
    socket.most_unsent = 0;
    run(&socket, 10000, 100);
    assert_in_range(socket.most_unsent, 10000, 60000);
}

static void test_a_stream_may_become_faster_and_slower(void **state)
{
    struct socket socket = {.now = MS};

    (void)state;
    run(&socket, 10000, 100);
    run(&socket, 80000, 1000);
    assert_in_range(rueda_tcp_speed_piece(&socket.speed), 70000, 100000);
    run(&socket, 20000, 1000);
    assert_in_range(rueda_tcp_speed_piece(&socket.speed), 18000, 26000);
}

static void test_the_slowest_stream_still_takes_something(void **state)
{
    struct socket socket = {.now = MS};

    (void)state;
    run(&socket, 2, 1000);
    assert_in_range(rueda_tcp_speed_piece(&socket.speed), 1, 4096);
    assert_true(rueda_tcp_speed_has_room(&socket.speed, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_known_of_a_stream_that_is_never_full),
        cmocka_unit_test(test_a_slow_stream_is_known_soon),
        cmocka_unit_test(test_a_stream_may_become_faster_and_slower),
        cmocka_unit_test(test_the_slowest_stream_still_takes_something),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
