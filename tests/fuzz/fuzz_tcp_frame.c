/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of frames on a stream. One that is accepted is written in no other way,
 * and a piece lies inside its message. */
#include "fuzz/fuzz.h"
#include "transport/tcp/frame.h"

static void check_piece(const struct rueda_tcp_frame *frame)
{
    must(frame->bytes <= RUEDA_TCP_PIECE_BYTES);
    must(frame->total <= RUEDA_TCP_MOST_BYTES);
    must(frame->offset + frame->bytes <= frame->total);
    must(frame->bytes > 0 || frame->total == 0);
    must(frame->number >= frame->first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_TCP_HEAD_BYTES];
    struct rueda_tcp_frame frame;

    for (; size >= RUEDA_TCP_HEAD_BYTES; size -= RUEDA_TCP_HEAD_BYTES) {
        if (rueda_tcp_frame_decode(data, &frame)) {
            if (frame.kind == RUEDA_TCP_PIECE)
                check_piece(&frame);
            else
                must(frame.bytes == 0);
            rueda_tcp_frame_encode(&frame, again);
            must(memcmp(again, data, sizeof(again)) == 0);
        }
        data += RUEDA_TCP_HEAD_BYTES;
    }
    return 0;
}
