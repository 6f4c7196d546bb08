/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store against its model: some sessions ask at random, lose their
 * connections, come back and repeat what they asked. Every reply, the next
 * deadline and the totals must agree at every step.
 */
#include "support/store_model.h"

#define STEPS 200000

/* ---- What has happened -------------------------------------------------- */

static rueda_status ran(struct model *model, int session,
                        const struct rueda_store_request *request,
                        struct rueda_store_reply *reply)
{
    const struct key *key = &model->keys[model_key_of(request)];

    switch (request->kind) {
    case RUEDA_STORE_GET:
        model_show(key, reply);
        return RUEDA_OK;
    case RUEDA_STORE_WAIT:
        return model_waited(model, session, request, reply);
    case RUEDA_STORE_SET:
    case RUEDA_STORE_CAS:
        return model_was_set(model, session, request, reply);
    case RUEDA_STORE_ADD:
        return model_added(model, request, reply);
    case RUEDA_STORE_DELETE:
        if (key->revision == 0)
            return RUEDA_OK;
        model_deleted(model, model_key_of(request));
        reply->revision = model->revision;
        return RUEDA_OK;
    case RUEDA_STORE_WATCH:
        return model_watched(model, session, request, reply);
    case RUEDA_STORE_UNWATCH:
        for (int i = model->watch_count - 1; i >= 0; i--)
            if (model->watches[i].session == session &&
                model->watches[i].number == request->id)
                REMOVE(model->watches, model->watch_count, i);
        return RUEDA_OK;
    case RUEDA_STORE_BYE:
        model_session_ended(model, session);
        return RUEDA_OK;
    case RUEDA_STORE_WILL:
        return model_will_left(model, session, request);
    default:
        return model_lease_changed(model, session, request, reply);
    }
}

static void attached(struct model *model, int at, uint64_t connection)
{
    struct session *session = &model->sessions[at];
    struct rueda_store_reply bye = {.kind = RUEDA_STORE_BYE,
                                    .status = RUEDA_ERR_CLOSED};
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_ATTACH,
                                      .number = 1,
                                      .revision = model->revision,
                                      .count = session->is_there};

    if (session->is_attached) {
        model_parted(model, at);
        model_heard(model, at, &bye);
    }
    session->is_there = true;
    session->is_attached = true;
    session->connection = connection;
    model_heard(model, at, &reply);
}

static void was_lost(struct model *model, int session, bool is_cut)
{
    struct will *will = &model->sessions[session].will;

    model_parted(model, session);
    is_cut = is_cut && will->is_there;
    will->due = (struct due){INT64_MAX, 1};
    if (will->is_there && !is_cut)
        will->due = model_due_in(model, will->time_ms);
    model->sessions[session].due =
        model_due_in(model, is_cut ? PATIENCE_MS : GRACE_MS);
}

/* The store was asked this for the first time. */
static void asked(struct model *model, int at,
                  const struct rueda_store_request *request, bool is_change)
{
    struct session *session = &model->sessions[at];
    struct rueda_store_reply reply = {.kind = request->kind,
                                      .number = request->number};

    reply.status = ran(model, at, request, &reply);
    if (reply.status != RUEDA_IN_PROGRESS)
        model_heard(model, at, &reply);
    if (!is_change)
        return;
    if (session->past_count == REPEATABLE)
        REMOVE(session->past, session->past_count, 0);
    session->past[session->past_count++] = (struct past){*request, reply};
}

static void asked_again(struct model *model, int at, int i)
{
    struct session *session = &model->sessions[at];
    struct past past = session->past[i];

    if (session->past_count - i > RUEDA_STORE_REMEMBERED) {
        past.reply = (struct rueda_store_reply){.kind = past.request.kind,
                                                .number = past.request.number,
                                                .status = RUEDA_ERR_INVALID};
    } else if (past.reply.status == RUEDA_ERR_MISMATCH) {
        past.reply.revision = 0;
        past.reply.value_bytes = 0;
        model_show(&model->keys[model_key_of(&past.request)], &past.reply);
    }
    model_heard(model, at, &past.reply);
    model->repeated++;
}

/* ---- Requests at random ------------------------------------------------- */

static uint32_t pick(struct model *model, uint32_t below)
{
    model->seed = model->seed * 1664525u + 1013904223u;
    return (model->seed >> 8) % below;
}

static bool is_change(rueda_store_kind kind)
{
    return kind == RUEDA_STORE_SET || kind == RUEDA_STORE_CAS ||
           kind == RUEDA_STORE_ADD || kind == RUEDA_STORE_DELETE ||
           kind == RUEDA_STORE_LEASE_OPEN || kind == RUEDA_STORE_LEASE_CLOSE;
}

static rueda_store_kind pick_kind(struct model *model)
{
    static const rueda_store_kind kinds[] = {
        RUEDA_STORE_GET,         RUEDA_STORE_GET,
        RUEDA_STORE_WAIT,        RUEDA_STORE_WAIT,
        RUEDA_STORE_SET,         RUEDA_STORE_SET,
        RUEDA_STORE_SET,         RUEDA_STORE_CAS,
        RUEDA_STORE_CAS,         RUEDA_STORE_CAS,
        RUEDA_STORE_ADD,         RUEDA_STORE_ADD,
        RUEDA_STORE_DELETE,      RUEDA_STORE_DELETE,
        RUEDA_STORE_WATCH,       RUEDA_STORE_UNWATCH,
        RUEDA_STORE_LEASE_OPEN,  RUEDA_STORE_LEASE_RENEW,
        RUEDA_STORE_LEASE_CLOSE, RUEDA_STORE_WILL,
    };

    if (pick(model, 300) == 0)
        return RUEDA_STORE_BYE;
    return kinds[pick(model, sizeof(kinds) / sizeof(kinds[0]))];
}

/* Usually a lease that there is, of this session or another. */
static uint64_t pick_lease(struct model *model)
{
    if (model->lease_count == 0 || pick(model, 20) == 0)
        return pick(model, 100);
    return model->leases[pick(model, (uint32_t)model->lease_count)].id;
}

/* A revision that is a little old, or current, or to come. */
static uint64_t pick_revision(struct model *model)
{
    uint64_t revision = model->revision + pick(model, 12);

    return revision > 8 ? revision - 8 : 0;
}

static void fill_key(struct model *model, struct rueda_store_request *request)
{
    static const char *const prefixes[] = {"", "a", "ab", "c", "x"};
    int key = (int)pick(model, KEYS);

    request->key = model_names[key];
    if (request->kind == RUEDA_STORE_WATCH)
        request->key = prefixes[pick(model, 5)];
    request->key_bytes = strlen(request->key);
    request->revision = pick(model, 3) == 0 ? 0 : pick_revision(model);
    if (request->kind == RUEDA_STORE_CAS && pick(model, 2) == 0)
        request->revision = model->keys[key].revision;
}

static struct rueda_store_request pick_request(struct model *model)
{
    static const char bytes[] = "the quick brown fox jumps over the lazy dog";
    struct rueda_store_request request = {.kind = pick_kind(model)};

    switch (request.kind) {
    case RUEDA_STORE_SET:
    case RUEDA_STORE_CAS:
        request.value = bytes + pick(model, 20);
        request.value_bytes = pick(model, 13);
        if (pick(model, 2) == 0)
            request.id = pick_lease(model);
        fill_key(model, &request);
        break;
    case RUEDA_STORE_UNWATCH:
        if (model->watch_count > 0)
            request.id =
                model->watches[pick(model, (uint32_t)model->watch_count)]
                    .number;
        break;
    case RUEDA_STORE_LEASE_RENEW:
    case RUEDA_STORE_LEASE_CLOSE:
        request.id = pick_lease(model);
        break;
    case RUEDA_STORE_LEASE_OPEN:
        request.time_ms = 1 + pick(model, 3000);
        break;
    case RUEDA_STORE_WILL:
        request.value = bytes + pick(model, 20);
        request.value_bytes = pick(model, 13);
        request.time_ms = pick(model, pick(model, 2) == 0 ? 30 : 2 * GRACE_MS);
        fill_key(model, &request);
        break;
    case RUEDA_STORE_BYE:
        break;
    default:
        request.count = (int64_t)pick(model, 7) - 3;
        request.time_ms = pick(model, 2) * pick(model, 100);
        fill_key(model, &request);
        break;
    }
    return request;
}

/* ---- Steps -------------------------------------------------------------- */

static void step_attach(struct model *model, int session)
{
    uint64_t connection = ++model->last_connection;

    ASK(model->recorded, connection, ATTACH, .number = 1,
        SESSION((char)('a' + session)));
    attached(model, session, connection);
}

static void step_ask(struct model *model, int session)
{
    struct rueda_store_request request = pick_request(model);

    request.number = ++model->sessions[session].number;
    recorded_store_ask(model->recorded, model->sessions[session].connection,
                       request);
    asked(model, session, &request, is_change(request.kind));
}

static void step_repeat(struct model *model, int at)
{
    struct session *session = &model->sessions[at];
    int i;

    if (session->past_count == 0)
        return;
    i = (int)pick(model, (uint32_t)session->past_count);
    recorded_store_ask(model->recorded, session->connection,
                       session->past[i].request);
    asked_again(model, at, i);
}

static void step(struct model *model)
{
    int session = (int)pick(model, SESSIONS);
    uint32_t what = pick(model, 200);

    if (what < 20) {
        recorded_tick(model->recorded,
                      pick(model, what == 0 ? 2 * GRACE_MS : 30));
        model_ticked(model);
    } else if (!model->sessions[session].is_attached || what == 20) {
        step_attach(model, session);
    } else if (what < 24) {
        (what == 21 ? recorded_cut : recorded_lose)(
            model->recorded, model->sessions[session].connection);
        was_lost(model, session, what == 21);
    } else if (what < 50) {
        step_repeat(model, session);
    } else {
        step_ask(model, session);
    }
    recorded_no_more(model->recorded);
}

static void check_totals(const struct model *model)
{
    struct rueda_store_stats stats = recorded_stats_of(model->recorded);
    size_t keys = 0;
    size_t sessions = 0;
    int ignored;

    for (int i = 0; i < KEYS; i++)
        keys += model->keys[i].revision != 0;
    for (int i = 0; i < SESSIONS; i++)
        sessions += model->sessions[i].is_there;
    assert_int_equal(stats.revision, model->revision);
    assert_int_equal(stats.keys, keys);
    assert_int_equal(stats.bytes, model_total_bytes(model));
    assert_int_equal(stats.sessions, sessions);
    assert_int_equal(stats.waits, model->wait_count);
    assert_int_equal(stats.watches, model->watch_count);
    assert_int_equal(stats.leases, model->lease_count);
    assert_int_equal(rueda_store_next_ns(model->recorded->store),
                     model_next_due(model, &ignored, &ignored).ns);
}

static void check_contents(struct model *model)
{
    recorded_attach(model->recorded, UINT64_MAX, 'z');
    for (int i = 0; i < KEYS; i++) {
        const struct key *key = &model->keys[i];
        const struct rueda_store_reply *reply =
            ANSWER(model->recorded, UINT64_MAX, GET, KEY(model_names[i]));

        assert_int_equal(reply->revision, key->revision);
        assert_int_equal(reply->value_bytes, key->bytes);
        assert_memory_equal(reply->value, key->value, key->bytes);
    }
}

/* A test that never comes to a place shows nothing about it. */
static void check_seen(const struct model *model)
{
    static const rueda_status statuses[] = {
        RUEDA_OK,           RUEDA_ERR_INVALID, RUEDA_ERR_TIMEOUT,
        RUEDA_ERR_MISMATCH, RUEDA_ERR_CLOSED,  RUEDA_ERR_LIMIT,
    };

    for (int kind = RUEDA_STORE_ATTACH; kind <= RUEDA_STORE_WILL; kind++)
        assert_true(model->seen[kind] > 50);
    assert_true(model->seen[RUEDA_STORE_EVENT_SET] > 1000);
    assert_true(model->seen[RUEDA_STORE_EVENT_DELETE] > 1000);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        assert_true(model->failed[-statuses[i]] > 50);
    assert_true(model->repeated > 1000);
    for (int i = 0; i < 3; i++)
        assert_true(model->wills[i] > 0);
}

static void the_store_agrees_with_its_model(void **state)
{
    struct model *model = calloc(1, sizeof(*model));

    assert_non_null(model);
    model->recorded = *state;
    model->seed = 1;
    for (int i = 0; i < STEPS; i++) {
        step(model);
        check_totals(model);
    }
    check_contents(model);
    check_seen(model);
    free(model);
}

static int small_open(void **state)
{
    return recorded_store_open_with(state, MOST_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_store_agrees_with_its_model,
                                        small_open, recorded_store_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
