/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/sealing.h"

#include <stdlib.h>

rueda_status rueda_tcp_sealing_new(const struct rueda_key *session,
                                   rueda_handshake_role role, bool is_open,
                                   struct rueda_tcp_sealing **out)
{
    struct rueda_tcp_sealing *sealing = calloc(1, sizeof(*sealing));
    rueda_status status;

    if (sealing == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_seal_pair(session, role, &sealing->out, &sealing->in);
    if (status != RUEDA_OK) {
        free(sealing);
        return status;
    }
    if (is_open) {
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

rueda_status
rueda_tcp_sealing_close(struct rueda_tcp_sealing *sealing,
                        const unsigned char head[RUEDA_TCP_HEAD_BYTES],
                        const char *piece, size_t bytes, size_t *out_bytes)
{
    unsigned char *second = sealing->frame + RUEDA_TCP_SEALED_HEAD_BYTES;
    rueda_status status;

    status =
        rueda_seal_close(&sealing->out, head, RUEDA_TCP_HEAD_BYTES,
                         sealing->frame, sealing->frame + RUEDA_TCP_HEAD_BYTES);
    *out_bytes = RUEDA_TCP_SEALED_HEAD_BYTES;
    if (status != RUEDA_OK || piece == NULL)
        return status;
    *out_bytes += bytes + RUEDA_SEAL_TAG_BYTES;
    return rueda_seal_close(&sealing->out, piece, bytes, second,
                            second + bytes);
}

rueda_status
rueda_tcp_sealing_open_head(struct rueda_tcp_sealing *sealing,
                            unsigned char head[RUEDA_TCP_SEALED_HEAD_BYTES])
{
    return rueda_seal_open(&sealing->in, head, RUEDA_TCP_HEAD_BYTES,
                           head + RUEDA_TCP_HEAD_BYTES, head);
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
        .tag_left = RUEDA_SEAL_TAG_BYTES - in_tag,
    };
}

rueda_status rueda_tcp_sealing_got(struct rueda_tcp_sealing *sealing,
                                   char *piece, size_t bytes, size_t came)
{
    sealing->got += came;
    if (sealing->got < bytes + RUEDA_SEAL_TAG_BYTES)
        return RUEDA_IN_PROGRESS;
    sealing->got = 0;
    if (piece == NULL)
        return rueda_seal_skip(&sealing->in);
    return rueda_seal_open(&sealing->in, piece, bytes, sealing->tag, piece);
}
