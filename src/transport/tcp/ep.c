/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint of TCP as the contract has it (transport.h): it takes requests,
 * gives turns to its streams, and fails as a whole when one of them fails. What
 * is sent next is decided in sender.c, where pieces go in receiver.c, and
 * stream.c moves bytes.
 */
#include "transport/tcp/ep.h"

#include <stdlib.h>

#include "base/duration.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "transport/tcp/hub.h"

/* How long closing waits until the peer's system has taken what was sent. */
#define LEAVE_NS  RUEDA_S(2)
#define GLANCE_NS RUEDA_US(200)

/* Between two looks at a stream that is quiet, at most. */
#define MOST_QUIET 15

/* ---- Failure ------------------------------------------------------------ */

static void hang_up(struct rueda_tcp_ep *ep)
{
    for (int i = 0; i < ep->stream_count; i++)
        rueda_tcp_stream_close(&ep->streams[i]);
}

/* End what is in flight. */
static void drop_all(struct rueda_tcp_ep *ep, rueda_status status)
{
    rueda_reqs_end(&ep->sends, status);
    for (int i = 0; i < RUEDA_TCP_OUTGOING; i++) {
        if (ep->outgoing[i].req != NULL)
            ep->outgoing[i].req->status = status;
        ep->outgoing[i].req = NULL;
    }
    rueda_tcp_receiver_end(ep, status);
}

void rueda_tcp_ep_fail(struct rueda_tcp_ep *ep)
{
    ep->has_failed = true;
    hang_up(ep);
    drop_all(ep, RUEDA_ERR_PEER_LOST);
}

/* ---- The contract ------------------------------------------------------- */

static void tcp_send(struct rueda_ep *super, struct rueda_tag tag,
                     const void *buf, size_t len, struct rueda_req *req)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)super;

    rueda_req_begin(req, tag, buf, len);
    if (ep->has_failed) {
        req->status = RUEDA_ERR_PEER_LOST;
        return;
    }
    rueda_reqs_push(&ep->sends, req);
    for (int i = 0; i < ep->stream_count && ep->sends.head != NULL; i++)
        if (!ep->streams[i].is_sending && !ep->has_failed)
            rueda_tcp_stream_write(ep, &ep->streams[i]);
}

static void tcp_recv(struct rueda_ep *super, struct rueda_tag tag, void *buf,
                     size_t len, struct rueda_req *req)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)super;

    rueda_req_begin(req, tag, buf, len);
    if (rueda_tcp_receiver_find(ep, req))
        return;
    if (ep->has_failed)
        req->status = RUEDA_ERR_PEER_LOST;
    else
        rueda_reqs_push(&ep->recvs, req);
}

static rueda_status tcp_peek(struct rueda_ep *super, struct rueda_tag tag,
                             size_t *out_len)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)super;

    ep->has_been_asked = true;
    if (rueda_tcp_receiver_has(ep, tag, out_len))
        return RUEDA_OK;
    return ep->has_failed ? RUEDA_ERR_PEER_LOST : RUEDA_IN_PROGRESS;
}

/* Will nothing come any more? */
static bool has_ended(const struct rueda_tcp_ep *ep)
{
    for (int i = 0; i < ep->stream_count; i++)
        if (!ep->streams[i].has_ended)
            return false;
    return ep->stream_count > 0;
}

/* Each look is a system call. A stream that is quiet is looked at less often,
 * but not the first one, where short messages come, if any are awaited. */
static bool has_rest(const struct rueda_tcp_ep *ep,
                     struct rueda_tcp_stream *stream)
{
    bool is_awaited =
        ep->recvs.head != NULL || ep->incoming != NULL || ep->has_been_asked;

    if (stream->is_receiving || stream->rest == 0 ||
        (is_awaited && stream == &ep->streams[0]))
        return false;
    stream->rest--;
    return true;
}

static bool read_stream(struct rueda_tcp_ep *ep, int i)
{
    struct rueda_tcp_stream *stream = &ep->streams[i];

    if (has_rest(ep, stream))
        return false;
    if (rueda_tcp_stream_read(ep, stream)) {
        stream->quiet = 0;
        return true;
    }
    if (stream->quiet < MOST_QUIET)
        stream->quiet++;
    stream->rest = stream->quiet;
    return false;
}

static void wake_streams(struct rueda_tcp_ep *ep)
{
    unsigned checks = rueda_tcp_hub_checks(ep->hub);

    for (int i = 0; i < ep->stream_count && ep->checks != checks; i++)
        ep->streams[i].rest = 0;
    ep->checks = checks;
}

static rueda_status tcp_progress(struct rueda_ep *super)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)super;
    bool has_moved = false;

    wake_streams(ep);
    ep->is_held_back = false;

    if (ep->stream_count < rueda_tcp_hub_streams(ep->hub))
        rueda_tcp_hub_progress(ep->hub);
    for (int i = 0; i < ep->stream_count && !ep->has_failed; i++) {
        if (read_stream(ep, i))
            has_moved = true;
        if (!ep->has_failed && rueda_tcp_stream_write(ep, &ep->streams[i]))
            has_moved = true;
    }
    ep->has_been_asked = false;
    if (!ep->has_failed && !has_moved && has_ended(ep))
        rueda_tcp_ep_fail(ep);
    if (ep->has_failed)
        return RUEDA_ERR_PEER_LOST;
    return has_moved ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

static void tcp_cancel(struct rueda_ep *super, rueda_status status)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)super;
    bool is_busy =
        rueda_tcp_sender_is_busy(ep) || rueda_tcp_receiver_is_busy(ep);

    if (!is_busy) {
        /* Messages for which no receive is posted stay. */
        rueda_reqs_end(&ep->sends, status);
        rueda_reqs_end(&ep->recvs, status);
        return;
    }
    drop_all(ep, status);
    ep->has_failed = true;
    hang_up(ep);
}

/*
 * What was sent should arrive: a socket that is closed while the peer still
 * sends takes with it what the peer's system has not got. Endpoints close with
 * the mesh, one after the other; the first of them sets the deadline of all, so
 * that many stopped peers cost no more time than one.
 */
static void take_leave(struct rueda_tcp_ep *ep)
{
    struct rueda_tcp_hub *hub = ep->hub;

    if (hub->leave_ns == 0)
        hub->leave_ns = rueda_clock_ns() + LEAVE_NS;
    for (int i = 0; i < ep->stream_count; i++)
        if (ep->streams[i].fd >= 0)
            rueda_stream_end(ep->streams[i].fd);
    for (int i = 0; i < ep->stream_count; i++)
        while (ep->streams[i].fd >= 0 && !ep->streams[i].has_ended &&
               !rueda_stream_is_sent(ep->streams[i].fd) &&
               rueda_clock_ns() < hub->leave_ns)
            rueda_sleep_ns(GLANCE_NS);
}

static void tcp_close(struct rueda_ep *super)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)super;

    if (!ep->has_failed)
        take_leave(ep);
    rueda_tcp_hub_leave(ep->hub, ep);
    rueda_tcp_ep_fail(ep);
    rueda_tcp_receiver_fini(ep);
    free(ep);
}

static void tcp_begin_term(struct rueda_ep *super)
{
    rueda_tcp_receiver_begin_term((struct rueda_tcp_ep *)super);
}

static const struct rueda_transport_ops tcp_ops = {
    .name = "tcp",
    .memory = RUEDA_MEMKIND_HOST,
    .send = tcp_send,
    .recv = tcp_recv,
    .peek = tcp_peek,
    .progress = tcp_progress,
    .begin_term = tcp_begin_term,
    .cancel = tcp_cancel,
    .close = tcp_close,
};

rueda_status rueda_tcp_ep_open(struct rueda_tcp_hub *hub, int peer,
                               struct rueda_ep **out)
{
    struct rueda_tcp_ep *ep = calloc(1, sizeof(*ep));

    if (ep == NULL)
        return RUEDA_ERR_NOMEM;
    ep->super.ops = &tcp_ops;
    ep->super.peer = peer;
    ep->hub = hub;
    for (int i = 0; i < RUEDA_TCP_MOST_STREAMS; i++)
        ep->streams[i].fd = -1;
    rueda_tcp_hub_join(hub, ep);
    *out = &ep->super;
    return RUEDA_OK;
}
