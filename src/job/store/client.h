/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's connection with the job's store (store.h). Calls block until their
 * deadline at most. A connection that breaks is made again within the call
 * that notices it, under the same session, and the request is repeated: the
 * store carries it out once. One thread at a time.
 */
#ifndef RUEDA_JOB_STORE_CLIENT_H
#define RUEDA_JOB_STORE_CLIENT_H

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/text.h"
#include "job/store/store.h"
#include "os/tcp.h"

struct rueda_client_args {
    int rank;
    int size;

    /* Ways to the store, tried in this order: a Unix socket's name, or NULL,
     * and addresses for TCP. All are borrowed until the client is closed. */
    const char *socket;
    const struct rueda_address *addresses;
    int address_count;

    const struct rueda_key *key; /* present or not; copied */

    /* Over TCP: questions without an answer, one a second, until the store is
     * gone. 0: 4. */
    int questions;

    /* Called for every event of a WATCH, inside another call; may be NULL. */
    void (*on_event)(void *arg, const struct rueda_store_reply *event);

    /* Called for every socket that is made, by the thread that calls, so that
     * a sleeping thread is woken by it; may be NULL. Not within close(). */
    void (*on_socket)(void *arg, int fd);
    void *arg;
};

struct rueda_client;

/* Reach the store, which may not be there yet, and attach a new session. On
 * failure error says where it was looked for and what to do. */
rueda_status rueda_client_open(const struct rueda_client_args *args,
                               int64_t deadline_ns, struct rueda_client **out,
                               struct rueda_text *error);

/*
 * Ask and wait for the answer. request->number is filled in. Returns the
 * reply's status, with the reply, whose value is borrowed until the next call;
 * or, with words in error and no reply:
 *
 *      RUEDA_ERR_TIMEOUT     the store did not answer by the deadline
 *      RUEDA_ERR_PEER_LOST   it is gone, and did not come back by then, or soon
 *      RUEDA_ERR_CLOSED      there is a new one in its place, which knows
 *                            nothing of before; ask again if that will do
 *      RUEDA_ERR_AUTH, RUEDA_ERR_VERSION, RUEDA_ERR_MISMATCH
 *                            the one in its place is not of this job
 */
rueda_status rueda_client_ask(struct rueda_client *client,
                              struct rueda_store_request *request,
                              int64_t deadline_ns,
                              struct rueda_store_reply *out_reply,
                              struct rueda_text *error);

/*
 * Ask without waiting for the answer: the request is sent at once, or by the
 * next rueda_client_reconnect() that has a connection, and those that follow
 * take the answer. Key and value are borrowed until rueda_client_posted()
 * leaves RUEDA_IN_PROGRESS or the client is closed. There is one such request
 * at a time: the client forgets an older one that has no answer yet. Not for
 * WATCH and UNWATCH. Does not wait.
 */
void rueda_client_post(struct rueda_client *client,
                       const struct rueda_store_request *request);

/* What became of it: RUEDA_IN_PROGRESS; RUEDA_OK once the store has answered,
 * whatever it says, and if there was none; else why no answer will come. */
rueda_status rueda_client_posted(const struct rueda_client *client);

/*
 * Take the events that have come. If the connection is broken it is made again,
 * one step with each call. Does not wait.
 *
 *      RUEDA_OK              we are connected
 *      RUEDA_IN_PROGRESS     not now. A process listens there (it may be
 *                            stopped), or an address that answers is still
 *                            sought; call again when a socket tells, or soon
 *      RUEDA_ERR_CLOSED      the store was closed in good order
 *      RUEDA_ERR_PEER_LOST   it is gone: no process listens there any more, or
 * there was no way for as many seconds as it is given questions; asked again,
 * the answer stays
 */
rueda_status rueda_client_reconnect(struct rueda_client *client);

/* From now on requests are small: one that the store's system does not take for
 * as many seconds as it is given questions means that it is gone, too. */
void rueda_client_hurry(struct rueda_client *client);

/* Answer no more questions: the one that waits, if this is called by on_event,
 * and those that follow return RUEDA_ERR_CANCELLED with these words. */
void rueda_client_abandon(struct rueda_client *client, const char *words);

/* Readable when there may be events, or when a connection in the making goes
 * on; -1: there is none. Changes when it is made again. */
int rueda_client_fd(const struct rueda_client *client);

/* Leave this store without a word and begin a new session with the next call,
 * at the one that is there then. RUEDA_ERR_IO: no random numbers. */
rueda_status rueda_client_renew(struct rueda_client *client);

/* End the session in good order, if the store can be reached, and free. NULL
 * is allowed. */
void rueda_client_close(struct rueda_client *client);

#endif /* RUEDA_JOB_STORE_CLIENT_H */
