/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the store, what they repeat, and their leases. */
#include "unit/store_desk.h"

/* ---- Begin and end ------------------------------------------------------ */

static void a_session_is_new_once(void **state)
{
    struct desk *desk = *state;
    const struct rueda_store_reply *reply;

    check_bare(ANSWER(desk, 1, ATTACH, SESSION('a')), RUEDA_OK);
    ASK(desk, 1, SET, KEY("a"));
    lose(desk, 1);
    reply = ANSWER(desk, 2, ATTACH, SESSION('a'));
    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_equal(reply->count, 1);
    assert_int_equal(reply->revision, 1);
    assert_int_equal(stats_of(desk).sessions, 1);
}

static void without_a_session_nothing_is_done(void **state)
{
    struct desk *desk = *state;

    check_bare(ANSWER(desk, 1, SET, KEY("a")), RUEDA_ERR_CLOSED);
    attach(desk, 1, 'a');
    check_bare(ANSWER(desk, 1, BYE), RUEDA_OK);
    check_bare(ANSWER(desk, 1, SET, KEY("a")), RUEDA_ERR_CLOSED);
    attach(desk, 1, 'a');
    lose(desk, 1);
    lose(desk, 1);
    lose(desk, 77);
    check_bare(ANSWER(desk, 1, SET, KEY("a")), RUEDA_ERR_CLOSED);
    assert_int_equal(stats_of(desk).keys, 0);
}

static void a_connection_has_one_session(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    check_bare(ANSWER(desk, 1, ATTACH, SESSION('b')), RUEDA_ERR_INVALID);
    attach(desk, 2, 'b');
    check_bare(ANSWER(desk, 1, ATTACH, SESSION('b')), RUEDA_ERR_INVALID);
    assert_int_equal(ANSWER(desk, 1, ATTACH, SESSION('a'))->count, 1);
    assert_int_equal(stats_of(desk).sessions, 2);
    check_bare(ANSWER(desk, 2, GET, KEY("a")), RUEDA_OK);
}

/* The store hears of a new connection before it hears that the old one is
 * lost, which it may never hear. */
static void a_new_connection_takes_a_session_over(void **state)
{
    struct desk *desk = *state;
    const struct rueda_store_reply *reply;

    attach(desk, 1, 'a');
    ASK(desk, 1, WAIT, KEY("a"));
    ASK(desk, 1, WATCH);
    ASK(desk, 2, ATTACH, SESSION('a'));
    reply = next_on(desk, 1);
    assert_int_equal(reply->kind, RUEDA_STORE_BYE);
    assert_int_equal(reply->number, 0);
    check_bare(reply, RUEDA_ERR_CLOSED);
    assert_int_equal(only_on(desk, 2)->count, 1);
    check_bare(ANSWER(desk, 1, GET, KEY("a")), RUEDA_ERR_CLOSED);
    lose(desk, 1);
    assert_int_equal(rueda_store_next_ns(desk->store), INT64_MAX);
    ASK(desk, 2, SET, KEY("a"));
    only_on(desk, 2);
}

static void waits_and_watches_end_with_the_connection(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    ASK(desk, 1, WAIT, KEY("a"), .time_ms = 1);
    ASK(desk, 1, WAIT, KEY("b"));
    ASK(desk, 1, WATCH);
    lose(desk, 1);
    assert_int_equal(stats_of(desk).waits, 0);
    assert_int_equal(stats_of(desk).watches, 0);
    ASK(desk, 2, SET, KEY("a"));
    only_on(desk, 2);
    tick(desk, 1);
    no_more(desk);
    attach(desk, 3, 'a');
    ASK(desk, 3, WAIT, KEY("b"), .number = 2);
    ASK(desk, 2, SET, KEY("b"));
    assert_int_equal(next_on(desk, 3)->number, 2);
}

static void a_lost_session_has_a_grace(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    lose(desk, 1);
    assert_int_equal(rueda_store_next_ns(desk->store),
                     desk->now_ns + GRACE_MS * MS);
    tick(desk, GRACE_MS - 1);
    assert_int_equal(ANSWER(desk, 2, ATTACH, SESSION('a'))->count, 1);
    tick(desk, 10 * GRACE_MS);
    assert_int_equal(stats_of(desk).sessions, 1);
    lose(desk, 2);
    tick(desk, GRACE_MS);
    assert_int_equal(stats_of(desk).sessions, 0);
    assert_int_equal(rueda_store_next_ns(desk->store), INT64_MAX);
    assert_int_equal(ANSWER(desk, 3, ATTACH, SESSION('a'))->count, 0);
}

/* A store that was held up reads first and ticks then. */
static void nothing_expires_before_the_tick(void **state)
{
    struct desk *desk = *state;
    uint64_t lease;

    attach(desk, 1, 'a');
    lease = ANSWER(desk, 1, LEASE_OPEN, .time_ms = 100)->id;
    lose(desk, 1);
    desk->now_ns += 10 * GRACE_MS * MS;
    assert_int_equal(ANSWER(desk, 2, ATTACH, SESSION('a'))->count, 1);
    assert_int_equal(ANSWER(desk, 2, LEASE_RENEW, .id = lease)->status,
                     RUEDA_OK);
    tick(desk, 0);
    assert_int_equal(stats_of(desk).leases, 1);
}

static void sessions_are_within_a_limit(void **state)
{
    struct desk *desk = *state;
    unsigned char id[RUEDA_STORE_SESSION_BYTES] = {0};

    for (uint32_t i = 0; i <= RUEDA_STORE_MOST_SESSIONS; i++) {
        memcpy(id, &i, sizeof(i));
        ASK(desk, i, ATTACH, .key = id, .key_bytes = sizeof(id));
        assert_int_equal(only_on(desk, i)->status, i < RUEDA_STORE_MOST_SESSIONS
                                                       ? RUEDA_OK
                                                       : RUEDA_ERR_LIMIT);
    }
    ASK(desk, 4711, BYE);
    attach(desk, RUEDA_STORE_MOST_SESSIONS, 'x');
}

/* ---- Once only ---------------------------------------------------------- */

static void a_repeated_change_is_done_once(void **state)
{
    struct desk *desk = *state;
    const struct rueda_store_reply *reply;

    attach(desk, 1, 'a');
    ASK(desk, 1, ADD, .number = 1, KEY("n"), .count = 5);
    ASK(desk, 1, SET, .number = 2, KEY("a"), VALUE("one"));
    ASK(desk, 1, CAS, .number = 3, KEY("a"), VALUE("two"), .revision = 2);
    ASK(desk, 1, DELETE, .number = 4, KEY("n"));
    ASK(desk, 1, LEASE_OPEN, .number = 5, .time_ms = 1000);
    ASK(desk, 1, LEASE_CLOSE, .number = 6, .id = 1);
    lose(desk, 1);
    attach(desk, 2, 'a');
    reply = ANSWER(desk, 2, ADD, .number = 1, KEY("n"), .count = 5);
    check_value(reply, 1, "");
    assert_int_equal(reply->count, 5);
    assert_int_equal(reply->number, 1);
    check_value(ANSWER(desk, 2, SET, .number = 2, KEY("a"), VALUE("one")), 2,
                "");
    reply = ANSWER(desk, 2, CAS, .number = 3, KEY("a"), VALUE("two"),
                   .revision = 2);
    check_value(reply, 3, "");
    check_value(ANSWER(desk, 2, DELETE, .number = 4, KEY("n")), 4, "");
    reply = ANSWER(desk, 2, LEASE_OPEN, .number = 5, .time_ms = 1000);
    assert_int_equal(reply->id, 1);
    reply = ANSWER(desk, 2, LEASE_CLOSE, .number = 6, .id = 1);
    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_equal(stats_of(desk).revision, 4);
    assert_int_equal(stats_of(desk).leases, 0);
    check_value(ANSWER(desk, 2, GET, KEY("a")), 3, "two");
}

static void a_repeated_failure_fails_again(void **state)
{
    struct desk *desk = *state;
    const struct rueda_store_reply *reply;

    attach(desk, 1, 'a');
    ASK(desk, 1, SET, .number = 1, KEY("a"), VALUE("one"));
    ASK(desk, 1, ADD, .number = 2, KEY("a"), .count = 1);
    ASK(desk, 1, CAS, .number = 3, KEY("a"), VALUE("two"), .revision = 2);
    ASK(desk, 1, SET, .number = 4, KEY("a"), VALUE("12345678"));
    check_bare(ANSWER(desk, 1, ADD, .number = 2, KEY("a"), .count = 1),
               RUEDA_ERR_INVALID);
    /* By now the revision is the one that it asked for. */
    reply = ANSWER(desk, 1, CAS, .number = 3, KEY("a"), VALUE("two"),
                   .revision = 2);
    assert_int_equal(reply->status, RUEDA_ERR_MISMATCH);
    assert_int_equal(reply->revision, 2);
    assert_memory_equal(reply->value, "12345678", 8);
    assert_int_equal(stats_of(desk).revision, 2);
}

static void only_the_last_changes_are_remembered(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    for (uint64_t i = 1; i <= RUEDA_STORE_REMEMBERED + 1; i++)
        ASK(desk, 1, ADD, .number = 10 * i, KEY("n"), .count = 1);
    check_bare(ANSWER(desk, 1, ADD, .number = 10, KEY("n"), .count = 1),
               RUEDA_ERR_INVALID);
    assert_int_equal(
        ANSWER(desk, 1, ADD, .number = 20, KEY("n"), .count = 1)->count, 2);
    check_bare(ANSWER(desk, 1, ADD, .number = 25, KEY("n"), .count = 1),
               RUEDA_ERR_INVALID);
    check_bare(ANSWER(desk, 1, SET, .number = 20, KEY("n")), RUEDA_ERR_INVALID);
    assert_int_equal(stats_of(desk).revision, RUEDA_STORE_REMEMBERED + 1);
}

static void numbers_are_those_of_a_session(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    ASK(desk, 1, ADD, .number = 1, KEY("n"), .count = 1);
    assert_int_equal(
        ANSWER(desk, 2, ADD, .number = 1, KEY("n"), .count = 1)->count, 2);
    ASK(desk, 1, BYE);
    attach(desk, 1, 'a');
    assert_int_equal(
        ANSWER(desk, 1, ADD, .number = 1, KEY("n"), .count = 1)->count, 3);
}

static void a_repeated_get_looks_again(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    ASK(desk, 1, SET, .number = 10, KEY("a"), VALUE("one"));
    check_value(ANSWER(desk, 1, GET, .number = 5, KEY("a")), 1, "one");
    ASK(desk, 1, SET, .number = 11, KEY("a"), VALUE("two"));
    check_value(ANSWER(desk, 1, GET, .number = 5, KEY("a")), 2, "two");
}

/* ---- Leases ------------------------------------------------------------- */

static uint64_t open_lease(struct desk *desk, uint64_t connection,
                           uint32_t time_ms)
{
    const struct rueda_store_reply *reply =
        ANSWER(desk, connection, LEASE_OPEN, .time_ms = time_ms);

    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_not_equal(reply->id, 0);
    return reply->id;
}

static void keys_go_when_their_lease_is_not_renewed(void **state)
{
    struct desk *desk = *state;
    uint64_t lease;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    lease = open_lease(desk, 1, 100);
    ASK(desk, 1, SET, KEY("a"), .id = lease);
    ASK(desk, 1, CAS, KEY("b"), .id = lease);
    ASK(desk, 1, SET, KEY("c"));
    ASK(desk, 2, WATCH, .revision = 3);
    tick(desk, 99);
    no_more(desk);
    assert_int_equal(ANSWER(desk, 1, LEASE_RENEW, .id = lease)->id, lease);
    tick(desk, 99);
    no_more(desk);
    tick(desk, 1);
    check_event(next_on(desk, 2), 4, "a", NULL);
    check_event(next_on(desk, 2), 5, "b", NULL);
    no_more(desk);
    assert_int_equal(stats_of(desk).keys, 1);
    check_bare(ANSWER(desk, 1, LEASE_RENEW, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(desk, 1, LEASE_CLOSE, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(desk, 1, SET, KEY("a"), .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(desk, 1, CAS, KEY("a"), .id = lease), RUEDA_ERR_CLOSED);
}

static void keys_go_when_their_lease_is_closed(void **state)
{
    struct desk *desk = *state;
    uint64_t first;
    uint64_t second;

    attach(desk, 1, 'a');
    first = open_lease(desk, 1, 100);
    second = open_lease(desk, 1, 200);
    assert_int_not_equal(first, second);
    ASK(desk, 1, SET, KEY("a"), .id = first);
    ASK(desk, 1, SET, KEY("b"), .id = second);
    ASK(desk, 1, WATCH, .revision = 2);
    ASK(desk, 1, LEASE_CLOSE, .id = second);
    check_event(next_on(desk, 1), 3, "b", NULL);
    assert_int_equal(only_on(desk, 1)->id, second);
    assert_int_equal(rueda_store_next_ns(desk->store), desk->now_ns + 100 * MS);
}

static void keys_go_when_their_session_ends(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    attach(desk, 3, 'c');
    ASK(desk, 3, WATCH);
    ASK(desk, 1, SET, KEY("a"), .id = open_lease(desk, 1, 1000000));
    ASK(desk, 2, SET, KEY("b"), .id = open_lease(desk, 2, 1000000));
    ASK(desk, 1, BYE);
    check_event(next_on(desk, 3), 3, "a", NULL);
    check_bare(only_on(desk, 1), RUEDA_OK);
    lose(desk, 2);
    tick(desk, GRACE_MS - 1);
    no_more(desk);
    tick(desk, 1);
    check_event(only_on(desk, 3), 4, "b", NULL);
    assert_int_equal(stats_of(desk).leases, 0);
    assert_int_equal(stats_of(desk).sessions, 1);
}

static void a_lease_goes_on_without_a_connection(void **state)
{
    struct desk *desk = *state;
    uint64_t lease;

    attach(desk, 1, 'a');
    lease = open_lease(desk, 1, 100);
    ASK(desk, 1, SET, KEY("a"), .id = lease);
    lose(desk, 1);
    tick(desk, 50);
    attach(desk, 2, 'a');
    ASK(desk, 2, LEASE_RENEW, .id = lease);
    lose(desk, 2);
    tick(desk, 99);
    assert_int_equal(stats_of(desk).keys, 1);
    tick(desk, 1);
    assert_int_equal(stats_of(desk).keys, 0);
}

static void a_key_is_under_the_lease_that_it_was_set_with_last(void **state)
{
    struct desk *desk = *state;
    uint64_t lease;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    lease = open_lease(desk, 1, 100);
    ASK(desk, 1, SET, KEY("freed"), .id = lease);
    ASK(desk, 2, SET, KEY("freed"));
    ASK(desk, 1, SET, KEY("moved"), .id = lease);
    ASK(desk, 2, SET, KEY("moved"), .id = open_lease(desk, 2, 200));
    ASK(desk, 1, SET, KEY("counted"), .value = "\1\0\0\0\0\0\0", .id = lease,
        .value_bytes = 8);
    ASK(desk, 2, ADD, KEY("counted"), .count = 1);
    tick(desk, 100);
    assert_int_equal(ANSWER(desk, 1, GET, KEY("freed"))->revision, 2);
    assert_int_equal(ANSWER(desk, 1, GET, KEY("moved"))->revision, 4);
    assert_int_equal(ANSWER(desk, 1, GET, KEY("counted"))->revision, 0);
    tick(desk, 100);
    assert_int_equal(ANSWER(desk, 1, GET, KEY("moved"))->revision, 0);
    assert_int_equal(stats_of(desk).keys, 1);
}

static void a_lease_is_of_its_session(void **state)
{
    struct desk *desk = *state;
    uint64_t lease;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    lease = open_lease(desk, 1, 100);
    check_bare(ANSWER(desk, 2, LEASE_RENEW, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(desk, 2, LEASE_CLOSE, .id = lease), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(desk, 2, LEASE_CLOSE), RUEDA_ERR_CLOSED);
    check_bare(ANSWER(desk, 2, SET, KEY("a"), .id = lease), RUEDA_ERR_CLOSED);
    assert_int_equal(stats_of(desk).leases, 1);
}

static void leases_are_within_limits(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    check_bare(ANSWER(desk, 1, LEASE_OPEN), RUEDA_ERR_INVALID);
    for (int i = 0; i < RUEDA_STORE_MOST_LEASES; i++)
        open_lease(desk, 1, UINT32_MAX);
    check_bare(ANSWER(desk, 1, LEASE_OPEN, .time_ms = 1), RUEDA_ERR_LIMIT);
    ASK(desk, 1, LEASE_CLOSE, .id = 1);
    open_lease(desk, 1, 1);
}

static void a_closed_store_sends_nothing(void **state)
{
    struct desk *desk = *state;

    attach(desk, 1, 'a');
    attach(desk, 2, 'b');
    ASK(desk, 1, SET, KEY("a"), .id = open_lease(desk, 1, 100));
    ASK(desk, 2, SET, KEY("b"));
    ASK(desk, 2, WATCH, .revision = 2);
    ASK(desk, 2, WAIT, KEY("c"));
    lose(desk, 1);
    rueda_store_close(desk->store);
    desk->store = NULL;
    no_more(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DESK(a_session_is_new_once),
        DESK(without_a_session_nothing_is_done),
        DESK(a_connection_has_one_session),
        DESK(a_new_connection_takes_a_session_over),
        DESK(waits_and_watches_end_with_the_connection),
        DESK(a_lost_session_has_a_grace),
        DESK(nothing_expires_before_the_tick),
        DESK(sessions_are_within_a_limit),
        DESK(a_repeated_change_is_done_once),
        DESK(a_repeated_failure_fails_again),
        DESK(only_the_last_changes_are_remembered),
        DESK(numbers_are_those_of_a_session),
        DESK(a_repeated_get_looks_again),
        DESK(keys_go_when_their_lease_is_not_renewed),
        DESK(keys_go_when_their_lease_is_closed),
        DESK(keys_go_when_their_session_ends),
        DESK(a_lease_goes_on_without_a_connection),
        DESK(a_key_is_under_the_lease_that_it_was_set_with_last),
        DESK(a_lease_is_of_its_session),
        DESK(leases_are_within_limits),
        DESK(a_closed_store_sends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
