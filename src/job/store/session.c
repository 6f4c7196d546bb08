/* SPDX-License-Identifier: Apache-2.0 */
/* How sessions begin, lose their connection and end, with what they own. */
#include <stdlib.h>
#include <string.h>

#include "job/store/state.h"

static uint64_t hash_of_id(const struct rueda_store *store, const void *id)
{
    return rueda_store_hash(store->options.seed, id, RUEDA_STORE_SESSION_BYTES);
}

static uint64_t hash_of_connection(uint64_t connection)
{
    return rueda_store_hash(0, &connection, sizeof(connection));
}

static struct rueda_store_session *session_find(const struct rueda_store *store,
                                                const void *id)
{
    struct rueda_store_link *link =
        rueda_store_table_first(&store->by_id, hash_of_id(store, id));

    while (link != NULL) {
        struct rueda_store_session *session =
            RUEDA_STORE_OF(link, struct rueda_store_session, by_id);

        if (memcmp(session->id, id, sizeof(session->id)) == 0)
            return session;
        link = rueda_store_table_next(link);
    }
    return NULL;
}

struct rueda_store_session *
rueda_store_session_on(const struct rueda_store *store, uint64_t connection)
{
    struct rueda_store_link *link = rueda_store_table_first(
        &store->by_connection, hash_of_connection(connection));

    while (link != NULL) {
        struct rueda_store_session *session =
            RUEDA_STORE_OF(link, struct rueda_store_session, by_connection);

        if (session->connection == connection)
            return session;
        link = rueda_store_table_next(link);
    }
    return NULL;
}

static rueda_status session_new(struct rueda_store *store, const void *id,
                                struct rueda_store_session **out_session)
{
    struct rueda_store_session *session;
    rueda_status status;

    if (store->stats.sessions >= RUEDA_STORE_MOST_SESSIONS)
        return RUEDA_ERR_LIMIT;
    session = calloc(1, sizeof(*session));
    if (session == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_store_timers_add(&store->timers, &session->timer,
                                    RUEDA_STORE_TIMER_SESSION);
    if (status != RUEDA_OK) {
        free(session);
        return status;
    }
    rueda_store_list_init(&session->waits);
    rueda_store_list_init(&session->watches);
    rueda_store_list_init(&session->leases);
    memcpy(session->id, id, sizeof(session->id));
    rueda_store_table_add(&store->by_id, &session->by_id,
                          hash_of_id(store, id));
    rueda_store_list_append(&store->sessions, &session->in_sessions);
    store->stats.sessions++;
    *out_session = session;
    return RUEDA_OK;
}

void rueda_store_watch_free(struct rueda_store *store,
                            struct rueda_store_watch *watch)
{
    rueda_store_list_remove(&watch->in_watches);
    rueda_store_list_remove(&watch->in_session);
    watch->session->watch_count--;
    store->stats.watches--;
    free(watch);
}

void rueda_store_session_part(struct rueda_store *store,
                              struct rueda_store_session *session)
{
    struct rueda_store_list *at = session->waits.next;

    if (!session->is_attached)
        return;
    rueda_store_table_remove(&store->by_connection, &session->by_connection);
    session->is_attached = false;
    while (at != &session->waits) {
        struct rueda_store_wait *wait =
            RUEDA_STORE_OF(at, struct rueda_store_wait, in_session);
        struct rueda_store_node *node = wait->node;

        at = at->next;
        rueda_store_wait_free(store, wait);
        rueda_store_node_settle(store, node);
    }
    at = session->watches.next;
    while (at != &session->watches) {
        struct rueda_store_watch *watch =
            RUEDA_STORE_OF(at, struct rueda_store_watch, in_session);

        at = at->next;
        rueda_store_watch_free(store, watch);
    }
}

/* The session was on another connection, which the driver may believe to be
 * alive. */
static void take_over(struct rueda_store *store,
                      struct rueda_store_session *session, uint64_t connection)
{
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_BYE,
                                      .status = RUEDA_ERR_CLOSED};
    uint64_t before = session->connection;
    bool was_attached = session->is_attached;

    rueda_store_session_part(store, session);
    if (was_attached && before != connection)
        rueda_store_send(store, before, &reply);
}

rueda_status
rueda_store_session_attach(struct rueda_store *store, uint64_t connection,
                           const struct rueda_store_request *request,
                           struct rueda_store_reply *reply)
{
    struct rueda_store_session *here =
        rueda_store_session_on(store, connection);
    struct rueda_store_session *session = session_find(store, request->key);

    if (here != NULL && here != session)
        return RUEDA_ERR_INVALID;
    reply->count = session != NULL;
    if (session == NULL) {
        rueda_status status = session_new(store, request->key, &session);

        if (status != RUEDA_OK)
            return status;
    }
    take_over(store, session, connection);
    session->connection = connection;
    session->is_attached = true;
    rueda_store_table_add(&store->by_connection, &session->by_connection,
                          hash_of_connection(connection));
    rueda_store_timers_unset(&store->timers, &session->timer);
    if (session->will != NULL)
        rueda_store_timers_unset(&store->timers, &session->will->timer);
    reply->revision = store->stats.revision;
    return RUEDA_OK;
}

/* ---- Wills and ends ----------------------------------------------------- */

void rueda_store_will_revoke(struct rueda_store *store,
                             struct rueda_store_session *session)
{
    struct rueda_store_will *will = session->will;

    if (will == NULL)
        return;
    session->will = NULL;
    rueda_store_timers_remove(&store->timers, &will->timer);
    rueda_store_value_drop(will->value);
    free(will);
}

void rueda_store_will_execute(struct rueda_store *store,
                              struct rueda_store_session *session)
{
    struct rueda_store_will *will = session->will;
    struct rueda_store_request request = {.kind = RUEDA_STORE_CAS};
    struct rueda_store_node *node;

    if (will == NULL)
        return;
    request.key = will->key;
    request.key_bytes = will->key_bytes;
    node = rueda_store_node_find(store, will->key, will->key_bytes);
    if ((node == NULL || node->revision == 0) &&
        rueda_store_has_room(store, &request, will->value->bytes)) {
        node = rueda_store_node_make(store, will->key, will->key_bytes);
        if (node != NULL) {
            rueda_store_value_keep(will->value);
            rueda_store_node_set(store, node, will->value, NULL);
        }
    }
    rueda_store_will_revoke(store, session);
}

void rueda_store_lease_end(struct rueda_store *store,
                           struct rueda_store_lease *lease)
{
    while (!rueda_store_list_is_empty(&lease->nodes))
        rueda_store_node_delete(store, RUEDA_STORE_OF(lease->nodes.next,
                                                      struct rueda_store_node,
                                                      in_lease));
    rueda_store_timers_remove(&store->timers, &lease->timer);
    rueda_store_list_remove(&lease->in_session);
    lease->session->lease_count--;
    store->stats.leases--;
    free(lease);
}

void rueda_store_session_end(struct rueda_store *store,
                             struct rueda_store_session *session)
{
    struct rueda_store_list *at = session->leases.next;

    rueda_store_session_part(store, session);
    rueda_store_will_revoke(store, session);
    while (at != &session->leases) {
        struct rueda_store_lease *lease =
            RUEDA_STORE_OF(at, struct rueda_store_lease, in_session);

        at = at->next;
        rueda_store_lease_end(store, lease);
    }
    rueda_store_timers_remove(&store->timers, &session->timer);
    rueda_store_table_remove(&store->by_id, &session->by_id);
    rueda_store_list_remove(&session->in_sessions);
    store->stats.sessions--;
    free(session);
}
