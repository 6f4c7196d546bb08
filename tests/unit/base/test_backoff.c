/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/backoff.h"

#define SPIN  INT64_C(50000)
#define YIELD INT64_C(1000000)
#define START INT64_C(777000000000)
#define TURN  INT64_C(100)

static void a_wait_spins_then_yields_then_sleeps(void **state)
{
    struct rueda_backoff backoff;
    rueda_backoff_step last = RUEDA_SPIN;
    int64_t changed[3] = {0};

    (void)state;
    rueda_backoff_init(&backoff, SPIN, YIELD);
    for (int64_t now = START; now < START + 2 * YIELD; now += TURN) {
        rueda_backoff_step step = rueda_backoff_next(&backoff, now);

        assert_true(step >= last);
        if (step != last)
            changed[step] = now - START;
        last = step;
    }

    assert_int_equal(last, RUEDA_SLEEP);
    /* The clock is read once in this many turns of 100 ns. */
    assert_in_range(changed[RUEDA_YIELD], SPIN, SPIN + RUEDA_SPIN_TURNS * TURN);
    assert_int_equal(changed[RUEDA_SLEEP], SPIN + YIELD);
}

static void spinning_reads_the_clock_once_in_many_turns(void **state)
{
    struct rueda_backoff backoff;
    int readings = 0;

    (void)state;
    rueda_backoff_init(&backoff, SPIN, YIELD);
    for (int turn = 0; turn < 10 * RUEDA_SPIN_TURNS; turn++) {
        readings += rueda_backoff_wants_time(&backoff);
        assert_int_equal(rueda_backoff_next(&backoff, START + turn),
                         RUEDA_SPIN);
    }

    assert_int_equal(readings, 10);
}

static void past_spinning_every_turn_reads_the_clock(void **state)
{
    struct rueda_backoff backoff;

    (void)state;
    rueda_backoff_init(&backoff, SPIN, YIELD);
    for (int turn = 0; turn < RUEDA_SPIN_TURNS; turn++)
        rueda_backoff_next(&backoff, START);
    for (int turn = 0; turn < 200; turn++) {
        assert_true(rueda_backoff_wants_time(&backoff));
        assert_int_equal(rueda_backoff_next(&backoff, START + SPIN),
                         RUEDA_YIELD);
    }
}

static void a_move_begins_the_wait_anew(void **state)
{
    struct rueda_backoff backoff;

    (void)state;
    rueda_backoff_init(&backoff, SPIN, YIELD);
    rueda_backoff_next(&backoff, START);
    rueda_backoff_reset(&backoff);

    assert_true(rueda_backoff_wants_time(&backoff));
    assert_int_equal(rueda_backoff_next(&backoff, START + 100 * YIELD),
                     RUEDA_SPIN);
}

static void without_spinning_the_first_step_yields(void **state)
{
    struct rueda_backoff backoff;

    (void)state;
    rueda_backoff_init(&backoff, 0, YIELD);
    assert_true(rueda_backoff_wants_time(&backoff));
    assert_int_equal(rueda_backoff_next(&backoff, START), RUEDA_YIELD);
    assert_int_equal(rueda_backoff_next(&backoff, START + YIELD - 1),
                     RUEDA_YIELD);
    assert_int_equal(rueda_backoff_next(&backoff, START + YIELD), RUEDA_SLEEP);
}

static void without_any_patience_the_first_step_sleeps(void **state)
{
    struct rueda_backoff backoff;

    (void)state;
    rueda_backoff_init(&backoff, 0, 0);
    assert_int_equal(rueda_backoff_next(&backoff, START), RUEDA_SLEEP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_spins_then_yields_then_sleeps),
        cmocka_unit_test(spinning_reads_the_clock_once_in_many_turns),
        cmocka_unit_test(past_spinning_every_turn_reads_the_clock),
        cmocka_unit_test(a_move_begins_the_wait_anew),
        cmocka_unit_test(without_spinning_the_first_step_yields),
        cmocka_unit_test(without_any_patience_the_first_step_sleeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
