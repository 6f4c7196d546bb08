/* SPDX-License-Identifier: Apache-2.0 */
/* The form that requests of the store must have, and the limits of it all. */
#include "unit/store_desk.h"

static void a_request_of_wrong_form_is_refused(void **state)
{
    struct desk *desk = *state;
    struct rueda_store_request none = {.kind = RUEDA_STORE_BYE};

    check_bare(ANSWER(desk, 1, GET), RUEDA_ERR_INVALID);
    check_bare(ANSWER(desk, 1, SET, VALUE("a")), RUEDA_ERR_INVALID);
    check_bare(ANSWER(desk, 1, BYE, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 1, GET, KEY("a"), VALUE("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 3, ATTACH, KEY("a")), RUEDA_ERR_INVALID);
    check_bare(ANSWER(desk, 1, EVENT_SET, KEY("a")), RUEDA_ERR_INVALID);
    for (int kind = 14; kind < 300; kind++) {
        desk_ask(desk, 1,
                 (struct rueda_store_request){.kind = (rueda_store_kind)kind});
        check_bare(only_on(desk, 1), RUEDA_ERR_INVALID);
    }
    desk->count = desk->read = 0;
    rueda_store_ask(desk->store, 1, &none, 0);
    check_bare(only_on(desk, 1), RUEDA_ERR_INVALID);
    none.kind = 0;
    none.number = 1;
    assert_int_equal(rueda_store_request_check(&none), RUEDA_ERR_INVALID);
    assert_int_equal(stats_of(desk).sessions, 2);
}

static void what_is_too_long_is_refused(void **state)
{
    struct desk *desk = *state;

    check_bare(ANSWER(desk, 1, SET, .key = "", .key_bytes = 256),
               RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 1, WATCH, .key = "", .key_bytes = 256),
               RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 1, SET, KEY("a"), .value = "",
                      .value_bytes = RUEDA_STORE_VALUE_BYTES + 1),
               RUEDA_ERR_LIMIT);
    assert_int_equal(stats_of(desk).keys, 0);
}

static void a_value_of_16_mib_fits(void **state)
{
    struct desk *desk = *state;
    unsigned char *value = calloc(1, RUEDA_STORE_VALUE_BYTES);
    const struct rueda_store_reply *reply;

    assert_non_null(value);
    memset(value + RUEDA_STORE_VALUE_BYTES - 4, 'x', 4);
    ASK(desk, 1, SET, KEY("a"), .value = value,
        .value_bytes = RUEDA_STORE_VALUE_BYTES);
    assert_int_equal(only_on(desk, 1)->status, RUEDA_OK);
    reply = ANSWER(desk, 1, GET, KEY("a"));
    assert_int_equal(reply->value_bytes, RUEDA_STORE_VALUE_BYTES);
    assert_int_equal(stats_of(desk).bytes, RUEDA_STORE_VALUE_BYTES + 1);
    free(value);
}

static void a_session_waits_and_watches_within_limits(void **state)
{
    struct desk *desk = *state;

    for (int i = 0; i < RUEDA_STORE_MOST_WAITS; i++) {
        ASK(desk, 1, WAIT, KEY("a"));
        no_more(desk);
    }
    check_bare(ANSWER(desk, 1, WAIT, KEY("a")), RUEDA_ERR_LIMIT);
    ASK(desk, 2, WAIT, KEY("a"));
    no_more(desk);
    for (int i = 0; i < RUEDA_STORE_MOST_WATCHES; i++)
        check_value(ANSWER(desk, 1, WATCH, KEY("a")), 0, "");
    check_bare(ANSWER(desk, 1, WATCH, KEY("a")), RUEDA_ERR_LIMIT);
    check_value(ANSWER(desk, 2, WATCH, KEY("a")), 0, "");
    ASK(desk, 2, SET, KEY("a"));
    assert_int_equal(desk->count, RUEDA_STORE_MOST_WAITS + 1 +
                                      RUEDA_STORE_MOST_WATCHES + 1 + 1);
    assert_int_equal(stats_of(desk).waits, 0);
}

static void all_bytes_are_within_a_limit(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    check_bare(ANSWER(desk, 1, SET, KEY("key"), VALUE("12345678")),
               RUEDA_ERR_LIMIT);
    check_value(ANSWER(desk, 1, SET, KEY("key"), VALUE("1234567")), 1, "");
    check_bare(ANSWER(desk, 1, SET, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 1, CAS, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 1, ADD, KEY("a")), RUEDA_ERR_LIMIT);
    check_bare(ANSWER(desk, 1, SET, KEY("key"), VALUE("12345678")),
               RUEDA_ERR_LIMIT);
    check_value(ANSWER(desk, 1, GET, KEY("key")), 1, "1234567");
    check_value(ANSWER(desk, 1, SET, KEY("key"), VALUE("123456")), 2, "");
    check_value(ANSWER(desk, 1, SET, KEY("a")), 3, "");
    check_value(ANSWER(desk, 1, DELETE, KEY("key")), 4, "");
    check_value(ANSWER(desk, 1, ADD, KEY("b")), 5, "");
    assert_int_equal(stats_of(desk).bytes, 10);
}

static int ten_bytes_open(void **state)
{
    return desk_open_with(state, 10);
}

static void set_numbered(struct desk *desk, int i)
{
    char key[16];

    snprintf(key, sizeof(key), "key %d", i);
    ASK(desk, 1, SET, KEY(key), .value = &i, .value_bytes = sizeof(i));
}

static void a_hundred_thousand_keys_fit_and_no_more(void **state)
{
    struct desk *desk = *state;
    char key[16];

    for (int i = 0; i < RUEDA_STORE_MOST_KEYS; i++) {
        set_numbered(desk, i);
        assert_int_equal(only_on(desk, 1)->status, RUEDA_OK);
    }
    set_numbered(desk, RUEDA_STORE_MOST_KEYS);
    check_bare(only_on(desk, 1), RUEDA_ERR_LIMIT);
    set_numbered(desk, 0);
    assert_int_equal(only_on(desk, 1)->status, RUEDA_OK);
    for (int i = 0; i < RUEDA_STORE_MOST_KEYS; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        assert_memory_equal(ANSWER(desk, 1, GET, KEY(key))->value, &i,
                            sizeof(i));
    }
    ASK(desk, 1, WATCH);
    assert_int_equal(desk->count, RUEDA_STORE_MOST_KEYS + 1);
    ASK(desk, 1, DELETE, KEY("key 77"));
    set_numbered(desk, RUEDA_STORE_MOST_KEYS);
    assert_int_equal(next_on(desk, 1)->kind, RUEDA_STORE_EVENT_SET);
    assert_int_equal(only_on(desk, 1)->status, RUEDA_OK);
    assert_int_equal(stats_of(desk).keys, RUEDA_STORE_MOST_KEYS);
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
                                        ten_bytes_open, desk_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
