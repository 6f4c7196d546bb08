/* SPDX-License-Identifier: Apache-2.0 */
/* What a session leaves when it is lost. */
#include "unit/store_desk.h"

#define WILL_MS 100

static void leave_will(struct desk *desk, uint64_t connection,
                       const char *value)
{
    check_bare(ANSWER(desk, connection, WILL, KEY("failed"), VALUE(value),
                      .time_ms = WILL_MS),
               RUEDA_OK);
}

static void a_lost_session_leaves_its_will(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "one is gone");
    ASK(desk, 2, WATCH, KEY("failed"));
    lose(desk, 1);
    tick(desk, WILL_MS - 1);
    no_more(desk);
    tick(desk, 1);
    check_event(only_on(desk, 2), 1, "failed", "one is gone");
    check_value(ANSWER(desk, 2, GET, KEY("failed")), 1, "one is gone");
    /* Once only. */
    tick(desk, GRACE_MS);
    no_more(desk);
    assert_int_equal(stats_of(desk).sessions, 1);
}

static void who_waits_for_the_key_is_answered_by_a_will(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "one is gone");
    ASK(desk, 2, WAIT, KEY("failed"));
    no_more(desk);
    lose(desk, 1);
    tick(desk, WILL_MS);
    check_value(only_on(desk, 2), 1, "one is gone");
}

static void who_comes_back_in_time_leaves_nothing(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "one is gone");
    lose(desk, 1);
    tick(desk, WILL_MS - 1);
    attach(desk, 3, 'a');
    tick(desk, GRACE_MS);
    check_bare(ANSWER(desk, 2, GET, KEY("failed")), RUEDA_OK);
    /* It is still the session's. */
    lose(desk, 3);
    tick(desk, WILL_MS);
    check_value(ANSWER(desk, 2, GET, KEY("failed")), 1, "one is gone");
}

static void a_farewell_revokes_a_will(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "one is gone");
    check_bare(ANSWER(desk, 1, BYE), RUEDA_OK);
    lose(desk, 1);
    tick(desk, GRACE_MS);
    check_bare(ANSWER(desk, 2, GET, KEY("failed")), RUEDA_OK);
}

static void a_later_will_takes_the_place_of_the_one_before(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "an old one");
    leave_will(desk, 1, "a new one");
    lose(desk, 1);
    tick(desk, WILL_MS);
    check_value(ANSWER(desk, 2, GET, KEY("failed")), 1, "a new one");
}

/* The words of a rank that tells why it fails say more. */
static void a_key_that_is_there_is_not_overwritten(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "one is gone");
    ASK(desk, 1, SET, KEY("failed"), VALUE("a reason"));
    lose(desk, 1);
    tick(desk, GRACE_MS);
    check_value(ANSWER(desk, 2, GET, KEY("failed")), 1, "a reason");
}

static void a_will_is_not_later_than_the_end_of_its_session(void **state)
{
    struct desk *desk = *state;

    ASK(desk, 1, WILL, KEY("failed"), VALUE("late"), .time_ms = 3600000);
    lose(desk, 1);
    tick(desk, GRACE_MS);
    check_value(ANSWER(desk, 2, GET, KEY("failed")), 1, "late");
}

static void a_session_that_was_cut_is_waited_for(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "one is gone");
    cut(desk, 1);
    tick(desk, PATIENCE_MS - 1);
    check_bare(ANSWER(desk, 2, GET, KEY("failed")), RUEDA_OK);
    attach(desk, 3, 'a');
    tick(desk, PATIENCE_MS);
    check_bare(ANSWER(desk, 2, GET, KEY("failed")), RUEDA_OK);
    cut(desk, 3);
    tick(desk, PATIENCE_MS);
    check_value(ANSWER(desk, 2, GET, KEY("failed")), 1, "one is gone");
}

/* So its rank can be started again. */
static void a_session_without_a_will_has_its_grace_when_it_is_cut(void **state)
{
    struct desk *desk = *state;

    cut(desk, 1);
    tick(desk, GRACE_MS);
    assert_int_equal(stats_of(desk).sessions, 1);
}

/* Also where somebody waits for its key. */
static void a_will_without_room_is_void(void **state)
{
    struct desk *desk = *state;

    leave_will(desk, 1, "1234");
    ASK(desk, 2, SET, KEY("a"), VALUE("12345678"));
    ASK(desk, 2, WAIT, KEY("failed"));
    lose(desk, 1);
    tick(desk, GRACE_MS);
    check_bare(ANSWER(desk, 2, GET, KEY("failed")), RUEDA_OK);
    assert_int_equal(stats_of(desk).keys, 1);
}

static int desk_small(void **state)
{
    if (desk_open_with(state, 16) != 0)
        return -1;
    attach(*state, 1, 'a');
    attach(*state, 2, 'b');
    return 0;
}

static void a_will_is_within_its_limit(void **state)
{
    static const char long_text[RUEDA_STORE_WILL_BYTES + 1];
    struct desk *desk = *state;

    check_bare(ANSWER(desk, 1, WILL, KEY("failed"), .value = long_text,
                      .value_bytes = sizeof(long_text)),
               RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 9, WILL, KEY("failed")), RUEDA_ERR_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACHED(a_lost_session_leaves_its_will),
        ATTACHED(who_waits_for_the_key_is_answered_by_a_will),
        ATTACHED(who_comes_back_in_time_leaves_nothing),
        ATTACHED(a_farewell_revokes_a_will),
        ATTACHED(a_later_will_takes_the_place_of_the_one_before),
        ATTACHED(a_key_that_is_there_is_not_overwritten),
        ATTACHED(a_will_is_not_later_than_the_end_of_its_session),
        cmocka_unit_test_setup_teardown(a_will_without_room_is_void, desk_small,
                                        desk_close),
        ATTACHED(a_session_that_was_cut_is_waited_for),
        ATTACHED(a_session_without_a_will_has_its_grace_when_it_is_cut),
        ATTACHED(a_will_is_within_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
