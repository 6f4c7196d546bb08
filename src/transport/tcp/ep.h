/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of an endpoint: what its files share.
 *
 *      ep.c       the contract's calls, life and death
 *      stream.c   frames in and out of one socket
 *      sender.c   which piece a stream sends next
 *      receiver.c where a piece that comes belongs
 *
 * A message is cut into pieces (frame.h). Whichever stream has nothing to send
 * takes the next piece, so a slow one sends fewer, and shorter ones: no piece
 * should take longer than a moment. Pieces are numbered over all streams; the
 * receiver looks at their heads in the order of their numbers, and a stream
 * that is ahead waits for the others. So messages of one tag are matched in the
 * order in which they were sent.
 *
 * A message without a receive is held by the receiver, up to HELD_BYTES
 * of it; the sender stops there until it is granted. All together the receiver
 * holds at most WINDOW_BYTES: the sender counts what it has sent against the
 * credit that comes back, and the receiver takes no more than it has given
 * credit for; room is made for a whole message at once, but no more than
 * OUTGOING may be unfinished. Hence memory is bounded, and a few messages
 * without a receive do not hold up others. HELD_BYTES are as long as algorithms
 * make the pieces of long vectors, so that none of these has to wait until it
 * is granted.
 */
#ifndef RUEDA_TRANSPORT_TCP_EP_H
#define RUEDA_TRANSPORT_TCP_EP_H

#include "transport/reqs.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/sealing.h"
#include "transport/tcp/speed.h"
#include "transport/tcp/tcp.h"

#define RUEDA_TCP_HELD_BYTES   RUEDA_TCP_PIECE_BYTES
#define RUEDA_TCP_WINDOW_BYTES ((uint64_t)4 << 20)
#define RUEDA_TCP_OUTGOING     16 /* messages that are in flight at a time */

/* What a piece costs of the window, so that many short ones count too. */
#define RUEDA_TCP_PIECE_COST 128

/* A message that is being sent. */
struct rueda_tcp_outgoing {
    struct rueda_req *req; /* NULL: a free place */
    uint64_t first;
    size_t assigned; /* bytes that streams have taken */
    bool has_begun;
    bool is_granted;
};

/* A message that is being received, or waits to be. */
struct rueda_tcp_incoming {
    struct rueda_tcp_incoming *next;
    uint64_t first;
    struct rueda_tag tag;
    size_t total;
    struct rueda_req *req; /* NULL: no receive is posted for it yet */
    bool is_dropped;       /* it did not fit its receive */
    size_t begun;          /* bytes of pieces that have begun to come */
    size_t got;            /* bytes of pieces that have come whole */
    uint64_t held;         /* their cost, as long as there is no receive */
    char *store;           /* bytes until then */
};

/* Heads and short pieces are read ahead, so that a short message takes one
 * system call. */
#define RUEDA_TCP_AHEAD_BYTES 4096

struct rueda_tcp_stream {
    int fd;         /* -1: none */
    bool has_ended; /* the peer will send nothing more */
    unsigned quiet; /* how often in a row nothing came, up to a limit */
    unsigned rest;  /* how many more turns may skip it */

    struct rueda_tcp_sealing *sealing;

    /* The frame that goes out: its head and its piece, or the sealed frame and
     * no piece. */
    bool is_sending;
    const unsigned char *out_first;
    size_t out_first_bytes;
    const char *out_piece;
    size_t out_piece_bytes;
    size_t out_sent;                     /* of both together */
    size_t out_bytes;                    /* of a message */
    struct rueda_tcp_outgoing *outgoing; /* NULL: a GRANT or CREDIT */

    uint64_t written; /* bytes, so far */
    struct rueda_tcp_speed speed;

    /* The frame that comes in. */
    bool has_head;     /* its head has come, and not yet its turn */
    bool is_receiving; /* its bytes are coming */
    struct rueda_tcp_frame in;
    size_t in_got; /* bytes of the piece */
    struct rueda_tcp_incoming *incoming;
    unsigned char *ahead; /* [RUEDA_TCP_AHEAD_BYTES] */
    size_t ahead_begin;
    size_t ahead_end;
};

struct rueda_tcp_ep {
    struct rueda_ep super;
    struct rueda_tcp_hub *hub;
    bool has_failed;
    struct rueda_tcp_stream streams[RUEDA_TCP_MOST_STREAMS];
    int stream_count; /* that have been connected so far */
    unsigned checks;  /* of the hub, when all streams were checked last */

    /* sender.c */
    struct rueda_reqs sends; /* not begun */
    struct rueda_tcp_outgoing outgoing[RUEDA_TCP_OUTGOING];
    uint64_t next_out; /* number of the next piece */
    uint64_t spent;    /* cost of all pieces so far */
    uint64_t credited;
    bool has_been_asked; /* for a message from any peer, since progress() */
    bool is_held_back;   /* a slow stream was given nothing, lately */

    /* receiver.c */
    struct rueda_reqs recvs;             /* no message yet */
    struct rueda_tcp_incoming *incoming; /* oldest first */
    struct rueda_tcp_incoming *spare;
    int unfinished;   /* messages with pieces that have not begun to come */
    uint64_t next_in; /* number of the piece to be looked at next */
    uint64_t come;    /* cost of the pieces before it */
    uint64_t taken;   /* cost of pieces that have found their place */
    uint64_t told;    /* of that, what the peer knows */
    uint64_t grants[RUEDA_TCP_OUTGOING]; /* messages to be granted */
    int grant_count;
};

/* Fail for good: everything in flight ends with RUEDA_ERR_PEER_LOST. What has
 * come whole can still be received. */
void rueda_tcp_ep_fail(struct rueda_tcp_ep *ep);

/* ---- stream.c ----------------------------------------------------------- */

/* fd and sealing belong to the stream from now on, unless
 * there is no memory. */
rueda_status rueda_tcp_stream_open(struct rueda_tcp_stream *stream, int fd,
                                   struct rueda_tcp_sealing *sealing);
void rueda_tcp_stream_close(struct rueda_tcp_stream *stream);

/* True if bytes moved. A stream that breaks makes the endpoint fail. */
bool rueda_tcp_stream_read(struct rueda_tcp_ep *ep,
                           struct rueda_tcp_stream *stream);
bool rueda_tcp_stream_write(struct rueda_tcp_ep *ep,
                            struct rueda_tcp_stream *stream);

/* ---- sender.c ----------------------------------------------------------- */

/* Give the stream a frame to send; false if there is none now, or the endpoint
 * fails. */
bool rueda_tcp_sender_next(struct rueda_tcp_ep *ep,
                           struct rueda_tcp_stream *stream);

/* The stream has sent its frame. */
void rueda_tcp_sender_done(struct rueda_tcp_stream *stream);

/* Is any message half sent? */
bool rueda_tcp_sender_is_busy(const struct rueda_tcp_ep *ep);

/* GRANT or CREDIT has come; false if it makes no sense. */
bool rueda_tcp_sender_told(struct rueda_tcp_ep *ep,
                           const struct rueda_tcp_frame *frame);

/* ---- receiver.c --------------------------------------------------------- */

/* The head of a piece, stream->in, whose turn it is. RUEDA_ERR_INVALID: it
 * makes no sense; RUEDA_ERR_NOMEM: it does, but its message has no receive, and
 * there is no memory to hold it. */
rueda_status rueda_tcp_receiver_begin(struct rueda_tcp_ep *ep,
                                      struct rueda_tcp_stream *stream);

/* Where the next bytes of the stream's piece go; NULL: nowhere. */
char *rueda_tcp_receiver_target(const struct rueda_tcp_stream *stream);

/* Some bytes of the stream's piece, perhaps the last, have come. */
void rueda_tcp_receiver_got(struct rueda_tcp_ep *ep,
                            struct rueda_tcp_stream *stream);

/* Does a message of this tag, or its beginning, wait for a receive? */
bool rueda_tcp_receiver_has(const struct rueda_tcp_ep *ep, struct rueda_tag tag,
                            size_t *out_len);

/* Is there a message for this receive, or its beginning? Then they are one from
 * now on. */
bool rueda_tcp_receiver_find(struct rueda_tcp_ep *ep, struct rueda_req *req);

/* Is any message half received that has a receive? */
bool rueda_tcp_receiver_is_busy(const struct rueda_tcp_ep *ep);

/* The endpoint's term has risen: drop the messages without a receive that are
 * too old. */
void rueda_tcp_receiver_begin_term(struct rueda_tcp_ep *ep);

/* End all receives with status, and forget all messages but those that have
 * come whole and wait to be asked for. */
void rueda_tcp_receiver_end(struct rueda_tcp_ep *ep, rueda_status status);

/* Forget these too. */
void rueda_tcp_receiver_fini(struct rueda_tcp_ep *ep);

#endif /* RUEDA_TRANSPORT_TCP_EP_H */
