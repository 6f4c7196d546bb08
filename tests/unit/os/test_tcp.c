/* SPDX-License-Identifier: Apache-2.0 */
/* TCP over loopback, and what addresses look like. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "os/clock.h"
#include "os/event.h"
#include "os/interface.h"
#include "os/stream.h"
#include "os/tcp.h"
#include "unit/unit.h"

#define SECOND ((int64_t)1000000000)

static void find_one(const char *text, struct rueda_address *out)
{
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_address_find(text, out, 1, &error), 1);
}

static void an_address_reads_as_it_was_written(void **state)
{
    static const char *const texts[] = {"127.0.0.1:80", "[::1]:65535",
                                        "10.1.2.3:1", "[2001:db8::7]:443"};
    char text[RUEDA_ADDRESS_TEXT];
    struct rueda_address address;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        find_one(texts[i], &address);
        rueda_address_text(&address, text, sizeof(text));
        assert_string_equal(text, texts[i]);
    }
    find_one("127.0.0.1:80", &address);
    assert_int_equal(rueda_address_port(&address), 80);
    rueda_address_set_port(&address, 81);
    assert_int_equal(rueda_address_port(&address), 81);
    rueda_address_text(&address, text, sizeof(text));
    assert_string_equal(text, "127.0.0.1:81");
}

static void what_is_no_address_is_named(void **state)
{
    static const char *const texts[] = {
        "",     "host",  ":1",    "host:", "127.0.0.1:65536",
        "[::1", "[]:12", "::1]:", "[::1:9"};
    struct rueda_address address;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct rueda_text error = {{0}};

        assert_int_equal(rueda_address_find(texts[i], &address, 1, &error), 0);
        assert_non_null(strstr(error.chars, "is not an address"));
        assert_non_null(strstr(error.chars, texts[i]));
        assert_false(rueda_address_is_wellformed(texts[i], &error));
    }
}

static void only_numbers_are_read_without_asking(void **state)
{
    static const char *const others[] = {"localhost:1", "", "10.1.2.3",
                                         "10.1.2.3:http", "10.1.2.3:65536"};
    struct rueda_address address = {.len = 7};
    struct rueda_text error = {{0}};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(rueda_address_read(others[i], &address));
    assert_int_equal(address.len, 7);
    assert_true(rueda_address_read("10.1.2.3:99", &address));
    assert_int_equal(rueda_address_port(&address), 99);
    assert_true(rueda_address_is_wellformed("localhost:1", &error));
}

static void nobody_is_at_the_end_of_a_listener(void **state)
{
    struct rueda_address at;
    int fd;

    (void)state;
    find_one("127.0.0.1:0", &at);
    assert_int_equal(rueda_socket_listen(&at, &fd, &at), RUEDA_OK);
    assert_int_equal(rueda_socket_peer(fd, &at), RUEDA_ERR_IO);
    rueda_fd_close(fd);
}

static void a_host_nobody_knows_is_named(void **state)
{
    struct rueda_text error = {{0}};
    struct rueda_address address;

    (void)state;
    assert_int_equal(
        rueda_address_find("[fe80::1%no-such]:80", &address, 1, &error), 0);
    assert_non_null(strstr(error.chars, "cannot find the address of "
                                        "\"[fe80::1%no-such]:80\""));
}

/* No loopback among them, and a port is still to be chosen. */
static void own_addresses_are_for_others(void **state)
{
    struct rueda_address addresses[8];
    int count = rueda_address_own(NULL, addresses, 8);

    (void)state;
    for (int i = 0; i < count; i++) {
        char text[RUEDA_ADDRESS_TEXT];

        rueda_address_text(&addresses[i], text, sizeof(text));
        assert_int_not_equal(strncmp(text, "127.", 4), 0);
        assert_int_not_equal(strncmp(text, "[::1]", 5), 0);
        assert_int_equal(rueda_address_port(&addresses[i]), 0);
    }
}

/* Loopback is there on every machine, and is not taken unless it is named. */
static void interfaces_and_networks_can_be_chosen(void **state)
{
    static const char *const names[] = {"lo", "127.0.0.0/8", "eth77,lo",
                                        "10.99.0.0/16, 127.0.0.1/32"};
    struct rueda_address addresses[8];
    char text[RUEDA_ADDRESS_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(rueda_address_own(names[i], addresses, 8) >= 1);
        rueda_address_text(&addresses[0], text, sizeof(text));
        assert_string_equal(text, "127.0.0.1:0");
    }
    assert_int_equal(rueda_address_own("eth77", addresses, 8), 0);
    assert_int_equal(rueda_address_own("128.0.0.0/8", addresses, 8), 0);
    assert_int_equal(rueda_address_own("127.0.0.0/33", addresses, 8), 0);
    assert_int_equal(rueda_address_own("nonsense/8", addresses, 8), 0);
    assert_int_equal(rueda_address_own("127.0.0.0/", addresses, 8), 0);
    assert_int_equal(rueda_address_own("127.0.0.0/8x", addresses, 8), 0);
}

static void interfaces_are_known_by_name(void **state)
{
    struct rueda_address address;
    struct rueda_address own[8];
    char all[256];
    char name[64];
    const int count = rueda_address_own(NULL, own, 8);

    (void)state;
    assert_true(rueda_interfaces_own("127.0.0.0/8", name, sizeof(name)));
    assert_string_equal(name, "lo");
    assert_true(rueda_interfaces_own("eth77,lo", name, sizeof(name)));
    assert_string_equal(name, "lo");
    assert_false(rueda_interfaces_own("eth77", name, sizeof(name)));
    assert_string_equal(name, "");
    assert_false(rueda_interfaces_own("lo", name, 2));
    find_one("127.0.0.1:4000", &address);
    assert_true(rueda_interface_towards(&address, name, sizeof(name)));
    assert_string_equal(name, "lo");
    /* Our own are reached through loopback, but belong to others. */
    assert_int_equal(rueda_interfaces_own(NULL, all, sizeof(all)), count > 0);
    assert_null(strstr(all, "lo,"));
    for (int i = 0; i < count; i++) {
        assert_true(rueda_interface_towards(&own[i], name, sizeof(name)));
        assert_string_not_equal(name, "lo");
        assert_non_null(strstr(all, name));
    }
}

/* Each end sees the other at the address that it has. */
static void check_peers(int here, int there, const struct rueda_address *at)
{
    struct rueda_address peer;

    assert_int_equal(rueda_socket_peer(here, &peer), RUEDA_OK);
    assert_int_equal(peer.len, at->len);
    assert_memory_equal(peer.bytes, at->bytes, at->len);
    assert_int_equal(rueda_socket_peer(there, &peer), RUEDA_OK);
    assert_int_not_equal(rueda_address_port(&peer), rueda_address_port(at));
    assert_true(rueda_address_is_loopback(&peer));
}

static void bytes_pass_both_ways(void **state)
{
    static const char *const texts[] = {"127.0.0.1:0", "[::1]:0"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        int64_t deadline = rueda_clock_ns() + 5 * SECOND;
        struct rueda_address at;
        char word[6] = "";
        int listener;
        int here;
        int there = -1;

        find_one(texts[i], &at);
        assert_int_equal(rueda_socket_listen(&at, &listener, &at), RUEDA_OK);
        assert_int_not_equal(rueda_address_port(&at), 0);
        assert_int_equal(rueda_socket_connect(&at, &here), RUEDA_OK);
        assert_int_equal(rueda_stream_await(here, true, deadline), RUEDA_OK);
        assert_int_equal(rueda_socket_connected(here), RUEDA_OK);
        assert_int_equal(rueda_stream_await(listener, false, deadline),
                         RUEDA_OK);
        assert_int_equal(rueda_stream_accept(listener, &there), RUEDA_OK);
        rueda_socket_hurry(there);
        check_peers(here, there, &at);
        assert_int_equal(rueda_stream_send_all(here, "hello", 6, deadline),
                         RUEDA_OK);
        assert_int_equal(rueda_stream_recv_all(there, word, 6, deadline),
                         RUEDA_OK);
        assert_string_equal(word, "hello");
        assert_int_equal(rueda_stream_send_all(there, "world", 6, deadline),
                         RUEDA_OK);
        assert_int_equal(rueda_stream_recv_all(here, word, 6, deadline),
                         RUEDA_OK);
        assert_string_equal(word, "world");
        rueda_fd_close(here);
        rueda_fd_close(there);
        rueda_fd_close(listener);
    }
}

/* Two ends of one connection. */
static void connect_pair(int *here, int *there)
{
    int64_t until = rueda_clock_ns() + 10 * SECOND;
    struct rueda_address any;
    struct rueda_address at;
    int listener;

    find_one("127.0.0.1:0", &any);
    assert_int_equal(rueda_socket_listen(&any, &listener, &at), RUEDA_OK);
    assert_int_equal(rueda_socket_connect(&at, here), RUEDA_OK);
    while (rueda_stream_accept(listener, there) != RUEDA_OK)
        assert_true(rueda_clock_ns() < until);
    rueda_fd_close(listener);
}

/* Send to a peer that does not read until the system takes no more; how many
 * bytes it took. */
static size_t fill(int fd)
{
    static const char bytes[1 << 16];
    int64_t until = rueda_clock_ns() + 10 * SECOND;
    size_t sum = 0;
    size_t moved;

    while (rueda_stream_send(fd, bytes, sizeof(bytes), &moved) == RUEDA_OK) {
        assert_true(rueda_clock_ns() < until);
        sum += moved;
    }
    return sum;
}

/* The peer takes nothing of what waits, and goes. */
static void nothing_waits_in_a_connection_that_was_reset(void **state)
{
    int64_t until = rueda_clock_ns() + 10 * SECOND;
    int here;
    int there;

    (void)state;
    connect_pair(&here, &there);
    fill(here);
    assert_false(rueda_stream_is_sent(here));
    rueda_fd_close(there);
    while (!rueda_stream_is_sent(here))
        assert_true(rueda_clock_ns() < until);
    rueda_fd_close(here);
}

static void what_stays_inside_is_not_paced(void **state)
{
    char name[16] = "";
    socklen_t len = sizeof(name);
    int here;
    int there;

    (void)state;
    connect_pair(&here, &there);
    assert_true(rueda_socket_is_inside(here));
    assert_true(rueda_socket_is_inside(there));
    assert_false(rueda_socket_is_inside(-1));
    rueda_socket_hurry_inside(here);
    assert_int_equal(getsockopt(here, IPPROTO_TCP, TCP_CONGESTION, name, &len),
                     0);
    assert_string_equal(name, "reno");
    rueda_socket_hurry_inside(-1); /* does nothing */
    rueda_fd_close(here);
    rueda_fd_close(there);
}

static void a_port_where_nobody_listens_is_refused(void **state)
{
    struct rueda_address at;
    int listener;
    int fd;

    (void)state;
    find_one("127.0.0.1:0", &at);
    assert_int_equal(rueda_socket_listen(&at, &listener, &at), RUEDA_OK);
    rueda_fd_close(listener);
    if (rueda_socket_connect(&at, &fd) != RUEDA_OK)
        return; /* some systems say so at once */
    rueda_fd_wait(fd, true, 5 * SECOND);
    assert_int_equal(rueda_socket_connected(fd), RUEDA_ERR_IO);
    rueda_fd_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_reads_as_it_was_written),
        cmocka_unit_test(what_is_no_address_is_named),
        cmocka_unit_test(only_numbers_are_read_without_asking),
        cmocka_unit_test(nobody_is_at_the_end_of_a_listener),
        cmocka_unit_test(a_host_nobody_knows_is_named),
        cmocka_unit_test(own_addresses_are_for_others),
        cmocka_unit_test(interfaces_are_known_by_name),
        cmocka_unit_test(interfaces_and_networks_can_be_chosen),
        cmocka_unit_test(bytes_pass_both_ways),
        cmocka_unit_test(nothing_waits_in_a_connection_that_was_reset),
        cmocka_unit_test(what_stays_inside_is_not_paced),
        cmocka_unit_test(a_port_where_nobody_listens_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
