/* SPDX-License-Identifier: Apache-2.0 */
/* Every decision of the policy, at times that the test makes up. */
#include "engine/policy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NOW RUEDA_S(1000)

static struct rueda_policy made(int cpus, int ranks, double quota,
                                bool has_network)
{
    const struct rueda_policy_host host = {.cpus = cpus,
                                           .ranks = ranks,
                                           .quota = quota,
                                           .has_network = has_network,
                                           .spin_us = -1,
                                           .yield_us = -1};
    struct rueda_policy policy = {0};

    rueda_policy_set_patience(&policy, &host);
    return policy;
}

static void ranks_with_cores_of_their_own_spin(void **state)
{
    struct rueda_policy policy = made(4, 4, 0, false);

    (void)state;
    assert_int_equal(policy.spin_ns, RUEDA_US(5));
    assert_int_equal(policy.yield_ns, RUEDA_MS(1));
    /* A quota that is enough changes nothing; a network ends the spinning. */
    policy = made(4, 4, 4, false);
    assert_int_equal(policy.spin_ns, RUEDA_US(5));
    policy = made(4, 4, 0, true);
    assert_int_equal(policy.spin_ns, 0);
    assert_int_equal(policy.yield_ns, RUEDA_MS(1));
}

static void ranks_that_share_cores_do_not_spin(void **state)
{
    struct rueda_policy policy = made(3, 4, 0, false);

    (void)state;
    assert_int_equal(policy.spin_ns, 0);
    assert_int_equal(policy.yield_ns, RUEDA_MS(2));
    policy = made(8, 4, 3.5, false);
    assert_int_equal(policy.spin_ns, 0);
    assert_int_equal(policy.yield_ns, 0);
}

static void the_user_overrules_spinning_and_yielding(void **state)
{
    const struct rueda_policy_host host = {
        .cpus = 1, .ranks = 4, .quota = 1, .spin_us = 7, .yield_us = 0};
    struct rueda_policy policy = {0};

    (void)state;
    rueda_policy_set_patience(&policy, &host);
    assert_int_equal(policy.spin_ns, RUEDA_US(7));
    assert_int_equal(policy.yield_ns, 0);
}

static void grace_and_light_depend_on_room_and_network(void **state)
{
    struct rueda_policy policy = made(8, 4, 0, true);

    (void)state;
    assert_true(policy.has_room);
    assert_int_equal(policy.grace_ns, RUEDA_US(250));
    assert_int_equal(policy.light_bytes, 4 << 20);
    policy = made(7, 4, 0, true);
    assert_false(policy.has_room);
    assert_int_equal(policy.grace_ns, RUEDA_US(3200));
    policy = made(7, 4, 0, false);
    assert_int_equal(policy.grace_ns, RUEDA_MS(20));
    assert_int_equal(policy.light_bytes, 64 << 10);
}

static int64_t period_of(int64_t stall_ns)
{
    struct rueda_policy policy = {0};

    rueda_policy_set_checks(&policy, stall_ns, NOW);
    assert_int_equal(rueda_policy_check_ns(&policy),
                     NOW + policy.check_period_ns);
    return policy.check_period_ns;
}

static void several_checks_fit_into_a_stall(void **state)
{
    (void)state;
    assert_int_equal(period_of(RUEDA_S(8)), RUEDA_S(2));
    assert_int_equal(period_of(RUEDA_S(60)), RUEDA_S(10));
    assert_int_equal(period_of(RUEDA_MS(100)), RUEDA_MS(50));
    assert_int_equal(period_of(0), RUEDA_S(10));
}

static void a_check_is_planned_sooner_but_not_later(void **state)
{
    struct rueda_policy policy = {0};

    (void)state;
    rueda_policy_set_checks(&policy, RUEDA_S(8), NOW);
    rueda_policy_has_checked(&policy, NOW);
    assert_false(rueda_policy_plan_check(&policy, INT64_MAX));
    assert_false(rueda_policy_plan_check(&policy, NOW + RUEDA_S(2)));
    assert_true(rueda_policy_plan_check(&policy, NOW + RUEDA_S(1)));
    assert_false(rueda_policy_is_check_due(&policy, NOW + RUEDA_S(1) - 1));
    assert_true(rueda_policy_is_check_due(&policy, NOW + RUEDA_S(1)));
    /* However soon a lane wants it, two checks are this far apart. */
    assert_true(rueda_policy_plan_check(&policy, 0));
    assert_int_equal(rueda_policy_check_ns(&policy), NOW + RUEDA_MS(10));
    assert_false(rueda_policy_plan_check(&policy, 0));
}

/* The background thread and the thread that drives wake at the same time. The
 * thread that drives still finds the check due. */
static void the_background_thread_leaves_checks_to_the_driver(void **state)
{
    struct rueda_policy policy = {0};

    (void)state;
    rueda_policy_set_checks(&policy, RUEDA_S(8), NOW);
    assert_int_equal(rueda_policy_background_ns(&policy), NOW + RUEDA_S(2));
    rueda_policy_stand_back(&policy, NOW + RUEDA_S(2));
    assert_int_equal(rueda_policy_background_ns(&policy), NOW + RUEDA_S(4));
    assert_true(rueda_policy_is_check_due(&policy, NOW + RUEDA_S(2)));
    rueda_policy_has_checked(&policy, NOW + RUEDA_S(3));
    assert_int_equal(rueda_policy_background_ns(&policy), NOW + RUEDA_S(5));
}

static void sleep_ends_at_whatever_comes_first(void **state)
{
    struct rueda_policy policy = {0};

    (void)state;
    rueda_policy_set_checks(&policy, RUEDA_S(8), NOW);
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, -1, -1, false),
                     RUEDA_S(2));
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, NOW + 9, -1, false),
                     9);
    assert_int_equal(
        rueda_policy_sleep_ns(&policy, NOW, NOW + RUEDA_S(3), -1, false),
        RUEDA_S(2));
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, NOW + 9, 4, false), 4);
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, NOW + 9, 0, false), 0);
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, NOW + 9, 10, false),
                     9);
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, NOW - 1, -1, false),
                     0);

    /* A device that rings no bell is asked every millisecond. */
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, -1, -1, true),
                     RUEDA_POLICY_SILENT_NS);
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, NOW + 9, -1, true), 9);
    assert_int_equal(rueda_policy_sleep_ns(&policy, NOW, -1, 4, true), 4);
}

static void a_thread_yields_less_where_no_caller_waits(void **state)
{
    struct rueda_policy policy = made(4, 4, 0, false);

    (void)state;
    assert_false(rueda_policy_wants_time(&policy));
    assert_int_equal(rueda_policy_awake_ns(&policy, true, 0), RUEDA_MS(1));
    assert_int_equal(rueda_policy_awake_ns(&policy, false, 0), RUEDA_US(50));
    policy.yield_ns = RUEDA_US(20);
    assert_int_equal(rueda_policy_awake_ns(&policy, false, 0), RUEDA_US(20));
}

static void a_core_that_is_long_gone_is_not_yielded_again(void **state)
{
    struct rueda_policy policy = made(4, 4, 0, false);

    (void)state;
    assert_false(rueda_policy_is_long_yield(RUEDA_US(500) - 1));
    assert_true(rueda_policy_is_long_yield(RUEDA_US(500)));
    rueda_policy_be_busy(&policy, NOW);
    assert_true(rueda_policy_wants_time(&policy));
    assert_int_equal(
        rueda_policy_awake_ns(&policy, true, NOW + RUEDA_MS(100) - 1), 0);
    assert_true(rueda_policy_wants_time(&policy));
    assert_int_equal(rueda_policy_awake_ns(&policy, true, NOW + RUEDA_MS(100)),
                     RUEDA_MS(1));
    assert_false(rueda_policy_wants_time(&policy));
}

static void grace_grows_while_others_drive(void **state)
{
    struct rueda_policy policy = made(8, 4, 0, false);

    (void)state;
    rueda_policy_be_patient(&policy, true);
    assert_int_equal(policy.grace_ns, RUEDA_US(500));
    for (int i = 0; i < 10; i++)
        rueda_policy_be_patient(&policy, true);
    assert_int_equal(policy.grace_ns, RUEDA_US(4000));
    rueda_policy_be_patient(&policy, false);
    assert_int_equal(policy.grace_ns, RUEDA_US(250));
    /* One that is longer from the start stays as it is. */
    policy = made(4, 4, 0, false);
    rueda_policy_be_patient(&policy, true);
    assert_int_equal(policy.grace_ns, RUEDA_MS(20));
}

static void a_patient_thread_stays_awake_while_it_is_used(void **state)
{
    struct rueda_policy policy = made(4, 4, 0, false);

    (void)state;
    assert_false(rueda_policy_stays_awake(&policy, NOW));
    rueda_policy_be_used(&policy);
    assert_true(rueda_policy_stays_awake(&policy, NOW));
    assert_true(rueda_policy_stays_awake(&policy, NOW + RUEDA_MS(50) - 1));
    assert_false(rueda_policy_stays_awake(&policy, NOW + RUEDA_MS(50)));
    policy = made(8, 4, 0, false);
    rueda_policy_be_used(&policy);
    assert_false(rueda_policy_stays_awake(&policy, NOW));
}

static void only_light_operations_without_room_are_helped(void **state)
{
    struct rueda_policy policy = made(4, 4, 0, false);

    (void)state;
    rueda_policy_weigh(&policy, 64 << 10);
    assert_true(rueda_policy_may_help(&policy));
    rueda_policy_weigh(&policy, (64 << 10) + 1);
    rueda_policy_weigh(&policy, 1);
    assert_false(rueda_policy_may_help(&policy));
    rueda_policy_be_light(&policy);
    assert_true(rueda_policy_may_help(&policy));
    policy = made(8, 4, 0, false);
    assert_false(rueda_policy_may_help(&policy));
}

static void operations_that_come_closely_are_a_rush(void **state)
{
    const uint64_t near = RUEDA_POLICY_RUSH_TICKS;
    struct rueda_policy policy = {0};
    uint64_t now = 10 * near;

    (void)state;
    assert_false(rueda_policy_is_rush(&policy, now));
    assert_true(rueda_policy_is_rush(&policy, now + near - 1));
    /* It counts from the first of them; the first one after it still goes with
     * the rush, and the next does not. */
    now += near;
    assert_true(rueda_policy_is_rush(&policy, now));
    assert_false(rueda_policy_is_rush(&policy, now + near));
}

static void a_thread_helps_now_and_then(void **state)
{
    struct rueda_policy policy = made(4, 4, 0, true);

    (void)state;
    assert_true(rueda_policy_should_help(&policy, NOW));
    assert_int_equal(rueda_policy_help_until_ns(&policy), NOW + RUEDA_US(3200));
    assert_false(rueda_policy_should_help(&policy, NOW + RUEDA_US(50) - 1));
    assert_int_equal(rueda_policy_help_until_ns(&policy), NOW + RUEDA_US(3200));
    assert_true(rueda_policy_should_help(&policy, NOW + RUEDA_US(50)));
}

static void work_that_is_left_has_no_grace(void **state)
{
    struct rueda_policy policy = made(2, 2, 0, false);
    const int64_t grace = policy.grace_ns;

    (void)state;
    assert_int_equal(grace, RUEDA_MS(20));
    assert_int_equal(rueda_policy_grace_until_ns(&policy, NOW), NOW + grace);
    rueda_policy_be_left(&policy, NOW);
    assert_int_equal(rueda_policy_grace_until_ns(&policy, NOW), NOW);
    assert_true(rueda_policy_should_help(&policy, NOW + 1));
    assert_int_equal(rueda_policy_help_until_ns(&policy), NOW + 1);
    assert_int_equal(rueda_policy_grace_until_ns(&policy, NOW + RUEDA_S(1)),
                     NOW + RUEDA_S(1) + grace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_cores_of_their_own_spin),
        cmocka_unit_test(ranks_that_share_cores_do_not_spin),
        cmocka_unit_test(the_user_overrules_spinning_and_yielding),
        cmocka_unit_test(grace_and_light_depend_on_room_and_network),
        cmocka_unit_test(several_checks_fit_into_a_stall),
        cmocka_unit_test(a_check_is_planned_sooner_but_not_later),
        cmocka_unit_test(the_background_thread_leaves_checks_to_the_driver),
        cmocka_unit_test(sleep_ends_at_whatever_comes_first),
        cmocka_unit_test(a_thread_yields_less_where_no_caller_waits),
        cmocka_unit_test(a_core_that_is_long_gone_is_not_yielded_again),
        cmocka_unit_test(grace_grows_while_others_drive),
        cmocka_unit_test(a_patient_thread_stays_awake_while_it_is_used),
        cmocka_unit_test(only_light_operations_without_room_are_helped),
        cmocka_unit_test(operations_that_come_closely_are_a_rush),
        cmocka_unit_test(a_thread_helps_now_and_then),
        cmocka_unit_test(work_that_is_left_has_no_grace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
