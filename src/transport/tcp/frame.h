/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What travels on a stream between two ranks, after the handshake: frames, each
 * a head and, if it is a piece of a message, its bytes. Numbers are
 * little-endian:
 *
 *      at   bytes
 *       0       4   bytes that follow the head
 *       4       1   kind
 *       5       3   zero
 *       8       4   term
 *      12       4   set
 *      16       8   sequence: these three are the message's tag
 *      24       8   number of the piece, from 0, over all streams one way
 *      32       8   number of the message's first piece, which names it
 *      40       8   where in the message the piece belongs
 *      48       8   bytes of the whole message
 *
 *      PIECE    of a message; everything above counts
 *      GRANT    message `first` has found its receive: send all of it
 *      CREDIT   `total` bytes of pieces have been taken so far
 *
 * A GRANT or CREDIT has no tag of its own and no bytes. The bytes are a
 * stranger's until they are checked: decode() refuses what no sender of ours
 * can have written. Pure.
 */
#ifndef RUEDA_TRANSPORT_TCP_FRAME_H
#define RUEDA_TRANSPORT_TCP_FRAME_H

#include "transport/transport.h"

#define RUEDA_TCP_HEAD_BYTES 56

/* The longest piece: heads, system calls and the last, short packet of each
 * cost little then. */
#define RUEDA_TCP_PIECE_BYTES ((size_t)512 << 10)

/* The longest message. */
#define RUEDA_TCP_MOST_BYTES ((uint64_t)1 << 46)

typedef enum rueda_tcp_kind {
    RUEDA_TCP_PIECE = 1,
    RUEDA_TCP_GRANT = 2,
    RUEDA_TCP_CREDIT = 3,
} rueda_tcp_kind;

struct rueda_tcp_frame {
    rueda_tcp_kind kind;
    uint32_t bytes;
    struct rueda_tag tag;
    uint64_t number;
    uint64_t first;
    uint64_t offset;
    uint64_t total;
};

void rueda_tcp_frame_encode(const struct rueda_tcp_frame *frame,
                            unsigned char out[RUEDA_TCP_HEAD_BYTES]);

/* False: no frame; hang up. */
bool rueda_tcp_frame_decode(const unsigned char in[RUEDA_TCP_HEAD_BYTES],
                            struct rueda_tcp_frame *out);

#endif /* RUEDA_TRANSPORT_TCP_FRAME_H */
