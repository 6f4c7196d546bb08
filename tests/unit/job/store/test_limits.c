/* SPDX-License-Identifier: Apache-2.0 */
/* The form that requests of the store must have, and the limits of it all. */
#include "support/recorded_store.h"

static void a_request_of_wrong_form_is_refused(void **state)
{
    struct recorded_store *recorded = *state;
    struct rueda_store_request none = {.kind = RUEDA_STORE_BYE};

    check_bare(ANSWER(recorded, 1, GET), RUEDA_ERR_INVALID);
    check_bare(ANSWER(recorded, 1, SET, VALUE("a")), RUEDA_ERR_INVALID);
    check_bare(ANSWER(recorded, 1, BYE, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 1, GET, KEY("a"), VALUE("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 3, ATTACH, KEY("a")), RUEDA_ERR_INVALID);
    check_bare(ANSWER(recorded, 1, EVENT_SET, KEY("a")), RUEDA_ERR_INVALID);
    for (int kind = 14; kind < 300; kind++) {
        recorded_store_ask(
            recorded, 1,
            (struct rueda_store_request){.kind = (rueda_store_kind)kind});
        check_bare(recorded_only_on(recorded, 1), RUEDA_ERR_INVALID);
    }
    recorded->count = recorded->read = 0;
    rueda_store_ask(recorded->store, 1, &none, 0);
    check_bare(recorded_only_on(recorded, 1), RUEDA_ERR_INVALID);
    none.kind = 0;
    none.number = 1;
    assert_int_equal(rueda_store_request_check(&none), RUEDA_ERR_INVALID);
    assert_int_equal(recorded_stats_of(recorded).sessions, 2);
}

static void what_is_too_long_is_refused(void **state)
{
    struct recorded_store *recorded = *state;

    check_bare(ANSWER(recorded, 1, SET, .key = "", .key_bytes = 256),
               RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 1, WATCH, .key = "", .key_bytes = 256),
               RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 1, SET, KEY("a"), .value = "",
                      .value_bytes = RUEDA_STORE_VALUE_BYTES + 1),
               RUEDA_ERR_LIMIT);
    assert_int_equal(recorded_stats_of(recorded).keys, 0);
}

static void a_value_of_16_mib_fits(void **state)
{
    struct recorded_store *recorded = *state;
    unsigned char *value = calloc(1, RUEDA_STORE_VALUE_BYTES);
    const struct rueda_store_reply *reply;

    assert_non_null(value);
    memset(value + RUEDA_STORE_VALUE_BYTES - 4, 'x', 4);
    ASK(recorded, 1, SET, KEY("a"), .value = value,
        .value_bytes = RUEDA_STORE_VALUE_BYTES);
    assert_int_equal(recorded_only_on(recorded, 1)->status, RUEDA_OK);
    reply = ANSWER(recorded, 1, GET, KEY("a"));
    assert_int_equal(reply->value_bytes, RUEDA_STORE_VALUE_BYTES);
    assert_int_equal(recorded_stats_of(recorded).bytes,
                     RUEDA_STORE_VALUE_BYTES + 1);
    free(value);
}

static void a_session_waits_and_watches_within_limits(void **state)
{
    struct recorded_store *recorded = *state;

    for (int i = 0; i < RUEDA_STORE_MOST_WAITS; i++) {
        ASK(recorded, 1, WAIT, KEY("a"));
        recorded_no_more(recorded);
    }
    check_bare(ANSWER(recorded, 1, WAIT, KEY("a")), RUEDA_ERR_LIMIT);
    ASK(recorded, 2, WAIT, KEY("a"));
    recorded_no_more(recorded);
    for (int i = 0; i < RUEDA_STORE_MOST_WATCHES; i++)
        check_value(ANSWER(recorded, 1, WATCH, KEY("a")), 0, "");
    check_bare(ANSWER(recorded, 1, WATCH, KEY("a")), RUEDA_ERR_LIMIT);
    check_value(ANSWER(recorded, 2, WATCH, KEY("a")), 0, "");
    ASK(recorded, 2, SET, KEY("a"));
    assert_int_equal(recorded->count, RUEDA_STORE_MOST_WAITS + 1 +
                                          RUEDA_STORE_MOST_WATCHES + 1 + 1);
    assert_int_equal(recorded_stats_of(recorded).waits, 0);
}

static void all_bytes_are_within_a_limit(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    check_bare(ANSWER(recorded, 1, SET, KEY("key"), VALUE("12345678")),
               RUEDA_ERR_LIMIT);
    check_value(ANSWER(recorded, 1, SET, KEY("key"), VALUE("1234567")), 1, "");
    check_bare(ANSWER(recorded, 1, SET, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 1, CAS, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 1, ADD, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(recorded, 1, SET, KEY("key"), VALUE("12345678")),
               RUEDA_ERR_LIMIT);
    check_value(ANSWER(recorded, 1, GET, KEY("key")), 1, "1234567");
    check_value(ANSWER(recorded, 1, SET, KEY("key"), VALUE("123456")), 2, "");
    check_value(ANSWER(recorded, 1, SET, KEY("a")), 3, "");
    check_value(ANSWER(recorded, 1, DELETE, KEY("key")), 4, "");
    check_value(ANSWER(recorded, 1, ADD, KEY("b")), 5, "");
    assert_int_equal(recorded_stats_of(recorded).bytes, 10);
}

static int ten_bytes_open(void **state)
{
    return recorded_store_open_with(state, 10);
}

static void set_numbered(struct recorded_store *recorded, int i)
{
    char key[16];

    snprintf(key, sizeof(key), "key %d", i);
    ASK(recorded, 1, SET, KEY(key), .value = &i, .value_bytes = sizeof(i));
}

static void a_hundred_thousand_keys_fit_and_no_more(void **state)
{
    struct recorded_store *recorded = *state;
    char key[16];

    for (int i = 0; i < RUEDA_STORE_MOST_KEYS; i++) {
        set_numbered(recorded, i);
        assert_int_equal(recorded_only_on(recorded, 1)->status, RUEDA_OK);
    }
    set_numbered(recorded, RUEDA_STORE_MOST_KEYS);
    check_bare(recorded_only_on(recorded, 1), RUEDA_ERR_LIMIT);
    set_numbered(recorded, 0);
    assert_int_equal(recorded_only_on(recorded, 1)->status, RUEDA_OK);
    for (int i = 0; i < RUEDA_STORE_MOST_KEYS; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        assert_memory_equal(ANSWER(recorded, 1, GET, KEY(key))->value, &i,
                            sizeof(i));
    }
    ASK(recorded, 1, WATCH);
    assert_int_equal(recorded->count, RUEDA_STORE_MOST_KEYS + 1);
    ASK(recorded, 1, DELETE, KEY("key 77"));
    set_numbered(recorded, RUEDA_STORE_MOST_KEYS);
    assert_int_equal(recorded_next_on(recorded, 1)->kind,
                     RUEDA_STORE_EVENT_SET);
    assert_int_equal(recorded_only_on(recorded, 1)->status, RUEDA_OK);
    assert_int_equal(recorded_stats_of(recorded).keys, RUEDA_STORE_MOST_KEYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ATTACHED(a_request_of_wrong_form_is_refused),
        ATTACHED(what_is_too_long_is_refused),
        ATTACHED(a_value_of_16_mib_fits),
        ATTACHED(a_session_waits_and_watches_within_limits),
        ATTACHED(a_hundred_thousand_keys_fit_and_no_more),
        cmocka_unit_test_setup_teardown(all_bytes_are_within_a_limit,
                                        ten_bytes_open, recorded_store_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
