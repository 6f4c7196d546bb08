/* SPDX-License-Identifier: Apache-2.0 */
#include "job/hostlist.h"
#include "unit/unit.h"

static void the_first_host_of_a_list_is_found(void **state)
{
    static const char *const cases[][2] = {
        {"a1", "a1"},
        {"a1,b2", "a1"},
        {"node[01-03,7],login", "node01"},
        {"node[7,01-03]", "node7"},
        {"rack[1-2]n[01-04]", "rack1n01"},
        {"n[001]", "n001"},
        {"n[1-4].east.example.org", "n1.east.example.org"},
        {"my-host_3", "my-host_3"},
        {"[5-6]", "5"},
        {"10.0.0.[1-9]", "10.0.0.1"},
    };
    char host[64];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(rueda_hostlist_first(cases[i][0], host, sizeof(host)));
        assert_string_equal(host, cases[i][1]);
    }
}

static void a_list_that_is_none_is_refused(void **state)
{
    static const char *const cases[] = {
        "",      ",a",    "n[",   "n[1",     "n[1-2",   "n[]",
        "n[-1]", "n[,1]", "n[a]", "n[1]x[",  "n]",      "a b",
        "a\n",   "a/b",   "a:1",  "n[1-2a]", "n[1[2]]",
    };
    char host[64] = "as it was";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_false(rueda_hostlist_first(cases[i], host, sizeof(host)));
    assert_string_equal(host, "as it was");
}

static void a_name_has_to_fit(void **state)
{
    static char name[100000];
    char host[300] = "as it was";

    (void)state;
    memset(name, '7', sizeof(name) - 1);
    assert_false(rueda_hostlist_first(name, host, sizeof(host)));
    name[0] = '[';
    name[sizeof(name) - 2] = ']';
    assert_false(rueda_hostlist_first(name, host, sizeof(host)));
    assert_false(rueda_hostlist_first("abcd", host, 4));
    assert_false(rueda_hostlist_first("a", host, 0));
    assert_string_equal(host, "as it was");
    assert_true(rueda_hostlist_first("abcd", host, 5));
    assert_string_equal(host, "abcd");
}

static void tasks_are_counted_by_node(void **state)
{
    static const struct {
        const char *list;
        int node;
        int tasks;
    } cases[] = {
        {"4", 0, 4},         {"4", 1, -1},
        {"4(x2),3", 0, 4},   {"4(x2),3", 1, 4},
        {"4(x2),3", 2, 3},   {"4(x2),3", 3, -1},
        {"1,2,3(x1)", 1, 2}, {"1,2,3(x1)", 2, 3},
        {"4", -1, -1},       {"2(x2147483647),5", 2147483647, 5},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(rueda_hostlist_tasks(cases[i].list, cases[i].node),
                         cases[i].tasks);
}

static void tasks_that_cannot_be_are_not_counted(void **state)
{
    static const char *const cases[] = {
        "",      "x",      "0",          "-4",
        "4(",    "4(x",    "4(x)",       "4(x0)",
        "4(x2",  "4(x2)5", "4 ",         "4;3",
        "4(y2)", "(x2)",   "2147483648", "4(x2147483648)",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(rueda_hostlist_tasks(cases[i], 0), -1);
    assert_int_equal(rueda_hostlist_tasks("4,", 1), -1);
    assert_int_equal(rueda_hostlist_tasks("4,,3", 2), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_host_of_a_list_is_found),
        cmocka_unit_test(a_list_that_is_none_is_refused),
        cmocka_unit_test(a_name_has_to_fit),
        cmocka_unit_test(tasks_are_counted_by_node),
        cmocka_unit_test(tasks_that_cannot_be_are_not_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
