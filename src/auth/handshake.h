/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake: two ends of a fresh connection agree on a version and prove
 * to each other that they know the job's key, before anything else is read.
 * A pure state machine: bytes in, bytes out, no I/O, nothing allocated.
 *
 *      initiator                                        acceptor
 *          HELLO  ------------------\ /------------------  HELLO
 *                 <-----------------/ \----------------->
 *          PROOF  -------------------------------------->  checks it
 *      checks it  <--------------------------------------  PROOF
 *
 * HELLO is 118 bytes, numbers are little-endian:
 *
 *      at   bytes
 *       0       8   magic, "RUEDA" 0 0 1
 *       8       4   version of the protocol
 *      12       4   oldest version that this end still speaks
 *      16       1   flags: 1 has a key, 2 is the initiator
 *      17       1   what the connection is for (rueda_purpose)
 *      18       2   zero
 *      20      32   nonce, fresh for each connection
 *      52       2   length of what this end says about itself
 *      54      64   that, then zeros
 *
 * Every version keeps the first 16 bytes and the size. PROOF is 32 bytes:
 * BLAKE2b under the key, over a label that names the role of its sender, the
 * initiator's HELLO and the acceptor's. So a proof is good for one sender in
 * one connection, and only if both ends saw every bit of both HELLOs alike:
 * replay, reflection, tampering and a forced older version all fail. The
 * acceptor, to which any process can connect, proves nothing to a stranger.
 *
 * What it does not do. Without a key on either end the proof is made under a
 * key of zeros and finds only accidents: the transport must have checked who
 * the peer is (SO_PEERCRED says the same user) BEFORE the handshake, and must
 * refuse peers on other hosts. With a key, someone in the middle may pass the
 * handshake on unchanged and then meddle with the bytes that follow, unless
 * those are sealed under the session key. An attacker who learns the job's key
 * can compute the session keys of connections recorded before.
 *
 * Calls base/, os/ and libsodium. A handshake belongs to one thread at a time.
 * The caller sets the deadline and logs failures: it knows the peer's address.
 * A caller's loop:
 *
 *     for (;;) {
 *         send what rueda_handshake_output() gives; rueda_handshake_sent();
 *         if (rueda_handshake_done(&hs))
 *             break;
 *         receive; rueda_handshake_input(), or rueda_handshake_closed();
 *         leave if that returned an error;
 *     }
 */
#ifndef RUEDA_AUTH_HANDSHAKE_H
#define RUEDA_AUTH_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/text.h"

/* The version of the protocol that we speak, and the oldest that we still
 * understand. Two ends use the lower of their versions. */
#define RUEDA_PROTOCOL_VERSION 2u
#define RUEDA_PROTOCOL_OLDEST  2u

#define RUEDA_HANDSHAKE_ABOUT_MAX   64
#define RUEDA_HANDSHAKE_HELLO_BYTES 118
#define RUEDA_HANDSHAKE_PROOF_BYTES 32

/* All that one end sends. */
#define RUEDA_HANDSHAKE_BYTES                                                  \
    (RUEDA_HANDSHAKE_HELLO_BYTES + RUEDA_HANDSHAKE_PROOF_BYTES)

typedef enum rueda_handshake_role {
    RUEDA_INITIATOR, /* the end that called connect() */
    RUEDA_ACCEPTOR,
} rueda_handshake_role;

/* What a connection is for. Both HELLOs say it, so that what was made for one
 * purpose is refused at another, and has other keys. An initiator has one of
 * these; an acceptor may have several, where one listener serves them. */
typedef enum rueda_purpose {
    RUEDA_FOR_STORE = 1,
    RUEDA_FOR_SEGMENT = 2, /* the meeting of the ranks of a host */
    RUEDA_FOR_STREAM = 4,  /* frames between two ranks */
    RUEDA_FOR_PULSE = 8,   /* idle: tells whether a host is there */
    RUEDA_FOR_LAUNCHER = 16,
} rueda_purpose;

#define RUEDA_ALL_PURPOSES 31u

/* Memory is the caller's; the fields are private. in and out begin with the
 * HELLOs, whole or as far as they came, and keep them for the proofs. */
struct rueda_handshake {
    rueda_handshake_role role;
    rueda_status status;  /* once it has left RUEDA_IN_PROGRESS it stays */
    struct rueda_key key; /* copied; wiped when the handshake ends */
    struct rueda_key session;
    unsigned char in[RUEDA_HANDSHAKE_BYTES];
    size_t in_len;
    unsigned char out[RUEDA_HANDSHAKE_BYTES];
    size_t out_len;
    size_t out_sent;
    uint32_t version;
    struct rueda_text why;
};

/*
 * Begin. purpose: one, or for an acceptor the sum of those that it takes. key
 * (NULL or not present: none) and about are copied; about is at
 * most RUEDA_HANDSHAKE_ABOUT_MAX bytes, goes in the clear, and reaches the
 * peer authenticated. RUEDA_ERR_INVALID if about is longer, RUEDA_ERR_IO if
 * the system has no random bytes; hs has then failed, and says so in every
 * later call, so that one check in the caller's loop is enough. Undo with
 * rueda_handshake_fini() in each case.
 */
rueda_status rueda_handshake_init(struct rueda_handshake *hs,
                                  rueda_handshake_role role, unsigned purpose,
                                  const struct rueda_key *key,
                                  const void *about, size_t about_bytes);

/* Wipe all of it. Harmless when repeated, and on a zeroed struct, which is
 * never done and answers RUEDA_ERR_CLOSED. */
void rueda_handshake_fini(struct rueda_handshake *hs);

/* How many bytes wait to be sent, and where they are: borrowed until the next
 * call. Zero when there are none, and after a failure. Send before you
 * receive: a peer that gets our HELLO can tell its user what does not fit. */
size_t rueda_handshake_output(const struct rueda_handshake *hs,
                              const void **out_bytes);

/* The first count of the waiting bytes have been sent. */
void rueda_handshake_sent(struct rueda_handshake *hs, size_t count);

/*
 * Take bytes that the peer sent, in pieces of any size. RUEDA_IN_PROGRESS:
 * all were used, more are needed. RUEDA_OK: the peer has proved itself; what
 * is beyond *out_used is not ours. Otherwise it has failed for good:
 * RUEDA_ERR_VERSION, or RUEDA_ERR_AUTH for everything else that a peer can do
 * wrong; *out_used is not written, and the connection must be closed.
 */
rueda_status rueda_handshake_input(struct rueda_handshake *hs,
                                   const void *bytes, size_t len,
                                   size_t *out_used);

/* The peer has closed the connection. Returns how the handshake ended: as
 * before if it had ended, else RUEDA_ERR_PEER_LOST, or RUEDA_ERR_AUTH if the
 * peer left when it was time to prove itself, as it does if our key is not
 * its own. */
rueda_status rueda_handshake_closed(struct rueda_handshake *hs);

/* Has the peer proved itself, and is all that we have to say sent? */
bool rueda_handshake_done(const struct rueda_handshake *hs);

/* What went wrong, in words that name the remedy; empty if nothing did.
 * Borrowed until rueda_handshake_fini(). Holds no text of the peer's. */
const char *rueda_handshake_error(const struct rueda_handshake *hs);

/* From here on: only after RUEDA_OK, when the peer has proved itself; until
 * then NULL or 0. Pointers are borrowed until rueda_handshake_fini(). */

/* What the peer says about itself; not NULL even if it is nothing. */
const void *rueda_handshake_peer_about(const struct rueda_handshake *hs,
                                       size_t *out_bytes);

/* What the connection is for: the initiator's purpose, at both ends. */
unsigned rueda_handshake_purpose(const struct rueda_handshake *hs);

/* The version that both ends use. */
uint32_t rueda_handshake_version(const struct rueda_handshake *hs);

/* A key of this connection alone, to seal what follows. It cannot be computed
 * without the job's key. Not present if the job has no key. */
const struct rueda_key *
rueda_handshake_session_key(const struct rueda_handshake *hs);

#endif /* RUEDA_AUTH_HANDSHAKE_H */
