/* SPDX-License-Identifier: Apache-2.0 */
/* Which networks an address belongs to. */
#include "os/tcp.h"
#include "unit/unit.h"

static struct rueda_address address_of(const char *host)
{
    struct rueda_address address;
    char text[RUEDA_ADDRESS_TEXT];

    snprintf(text, sizeof(text),
             strchr(host, ':') != NULL ? "[%s]:80" : "%s:80", host);
    assert_true(rueda_address_read(text, &address));
    return address;
}

static void loopback_private_and_link_local_addresses_are_near(void **state)
{
    static const char *const hosts[] = {
        "127.0.0.1",       "127.255.255.255", "10.0.0.0",     "10.255.255.255",
        "172.16.0.1",      "172.31.255.255",  "192.168.0.1",  "192.168.255.255",
        "169.254.0.1",     "169.254.255.255", "::1",          "fc00::1",
        "fdff:ffff::1",    "fe80::1",         "febf:ffff::1", "::ffff:10.1.2.3",
        "::ffff:127.0.0.1"};

    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct rueda_address address = address_of(hosts[i]);

        if (!rueda_address_is_near(&address))
            fail_msg("%s should be near", hosts[i]);
    }
}

static void all_others_are_not(void **state)
{
    static const char *const hosts[] = {"126.255.255.255",
                                        "128.0.0.1",
                                        "9.255.255.255",
                                        "11.0.0.0",
                                        "172.15.255.255",
                                        "172.32.0.0",
                                        "192.167.255.255",
                                        "192.169.0.0",
                                        "169.253.255.255",
                                        "169.255.0.0",
                                        "100.64.0.1",
                                        "8.8.8.8",
                                        "0.0.0.0",
                                        "224.0.0.1",
                                        "::",
                                        "::2",
                                        "2001:db8::1",
                                        "fbff:ffff::1",
                                        "fe00::1",
                                        "fe7f:ffff::1",
                                        "fec0::1",
                                        "ff02::1",
                                        "::ffff:8.8.8.8",
                                        "::10.1.2.3",
                                        "64:ff9b::10.1.2.3"};

    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct rueda_address address = address_of(hosts[i]);

        if (rueda_address_is_near(&address))
            fail_msg("%s should not be near", hosts[i]);
    }
}

static void loopback_is_known_in_all_its_forms(void **state)
{
    static const struct {
        const char *host;
        bool is_loopback;
    } cases[] = {{"127.0.0.1", true},        {"127.9.9.9", true}, {"::1", true},
                 {"::ffff:127.0.0.1", true}, {"10.0.0.1", false}, {"::", false},
                 {"::ffff:10.0.0.1", false}, {"7f00::", false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_address address = address_of(cases[i].host);

        assert_int_equal(rueda_address_is_loopback(&address),
                         cases[i].is_loopback);
    }
}

static void what_is_no_address_of_the_internet_is_nowhere(void **state)
{
    struct rueda_address none = {.len = 0};

    (void)state;
    assert_false(rueda_address_is_near(&none));
    assert_false(rueda_address_is_loopback(&none));
    assert_false(rueda_address_is_listed(&none, "eth0", "0.0.0.0/0,::/0"));
    assert_true(rueda_address_is_listed(&none, "eth0", "eth0"));
}

static void a_list_names_interfaces_and_networks(void **state)
{
    static const struct {
        const char *host;
        const char *list;
        bool is_listed;
    } cases[] = {
        {"10.1.2.3", "eth0", true},
        {"10.1.2.3", "eth1,eth0", true},
        {"10.1.2.3", " , eth1 ,eth0, ", true},
        {"10.1.2.3", "eth00", false},
        {"10.1.2.3", "eth", false},
        {"10.1.2.3", "", false},
        {"10.1.2.3", ", ,", false},
        {"10.1.2.3", "10.1.0.0/16", true},
        {"10.1.2.3", "10.1.2.3/32", true},
        {"10.1.2.3", "10.1.2.2/31", true},
        {"10.1.2.3", "10.1.2.4/30", false},
        {"10.1.2.3", "0.0.0.0/0", true},
        {"10.1.2.3", "::/0", false},
        {"10.1.2.3", "10.2.0.0/16,192.168.0.0/16", false},
        {"10.1.2.3", "10.1.2.3", false},
        {"10.1.2.3", "10.1.0.0/", false},
        {"10.1.2.3", "10.1.0.0/-1", false},
        {"10.1.2.3", "10.1.0.0/+8", false},
        {"10.1.2.3", "10.1.0.0/33", false},
        {"10.1.2.3", "10.1.0.0/4294967304", false},
        {"10.1.2.3", "10.1.0.0/8x", false},
        {"10.1.2.3", "/8", false},
        {"2001:db8::7", "2001:db8::/32", true},
        {"2001:db8::7", "2001:db8::7/128", true},
        {"2001:db8::7", "2001:db8::7/129", false},
        {"2001:db8::7", "2001:db9::/32", false},
        {"2001:db8::7", "0.0.0.0/0", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_address address = address_of(cases[i].host);

        if (rueda_address_is_listed(&address, "eth0", cases[i].list) !=
            cases[i].is_listed)
            fail_msg("%s, \"%s\"", cases[i].host, cases[i].list);
    }
}

/* An entry is found wherever it stands, and is never cut. */
static void a_list_may_be_long(void **state)
{
    struct rueda_address address = address_of("10.1.2.3");

    (void)state;
    for (int before = 200; before < 300; before++) {
        char list[400];

        memset(list, ',', sizeof(list));
        snprintf(list + before, sizeof(list) - (size_t)before, "10.1.2.3/32");
        assert_true(rueda_address_is_listed(&address, "eth0", list));
        snprintf(list + before, sizeof(list) - (size_t)before, "10.1.2.2/320");
        assert_false(rueda_address_is_listed(&address, "eth0", list));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_private_and_link_local_addresses_are_near),
        cmocka_unit_test(all_others_are_not),
        cmocka_unit_test(loopback_is_known_in_all_its_forms),
        cmocka_unit_test(what_is_no_address_of_the_internet_is_nowhere),
        cmocka_unit_test(a_list_names_interfaces_and_networks),
        cmocka_unit_test(a_list_may_be_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
