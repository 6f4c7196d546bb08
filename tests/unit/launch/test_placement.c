/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts as ruedarun's users write them, and the ranks that they get. */
#include "launch/placement.h"
#include "unit/unit.h"

static struct rueda_hosts hosts_of(const char *text)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    if (!rueda_hosts_parse(text, &hosts, &words))
        fail_msg("%s: %s", text, words.chars);
    return hosts;
}

static void hosts_keep_their_order_and_slots(void **state)
{
    struct rueda_hosts hosts = hosts_of("node-1.lab:4,10.0.0.2:1,[fd00::1]:2");

    (void)state;
    assert_int_equal(hosts.count, 3);
    assert_string_equal(hosts.list[0].name, "node-1.lab");
    assert_int_equal(hosts.list[0].slots, 4);
    assert_string_equal(hosts.list[1].name, "10.0.0.2");
    assert_string_equal(hosts.list[2].name, "fd00::1");
    assert_int_equal(rueda_hosts_slots(&hosts), 7);
    rueda_hosts_fini(&hosts);
}

static void a_host_that_is_named_twice_is_one(void **state)
{
    struct rueda_hosts hosts = hosts_of("a:1,b:1,a:2");

    (void)state;
    assert_int_equal(hosts.count, 2);
    assert_int_equal(hosts.list[0].slots, 3);
    rueda_hosts_fini(&hosts);
}

static void bad_hosts_are_named(void **state)
{
    static const char *const cases[][2] = {
        {"a", "'a' has no number of slots; write 'a:4'"},
        {"a:0", "'a' has '0' slots"},
        {"a:x", "'a' has 'x' slots"},
        {"a:-1", "'a' has '-1' slots"},
        {"a:99999999999999999999", "slots; a number from 1"},
        {"a:1,", "a host is missing at a comma"},
        {"a:1,,b:1", "a host is missing at a comma"},
        {"me@a:1", "'me@a' is not a host name; say the user in ~/.ssh"},
        {":4", "'' is not a host name"},
        {"a b:4", "'a b' is not a host name; write a:4,b:4"},
        {"-oProxyCommand=x:1", "is not a host name"},
        {"fd00::1:4", "'fd00::1' is not a host name; an address of IPv6 "
                      "stands in brackets: [fd00::1]:4"},
        {"[fd00::1]", "no number of slots"},
        {"[]:1", "'[]' is not a host name"},
        {"[-A:]:1", "'[-A:]' is not a host name"},
        {"a:65536,a:1", "more than 65536 slots"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_text words = {{0}};
        struct rueda_hosts hosts = {NULL, 0};

        assert_false(rueda_hosts_parse(cases[i][0], &hosts, &words));
        assert_null(hosts.list);
        if (strstr(words.chars, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], words.chars);
    }
}

static void too_many_hosts_are_not_called_too_many_slots(void **state)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts = {NULL, 0};
    char *text = calloc(RUEDA_HOSTS_MOST + 1, sizeof("h8192:1,"));
    size_t len = 0;

    (void)state;
    assert_non_null(text);
    for (int i = 0; i <= RUEDA_HOSTS_MOST; i++)
        len += (size_t)sprintf(text + len, "%sh%d:1", i == 0 ? "" : ",", i);
    assert_false(rueda_hosts_parse(text, &hosts, &words));
    assert_string_equal(words.chars, "too many hosts");
    free(text);
}

static void a_hostfile_may_have_remarks_and_empty_lines(void **state)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    (void)state;
    assert_true(rueda_hosts_parse_file("f",
                                       "# my hosts\n\n a  slots=2 # fast\r\n"
                                       "b:3\n\tc\tslots=1",
                                       &hosts, &words));
    assert_int_equal(hosts.count, 3);
    assert_string_equal(hosts.list[2].name, "c");
    assert_int_equal(rueda_hosts_slots(&hosts), 6);
    rueda_hosts_fini(&hosts);
}

static void a_bad_line_of_a_hostfile_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"a slots=2\nb slts=2\n", "f:2: 'b slts=2': a line is"},
        {"a slots=\n", "f:1: 'a slots='"},
        {"a slots=0\n", "f:1: host 'a' has '0' slots"},
        {"a\n", "f:1: host 'a' has no number"},
        {"a slots=2 b\n", "f:1: host 'a' has '2 b' slots"},
        {"# nothing\n", "f names no host; a line is"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_text words = {{0}};
        struct rueda_hosts hosts = {NULL, 0};

        assert_false(rueda_hosts_parse_file("f", cases[i][0], &hosts, &words));
        if (strstr(words.chars, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], words.chars);
    }
}

/* rank/local rank/local size/cross rank/cross size@host of all ranks. */
static void expect_places(const char *text, int size, const char *expected)
{
    struct rueda_hosts hosts = hosts_of(text);
    struct rueda_text words = {{0}};
    struct rueda_placement placement;
    char found[512] = "";

    assert_true(rueda_placement_make(&hosts, size, &placement, &words));
    assert_int_equal(placement.size, size);
    for (int i = 0; i < size; i++) {
        const struct rueda_placed_rank *placed = &placement.ranks[i];
        const size_t len = strlen(found);

        snprintf(found + len, sizeof(found) - len, "%d/%d/%d/%d/%d@%s ",
                 placed->rank, placed->local_rank, placed->local_size,
                 placed->cross_rank, placed->cross_size,
                 hosts.list[placed->host].name);
    }
    assert_string_equal(found, expected);
    rueda_placement_fini(&placement);
    rueda_hosts_fini(&hosts);
}

static void ranks_are_numbered_as_horovod_does(void **state)
{
    (void)state;
    expect_places("a:2,b:2", 4,
                  "0/0/2/0/2@a 1/1/2/0/2@a 2/0/2/1/2@b 3/1/2/1/2@b ");
    expect_places("a:1,b:2", 3, "0/0/1/0/2@a 1/0/2/1/2@b 2/1/2/0/1@b ");
    expect_places("a:3,b:1,c:2", 6,
                  "0/0/3/0/3@a 1/1/3/0/2@a 2/2/3/0/1@a 3/0/1/1/3@b "
                  "4/0/2/2/3@c 5/1/2/1/2@c ");
}

static void no_more_slots_are_used_than_ranks_are_wanted(void **state)
{
    struct rueda_hosts hosts = hosts_of("a:4,b:4");
    struct rueda_text words = {{0}};
    struct rueda_placement placement;

    (void)state;
    expect_places("a:4", 2, "0/0/2/0/1@a 1/1/2/0/1@a ");
    expect_places("a:2,b:4", 3, "0/0/2/0/2@a 1/1/2/0/1@a 2/0/1/1/2@b ");
    assert_true(rueda_placement_make(&hosts, 4, &placement, &words));
    assert_int_equal(placement.host_count, 1);
    rueda_placement_fini(&placement);
    assert_false(rueda_placement_make(&hosts, 9, &placement, &words));
    assert_non_null(
        strstr(words.chars, "9 ranks are more than the 8 slots of all hosts"));
    rueda_hosts_fini(&hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_keep_their_order_and_slots),
        cmocka_unit_test(a_host_that_is_named_twice_is_one),
        cmocka_unit_test(bad_hosts_are_named),
        cmocka_unit_test(too_many_hosts_are_not_called_too_many_slots),
        cmocka_unit_test(a_hostfile_may_have_remarks_and_empty_lines),
        cmocka_unit_test(a_bad_line_of_a_hostfile_is_named),
        cmocka_unit_test(ranks_are_numbered_as_horovod_does),
        cmocka_unit_test(no_more_slots_are_used_than_ranks_are_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
