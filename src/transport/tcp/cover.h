/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream has in addition if it is sealed (auth/seal.h). A frame is then
 * two records, its head and, if it has one, its piece:
 *
 *      | head, sealed | tag | piece, sealed | tag |
 *
 * A piece comes straight to its place and is opened there.
 */
#ifndef RUEDA_TRANSPORT_TCP_COVER_H
#define RUEDA_TRANSPORT_TCP_COVER_H

#include "auth/seal.h"
#include "transport/tcp/frame.h"

#define RUEDA_TCP_SEALED_HEAD_BYTES                                            \
    (RUEDA_TCP_HEAD_BYTES + RUEDA_SEAL_TAG_BYTES)

struct rueda_tcp_cover {
    struct rueda_seal out;
    struct rueda_seal in;

    /* The piece that comes in. */
    size_t got; /* bytes of it and of its tag */
    unsigned char tag[RUEDA_SEAL_TAG_BYTES];

    /* The frame that goes out. */
    unsigned char frame[RUEDA_TCP_SEALED_HEAD_BYTES + RUEDA_TCP_PIECE_BYTES +
                        RUEDA_SEAL_TAG_BYTES];
};

/* is_open: frames are proven, and not encrypted. RUEDA_ERR_NOMEM,
 * RUEDA_ERR_AUTH: there is no session key. */
rueda_status rueda_tcp_cover_new(const struct rueda_key *session,
                                 rueda_handshake_role role, bool is_open,
                                 struct rueda_tcp_cover **out);

/* NULL is allowed. */
void rueda_tcp_cover_free(struct rueda_tcp_cover *cover);

/* Seal a frame into cover->frame; piece is NULL if it has none. */
rueda_status
rueda_tcp_cover_close(struct rueda_tcp_cover *cover,
                      const unsigned char head[RUEDA_TCP_HEAD_BYTES],
                      const char *piece, size_t bytes, size_t *out_bytes);

/* Open a head, in place. */
rueda_status
rueda_tcp_cover_open_head(struct rueda_tcp_cover *cover,
                          unsigned char head[RUEDA_TCP_SEALED_HEAD_BYTES]);

/* Where the next bytes of a piece of `bytes` and of its tag go. `piece` is NULL
 * if it is thrown away. */
struct rueda_tcp_places {
    char *piece;
    size_t piece_left;
    unsigned char *tag;
    size_t tag_left;
};
struct rueda_tcp_places rueda_tcp_cover_places(struct rueda_tcp_cover *cover,
                                               char *piece, size_t bytes);

/* Some of these have come. RUEDA_OK: the last of them, and the piece is opened;
 * it was thrown away if `piece` is NULL. RUEDA_IN_PROGRESS: not the last. */
rueda_status rueda_tcp_cover_got(struct rueda_tcp_cover *cover, char *piece,
                                 size_t bytes, size_t came);

#endif /* RUEDA_TRANSPORT_TCP_COVER_H */
