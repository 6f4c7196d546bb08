/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the store: arrays that are searched from end to end. They are kept
 * in the order of coming, so order is checked too. Functions are named for what
 * has happened in the store; each reads what the store must have said of it.
 */
#ifndef RUEDA_TESTS_SUPPORT_STORE_MODEL_H
#define RUEDA_TESTS_SUPPORT_STORE_MODEL_H

#include "support/recorded_store.h"

#define KEYS       12
#define SESSIONS   5
#define MOST       1024 /* of anything in the model */
#define MOST_BYTES 90
#define REPEATABLE 80 /* a little more than the store remembers */

extern const char *const model_names[KEYS];

/* What is due, or INT64_MAX; of those at once, the one set first. */
struct due {
    int64_t ns;
    int order;
};

struct key {
    uint64_t revision;
    unsigned char value[16];
    size_t bytes;
    uint64_t lease;
    int bound; /* when it came under its lease */
};

struct wait {
    int session;
    int key;
    uint64_t number;
    uint64_t above;
    struct due due;
};

struct watch {
    int session;
    uint64_t number;
    const char *prefix;
};

struct lease {
    int session;
    uint64_t id;
    uint32_t time_ms;
    struct due due;
};

/* A change and its answer. */
struct past {
    struct rueda_store_request request;
    struct rueda_store_reply reply;
};

struct will {
    bool is_there;
    int key;
    unsigned char value[16];
    size_t bytes;
    uint32_t time_ms;
    struct due due; /* while its session is not attached */
};

struct session {
    bool is_there;
    bool is_attached;
    struct will will;
    uint64_t connection;
    struct due due;
    uint64_t number;
    int past_count;
    struct past past[REPEATABLE]; /* the last ones, oldest first */
};

#define REMOVE(array, count, i)                                                \
    memmove(&(array)[i], &(array)[(i) + 1],                                    \
            (size_t)(--(count) - (i)) * sizeof((array)[0]))

struct model {
    struct recorded_store *recorded;
    uint32_t seed;
    uint64_t revision;
    uint64_t last_lease;
    uint64_t last_connection;
    int order;
    struct key keys[KEYS];
    struct session sessions[SESSIONS];
    struct wait waits[MOST];
    int wait_count;
    struct watch watches[MOST];
    int watch_count;
    struct lease leases[MOST];
    int lease_count;
    int seen[RUEDA_STORE_EVENT_DELETE + 1];
    int failed[-RUEDA_ERR_STALLED + 1];
    int repeated;
    int wills[3]; /* carried out, too late, without room */
};

/* ---- What the store must have said -------------------------------------- */

void model_heard(struct model *model, int session,
                 const struct rueda_store_reply *expected);
void model_show(const struct key *key, struct rueda_store_reply *reply);
struct due model_due_in(struct model *model, uint32_t time_ms);
void model_deleted(struct model *model, int key);
uint64_t model_total_bytes(const struct model *model);
void model_parted(struct model *model, int session);
void model_session_ended(struct model *model, int session);
/* What is due next: *out_list is 0 for a wait, 1 a lease, 2 a session, 3 a
 * will. */
struct due model_next_due(const struct model *model, int *out_list, int *out_i);
void model_ticked(struct model *model);
/* Keys of the test are pointers into model_names. */
int model_key_of(const struct rueda_store_request *request);
rueda_status model_added(struct model *model,
                         const struct rueda_store_request *request,
                         struct rueda_store_reply *reply);
rueda_status model_was_set(struct model *model, int session,
                           const struct rueda_store_request *request,
                           struct rueda_store_reply *reply);
rueda_status model_lease_changed(struct model *model, int session,
                                 const struct rueda_store_request *request,
                                 struct rueda_store_reply *reply);
rueda_status model_will_left(struct model *model, int session,
                             const struct rueda_store_request *request);
rueda_status model_waited(struct model *model, int session,
                          const struct rueda_store_request *request,
                          struct rueda_store_reply *reply);
rueda_status model_watched(struct model *model, int session,
                           const struct rueda_store_request *request,
                           struct rueda_store_reply *reply);

#endif /* RUEDA_TESTS_SUPPORT_STORE_MODEL_H */
