/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store_model.h"

const char *const model_names[KEYS] = {"a",  "aa", "aaa", "ab", "abc", "b",
                                       "ba", "c",  "ca",  "cb", "d",   "dddd"};

void model_heard(struct model *model, int session,
                 const struct rueda_store_reply *expected)
{
    uint64_t connection = model->sessions[session].connection;
    const struct rueda_store_reply *reply =
        recorded_next_on(model->recorded, connection);

    assert_int_equal(reply->kind, expected->kind);
    assert_int_equal(reply->number, expected->number);
    assert_int_equal(reply->status, expected->status);
    assert_int_equal(reply->revision, expected->revision);
    assert_int_equal(reply->id, expected->id);
    assert_int_equal(reply->count, expected->count);
    assert_int_equal(reply->key_bytes, expected->key_bytes);
    assert_int_equal(reply->value_bytes, expected->value_bytes);
    if (expected->key_bytes > 0)
        assert_memory_equal(reply->key, expected->key, reply->key_bytes);
    if (expected->value_bytes > 0)
        assert_memory_equal(reply->value, expected->value, reply->value_bytes);
    model->seen[reply->kind]++;
    model->failed[-reply->status]++;
}

void model_show(const struct key *key, struct rueda_store_reply *reply)
{
    if (key->revision == 0)
        return;
    reply->revision = key->revision;
    reply->value = key->value;
    reply->value_bytes = key->bytes;
}

/* ---- Changes ------------------------------------------------------------ */

struct due model_due_in(struct model *model, uint32_t time_ms)
{
    return (struct due){model->recorded->now_ns + time_ms * MS, model->order++};
}

static void heard_by_watches(struct model *model, int key,
                             struct rueda_store_reply *event)
{
    event->key = model_names[key];
    event->key_bytes = strlen(model_names[key]);
    for (int i = 0; i < model->watch_count; i++) {
        const struct watch *watch = &model->watches[i];

        event->number = watch->number;
        if (strncmp(model_names[key], watch->prefix, strlen(watch->prefix)) ==
            0)
            model_heard(model, watch->session, event);
    }
}

static void changed(struct model *model, int key)
{
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_WAIT};
    int i = 0;

    model_show(&model->keys[key], &reply);
    while (i < model->wait_count) {
        struct wait wait = model->waits[i];

        if (wait.key != key || wait.above >= reply.revision) {
            i++;
            continue;
        }
        reply.number = wait.number;
        model_heard(model, wait.session, &reply);
        REMOVE(model->waits, model->wait_count, i);
    }
    reply.kind = RUEDA_STORE_EVENT_SET;
    heard_by_watches(model, key, &reply);
}

void model_deleted(struct model *model, int key)
{
    struct rueda_store_reply event = {.kind = RUEDA_STORE_EVENT_DELETE,
                                      .revision = ++model->revision};

    model->keys[key] = (struct key){0};
    heard_by_watches(model, key, &event);
}

uint64_t model_total_bytes(const struct model *model)
{
    uint64_t bytes = 0;

    for (int i = 0; i < KEYS; i++)
        if (model->keys[i].revision != 0)
            bytes += strlen(model_names[i]) + model->keys[i].bytes;
    return bytes;
}

static rueda_status put(struct model *model, int key, const void *value,
                        size_t bytes, uint64_t lease)
{
    struct key before = model->keys[key];
    struct key *now = &model->keys[key];

    now->bytes = bytes;
    now->revision = model->revision + 1;
    if (model_total_bytes(model) > MOST_BYTES) {
        *now = before;
        return RUEDA_ERR_LIMIT;
    }
    model->revision++;
    if (bytes > 0)
        memcpy(now->value, value, bytes);
    now->lease = lease;
    now->bound = model->order++;
    changed(model, key);
    return RUEDA_OK;
}

/* ---- Ends --------------------------------------------------------------- */

static int lease_find(const struct model *model, int session, uint64_t id)
{
    for (int i = 0; i < model->lease_count; i++)
        if (model->leases[i].session == session && model->leases[i].id == id)
            return i;
    return -1;
}

static void lease_ended(struct model *model, int at)
{
    uint64_t id = model->leases[at].id;
    int first;

    REMOVE(model->leases, model->lease_count, at);
    do {
        first = -1;
        for (int i = 0; i < KEYS; i++)
            if (model->keys[i].revision != 0 && model->keys[i].lease == id &&
                (first < 0 || model->keys[i].bound < model->keys[first].bound))
                first = i;
        if (first >= 0)
            model_deleted(model, first);
    } while (first >= 0);
}

void model_parted(struct model *model, int session)
{
    for (int i = model->wait_count - 1; i >= 0; i--)
        if (model->waits[i].session == session)
            REMOVE(model->waits, model->wait_count, i);
    for (int i = model->watch_count - 1; i >= 0; i--)
        if (model->watches[i].session == session)
            REMOVE(model->watches, model->watch_count, i);
    model->sessions[session].is_attached = false;
}

void model_session_ended(struct model *model, int session)
{
    int i = 0;

    model_parted(model, session);
    while (i < model->lease_count) {
        if (model->leases[i].session == session)
            lease_ended(model, i);
        else
            i++;
    }
    model->sessions[session].is_there = false;
    model->sessions[session].will.is_there = false;
    model->sessions[session].past_count = 0;
}

static void will_executed(struct model *model, int session)
{
    struct will will = model->sessions[session].will;
    rueda_status status = RUEDA_ERR_MISMATCH;

    if (!will.is_there)
        return;
    model->sessions[session].will.is_there = false;
    if (model->keys[will.key].revision == 0)
        status = put(model, will.key, will.value, will.bytes, 0);
    model->wills[0] += status == RUEDA_OK;
    model->wills[1] += status == RUEDA_ERR_MISMATCH;
    model->wills[2] += status == RUEDA_ERR_LIMIT;
}

static bool is_before(struct due a, struct due b)
{
    return a.ns != b.ns ? a.ns < b.ns : a.order < b.order;
}

/* INT64_MAX: nothing of it is due. */
static struct due due_of(const struct model *model, int list, int i)
{
    const struct session *session;

    if (list == 0)
        return model->waits[i].due;
    if (list == 1)
        return model->leases[i].due;
    session = &model->sessions[i];
    if (!session->is_there || session->is_attached ||
        (list == 3 && !session->will.is_there))
        return (struct due){INT64_MAX, 1};
    return list == 2 ? session->due : session->will.due;
}

struct due model_next_due(const struct model *model, int *out_list, int *out_i)
{
    struct due due = {INT64_MAX, 0};
    const int counts[4] = {model->wait_count, model->lease_count, SESSIONS,
                           SESSIONS};

    for (int list = 0; list < 4; list++)
        for (int i = 0; i < counts[list]; i++) {
            struct due other = due_of(model, list, i);

            if (is_before(other, due)) {
                due = other;
                *out_list = list;
                *out_i = i;
            }
        }
    return due;
}

void model_ticked(struct model *model)
{
    int list = 0;
    int i = 0;

    while (model_next_due(model, &list, &i).ns <= model->recorded->now_ns) {
        struct rueda_store_reply late = {.kind = RUEDA_STORE_WAIT,
                                         .status = RUEDA_ERR_TIMEOUT};

        if (list == 0) {
            late.number = model->waits[i].number;
            model_heard(model, model->waits[i].session, &late);
            REMOVE(model->waits, model->wait_count, i);
        } else if (list == 1) {
            lease_ended(model, i);
        } else {
            will_executed(model, i);
            if (list == 2)
                model_session_ended(model, i);
        }
    }
}

/* ---- Requests ----------------------------------------------------------- */

int model_key_of(const struct rueda_store_request *request)
{
    for (int i = 0; i < KEYS; i++)
        if (request->key == model_names[i])
            return i;
    return 0;
}

rueda_status model_added(struct model *model,
                         const struct rueda_store_request *request,
                         struct rueda_store_reply *reply)
{
    struct key *key = &model->keys[model_key_of(request)];
    int64_t sum = 0;
    rueda_status status;

    if (key->revision != 0 && key->bytes != sizeof(sum))
        return RUEDA_ERR_INVALID;
    if (key->revision != 0)
        memcpy(&sum, key->value, sizeof(sum));
    sum += request->count;
    status = put(model, model_key_of(request), &sum, sizeof(sum),
                 key->revision != 0 ? key->lease : 0);
    if (status == RUEDA_OK) {
        reply->revision = model->revision;
        reply->count = sum;
    }
    return status;
}

rueda_status model_was_set(struct model *model, int session,
                           const struct rueda_store_request *request,
                           struct rueda_store_reply *reply)
{
    const struct key *key = &model->keys[model_key_of(request)];
    rueda_status status;

    if (request->kind == RUEDA_STORE_CAS &&
        key->revision != request->revision) {
        model_show(key, reply);
        return RUEDA_ERR_MISMATCH;
    }
    if (request->id != 0 && lease_find(model, session, request->id) < 0)
        return RUEDA_ERR_CLOSED;
    status = put(model, model_key_of(request), request->value,
                 request->value_bytes, request->id);
    if (status == RUEDA_OK)
        reply->revision = model->revision;
    return status;
}

rueda_status model_lease_changed(struct model *model, int session,
                                 const struct rueda_store_request *request,
                                 struct rueda_store_reply *reply)
{
    int at = lease_find(model, session, request->id);
    int count = 0;

    if (request->kind == RUEDA_STORE_LEASE_OPEN) {
        for (int i = 0; i < model->lease_count; i++)
            count += model->leases[i].session == session;
        if (count == RUEDA_STORE_MOST_LEASES)
            return RUEDA_ERR_LIMIT;
        reply->id = ++model->last_lease;
        model->leases[model->lease_count++] = (struct lease){
            .session = session,
            .id = reply->id,
            .time_ms = request->time_ms,
            .due = model_due_in(model, request->time_ms),
        };
        return RUEDA_OK;
    }
    if (at < 0)
        return RUEDA_ERR_CLOSED;
    reply->id = request->id;
    if (request->kind == RUEDA_STORE_LEASE_RENEW)
        model->leases[at].due = model_due_in(model, model->leases[at].time_ms);
    else
        lease_ended(model, at);
    return RUEDA_OK;
}

rueda_status model_will_left(struct model *model, int session,
                             const struct rueda_store_request *request)
{
    struct will *will = &model->sessions[session].will;

    *will = (struct will){.is_there = true,
                          .key = model_key_of(request),
                          .bytes = request->value_bytes,
                          .time_ms = request->time_ms};
    if (request->value_bytes > 0)
        memcpy(will->value, request->value, request->value_bytes);
    return RUEDA_OK;
}

rueda_status model_waited(struct model *model, int session,
                          const struct rueda_store_request *request,
                          struct rueda_store_reply *reply)
{
    const struct key *key = &model->keys[model_key_of(request)];
    struct due never = {INT64_MAX, 1};
    int count = 0;

    if (key->revision > request->revision) {
        model_show(key, reply);
        return RUEDA_OK;
    }
    for (int i = 0; i < model->wait_count; i++)
        count += model->waits[i].session == session;
    if (count == RUEDA_STORE_MOST_WAITS)
        return RUEDA_ERR_LIMIT;
    assert_true(model->wait_count < MOST);
    model->waits[model->wait_count++] = (struct wait){
        .session = session,
        .key = model_key_of(request),
        .number = request->number,
        .above = request->revision,
        .due = request->time_ms == 0 ? never
                                     : model_due_in(model, request->time_ms),
    };
    return RUEDA_IN_PROGRESS;
}

rueda_status model_watched(struct model *model, int session,
                           const struct rueda_store_request *request,
                           struct rueda_store_reply *reply)
{
    struct rueda_store_reply event = {.kind = RUEDA_STORE_EVENT_SET,
                                      .number = request->number};
    uint64_t after = request->revision;
    int count = 0;

    for (int i = 0; i < model->watch_count; i++)
        count += model->watches[i].session == session;
    if (count == RUEDA_STORE_MOST_WATCHES)
        return RUEDA_ERR_LIMIT;
    model->watches[model->watch_count++] =
        (struct watch){session, request->number, request->key};
    for (;;) {
        int next = -1;

        for (int i = 0; i < KEYS; i++)
            if (model->keys[i].revision > after &&
                (next < 0 ||
                 model->keys[i].revision < model->keys[next].revision))
                next = i;
        if (next < 0)
            break;
        after = model->keys[next].revision;
        event.key = model_names[next];
        event.key_bytes = strlen(model_names[next]);
        model_show(&model->keys[next], &event);
        if (strncmp(model_names[next], request->key, request->key_bytes) == 0)
            model_heard(model, session, &event);
    }
    reply->revision = model->revision;
    return RUEDA_OK;
}
