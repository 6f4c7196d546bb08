/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bind/tensorflow/alone.h"

/* One call of a kernel, with no other in flight. */
static bool call_alone(struct rueda_tf_habit *habit)
{
    struct rueda_tf_flight flight;
    bool waits = rueda_tf_flight_begin(&flight, habit);

    rueda_tf_flight_end(&flight, habit);
    return waits;
}

/* Calls of two kernels, the second of which begins before the first ends. */
static void call_both(struct rueda_tf_habit *first,
                      struct rueda_tf_habit *second, bool *out_waits)
{
    struct rueda_tf_flight flights[2];

    out_waits[0] = rueda_tf_flight_begin(&flights[0], first);
    out_waits[1] = rueda_tf_flight_begin(&flights[1], second);
    rueda_tf_flight_end(&flights[0], first);
    rueda_tf_flight_end(&flights[1], second);
}

static void a_kernel_whose_calls_are_alone_comes_to_wait(void **state)
{
    struct rueda_tf_habit habit = {0};

    (void)state;
    assert_false(call_alone(&habit));
    assert_false(call_alone(&habit));
    for (int i = 0; i < 100; i++)
        assert_true(call_alone(&habit));
}

static void kernels_whose_calls_overlap_never_wait(void **state)
{
    struct rueda_tf_habit habits[2] = {{0}, {0}};

    (void)state;
    for (int i = 0; i < 100; i++) {
        bool waits[2];

        call_both(&habits[i % 2], &habits[1 - i % 2], waits);
        assert_false(waits[0] || waits[1]);
    }
}

static void a_call_that_overlaps_ends_the_habit(void **state)
{
    struct rueda_tf_habit first = {0}, second = {0};
    bool waits[2];

    (void)state;
    while (!call_alone(&first) || !call_alone(&second))
        continue;
    call_both(&first, &second, waits);
    assert_true(waits[0]);
    assert_false(waits[1]); /* the first is in flight */
    assert_false(call_alone(&first));
    assert_false(call_alone(&second));
    assert_false(call_alone(&first));
    assert_true(call_alone(&first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_whose_calls_are_alone_comes_to_wait),
        cmocka_unit_test(kernels_whose_calls_overlap_never_wait),
        cmocka_unit_test(a_call_that_overlaps_ends_the_habit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
