/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store from outside: it opens and closes, checks what a request may look
 * like, finds the session that asks, carries the request out once, and lets
 * time pass. What a request does is in ops.c, keys.c and session.c.
 */
#include "job/store/store.h"

#include <stdlib.h>

#include "job/store/state.h"

/* ---- What a request may look like --------------------------------------- */

struct rule {
    bool is_known;
    size_t key_least;
    size_t key_most;
    size_t value_most;
};

static const struct rule rules[] = {
#define X(name, number, key_least, key_most, value_most)                       \
    [number] = {true, key_least, key_most, value_most},
    RUEDA_STORE_KIND_MAP(X)
#undef X
};

rueda_status
rueda_store_request_check(const struct rueda_store_request *request)
{
    const struct rule *rule;

    if ((size_t)request->kind >= sizeof(rules) / sizeof(rules[0]))
        return RUEDA_ERR_INVALID;
    rule = &rules[request->kind];
    if (!rule->is_known || request->number == 0 ||
        request->key_bytes < rule->key_least)
        return RUEDA_ERR_INVALID;
    if (request->key_bytes > rule->key_most ||
        request->value_bytes > rule->value_most)
        return RUEDA_ERR_LIMIT;
    return RUEDA_OK;
}

/* ---- Open and close ----------------------------------------------------- */

rueda_status rueda_store_open(const struct rueda_store_options *options,
                              struct rueda_store **out_store)
{
    struct rueda_store *store;

    if (options->emit == NULL)
        return RUEDA_ERR_INVALID;
    store = calloc(1, sizeof(*store));
    if (store == NULL)
        return RUEDA_ERR_NOMEM;
    store->options = *options;
    if (store->options.most_bytes == 0)
        store->options.most_bytes = RUEDA_STORE_DEFAULT_BYTES;
    if (store->options.grace_ms == 0)
        store->options.grace_ms = RUEDA_STORE_DEFAULT_GRACE_MS;
    if (store->options.patience_ms == 0)
        store->options.patience_ms = store->options.grace_ms;
    rueda_store_list_init(&store->sessions);
    rueda_store_list_init(&store->changes);
    rueda_store_list_init(&store->watches);
    if (rueda_store_table_init(&store->nodes) != RUEDA_OK ||
        rueda_store_table_init(&store->by_id) != RUEDA_OK ||
        rueda_store_table_init(&store->by_connection) != RUEDA_OK) {
        rueda_store_close(store);
        return RUEDA_ERR_NOMEM;
    }
    *out_store = store;
    return RUEDA_OK;
}

void rueda_store_close(struct rueda_store *store)
{
    if (store == NULL)
        return;
    store->is_closing = true;
    while (!rueda_store_list_is_empty(&store->sessions))
        rueda_store_session_end(
            store, RUEDA_STORE_OF(store->sessions.next,
                                  struct rueda_store_session, in_sessions));
    while (!rueda_store_list_is_empty(&store->changes))
        rueda_store_node_delete(store, RUEDA_STORE_OF(store->changes.next,
                                                      struct rueda_store_node,
                                                      in_changes));
    rueda_store_table_fini(&store->nodes);
    rueda_store_table_fini(&store->by_id);
    rueda_store_table_fini(&store->by_connection);
    rueda_store_timers_fini(&store->timers);
    free(store);
}

/* ---- Requests ----------------------------------------------------------- */

static void remember(struct rueda_store_session *session,
                     const struct rueda_store_reply *reply)
{
    uint64_t index = session->record_count++ % RUEDA_STORE_REMEMBERED;

    session->newest = reply->number;
    session->records[index] = (struct rueda_store_record){
        .number = reply->number,
        .revision = reply->revision,
        .id = reply->id,
        .count = reply->count,
        .kind = reply->kind,
        .status = reply->status,
    };
}

static const struct rueda_store_record *
recall(const struct rueda_store_session *session, uint64_t number)
{
    for (int i = 0; i < RUEDA_STORE_REMEMBERED; i++)
        if (session->records[i].number == number)
            return &session->records[i];
    return NULL;
}

/* A change whose number is not new: answer as before. The value that made a
 * CAS fail was not kept, it may be large; what is there now tells its client
 * more, and it is just as true that nothing was changed. */
static rueda_status run_again(const struct rueda_store_command *command,
                              struct rueda_store_reply *reply)
{
    const struct rueda_store_request *request = command->request;
    const struct rueda_store_record *record =
        recall(command->session, request->number);

    if (record == NULL || record->kind != request->kind)
        return RUEDA_ERR_INVALID;
    if (record->status == RUEDA_ERR_MISMATCH) {
        rueda_store_node_show(rueda_store_node_find(command->store,
                                                    request->key,
                                                    request->key_bytes),
                              reply);
    } else {
        reply->revision = record->revision;
        reply->id = record->id;
        reply->count = record->count;
    }
    return record->status;
}

static void run_in_session(const struct rueda_store_command *command,
                           struct rueda_store_reply *reply)
{
    bool is_change = rueda_store_is_change(command->request->kind);

    if (is_change && command->request->number <= command->session->newest) {
        reply->status = run_again(command, reply);
        return;
    }
    reply->status = rueda_store_run(command, reply);
    if (is_change)
        remember(command->session, reply);
}

void rueda_store_ask(struct rueda_store *store, uint64_t connection,
                     const struct rueda_store_request *request, int64_t now_ns)
{
    struct rueda_store_reply reply = {.kind = request->kind,
                                      .number = request->number};
    struct rueda_store_command command = {
        .store = store, .request = request, .now_ns = now_ns};

    reply.status = rueda_store_request_check(request);
    if (reply.status == RUEDA_OK && request->kind == RUEDA_STORE_ATTACH) {
        reply.status =
            rueda_store_session_attach(store, connection, request, &reply);
    } else if (reply.status == RUEDA_OK) {
        command.session = rueda_store_session_on(store, connection);
        if (command.session != NULL)
            run_in_session(&command, &reply);
        else
            reply.status = RUEDA_ERR_CLOSED;
    }
    if (reply.status != RUEDA_IN_PROGRESS)
        rueda_store_send(store, connection, &reply);
}

void rueda_store_detach(struct rueda_store *store, uint64_t connection,
                        bool is_cut, int64_t now_ns)
{
    struct rueda_store_session *session =
        rueda_store_session_on(store, connection);

    if (session == NULL)
        return;
    rueda_store_session_part(store, session);
    is_cut = is_cut && session->will != NULL;
    if (session->will != NULL && !is_cut)
        rueda_store_timers_set(&store->timers, &session->will->timer, now_ns,
                               session->will->time_ms);
    rueda_store_timers_set(&store->timers, &session->timer, now_ns,
                           is_cut ? store->options.patience_ms
                                  : store->options.grace_ms);
}

/* ---- Time --------------------------------------------------------------- */

static void wait_timed_out(struct rueda_store *store,
                           struct rueda_store_wait *wait)
{
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_WAIT,
                                      .number = wait->number,
                                      .status = RUEDA_ERR_TIMEOUT};
    uint64_t connection = wait->session->connection;
    struct rueda_store_node *node = wait->node;

    rueda_store_wait_free(store, wait);
    rueda_store_node_settle(store, node);
    rueda_store_send(store, connection, &reply);
}

/* A session that is over has not come back for its will either. */
static void session_timed_out(struct rueda_store *store,
                              struct rueda_store_session *session)
{
    rueda_store_will_execute(store, session);
    rueda_store_session_end(store, session);
}

static void expire(struct rueda_store *store, struct rueda_store_timer *timer)
{
    switch (timer->kind) {
    case RUEDA_STORE_TIMER_WAIT:
        wait_timed_out(store,
                       RUEDA_STORE_OF(timer, struct rueda_store_wait, timer));
        break;
    case RUEDA_STORE_TIMER_LEASE:
        rueda_store_lease_end(
            store, RUEDA_STORE_OF(timer, struct rueda_store_lease, timer));
        break;
    case RUEDA_STORE_TIMER_SESSION:
        session_timed_out(
            store, RUEDA_STORE_OF(timer, struct rueda_store_session, timer));
        break;
    case RUEDA_STORE_TIMER_WILL:
        rueda_store_will_execute(
            store,
            RUEDA_STORE_OF(timer, struct rueda_store_will, timer)->session);
        break;
    }
}

void rueda_store_tick(struct rueda_store *store, int64_t now_ns)
{
    struct rueda_store_timer *timer = rueda_store_timers_first(&store->timers);

    while (timer != NULL && timer->due_ns <= now_ns) {
        expire(store, timer);
        timer = rueda_store_timers_first(&store->timers);
    }
}

int64_t rueda_store_next_ns(const struct rueda_store *store)
{
    const struct rueda_store_timer *timer =
        rueda_store_timers_first(&store->timers);

    return timer != NULL ? timer->due_ns : RUEDA_STORE_NEVER;
}

void rueda_store_stats(const struct rueda_store *store,
                       struct rueda_store_stats *out_stats)
{
    *out_stats = store->stats;
}
