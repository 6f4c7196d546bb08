/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What encryption of a stream costs on one core: the ciphers of libsodium, on
 * pieces as src/auth/seal.h seals them. Each piece is sealed into another
 * buffer and opened where it lies, as on the way from one rank to another;
 * "both" is what a core does that has to do the one and the other. Times are
 * those of the CPU, so that other work on the machine counts little; the median
 * of all rounds.
 *
 *     gcc -O2 bench/seal.c -o seal -lsodium && ./seal
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 31
#define TOTAL  ((size_t)8 << 20)
#define TAG    16

static unsigned char key[32];
static unsigned char nonce[24]; /* the longest of any cipher */
static unsigned char tag[TAG];
static crypto_aead_aes256gcm_state aes;

/* ---- Ciphers ------------------------------------------------------------ */

static void chacha_seal(const unsigned char *from, unsigned char *to,
                        size_t len)
{
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        to, tag, NULL, from, len, NULL, 0, NULL, nonce, key);
}

static int chacha_open(unsigned char *at, size_t len)
{
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
        at, NULL, at, len, tag, NULL, 0, nonce, key);
}

static void xchacha_seal(const unsigned char *from, unsigned char *to,
                         size_t len)
{
    crypto_aead_xchacha20poly1305_ietf_encrypt_detached(
        to, tag, NULL, from, len, NULL, 0, NULL, nonce, key);
}

static int xchacha_open(unsigned char *at, size_t len)
{
    return crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
        at, NULL, at, len, tag, NULL, 0, nonce, key);
}

static void aes_seal(const unsigned char *from, unsigned char *to, size_t len)
{
    crypto_aead_aes256gcm_encrypt_detached_afternm(to, tag, NULL, from, len,
                                                   NULL, 0, NULL, nonce, &aes);
}

static int aes_open(unsigned char *at, size_t len)
{
    return crypto_aead_aes256gcm_decrypt_detached_afternm(
        at, NULL, at, len, tag, NULL, 0, nonce, &aes);
}

struct cipher {
    const char *name;
    void (*seal)(const unsigned char *from, unsigned char *to, size_t len);
    int (*open)(unsigned char *at, size_t len);
};

static const struct cipher ciphers[] = {
    {"chacha20-poly1305", chacha_seal, chacha_open},
    {"xchacha20-poly1305", xchacha_seal, xchacha_open},
    {"aes-256-gcm", aes_seal, aes_open},
};

/* ---- Measuring ---------------------------------------------------------- */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median_rate(double *seconds)
{
    qsort(seconds, ROUNDS, sizeof(*seconds), compare);
    return (double)TOTAL / seconds[ROUNDS / 2] / 1e9;
}

static void measure(const struct cipher *cipher, size_t piece)
{
    static unsigned char from[TOTAL];
    static unsigned char to[TOTAL];
    double sealing[ROUNDS];
    double opening[ROUNDS];
    double both[ROUNDS];

    memset(from, 3, sizeof(from));
    memset(to, 0, sizeof(to));
    for (int round = 0; round < ROUNDS; round++) {
        sealing[round] = 0.0;
        opening[round] = 0.0;
        for (size_t at = 0; at < TOTAL; at += piece) {
            const double begin = now();
            double sealed;

            sodium_increment(nonce, sizeof(nonce));
            cipher->seal(from + at, to + at, piece);
            sealed = now();
            if (cipher->open(to + at, piece) != 0)
                abort();
            sealing[round] += sealed - begin;
            opening[round] += now() - sealed;
        }
        both[round] = sealing[round] + opening[round];
        if (memcmp(from, to, TOTAL) != 0)
            abort();
    }
    printf("%-20s %8zu %7.2f %7.2f %7.2f\n", cipher->name, piece,
           median_rate(sealing), median_rate(opening), median_rate(both));
}

int main(void)
{
    static const size_t pieces[] = {1 << 10, 16 << 10, 128 << 10, 1 << 20};

    if (sodium_init() < 0)
        return 1;
    printf("libsodium %s, GB/s of one core\n", sodium_version_string());
    printf("%-20s %8s %7s %7s %7s\n", "cipher", "bytes", "seal", "open",
           "both");
    for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
        if (ciphers[i].seal == aes_seal) {
            if (!crypto_aead_aes256gcm_is_available())
                continue;
            crypto_aead_aes256gcm_beforenm(&aes, key);
        }
        for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++)
            measure(&ciphers[i], pieces[k]);
    }
    return 0;
}
