/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/cover.h"

#include <stdlib.h>
#include <string.h>

#define TAG RUEDA_SEAL_TAG_BYTES

static bool is_sealed(const struct rueda_tcp_cover *cover)
{
    return cover->shield == RUEDA_TCP_SEALED;
}

rueda_status rueda_tcp_cover_new(const struct rueda_ciphers *ciphers,
                                 struct rueda_tcp_protection protection,
                                 const struct rueda_key *session,
                                 rueda_handshake_role role,
                                 struct rueda_tcp_cover **out)
{
    const size_t frame_bytes =
        protection.shield == RUEDA_TCP_SEALED
            ? RUEDA_TCP_SEALED_HEAD_BYTES + RUEDA_TCP_PIECE_BYTES + TAG
            : RUEDA_TCP_OPEN_HEAD_BYTES;
    const struct rueda_cipher *cipher = ciphers->best[protection.cipher];
    struct rueda_tcp_cover *cover;
    rueda_status status;

    if (cipher == NULL)
        return RUEDA_ERR_AUTH;
    cover = calloc(1, sizeof(*cover) + frame_bytes);
    if (cover == NULL)
        return RUEDA_ERR_NOMEM;
    cover->shield = protection.shield;
    status = rueda_seal_pair_by(ciphers, cipher, session, role, &cover->out,
                                &cover->in);
    if (status != RUEDA_OK) {
        free(cover);
        return status;
    }
    if (!is_sealed(cover)) {
        rueda_seal_leave_open(&cover->out);
        rueda_seal_leave_open(&cover->in);
    }
    *out = cover;
    return RUEDA_OK;
}

void rueda_tcp_cover_free(struct rueda_tcp_cover *cover)
{
    if (cover == NULL)
        return;
    rueda_seal_fini(&cover->out);
    rueda_seal_fini(&cover->in);
    free(cover);
}

size_t rueda_tcp_cover_head_bytes(const struct rueda_tcp_cover *cover)
{
    return is_sealed(cover) ? RUEDA_TCP_SEALED_HEAD_BYTES
                            : RUEDA_TCP_OPEN_HEAD_BYTES;
}

bool rueda_tcp_cover_has_piece(const struct rueda_tcp_cover *cover,
                               const struct rueda_tcp_frame *frame)
{
    return cover->shield != RUEDA_TCP_PLAIN || rueda_tag_is_proven(frame->tag);
}

rueda_status rueda_tcp_cover_close(struct rueda_tcp_cover *cover,
                                   const struct rueda_tcp_frame *frame,
                                   const char *piece, size_t *out_bytes)
{
    unsigned char *second = cover->frame + RUEDA_TCP_SEALED_HEAD_BYTES;
    const size_t bytes = frame->bytes;
    rueda_status status;

    rueda_tcp_frame_encode(frame, cover->frame);
    *out_bytes = rueda_tcp_cover_head_bytes(cover);
    status =
        rueda_seal_close(&cover->out, cover->frame, RUEDA_TCP_HEAD_BYTES,
                         cover->frame, cover->frame + RUEDA_TCP_HEAD_BYTES);
    if (status != RUEDA_OK)
        return status;
    if (is_sealed(cover)) {
        if (piece == NULL)
            return RUEDA_OK;
        *out_bytes += bytes + TAG;
        return rueda_seal_close(&cover->out, piece, bytes, second,
                                second + bytes);
    }
    memset(second, 0, TAG);
    if (piece == NULL || !rueda_tcp_cover_has_piece(cover, frame))
        return RUEDA_OK;
    return rueda_seal_close(&cover->out, piece, bytes, (void *)piece, second);
}

rueda_status rueda_tcp_cover_open_head(struct rueda_tcp_cover *cover,
                                       unsigned char *head)
{
    if (!is_sealed(cover))
        memcpy(cover->tag, head + RUEDA_TCP_SEALED_HEAD_BYTES, TAG);
    return rueda_seal_open(&cover->in, head, RUEDA_TCP_HEAD_BYTES,
                           head + RUEDA_TCP_HEAD_BYTES, head);
}

/* Bytes of the tag that come behind the piece. */
static size_t tag_behind(const struct rueda_tcp_cover *cover)
{
    return is_sealed(cover) ? TAG : 0;
}

struct rueda_tcp_places rueda_tcp_cover_places(struct rueda_tcp_cover *cover,
                                               char *piece, size_t bytes)
{
    size_t in_piece = cover->got < bytes ? cover->got : bytes;
    size_t in_tag = cover->got - in_piece;

    return (struct rueda_tcp_places){
        .piece = piece != NULL ? piece + in_piece : NULL,
        .piece_left = bytes - in_piece,
        .tag = cover->tag + in_tag,
        .tag_left = tag_behind(cover) - in_tag,
    };
}

rueda_status rueda_tcp_cover_got(struct rueda_tcp_cover *cover, char *piece,
                                 size_t bytes, size_t came)
{
    cover->got += came;
    if (cover->got < bytes + tag_behind(cover))
        return RUEDA_IN_PROGRESS;
    cover->got = 0;
    if (piece == NULL)
        return rueda_seal_skip(&cover->in);
    return rueda_seal_open(&cover->in, piece, bytes, cover->tag, piece);
}
