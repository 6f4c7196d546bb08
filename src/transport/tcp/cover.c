/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/cover.h"

#include <stdlib.h>

rueda_status rueda_tcp_cover_new(const struct rueda_key *session,
                                 rueda_handshake_role role, bool is_open,
                                 struct rueda_tcp_cover **out)
{
    struct rueda_tcp_cover *cover = calloc(1, sizeof(*cover));
    rueda_status status;

    if (cover == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_seal_pair(session, role, &cover->out, &cover->in);
    if (status != RUEDA_OK) {
        free(cover);
        return status;
    }
    if (is_open) {
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

rueda_status
rueda_tcp_cover_close(struct rueda_tcp_cover *cover,
                      const unsigned char head[RUEDA_TCP_HEAD_BYTES],
                      const char *piece, size_t bytes, size_t *out_bytes)
{
    unsigned char *second = cover->frame + RUEDA_TCP_SEALED_HEAD_BYTES;
    rueda_status status;

    status =
        rueda_seal_close(&cover->out, head, RUEDA_TCP_HEAD_BYTES, cover->frame,
                         cover->frame + RUEDA_TCP_HEAD_BYTES);
    *out_bytes = RUEDA_TCP_SEALED_HEAD_BYTES;
    if (status != RUEDA_OK || piece == NULL)
        return status;
    *out_bytes += bytes + RUEDA_SEAL_TAG_BYTES;
    return rueda_seal_close(&cover->out, piece, bytes, second, second + bytes);
}

rueda_status
rueda_tcp_cover_open_head(struct rueda_tcp_cover *cover,
                          unsigned char head[RUEDA_TCP_SEALED_HEAD_BYTES])
{
    return rueda_seal_open(&cover->in, head, RUEDA_TCP_HEAD_BYTES,
                           head + RUEDA_TCP_HEAD_BYTES, head);
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
        .tag_left = RUEDA_SEAL_TAG_BYTES - in_tag,
    };
}

rueda_status rueda_tcp_cover_got(struct rueda_tcp_cover *cover, char *piece,
                                 size_t bytes, size_t came)
{
    cover->got += came;
    if (cover->got < bytes + RUEDA_SEAL_TAG_BYTES)
        return RUEDA_IN_PROGRESS;
    cover->got = 0;
    if (piece == NULL)
        return rueda_seal_skip(&cover->in);
    return rueda_seal_open(&cover->in, piece, bytes, cover->tag, piece);
}
