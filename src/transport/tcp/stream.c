/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "tcp"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#include "os/event.h"
#include "os/stream.h"
#include "transport/tcp/ep.h"

/* So much at a time from one stream, then the others have their turn. */
#define TURN_BYTES ((size_t)1 << 20)

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

rueda_status rueda_tcp_stream_open(struct rueda_tcp_stream *stream, int fd)
{
    stream->ahead = malloc(RUEDA_TCP_AHEAD_BYTES);
    if (stream->ahead == NULL)
        return RUEDA_ERR_NOMEM;
    stream->fd = fd;
    return RUEDA_OK;
}

void rueda_tcp_stream_close(struct rueda_tcp_stream *stream)
{
    rueda_fd_close(stream->fd);
    stream->fd = -1;
    free(stream->ahead);
    stream->ahead = NULL;
}

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
    bool is_full = false;

    while (turn < TURN_BYTES && !is_full) {
        size_t moved;

        if (!stream->is_sending && !rueda_tcp_sender_next(ep, stream))
            break;
        if (send_some(stream, &moved) < 0) {
            rueda_tcp_ep_fail(ep);
            return true;
        }
        stream->out_sent += moved;
        stream->written += moved;
        turn += moved;
        if (stream->out_sent == RUEDA_TCP_HEAD_BYTES + stream->out_bytes)
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

/* A head has been read ahead. False: its turn has not come, or the endpoint
 * fails. */
static bool look_at_head(struct rueda_tcp_ep *ep,
                         struct rueda_tcp_stream *stream)
{
    bool makes_sense = rueda_tcp_frame_decode(
        stream->ahead + stream->ahead_begin, &stream->in);

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
        log_error("rank %d has sent what makes no sense: its connection ends",
                  ep->super.peer);
        rueda_tcp_ep_fail(ep);
        return false;
    }
    stream->ahead_begin += RUEDA_TCP_HEAD_BYTES;
    if (stream->is_receiving && stream->in.bytes == 0)
        rueda_tcp_receiver_got(ep, stream);
    return true;
}

/* The next bytes of the piece that have been read ahead find their place. */
static size_t fill_piece(struct rueda_tcp_ep *ep,
                         struct rueda_tcp_stream *stream)
{
    size_t bytes = least(ahead_of(stream), stream->in.bytes - stream->in_got);
    char *place = rueda_tcp_receiver_place(stream);

    if (place != NULL)
        memcpy(place, stream->ahead + stream->ahead_begin, bytes);
    stream->ahead_begin += bytes;
    stream->in_got += bytes;
    rueda_tcp_receiver_got(ep, stream);
    return bytes;
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

/* The rest of the piece, straight to its place, and what follows it. */
static rueda_status read_piece(struct rueda_tcp_ep *ep,
                               struct rueda_tcp_stream *stream, size_t *moved,
                               bool *is_dry)
{
    size_t left = stream->in.bytes - stream->in_got;
    char *place = rueda_tcp_receiver_place(stream);
    rueda_status status;

    if (place == NULL)
        return read_ahead(stream, moved, is_dry);
    status = rueda_stream_recv_both(stream->fd, place, left, stream->ahead,
                                    RUEDA_TCP_AHEAD_BYTES, moved);
    stream->ahead_begin = 0;
    stream->ahead_end = *moved > left ? *moved - left : 0;
    *is_dry = *moved < left + RUEDA_TCP_AHEAD_BYTES;
    if (*moved > 0) {
        stream->in_got += least(*moved, left);
        rueda_tcp_receiver_got(ep, stream);
    }
    return status;
}

bool rueda_tcp_stream_read(struct rueda_tcp_ep *ep,
                           struct rueda_tcp_stream *stream)
{
    size_t turn = 0;
    bool is_dry = false;

    while (turn < TURN_BYTES && !ep->has_failed) {
        rueda_status status;
        size_t moved = 0;

        if (stream->is_receiving && ahead_of(stream) > 0) {
            turn += fill_piece(ep, stream);
            continue;
        }
        if (!stream->is_receiving && ahead_of(stream) >= RUEDA_TCP_HEAD_BYTES) {
            if (!look_at_head(ep, stream))
                break;
            turn += RUEDA_TCP_HEAD_BYTES;
            continue;
        }
        if (is_dry || stream->has_ended)
            break;
        status = stream->is_receiving ? read_piece(ep, stream, &moved, &is_dry)
                                      : read_ahead(stream, &moved, &is_dry);
        turn += moved;
        if (status == RUEDA_ERR_PEER_LOST && !stream->is_receiving &&
            ahead_of(stream) == 0)
            stream->has_ended = true; /* in good order, between two frames */
        else if (status < 0)
            rueda_tcp_ep_fail(ep);
    }
    return turn > 0;
}
