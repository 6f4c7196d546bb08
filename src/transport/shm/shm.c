/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint is the writer of one pipe and the reader of another. This file
 * adds what they do not know: when to wake the peer, and when a peer counts as
 * lost.
 */
#define RUEDA_LOG_TAG "shm"

#include "transport/shm/shm.h"

#include <stdlib.h>

#include "base/log.h"
#include "transport/reqs.h"
#include "transport/shm/pipe.h"

/* Pipe s is written by side s. */
struct area {
    struct rueda_shm_pipe pipes[2];
};

struct shm_ep {
    struct rueda_ep super;
    struct rueda_segment *segment; /* borrowed until the endpoint is closed */
    int member;                    /* the peer, in the segment */
    bool has_failed;
    struct rueda_shm_writer writer;
    struct rueda_shm_reader reader;
};

size_t rueda_shm_pair_bytes(void)
{
    return sizeof(struct area);
}

/* Tells the peer that no more will be written or read here. */
static void shut(struct shm_ep *ep)
{
    /* Release: a peer that sees it also sees all that was sent before. */
    atomic_store_explicit(&ep->writer.pipe->is_closed, 1, memory_order_release);
    rueda_segment_notify(ep->segment, ep->member);
}

static rueda_status fail(struct shm_ep *ep)
{
    rueda_shm_writer_cancel(&ep->writer, RUEDA_ERR_PEER_LOST);
    rueda_shm_reader_cancel(&ep->reader, RUEDA_ERR_PEER_LOST);
    ep->has_failed = true;
    shut(ep);
    return RUEDA_ERR_PEER_LOST;
}

/* After the pipes were worked on: wakes the peer if it has a reason to look,
 * fails if a pipe is broken. */
static rueda_status settle(struct shm_ep *ep, rueda_status written,
                           rueda_status read)
{
    bool has_news = written == RUEDA_OK;

    if (written < 0 || read < 0)
        return fail(ep);
    if (ep->reader.has_acked) {
        ep->reader.has_acked = false;
        /* Sequentially consistent, see rueda_shm_writer_turn(). */
        if (atomic_load_explicit(&ep->reader.pipe->is_stuck,
                                 memory_order_seq_cst) != 0)
            has_news = true;
    }
    if (has_news)
        rueda_segment_notify(ep->segment, ep->member);
    return written == RUEDA_OK || read == RUEDA_OK ? RUEDA_OK
                                                   : RUEDA_IN_PROGRESS;
}

static void shm_send(struct rueda_ep *super, struct rueda_tag tag,
                     const void *buf, size_t len, struct rueda_req *req)
{
    struct shm_ep *ep = (struct shm_ep *)super;

    rueda_req_begin(req, tag, buf, len);
    if (ep->has_failed)
        req->status = RUEDA_ERR_PEER_LOST;
    else
        settle(ep, rueda_shm_writer_send(&ep->writer, req), RUEDA_IN_PROGRESS);
}

static void shm_recv(struct rueda_ep *super, struct rueda_tag tag, void *buf,
                     size_t len, struct rueda_req *req)
{
    struct shm_ep *ep = (struct shm_ep *)super;

    rueda_req_begin(req, tag, buf, len);
    if (ep->has_failed)
        req->status = RUEDA_ERR_PEER_LOST;
    else
        settle(ep, RUEDA_IN_PROGRESS, rueda_shm_reader_recv(&ep->reader, req));
}

static rueda_status shm_peek(struct rueda_ep *super, struct rueda_tag tag,
                             size_t *out_len)
{
    struct shm_ep *ep = (struct shm_ep *)super;

    if (ep->has_failed)
        return RUEDA_ERR_PEER_LOST;
    return rueda_shm_reader_has(&ep->reader, tag, out_len) ? RUEDA_OK
                                                           : RUEDA_IN_PROGRESS;
}

static bool is_peer_gone(const struct shm_ep *ep)
{
    /* Acquire: see shut(). */
    return atomic_load_explicit(&ep->reader.pipe->is_closed,
                                memory_order_acquire) != 0 ||
           rueda_segment_is_gone(ep->segment, ep->member);
}

/* The peer is gone, and what it wrote before has been looked at. Requests that
 * are in flight cannot end well. The endpoint has failed when there is nothing
 * left that a receive could ask for. */
static rueda_status bury(struct shm_ep *ep)
{
    rueda_shm_writer_cancel(&ep->writer, RUEDA_ERR_PEER_LOST);
    rueda_shm_reader_cancel(&ep->reader, RUEDA_ERR_PEER_LOST);
    if (rueda_shm_reader_has_whole(&ep->reader))
        return RUEDA_IN_PROGRESS;
    return fail(ep);
}

static rueda_status shm_progress(struct rueda_ep *super)
{
    struct shm_ep *ep = (struct shm_ep *)super;
    rueda_status written;
    rueda_status status;

    if (ep->has_failed)
        return RUEDA_ERR_PEER_LOST;
    written = rueda_shm_writer_turn(&ep->writer);
    status = settle(ep, written, rueda_shm_reader_turn(&ep->reader));
    if (status != RUEDA_IN_PROGRESS || !is_peer_gone(ep))
        return status;
    /* The last it wrote may have come between the turn and the look. */
    status = settle(ep, RUEDA_IN_PROGRESS, rueda_shm_reader_turn(&ep->reader));
    return status == RUEDA_IN_PROGRESS ? bury(ep) : status;
}

static void shm_cancel(struct rueda_ep *super, rueda_status status)
{
    struct shm_ep *ep = (struct shm_ep *)super;
    bool is_half = rueda_shm_writer_cancel(&ep->writer, status);

    is_half |= rueda_shm_reader_cancel(&ep->reader, status);
    if (is_half && !ep->has_failed)
        fail(ep);
}

static void shm_close(struct rueda_ep *super)
{
    struct shm_ep *ep = (struct shm_ep *)super;

    if (!ep->has_failed)
        fail(ep);
    free(ep);
}

static void shm_begin_term(struct rueda_ep *super)
{
    struct shm_ep *ep = (struct shm_ep *)super;

    if (!ep->has_failed)
        rueda_shm_reader_begin_term(&ep->reader);
}

static const struct rueda_transport_ops shm_ops = {
    .name = "shm",
    .memory = RUEDA_SHM_MEMORY,
    .send = shm_send,
    .recv = shm_recv,
    .peek = shm_peek,
    .progress = shm_progress,
    .begin_term = shm_begin_term,
    .cancel = shm_cancel,
    .close = shm_close,
};

rueda_status rueda_shm_ep_open(struct rueda_segment *segment, void *area,
                               int side, int peer, int peer_member,
                               struct rueda_ep **out_ep)
{
    struct rueda_shm_pipe *pipes = ((struct area *)area)->pipes;
    struct shm_ep *ep;

    if ((uintptr_t)area % _Alignof(struct area) != 0) {
        log_error("memory shared with rank %d is not page aligned", peer);
        return RUEDA_ERR_INVALID;
    }
    ep = calloc(1, sizeof(*ep));
    if (ep == NULL) {
        log_error("no memory for an endpoint towards rank %d", peer);
        return RUEDA_ERR_NOMEM;
    }
    ep->super.ops = &shm_ops;
    ep->super.peer = peer;
    ep->segment = segment;
    ep->member = peer_member;
    rueda_shm_writer_init(&ep->writer, &pipes[side]);
    rueda_shm_reader_init(&ep->reader, &pipes[!side], &ep->super.term);
    *out_ep = &ep->super;
    return RUEDA_OK;
}
