/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An envelope carries a secret to one rank through a third party that others
 * can hear, such as the launcher. The rank that is to open it makes an opener
 * and publishes its public key; a rank that has this key can seal an envelope
 * for it. Public keys and envelopes open none. A party that changes public keys
 * on the way can put its own in their place.
 *
 * It is the sealed box of libsodium: X25519 between the public key and a pair
 * of keys that is made for this envelope, XSalsa20-Poly1305, and as the nonce
 * BLAKE2b over both public keys. It begins with the public key of that pair.
 *
 * Exported for the modules beside the library. Calls base/ and os/. Any thread.
 */
#ifndef RUEDA_AUTH_ENVELOPE_H
#define RUEDA_AUTH_ENVELOPE_H

#include <stddef.h>

#include <rueda/rueda.h>

#define RUEDA_ENVELOPE_KEY_BYTES 32

/* An envelope is longer than the secret in it by so much. */
#define RUEDA_ENVELOPE_EXTRA_BYTES 48

struct rueda_envelope_opener {
    unsigned char public_key[RUEDA_ENVELOPE_KEY_BYTES];
    unsigned char secret_key[32];
};

/* RUEDA_ERR_IO: the system has no random bytes. Wiped by the caller. */
RUEDA_API rueda_status
rueda_envelope_opener_make(struct rueda_envelope_opener *out);

/* Seal `bytes` of a secret for the opener with that key; out has room for
 * RUEDA_ENVELOPE_EXTRA_BYTES more. RUEDA_ERR_AUTH: it is no public key.
 * RUEDA_ERR_IO as above. */
RUEDA_API rueda_status
rueda_envelope_seal(const unsigned char public_key[RUEDA_ENVELOPE_KEY_BYTES],
                    const void *secret, size_t bytes, unsigned char *out);

/* Open an envelope whose secret has this length. RUEDA_ERR_AUTH: it was not
 * sealed for this opener, or was changed since; out is as it was. */
RUEDA_API rueda_status
rueda_envelope_open(const struct rueda_envelope_opener *opener,
                    const unsigned char *envelope, size_t bytes, void *out);

#endif /* RUEDA_AUTH_ENVELOPE_H */
