/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of a link, all guarded by its lock. Side 0 and side 1 are its two
 * ends; a request is in one list at a time.
 *
 *     sends[s]   posted by side s, no receive yet
 *     recvs[s]   posted by side s, no send yet
 *     ended[s]   of side s, ended by the other side
 *
 * For one tag, either the sends of a side or the receives of the other are
 * empty, so the first of the list with an equal tag is the right one.
 *
 * The owner of a request reads its status whenever it likes, without the lock.
 * So the other side never writes it: it leaves the outcome in the request's
 * field `channel`, and the owner carries it over when it next looks.
 */
#define RUEDA_LOG_TAG "loop"

#include "transport/loop/loop.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "transport/reqs.h"

struct link {
    pthread_mutex_t lock; /* guards everything below */
    struct rueda_reqs sends[2];
    struct rueda_reqs recvs[2];
    struct rueda_reqs ended[2];
    bool is_closed[2];
};

struct loop_ep {
    struct rueda_ep super;
    struct link *link; /* freed by the side that closes last */
    int side;
};

struct rueda_loop_hub {
    int size;
    pthread_mutex_t lock; /* guards what follows */
    int holders;
    bool *is_gone;             /* [size] */
    struct rueda_ep **unasked; /* [size * size] of rank * size + peer: ends
                                  that the rank has not asked for yet */
};

/* ---- Requests -------------------------------------------------------- */

/* The request is over, for the thread that owns it. */
static void end(struct rueda_req *req, rueda_status status)
{
    req->done = status == RUEDA_OK ? req->len : 0;
    req->status = status;
}

/* The request is over; its owner, the other side, is still to learn it. */
static void end_remote(struct loop_ep *ep, struct rueda_req *req,
                       rueda_status status)
{
    req->channel = status;
    rueda_reqs_push(&ep->link->ended[!ep->side], req);
}

/* Moves the message; returns how the receive ends. The send ends well. */
static rueda_status deliver(const struct rueda_req *send,
                            const struct rueda_req *recv)
{
    if (send->len != recv->len)
        return RUEDA_ERR_MISMATCH;
    if (send->len > 0)
        memcpy(recv->buf, send->buf, send->len);
    return RUEDA_OK;
}

static void loop_send(struct rueda_ep *super, struct rueda_tag tag,
                      const void *buf, size_t len, struct rueda_req *req)
{
    struct loop_ep *ep = (struct loop_ep *)super;
    struct link *link = ep->link;
    struct rueda_req *recv;

    rueda_req_begin(req, tag, buf, len);
    pthread_mutex_lock(&link->lock);
    if (link->is_closed[!ep->side]) {
        end(req, RUEDA_ERR_PEER_LOST);
    } else {
        recv = rueda_reqs_take(&link->recvs[!ep->side], tag);
        if (recv == NULL) {
            rueda_reqs_push(&link->sends[ep->side], req);
        } else {
            end_remote(ep, recv, deliver(req, recv));
            end(req, RUEDA_OK);
        }
    }
    pthread_mutex_unlock(&link->lock);
}

static void loop_recv(struct rueda_ep *super, struct rueda_tag tag, void *buf,
                      size_t len, struct rueda_req *req)
{
    struct loop_ep *ep = (struct loop_ep *)super;
    struct link *link = ep->link;
    struct rueda_req *send;

    rueda_req_begin(req, tag, buf, len);
    pthread_mutex_lock(&link->lock);
    if (link->is_closed[!ep->side]) {
        end(req, RUEDA_ERR_PEER_LOST);
    } else {
        send = rueda_reqs_take(&link->sends[!ep->side], tag);
        if (send == NULL) {
            rueda_reqs_push(&link->recvs[ep->side], req);
        } else {
            end(req, deliver(send, req));
            end_remote(ep, send, RUEDA_OK);
        }
    }
    pthread_mutex_unlock(&link->lock);
}

static rueda_status loop_peek(struct rueda_ep *super, struct rueda_tag tag,
                              size_t *out_len)
{
    struct loop_ep *ep = (struct loop_ep *)super;
    struct link *link = ep->link;
    rueda_status status = RUEDA_IN_PROGRESS;
    const struct rueda_req *send;

    pthread_mutex_lock(&link->lock);
    send = link->sends[!ep->side].head;
    while (send != NULL && !rueda_tag_equal(send->tag, tag))
        send = send->next;
    if (send != NULL) {
        *out_len = send->len;
        status = RUEDA_OK;
    } else if (link->is_closed[!ep->side]) {
        status = RUEDA_ERR_PEER_LOST;
    }
    pthread_mutex_unlock(&link->lock);
    return status;
}

/* Does any message that this end has not received belong to a past term? */
static bool has_stale(const struct loop_ep *ep)
{
    const struct rueda_req *send = ep->link->sends[!ep->side].head;

    while (send != NULL && !rueda_term_is_past(&ep->super.term, send->tag))
        send = send->next;
    return send != NULL;
}

/* Drops those; true if there were any. With the lock held. */
static bool drop_stale(struct loop_ep *ep)
{
    struct rueda_reqs *sends = &ep->link->sends[!ep->side];
    struct rueda_reqs kept = {NULL, NULL};
    struct rueda_req *send;

    if (!has_stale(ep))
        return false;
    while ((send = rueda_reqs_pop(sends)) != NULL)
        if (rueda_term_drops(&ep->super.term, send->tag))
            end_remote(ep, send, RUEDA_OK);
        else
            rueda_reqs_push(&kept, send);
    *sends = kept;
    return true;
}

static void loop_begin_term(struct rueda_ep *super)
{
    struct loop_ep *ep = (struct loop_ep *)super;

    pthread_mutex_lock(&ep->link->lock);
    drop_stale(ep);
    pthread_mutex_unlock(&ep->link->lock);
}

static rueda_status loop_progress(struct rueda_ep *super)
{
    struct loop_ep *ep = (struct loop_ep *)super;
    struct link *link = ep->link;
    rueda_status status = RUEDA_IN_PROGRESS;
    struct rueda_req *req;

    pthread_mutex_lock(&link->lock);
    for (req = rueda_reqs_pop(&link->ended[ep->side]); req != NULL;
         req = rueda_reqs_pop(&link->ended[ep->side])) {
        end(req, (rueda_status)req->channel);
        status = RUEDA_OK;
    }
    if (drop_stale(ep))
        status = RUEDA_OK;
    if (link->is_closed[!ep->side]) {
        rueda_reqs_end(&link->sends[ep->side], RUEDA_ERR_PEER_LOST);
        rueda_reqs_end(&link->recvs[ep->side], RUEDA_ERR_PEER_LOST);
        status = RUEDA_ERR_PEER_LOST;
    }
    pthread_mutex_unlock(&link->lock);
    return status;
}

/* With the lock held. */
static void cancel_locked(struct loop_ep *ep, rueda_status status)
{
    rueda_reqs_end(&ep->link->sends[ep->side], status);
    rueda_reqs_end(&ep->link->recvs[ep->side], status);
    rueda_reqs_end(&ep->link->ended[ep->side], status);
}

static void loop_cancel(struct rueda_ep *super, rueda_status status)
{
    struct loop_ep *ep = (struct loop_ep *)super;

    pthread_mutex_lock(&ep->link->lock);
    cancel_locked(ep, status);
    pthread_mutex_unlock(&ep->link->lock);
}

static void loop_close(struct rueda_ep *super)
{
    struct loop_ep *ep = (struct loop_ep *)super;
    struct link *link = ep->link;
    bool is_last;

    pthread_mutex_lock(&link->lock);
    cancel_locked(ep, RUEDA_ERR_PEER_LOST);
    link->is_closed[ep->side] = true;
    is_last = link->is_closed[!ep->side];
    pthread_mutex_unlock(&link->lock);

    if (is_last) {
        pthread_mutex_destroy(&link->lock);
        free(link);
    }
    free(ep);
}

static const struct rueda_transport_ops loop_ops = {
    .name = "loop",
    .memory = RUEDA_LOOP_MEMORY,
    .send = loop_send,
    .recv = loop_recv,
    .peek = loop_peek,
    .progress = loop_progress,
    .begin_term = loop_begin_term,
    .cancel = loop_cancel,
    .close = loop_close,
};

/* ---- Pairs ----------------------------------------------------------- */

static struct loop_ep *ep_new(struct link *link, int side, int peer)
{
    struct loop_ep *ep = calloc(1, sizeof(*ep));

    if (ep == NULL)
        return NULL;
    ep->super.ops = &loop_ops;
    ep->super.peer = peer;
    ep->link = link;
    ep->side = side;
    return ep;
}

static rueda_status pair_open(int rank_a, int rank_b, struct rueda_ep **out_a,
                              struct rueda_ep **out_b)
{
    struct link *link;
    struct loop_ep *a;
    struct loop_ep *b;

    link = calloc(1, sizeof(*link));
    if (link == NULL)
        goto err;
    pthread_mutex_init(&link->lock, NULL);
    a = ep_new(link, 0, rank_b);
    if (a == NULL)
        goto err_free_link;
    b = ep_new(link, 1, rank_a);
    if (b == NULL)
        goto err_free_a;

    *out_a = &a->super;
    *out_b = &b->super;
    return RUEDA_OK;

err_free_a:
    free(a);
err_free_link:
    pthread_mutex_destroy(&link->lock);
    free(link);
err:
    log_error("no memory for a link between ranks %d and %d", rank_a, rank_b);
    return RUEDA_ERR_NOMEM;
}

rueda_status rueda_loop_pair(int rank_a, int rank_b, struct rueda_ep **out_a,
                             struct rueda_ep **out_b)
{
    return pair_open(rank_a, rank_b, out_a, out_b);
}

/* ---- Hub ------------------------------------------------------------- */

rueda_status rueda_loop_hub_open(int size, struct rueda_loop_hub **out_hub)
{
    struct rueda_loop_hub *hub;

    if (size < 1)
        return RUEDA_ERR_INVALID;
    hub = calloc(1, sizeof(*hub));
    if (hub == NULL)
        goto err;
    hub->is_gone = calloc((size_t)size, sizeof(bool));
    if (hub->is_gone == NULL)
        goto err_free_hub;
    /* Most of it is never touched: a rank talks to few of its peers. */
    hub->unasked =
        calloc((size_t)size * (size_t)size, sizeof(struct rueda_ep *));
    if (hub->unasked == NULL)
        goto err_free_gone;
    hub->size = size;
    hub->holders = size;
    pthread_mutex_init(&hub->lock, NULL);
    *out_hub = hub;
    return RUEDA_OK;

err_free_gone:
    free(hub->is_gone);
err_free_hub:
    free(hub);
err:
    log_error("no memory for a hub of %d ranks", size);
    return RUEDA_ERR_NOMEM;
}

/* Closes the ends that this rank has not asked for; notifies their peers, so
 * not with the lock. */
static void close_unasked(struct rueda_loop_hub *hub, int rank)
{
    struct rueda_ep **row = hub->unasked + (size_t)rank * (size_t)hub->size;

    for (int peer = 0; peer < hub->size; peer++) {
        struct rueda_ep *ep;

        pthread_mutex_lock(&hub->lock);
        ep = row[peer];
        row[peer] = NULL;
        pthread_mutex_unlock(&hub->lock);
        if (ep != NULL)
            rueda_ep_close(ep);
    }
}

void rueda_loop_hub_leave(struct rueda_loop_hub *hub, int rank)
{
    pthread_mutex_lock(&hub->lock);
    hub->is_gone[rank] = true;
    pthread_mutex_unlock(&hub->lock);
    close_unasked(hub, rank);
}

void rueda_loop_hub_release(struct rueda_loop_hub *hub)
{
    bool is_last;

    pthread_mutex_lock(&hub->lock);
    is_last = --hub->holders == 0;
    pthread_mutex_unlock(&hub->lock);
    if (!is_last)
        return;

    /* No rank is left to be woken. */
    for (int rank = 0; rank < hub->size; rank++)
        close_unasked(hub, rank);
    pthread_mutex_destroy(&hub->lock);
    free(hub->unasked);
    free(hub->is_gone);
    free(hub);
}

/* Has the peer closed its end? */
static bool is_over(struct rueda_ep *super)
{
    struct loop_ep *ep = (struct loop_ep *)super;
    bool is_closed;

    pthread_mutex_lock(&ep->link->lock);
    is_closed = ep->link->is_closed[!ep->side];
    pthread_mutex_unlock(&ep->link->lock);
    return is_closed;
}

rueda_status rueda_loop_hub_connect(struct rueda_loop_hub *hub, int rank,
                                    int peer, struct rueda_ep **out_ep)
{
    const size_t size = (size_t)hub->size;
    struct rueda_ep *stale[2] = {NULL, NULL};
    rueda_status status = RUEDA_OK;
    struct rueda_ep **mine;
    struct rueda_ep **theirs;
    bool is_gone;

    if (peer < 0 || peer >= hub->size || peer == rank)
        return RUEDA_ERR_INVALID;
    mine = &hub->unasked[(size_t)rank * size + (size_t)peer];
    theirs = &hub->unasked[(size_t)peer * size + (size_t)rank];

    pthread_mutex_lock(&hub->lock);
    is_gone = hub->is_gone[peer];
    if (*mine != NULL && !is_gone && is_over(*mine)) {
        stale[0] = *mine;
        *mine = NULL;
    }
    if (*mine != NULL) {
        *out_ep = *mine;
        *mine = NULL;
    } else {
        /* If the peer has not yet asked for its end of the last link, then
         * this rank has closed its own, and no rank will use that link. */
        stale[1] = *theirs;
        *theirs = NULL;
        status = pair_open(rank, peer, out_ep, theirs);
    }
    pthread_mutex_unlock(&hub->lock);

    for (int i = 0; i < 2; i++)
        if (stale[i] != NULL)
            rueda_ep_close(stale[i]);
    if (is_gone)
        close_unasked(hub, peer);
    return status;
}

rueda_status rueda_loop_connect(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    return rueda_loop_hub_connect(mesh->owner, mesh->rank, peer, out_ep);
}

/* ---- As one rank sees it ---------------------------------------------- */

struct rank_hub {
    struct rueda_hub super;
    struct rueda_loop_hub *all;
    int rank;
};

static struct rank_hub *rank_hub_of(struct rueda_hub *hub)
{
    return (struct rank_hub *)hub;
}

static rueda_status hub_connect(struct rueda_hub *hub, int peer,
                                struct rueda_ep **out_ep)
{
    const struct rank_hub *self = rank_hub_of(hub);

    return rueda_loop_hub_connect(self->all, self->rank, peer, out_ep);
}

static void hub_watch(struct rueda_hub *hub, void (*watch)(void *arg, int fd),
                      void *arg)
{
    (void)hub;
    (void)watch;
    (void)arg;
}

static void hub_tend(struct rueda_hub *hub)
{
    (void)hub;
}

static int64_t hub_patience_ns(const struct rueda_hub *hub)
{
    (void)hub;
    return -1;
}

static const char *hub_why(const struct rueda_hub *hub, int peer)
{
    (void)hub;
    (void)peer;
    return NULL;
}

static bool hub_is_silent(const struct rueda_hub *hub, int peer)
{
    (void)hub;
    (void)peer;
    return false;
}

static int hub_first_silent(const struct rueda_hub *hub)
{
    (void)hub;
    return -1;
}

/* No host of theirs can be silent. */
static void hub_await(struct rueda_hub *hub, int peer)
{
    (void)hub;
    (void)peer;
}

/* Endpoints are told the term by their mesh. */
static void hub_begin_term(struct rueda_hub *hub, uint32_t term)
{
    (void)hub;
    (void)term;
}

static const char *hub_last_words(const struct rueda_hub *hub)
{
    (void)hub;
    return NULL;
}

static void hub_hang_up(struct rueda_hub *hub, const char *words)
{
    const struct rank_hub *self = rank_hub_of(hub);

    (void)words;
    rueda_loop_hub_leave(self->all, self->rank);
}

static void hub_close(struct rueda_hub *hub)
{
    rueda_loop_hub_release(rank_hub_of(hub)->all);
    free(hub);
}

rueda_status rueda_loop_hub_of_rank(struct rueda_loop_hub *hub, int rank,
                                    struct rueda_hub **out)
{
    static const struct rueda_hub_ops ops = {
        .name = "loop",
        .memory = RUEDA_LOOP_MEMORY,
        .connect = hub_connect,
        .watch = hub_watch,
        .tend = hub_tend,
        .tend_seldom = hub_tend,
        .before_sleep = hub_tend,
        .patience_ns = hub_patience_ns,
        .why = hub_why,
        .is_silent = hub_is_silent,
        .first_silent = hub_first_silent,
        .await = hub_await,
        .is_gone = hub_is_silent,
        .begin_term = hub_begin_term,
        .last_words = hub_last_words,
        .hang_up = hub_hang_up,
        .after_fork = hub_tend,
        .close = hub_close,
    };
    struct rank_hub *self = malloc(sizeof(*self));

    if (self == NULL)
        return RUEDA_ERR_NOMEM;
    *self = (struct rank_hub){{&ops}, hub, rank};
    *out = &self->super;
    return RUEDA_OK;
}
