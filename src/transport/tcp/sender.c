/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stream sends what. A message is cut into pieces. A stream that can take
 * more bytes asks for the next piece; it gets one of the oldest message that
 * may go on, as long as the receiver has given credit for it. How large a piece
 * is depends on how fast the stream has been (speed.h). Small frames that the
 * protocol itself needs (credit, grants) go first.
 */
#include "base/least.h"
#include "os/clock.h"
#include "os/stream.h"
#include "transport/tcp/ep.h"
#include "transport/tcp/hub.h"

/* No longer than this, a message goes by whichever stream. */
#define SHORT_BYTES ((size_t)4 << 10)

/* ---- Which piece -------------------------------------------------------- */

static bool is_all_assigned(const struct rueda_tcp_outgoing *message)
{
    return message->has_begun && message->assigned == message->req->len;
}

/* Has it a piece that may go now? */
static bool is_ready(const struct rueda_tcp_outgoing *message)
{
    return message->req != NULL && !is_all_assigned(message) &&
           (message->is_granted || message->assigned < RUEDA_TCP_HELD_BYTES);
}

/* The oldest message that has one; they are begun in the order of places only
 * by chance, so look for the lowest name. */
static struct rueda_tcp_outgoing *oldest_ready(struct rueda_tcp_ep *ep)
{
    struct rueda_tcp_outgoing *oldest = NULL;

    for (int i = 0; i < RUEDA_TCP_OUTGOING; i++) {
        struct rueda_tcp_outgoing *message = &ep->outgoing[i];

        if (is_ready(message) &&
            (oldest == NULL || message->first < oldest->first))
            oldest = message;
    }
    return oldest;
}

/* Begin the next message of the queue, if there is one and a place for it. */
static struct rueda_tcp_outgoing *begin_next(struct rueda_tcp_ep *ep)
{
    if (ep->sends.head == NULL)
        return NULL;
    for (int i = 0; i < RUEDA_TCP_OUTGOING; i++) {
        struct rueda_tcp_outgoing *message = &ep->outgoing[i];

        if (message->req != NULL)
            continue;
        *message = (struct rueda_tcp_outgoing){
            .req = rueda_reqs_pop(&ep->sends),
            .first = ep->next_out,
        };
        return message;
    }
    return NULL;
}

static bool has_credit(const struct rueda_tcp_ep *ep)
{
    return ep->spent - ep->credited + RUEDA_TCP_PIECE_BYTES +
               RUEDA_TCP_PIECE_COST <=
           RUEDA_TCP_WINDOW_BYTES;
}

/* ---- How much of it ----------------------------------------------------- */

static bool has_room(struct rueda_tcp_stream *stream)
{
    size_t unsent = rueda_stream_unsent(stream->fd);

    rueda_tcp_speed_sample(&stream->speed, stream->written, unsent,
                           rueda_clock_ns());
    return rueda_tcp_speed_has_room(&stream->speed, unsent);
}

/* May the stream have it? If it is the only one, or the message is short, there
 * is no question. */
static bool may_take(struct rueda_tcp_ep *ep, struct rueda_tcp_stream *stream,
                     const struct rueda_req *req)
{
    if (ep->stream_count < 2 || req->len <= SHORT_BYTES || has_room(stream))
        return true;
    ep->is_held_back = true;
    return false;
}

static size_t next_bytes(const struct rueda_tcp_stream *stream,
                         const struct rueda_tcp_outgoing *message)
{
    size_t end = message->req->len;

    if (!message->is_granted)
        end = rueda_least(end, RUEDA_TCP_HELD_BYTES);
    return rueda_least(end - message->assigned,
                       rueda_tcp_speed_piece(&stream->speed));
}

/* ---- Frames ------------------------------------------------------------- */

/* False: it cannot be sealed, and the endpoint fails. */
static bool send_frame(struct rueda_tcp_ep *ep, struct rueda_tcp_stream *stream,
                       const struct rueda_tcp_frame *frame, const char *piece,
                       struct rueda_tcp_outgoing *outgoing)
{
    const bool is_whole = stream->sealing->shield == RUEDA_TCP_SEALED;

    stream->is_sending = true;
    stream->outgoing = outgoing;
    stream->out_bytes = frame->bytes;
    stream->out_sent = 0;
    stream->out_first = stream->sealing->frame;
    stream->out_piece = is_whole ? NULL : piece;
    stream->out_piece_bytes = is_whole ? 0 : frame->bytes;
    if (rueda_tcp_sealing_close(stream->sealing, frame, piece,
                                &stream->out_first_bytes) == RUEDA_OK)
        return true;
    rueda_tcp_hub_lose(ep->hub, ep->super.peer,
                       "this rank cannot protect what it sends");
    return false;
}

/* What the peer's sender waits for goes first. */
static bool next_control(struct rueda_tcp_ep *ep,
                         struct rueda_tcp_stream *stream)
{
    struct rueda_tcp_frame frame = {.kind = RUEDA_TCP_GRANT};

    if (ep->grant_count > 0) {
        frame.first = ep->grants[--ep->grant_count];
    } else if (ep->taken - ep->told >= RUEDA_TCP_WINDOW_BYTES / 4) {
        frame.kind = RUEDA_TCP_CREDIT;
        frame.total = ep->taken;
        ep->told = ep->taken;
    } else {
        return false;
    }
    return send_frame(ep, stream, &frame, NULL, NULL);
}

bool rueda_tcp_sender_next(struct rueda_tcp_ep *ep,
                           struct rueda_tcp_stream *stream)
{
    struct rueda_tcp_outgoing *message;
    struct rueda_tcp_frame frame;
    const struct rueda_req *req;
    const char *piece = NULL;

    if (next_control(ep, stream))
        return true;
    message = has_credit(ep) ? oldest_ready(ep) : NULL;
    req = message != NULL ? message->req : ep->sends.head;
    if (req == NULL || !has_credit(ep)) {
        if (stream->speed.busy_ns != 0)
            has_room(stream); /* is it empty now? */
        return false;
    }
    if (!may_take(ep, stream, req))
        return false;
    if (message == NULL)
        message = begin_next(ep);
    if (message == NULL)
        return false;
    frame = (struct rueda_tcp_frame){
        .kind = RUEDA_TCP_PIECE,
        .bytes = (uint32_t)next_bytes(stream, message),
        .tag = message->req->tag,
        .number = ep->next_out++,
        .first = message->first,
        .offset = message->assigned,
        .total = message->req->len,
    };
    if (frame.bytes > 0)
        piece = message->req->buf + message->assigned;
    message->has_begun = true;
    message->assigned += frame.bytes;
    ep->spent += frame.bytes + RUEDA_TCP_PIECE_COST;
    return send_frame(ep, stream, &frame, piece, message);
}

void rueda_tcp_sender_done(struct rueda_tcp_stream *stream)
{
    struct rueda_tcp_outgoing *message = stream->outgoing;

    stream->is_sending = false;
    stream->outgoing = NULL;
    if (message == NULL)
        return;
    message->req->done += stream->out_bytes;
    if (message->req->done < message->req->len)
        return;
    message->req->status = RUEDA_OK;
    message->req = NULL;
}

bool rueda_tcp_sender_is_busy(const struct rueda_tcp_ep *ep)
{
    for (int i = 0; i < RUEDA_TCP_OUTGOING; i++)
        if (ep->outgoing[i].req != NULL)
            return true;
    return false;
}

bool rueda_tcp_sender_told(struct rueda_tcp_ep *ep,
                           const struct rueda_tcp_frame *frame)
{
    if (frame->kind == RUEDA_TCP_CREDIT) {
        if (frame->total > ep->spent)
            return false;
        /* A later one may have come sooner, on another stream. */
        if (frame->total > ep->credited)
            ep->credited = frame->total;
        return true;
    }
    for (int i = 0; i < RUEDA_TCP_OUTGOING; i++) {
        struct rueda_tcp_outgoing *message = &ep->outgoing[i];

        if (message->req != NULL && message->has_begun &&
            message->first == frame->first) {
            message->is_granted = true;
            return true;
        }
    }
    /* All of it was in flight already. */
    return frame->first < ep->next_out;
}
