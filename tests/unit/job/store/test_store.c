/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the store: each operation and what it refuses. */
#include "support/recorded_store.h"

/* ---- GET, SET, DELETE --------------------------------------------------- */

static void a_value_that_was_set_is_got(void **state)
{
    struct recorded_store *recorded = *state;

    check_value(ANSWER(recorded, 1, SET, KEY("a"), VALUE("one")), 1, "");
    check_value(ANSWER(recorded, 1, SET, KEY("b"), VALUE("")), 2, "");
    check_value(ANSWER(recorded, 2, GET, KEY("a")), 1, "one");
    check_value(ANSWER(recorded, 2, GET, KEY("b")), 2, "");
    check_value(ANSWER(recorded, 2, SET, KEY("a"), VALUE("two")), 3, "");
    check_value(ANSWER(recorded, 1, GET, KEY("a")), 3, "two");
    assert_int_equal(recorded_stats_of(recorded).keys, 2);
    assert_int_equal(recorded_stats_of(recorded).bytes, 1 + 3 + 1);
}

static void keys_are_any_bytes(void **state)
{
    struct recorded_store *recorded = *state;
    unsigned char key[RUEDA_STORE_KEY_BYTES] = {0};

    for (size_t bytes = 1; bytes <= sizeof(key); bytes++)
        assert_int_equal(ANSWER(recorded, 1, SET, .key = key,
                                .key_bytes = bytes, .value = &bytes,
                                .value_bytes = sizeof(bytes))
                             ->status,
                         RUEDA_OK);
    for (size_t bytes = 1; bytes <= sizeof(key); bytes++)
        assert_memory_equal(
            ANSWER(recorded, 1, GET, .key = key, .key_bytes = bytes)->value,
            &bytes, sizeof(bytes));
    assert_int_equal(recorded_stats_of(recorded).keys, sizeof(key));
}

static void a_reply_has_kind_and_number_of_its_request(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply =
        ANSWER(recorded, 1, SET, .number = 4711, KEY("a"));

    assert_int_equal(reply->kind, RUEDA_STORE_SET);
    assert_int_equal(reply->number, 4711);
}

static void a_key_that_is_not_there_has_revision_0(void **state)
{
    struct recorded_store *recorded = *state;

    check_bare(ANSWER(recorded, 1, GET, KEY("a")), RUEDA_OK);
    check_bare(ANSWER(recorded, 1, DELETE, KEY("a")), RUEDA_OK);
    assert_int_equal(recorded_stats_of(recorded).revision, 0);
}

static void a_deleted_key_is_gone(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, SET, KEY("a"), VALUE("one"));
    check_value(ANSWER(recorded, 2, DELETE, KEY("a")), 2, "");
    check_bare(ANSWER(recorded, 1, GET, KEY("a")), RUEDA_OK);
    check_value(ANSWER(recorded, 1, SET, KEY("a"), VALUE("two")), 3, "");
    assert_int_equal(recorded_stats_of(recorded).keys, 1);
}

static void a_value_can_be_kept_beyond_the_store(void **state)
{
    struct recorded_store *recorded = *state;
    struct rueda_store_value *owner;

    ASK(recorded, 1, SET, KEY("a"), VALUE("one"));
    owner = ANSWER(recorded, 1, GET, KEY("a"))->owner;
    rueda_store_value_keep(owner);
    ASK(recorded, 1, SET, KEY("a"), VALUE("two"));
    check_value(ANSWER(recorded, 1, GET, KEY("a")), 2, "two");
    rueda_store_close(recorded->store);
    recorded->store = NULL;
    rueda_store_value_drop(owner);
    rueda_store_value_drop(NULL);
}

/* ---- CAS, ADD ----------------------------------------------------------- */

static void cas_sets_a_key_that_is_as_expected(void **state)
{
    struct recorded_store *recorded = *state;

    check_value(ANSWER(recorded, 1, CAS, KEY("a"), VALUE("one")), 1, "");
    check_value(ANSWER(recorded, 1, CAS, KEY("a"), VALUE("two"), .revision = 1),
                2, "");
    check_value(ANSWER(recorded, 1, GET, KEY("a")), 2, "two");
}

static void cas_shows_what_is_there_instead(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    ASK(recorded, 1, SET, KEY("a"), VALUE("one"));
    reply = ANSWER(recorded, 2, CAS, KEY("a"), VALUE("two"));
    assert_int_equal(reply->status, RUEDA_ERR_MISMATCH);
    assert_int_equal(reply->revision, 1);
    assert_int_equal(reply->value_bytes, 3);
    assert_memory_equal(reply->value, "one", 3);
    check_bare(ANSWER(recorded, 2, CAS, KEY("b"), VALUE("two"), .revision = 1),
               RUEDA_ERR_MISMATCH);
    check_value(ANSWER(recorded, 1, GET, KEY("a")), 1, "one");
    check_bare(ANSWER(recorded, 1, GET, KEY("b")), RUEDA_OK);
}

static void check_sum(const struct rueda_store_reply *reply, uint64_t revision,
                      int64_t sum)
{
    check_value(reply, revision, "");
    assert_int_equal(reply->count, sum);
}

static void add_counts_from_0(void **state)
{
    static const unsigned char seven[8] = {0xf9, 0xff, 0xff, 0xff,
                                           0xff, 0xff, 0xff, 0xff};
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    check_sum(ANSWER(recorded, 1, ADD, KEY("n"), .count = 3), 1, 3);
    check_sum(ANSWER(recorded, 2, ADD, KEY("n"), .count = -10), 2, -7);
    check_sum(ANSWER(recorded, 2, ADD, KEY("n")), 3, -7);
    reply = ANSWER(recorded, 1, GET, KEY("n"));
    assert_int_equal(reply->value_bytes, sizeof(seven));
    assert_memory_equal(reply->value, seven, sizeof(seven));
}

static void add_refuses_what_is_no_number(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, SET, KEY("n"), VALUE("1234567"));
    check_bare(ANSWER(recorded, 1, ADD, KEY("n"), .count = 1),
               RUEDA_ERR_INVALID);
    ASK(recorded, 1, SET, KEY("n"), VALUE(""));
    check_bare(ANSWER(recorded, 1, ADD, KEY("n"), .count = 1),
               RUEDA_ERR_INVALID);
    check_value(ANSWER(recorded, 1, GET, KEY("n")), 2, "");
}

static void add_does_not_wrap(void **state)
{
    struct recorded_store *recorded = *state;

    check_sum(ANSWER(recorded, 1, ADD, KEY("n"), .count = INT64_MAX), 1,
              INT64_MAX);
    check_bare(ANSWER(recorded, 1, ADD, KEY("n"), .count = 1), RUEDA_ERR_LIMIT);
    check_sum(ANSWER(recorded, 1, ADD, KEY("m"), .count = INT64_MIN), 2,
              INT64_MIN);
    check_bare(ANSWER(recorded, 1, ADD, KEY("m"), .count = -1),
               RUEDA_ERR_LIMIT);
    check_sum(ANSWER(recorded, 1, ADD, KEY("n"), .count = INT64_MIN), 3, -1);
}

/* ---- WAIT --------------------------------------------------------------- */

static void wait_is_answered_at_once_if_the_key_is_there(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, SET, KEY("a"), VALUE("one"));
    check_value(ANSWER(recorded, 1, WAIT, KEY("a"), .time_ms = 5), 1, "one");
    assert_int_equal(rueda_store_next_ns(recorded->store), INT64_MAX);
}

static void wait_is_answered_when_the_key_comes(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    ASK(recorded, 1, WAIT, .number = 10, KEY("a"), .time_ms = 5);
    recorded_no_more(recorded);
    ASK(recorded, 2, WAIT, .number = 20, KEY("a"));
    recorded_no_more(recorded);
    ASK(recorded, 2, SET, KEY("b"), VALUE("other"));
    recorded_only_on(recorded, 2);
    ASK(recorded, 2, CAS, .number = 21, KEY("a"), VALUE("one"));
    reply = recorded_next_on(recorded, 1);
    assert_int_equal(reply->kind, RUEDA_STORE_WAIT);
    assert_int_equal(reply->number, 10);
    check_value(reply, 2, "one");
    assert_int_equal(recorded_next_on(recorded, 2)->number, 20);
    assert_int_equal(recorded_next_on(recorded, 2)->number, 21);
    recorded_no_more(recorded);
    assert_int_equal(recorded_stats_of(recorded).waits, 0);
    assert_int_equal(rueda_store_next_ns(recorded->store), INT64_MAX);
}

static void wait_can_ask_for_a_later_revision(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, SET, KEY("a"), VALUE("one"));
    ASK(recorded, 1, WAIT, .number = 10, KEY("a"), .revision = 1);
    recorded_no_more(recorded);
    ASK(recorded, 1, WAIT, .number = 11, KEY("a"), .revision = 3);
    recorded_no_more(recorded);
    ASK(recorded, 2, DELETE, KEY("a"));
    recorded_only_on(recorded, 2);
    ASK(recorded, 2, SET, KEY("a"), VALUE("two"));
    assert_int_equal(recorded_next_on(recorded, 1)->number, 10);
    recorded_next_on(recorded, 2);
    recorded_no_more(recorded);
    ASK(recorded, 2, ADD, KEY("b"), .count = 1);
    ASK(recorded, 2, SET, KEY("a"), VALUE("three"));
    check_value(recorded_next_on(recorded, 1), 5, "three");
}

static void wait_ends_at_its_deadline(void **state)
{
    struct recorded_store *recorded = *state;
    int64_t begin = recorded->now_ns;

    ASK(recorded, 1, WAIT, .number = 10, KEY("a"), .time_ms = 30);
    ASK(recorded, 2, WAIT, .number = 20, KEY("a"), .time_ms = 20);
    ASK(recorded, 2, WAIT, .number = 21, KEY("b"));
    assert_int_equal(rueda_store_next_ns(recorded->store), begin + 20 * MS);
    recorded_tick(recorded, 19);
    recorded_no_more(recorded);
    recorded_tick(recorded, 1);
    check_bare(recorded_only_on(recorded, 2), RUEDA_ERR_TIMEOUT);
    assert_int_equal(recorded->heard[0].reply.number, 20);
    assert_int_equal(rueda_store_next_ns(recorded->store), begin + 30 * MS);
    recorded_tick(recorded, 1000);
    check_bare(recorded_only_on(recorded, 1), RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_store_next_ns(recorded->store), INT64_MAX);
    assert_int_equal(recorded_stats_of(recorded).waits, 1);
}

static void what_is_due_at_once_ends_in_order(void **state)
{
    struct recorded_store *recorded = *state;

    for (uint64_t i = 1; i <= 50; i++)
        ASK(recorded, 1, WAIT, .number = i, KEY("a"), .time_ms = 10);
    recorded_tick(recorded, 10);
    for (uint64_t i = 1; i <= 50; i++)
        assert_int_equal(recorded_next_on(recorded, 1)->number, i);
    recorded_no_more(recorded);
}

static void a_deadline_beyond_the_clock_never_comes(void **state)
{
    struct recorded_store *recorded = *state;

    recorded->now_ns = INT64_MAX - 5;
    ASK(recorded, 1, WAIT, KEY("a"), .time_ms = UINT32_MAX);
    recorded_no_more(recorded);
    assert_int_equal(rueda_store_next_ns(recorded->store), INT64_MAX);
    rueda_store_tick(recorded->store, INT64_MAX);
    recorded_no_more(recorded);
    assert_int_equal(recorded_stats_of(recorded).sessions, 2);
}

/* ---- WATCH -------------------------------------------------------------- */

static void watch_tells_of_changes_under_its_prefix(void **state)
{
    struct recorded_store *recorded = *state;

    check_value(ANSWER(recorded, 1, WATCH, .number = 10, KEY("a/")), 0, "");
    ASK(recorded, 2, SET, .number = 1, KEY("a/x"), VALUE("one"));
    check_event(recorded_next_on(recorded, 1), 1, "a/x", "one");
    assert_int_equal(recorded->heard[0].reply.number, 10);
    assert_int_equal(recorded_only_on(recorded, 2)->kind, RUEDA_STORE_SET);
    ASK(recorded, 2, SET, KEY("a"), VALUE("short"));
    recorded_only_on(recorded, 2);
    ASK(recorded, 2, SET, KEY("b/x"), VALUE("other"));
    recorded_only_on(recorded, 2);
    ASK(recorded, 2, DELETE, KEY("a/x"));
    check_event(recorded_next_on(recorded, 1), 4, "a/x", NULL);
    recorded_only_on(recorded, 2);
    ASK(recorded, 2, DELETE, KEY("a/x"));
    recorded_only_on(recorded, 2);
    ASK(recorded, 1, SET, KEY("a/"), VALUE(""));
    check_event(recorded_next_on(recorded, 1), 5, "a/", "");
    recorded_only_on(recorded, 1);
}

static void watch_begins_with_what_it_has_missed(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 2, SET, KEY("a"), VALUE("1"));
    ASK(recorded, 2, SET, KEY("b"), VALUE("2"));
    ASK(recorded, 2, SET, KEY("c"), VALUE("3"));
    ASK(recorded, 2, SET, KEY("b"), VALUE("4"));
    ASK(recorded, 2, DELETE, KEY("c"));
    ASK(recorded, 2, SET, KEY("ab"), VALUE("6"));
    ASK(recorded, 1, WATCH);
    check_event(recorded_next_on(recorded, 1), 1, "a", "1");
    check_event(recorded_next_on(recorded, 1), 4, "b", "4");
    check_event(recorded_next_on(recorded, 1), 6, "ab", "6");
    check_value(recorded_only_on(recorded, 1), 6, "");
    ASK(recorded, 1, WATCH, .revision = 4);
    check_event(recorded_next_on(recorded, 1), 6, "ab", "6");
    check_value(recorded_only_on(recorded, 1), 6, "");
    ASK(recorded, 1, WATCH, KEY("a"), .revision = 1);
    check_event(recorded_next_on(recorded, 1), 6, "ab", "6");
    check_value(recorded_only_on(recorded, 1), 6, "");
    check_value(ANSWER(recorded, 1, WATCH, .revision = 6), 6, "");
    check_value(ANSWER(recorded, 1, WATCH, .revision = UINT64_MAX), 6, "");
}

static void unwatch_ends_it(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, WATCH, .number = 10);
    ASK(recorded, 1, WATCH, .number = 11);
    check_bare(ANSWER(recorded, 2, UNWATCH, .id = 10), RUEDA_OK);
    check_bare(ANSWER(recorded, 1, UNWATCH, .id = 10), RUEDA_OK);
    check_bare(ANSWER(recorded, 1, UNWATCH, .id = 10), RUEDA_OK);
    ASK(recorded, 2, SET, KEY("a"));
    assert_int_equal(recorded_next_on(recorded, 1)->number, 11);
    recorded_only_on(recorded, 2);
    assert_int_equal(recorded_stats_of(recorded).watches, 1);
}

static void two_watches_of_a_session_have_two_numbers(void **state)
{
    struct recorded_store *recorded = *state;

    ASK(recorded, 1, WATCH, .number = 10);
    check_bare(ANSWER(recorded, 1, WATCH, .number = 10), RUEDA_ERR_INVALID);
    check_value(ANSWER(recorded, 2, WATCH, .number = 10), 0, "");
    assert_int_equal(recorded_stats_of(recorded).watches, 2);
}

static void a_store_without_an_emit_does_not_open(void **state)
{
    struct rueda_store_options options = {0};
    struct rueda_store *store = NULL;

    (void)state;
    assert_int_equal(rueda_store_open(&options, &store), RUEDA_ERR_INVALID);
    assert_null(store);
    rueda_store_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACHED(a_value_that_was_set_is_got),
        ATTACHED(keys_are_any_bytes),
        ATTACHED(a_reply_has_kind_and_number_of_its_request),
        ATTACHED(a_key_that_is_not_there_has_revision_0),
        ATTACHED(a_deleted_key_is_gone),
        ATTACHED(a_value_can_be_kept_beyond_the_store),
        ATTACHED(cas_sets_a_key_that_is_as_expected),
        ATTACHED(cas_shows_what_is_there_instead),
        ATTACHED(add_counts_from_0),
        ATTACHED(add_refuses_what_is_no_number),
        ATTACHED(add_does_not_wrap),
        ATTACHED(wait_is_answered_at_once_if_the_key_is_there),
        ATTACHED(wait_is_answered_when_the_key_comes),
        ATTACHED(wait_can_ask_for_a_later_revision),
        ATTACHED(wait_ends_at_its_deadline),
        ATTACHED(what_is_due_at_once_ends_in_order),
        ATTACHED(a_deadline_beyond_the_clock_never_comes),
        ATTACHED(watch_tells_of_changes_under_its_prefix),
        ATTACHED(watch_begins_with_what_it_has_missed),
        ATTACHED(unwatch_ends_it),
        ATTACHED(two_watches_of_a_session_have_two_numbers),
        cmocka_unit_test(a_store_without_an_emit_does_not_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
