/* SPDX-License-Identifier: Apache-2.0 */
/* What a discovery script prints. */
#include "launch/discovery_parse.h"
#include "unit/unit.h"

static void expect_hosts(const char *text, int default_slots,
                         const char *expected)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;
    char *got;

    if (!rueda_discovery_parse(text, default_slots, &hosts, &words))
        fail_msg("'%s' says '%s'", text, words.chars);
    got = rueda_hosts_text(&hosts, true);
    assert_string_equal(got, expected);
    free(got);
    rueda_hosts_fini(&hosts);
}

static void hosts_have_slots_of_their_own_or_the_default(void **state)
{
    (void)state;
    expect_hosts("a:4\nb:2\n", 0, "a:4,b:2");
    expect_hosts("a\nb:2", 3, "a:3,b:2");
    expect_hosts("10.0.0.1:1\n[fd00::1]:2\n", 0, "10.0.0.1:1,[fd00::1]:2");
    expect_hosts("[fd00::1]\n", 5, "[fd00::1]:5");
}

static void blanks_and_remarks_do_not_count(void **state)
{
    (void)state;
    expect_hosts("\n  a:4\t\r\n# b:1\n\nc:1 # new\n", 0, "a:4,c:1");
}

static void a_host_that_comes_twice_is_one(void **state)
{
    (void)state;
    expect_hosts("a:1\nb:1\na:2\n", 0, "a:3,b:1");
}

static void expect_mistake(const char *text, const char *expected)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts = {.list = NULL};

    assert_false(rueda_discovery_parse(text, 0, &hosts, &words));
    if (strstr(words.chars, expected) == NULL)
        fail_msg("'%s' says '%s'", text, words.chars);
    assert_null(hosts.list);
}

static void what_is_no_list_of_hosts_is_a_mistake(void **state)
{
    char longest[600];

    (void)state;
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    expect_mistake("", "no host");
    expect_mistake("\n# nothing\n", "no host");
    expect_mistake("a:1\nTraceback (most recent call last):\n",
                   "is not of the form HOST or HOST:SLOTS");
    expect_mistake("a:1,b:2\n", "is not of the form");
    expect_mistake("a\n", "no number of slots");
    expect_mistake("a:0\n", "'0' slots");
    expect_mistake("a:x\n", "'x' slots");
    expect_mistake(":4\n", "not a host name");
    expect_mistake("-oProxyCommand=x:1\n", "not a host name");
    expect_mistake(longest, "no number of slots");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_slots_of_their_own_or_the_default),
        cmocka_unit_test(blanks_and_remarks_do_not_count),
        cmocka_unit_test(a_host_that_comes_twice_is_one),
        cmocka_unit_test(what_is_no_list_of_hosts_is_a_mistake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
