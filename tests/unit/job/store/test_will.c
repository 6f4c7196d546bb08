/* SPDX-License-Identifier: Apache-2.0 */
/* What a session leaves when it is lost. */
#include "support/recorded_store.h"

#define WILL_MS 100

static void leave_will(struct recorded_store *recorded, uint64_t connection,
                       const char *value)
{
    check_bare(ANSWER(recorded, connection, WILL, KEY("failed"), VALUE(value),
                      .time_ms = WILL_MS),
               RUEDA_OK);
}

static void a_lost_session_leaves_its_will(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "one is gone");
    ASK(recorded, 2, WATCH, KEY("failed"));
    recorded_lose(recorded, 1);
    recorded_tick(recorded, WILL_MS - 1);
    recorded_no_more(recorded);
    recorded_tick(recorded, 1);
    check_event(recorded_only_on(recorded, 2), 1, "failed", "one is gone");
    check_value(ANSWER(recorded, 2, GET, KEY("failed")), 1, "one is gone");
    /* Once only. */
    recorded_tick(recorded, GRACE_MS);
    recorded_no_more(recorded);
    assert_int_equal(recorded_stats_of(recorded).sessions, 1);
}

static void who_waits_for_the_key_is_answered_by_a_will(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "one is gone");
    ASK(recorded, 2, WAIT, KEY("failed"));
    recorded_no_more(recorded);
    recorded_lose(recorded, 1);
    recorded_tick(recorded, WILL_MS);
    check_value(recorded_only_on(recorded, 2), 1, "one is gone");
}

static void who_comes_back_in_time_leaves_nothing(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "one is gone");
    recorded_lose(recorded, 1);
    recorded_tick(recorded, WILL_MS - 1);
    recorded_attach(recorded, 3, 'a');
    recorded_tick(recorded, GRACE_MS);
    check_bare(ANSWER(recorded, 2, GET, KEY("failed")), RUEDA_OK);
    /* It is still the session's. */
    recorded_lose(recorded, 3);
    recorded_tick(recorded, WILL_MS);
    check_value(ANSWER(recorded, 2, GET, KEY("failed")), 1, "one is gone");
}

static void a_farewell_revokes_a_will(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "one is gone");
    check_bare(ANSWER(recorded, 1, BYE), RUEDA_OK);
    recorded_lose(recorded, 1);
    recorded_tick(recorded, GRACE_MS);
    check_bare(ANSWER(recorded, 2, GET, KEY("failed")), RUEDA_OK);
}

static void a_later_will_takes_the_place_of_the_one_before(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "an old one");
    leave_will(recorded, 1, "a new one");
    recorded_lose(recorded, 1);
    recorded_tick(recorded, WILL_MS);
    check_value(ANSWER(recorded, 2, GET, KEY("failed")), 1, "a new one");
}

/* The words of a rank that tells why it fails say more. */
static void a_key_that_is_there_is_not_overwritten(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "one is gone");
    ASK(recorded, 1, SET, KEY("failed"), VALUE("a reason"));
    recorded_lose(recorded, 1);
    recorded_tick(recorded, GRACE_MS);
    check_value(ANSWER(recorded, 2, GET, KEY("failed")), 1, "a reason");
}

static void a_will_is_not_later_than_the_end_of_its_session(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, WILL, KEY("failed"), VALUE("late"), .time_ms = 3600000);
    recorded_lose(recorded, 1);
    recorded_tick(recorded, GRACE_MS);
    check_value(ANSWER(recorded, 2, GET, KEY("failed")), 1, "late");
}

static void a_session_that_was_cut_is_waited_for(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "one is gone");
    recorded_cut(recorded, 1);
    recorded_tick(recorded, PATIENCE_MS - 1);
    check_bare(ANSWER(recorded, 2, GET, KEY("failed")), RUEDA_OK);
    recorded_attach(recorded, 3, 'a');
    recorded_tick(recorded, PATIENCE_MS);
    check_bare(ANSWER(recorded, 2, GET, KEY("failed")), RUEDA_OK);
    recorded_cut(recorded, 3);
    recorded_tick(recorded, PATIENCE_MS);
    check_value(ANSWER(recorded, 2, GET, KEY("failed")), 1, "one is gone");
}

/* So its rank can be started again. */
static void a_session_without_a_will_has_its_grace_when_it_is_cut(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_cut(recorded, 1);
    recorded_tick(recorded, GRACE_MS);
    assert_int_equal(recorded_stats_of(recorded).sessions, 1);
}

/* Also where a session waits for its key. */
static void a_will_without_room_is_void(void **state)
{
    struct recorded_store *recorded = *state;

    leave_will(recorded, 1, "1234");
    ASK(recorded, 2, SET, KEY("a"), VALUE("12345678"));
    ASK(recorded, 2, WAIT, KEY("failed"));
    recorded_lose(recorded, 1);
    recorded_tick(recorded, GRACE_MS);
    check_bare(ANSWER(recorded, 2, GET, KEY("failed")), RUEDA_OK);
    assert_int_equal(recorded_stats_of(recorded).keys, 1);
}

static int desk_small(void **state)
{
    if (recorded_store_open_with(state, 16) != 0)
        return -1;
    recorded_attach(*state, 1, 'a');
    recorded_attach(*state, 2, 'b');
    return 0;
}

static void a_will_is_within_its_limit(void **state)
{
    static const char long_text[RUEDA_STORE_WILL_BYTES + 1];
    struct recorded_store *recorded = *state;

    check_bare(ANSWER(recorded, 1, WILL, KEY("failed"), .value = long_text,
                      .value_bytes = sizeof(long_text)),
               RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 9, WILL, KEY("failed")), RUEDA_ERR_CLOSED);
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
                                        recorded_store_close),
        ATTACHED(a_session_that_was_cut_is_waited_for),
        ATTACHED(a_session_without_a_will_has_its_grace_when_it_is_cut),
        ATTACHED(a_will_is_within_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
