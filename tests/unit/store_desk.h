/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store share: a store whose replies are written down,
 * and a clock that is turned by hand. */
#ifndef RUEDA_TESTS_UNIT_STORE_DESK_H
#define RUEDA_TESTS_UNIT_STORE_DESK_H

#include "job/store/store.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

#define GRACE_MS    ((int64_t)5000)
#define PATIENCE_MS ((int64_t)60000)
#define HEARD_MOST  2048
#define HEARD_BYTES 64

/* A reply, with copies of what was borrowed; long values by their beginning. */
struct heard {
    uint64_t connection;
    struct rueda_store_reply reply;
    unsigned char key[RUEDA_STORE_KEY_BYTES];
    unsigned char value[HEARD_BYTES];
};

struct desk {
    struct rueda_store *store;
    int64_t now_ns;
    uint64_t number; /* the last one of those that tests leave to us */
    size_t count;    /* more than HEARD_MOST are counted, not kept */
    size_t read;
    struct heard heard[HEARD_MOST];
};

static inline void desk_hear(void *arg, uint64_t connection,
                             const struct rueda_store_reply *reply)
{
    struct desk *desk = arg;
    size_t bytes = reply->value_bytes;
    struct heard *heard;

    if (desk->count++ >= HEARD_MOST)
        return;
    heard = &desk->heard[desk->count - 1];
    heard->connection = connection;
    heard->reply = *reply;
    if (reply->key_bytes > 0)
        memcpy(heard->key, reply->key, reply->key_bytes);
    if (bytes > 0)
        memcpy(heard->value, reply->value,
               bytes < HEARD_BYTES ? bytes : HEARD_BYTES);
    heard->reply.key = heard->key;
    heard->reply.value = heard->value;
}

static inline int desk_open_with(void **state, uint64_t most_bytes)
{
    struct desk *desk = calloc(1, sizeof(*desk));
    struct rueda_store_options options = {.seed = 7,
                                          .most_bytes = most_bytes,
                                          .grace_ms = GRACE_MS,
                                          .patience_ms = PATIENCE_MS,
                                          .emit = desk_hear,
                                          .arg = desk};

    if (desk == NULL)
        return -1;
    desk->now_ns = 1000 * MS;
    *state = desk;
    return rueda_store_open(&options, &desk->store) == RUEDA_OK ? 0 : -1;
}

static inline int desk_open(void **state)
{
    return desk_open_with(state, 0);
}

static inline int desk_close(void **state)
{
    struct desk *desk = *state;

    rueda_store_close(desk->store);
    free(desk);
    return 0;
}

/* Hand a request in. What was heard before is forgotten. */
static inline void desk_ask(struct desk *desk, uint64_t connection,
                            struct rueda_store_request request)
{
    desk->count = 0;
    desk->read = 0;
    if (request.number == 0)
        request.number = ++desk->number;
    rueda_store_ask(desk->store, connection, &request, desk->now_ns);
}

static inline const struct rueda_store_reply *next_on(struct desk *desk,
                                                      uint64_t connection)
{
    const struct heard *heard;

    assert_true(desk->read < desk->count);
    assert_true(desk->read < HEARD_MOST);
    heard = &desk->heard[desk->read++];
    assert_int_equal(heard->connection, connection);
    return &heard->reply;
}

static inline void no_more(const struct desk *desk)
{
    assert_int_equal(desk->read, desk->count);
}

/* The one reply that a request has. */
static inline const struct rueda_store_reply *only_on(struct desk *desk,
                                                      uint64_t connection)
{
    const struct rueda_store_reply *reply = next_on(desk, connection);

    no_more(desk);
    return reply;
}

/* ASK(desk, 1, SET, KEY("a"), VALUE("b")): hand it in. */
#define ASK(desk, connection, what, ...)                                       \
    desk_ask(                                                                  \
        desk, connection,                                                      \
        (struct rueda_store_request){.kind = RUEDA_STORE_##what, __VA_ARGS__})

/* The same, for requests with one reply, which is the value. */
#define ANSWER(desk, connection, what, ...)                                    \
    (ASK(desk, connection, what, __VA_ARGS__), only_on(desk, connection))

#define KEY(text)   .key = (text), .key_bytes = strlen(text)
#define VALUE(text) .value = (text), .value_bytes = strlen(text)

/* Sessions of tests are named by one character. */
#define SESSION(c) .key = session_id(c), .key_bytes = RUEDA_STORE_SESSION_BYTES

static inline const void *session_id(char c)
{
    static unsigned char id[RUEDA_STORE_SESSION_BYTES];

    memset(id, c, sizeof(id));
    return id;
}

static inline void attach(struct desk *desk, uint64_t connection, char session)
{
    const struct rueda_store_reply *reply =
        ANSWER(desk, connection, ATTACH, SESSION(session));

    assert_int_equal(reply->kind, RUEDA_STORE_ATTACH);
    assert_int_equal(reply->status, RUEDA_OK);
}

static inline void tick(struct desk *desk, int64_t later_ms)
{
    desk->count = 0;
    desk->read = 0;
    desk->now_ns += later_ms * MS;
    rueda_store_tick(desk->store, desk->now_ns);
}

static inline void lose(struct desk *desk, uint64_t connection)
{
    desk->count = 0;
    desk->read = 0;
    rueda_store_detach(desk->store, connection, false, desk->now_ns);
    no_more(desk);
}

/* It was cut. */
static inline void cut(struct desk *desk, uint64_t connection)
{
    desk->count = 0;
    desk->read = 0;
    rueda_store_detach(desk->store, connection, true, desk->now_ns);
    no_more(desk);
}

static inline struct rueda_store_stats stats_of(const struct desk *desk)
{
    struct rueda_store_stats stats;

    rueda_store_stats(desk->store, &stats);
    return stats;
}

/* Check that a reply has this status and nothing else to say. */
static inline void check_bare(const struct rueda_store_reply *reply,
                              rueda_status status)
{
    assert_int_equal(reply->status, status);
    assert_int_equal(reply->revision, 0);
    assert_int_equal(reply->id, 0);
    assert_int_equal(reply->count, 0);
    assert_int_equal(reply->key_bytes, 0);
    assert_int_equal(reply->value_bytes, 0);
}

static inline void check_value(const struct rueda_store_reply *reply,
                               uint64_t revision, const char *value)
{
    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_equal(reply->revision, revision);
    assert_int_equal(reply->value_bytes, strlen(value));
    assert_memory_equal(reply->value, value, strlen(value));
}

static inline void check_event(const struct rueda_store_reply *reply,
                               uint64_t revision, const char *key,
                               const char *value)
{
    assert_int_equal(reply->kind, value != NULL ? RUEDA_STORE_EVENT_SET
                                                : RUEDA_STORE_EVENT_DELETE);
    assert_int_equal(reply->key_bytes, strlen(key));
    assert_memory_equal(reply->key, key, strlen(key));
    check_value(reply, revision, value != NULL ? value : "");
}

/* With sessions on connections 1 and 2. */
static inline int desk_attached(void **state)
{
    if (desk_open(state) != 0)
        return -1;
    attach(*state, 1, 'a');
    attach(*state, 2, 'b');
    return 0;
}

#define DESK(test) cmocka_unit_test_setup_teardown(test, desk_open, desk_close)

#define ATTACHED(test)                                                         \
    cmocka_unit_test_setup_teardown(test, desk_attached, desk_close)

#endif /* RUEDA_TESTS_UNIT_STORE_DESK_H */
