/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/frame.h"

#include <string.h>

#include "base/bytes.h"

#define AT_BYTES    0
#define AT_KIND     4
#define AT_TERM     8
#define AT_SET      12
#define AT_SEQUENCE 16
#define AT_NUMBER   24
#define AT_FIRST    32
#define AT_OFFSET   40
#define AT_TOTAL    48

void rueda_tcp_frame_encode(const struct rueda_tcp_frame *frame,
                            unsigned char out[RUEDA_TCP_HEAD_BYTES])
{
    memset(out, 0, RUEDA_TCP_HEAD_BYTES);
    rueda_put_u32(out + AT_BYTES, frame->bytes);
    out[AT_KIND] = (unsigned char)frame->kind;
    rueda_put_u32(out + AT_TERM, frame->tag.term);
    rueda_put_u32(out + AT_SET, frame->tag.set);
    rueda_put_u64(out + AT_SEQUENCE, frame->tag.sequence);
    rueda_put_u64(out + AT_NUMBER, frame->number);
    rueda_put_u64(out + AT_FIRST, frame->first);
    rueda_put_u64(out + AT_OFFSET, frame->offset);
    rueda_put_u64(out + AT_TOTAL, frame->total);
}

/* Only a message of no bytes has an empty piece. */
static bool is_piece(const struct rueda_tcp_frame *frame)
{
    return frame->total <= RUEDA_TCP_MOST_BYTES &&
           frame->offset <= frame->total &&
           frame->bytes <= frame->total - frame->offset &&
           frame->bytes <= RUEDA_TCP_PIECE_BYTES &&
           (frame->bytes > 0 || frame->total == 0) &&
           frame->number >= frame->first &&
           (frame->offset == 0) == (frame->number == frame->first);
}

bool rueda_tcp_frame_decode(const unsigned char in[RUEDA_TCP_HEAD_BYTES],
                            struct rueda_tcp_frame *out)
{
    static const unsigned char zero[3];

    *out = (struct rueda_tcp_frame){
        .kind = (rueda_tcp_kind)in[AT_KIND],
        .bytes = rueda_get_u32(in + AT_BYTES),
        .tag = {.term = rueda_get_u32(in + AT_TERM),
                .set = rueda_get_u32(in + AT_SET),
                .sequence = rueda_get_u64(in + AT_SEQUENCE)},
        .number = rueda_get_u64(in + AT_NUMBER),
        .first = rueda_get_u64(in + AT_FIRST),
        .offset = rueda_get_u64(in + AT_OFFSET),
        .total = rueda_get_u64(in + AT_TOTAL),
    };
    if (memcmp(in + AT_KIND + 1, zero, sizeof(zero)) != 0)
        return false;
    switch (out->kind) {
    case RUEDA_TCP_PIECE:
        return is_piece(out);
    case RUEDA_TCP_GRANT:
    case RUEDA_TCP_CREDIT:
        return out->bytes == 0;
    }
    return false;
}
