/* SPDX-License-Identifier: Apache-2.0 */
#include "os/stream.h"
#include "transport/tcp/ep.h"

/* So much at a time from one stream, then the others have their turn. */
#define TURN_BYTES ((size_t)1 << 20)

/* Where the bytes of dropped messages go. */
#define DROP_BYTES 16384

/* ---- Out ---------------------------------------------------------------- */

static rueda_status send_some(struct rueda_tcp_stream *stream, size_t *moved)
{
    size_t head = RUEDA_TCP_HEAD_BYTES;
    size_t sent = stream->out_sent;

    if (sent < head)
        return rueda_stream_send_both(stream->fd, stream->out_head + sent,
                                      head - sent, stream->out_piece,
                                      stream->out_bytes, moved);
    return rueda_stream_send(stream->fd, stream->out_piece + (sent - head),
                             stream->out_bytes - (sent - head), moved);
}

bool rueda_tcp_stream_write(struct rueda_tcp_ep *ep,
                            struct rueda_tcp_stream *stream)
{
    size_t turn = 0;

    while (turn < TURN_BYTES) {
        rueda_status status;
        size_t moved;

        if (!stream->is_sending && !rueda_tcp_sender_next(ep, stream))
            break;
        status = send_some(stream, &moved);
        stream->out_sent += moved;
        turn += moved;
        if (stream->out_sent == RUEDA_TCP_HEAD_BYTES + stream->out_bytes)
            rueda_tcp_sender_done(ep, stream);
        if (status < 0) {
            rueda_tcp_ep_fail(ep);
            return true;
        }
        if (status == RUEDA_IN_PROGRESS)
            break;
    }
    return turn > 0;
}

/* ---- In ----------------------------------------------------------------- */

/* A head is complete. False: its turn has not come, or the endpoint fails. */
static bool look_at_head(struct rueda_tcp_ep *ep,
                         struct rueda_tcp_stream *stream)
{
    bool makes_sense = rueda_tcp_frame_decode(stream->in_head, &stream->in);

    if (makes_sense && stream->in.kind == RUEDA_TCP_PIECE) {
        if (stream->in.number > ep->next_in)
            return false; /* a piece on another stream comes before it */
        makes_sense = stream->in.number == ep->next_in &&
                      rueda_tcp_receiver_begin(ep, stream);
        ep->next_in++;
    } else if (makes_sense) {
        makes_sense = rueda_tcp_sender_told(ep, &stream->in);
    }
    if (!makes_sense) {
        rueda_tcp_ep_fail(ep);
        return false;
    }
    stream->in_head_got = 0;
    if (stream->is_receiving && stream->in.bytes == 0)
        rueda_tcp_receiver_got(ep, stream);
    return true;
}

/* The rest of the piece and, behind it, the beginning of the next head. */
static rueda_status receive_piece(struct rueda_tcp_ep *ep,
                                  struct rueda_tcp_stream *stream,
                                  size_t *out_moved)
{
    char dropped[DROP_BYTES];
    size_t left = stream->in.bytes - stream->in_got;
    char *place = rueda_tcp_receiver_place(stream);
    rueda_status status;
    size_t moved;

    if (place == NULL) {
        status = rueda_stream_recv(
            stream->fd, dropped, left < DROP_BYTES ? left : DROP_BYTES, &moved);
    } else {
        status =
            rueda_stream_recv_both(stream->fd, place, left, stream->in_head,
                                   RUEDA_TCP_HEAD_BYTES, &moved);
    }
    *out_moved = moved;
    if (moved > left) {
        stream->in_head_got = moved - left;
        moved = left;
    }
    stream->in_got += moved;
    if (moved > 0)
        rueda_tcp_receiver_got(ep, stream);
    return status;
}

static rueda_status receive_some(struct rueda_tcp_ep *ep,
                                 struct rueda_tcp_stream *stream, size_t *moved)
{
    rueda_status status;

    if (stream->is_receiving)
        return receive_piece(ep, stream, moved);
    status =
        rueda_stream_recv(stream->fd, stream->in_head + stream->in_head_got,
                          RUEDA_TCP_HEAD_BYTES - stream->in_head_got, moved);
    stream->in_head_got += *moved;
    return status;
}

bool rueda_tcp_stream_read(struct rueda_tcp_ep *ep,
                           struct rueda_tcp_stream *stream)
{
    size_t turn = 0;

    while (turn < TURN_BYTES && !ep->has_failed) {
        rueda_status status;
        size_t moved = 0;

        if (!stream->is_receiving &&
            stream->in_head_got == RUEDA_TCP_HEAD_BYTES) {
            if (!look_at_head(ep, stream))
                break;
            turn += RUEDA_TCP_HEAD_BYTES;
            continue;
        }
        if (stream->has_ended)
            break;
        status = receive_some(ep, stream, &moved);
        turn += moved;
        if (status == RUEDA_ERR_PEER_LOST && !stream->is_receiving &&
            stream->in_head_got == 0)
            stream->has_ended = true; /* in good order, between two frames */
        else if (status < 0)
            rueda_tcp_ep_fail(ep);
        if (status != RUEDA_OK)
            break;
    }
    return turn > 0;
}
