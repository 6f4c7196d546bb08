/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/sealing.h"

#include <stdlib.h>
#include <string.h>

#define TAG RUEDA_SEAL_TAG_BYTES

static bool is_sealed(const struct rueda_tcp_sealing *sealing)
{
    return sealing->shield == RUEDA_TCP_SEALED;
}

rueda_status rueda_tcp_sealing_new(const struct rueda_ciphers *ciphers,
                                   struct rueda_tcp_protection protection,
                                   const struct rueda_key *session,
                                   rueda_handshake_role role,
                                   struct rueda_tcp_sealing **out)
{
    const size_t frame_bytes =
        protection.shield == RUEDA_TCP_SEALED
            ? RUEDA_TCP_SEALED_HEAD_BYTES + RUEDA_TCP_PIECE_BYTES + TAG
            : RUEDA_TCP_OPEN_HEAD_BYTES;
    const struct rueda_cipher *cipher = ciphers->best[protection.cipher];
    struct rueda_tcp_sealing *sealing;
    rueda_status status;

    if (cipher == NULL)
        return RUEDA_ERR_AUTH;
    sealing = calloc(1, sizeof(*sealing) + frame_bytes);
    if (sealing == NULL)
        return RUEDA_ERR_NOMEM;
    sealing->shield = protection.shield;
    status = rueda_seal_pair_by(ciphers, cipher, session, role, &sealing->out,
                                &sealing->in);
    if (status != RUEDA_OK) {
        free(sealing);
        return status;
    }
    if (!is_sealed(sealing)) {
        rueda_seal_leave_open(&sealing->out);
        rueda_seal_leave_open(&sealing->in);
    }
    *out = sealing;
    return RUEDA_OK;
}

void rueda_tcp_sealing_free(struct rueda_tcp_sealing *sealing)
{
    if (sealing == NULL)
        return;
    rueda_seal_fini(&sealing->out);
    rueda_seal_fini(&sealing->in);
    free(sealing);
}

size_t rueda_tcp_sealing_head_bytes(const struct rueda_tcp_sealing *sealing)
{
    return is_sealed(sealing) ? RUEDA_TCP_SEALED_HEAD_BYTES
                              : RUEDA_TCP_OPEN_HEAD_BYTES;
}

bool rueda_tcp_sealing_has_piece(const struct rueda_tcp_sealing *sealing,
                                 const struct rueda_tcp_frame *frame)
{
    return sealing->shield != RUEDA_TCP_PLAIN ||
           rueda_tag_is_proven(frame->tag);
}

rueda_status rueda_tcp_sealing_close(struct rueda_tcp_sealing *sealing,
                                     const struct rueda_tcp_frame *frame,
                                     const char *piece, size_t *out_bytes)
{
    unsigned char *second = sealing->frame + RUEDA_TCP_SEALED_HEAD_BYTES;
    const size_t bytes = frame->bytes;
    rueda_status status;

    rueda_tcp_frame_encode(frame, sealing->frame);
    *out_bytes = rueda_tcp_sealing_head_bytes(sealing);
    status =
        rueda_seal_close(&sealing->out, sealing->frame, RUEDA_TCP_HEAD_BYTES,
                         sealing->frame, sealing->frame + RUEDA_TCP_HEAD_BYTES);
    if (status != RUEDA_OK)
        return status;
    if (is_sealed(sealing)) {
        if (piece == NULL)
            return RUEDA_OK;
        *out_bytes += bytes + TAG;
        return rueda_seal_close(&sealing->out, piece, bytes, second,
                                second + bytes);
    }
    memset(second, 0, TAG);
    if (piece == NULL || !rueda_tcp_sealing_has_piece(sealing, frame))
        return RUEDA_OK;
    return rueda_seal_close(&sealing->out, piece, bytes, (void *)piece, second);
}

rueda_status rueda_tcp_sealing_open_head(struct rueda_tcp_sealing *sealing,
                                         unsigned char *head)
{
    if (!is_sealed(sealing))
        memcpy(sealing->tag, head + RUEDA_TCP_SEALED_HEAD_BYTES, TAG);
    return rueda_seal_open(&sealing->in, head, RUEDA_TCP_HEAD_BYTES,
                           head + RUEDA_TCP_HEAD_BYTES, head);
}

/* Bytes of the tag that come behind the piece. */
static size_t tag_behind(const struct rueda_tcp_sealing *sealing)
{
    return is_sealed(sealing) ? TAG : 0;
}

struct rueda_tcp_room rueda_tcp_sealing_room(struct rueda_tcp_sealing *sealing,
                                             char *piece, size_t bytes)
{
    size_t in_piece = sealing->got < bytes ? sealing->got : bytes;
    size_t in_tag = sealing->got - in_piece;

    return (struct rueda_tcp_room){
        .piece = piece != NULL ? piece + in_piece : NULL,
        .piece_left = bytes - in_piece,
        .tag = sealing->tag + in_tag,
        .tag_left = tag_behind(sealing) - in_tag,
    };
}

rueda_status rueda_tcp_sealing_got(struct rueda_tcp_sealing *sealing,
                                   char *piece, size_t bytes, size_t came)
{
    sealing->got += came;
    if (sealing->got < bytes + tag_behind(sealing))
        return RUEDA_IN_PROGRESS;
    sealing->got = 0;
    if (piece == NULL)
        return rueda_seal_skip(&sealing->in);
    return rueda_seal_open(&sealing->in, piece, bytes, sealing->tag, piece);
}
