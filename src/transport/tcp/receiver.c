/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where incoming pieces go. The first piece of a message makes a record, which
 * is matched with a posted receive or waits for one. Until then the receiver
 * holds the beginning of the message; once it is matched, the sender may send
 * the rest, straight into the caller's buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "transport/tcp/ep.h"

/* ---- Records ------------------------------------------------------------ */

/* At the end of the list, which is that of the newest. */
static struct rueda_tcp_incoming *
record_new(struct rueda_tcp_ep *ep, const struct rueda_tcp_frame *frame)
{
    struct rueda_tcp_incoming **end = &ep->incoming;
    struct rueda_tcp_incoming *message = ep->spare;

    if (message != NULL)
        ep->spare = message->next;
    else
        message = malloc(sizeof(*message));
    if (message == NULL)
        return NULL;
    *message = (struct rueda_tcp_incoming){
        .first = frame->first,
        .tag = frame->tag,
        .total = (size_t)frame->total,
    };
    while (*end != NULL)
        end = &(*end)->next;
    *end = message;
    return message;
}

static void record_drop(struct rueda_tcp_ep *ep,
                        struct rueda_tcp_incoming *message)
{
    struct rueda_tcp_incoming **at = &ep->incoming;

    while (*at != message)
        at = &(*at)->next;
    *at = message->next;
    free(message->store);
    message->next = ep->spare;
    ep->spare = message;
}

static struct rueda_tcp_incoming *record_of(struct rueda_tcp_ep *ep,
                                            uint64_t first)
{
    struct rueda_tcp_incoming *message = ep->incoming;

    while (message != NULL && message->first != first)
        message = message->next;
    return message;
}

/* ---- Matching ----------------------------------------------------------- */

/* It is settled where the bytes of a message go: its sender may send all of
 * them. */
static void let_come(struct rueda_tcp_ep *ep,
                     struct rueda_tcp_incoming *message)
{
    /* The sender has no more messages in flight than there is room here. */
    if (message->total > RUEDA_TCP_HELD_BYTES &&
        ep->grant_count < RUEDA_TCP_OUTGOING)
        ep->grants[ep->grant_count++] = message->first;
    ep->taken += message->held;
    message->held = 0;
}

/* A message and its receive have found each other. */
static void match(struct rueda_tcp_ep *ep, struct rueda_tcp_incoming *message,
                  struct rueda_req *req)
{
    if (req->len == message->total) {
        message->req = req;
    } else {
        message->is_dropped = true;
        req->status = RUEDA_ERR_MISMATCH;
    }
    let_come(ep, message);
}

/* How far it has come without a hole: as far as the first piece that is still
 * coming. */
static size_t prefix_of(const struct rueda_tcp_ep *ep,
                        const struct rueda_tcp_incoming *message)
{
    size_t prefix = message->begun;

    for (int i = 0; i < ep->stream_count; i++) {
        const struct rueda_tcp_stream *stream = &ep->streams[i];

        if (stream->is_receiving && stream->incoming == message)
            prefix =
                rueda_least(prefix, (size_t)stream->in.offset + stream->in_got);
    }
    return prefix;
}

/* All of it that was to come is there? Then it is over. */
static void settle(struct rueda_tcp_ep *ep, struct rueda_tcp_incoming *message)
{
    if (message->req != NULL)
        message->req->done = prefix_of(ep, message);
    if (message->got < message->total || message->begun < message->total)
        return;
    if (message->req != NULL)
        message->req->status = RUEDA_OK;
    if (message->req != NULL || message->is_dropped)
        record_drop(ep, message);
}

/* The oldest message of this tag that has no receive, or NULL. */
static struct rueda_tcp_incoming *find_waiting(const struct rueda_tcp_ep *ep,
                                               struct rueda_tag tag)
{
    struct rueda_tcp_incoming *message = ep->incoming;

    while (message != NULL && (message->req != NULL || message->is_dropped ||
                               !rueda_tag_equal(message->tag, tag)))
        message = message->next;
    return message;
}

bool rueda_tcp_receiver_has(const struct rueda_tcp_ep *ep, struct rueda_tag tag,
                            size_t *out_len)
{
    const struct rueda_tcp_incoming *message = find_waiting(ep, tag);

    if (message != NULL)
        *out_len = message->total;
    return message != NULL;
}

bool rueda_tcp_receiver_find(struct rueda_tcp_ep *ep, struct rueda_req *req)
{
    struct rueda_tcp_incoming *message = find_waiting(ep, req->tag);

    if (message == NULL)
        return false;
    match(ep, message, req);
    if (message->req != NULL && message->store != NULL)
        memcpy(req->buf, message->store, message->begun);
    free(message->store);
    message->store = NULL;
    settle(ep, message);
    return true;
}

void rueda_tcp_receiver_begin_term(struct rueda_tcp_ep *ep)
{
    struct rueda_tcp_incoming *message = ep->incoming;

    while (message != NULL) {
        struct rueda_tcp_incoming *next = message->next;

        if (message->req == NULL && !message->is_dropped &&
            rueda_term_drops(&ep->super.term, message->tag)) {
            message->is_dropped = true;
            let_come(ep, message);
            free(message->store);
            message->store = NULL;
            settle(ep, message);
        }
        message = next;
    }
}

/* ---- Pieces ------------------------------------------------------------- */

/* NULL: no memory. */
static struct rueda_tcp_incoming *
begin_message(struct rueda_tcp_ep *ep, const struct rueda_tcp_frame *in)
{
    struct rueda_tcp_incoming *message = record_new(ep, in);
    struct rueda_req *req;

    if (message == NULL)
        return NULL;
    if (rueda_term_drops(&ep->super.term, in->tag)) {
        message->is_dropped = true;
        let_come(ep, message);
        return message;
    }
    req = rueda_reqs_take(&ep->recvs, in->tag);
    if (req != NULL) {
        match(ep, message, req);
    } else if (message->total > 0) {
        message->store =
            malloc(rueda_least(message->total, RUEDA_TCP_HELD_BYTES));
        if (message->store == NULL)
            return NULL;
    }
    return message;
}

rueda_status rueda_tcp_receiver_begin(struct rueda_tcp_ep *ep,
                                      struct rueda_tcp_stream *stream)
{
    const struct rueda_tcp_frame *in = &stream->in;
    struct rueda_tcp_incoming *message;

    ep->come += in->bytes + RUEDA_TCP_PIECE_COST;
    if (ep->come - ep->told > RUEDA_TCP_WINDOW_BYTES)
        return RUEDA_ERR_INVALID; /* more than it has credit for */
    message =
        in->offset == 0 ? begin_message(ep, in) : record_of(ep, in->first);
    if (message == NULL)
        return in->offset == 0 ? RUEDA_ERR_NOMEM : RUEDA_ERR_INVALID;
    if (in->total != message->total || in->offset != message->begun ||
        (message->store != NULL &&
         in->offset + in->bytes > RUEDA_TCP_HELD_BYTES))
        return RUEDA_ERR_INVALID;
    message->begun += in->bytes;
    ep->unfinished += (message->begun < message->total) - (in->offset > 0);
    if (ep->unfinished > RUEDA_TCP_OUTGOING)
        return RUEDA_ERR_INVALID; /* more than a sender has in flight */
    stream->incoming = message;
    stream->in_got = 0;
    stream->is_receiving = true;
    return RUEDA_OK;
}

char *rueda_tcp_receiver_target(const struct rueda_tcp_stream *stream)
{
    const struct rueda_tcp_incoming *message = stream->incoming;
    size_t at = (size_t)stream->in.offset + stream->in_got;

    if (message->is_dropped)
        return NULL;
    return message->req != NULL ? message->req->buf + at : message->store + at;
}

void rueda_tcp_receiver_got(struct rueda_tcp_ep *ep,
                            struct rueda_tcp_stream *stream)
{
    struct rueda_tcp_incoming *message = stream->incoming;
    uint64_t cost = stream->in.bytes + RUEDA_TCP_PIECE_COST;

    if (stream->in_got == stream->in.bytes) {
        stream->is_receiving = false;
        stream->incoming = NULL;
        message->got += stream->in.bytes;
        if (message->req != NULL || message->is_dropped)
            ep->taken += cost;
        else
            message->held += cost;
    }
    settle(ep, message);
}

bool rueda_tcp_receiver_is_busy(const struct rueda_tcp_ep *ep)
{
    for (const struct rueda_tcp_incoming *message = ep->incoming;
         message != NULL; message = message->next)
        if (message->req != NULL)
            return true;
    return false;
}

void rueda_tcp_receiver_end(struct rueda_tcp_ep *ep, rueda_status status)
{
    struct rueda_tcp_incoming *message = ep->incoming;

    rueda_reqs_end(&ep->recvs, status);
    while (message != NULL) {
        struct rueda_tcp_incoming *next = message->next;

        if (message->req != NULL)
            message->req->status = status;
        if (message->req != NULL || message->got < message->total)
            record_drop(ep, message);
        message = next;
    }
}

void rueda_tcp_receiver_fini(struct rueda_tcp_ep *ep)
{
    while (ep->incoming != NULL)
        record_drop(ep, ep->incoming);
    while (ep->spare != NULL) {
        struct rueda_tcp_incoming *message = ep->spare;

        ep->spare = message->next;
        free(message);
    }
}
