/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: keys and values through which the ranks of a job find one another,
 * agree, and notice that one of them has gone. A pure state machine: requests
 * go in, replies come out through a callback, the time is told to it. It has
 * no clock, no I/O and no thread, so that rank 0's service, the launcher's loop
 * and the simulator drive the same code.
 *
 * A connection is a number of the driver's. Its first request is ATTACH, which
 * names a session: 16 random bytes that a client chooses once. When the
 * connection is lost the session stays for a grace, and the client attaches to
 * it again over another connection. A session has an end: by BYE, or when the
 * grace is over.
 *
 *      request       uses                           its reply, beside status
 *      ATTACH        key: the session               revision of the store;
 *                                                   count 1: it was there
 *      BYE
 *      GET           key                            revision, value
 *      WAIT          key, revision, time_ms         revision, value
 *      SET           key, value, lease id or 0      revision
 *      CAS           key, value, lease, revision    revision; if it did not
 *                                                   match also value
 *      ADD           key, count                     revision; count: the sum
 *      DELETE        key                            revision
 *      WATCH         key: a prefix, revision        revision of the store
 *      UNWATCH       id: the number of the WATCH
 *      LEASE_OPEN    time_ms                        id
 *      LEASE_RENEW   id
 *      LEASE_CLOSE   id
 *      WILL          key, value, time_ms
 *
 * Revisions. Every change of a key, a deletion too, takes the next number of
 * one counter, from 1. Revision 0 stands for a key that is not there: GET and
 * DELETE of such a key succeed with it, CAS demands it to make a key.
 *
 * WAIT is a GET that is answered once the key is there with a revision above
 * the given one; RUEDA_ERR_TIMEOUT after time_ms, if that is not 0.
 *
 * ADD reads the value as a signed number of 8 bytes, little-endian; a key that
 * is not there counts as 0. RUEDA_ERR_INVALID if the value has another length,
 * RUEDA_ERR_LIMIT if the sum does not fit. It leaves the key's lease alone.
 *
 * WATCH sends an event for every change of a key that begins with the prefix,
 * in the order of revisions, under the number of the WATCH. Keys that are there
 * and changed after the given revision come first, as EVENT_SET, then the
 * reply, then what happens later. So the reply closes a complete list if the
 * revision was 0; a client that was away and must notice deletions asks so.
 *
 * A lease is a promise to renew it within time_ms. When it is broken, closed,
 * or the session ends, the keys under the lease are deleted. SET and CAS put a
 * key under a lease of their session, or under none; RUEDA_ERR_CLOSED if the
 * session has no such lease, or no longer.
 *
 * WILL is what a session leaves when it is lost: if its connection is, and it
 * is not attached again within time_ms, the key is made with the value, unless
 * it is there, or there is no room. A later WILL takes the place of the one
 * before; BYE revokes it. Where the connection was cut, the end of the session
 * is awaited.
 *
 * Order. All that a request brings about is sent before its own reply: first
 * to sessions that WAIT, in the order of their requests, then to those that
 * WATCH.
 *
 * Once only. Within a session the numbers of SET, CAS, ADD, DELETE, LEASE_OPEN
 * and LEASE_CLOSE rise. One that comes again is not carried out again, and is
 * answered as before; only a CAS that did not match is answered with what is
 * there now. The last RUEDA_STORE_REMEMBERED are known, so a client has no more
 * in flight; RUEDA_ERR_INVALID for older ones. The others simply run again. A
 * WAIT or WATCH does not outlive its connection: the client repeats it.
 *
 * A store belongs to one thread at a time.
 */
#ifndef RUEDA_JOB_STORE_H
#define RUEDA_JOB_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

#define RUEDA_STORE_SESSION_BYTES 16
#define RUEDA_STORE_KEY_BYTES     255
#define RUEDA_STORE_VALUE_BYTES   (16u << 20)
#define RUEDA_STORE_WILL_BYTES    4096

/* What goes beyond these is refused with RUEDA_ERR_LIMIT; the last four are
 * for each session. */
#define RUEDA_STORE_MOST_KEYS     100000
#define RUEDA_STORE_MOST_SESSIONS 16384
#define RUEDA_STORE_MOST_WAITS    256
#define RUEDA_STORE_MOST_WATCHES  32
#define RUEDA_STORE_MOST_LEASES   16
#define RUEDA_STORE_REMEMBERED    64

#define RUEDA_STORE_DEFAULT_BYTES    ((uint64_t)1 << 30)
#define RUEDA_STORE_DEFAULT_GRACE_MS 10000

/* Name, number, least and most bytes of a key, most bytes of a value. */
#define RUEDA_STORE_KIND_MAP(X)                                                \
    X(ATTACH, 1, RUEDA_STORE_SESSION_BYTES, RUEDA_STORE_SESSION_BYTES, 0)      \
    X(BYE, 2, 0, 0, 0)                                                         \
    X(GET, 3, 1, RUEDA_STORE_KEY_BYTES, 0)                                     \
    X(WAIT, 4, 1, RUEDA_STORE_KEY_BYTES, 0)                                    \
    X(SET, 5, 1, RUEDA_STORE_KEY_BYTES, RUEDA_STORE_VALUE_BYTES)               \
    X(CAS, 6, 1, RUEDA_STORE_KEY_BYTES, RUEDA_STORE_VALUE_BYTES)               \
    X(ADD, 7, 1, RUEDA_STORE_KEY_BYTES, 0)                                     \
    X(DELETE, 8, 1, RUEDA_STORE_KEY_BYTES, 0)                                  \
    X(WATCH, 9, 0, RUEDA_STORE_KEY_BYTES, 0)                                   \
    X(UNWATCH, 10, 0, 0, 0)                                                    \
    X(LEASE_OPEN, 11, 0, 0, 0)                                                 \
    X(LEASE_RENEW, 12, 0, 0, 0)                                                \
    X(LEASE_CLOSE, 13, 0, 0, 0)                                                \
    X(WILL, 14, 1, RUEDA_STORE_KEY_BYTES, RUEDA_STORE_WILL_BYTES)

typedef enum rueda_store_kind {
#define X(name, number, key_least, key_most, value_most)                       \
    RUEDA_STORE_##name = (number),
    RUEDA_STORE_KIND_MAP(X)
#undef X
    /* Replies that answer no request. */
    RUEDA_STORE_EVENT_SET = 32,
    RUEDA_STORE_EVENT_DELETE = 33,
} rueda_store_kind;

/* Fields that a kind does not use are not looked at. */
struct rueda_store_request {
    rueda_store_kind kind;
    uint64_t number; /* chosen by the client, not 0 */
    const void *key;
    size_t key_bytes;
    const void *value;
    size_t value_bytes;
    uint64_t revision;
    uint64_t id;
    int64_t count;
    uint32_t time_ms;
};

/* A value of the store's, shared with replies that are still to be sent. */
struct rueda_store_value;

struct rueda_store_reply {
    rueda_store_kind kind; /* that of the request, or an event */
    uint64_t number;       /* that of the request; of the WATCH for an event */
    rueda_status status;
    uint64_t revision;
    uint64_t id;
    int64_t count;
    const void *key; /* of events */
    size_t key_bytes;
    const void *value;
    size_t value_bytes;
    /* The memory of value, or NULL if there is none: a driver may keep it
     * until all is sent. A client, which has decoded the reply, has none. */
    struct rueda_store_value *owner;
};

/*
 * Where replies go. The reply and all that it points to is borrowed for the
 * call, but for the value (see rueda_store_value_keep). Must not call the
 * store. A driver bounds what it queues for a connection: it closes one that
 * does not read, whose client then comes back and asks again.
 *
 * A BYE with number 0 and RUEDA_ERR_CLOSED says that the session has been taken
 * over by another connection; the driver closes this one. With RUEDA_OK it is a
 * driver's own, which so tells clients that the store is closed in good order.
 */
typedef void (*rueda_store_emit)(void *arg, uint64_t connection,
                                 const struct rueda_store_reply *reply);

struct rueda_store_options {
    uint64_t seed;        /* of the hash of keys: any number */
    uint64_t most_bytes;  /* of all keys and values; 0: the default */
    uint32_t grace_ms;    /* of a session without connection; 0: the default */
    uint32_t patience_ms; /* the same where it was cut; 0: the grace */
    rueda_store_emit emit;
    void *arg; /* borrowed until the store is closed */
};

struct rueda_store_stats {
    uint64_t revision;
    uint64_t bytes;
    size_t keys;
    size_t sessions;
    size_t waits;
    size_t watches;
    size_t leases;
};

struct rueda_store;

/* options is copied. RUEDA_ERR_NOMEM, or RUEDA_ERR_INVALID without an emit. */
rueda_status rueda_store_open(const struct rueda_store_options *options,
                              struct rueda_store **out_store);

/* Free everything but the values that are kept; sends nothing. NULL is
 * allowed. */
void rueda_store_close(struct rueda_store *store);

/*
 * Carry out a request that came over connection. It is borrowed for the call,
 * its bytes are copied where they stay. Every request has one reply, in this
 * call or, for a WAIT, in a later one; what cannot be done has a reply with an
 * error and changes nothing:
 *
 *      RUEDA_ERR_INVALID   it makes no sense, or its number is not above that
 *                          of earlier changes and no longer remembered
 *      RUEDA_ERR_LIMIT     one of the limits above
 *      RUEDA_ERR_NOMEM     no memory
 *      RUEDA_ERR_CLOSED    no session on this connection; no such lease
 *      RUEDA_ERR_MISMATCH  CAS: the key has another revision
 *      RUEDA_ERR_TIMEOUT   WAIT
 *
 * Nothing expires here: a driver that was held up hands in all that has
 * arrived before it ticks, so that renewals which waited for it still count.
 */
void rueda_store_ask(struct rueda_store *store, uint64_t connection,
                     const struct rueda_store_request *request, int64_t now_ns);

/*
 * The connection is lost. Its session has a grace from now on.
 *
 * is_cut: something between the two ends has cut it, and not the client's end;
 * the client may not have noticed yet. A session that has left a will has the
 * longer patience then, and its will has to wait as long.
 */
void rueda_store_detach(struct rueda_store *store, uint64_t connection,
                        bool is_cut, int64_t now_ns);

/* End what is due: waits, leases, sessions, in the order of their time, then
 * of its setting. */
void rueda_store_tick(struct rueda_store *store, int64_t now_ns);

/* When the next tick has something to do; INT64_MAX: never, as it looks now. */
int64_t rueda_store_next_ns(const struct rueda_store *store);

void rueda_store_stats(const struct rueda_store *store,
                       struct rueda_store_stats *out_stats);

/* Is the request of a known kind, with a number, and are its lengths right for
 * that kind? Looks at no byte of key and value. RUEDA_OK, RUEDA_ERR_INVALID,
 * or RUEDA_ERR_LIMIT for what is too long. */
rueda_status
rueda_store_request_check(const struct rueda_store_request *request);

/* Keep the value of a reply beyond the callback, until it is dropped, which may
 * be after the store's close; both on the store's thread. Drop takes NULL. */
void rueda_store_value_keep(struct rueda_store_value *value);
void rueda_store_value_drop(struct rueda_store_value *value);

#endif /* RUEDA_JOB_STORE_H */
