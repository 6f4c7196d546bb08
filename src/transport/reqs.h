/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of requests, for transports: first in, first out, linked through the
 * requests themselves. Zero is an empty queue. No locks, no memory of its own.
 */
#ifndef RUEDA_TRANSPORT_REQS_H
#define RUEDA_TRANSPORT_REQS_H

#include "transport/transport.h"

struct rueda_reqs {
    struct rueda_req *head;
    struct rueda_req *tail; /* means nothing while head is NULL */
};

/* A send's buffer is kept in the same field and never written through. */
static inline void rueda_req_begin(struct rueda_req *req, struct rueda_tag tag,
                                   const void *buf, size_t len)
{
    req->status = RUEDA_IN_PROGRESS;
    req->done = 0;
    req->next = NULL;
    req->tag = tag;
    req->buf = (char *)buf;
    req->len = len;
    req->channel = 0;
}

static inline void rueda_reqs_push(struct rueda_reqs *reqs,
                                   struct rueda_req *req)
{
    req->next = NULL;
    if (reqs->head == NULL)
        reqs->head = req;
    else
        reqs->tail->next = req;
    reqs->tail = req;
}

/* The oldest request, or NULL. */
static inline struct rueda_req *rueda_reqs_pop(struct rueda_reqs *reqs)
{
    struct rueda_req *req = reqs->head;

    if (req != NULL)
        reqs->head = req->next;
    return req;
}

/* Takes out the oldest request of this tag, or returns NULL. */
static inline struct rueda_req *rueda_reqs_take(struct rueda_reqs *reqs,
                                                struct rueda_tag tag)
{
    struct rueda_req *before = NULL;
    struct rueda_req *req = reqs->head;

    while (req != NULL && !rueda_tag_equal(req->tag, tag)) {
        before = req;
        req = req->next;
    }
    if (req == NULL)
        return NULL;
    if (before == NULL)
        reqs->head = req->next;
    else
        before->next = req->next;
    if (reqs->tail == req)
        reqs->tail = before;
    return req;
}

/* Ends all of them with status and empties the queue. */
static inline void rueda_reqs_end(struct rueda_reqs *reqs, rueda_status status)
{
    struct rueda_req *req = rueda_reqs_pop(reqs);

    while (req != NULL) {
        req->status = status;
        req = rueda_reqs_pop(reqs);
    }
}

#endif /* RUEDA_TRANSPORT_REQS_H */
