/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the store, what they repeat, and their leases. */
#include "support/recorded_store.h"

/* ---- Begin and end ------------------------------------------------------ */

static void a_session_is_new_once(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    check_bare(ANSWER(recorded, 1, ATTACH, SESSION('a')), RUEDA_OK);
    ASK(recorded, 1, SET, KEY("a"));
    recorded_lose(recorded, 1);
    reply = ANSWER(recorded, 2, ATTACH, SESSION('a'));
    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_equal(reply->count, 1);
    assert_int_equal(reply->revision, 1);
    assert_int_equal(recorded_stats_of(recorded).sessions, 1);
}

static void without_a_session_nothing_is_done(void **state)
{
    struct recorded_store *recorded = *state;

    check_bare(ANSWER(recorded, 1, SET, KEY("a")), RUEDA_ERR_CLOSED);
    recorded_attach(recorded, 1, 'a');
    check_bare(ANSWER(recorded, 1, BYE), RUEDA_OK);
    check_bare(ANSWER(recorded, 1, SET, KEY("a")), RUEDA_ERR_CLOSED);
    recorded_attach(recorded, 1, 'a');
    recorded_lose(recorded, 1);
    recorded_lose(recorded, 1);
    recorded_lose(recorded, 77);
    check_bare(ANSWER(recorded, 1, SET, KEY("a")), RUEDA_ERR_CLOSED);
    assert_int_equal(recorded_stats_of(recorded).keys, 0);
}

static void a_connection_has_one_session(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    check_bare(ANSWER(recorded, 1, ATTACH, SESSION('b')), RUEDA_ERR_INVALID);
    recorded_attach(recorded, 2, 'b');
    check_bare(ANSWER(recorded, 1, ATTACH, SESSION('b')), RUEDA_ERR_INVALID);
    assert_int_equal(ANSWER(recorded, 1, ATTACH, SESSION('a'))->count, 1);
    assert_int_equal(recorded_stats_of(recorded).sessions, 2);
    check_bare(ANSWER(recorded, 2, GET, KEY("a")), RUEDA_OK);
}

/* The store hears of a new connection before it hears that the old one is
 * lost, which it may never hear. */
static void a_new_connection_takes_a_session_over(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    recorded_attach(recorded, 1, 'a');
    ASK(recorded, 1, WAIT, KEY("a"));
    ASK(recorded, 1, WATCH);
    ASK(recorded, 2, ATTACH, SESSION('a'));
    reply = recorded_next_on(recorded, 1);
    assert_int_equal(reply->kind, RUEDA_STORE_BYE);
    assert_int_equal(reply->number, 0);
    check_bare(reply, RUEDA_ERR_CLOSED);
    assert_int_equal(recorded_only_on(recorded, 2)->count, 1);
    check_bare(ANSWER(recorded, 1, GET, KEY("a")), RUEDA_ERR_CLOSED);
    recorded_lose(recorded, 1);
    assert_int_equal(rueda_store_next_ns(recorded->store), INT64_MAX);
    ASK(recorded, 2, SET, KEY("a"));
    recorded_only_on(recorded, 2);
}

static void waits_and_watches_end_with_the_connection(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    ASK(recorded, 1, WAIT, KEY("a"), .time_ms = 1);
    ASK(recorded, 1, WAIT, KEY("b"));
    ASK(recorded, 1, WATCH);
    recorded_lose(recorded, 1);
    assert_int_equal(recorded_stats_of(recorded).waits, 0);
    assert_int_equal(recorded_stats_of(recorded).watches, 0);
    ASK(recorded, 2, SET, KEY("a"));
    recorded_only_on(recorded, 2);
    recorded_tick(recorded, 1);
    recorded_no_more(recorded);
    recorded_attach(recorded, 3, 'a');
    ASK(recorded, 3, WAIT, KEY("b"), .number = 2);
    ASK(recorded, 2, SET, KEY("b"));
    assert_int_equal(recorded_next_on(recorded, 3)->number, 2);
}

static void a_lost_session_has_a_grace(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    recorded_lose(recorded, 1);
    assert_int_equal(rueda_store_next_ns(recorded->store),
                     recorded->now_ns + GRACE_MS * MS);
    recorded_tick(recorded, GRACE_MS - 1);
    assert_int_equal(ANSWER(recorded, 2, ATTACH, SESSION('a'))->count, 1);
    recorded_tick(recorded, 10 * GRACE_MS);
    assert_int_equal(recorded_stats_of(recorded).sessions, 1);
    recorded_lose(recorded, 2);
    recorded_tick(recorded, GRACE_MS);
    assert_int_equal(recorded_stats_of(recorded).sessions, 0);
    assert_int_equal(rueda_store_next_ns(recorded->store), INT64_MAX);
    assert_int_equal(ANSWER(recorded, 3, ATTACH, SESSION('a'))->count, 0);
}

/* A store that was held up reads first and ticks then. */
static void nothing_expires_before_the_tick(void **state)
{
    struct recorded_store *recorded = *state;
    uint64_t lease;

    recorded_attach(recorded, 1, 'a');
    lease = ANSWER(recorded, 1, LEASE_OPEN, .time_ms = 100)->id;
    recorded_lose(recorded, 1);
    recorded->now_ns += 10 * GRACE_MS * MS;
    assert_int_equal(ANSWER(recorded, 2, ATTACH, SESSION('a'))->count, 1);
    assert_int_equal(ANSWER(recorded, 2, LEASE_RENEW, .id = lease)->status,
                     RUEDA_OK);
    recorded_tick(recorded, 0);
    assert_int_equal(recorded_stats_of(recorded).leases, 1);
}

static void sessions_are_within_a_limit(void **state)
{
    struct recorded_store *recorded = *state;
    unsigned char id[RUEDA_STORE_SESSION_BYTES] = {0};

    for (uint32_t i = 0; i <= RUEDA_STORE_MOST_SESSIONS; i++) {
        memcpy(id, &i, sizeof(i));
        ASK(recorded, i, ATTACH, .key = id, .key_bytes = sizeof(id));
        assert_int_equal(recorded_only_on(recorded, i)->status,
                         i < RUEDA_STORE_MOST_SESSIONS ? RUEDA_OK
                                                       : RUEDA_ERR_LIMIT);
    }
    ASK(recorded, 4711, BYE);
    recorded_attach(recorded, RUEDA_STORE_MOST_SESSIONS, 'x');
}

/* ---- Once only ---------------------------------------------------------- */

static void a_repeated_change_is_done_once(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    recorded_attach(recorded, 1, 'a');
    ASK(recorded, 1, ADD, .number = 1, KEY("n"), .count = 5);
    ASK(recorded, 1, SET, .number = 2, KEY("a"), VALUE("one"));
    ASK(recorded, 1, CAS, .number = 3, KEY("a"), VALUE("two"), .revision = 2);
    ASK(recorded, 1, DELETE, .number = 4, KEY("n"));
    ASK(recorded, 1, LEASE_OPEN, .number = 5, .time_ms = 1000);
    ASK(recorded, 1, LEASE_CLOSE, .number = 6, .id = 1);
    recorded_lose(recorded, 1);
    recorded_attach(recorded, 2, 'a');
    reply = ANSWER(recorded, 2, ADD, .number = 1, KEY("n"), .count = 5);
    check_value(reply, 1, "");
    assert_int_equal(reply->count, 5);
    assert_int_equal(reply->number, 1);
    check_value(ANSWER(recorded, 2, SET, .number = 2, KEY("a"), VALUE("one")),
                2, "");
    reply = ANSWER(recorded, 2, CAS, .number = 3, KEY("a"), VALUE("two"),
                   .revision = 2);
    check_value(reply, 3, "");
    check_value(ANSWER(recorded, 2, DELETE, .number = 4, KEY("n")), 4, "");
    reply = ANSWER(recorded, 2, LEASE_OPEN, .number = 5, .time_ms = 1000);
    assert_int_equal(reply->id, 1);
    reply = ANSWER(recorded, 2, LEASE_CLOSE, .number = 6, .id = 1);
    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_equal(recorded_stats_of(recorded).revision, 4);
    assert_int_equal(recorded_stats_of(recorded).leases, 0);
    check_value(ANSWER(recorded, 2, GET, KEY("a")), 3, "two");
}

static void a_repeated_failure_fails_again(void **state)
{
    struct recorded_store *recorded = *state;
    const struct rueda_store_reply *reply;

    recorded_attach(recorded, 1, 'a');
    ASK(recorded, 1, SET, .number = 1, KEY("a"), VALUE("one"));
    ASK(recorded, 1, ADD, .number = 2, KEY("a"), .count = 1);
    ASK(recorded, 1, CAS, .number = 3, KEY("a"), VALUE("two"), .revision = 2);
    ASK(recorded, 1, SET, .number = 4, KEY("a"), VALUE("12345678"));
    check_bare(ANSWER(recorded, 1, ADD, .number = 2, KEY("a"), .count = 1),
               RUEDA_ERR_INVALID);
    /* By now the revision is the one that it asked for. */
    reply = ANSWER(recorded, 1, CAS, .number = 3, KEY("a"), VALUE("two"),
                   .revision = 2);
    assert_int_equal(reply->status, RUEDA_ERR_MISMATCH);
    assert_int_equal(reply->revision, 2);
    assert_memory_equal(reply->value, "12345678", 8);
    assert_int_equal(recorded_stats_of(recorded).revision, 2);
}

static void only_the_last_changes_are_remembered(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    for (uint64_t i = 1; i <= RUEDA_STORE_REMEMBERED + 1; i++)
        ASK(recorded, 1, ADD, .number = 10 * i, KEY("n"), .count = 1);
    check_bare(ANSWER(recorded, 1, ADD, .number = 10, KEY("n"), .count = 1),
               RUEDA_ERR_INVALID);
    assert_int_equal(
        ANSWER(recorded, 1, ADD, .number = 20, KEY("n"), .count = 1)->count, 2);
    check_bare(ANSWER(recorded, 1, ADD, .number = 25, KEY("n"), .count = 1),
               RUEDA_ERR_INVALID);
    check_bare(ANSWER(recorded, 1, SET, .number = 20, KEY("n")),
               RUEDA_ERR_INVALID);
    assert_int_equal(recorded_stats_of(recorded).revision,
                     RUEDA_STORE_REMEMBERED + 1);
}

static void numbers_are_those_of_a_session(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    ASK(recorded, 1, ADD, .number = 1, KEY("n"), .count = 1);
    assert_int_equal(
        ANSWER(recorded, 2, ADD, .number = 1, KEY("n"), .count = 1)->count, 2);
    ASK(recorded, 1, BYE);
    recorded_attach(recorded, 1, 'a');
    assert_int_equal(
        ANSWER(recorded, 1, ADD, .number = 1, KEY("n"), .count = 1)->count, 3);
}

static void a_repeated_get_looks_again(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    ASK(recorded, 1, SET, .number = 10, KEY("a"), VALUE("one"));
    check_value(ANSWER(recorded, 1, GET, .number = 5, KEY("a")), 1, "one");
    ASK(recorded, 1, SET, .number = 11, KEY("a"), VALUE("two"));
    check_value(ANSWER(recorded, 1, GET, .number = 5, KEY("a")), 2, "two");
}

/* ---- Leases ------------------------------------------------------------- */

static uint64_t open_lease(struct recorded_store *recorded, uint64_t connection,
                           uint32_t time_ms)
{
    const struct rueda_store_reply *reply =
        ANSWER(recorded, connection, LEASE_OPEN, .time_ms = time_ms);

    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_not_equal(reply->id, 0);
    return reply->id;
}

static void keys_go_when_their_lease_is_not_renewed(void **state)
{
    struct recorded_store *recorded = *state;
    uint64_t lease;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    lease = open_lease(recorded, 1, 100);
    ASK(recorded, 1, SET, KEY("a"), .id = lease);
    ASK(recorded, 1, CAS, KEY("b"), .id = lease);
    ASK(recorded, 1, SET, KEY("c"));
    ASK(recorded, 2, WATCH, .revision = 3);
    recorded_tick(recorded, 99);
    recorded_no_more(recorded);
    assert_int_equal(ANSWER(recorded, 1, LEASE_RENEW, .id = lease)->id, lease);
    recorded_tick(recorded, 99);
    recorded_no_more(recorded);
    recorded_tick(recorded, 1);
    check_event(recorded_next_on(recorded, 2), 4, "a", NULL);
    check_event(recorded_next_on(recorded, 2), 5, "b", NULL);
    recorded_no_more(recorded);
    assert_int_equal(recorded_stats_of(recorded).keys, 1);
    check_bare(ANSWER(recorded, 1, LEASE_RENEW, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(recorded, 1, LEASE_CLOSE, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(recorded, 1, SET, KEY("a"), .id = lease),
               RUEDA_ERR_CLOSED);
    check_bare(ANSWER(recorded, 1, CAS, KEY("a"), .id = lease),
               RUEDA_ERR_CLOSED);
}

static void keys_go_when_their_lease_is_closed(void **state)
{
    struct recorded_store *recorded = *state;
    uint64_t first;
    uint64_t second;

    recorded_attach(recorded, 1, 'a');
    first = open_lease(recorded, 1, 100);
    second = open_lease(recorded, 1, 200);
    assert_int_not_equal(first, second);
    ASK(recorded, 1, SET, KEY("a"), .id = first);
    ASK(recorded, 1, SET, KEY("b"), .id = second);
    ASK(recorded, 1, WATCH, .revision = 2);
    ASK(recorded, 1, LEASE_CLOSE, .id = second);
    check_event(recorded_next_on(recorded, 1), 3, "b", NULL);
    assert_int_equal(recorded_only_on(recorded, 1)->id, second);
    assert_int_equal(rueda_store_next_ns(recorded->store),
                     recorded->now_ns + 100 * MS);
}

static void keys_go_when_their_session_ends(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    recorded_attach(recorded, 3, 'c');
    ASK(recorded, 3, WATCH);
    ASK(recorded, 1, SET, KEY("a"), .id = open_lease(recorded, 1, 1000000));
    ASK(recorded, 2, SET, KEY("b"), .id = open_lease(recorded, 2, 1000000));
    ASK(recorded, 1, BYE);
    check_event(recorded_next_on(recorded, 3), 3, "a", NULL);
    check_bare(recorded_only_on(recorded, 1), RUEDA_OK);
    recorded_lose(recorded, 2);
    recorded_tick(recorded, GRACE_MS - 1);
    recorded_no_more(recorded);
    recorded_tick(recorded, 1);
    check_event(recorded_only_on(recorded, 3), 4, "b", NULL);
    assert_int_equal(recorded_stats_of(recorded).leases, 0);
    assert_int_equal(recorded_stats_of(recorded).sessions, 1);
}

static void a_lease_goes_on_without_a_connection(void **state)
{
    struct recorded_store *recorded = *state;
    uint64_t lease;

    recorded_attach(recorded, 1, 'a');
    lease = open_lease(recorded, 1, 100);
    ASK(recorded, 1, SET, KEY("a"), .id = lease);
    recorded_lose(recorded, 1);
    recorded_tick(recorded, 50);
    recorded_attach(recorded, 2, 'a');
    ASK(recorded, 2, LEASE_RENEW, .id = lease);
    recorded_lose(recorded, 2);
    recorded_tick(recorded, 99);
    assert_int_equal(recorded_stats_of(recorded).keys, 1);
    recorded_tick(recorded, 1);
    assert_int_equal(recorded_stats_of(recorded).keys, 0);
}

static void a_key_is_under_the_lease_that_it_was_set_with_last(void **state)
{
    struct recorded_store *recorded = *state;
    uint64_t lease;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    lease = open_lease(recorded, 1, 100);
    ASK(recorded, 1, SET, KEY("freed"), .id = lease);
    ASK(recorded, 2, SET, KEY("freed"));
    ASK(recorded, 1, SET, KEY("moved"), .id = lease);
    ASK(recorded, 2, SET, KEY("moved"), .id = open_lease(recorded, 2, 200));
    ASK(recorded, 1, SET, KEY("counted"), .value = "\1\0\0\0\0\0\0",
        .id = lease, .value_bytes = 8);
    ASK(recorded, 2, ADD, KEY("counted"), .count = 1);
    recorded_tick(recorded, 100);
    assert_int_equal(ANSWER(recorded, 1, GET, KEY("freed"))->revision, 2);
    assert_int_equal(ANSWER(recorded, 1, GET, KEY("moved"))->revision, 4);
    assert_int_equal(ANSWER(recorded, 1, GET, KEY("counted"))->revision, 0);
    recorded_tick(recorded, 100);
    assert_int_equal(ANSWER(recorded, 1, GET, KEY("moved"))->revision, 0);
    assert_int_equal(recorded_stats_of(recorded).keys, 1);
}

static void a_lease_is_of_its_session(void **state)
{
    struct recorded_store *recorded = *state;
    uint64_t lease;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    lease = open_lease(recorded, 1, 100);
    check_bare(ANSWER(recorded, 2, LEASE_RENEW, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(recorded, 2, LEASE_CLOSE, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(recorded, 2, LEASE_CLOSE), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(recorded, 2, SET, KEY("a"), .id = lease),
               RUEDA_ERR_CLOSED);
    assert_int_equal(recorded_stats_of(recorded).leases, 1);
}

static void leases_are_within_limits(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    check_bare(ANSWER(recorded, 1, LEASE_OPEN), RUEDA_ERR_INVALID);
    for (int i = 0; i < RUEDA_STORE_MOST_LEASES; i++)
        open_lease(recorded, 1, UINT32_MAX);
    check_bare(ANSWER(recorded, 1, LEASE_OPEN, .time_ms = 1), RUEDA_ERR_LIMIT);
    ASK(recorded, 1, LEASE_CLOSE, .id = 1);
    open_lease(recorded, 1, 1);
}

static void a_closed_store_sends_nothing(void **state)
{
    struct recorded_store *recorded = *state;

    recorded_attach(recorded, 1, 'a');
    recorded_attach(recorded, 2, 'b');
    ASK(recorded, 1, SET, KEY("a"), .id = open_lease(recorded, 1, 100));
    ASK(recorded, 2, SET, KEY("b"));
    ASK(recorded, 2, WATCH, .revision = 2);
    ASK(recorded, 2, WAIT, KEY("c"));
    recorded_lose(recorded, 1);
    rueda_store_close(recorded->store);
    recorded->store = NULL;
    recorded_no_more(recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED(a_session_is_new_once),
        RECORDED(without_a_session_nothing_is_done),
        RECORDED(a_connection_has_one_session),
        RECORDED(a_new_connection_takes_a_session_over),
        RECORDED(waits_and_watches_end_with_the_connection),
        RECORDED(a_lost_session_has_a_grace),
        RECORDED(nothing_expires_before_the_tick),
        RECORDED(sessions_are_within_a_limit),
        RECORDED(a_repeated_change_is_done_once),
        RECORDED(a_repeated_failure_fails_again),
        RECORDED(only_the_last_changes_are_remembered),
        RECORDED(numbers_are_those_of_a_session),
        RECORDED(a_repeated_get_looks_again),
        RECORDED(keys_go_when_their_lease_is_not_renewed),
        RECORDED(keys_go_when_their_lease_is_closed),
        RECORDED(keys_go_when_their_session_ends),
        RECORDED(a_lease_goes_on_without_a_connection),
        RECORDED(a_key_is_under_the_lease_that_it_was_set_with_last),
        RECORDED(a_lease_is_of_its_session),
        RECORDED(leases_are_within_limits),
        RECORDED(a_closed_store_sends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
