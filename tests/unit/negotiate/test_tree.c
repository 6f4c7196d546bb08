/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "negotiate/tree.h"

#define MOST 600

/* The members of every subtree, found by walking up from each member. */
static void check_tree(int size, const int *hosts)
{
    static struct rueda_tree trees[MOST];
    int below[MOST];

    for (int i = 0; i < size; i++)
        assert_int_equal(rueda_tree_init(&trees[i], i, size, hosts), RUEDA_OK);
    assert_int_equal(trees[0].parent, -1);
    for (int i = 0; i < size; i++) {
        int sum = 1;

        assert_true(trees[i].child_count <= RUEDA_TREE_CHILDREN);
        assert_true(i == 0 || trees[i].parent < i);
        for (int k = 0; k < trees[i].child_count; k++) {
            assert_int_equal(trees[trees[i].children[k]].parent, i);
            sum += trees[i].sizes[k];
        }
        assert_int_equal(rueda_tree_below(i, size, hosts, below), sum);
        for (int k = 0; k < sum; k++) {
            int up = below[k];

            assert_true(k == 0 || below[k] > below[k - 1]);
            while (up > i)
                up = trees[up].parent;
            assert_int_equal(up, i);
        }
    }
    assert_int_equal(rueda_tree_below(0, size, hosts, below), size);
}

static void test_one_host(void **state)
{
    (void)state;
    check_tree(1, NULL);
    check_tree(2, NULL);
    check_tree(17, NULL);
    check_tree(300, NULL);
}

/* Hosts of different sizes, whose members come in any order. */
static void test_hosts(void **state)
{
    int hosts[MOST];

    (void)state;
    for (int i = 0; i < MOST; i++)
        hosts[i] = i * 7 % 41;
    check_tree(MOST, hosts);
    for (int i = 0; i < MOST; i++)
        hosts[i] = i;
    check_tree(MOST, hosts);
    for (int i = 0; i < MOST; i++)
        hosts[i] = 599 - i / 100;
    check_tree(MOST, hosts);
    for (int i = 0; i < 3; i++)
        hosts[i] = 40000 - i % 2; /* few members of a large job */
    check_tree(3, hosts);
}

/* Only leaders speak with other hosts. */
static void test_network_is_crossed_by_leaders(void **state)
{
    const int hosts[] = {0, 0, 1, 1, 2, 2, 2};
    const int parents[] = {-1, 0, 0, 2, 0, 4, 4};

    (void)state;
    for (int i = 0; i < 7; i++) {
        struct rueda_tree tree;

        assert_int_equal(rueda_tree_init(&tree, i, 7, hosts), RUEDA_OK);
        assert_int_equal(tree.parent, parents[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_network_is_crossed_by_leaders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
