/* SPDX-License-Identifier: Apache-2.0 */
/* The implementations of the ciphers, and a trial that finds the fastest. */
#include "auth/cipher.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"

/* A record to measure with: as long as a piece of a tensor that is on its way
 * through the nearer caches, or a head. */
#define LONG_BYTES  ((size_t)16 << 10)
#define SHORT_BYTES ((size_t)56)

/* Trials of each implementation, and how long one takes. The quickest counts,
 * since a thread that loses its core only ever takes longer. */
#define TRIALS   4
#define TRIAL_NS ((int64_t)150000)

/* ---- ChaCha20-Poly1305 -------------------------------------------------- */

static bool chacha_close(void *key, const unsigned char *nonce, const void *in,
                         size_t bytes, void *out, void *out_tag)
{
    unsigned char none[1] = {0};

    if (out == NULL)
        return crypto_aead_chacha20poly1305_ietf_encrypt_detached(
                   none, out_tag, NULL, none, 0, in, bytes, NULL, nonce, key) ==
               0;
    return crypto_aead_chacha20poly1305_ietf_encrypt_detached(
               out, out_tag, NULL, in, bytes, NULL, 0, NULL, nonce, key) == 0;
}

static bool chacha_open(void *key, const unsigned char *nonce, const void *in,
                        size_t bytes, void *out, const void *tag)
{
    unsigned char none[1] = {0};

    if (out == NULL)
        return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                   none, NULL, none, 0, tag, in, bytes, nonce, key) == 0;
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
               out, NULL, in, bytes, tag, NULL, 0, nonce, key) == 0;
}

const struct rueda_cipher rueda_cipher_chacha = {
    .name = "ChaCha20-Poly1305 of libsodium",
    .kind = RUEDA_CHACHA20_POLY1305,
    .close = chacha_close,
    .open = chacha_open,
};

/* ---- AES-256-GCM --------------------------------------------------------- */

static void *aes_key_new(const struct rueda_libcrypto *library,
                         const unsigned char key[RUEDA_CIPHER_KEY_BYTES])
{
    crypto_aead_aes256gcm_state *state;

    (void)library;
    if (crypto_aead_aes256gcm_is_available() == 0)
        return NULL;
    state = aligned_alloc(16, sizeof(*state));
    if (state != NULL)
        crypto_aead_aes256gcm_beforenm(state, key);
    return state;
}

static void aes_key_free(void *key)
{
    if (key != NULL)
        sodium_memzero(key, sizeof(crypto_aead_aes256gcm_state));
    free(key);
}

static bool aes_close(void *key, const unsigned char *nonce, const void *in,
                      size_t bytes, void *out, void *out_tag)
{
    unsigned char none[1] = {0};

    if (out == NULL)
        return crypto_aead_aes256gcm_encrypt_detached_afternm(
                   none, out_tag, NULL, none, 0, in, bytes, NULL, nonce, key) ==
               0;
    return crypto_aead_aes256gcm_encrypt_detached_afternm(
               out, out_tag, NULL, in, bytes, NULL, 0, NULL, nonce, key) == 0;
}

static bool aes_open(void *key, const unsigned char *nonce, const void *in,
                     size_t bytes, void *out, const void *tag)
{
    unsigned char none[1] = {0};

    if (out == NULL)
        return crypto_aead_aes256gcm_decrypt_detached_afternm(
                   none, NULL, none, 0, tag, in, bytes, nonce, key) == 0;
    return crypto_aead_aes256gcm_decrypt_detached_afternm(
               out, NULL, in, bytes, tag, NULL, 0, nonce, key) == 0;
}

const struct rueda_cipher rueda_cipher_aes = {
    .name = "AES-256-GCM of libsodium",
    .kind = RUEDA_AES_256_GCM,
    .key_new = aes_key_new,
    .key_free = aes_key_free,
    .close = aes_close,
    .open = aes_open,
};

/* ---- Which is the fastest ------------------------------------------------ */

/* Nanoseconds for one record, or 0: it does not work here. */
static double measure(const struct rueda_cipher *cipher, void *key,
                      unsigned char *bytes, rueda_cipher_load load)
{
    const unsigned char nonce[RUEDA_CIPHER_NONCE_BYTES] = {0};
    const size_t len = load == RUEDA_LOAD_HEADS ? SHORT_BYTES : LONG_BYTES;
    unsigned char tag[RUEDA_CIPHER_TAG_BYTES];
    void *out = load == RUEDA_LOAD_SEALED ? bytes : NULL;
    double best = 0;

    for (int trial = 0; trial < TRIALS; trial++) {
        const int64_t start = rueda_clock_ns();
        int64_t took = 0;
        int count = 0;
        double each;

        while (took < TRIAL_NS) {
            for (int i = 0; i < 4; i++, count++)
                if (!cipher->close(key, nonce, bytes, len, out, tag))
                    return 0;
            took = rueda_clock_ns() - start;
        }
        each = (double)took / count;
        if (best == 0 || each < best)
            best = each;
    }
    return best;
}

/* The scale of struct rueda_ciphers. */
static uint16_t cost_of(double ns, rueda_cipher_load load)
{
    double cost =
        load == RUEDA_LOAD_HEADS ? ns * 10 : ns * 1000 / (double)LONG_BYTES;

    if (cost < 1)
        return 1;
    return cost < UINT16_MAX ? (uint16_t)cost : UINT16_MAX;
}

static void try_one(struct rueda_ciphers *ciphers,
                    const struct rueda_cipher *cipher, unsigned char *bytes)
{
    static const unsigned char zeros[RUEDA_CIPHER_KEY_BYTES];
    void *key = (void *)zeros;
    uint16_t cost;
    double ns;

    if (cipher->key_new != NULL)
        key = cipher->key_new(ciphers->libcrypto, zeros);
    if (key == NULL)
        return;
    ns = measure(cipher, key, bytes, ciphers->load);
    if (cipher->key_free != NULL)
        cipher->key_free(key);
    if (ns <= 0)
        return;
    cost = cost_of(ns, ciphers->load);
    if (ciphers->best[cipher->kind] != NULL &&
        ciphers->cost[cipher->kind] <= cost)
        return;
    ciphers->best[cipher->kind] = cipher;
    ciphers->cost[cipher->kind] = cost;
}

void rueda_ciphers_open(struct rueda_ciphers *ciphers, rueda_cipher_load load)
{
    unsigned char *bytes = calloc(1, LONG_BYTES);

    *ciphers = (struct rueda_ciphers){
        .is_open = true,
        .load = load,
        .best[RUEDA_CHACHA20_POLY1305] = &rueda_cipher_chacha,
        .cost[RUEDA_CHACHA20_POLY1305] = UINT16_MAX,
    };
    /* The second picks the quick code for this CPU. */
    if (bytes == NULL || sodium_init() < 0) {
        free(bytes);
        return;
    }
    ciphers->libcrypto = rueda_libcrypto_open();
    try_one(ciphers, &rueda_cipher_chacha, bytes);
    try_one(ciphers, &rueda_cipher_aes, bytes);
    if (ciphers->libcrypto != NULL)
        try_one(ciphers, &rueda_cipher_libcrypto, bytes);
    free(bytes);
}

void rueda_ciphers_close(struct rueda_ciphers *ciphers)
{
    rueda_libcrypto_close(ciphers->libcrypto);
    memset(ciphers, 0, sizeof(*ciphers));
}

rueda_cipher_kind rueda_cipher_choose(const uint16_t ours[RUEDA_CIPHER_KINDS],
                                      const uint16_t theirs[RUEDA_CIPHER_KINDS])
{
    rueda_cipher_kind chosen = RUEDA_CHACHA20_POLY1305;
    unsigned least = UINT16_MAX + 1u;

    for (int i = 0; i < RUEDA_CIPHER_KINDS; i++) {
        const unsigned cost = ours[i] > theirs[i] ? ours[i] : theirs[i];

        if (ours[i] == 0 || theirs[i] == 0 || cost >= least)
            continue;
        chosen = (rueda_cipher_kind)i;
        least = cost;
    }
    return chosen;
}
