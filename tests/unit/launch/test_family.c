/* SPDX-License-Identifier: Apache-2.0 */
/* The processes below this one, found and ended. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/family.h"
#include "unit/unit.h"

#define SECOND ((int64_t)1000000000)

/* All end with the test, which holds the other end of this. */
static int life[2];

/* Each has `width` children, and they have theirs. A letter goes to fd when one
 * has all of his. */
static _Noreturn void grow(int depth, int width, int fd)
{
    char letter = 'x';

    close(life[1]);
    for (int i = 0; depth > 0 && i < width; i++) {
        if (fork() == 0) {
            depth--;
            i = -1; /* for children of its own */
        }
    }
    if (write(fd, &letter, 1) == 1)
        while (read(life[0], &letter, 1) > 0)
            continue;
    _exit(0);
}

/* A tree of ours, all of which is there on return. */
static void plant(int depth, int width)
{
    int ends[2];
    int count = 1;
    char letter;

    assert_int_equal(pipe(ends), 0);
    if (fork() == 0)
        grow(depth, width, ends[1]);
    for (int i = 0, level = 1; i < depth; i++) {
        level *= width;
        count += level;
    }
    close(ends[1]);
    for (int i = 0; i < count; i++)
        assert_int_equal(read(ends[0], &letter, 1), 1);
    close(ends[0]);
}

static void all_descendants_are_found(void **state)
{
    (void)state;
    rueda_family_adopt();
    assert_int_equal(rueda_family_signal(0), 0);
    plant(3, 3);
    assert_int_equal(rueda_family_signal(0), 40);
    plant(30, 1);
    assert_int_equal(rueda_family_signal(0), 71);
    assert_true(rueda_family_end(10 * SECOND));
    assert_int_equal(rueda_family_signal(0), 0);
}

/* Whose parents have ended: a child that has run away is ours. */
static void orphans_are_adopted(void **state)
{
    int ends[2];
    char letter;

    (void)state;
    rueda_family_adopt();
    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        if (fork() == 0) {
            setsid();
            grow(1, 2, ends[1]);
        }
        _exit(0);
    }
    close(ends[1]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(read(ends[0], &letter, 1), 1);
    close(ends[0]);
    assert_true(wait(NULL) > 0);
    assert_int_equal(rueda_family_signal(0), 3);
    assert_true(rueda_family_end(10 * SECOND));
    assert_int_equal(wait(NULL), -1);
}

/* A process ends and another one gets its number, between a look at the
 * processes and the signal. */
static void a_process_with_the_number_of_another_gets_no_signal(void **state)
{
    const pid_t child = fork();
    unsigned long long begun;
    int how = 0;

    (void)state;
    if (child == 0) {
        for (;;)
            pause();
    }
    begun = rueda_family_begun(child);
    assert_true(begun > 0);
    rueda_family_signal_one(child, begun - 1, SIGKILL);
    rueda_family_signal_one(child, begun, SIGTERM);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGTERM);
}

static int set_up(void **state)
{
    (void)state;
    return pipe(life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_descendants_are_found),
        cmocka_unit_test(orphans_are_adopted),
        cmocka_unit_test(a_process_with_the_number_of_another_gets_no_signal),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
