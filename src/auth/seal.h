/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealing what follows a handshake: without the session key records can be
 * neither read nor changed, left out, repeated or reordered unnoticed. Pure: no
 * I/O; a seal of AES-256-GCM allocates what the cipher makes of the key.
 *
 * A connection has two seals at each end, one for each direction, with keys
 * that are derived from the session key and the role of the sender. A record is
 * as many bytes as its plain text, then a tag of 16:
 *
 *      ChaCha20-Poly1305 (RFC 8439) or AES-256-GCM (cipher.h)
 *      nonce    number of the record in its direction, from 0, 8 bytes
 *               little-endian, then 4 zeros
 *      no additional data
 *
 * A record has no head, and its length goes nowhere: both ends must know from
 * the records before it how long the next one is. So there is no length that
 * an attacker could change. A user who sends frames seals a head, of fixed
 * length, as one record, and what the head announces as the next:
 *
 *      | head, sealed | tag | piece, sealed | tag | head, sealed | tag | ...
 *
 * and the receiver opens the head first, believes it, and lets the piece come
 * straight to its place, to be opened there (sealed and plain may be the same
 * memory). No byte of a record is to be used before it is opened.
 *
 * A pair may also leave the bytes as they are, and only prove them: the plain
 * text is then what the cipher calls additional data, and the tag is made in
 * the same way and of the same nonces.
 *
 * The end of the stream is not sealed: between two records it looks like a peer
 * that has left, which an attacker on the way can bring about anyhow.
 *
 * The nonce never repeats under a key: a direction of a connection has
 * RUEDA_SEAL_RECORDS records, then it fails. At a million a second that
 * takes nine years; a new connection has new keys.
 *
 * Calls base/ and libsodium. A seal belongs to one thread at a time.
 */
#ifndef RUEDA_AUTH_SEAL_H
#define RUEDA_AUTH_SEAL_H

#include "auth/cipher.h"
#include "auth/handshake.h"
#include "auth/key.h"

#define RUEDA_SEAL_TAG_BYTES RUEDA_CIPHER_TAG_BYTES

/* The longest plain text of a record. */
#define RUEDA_SEAL_MOST_BYTES ((size_t)1 << 20)

/* How many records one key seals. */
#define RUEDA_SEAL_RECORDS ((uint64_t)1 << 48)

/* One direction of a connection, at one of its ends. Memory is the caller's;
 * the fields are private. All zero is a seal that fails. */
struct rueda_seal {
    struct rueda_key key; /* not present: it has failed, or was never made */
    uint64_t next;        /* number of the next record */
    bool is_open;         /* records are proven, and not encrypted */
    const struct rueda_cipher *cipher;
    void *cipher_key; /* what the cipher has made of the key, or NULL */
};

/*
 * The two seals of the end that has this role: one for what it sends, one for
 * what it receives. session is the handshake's, which need not stay.
 * RUEDA_ERR_AUTH if it is not present: there is nothing to seal with. Undo with
 * rueda_seal_fini() on each. The cipher is ChaCha20-Poly1305.
 */
rueda_status rueda_seal_pair(const struct rueda_key *session,
                             rueda_handshake_role role,
                             struct rueda_seal *out_send,
                             struct rueda_seal *out_receive);

/* The same with this cipher, one of ciphers->best, which both ends have agreed
 * on. RUEDA_ERR_NOMEM is possible too; the seals have then failed. */
rueda_status rueda_seal_pair_by(const struct rueda_ciphers *ciphers,
                                const struct rueda_cipher *cipher,
                                const struct rueda_key *session,
                                rueda_handshake_role role,
                                struct rueda_seal *out_send,
                                struct rueda_seal *out_receive);

/* Prove what this seal closes or opens from now on, and do not encrypt it. Both
 * ends do so before the first record, or neither. */
void rueda_seal_leave_open(struct rueda_seal *seal);

/* Forget the key. Harmless when repeated, and on a zeroed struct. */
void rueda_seal_fini(struct rueda_seal *seal);

/*
 * Seal the next record. out takes `bytes`, and may be plain; out_tag, 16 bytes,
 * may lie right behind it. bytes may be 0, pointers not NULL even then.
 * RUEDA_ERR_INVALID if there are more than RUEDA_SEAL_MOST_BYTES, which changes
 * nothing; RUEDA_ERR_LIMIT if the key has sealed all that it may;
 * RUEDA_ERR_CLOSED if the seal has failed. Nothing is written on failure.
 */
rueda_status rueda_seal_close(struct rueda_seal *seal, const void *plain,
                              size_t bytes, void *out, void *out_tag);

/*
 * Open the next record; out may be sealed. RUEDA_ERR_AUTH if it is not what the
 * peer has sealed as this one, and then the seal has failed for good, and out
 * is zeros: hang up. Otherwise as rueda_seal_close().
 */
rueda_status rueda_seal_open(struct rueda_seal *seal, const void *sealed,
                             size_t bytes, const void *tag, void *out);

/* The next record was thrown away unread: go on with the one after it. The same
 * statuses but RUEDA_ERR_INVALID. */
rueda_status rueda_seal_skip(struct rueda_seal *seal);

#endif /* RUEDA_AUTH_SEAL_H */
