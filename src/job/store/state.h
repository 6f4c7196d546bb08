/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the store, shared only by store.c, keys.c, session.c and ops.c.
 *
 *      session 1---* wait    *---1 node     a node is a key that is there
 *              1---* watch                  (its revision is not 0), or that
 *              1---* lease   1---* node     a session waits for, or both
 *
 * The files, each on top of those before: table.c and timers.c know nothing of
 * the store; keys.c changes nodes and notifies their watchers; session.c begins
 * and ends sessions; ops.c has one function for each kind of request; store.c
 * has the functions that store.h declares.
 */
#ifndef RUEDA_JOB_STORE_STATE_H
#define RUEDA_JOB_STORE_STATE_H

#include <stdbool.h>

#include "job/store/list.h"
#include "job/store/store.h"
#include "job/store/table.h"
#include "job/store/timers.h"

struct rueda_store_value {
    size_t refs;
    size_t bytes;
    unsigned char data[];
};

struct rueda_store_node {
    struct rueda_store_link link; /* in nodes */
    uint64_t revision;            /* 0: not there */
    struct rueda_store_value *value;
    struct rueda_store_lease *lease;
    struct rueda_store_list in_changes;
    struct rueda_store_list in_lease;
    struct rueda_store_list waits; /* in the order of their coming */
    size_t key_bytes;
    unsigned char key[];
};

struct rueda_store_wait {
    struct rueda_store_timer timer;
    struct rueda_store_list in_node;
    struct rueda_store_list in_session;
    struct rueda_store_session *session;
    struct rueda_store_node *node;
    uint64_t number;
    uint64_t above; /* the revision that is not enough */
};

struct rueda_store_watch {
    struct rueda_store_list in_watches;
    struct rueda_store_list in_session;
    struct rueda_store_session *session;
    uint64_t number;
    size_t prefix_bytes;
    unsigned char prefix[];
};

struct rueda_store_lease {
    struct rueda_store_timer timer;
    struct rueda_store_list in_session;
    struct rueda_store_session *session;
    struct rueda_store_list nodes; /* in the order in which they were set */
    uint64_t id;
    uint32_t time_ms;
};

struct rueda_store_will {
    struct rueda_store_timer timer; /* set while there is no connection */
    struct rueda_store_session *session;
    struct rueda_store_value *value;
    uint32_t time_ms;
    size_t key_bytes;
    unsigned char key[];
};

/* What was answered to a change. */
struct rueda_store_record {
    uint64_t number;
    uint64_t revision;
    uint64_t id;
    int64_t count;
    rueda_store_kind kind;
    rueda_status status;
};

struct rueda_store_session {
    struct rueda_store_link by_id;
    struct rueda_store_link by_connection;
    struct rueda_store_timer timer; /* the grace */
    struct rueda_store_list in_sessions;
    unsigned char id[RUEDA_STORE_SESSION_BYTES];
    uint64_t connection;
    bool is_attached; /* only then waits and watches are not empty */
    struct rueda_store_list waits;
    struct rueda_store_list watches;
    struct rueda_store_list leases;
    struct rueda_store_will *will; /* or NULL */
    int wait_count;
    int watch_count;
    int lease_count;
    uint64_t newest; /* the highest number of a change */
    uint64_t record_count;
    struct rueda_store_record records[RUEDA_STORE_REMEMBERED];
};

struct rueda_store {
    struct rueda_store_options options;
    bool is_closing; /* nothing is sent any more */
    struct rueda_store_stats stats;
    uint64_t last_lease;
    struct rueda_store_table nodes;
    struct rueda_store_table by_id; /* sessions */
    struct rueda_store_table by_connection;
    struct rueda_store_timers timers;
    struct rueda_store_list sessions;
    struct rueda_store_list changes; /* nodes that are there, by revision */
    struct rueda_store_list watches; /* in the order of their coming */
};

/* ---- keys.c ------------------------------------------------------------- */

void rueda_store_send(struct rueda_store *store, uint64_t connection,
                      const struct rueda_store_reply *reply);

/* A copy, with one reference; NULL: no memory. */
struct rueda_store_value *rueda_store_value_new(const void *bytes, size_t len);

struct rueda_store_node *rueda_store_node_find(const struct rueda_store *store,
                                               const void *key, size_t bytes);

/* The node of this key, which may be new and not there. NULL: no memory. */
struct rueda_store_node *rueda_store_node_make(struct rueda_store *store,
                                               const void *key, size_t bytes);

/* Free the node if it has no value and no session waits for it. */
void rueda_store_node_settle(struct rueda_store *store,
                             struct rueda_store_node *node);

/* Revision and value of a node go into a reply; NULL: not there. */
void rueda_store_node_show(const struct rueda_store_node *node,
                           struct rueda_store_reply *reply);

/* Would a value of this size for this key stay within the limits? */
bool rueda_store_has_room(const struct rueda_store *store,
                          const struct rueda_store_request *request,
                          size_t value_bytes);

/* Give the node a value, which is taken, and a lease or NULL; notify all
 * watchers. The caller has checked that there is room. */
void rueda_store_node_set(struct rueda_store *store,
                          struct rueda_store_node *node,
                          struct rueda_store_value *value,
                          struct rueda_store_lease *lease);

/* The node is there; it is not any more, and may be freed. */
void rueda_store_node_delete(struct rueda_store *store,
                             struct rueda_store_node *node);

/* Send a watch the keys that changed after a revision. */
void rueda_store_catch_up(struct rueda_store *store,
                          const struct rueda_store_watch *watch,
                          uint64_t after);

void rueda_store_wait_free(struct rueda_store *store,
                           struct rueda_store_wait *wait);

/* ---- session.c ---------------------------------------------------------- */

/* The session of a connection, or NULL. */
struct rueda_store_session *
rueda_store_session_on(const struct rueda_store *store, uint64_t connection);

/* ATTACH. */
rueda_status
rueda_store_session_attach(struct rueda_store *store, uint64_t connection,
                           const struct rueda_store_request *request,
                           struct rueda_store_reply *reply);

/* Part a session from its connection, with all that does not outlive it. */
void rueda_store_session_part(struct rueda_store *store,
                              struct rueda_store_session *session);

/* Carry the session's will out, if it has one, or revoke it. */
void rueda_store_will_execute(struct rueda_store *store,
                              struct rueda_store_session *session);
void rueda_store_will_revoke(struct rueda_store *store,
                             struct rueda_store_session *session);

/* Free it, with all that it has. */
void rueda_store_session_end(struct rueda_store *store,
                             struct rueda_store_session *session);

void rueda_store_watch_free(struct rueda_store *store,
                            struct rueda_store_watch *watch);

/* Delete its keys and free it. */
void rueda_store_lease_end(struct rueda_store *store,
                           struct rueda_store_lease *lease);

/* ---- ops.c -------------------------------------------------------------- */

struct rueda_store_command {
    struct rueda_store *store;
    struct rueda_store_session *session;
    const struct rueda_store_request *request;
    int64_t now_ns;
};

/* Carry out a request that has passed the check and is no ATTACH. reply has
 * kind and number; the status is returned. RUEDA_IN_PROGRESS: there will be a
 * reply later. */
rueda_status rueda_store_run(const struct rueda_store_command *command,
                             struct rueda_store_reply *reply);

/* Does it change something, so that it must not be carried out twice? */
bool rueda_store_is_change(rueda_store_kind kind);

#endif /* RUEDA_JOB_STORE_STATE_H */
