/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes as sealed records (auth/seal.h), so that an attacker on the
 * network can neither read nor change what its two ends send: launcher and
 * agents, store and ranks:
 *
 *      | length, sealed | tag | piece, sealed | tag | length, sealed | ...
 *
 * A length is 4 bytes, little-endian, from 1 to RUEDA_SEAL_MOST_BYTES. Pure;
 * one thread at a time.
 */
#ifndef RUEDA_AUTH_SEALED_STREAM_H
#define RUEDA_AUTH_SEALED_STREAM_H

#include "auth/seal.h"
#include "base/buffer.h"

struct rueda_sealed_stream {
    struct rueda_seal out;
    struct rueda_seal in;
    size_t piece; /* bytes of the one that is coming; 0: a length comes */
};

/* Under the session key of a handshake in which we had this role. */
rueda_status rueda_sealed_stream_init(struct rueda_sealed_stream *stream,
                                      const struct rueda_key *session,
                                      rueda_handshake_role role);
void rueda_sealed_stream_fini(struct rueda_sealed_stream *stream);

/* Append bytes to out, sealed. False: no memory, or the seal has failed. */
bool rueda_sealed_stream_close(struct rueda_sealed_stream *stream,
                               const unsigned char *bytes, size_t len,
                               struct rueda_buffer *out);

/* Take what is whole from sealed, and append it to out, opened. False: it is
 * not what the peer has sealed, or there is no memory; hang up. */
bool rueda_sealed_stream_open(struct rueda_sealed_stream *stream,
                              struct rueda_buffer *sealed,
                              struct rueda_buffer *out);

#endif /* RUEDA_AUTH_SEALED_STREAM_H */
