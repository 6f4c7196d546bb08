/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cover.h"

#include "base/bytes.h"

#define LENGTH_BYTES ((size_t)4)
#define TAG          RUEDA_SEAL_TAG_BYTES

rueda_status rueda_cover_init(struct rueda_cover *cover,
                              const struct rueda_key *session,
                              rueda_handshake_role role)
{
    *cover = (struct rueda_cover){.piece = 0};
    return rueda_seal_pair(session, role, &cover->out, &cover->in);
}

void rueda_cover_fini(struct rueda_cover *cover)
{
    rueda_seal_fini(&cover->out);
    rueda_seal_fini(&cover->in);
}

static bool close_record(struct rueda_cover *cover, const unsigned char *bytes,
                         size_t len, struct rueda_buffer *out)
{
    unsigned char *place = rueda_buffer_reserve(out, len + TAG);

    if (place == NULL || rueda_seal_close(&cover->out, bytes, len, place,
                                          place + len) != RUEDA_OK)
        return false;
    rueda_buffer_added(out, len + TAG);
    return true;
}

bool rueda_cover_close(struct rueda_cover *cover, const unsigned char *bytes,
                       size_t len, struct rueda_buffer *out)
{
    while (len > 0) {
        const size_t piece =
            len < RUEDA_SEAL_MOST_BYTES ? len : RUEDA_SEAL_MOST_BYTES;
        unsigned char length[LENGTH_BYTES];

        rueda_put_u32(length, (uint32_t)piece);
        if (!close_record(cover, length, LENGTH_BYTES, out) ||
            !close_record(cover, bytes, piece, out))
            return false;
        bytes += piece;
        len -= piece;
    }
    return true;
}

static bool open_length(struct rueda_cover *cover, struct rueda_buffer *sealed)
{
    const unsigned char *front = rueda_buffer_front(sealed);
    unsigned char length[LENGTH_BYTES];

    if (rueda_seal_open(&cover->in, front, LENGTH_BYTES, front + LENGTH_BYTES,
                        length) != RUEDA_OK)
        return false;
    cover->piece = rueda_get_u32(length);
    rueda_buffer_drop(sealed, LENGTH_BYTES + TAG);
    return cover->piece > 0 && cover->piece <= RUEDA_SEAL_MOST_BYTES;
}

static bool open_piece(struct rueda_cover *cover, struct rueda_buffer *sealed,
                       struct rueda_buffer *out)
{
    const unsigned char *front = rueda_buffer_front(sealed);
    unsigned char *place = rueda_buffer_reserve(out, cover->piece);

    if (place == NULL ||
        rueda_seal_open(&cover->in, front, cover->piece, front + cover->piece,
                        place) != RUEDA_OK)
        return false;
    rueda_buffer_added(out, cover->piece);
    rueda_buffer_drop(sealed, cover->piece + TAG);
    cover->piece = 0;
    return true;
}

bool rueda_cover_open(struct rueda_cover *cover, struct rueda_buffer *sealed,
                      struct rueda_buffer *out)
{
    for (;;) {
        const size_t wanted =
            (cover->piece > 0 ? cover->piece : LENGTH_BYTES) + TAG;

        if (rueda_buffer_len(sealed) < wanted)
            return true;
        if (!(cover->piece > 0 ? open_piece(cover, sealed, out)
                               : open_length(cover, sealed)))
            return false;
    }
}
