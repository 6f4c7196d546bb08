/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys, and the sessions that watch or wait for them. All nodes that are there
 * hang in one list by revision: a change moves its node to the end, so a watch
 * that begins late finds what it has missed by walking back from there.
 */
#include <stdlib.h>
#include <string.h>

#include "job/store/state.h"

void rueda_store_send(struct rueda_store *store, uint64_t connection,
                      const struct rueda_store_reply *reply)
{
    if (!store->is_closing)
        store->options.emit(store->options.arg, connection, reply);
}

/* ---- Values ------------------------------------------------------------- */

struct rueda_store_value *rueda_store_value_new(const void *bytes, size_t len)
{
    struct rueda_store_value *value = malloc(sizeof(*value) + len);

    if (value == NULL)
        return NULL;
    value->refs = 1;
    value->bytes = len;
    if (len > 0)
        memcpy(value->data, bytes, len);
    return value;
}

void rueda_store_value_keep(struct rueda_store_value *value)
{
    value->refs++;
}

void rueda_store_value_drop(struct rueda_store_value *value)
{
    if (value != NULL && --value->refs == 0)
        free(value);
}

/* ---- Nodes -------------------------------------------------------------- */

struct rueda_store_node *rueda_store_node_find(const struct rueda_store *store,
                                               const void *key, size_t bytes)
{
    uint64_t hash = rueda_store_hash(store->options.seed, key, bytes);
    struct rueda_store_link *link =
        rueda_store_table_first(&store->nodes, hash);

    while (link != NULL) {
        struct rueda_store_node *node =
            RUEDA_STORE_OF(link, struct rueda_store_node, link);

        if (node->key_bytes == bytes && memcmp(node->key, key, bytes) == 0)
            return node;
        link = rueda_store_table_next(link);
    }
    return NULL;
}

struct rueda_store_node *rueda_store_node_make(struct rueda_store *store,
                                               const void *key, size_t bytes)
{
    struct rueda_store_node *node = rueda_store_node_find(store, key, bytes);

    if (node != NULL)
        return node;
    node = calloc(1, sizeof(*node) + bytes);
    if (node == NULL)
        return NULL;
    rueda_store_list_init(&node->in_changes);
    rueda_store_list_init(&node->in_lease);
    rueda_store_list_init(&node->waits);
    node->key_bytes = bytes;
    memcpy(node->key, key, bytes);
    rueda_store_table_add(&store->nodes, &node->link,
                          rueda_store_hash(store->options.seed, key, bytes));
    return node;
}

void rueda_store_node_settle(struct rueda_store *store,
                             struct rueda_store_node *node)
{
    if (node->revision != 0 || !rueda_store_list_is_empty(&node->waits))
        return;
    rueda_store_table_remove(&store->nodes, &node->link);
    free(node);
}

void rueda_store_node_show(const struct rueda_store_node *node,
                           struct rueda_store_reply *reply)
{
    if (node == NULL || node->revision == 0)
        return;
    reply->revision = node->revision;
    reply->value = node->value->data;
    reply->value_bytes = node->value->bytes;
    reply->owner = node->value;
}

static size_t bytes_of(const struct rueda_store_node *node)
{
    return node->revision == 0 ? 0 : node->key_bytes + node->value->bytes;
}

bool rueda_store_has_room(const struct rueda_store *store,
                          const struct rueda_store_request *request,
                          size_t value_bytes)
{
    const struct rueda_store_node *node =
        rueda_store_node_find(store, request->key, request->key_bytes);
    bool is_new = node == NULL || node->revision == 0;
    uint64_t others = store->stats.bytes - (is_new ? 0 : bytes_of(node));

    if (is_new && store->stats.keys >= RUEDA_STORE_MOST_KEYS)
        return false;
    return others + request->key_bytes + value_bytes <=
           store->options.most_bytes;
}

/* ---- Watches and waits -------------------------------------------------- */

void rueda_store_wait_free(struct rueda_store *store,
                           struct rueda_store_wait *wait)
{
    rueda_store_timers_remove(&store->timers, &wait->timer);
    rueda_store_list_remove(&wait->in_node);
    rueda_store_list_remove(&wait->in_session);
    wait->session->wait_count--;
    store->stats.waits--;
    free(wait);
}

static void answer_waits(struct rueda_store *store,
                         struct rueda_store_node *node)
{
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_WAIT};
    struct rueda_store_list *at = node->waits.next;

    rueda_store_node_show(node, &reply);
    while (at != &node->waits) {
        struct rueda_store_wait *wait =
            RUEDA_STORE_OF(at, struct rueda_store_wait, in_node);

        at = at->next;
        if (wait->above >= node->revision)
            continue;
        reply.number = wait->number;
        rueda_store_send(store, wait->session->connection, &reply);
        rueda_store_wait_free(store, wait);
    }
}

static bool is_watched(const struct rueda_store_watch *watch,
                       const struct rueda_store_node *node)
{
    return node->key_bytes >= watch->prefix_bytes &&
           memcmp(node->key, watch->prefix, watch->prefix_bytes) == 0;
}

static struct rueda_store_reply event_of(const struct rueda_store_node *node)
{
    struct rueda_store_reply event = {.kind = RUEDA_STORE_EVENT_SET,
                                      .key = node->key,
                                      .key_bytes = node->key_bytes};

    rueda_store_node_show(node, &event);
    return event;
}

static void tell_watches(struct rueda_store *store,
                         struct rueda_store_reply *event,
                         const struct rueda_store_node *node)
{
    struct rueda_store_list *at;

    for (at = store->watches.next; at != &store->watches; at = at->next) {
        const struct rueda_store_watch *watch =
            RUEDA_STORE_OF(at, struct rueda_store_watch, in_watches);

        if (!is_watched(watch, node))
            continue;
        event->number = watch->number;
        rueda_store_send(store, watch->session->connection, event);
    }
}

void rueda_store_catch_up(struct rueda_store *store,
                          const struct rueda_store_watch *watch, uint64_t after)
{
    struct rueda_store_list *at = &store->changes;

    while (at->prev != &store->changes &&
           RUEDA_STORE_OF(at->prev, struct rueda_store_node, in_changes)
                   ->revision > after)
        at = at->prev;
    for (; at != &store->changes; at = at->next) {
        const struct rueda_store_node *node =
            RUEDA_STORE_OF(at, struct rueda_store_node, in_changes);
        struct rueda_store_reply event;

        if (!is_watched(watch, node))
            continue;
        event = event_of(node);
        event.number = watch->number;
        rueda_store_send(store, watch->session->connection, &event);
    }
}

/* ---- Changes ------------------------------------------------------------ */

/* Put the node under a lease, or under none. */
static void put_under(struct rueda_store_node *node,
                      struct rueda_store_lease *lease)
{
    rueda_store_list_remove(&node->in_lease);
    node->lease = lease;
    if (lease != NULL)
        rueda_store_list_append(&lease->nodes, &node->in_lease);
}

void rueda_store_node_set(struct rueda_store *store,
                          struct rueda_store_node *node,
                          struct rueda_store_value *value,
                          struct rueda_store_lease *lease)
{
    struct rueda_store_reply event;

    if (node->revision == 0)
        store->stats.keys++;
    store->stats.bytes -= bytes_of(node);
    rueda_store_value_drop(node->value);
    node->value = value;
    node->revision = ++store->stats.revision;
    store->stats.bytes += bytes_of(node);
    put_under(node, lease);
    rueda_store_list_remove(&node->in_changes);
    rueda_store_list_append(&store->changes, &node->in_changes);

    answer_waits(store, node);
    event = event_of(node);
    tell_watches(store, &event, node);
}

void rueda_store_node_delete(struct rueda_store *store,
                             struct rueda_store_node *node)
{
    struct rueda_store_reply event = {.kind = RUEDA_STORE_EVENT_DELETE,
                                      .key = node->key,
                                      .key_bytes = node->key_bytes};

    store->stats.keys--;
    store->stats.bytes -= bytes_of(node);
    put_under(node, NULL);
    rueda_store_list_remove(&node->in_changes);
    rueda_store_value_drop(node->value);
    node->value = NULL;
    node->revision = 0;

    event.revision = ++store->stats.revision;
    tell_watches(store, &event, node);
    rueda_store_node_settle(store, node);
}
