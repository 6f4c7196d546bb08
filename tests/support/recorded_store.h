/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store share: a store whose replies are written down,
 * and a clock that is turned by hand. */
#ifndef RUEDA_TESTS_SUPPORT_RECORDED_STORE_H
#define RUEDA_TESTS_SUPPORT_RECORDED_STORE_H

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

struct recorded_store {
    struct rueda_store *store;
    int64_t now_ns;
    uint64_t number; /* the last one of those that tests leave to us */
    size_t count;    /* more than HEARD_MOST are counted, not kept */
    size_t read;
    struct heard heard[HEARD_MOST];
};

/* Write a reply down: for struct rueda_store_options; arg is the store. */
void recorded_store_record(void *arg, uint64_t connection,
                           const struct rueda_store_reply *reply);

int recorded_store_open_with(void **state, uint64_t most_bytes);

int recorded_store_open(void **state);

int recorded_store_close(void **state);

/* Hand a request in. What was heard before is forgotten. */
void recorded_store_ask(struct recorded_store *recorded, uint64_t connection,
                        struct rueda_store_request request);

const struct rueda_store_reply *
recorded_next_on(struct recorded_store *recorded, uint64_t connection);

void recorded_no_more(const struct recorded_store *recorded);

/* The one reply that a request has. */
const struct rueda_store_reply *
recorded_only_on(struct recorded_store *recorded, uint64_t connection);

/* ASK(recorded, 1, SET, KEY("a"), VALUE("b")): hand it in. */
#define ASK(recorded, connection, what, ...)                                   \
    recorded_store_ask(                                                        \
        recorded, connection,                                                  \
        (struct rueda_store_request){.kind = RUEDA_STORE_##what, __VA_ARGS__})

/* The same, for requests with one reply, which is the value. */
#define ANSWER(recorded, connection, what, ...)                                \
    (ASK(recorded, connection, what, __VA_ARGS__),                             \
     recorded_only_on(recorded, connection))

#define KEY(text)   .key = (text), .key_bytes = strlen(text)
#define VALUE(text) .value = (text), .value_bytes = strlen(text)

/* Sessions of tests are named by one character. */
#define SESSION(c) .key = session_id(c), .key_bytes = RUEDA_STORE_SESSION_BYTES

const void *session_id(char c);

void recorded_attach(struct recorded_store *recorded, uint64_t connection,
                     char session);

void recorded_tick(struct recorded_store *recorded, int64_t later_ms);

void recorded_lose(struct recorded_store *recorded, uint64_t connection);

/* It was cut. */
void recorded_cut(struct recorded_store *recorded, uint64_t connection);

struct rueda_store_stats
recorded_stats_of(const struct recorded_store *recorded);

/* Check that a reply has this status and nothing else to say. */
void check_bare(const struct rueda_store_reply *reply, rueda_status status);

void check_value(const struct rueda_store_reply *reply, uint64_t revision,
                 const char *value);

void check_event(const struct rueda_store_reply *reply, uint64_t revision,
                 const char *key, const char *value);

/* With sessions on connections 1 and 2. */
int recorded_store_open_attached(void **state);

#define RECORDED(test)                                                         \
    cmocka_unit_test_setup_teardown(test, recorded_store_open,                 \
                                    recorded_store_close)

#define ATTACHED(test)                                                         \
    cmocka_unit_test_setup_teardown(test, recorded_store_open_attached,        \
                                    recorded_store_close)

#endif /* RUEDA_TESTS_SUPPORT_RECORDED_STORE_H */
