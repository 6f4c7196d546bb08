/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/port_use.h"
#include "unit/unit.h"

/* A socket of loopback at a port that it holds: nothing else takes it. */
static int bound(int family, struct sockaddr_storage *out)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*out);

    memset(out, 0, sizeof(*out));
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    if ((family == AF_INET6
             ? bind(fd, (struct sockaddr *)&six, sizeof(six))
             : bind(fd, (struct sockaddr *)&four, sizeof(four))) != 0 ||
        getsockname(fd, (struct sockaddr *)out, &len) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Both families keep the port at the same place. */
static int port_of(const struct sockaddr_storage *address)
{
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void check(const struct sockaddr_storage *address, bool is_used)
{
    const int port = port_of(address);

    assert_true(rueda_port_use_is_there(port) == is_used);
    assert_true(rueda_port_use_is_listed(port) == is_used);
}

static void a_port_that_is_only_held_is_not_used(void **state)
{
    struct sockaddr_storage address;
    const int fd = bound(AF_INET, &address);

    (void)state;
    assert_true(fd >= 0);
    check(&address, false);
    close(fd);
}

static void a_port_is_used_where_a_socket_listens(void **state)
{
    static const int families[] = {AF_INET, AF_INET6};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_storage address;
        const int fd = bound(families[i], &address);

        /* A machine may have no IPv6. */
        if (fd < 0 && families[i] == AF_INET6)
            continue;
        assert_int_equal(listen(fd, 1), 0);
        check(&address, true);
        close(fd);
    }
}

/* The one that closes first keeps its end of the connection for a minute. */
static void a_port_was_used_after_a_connection_has_ended(void **state)
{
    struct sockaddr_storage address;
    const int door = bound(AF_INET, &address);
    const int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted;

    (void)state;
    assert_true(door >= 0 && caller >= 0);
    assert_int_equal(listen(door, 1), 0);
    assert_int_equal(connect(caller, (struct sockaddr *)&address,
                             sizeof(struct sockaddr_in)),
                     0);
    accepted = accept(door, NULL, NULL);
    assert_true(accepted >= 0);
    close(caller);
    close(accepted);
    close(door);
    check(&address, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_that_is_only_held_is_not_used),
        cmocka_unit_test(a_port_is_used_where_a_socket_listens),
        cmocka_unit_test(a_port_was_used_after_a_connection_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
