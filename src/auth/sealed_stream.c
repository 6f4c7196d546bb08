/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/sealed_stream.h"

#include "base/bytes.h"

#define LENGTH_BYTES ((size_t)4)
#define TAG          RUEDA_SEAL_TAG_BYTES

rueda_status rueda_sealed_stream_init(struct rueda_sealed_stream *stream,
                                      const struct rueda_key *session,
                                      rueda_handshake_role role)
{
    *stream = (struct rueda_sealed_stream){.piece = 0};
    return rueda_seal_pair(session, role, &stream->out, &stream->in);
}

void rueda_sealed_stream_fini(struct rueda_sealed_stream *stream)
{
    rueda_seal_fini(&stream->out);
    rueda_seal_fini(&stream->in);
}

static bool close_record(struct rueda_sealed_stream *stream,
                         const unsigned char *bytes, size_t len,
                         struct rueda_buffer *out)
{
    unsigned char *place = rueda_buffer_reserve(out, len + TAG);

    if (place == NULL || rueda_seal_close(&stream->out, bytes, len, place,
                                          place + len) != RUEDA_OK)
        return false;
    rueda_buffer_added(out, len + TAG);
    return true;
}

bool rueda_sealed_stream_close(struct rueda_sealed_stream *stream,
                               const unsigned char *bytes, size_t len,
                               struct rueda_buffer *out)
{
    while (len > 0) {
        const size_t piece =
            len < RUEDA_SEAL_MOST_BYTES ? len : RUEDA_SEAL_MOST_BYTES;
        unsigned char length[LENGTH_BYTES];

        rueda_put_u32(length, (uint32_t)piece);
        if (!close_record(stream, length, LENGTH_BYTES, out) ||
            !close_record(stream, bytes, piece, out))
            return false;
        bytes += piece;
        len -= piece;
    }
    return true;
}

static bool open_length(struct rueda_sealed_stream *stream,
                        struct rueda_buffer *sealed)
{
    const unsigned char *front = rueda_buffer_front(sealed);
    unsigned char length[LENGTH_BYTES];

    if (rueda_seal_open(&stream->in, front, LENGTH_BYTES, front + LENGTH_BYTES,
                        length) != RUEDA_OK)
        return false;
    stream->piece = rueda_get_u32(length);
    rueda_buffer_drop(sealed, LENGTH_BYTES + TAG);
    return stream->piece > 0 && stream->piece <= RUEDA_SEAL_MOST_BYTES;
}

static bool open_piece(struct rueda_sealed_stream *stream,
                       struct rueda_buffer *sealed, struct rueda_buffer *out)
{
    const unsigned char *front = rueda_buffer_front(sealed);
    unsigned char *place = rueda_buffer_reserve(out, stream->piece);

    if (place == NULL ||
        rueda_seal_open(&stream->in, front, stream->piece,
                        front + stream->piece, place) != RUEDA_OK)
        return false;
    rueda_buffer_added(out, stream->piece);
    rueda_buffer_drop(sealed, stream->piece + TAG);
    stream->piece = 0;
    return true;
}

bool rueda_sealed_stream_open(struct rueda_sealed_stream *stream,
                              struct rueda_buffer *sealed,
                              struct rueda_buffer *out)
{
    for (;;) {
        const size_t wanted =
            (stream->piece > 0 ? stream->piece : LENGTH_BYTES) + TAG;

        if (rueda_buffer_len(sealed) < wanted)
            return true;
        if (!(stream->piece > 0 ? open_piece(stream, sealed, out)
                                : open_length(stream, sealed)))
            return false;
    }
}
