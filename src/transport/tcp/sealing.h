/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the frames of a stream are protected (auth/seal.h). One decision of the
 * job (job/encryption.h) says which of three:
 *
 *      sealed   head and piece are encrypted
 *      proven   head and piece are authenticated
 *      plain    heads are authenticated, and the pieces of messages whose tag
 *               says so: those by which ranks negotiate, and tensors of other
 *               types than floating-point numbers. The pieces of the latter
 *               are bare
 *
 * An attacker on the way cannot change, leave out, repeat or move an operation,
 * however its tensors travel. A frame is
 *
 *      sealed         | head | tag | piece | tag |
 *      proven, plain  | head | tag | tag of the piece, or zeros | piece |
 *
 * A sealed piece comes straight to its place and is opened there. Others go out
 * from where they are and come straight to their places; the tag before them
 * lets the next head be read with the end of the piece.
 */
#ifndef RUEDA_TRANSPORT_TCP_SEALING_H
#define RUEDA_TRANSPORT_TCP_SEALING_H

#include "auth/seal.h"
#include "transport/tcp/about.h"
#include "transport/tcp/frame.h"

#define RUEDA_TCP_SEALED_HEAD_BYTES                                            \
    (RUEDA_TCP_HEAD_BYTES + RUEDA_SEAL_TAG_BYTES)
#define RUEDA_TCP_OPEN_HEAD_BYTES                                              \
    (RUEDA_TCP_SEALED_HEAD_BYTES + RUEDA_SEAL_TAG_BYTES)

struct rueda_tcp_sealing {
    rueda_tcp_shield shield;
    struct rueda_seal out;
    struct rueda_seal in;

    /* The piece that comes in. */
    size_t got; /* bytes of it and of its tag */
    unsigned char tag[RUEDA_SEAL_TAG_BYTES];

    /* The frame that goes out: all of it if it is sealed, else the head. */
    unsigned char frame[];
};

/* ciphers stays until the sealing is freed. RUEDA_ERR_NOMEM, RUEDA_ERR_AUTH:
 * there is no session key. */
rueda_status rueda_tcp_sealing_new(const struct rueda_ciphers *ciphers,
                                   struct rueda_tcp_protection protection,
                                   const struct rueda_key *session,
                                   rueda_handshake_role role,
                                   struct rueda_tcp_sealing **out);

/* NULL is allowed. */
void rueda_tcp_sealing_free(struct rueda_tcp_sealing *sealing);

/* Bytes of a head with all that comes before the piece. */
size_t rueda_tcp_sealing_head_bytes(const struct rueda_tcp_sealing *sealing);

/* Close a frame; piece is NULL if it has none. *out_bytes of sealing->frame are
 * to be sent, and behind them the piece unless it is sealed. */
rueda_status rueda_tcp_sealing_close(struct rueda_tcp_sealing *sealing,
                                     const struct rueda_tcp_frame *frame,
                                     const char *piece, size_t *out_bytes);

/* Open a head, in place, with all that comes before the piece. */
rueda_status rueda_tcp_sealing_open_head(struct rueda_tcp_sealing *sealing,
                                         unsigned char *head);

/* Is the piece of this frame protected, and counts only as a whole? */
bool rueda_tcp_sealing_has_piece(const struct rueda_tcp_sealing *sealing,
                                 const struct rueda_tcp_frame *frame);

/* Where the next bytes of a protected piece of `bytes` and of its tag go.
 * `piece` is NULL if it is thrown away; tag_left is 0 if the tag has come. */
struct rueda_tcp_room {
    char *piece;
    size_t piece_left;
    unsigned char *tag;
    size_t tag_left;
};
struct rueda_tcp_room rueda_tcp_sealing_room(struct rueda_tcp_sealing *sealing,
                                             char *piece, size_t bytes);

/* Some of these have come. RUEDA_OK: the last of them, and the piece is opened;
 * it was thrown away if `piece` is NULL. RUEDA_IN_PROGRESS: not the last. */
rueda_status rueda_tcp_sealing_got(struct rueda_tcp_sealing *sealing,
                                   char *piece, size_t bytes, size_t came);

#endif /* RUEDA_TRANSPORT_TCP_SEALING_H */
