/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each kind of request. Each finds out first whether it can be
 * done, gets its memory next, and only then changes anything.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "job/store/state.h"

#define COUNTER_BYTES 8

static struct rueda_store_node *
node_of(const struct rueda_store_command *command)
{
    return rueda_store_node_find(command->store, command->request->key,
                                 command->request->key_bytes);
}

static rueda_status run_bye(const struct rueda_store_command *command,
                            struct rueda_store_reply *reply)
{
    (void)reply;
    rueda_store_session_end(command->store, command->session);
    return RUEDA_OK;
}

static rueda_status run_get(const struct rueda_store_command *command,
                            struct rueda_store_reply *reply)
{
    rueda_store_node_show(node_of(command), reply);
    return RUEDA_OK;
}

/* ---- WAIT --------------------------------------------------------------- */

static rueda_status wait_new(const struct rueda_store_command *command)
{
    const struct rueda_store_request *request = command->request;
    struct rueda_store *store = command->store;
    struct rueda_store_wait *wait;
    rueda_status status = RUEDA_ERR_NOMEM;

    wait = malloc(sizeof(*wait));
    if (wait == NULL)
        return status;
    wait->node = rueda_store_node_make(store, request->key, request->key_bytes);
    if (wait->node == NULL)
        goto err_free_wait;
    status = rueda_store_timers_add(&store->timers, &wait->timer,
                                    RUEDA_STORE_TIMER_WAIT);
    if (status != RUEDA_OK)
        goto err_settle_node;
    if (request->time_ms != 0)
        rueda_store_timers_set(&store->timers, &wait->timer, command->now_ns,
                               request->time_ms);
    wait->number = request->number;
    wait->above = request->revision;
    wait->session = command->session;
    rueda_store_list_append(&wait->node->waits, &wait->in_node);
    rueda_store_list_append(&command->session->waits, &wait->in_session);
    command->session->wait_count++;
    store->stats.waits++;
    return RUEDA_IN_PROGRESS;

err_settle_node:
    rueda_store_node_settle(store, wait->node);
err_free_wait:
    free(wait);
    return status;
}

static rueda_status run_wait(const struct rueda_store_command *command,
                             struct rueda_store_reply *reply)
{
    const struct rueda_store_node *node = node_of(command);

    if (node != NULL && node->revision > command->request->revision) {
        rueda_store_node_show(node, reply);
        return RUEDA_OK;
    }
    if (command->session->wait_count >= RUEDA_STORE_MOST_WAITS)
        return RUEDA_ERR_LIMIT;
    return wait_new(command);
}

/* ---- Changes ------------------------------------------------------------ */

static struct rueda_store_lease *
lease_of(const struct rueda_store_command *command)
{
    struct rueda_store_list *leases = &command->session->leases;
    struct rueda_store_list *at;

    for (at = leases->next; at != leases; at = at->next) {
        struct rueda_store_lease *lease =
            RUEDA_STORE_OF(at, struct rueda_store_lease, in_session);

        if (lease->id == command->request->id)
            return lease;
    }
    return NULL;
}

/* Give the key of the request these bytes as its value. */
static rueda_status put(const struct rueda_store_command *command,
                        const void *bytes, size_t len,
                        struct rueda_store_lease *lease)
{
    const struct rueda_store_request *request = command->request;
    struct rueda_store_value *value;
    struct rueda_store_node *node;

    if (!rueda_store_has_room(command->store, request, len))
        return RUEDA_ERR_LIMIT;
    value = rueda_store_value_new(bytes, len);
    if (value == NULL)
        return RUEDA_ERR_NOMEM;
    node =
        rueda_store_node_make(command->store, request->key, request->key_bytes);
    if (node == NULL) {
        rueda_store_value_drop(value);
        return RUEDA_ERR_NOMEM;
    }
    rueda_store_node_set(command->store, node, value, lease);
    return RUEDA_OK;
}

static rueda_status run_set(const struct rueda_store_command *command,
                            struct rueda_store_reply *reply)
{
    const struct rueda_store_request *request = command->request;
    struct rueda_store_lease *lease = lease_of(command);
    rueda_status status;

    if (request->id != 0 && lease == NULL)
        return RUEDA_ERR_CLOSED;
    status = put(command, request->value, request->value_bytes, lease);
    if (status == RUEDA_OK)
        reply->revision = command->store->stats.revision;
    return status;
}

static rueda_status run_cas(const struct rueda_store_command *command,
                            struct rueda_store_reply *reply)
{
    const struct rueda_store_node *node = node_of(command);
    uint64_t revision = node != NULL ? node->revision : 0;

    if (revision != command->request->revision) {
        rueda_store_node_show(node, reply);
        return RUEDA_ERR_MISMATCH;
    }
    return run_set(command, reply);
}

static rueda_status run_add(const struct rueda_store_command *command,
                            struct rueda_store_reply *reply)
{
    const struct rueda_store_node *node = node_of(command);
    unsigned char bytes[COUNTER_BYTES];
    struct rueda_store_lease *lease = NULL;
    int64_t sum = 0;
    rueda_status status;

    if (node != NULL && node->revision != 0) {
        if (node->value->bytes != COUNTER_BYTES)
            return RUEDA_ERR_INVALID;
        sum = (int64_t)rueda_get_u64(node->value->data);
        lease = node->lease;
    }
    if (__builtin_add_overflow(sum, command->request->count, &sum))
        return RUEDA_ERR_LIMIT;
    rueda_put_u64(bytes, (uint64_t)sum);
    status = put(command, bytes, sizeof(bytes), lease);
    if (status != RUEDA_OK)
        return status;
    reply->revision = command->store->stats.revision;
    reply->count = sum;
    return RUEDA_OK;
}

static rueda_status run_delete(const struct rueda_store_command *command,
                               struct rueda_store_reply *reply)
{
    struct rueda_store_node *node = node_of(command);

    if (node == NULL || node->revision == 0)
        return RUEDA_OK;
    rueda_store_node_delete(command->store, node);
    reply->revision = command->store->stats.revision;
    return RUEDA_OK;
}

/* ---- Watches ------------------------------------------------------------ */

static struct rueda_store_watch *
watch_find(const struct rueda_store_session *session, uint64_t number)
{
    const struct rueda_store_list *watches = &session->watches;
    struct rueda_store_list *at;

    for (at = watches->next; at != watches; at = at->next) {
        struct rueda_store_watch *watch =
            RUEDA_STORE_OF(at, struct rueda_store_watch, in_session);

        if (watch->number == number)
            return watch;
    }
    return NULL;
}

static rueda_status run_watch(const struct rueda_store_command *command,
                              struct rueda_store_reply *reply)
{
    const struct rueda_store_request *request = command->request;
    struct rueda_store *store = command->store;
    struct rueda_store_watch *watch;

    if (watch_find(command->session, request->number) != NULL)
        return RUEDA_ERR_INVALID;
    if (command->session->watch_count >= RUEDA_STORE_MOST_WATCHES)
        return RUEDA_ERR_LIMIT;
    watch = malloc(sizeof(*watch) + request->key_bytes);
    if (watch == NULL)
        return RUEDA_ERR_NOMEM;
    watch->session = command->session;
    watch->number = request->number;
    watch->prefix_bytes = request->key_bytes;
    if (request->key_bytes > 0)
        memcpy(watch->prefix, request->key, request->key_bytes);
    rueda_store_list_append(&store->watches, &watch->in_watches);
    rueda_store_list_append(&command->session->watches, &watch->in_session);
    command->session->watch_count++;
    store->stats.watches++;

    rueda_store_catch_up(store, watch, request->revision);
    reply->revision = store->stats.revision;
    return RUEDA_OK;
}

/* One that is not there is no error: a lost connection has ended it. */
static rueda_status run_unwatch(const struct rueda_store_command *command,
                                struct rueda_store_reply *reply)
{
    struct rueda_store_watch *watch =
        watch_find(command->session, command->request->id);

    (void)reply;
    if (watch != NULL)
        rueda_store_watch_free(command->store, watch);
    return RUEDA_OK;
}

/* ---- Leases ------------------------------------------------------------- */

static rueda_status run_lease_open(const struct rueda_store_command *command,
                                   struct rueda_store_reply *reply)
{
    struct rueda_store *store = command->store;
    struct rueda_store_lease *lease;

    if (command->request->time_ms == 0)
        return RUEDA_ERR_INVALID;
    if (command->session->lease_count >= RUEDA_STORE_MOST_LEASES)
        return RUEDA_ERR_LIMIT;
    lease = malloc(sizeof(*lease));
    if (lease == NULL)
        return RUEDA_ERR_NOMEM;
    if (rueda_store_timers_add(&store->timers, &lease->timer,
                               RUEDA_STORE_TIMER_LEASE) != RUEDA_OK) {
        free(lease);
        return RUEDA_ERR_NOMEM;
    }
    lease->id = ++store->last_lease;
    lease->time_ms = command->request->time_ms;
    lease->session = command->session;
    rueda_store_list_init(&lease->nodes);
    rueda_store_list_append(&command->session->leases, &lease->in_session);
    command->session->lease_count++;
    store->stats.leases++;
    rueda_store_timers_set(&store->timers, &lease->timer, command->now_ns,
                           lease->time_ms);
    reply->id = lease->id;
    return RUEDA_OK;
}

static rueda_status run_lease_renew(const struct rueda_store_command *command,
                                    struct rueda_store_reply *reply)
{
    struct rueda_store_lease *lease = lease_of(command);

    if (lease == NULL)
        return RUEDA_ERR_CLOSED;
    rueda_store_timers_set(&command->store->timers, &lease->timer,
                           command->now_ns, lease->time_ms);
    reply->id = lease->id;
    return RUEDA_OK;
}

static rueda_status run_lease_close(const struct rueda_store_command *command,
                                    struct rueda_store_reply *reply)
{
    struct rueda_store_lease *lease = lease_of(command);

    if (lease == NULL)
        return RUEDA_ERR_CLOSED;
    reply->id = lease->id;
    rueda_store_lease_end(command->store, lease);
    return RUEDA_OK;
}

/* ---- Wills -------------------------------------------------------------- */

static rueda_status run_will(const struct rueda_store_command *command,
                             struct rueda_store_reply *reply)
{
    const struct rueda_store_request *request = command->request;
    struct rueda_store *store = command->store;
    struct rueda_store_will *will = malloc(sizeof(*will) + request->key_bytes);

    (void)reply;
    if (will == NULL)
        return RUEDA_ERR_NOMEM;
    will->value = rueda_store_value_new(request->value, request->value_bytes);
    if (will->value == NULL)
        goto err_free_will;
    if (rueda_store_timers_add(&store->timers, &will->timer,
                               RUEDA_STORE_TIMER_WILL) != RUEDA_OK)
        goto err_drop_value;
    will->session = command->session;
    will->time_ms = request->time_ms;
    will->key_bytes = request->key_bytes;
    memcpy(will->key, request->key, request->key_bytes);
    rueda_store_will_revoke(store, command->session);
    command->session->will = will;
    return RUEDA_OK;

err_drop_value:
    rueda_store_value_drop(will->value);
err_free_will:
    free(will);
    return RUEDA_ERR_NOMEM;
}

/* ---- All of them -------------------------------------------------------- */

struct op {
    rueda_status (*run)(const struct rueda_store_command *command,
                        struct rueda_store_reply *reply);
    bool is_change;
};

static const struct op ops[] = {
    [RUEDA_STORE_BYE] = {run_bye, false},
    [RUEDA_STORE_GET] = {run_get, false},
    [RUEDA_STORE_WAIT] = {run_wait, false},
    [RUEDA_STORE_SET] = {run_set, true},
    [RUEDA_STORE_CAS] = {run_cas, true},
    [RUEDA_STORE_ADD] = {run_add, true},
    [RUEDA_STORE_DELETE] = {run_delete, true},
    [RUEDA_STORE_WATCH] = {run_watch, false},
    [RUEDA_STORE_UNWATCH] = {run_unwatch, false},
    [RUEDA_STORE_LEASE_OPEN] = {run_lease_open, true},
    [RUEDA_STORE_LEASE_RENEW] = {run_lease_renew, false},
    [RUEDA_STORE_LEASE_CLOSE] = {run_lease_close, true},
    [RUEDA_STORE_WILL] = {run_will, false},
};

rueda_status rueda_store_run(const struct rueda_store_command *command,
                             struct rueda_store_reply *reply)
{
    return ops[command->request->kind].run(command, reply);
}

bool rueda_store_is_change(rueda_store_kind kind)
{
    return ops[kind].is_change;
}
