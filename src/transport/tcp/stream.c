/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection of an endpoint: it reads heads and pieces into their
 * room and writes frames, as far as the socket takes and gives bytes without
 * blocking. It also opens and seals records where the connection is encrypted.
 */
#define RUEDA_LOG_TAG "tcp"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#include "base/least.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/tcp.h"
#include "transport/tcp/ep.h"
#include "transport/tcp/hub.h"

/* At most this much at a time from one stream, then the others have their turn.
 */
#define TURN_BYTES ((size_t)1 << 20)

rueda_status rueda_tcp_stream_open(struct rueda_tcp_stream *stream, int fd,
                                   struct rueda_tcp_sealing *sealing)
{
    stream->ahead = malloc(RUEDA_TCP_AHEAD_BYTES);
    if (stream->ahead == NULL)
        return RUEDA_ERR_NOMEM;
    stream->fd = fd;
    stream->sealing = sealing;
    return RUEDA_OK;
}

void rueda_tcp_stream_close(struct rueda_tcp_stream *stream)
{
    rueda_fd_close(stream->fd);
    stream->fd = -1;
    free(stream->ahead);
    stream->ahead = NULL;
    rueda_tcp_sealing_free(stream->sealing);
    stream->sealing = NULL;
}

/* ---- Out ---------------------------------------------------------------- */

static rueda_status send_some(struct rueda_tcp_stream *stream, size_t *moved)
{
    size_t first = stream->out_first_bytes;
    size_t sent = stream->out_sent;

    if (sent < first)
        return rueda_stream_send_both(stream->fd, stream->out_first + sent,
                                      first - sent, stream->out_piece,
                                      stream->out_piece_bytes, moved);
    return rueda_stream_send(stream->fd, stream->out_piece + (sent - first),
                             stream->out_piece_bytes - (sent - first), moved);
}

bool rueda_tcp_stream_write(struct rueda_tcp_ep *ep,
                            struct rueda_tcp_stream *stream)
{
    size_t turn = 0;
    bool is_full = false;

    while (turn < TURN_BYTES && !is_full) {
        rueda_status status;
        size_t moved;

        if (!stream->is_sending && !rueda_tcp_sender_next(ep, stream))
            break;
        status = send_some(stream, &moved);
        if (status < 0) {
            rueda_tcp_hub_break(ep->hub, ep->super.peer, status);
            break;
        }
        stream->out_sent += moved;
        stream->written += moved;
        turn += moved;
        if (stream->out_sent ==
            stream->out_first_bytes + stream->out_piece_bytes)
            rueda_tcp_sender_done(stream);
        else
            is_full = true;
    }
    return turn > 0;
}

/* ---- In ----------------------------------------------------------------- */

static size_t ahead_of(const struct rueda_tcp_stream *stream)
{
    return stream->ahead_end - stream->ahead_begin;
}

static size_t head_bytes(const struct rueda_tcp_stream *stream)
{
    return rueda_tcp_sealing_head_bytes(stream->sealing);
}

/* The contents of a head are logged only if its seal, if any, is genuine. */
static void fail_by_head(struct rueda_tcp_ep *ep, const char *what,
                         const struct rueda_tcp_frame *frame)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "%s (kind %u, %u bytes of %llu)", what,
                   (unsigned)frame->kind, (unsigned)frame->bytes,
                   (unsigned long long)frame->total);
    rueda_tcp_hub_accuse(ep->hub, ep->super.peer, words.chars);
}

/* It is right, and we cannot hold it. */
static void fail_by_memory(struct rueda_tcp_ep *ep,
                           const struct rueda_tcp_frame *frame)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words,
                   "this rank is out of memory for a message of %llu bytes "
                   "that it sent",
                   (unsigned long long)frame->total);
    rueda_tcp_hub_lose(ep->hub, ep->super.peer, words.chars);
}

static void fail_by_seal(struct rueda_tcp_ep *ep)
{
    rueda_tcp_hub_accuse(ep->hub, ep->super.peer,
                         "what its key does not prove");
}

/* A head has been read ahead. */
static void take_head(struct rueda_tcp_ep *ep, struct rueda_tcp_stream *stream)
{
    unsigned char *head = stream->ahead + stream->ahead_begin;

    stream->ahead_begin += head_bytes(stream);
    if (rueda_tcp_sealing_open_head(stream->sealing, head) != RUEDA_OK) {
        fail_by_seal(ep);
        return;
    }
    stream->has_head = rueda_tcp_frame_decode(head, &stream->in);
    if (!stream->has_head)
        fail_by_head(ep, "a malformed frame", &stream->in);
}

/* False: its turn has not come, or the endpoint fails. */
static bool begin_frame(struct rueda_tcp_ep *ep,
                        struct rueda_tcp_stream *stream)
{
    rueda_status status = RUEDA_ERR_INVALID;

    if (stream->in.kind == RUEDA_TCP_PIECE) {
        if (stream->in.number > ep->next_in)
            return false; /* a piece on another stream comes before it */
        if (stream->in.number == ep->next_in)
            status = rueda_tcp_receiver_begin(ep, stream);
        ep->next_in++;
    } else if (rueda_tcp_sender_told(ep, &stream->in)) {
        status = RUEDA_OK;
    }
    stream->has_head = false;
    if (status == RUEDA_ERR_NOMEM)
        fail_by_memory(ep, &stream->in);
    else if (status != RUEDA_OK)
        fail_by_head(ep, "a frame that does not fit those before it",
                     &stream->in);
    if (status != RUEDA_OK)
        return false;
    if (stream->is_receiving && stream->in.bytes == 0)
        rueda_tcp_receiver_got(ep, stream);
    return true;
}

/* Does the piece count only when all of it is there and is genuine? */
static bool is_protected(const struct rueda_tcp_stream *stream)
{
    return rueda_tcp_sealing_has_piece(stream->sealing, &stream->in);
}

/* Bytes of the piece, and of its tag if that comes behind it, have come to
 * where they belong. */
static void piece_came(struct rueda_tcp_ep *ep, struct rueda_tcp_stream *stream,
                       size_t bytes)
{
    rueda_status status = RUEDA_OK;

    if (is_protected(stream)) {
        status = rueda_tcp_sealing_got(stream->sealing,
                                       rueda_tcp_receiver_target(stream),
                                       stream->in.bytes, bytes);
        bytes = stream->in.bytes;
    }
    if (status == RUEDA_IN_PROGRESS)
        return;
    if (status < 0) {
        fail_by_seal(ep);
        return;
    }
    stream->in_got += bytes;
    rueda_tcp_receiver_got(ep, stream);
}

/* Where the next bytes of the piece go; nowhere if it is dropped. */
static struct rueda_tcp_room room_of(struct rueda_tcp_stream *stream)
{
    char *target = rueda_tcp_receiver_target(stream);

    if (is_protected(stream))
        return rueda_tcp_sealing_room(stream->sealing, target,
                                      stream->in.bytes);
    return (struct rueda_tcp_room){
        .piece = target, .piece_left = stream->in.bytes - stream->in_got};
}

/* The next bytes of the piece have been read ahead. */
static size_t fill_piece(struct rueda_tcp_ep *ep,
                         struct rueda_tcp_stream *stream)
{
    const struct rueda_tcp_room room = room_of(stream);
    const unsigned char *from = stream->ahead + stream->ahead_begin;
    size_t bytes = rueda_least(ahead_of(stream), room.piece_left);
    size_t tag = rueda_least(ahead_of(stream) - bytes, room.tag_left);

    if (room.piece != NULL && bytes > 0)
        memcpy(room.piece, from, bytes);
    if (tag > 0)
        memcpy(room.tag, from + bytes, tag);
    stream->ahead_begin += bytes + tag;
    piece_came(ep, stream, bytes + tag);
    return bytes + tag;
}

/* From the socket, as far as there is room. *is_dry: it has no more now. */
static rueda_status read_ahead(struct rueda_tcp_stream *stream, size_t *moved,
                               bool *is_dry)
{
    size_t kept = ahead_of(stream);
    rueda_status status;

    memmove(stream->ahead, stream->ahead + stream->ahead_begin, kept);
    status = rueda_stream_recv(stream->fd, stream->ahead + kept,
                               RUEDA_TCP_AHEAD_BYTES - kept, moved);
    stream->ahead_begin = 0;
    stream->ahead_end = kept + *moved;
    *is_dry = *moved < RUEDA_TCP_AHEAD_BYTES - kept;
    return status;
}

/* The rest of the piece, straight to its place, and what follows it: its tag,
 * or the next head. */
static rueda_status read_piece(struct rueda_tcp_ep *ep,
                               struct rueda_tcp_stream *stream, size_t *moved,
                               bool *is_dry)
{
    struct rueda_tcp_room room = room_of(stream);
    const bool has_tag = room.tag_left > 0;
    rueda_status status;
    size_t came;

    if (room.piece == NULL)
        return read_ahead(stream, moved, is_dry);
    if (!has_tag) {
        room.tag = stream->ahead;
        room.tag_left = RUEDA_TCP_AHEAD_BYTES;
    }
    status = rueda_stream_recv_both(stream->fd, room.piece, room.piece_left,
                                    room.tag, room.tag_left, moved);
    *is_dry = *moved < room.piece_left + room.tag_left;
    came = has_tag ? *moved : rueda_least(*moved, room.piece_left);
    stream->ahead_begin = 0;
    stream->ahead_end = *moved - came;
    if (came > 0)
        piece_came(ep, stream, came);
    return status;
}

/* Take what has been read ahead one step further; returns how many bytes of it
 * were used. */
static size_t use_ahead(struct rueda_tcp_ep *ep,
                        struct rueda_tcp_stream *stream)
{
    if (stream->is_receiving)
        return ahead_of(stream) > 0 ? fill_piece(ep, stream) : 0;
    if (!stream->has_head) {
        if (ahead_of(stream) < head_bytes(stream))
            return 0;
        take_head(ep, stream);
    }
    if (ep->has_failed || !begin_frame(ep, stream))
        return 0;
    return head_bytes(stream);
}

bool rueda_tcp_stream_read(struct rueda_tcp_ep *ep,
                           struct rueda_tcp_stream *stream)
{
    size_t turn = 0;
    bool is_dry = false;

    while (turn < TURN_BYTES && !ep->has_failed) {
        size_t used = use_ahead(ep, stream);
        rueda_status status;
        size_t moved = 0;

        turn += used;
        if (used > 0)
            continue;
        if (is_dry || stream->has_head || stream->has_ended || ep->has_failed)
            break;
        status = stream->is_receiving ? read_piece(ep, stream, &moved, &is_dry)
                                      : read_ahead(stream, &moved, &is_dry);
        turn += moved;
        if (status == RUEDA_ERR_PEER_LOST && !stream->is_receiving &&
            ahead_of(stream) == 0)
            stream->has_ended = true; /* in good order, between two frames */
        else if (status < 0)
            rueda_tcp_hub_break(ep->hub, ep->super.peer, status);
    }
    return turn > 0;
}
