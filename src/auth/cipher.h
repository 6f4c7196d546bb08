/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ciphers that seal.h can use, and which of them is the fastest here.
 *
 *      ChaCha20-Poly1305   by libsodium; every end has it
 *      AES-256-GCM         by libsodium, where the CPU has instructions for it,
 *                          and by the system's libcrypto, which is opened at
 *                          run time and may be missing
 *
 * Two implementations of one cipher make the same bytes, so the ends of a
 * connection agree on the cipher, and each takes its own fastest
 * implementation. rueda_ciphers_open() measures all of them for about two
 * milliseconds.
 *
 * Calls base/, os/ and libsodium. One thread at a time; keys that were made
 * with a struct rueda_ciphers end before it does.
 */
#ifndef RUEDA_AUTH_CIPHER_H
#define RUEDA_AUTH_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUEDA_CIPHER_KEY_BYTES   32
#define RUEDA_CIPHER_NONCE_BYTES 12
#define RUEDA_CIPHER_TAG_BYTES   16

typedef enum rueda_cipher_kind {
    RUEDA_CHACHA20_POLY1305,
    RUEDA_AES_256_GCM,
} rueda_cipher_kind;

#define RUEDA_CIPHER_KINDS 2

/* What is done with most of the bytes; it decides which cipher is fastest. */
typedef enum rueda_cipher_load {
    RUEDA_LOAD_SEALED, /* encrypted, in records of many KiB */
    RUEDA_LOAD_PROVEN, /* authenticated, in records of many KiB */
    RUEDA_LOAD_HEADS,  /* authenticated, in records of some bytes */
} rueda_cipher_load;

struct rueda_libcrypto;

/* One implementation of a cipher. */
struct rueda_cipher {
    const char *name;
    rueda_cipher_kind kind;

    /* Optional: what it makes of a key, undone by key_free(); NULL: no memory,
     * or it does not work here. Without these two the key itself serves. */
    void *(*key_new)(const struct rueda_libcrypto *library,
                     const unsigned char key[RUEDA_CIPHER_KEY_BYTES]);
    void (*key_free)(void *key);

    /* Encrypt into out, which may be in, or only authenticate where out is
     * NULL. False: the library failed, and nothing of out may be used. */
    bool (*close)(void *key, const unsigned char *nonce, const void *in,
                  size_t bytes, void *out, void *out_tag);

    /* The reverse. False: not genuine. */
    bool (*open)(void *key, const unsigned char *nonce, const void *in,
                 size_t bytes, void *out, const void *tag);
};

/* The cipher that every end has, and AES-256-GCM by libsodium. */
extern const struct rueda_cipher rueda_cipher_chacha;
extern const struct rueda_cipher rueda_cipher_aes;

/* What this machine has. Zeroed: nothing has been measured. */
struct rueda_ciphers {
    struct rueda_libcrypto *libcrypto; /* NULL: there is none */
    bool is_open;
    rueda_cipher_load load;

    /* The fastest implementation of each cipher, or NULL, and what it costs:
     * picoseconds a byte, or a record of some bytes for RUEDA_LOAD_HEADS, by a
     * hundred of them; at least 1, and 0 where there is none. */
    const struct rueda_cipher *best[RUEDA_CIPHER_KINDS];
    uint16_t cost[RUEDA_CIPHER_KINDS];
};

/* Find out what there is and how fast it is. There is always one cipher. Undo
 * with rueda_ciphers_close(), which may be repeated. */
void rueda_ciphers_open(struct rueda_ciphers *ciphers, rueda_cipher_load load);
void rueda_ciphers_close(struct rueda_ciphers *ciphers);

/* The cipher that costs the slower of two ends least. Both ends come to the
 * same result. */
rueda_cipher_kind
rueda_cipher_choose(const uint16_t ours[RUEDA_CIPHER_KINDS],
                    const uint16_t theirs[RUEDA_CIPHER_KINDS]);

/* ---- cipher_libcrypto.c -------------------------------------------------- */

extern const struct rueda_cipher rueda_cipher_libcrypto;

/* NULL: the system has none that we know. */
struct rueda_libcrypto *rueda_libcrypto_open(void);
void rueda_libcrypto_close(struct rueda_libcrypto *library);

#endif /* RUEDA_AUTH_CIPHER_H */
