/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/envelope.h"

#include <sodium.h>
#include <string.h>

#include "auth/key.h"
#include "os/random.h"

_Static_assert(RUEDA_ENVELOPE_KEY_BYTES == crypto_box_PUBLICKEYBYTES &&
                   RUEDA_ENVELOPE_EXTRA_BYTES == crypto_box_SEALBYTES &&
                   sizeof(((struct rueda_envelope_opener *)0)->secret_key) ==
                       crypto_box_SECRETKEYBYTES,
               "as in libsodium");

/* libsodium's own random bytes are not used: without any it would abort. */
rueda_status rueda_envelope_opener_make(struct rueda_envelope_opener *out)
{
    unsigned char seed[crypto_box_SEEDBYTES];
    rueda_status status = rueda_random_fill(seed, sizeof(seed));

    /* In this order: sodium_init() aborts where there are no random bytes. */
    if (status == RUEDA_OK && sodium_init() < 0)
        status = RUEDA_ERR_IO;
    if (status == RUEDA_OK)
        crypto_box_seed_keypair(out->public_key, out->secret_key, seed);
    rueda_secret_wipe(seed, sizeof(seed));
    return status;
}

static void make_nonce(const unsigned char *sender,
                       const unsigned char *receiver,
                       unsigned char out[crypto_box_NONCEBYTES])
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, crypto_box_NONCEBYTES);
    crypto_generichash_update(&state, sender, crypto_box_PUBLICKEYBYTES);
    crypto_generichash_update(&state, receiver, crypto_box_PUBLICKEYBYTES);
    crypto_generichash_final(&state, out, crypto_box_NONCEBYTES);
}

rueda_status
rueda_envelope_seal(const unsigned char public_key[RUEDA_ENVELOPE_KEY_BYTES],
                    const void *secret, size_t bytes, unsigned char *out)
{
    unsigned char nonce[crypto_box_NONCEBYTES];
    struct rueda_envelope_opener once;
    rueda_status status = rueda_envelope_opener_make(&once);

    if (status != RUEDA_OK)
        return status;
    make_nonce(once.public_key, public_key, nonce);
    /* It refuses the few public keys with which all secrets are the same. */
    if (crypto_box_easy(out + sizeof(once.public_key), secret, bytes, nonce,
                        public_key, once.secret_key) != 0)
        status = RUEDA_ERR_AUTH;
    else
        memcpy(out, once.public_key, sizeof(once.public_key));
    rueda_secret_wipe(&once, sizeof(once));
    return status;
}

rueda_status rueda_envelope_open(const struct rueda_envelope_opener *opener,
                                 const unsigned char *envelope, size_t bytes,
                                 void *out)
{
    return crypto_box_seal_open(out, envelope,
                                bytes + RUEDA_ENVELOPE_EXTRA_BYTES,
                                opener->public_key, opener->secret_key) == 0
               ? RUEDA_OK
               : RUEDA_ERR_AUTH;
}
