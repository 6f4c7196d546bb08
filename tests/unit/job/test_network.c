/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks tell each other where they can be reached. */
#include "job/network.h"

#include "transport/tcp/hub.h"
#include "unit/unit.h"

static void addresses_are_read_as_they_were_written(void **state)
{
    static const char text[] = "10.1.2.3:4000 [2001:db8::1]:4001 127.0.0.1:1";
    struct rueda_address addresses[4];
    char again[RUEDA_NETWORK_TEXT];

    (void)state;
    assert_int_equal(rueda_network_read(text, addresses, 4), 3);
    rueda_network_write(addresses, 3, again, sizeof(again));
    assert_string_equal(again, text);
    assert_int_equal(rueda_network_read(text, addresses, 2), 2);
    assert_int_equal(rueda_network_read("", addresses, 4), 0);
}

/* A name would have to be looked up, by the rank that reads it. */
static void what_is_no_address_in_numbers_is_left_out(void **state)
{
    struct rueda_address addresses[4];
    char again[RUEDA_NETWORK_TEXT];

    (void)state;
    assert_int_equal(rueda_network_read(
                         " localhost:1  10.1.2.3 x 10.1.2.3:70000 10.1.2.3:4 ",
                         addresses, 4),
                     1);
    rueda_network_write(addresses, 1, again, sizeof(again));
    assert_string_equal(again, "10.1.2.3:4");
}

static void an_address_is_never_cut(void **state)
{
    (void)state;
    for (size_t before = RUEDA_NETWORK_TEXT - 20; before < RUEDA_NETWORK_TEXT;
         before++) {
        char text[RUEDA_NETWORK_TEXT + 20];
        struct rueda_address address;

        memset(text, ' ', sizeof(text));
        snprintf(text + before, sizeof(text) - before, "10.1.2.3:40001");
        assert_int_equal(rueda_network_read(text, &address, 1), 1);
        assert_int_equal(rueda_address_port(&address), 40001);
    }
}

static void addresses_without_room_are_left_out_whole(void **state)
{
    struct rueda_address addresses[2];
    char text[sizeof("10.1.2.3:4000") + 5];

    (void)state;
    rueda_network_read("10.1.2.3:4000 10.1.2.4:4000", addresses, 2);
    rueda_network_write(addresses, 2, text, sizeof(text));
    assert_string_equal(text, "10.1.2.3:4000");
}

/* Two namespaces of one machine, and another machine. */
static void who_is_of_the_same_machine_is_inside(void **state)
{
    struct rueda_topology_host hosts[] = {
        {.id = {[0] = 1, [15] = 2, [16] = 3}},
        {.id = {[0] = 1, [15] = 2, [16] = 4}},
        {.id = {[0] = 1, [15] = 5, [16] = 3}},
    };
    struct rueda_topology_row rows[] = {
        {.host = 2}, {.host = 1}, {.host = 0}, {.host = 1}};
    const struct rueda_topology topology = {
        .size = 4, .host_count = 3, .rows = rows, .hosts = hosts};
    static const struct rueda_key key;
    const struct rueda_tcp_args args = {
        .rank = 2, .size = 4, .key = &key, .streams = 1};
    struct rueda_text error = {{0}};
    struct rueda_tcp_hub *hub;

    (void)state;
    assert_int_equal(rueda_tcp_hub_open(&args, &hub, &error), RUEDA_OK);
    rueda_network_mark_inside(rueda_tcp_hub_super(hub), &topology, 2);
    assert_false(hub->peers[0].is_inside);
    assert_true(hub->peers[1].is_inside);
    assert_true(hub->peers[3].is_inside);
    rueda_tcp_hub_close(hub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_as_they_were_written),
        cmocka_unit_test(what_is_no_address_in_numbers_is_left_out),
        cmocka_unit_test(an_address_is_never_cut),
        cmocka_unit_test(addresses_without_room_are_left_out_whole),
        cmocka_unit_test(who_is_of_the_same_machine_is_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
