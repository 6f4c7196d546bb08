/* SPDX-License-Identifier: Apache-2.0 */
#include "support/recorded_store.h"

void recorded_store_record(void *arg, uint64_t connection,
                           const struct rueda_store_reply *reply)
{
    struct recorded_store *recorded = arg;
    size_t bytes = reply->value_bytes;
    struct heard *heard;

    if (recorded->count++ >= HEARD_MOST)
        return;
    heard = &recorded->heard[recorded->count - 1];
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

int recorded_store_open_with(void **state, uint64_t most_bytes)
{
    struct recorded_store *recorded = calloc(1, sizeof(*recorded));
    struct rueda_store_options options = {.seed = 7,
                                          .most_bytes = most_bytes,
                                          .grace_ms = GRACE_MS,
                                          .patience_ms = PATIENCE_MS,
                                          .emit = recorded_store_record,
                                          .arg = recorded};

    if (recorded == NULL)
        return -1;
    recorded->now_ns = 1000 * MS;
    *state = recorded;
    return rueda_store_open(&options, &recorded->store) == RUEDA_OK ? 0 : -1;
}

int recorded_store_open(void **state)
{
    return recorded_store_open_with(state, 0);
}

int recorded_store_close(void **state)
{
    struct recorded_store *recorded = *state;

    rueda_store_close(recorded->store);
    free(recorded);
    return 0;
}

void recorded_store_ask(struct recorded_store *recorded, uint64_t connection,
                        struct rueda_store_request request)
{
    recorded->count = 0;
    recorded->read = 0;
    if (request.number == 0)
        request.number = ++recorded->number;
    rueda_store_ask(recorded->store, connection, &request, recorded->now_ns);
}

const struct rueda_store_reply *
recorded_next_on(struct recorded_store *recorded, uint64_t connection)
{
    const struct heard *heard;

    assert_true(recorded->read < recorded->count);
    assert_true(recorded->read < HEARD_MOST);
    heard = &recorded->heard[recorded->read++];
    assert_int_equal(heard->connection, connection);
    return &heard->reply;
}

void recorded_no_more(const struct recorded_store *recorded)
{
    assert_int_equal(recorded->read, recorded->count);
}

const struct rueda_store_reply *
recorded_only_on(struct recorded_store *recorded, uint64_t connection)
{
    const struct rueda_store_reply *reply =
        recorded_next_on(recorded, connection);

    recorded_no_more(recorded);
    return reply;
}

const void *session_id(char c)
{
    static unsigned char id[RUEDA_STORE_SESSION_BYTES];

    memset(id, c, sizeof(id));
    return id;
}

void recorded_attach(struct recorded_store *recorded, uint64_t connection,
                     char session)
{
    const struct rueda_store_reply *reply =
        ANSWER(recorded, connection, ATTACH, SESSION(session));

    assert_int_equal(reply->kind, RUEDA_STORE_ATTACH);
    assert_int_equal(reply->status, RUEDA_OK);
}

void recorded_tick(struct recorded_store *recorded, int64_t later_ms)
{
    recorded->count = 0;
    recorded->read = 0;
    recorded->now_ns += later_ms * MS;
    rueda_store_tick(recorded->store, recorded->now_ns);
}

void recorded_lose(struct recorded_store *recorded, uint64_t connection)
{
    recorded->count = 0;
    recorded->read = 0;
    rueda_store_detach(recorded->store, connection, false, recorded->now_ns);
    recorded_no_more(recorded);
}

void recorded_cut(struct recorded_store *recorded, uint64_t connection)
{
    recorded->count = 0;
    recorded->read = 0;
    rueda_store_detach(recorded->store, connection, true, recorded->now_ns);
    recorded_no_more(recorded);
}

struct rueda_store_stats
recorded_stats_of(const struct recorded_store *recorded)
{
    struct rueda_store_stats stats;

    rueda_store_stats(recorded->store, &stats);
    return stats;
}

void check_bare(const struct rueda_store_reply *reply, rueda_status status)
{
    assert_int_equal(reply->status, status);
    assert_int_equal(reply->revision, 0);
    assert_int_equal(reply->id, 0);
    assert_int_equal(reply->count, 0);
    assert_int_equal(reply->key_bytes, 0);
    assert_int_equal(reply->value_bytes, 0);
}

void check_value(const struct rueda_store_reply *reply, uint64_t revision,
                 const char *value)
{
    assert_int_equal(reply->status, RUEDA_OK);
    assert_int_equal(reply->revision, revision);
    assert_int_equal(reply->value_bytes, strlen(value));
    assert_memory_equal(reply->value, value, strlen(value));
}

void check_event(const struct rueda_store_reply *reply, uint64_t revision,
                 const char *key, const char *value)
{
    assert_int_equal(reply->kind, value != NULL ? RUEDA_STORE_EVENT_SET
                                                : RUEDA_STORE_EVENT_DELETE);
    assert_int_equal(reply->key_bytes, strlen(key));
    assert_memory_equal(reply->key, key, strlen(key));
    check_value(reply, revision, value != NULL ? value : "");
}

int recorded_store_open_attached(void **state)
{
    if (recorded_store_open(state) != 0)
        return -1;
    recorded_attach(*state, 1, 'a');
    recorded_attach(*state, 2, 'b');
    return 0;
}
