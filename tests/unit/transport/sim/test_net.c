/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/unit.h"

#include "transport/sim/net.h"

static struct rueda_sim_net parse(const char *text)
{
    struct rueda_text error = {""};
    struct rueda_sim_net net;

    if (rueda_sim_net_parse(text, &net, &error) != RUEDA_OK)
        fail_msg("%s", error.chars);
    return net;
}

static const char fat_tree[] =
    "# two racks\n"
    "hosts 6\n"
    "ranks-per-host 4   # one for each device\n"
    "\n"
    "hosts-per-rack\t3\r\n"
    "oversubscription 1.5\n"
    "port latency 300ns bandwidth 40GB/s\n"
    "uplink bandwidth 100Gbit/s latency 2.5us jitter 1us\n"
    "spine latency 1ms";

static void a_network_is_read(void **state)
{
    const struct rueda_sim_net net = parse(fat_tree);

    (void)state;
    assert_int_equal(net.hosts, 6);
    assert_int_equal(net.ranks_per_host, 4);
    assert_int_equal(net.hosts_per_rack, 3);
    assert_true(net.oversubscription == 1.5);
    assert_int_equal(net.port.latency_ns, 300);
    assert_true(net.port.bytes_per_s == 40e9);
    assert_int_equal(net.uplink.latency_ns, 2500);
    assert_int_equal(net.uplink.jitter_ns, 1000);
    assert_true(net.uplink.bytes_per_s == 12.5e9);
    assert_int_equal(net.spine.latency_ns, 1000000);
}

static void what_is_not_said_has_a_value(void **state)
{
    const struct rueda_sim_net net = parse("hosts 5\n");

    (void)state;
    assert_int_equal(rueda_sim_net_ranks(&net), 5);
    assert_int_equal(rueda_sim_net_racks(&net), 1);
    assert_int_equal(rueda_sim_net_ranks(&(struct rueda_sim_net){
                         .hosts = 3, .ranks_per_host = 7}),
                     21);
    assert_int_equal(parse("").hosts, 1);
}

static void a_mistake_is_named_with_its_line(void **state)
{
    static const char *const cases[][2] = {
        {"hosts 4\nhostes 3", "line 2: unknown word \"hostes\""},
        {"hosts", "line 1: hosts \"\"; expected a whole number"},
        {"hosts 0", "line 1: hosts \"0\""},
        {"hosts 2.5", "line 1: hosts \"2.5\""},
        {"hosts 4x", "line 1: hosts \"4x\""},
        {"hosts 99999999999999999999", "line 1: hosts"},
        {"hosts 4 5", "line 1: too much: \"5\""},
        {"\n\nuplink latency 5", "line 3: latency \"5\"; expected a time"},
        {"uplink latency us", "line 1: latency \"us\""},
        {"uplink latency 5000000s", "line 1: latency"},
        {"port bandwidth 3GB", "line 1: bandwidth \"3GB\"; expected a rate"},
        {"port bandwidth 0GB/s", "line 1: bandwidth \"0GB/s\""},
        {"port speed 3GB/s", "line 1: unknown word \"speed\""},
        {"spine bandwidth 3GB/s", "line 1: unknown word \"bandwidth\""},
        {"oversubscription 0", "line 1: oversubscription \"0\""},
        {"oversubscription two", "line 1: oversubscription \"two\""},
        {"hosts 60000\nranks-per-host 2", "at most 65536 ranks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_text error = {""};
        struct rueda_sim_net net = {.hosts = -1};

        assert_int_equal(rueda_sim_net_parse(cases[i][0], &net, &error),
                         RUEDA_ERR_INVALID);
        if (strstr(error.chars, cases[i][1]) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", cases[i][1], error.chars);
        assert_int_equal(net.hosts, -1);
    }
}

static void a_file_is_read_or_named(void **state)
{
    struct folder *folder = *state;
    struct rueda_text error = {""};
    struct rueda_sim_net net;
    const char *path = folder_write(folder, "good.net", fat_tree);

    assert_int_equal(rueda_sim_net_read(path, &net, &error), RUEDA_OK);
    assert_int_equal(net.hosts, 6);
    path = folder_write(folder, "bad.net", "hosts 3\nports 4\n");
    assert_int_equal(rueda_sim_net_read(path, &net, &error), RUEDA_ERR_INVALID);
    assert_non_null(strstr(error.chars, "bad.net: line 2:"));
    error.chars[0] = '\0';
    assert_int_equal(rueda_sim_net_read("/nowhere/x.net", &net, &error),
                     RUEDA_ERR_IO);
    assert_non_null(strstr(error.chars, "/nowhere/x.net: No such file"));
}

/* ---- Ways ------------------------------------------------------------- */

static int hops(const struct rueda_sim_net *net, int from, int to)
{
    int count = 0;

    while (rueda_sim_net_hop(net, from, to, count) >= 0)
        count++;
    return count;
}

static void the_way_is_as_long_as_the_distance(void **state)
{
    const struct rueda_sim_net net = parse(fat_tree);

    (void)state;
    assert_int_equal(hops(&net, 0, 3), 2);
    assert_int_equal(hops(&net, 0, 4), 2);
    assert_int_equal(hops(&net, 0, 12), 4);
    assert_int_equal(rueda_sim_net_latency(&net, 0, 3), 300);
    assert_int_equal(rueda_sim_net_latency(&net, 0, 4), 2500);
    assert_int_equal(rueda_sim_net_latency(&net, 0, 12), 1002500);
}

/* Lanes are used by those who should share them, and their latencies add up
 * to that of the way. */
static void lanes_are_shared_by_the_right_ranks(void **state)
{
    const struct rueda_sim_net net = parse(fat_tree);
    const int size = rueda_sim_net_ranks(&net);

    (void)state;
    assert_int_equal(rueda_sim_net_ways(&net), 2 * (24 + 6 + 2));
    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++) {
            uint64_t latency = 0;

            if (from == to)
                continue;
            for (int i = 0; i < hops(&net, from, to); i++) {
                const int lane = rueda_sim_net_hop(&net, from, to, i);

                assert_in_range(lane, 0, rueda_sim_net_ways(&net) - 1);
                latency += rueda_sim_net_way(&net, lane).latency_ns;
            }
            assert_true(latency == rueda_sim_net_latency(&net, from, to));
        }
    /* Out of host 0: one uplink for all its ranks; back: another one. */
    assert_int_equal(rueda_sim_net_hop(&net, 0, 4, 0),
                     rueda_sim_net_hop(&net, 3, 20, 0));
    assert_int_not_equal(rueda_sim_net_hop(&net, 0, 4, 0),
                         rueda_sim_net_hop(&net, 4, 0, 1));
    assert_int_equal(rueda_sim_net_hop(&net, 0, 12, 1),
                     rueda_sim_net_hop(&net, 8, 23, 1));
    assert_true(rueda_sim_net_way(&net, rueda_sim_net_hop(&net, 0, 12, 1))
                    .bytes_per_s == 3 * 12.5e9 / 1.5);
}

static void a_link_is_used_by_those_behind_it(void **state)
{
    const struct rueda_sim_net net = parse(fat_tree);

    (void)state;
    assert_true(rueda_sim_net_uses(&net, RUEDA_SIM_PORT, 1, 1, 2));
    assert_false(rueda_sim_net_uses(&net, RUEDA_SIM_PORT, 1, 1, 4));
    assert_true(rueda_sim_net_uses(&net, RUEDA_SIM_UPLINK, 1, 1, 4));
    assert_false(rueda_sim_net_uses(&net, RUEDA_SIM_UPLINK, 1, 4, 5));
    assert_false(rueda_sim_net_uses(&net, RUEDA_SIM_UPLINK, 1, 1, 8));
    assert_true(rueda_sim_net_uses(&net, RUEDA_SIM_SPINE, 1, 1, 12));
    assert_false(rueda_sim_net_uses(&net, RUEDA_SIM_SPINE, 1, 12, 23));
}

static void times_and_rates_are_read_alone(void **state)
{
    double value = -1;

    (void)state;
    assert_true(rueda_sim_time_parse("2.5us", &value) && value == 2500);
    assert_true(rueda_sim_rate_parse("25gbit", &value) && value == 3.125e9);
    assert_true(rueda_sim_rate_parse("25Gbit/s", &value) && value == 3.125e9);
    assert_true(rueda_sim_rate_parse("10GB/s", &value) && value == 10e9);
    value = -1;
    assert_false(rueda_sim_time_parse("5", &value));
    assert_false(rueda_sim_time_parse("5us ", &value));
    assert_false(rueda_sim_time_parse("", &value));
    assert_false(rueda_sim_rate_parse("25Gb/s", &value)); /* bits or bytes? */
    assert_false(rueda_sim_rate_parse("0gbit", &value));
    assert_true(value == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_is_read),
        cmocka_unit_test(what_is_not_said_has_a_value),
        cmocka_unit_test(a_mistake_is_named_with_its_line),
        cmocka_unit_test_setup_teardown(a_file_is_read_or_named, folder_make,
                                        folder_drop),
        cmocka_unit_test(the_way_is_as_long_as_the_distance),
        cmocka_unit_test(lanes_are_shared_by_the_right_ranks),
        cmocka_unit_test(a_link_is_used_by_those_behind_it),
        cmocka_unit_test(times_and_rates_are_read_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
