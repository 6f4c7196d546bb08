/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/prctl.h>

#include "os/process.h"
#include "unit/unit.h"

/* A hook that counts how often it ran in this process. */
struct counter {
    struct rueda_fork_hook hook;
    int runs;
};

static void count_run(struct rueda_fork_hook *hook)
{
    ((struct counter *)hook)->runs++;
}

static struct counter first = {.hook = {.in_child = count_run}};
static struct counter second = {.hook = {.in_child = count_run}};
static struct counter third = {.hook = {.in_child = count_run}};

/* In a child: the runs of the first two as the digits of one number. */
static int runs(void *arg)
{
    (void)arg;
    return first.runs + 10 * second.runs;
}

static int runs_of_third(void *arg)
{
    (void)arg;
    return third.runs;
}

static void a_hook_runs_in_the_child_only(void **state)
{
    (void)state;
    skip_where_forks_are_not_followed();
    rueda_fork_hook_add(&first.hook);
    rueda_fork_hook_add(&second.hook);

    assert_int_equal(in_child(runs, NULL), 11);
    assert_int_equal(runs(NULL), 0);
    rueda_fork_hook_remove(&first.hook);
    rueda_fork_hook_remove(&second.hook);
}

static void a_hook_that_was_removed_does_not_run(void **state)
{
    (void)state;
    skip_where_forks_are_not_followed();
    rueda_fork_hook_add(&first.hook);
    rueda_fork_hook_add(&second.hook);
    rueda_fork_hook_add(&third.hook);

    rueda_fork_hook_remove(&second.hook);
    assert_int_equal(in_child(runs, NULL), 1);
    assert_int_equal(in_child(runs_of_third, NULL), 1);
    rueda_fork_hook_remove(&third.hook);
    rueda_fork_hook_remove(&third.hook);
    assert_int_equal(in_child(runs, NULL), 1);
    assert_int_equal(in_child(runs_of_third, NULL), 0);
    rueda_fork_hook_remove(&first.hook);
    assert_int_equal(in_child(runs, NULL), 0);
}

/* In a child, which begins without hooks and may have its own. */
static int fork_again(void *arg)
{
    if (first.runs != 1)
        return 50;
    rueda_fork_hook_add(&second.hook);
    return in_child(runs, arg);
}

static void a_child_has_hooks_of_its_own(void **state)
{
    (void)state;
    skip_where_forks_are_not_followed();
    rueda_fork_hook_add(&first.hook);

    assert_int_equal(in_child(fork_again, NULL), 11);
    rueda_fork_hook_remove(&first.hook);
}

static void a_process_knows_who_and_where_it_is(void **state)
{
    char host[256];
    char wanted[256];
    char small[3] = "xx";

    (void)state;
    assert_int_equal(gethostname(wanted, sizeof(wanted)), 0);
    rueda_process_host(host, sizeof(host));
    rueda_process_host(small, sizeof(small));

    assert_int_equal(rueda_process_id(), getpid());
    assert_int_equal(rueda_process_user(), geteuid());
    assert_string_equal(host, wanted);
    if (strlen(wanted) > 2)
        assert_string_equal(small, "?");
}

/* In a child, and then in a grandchild: is arg's process found above us? */
static int finds_ancestor(void *arg)
{
    return rueda_process_ancestor("a) R 1 (") == *(int *)arg ? 7 : 8;
}

static int finds_grandparent(void *arg)
{
    prctl(PR_SET_NAME, "between");
    return in_child(finds_ancestor, arg);
}

static void an_ancestor_is_found_by_the_beginning_of_its_name(void **state)
{
    int me = getpid();

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(rueda_process_parent(), getppid());
    assert_int_equal(rueda_process_ancestor("a) R 1 ("), 0);
    prctl(PR_SET_NAME, "a) R 1 (b) c");
    assert_int_equal(rueda_process_ancestor("a) R 1 ("), 0); /* not oneself */
    assert_int_equal(in_child(finds_ancestor, &me), 7);
    assert_int_equal(in_child(finds_grandparent, &me), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ancestor_is_found_by_the_beginning_of_its_name),
        cmocka_unit_test(a_hook_runs_in_the_child_only),
        cmocka_unit_test(a_hook_that_was_removed_does_not_run),
        cmocka_unit_test(a_child_has_hooks_of_its_own),
        cmocka_unit_test(a_process_knows_who_and_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
