/* SPDX-License-Identifier: Apache-2.0 */
/* Which cipher two ends take, and what implementations have in common. */
#include <sodium.h>

#include "auth/cipher.h"
#include "unit/unit.h"

#define BYTES 1000
#define TAG   RUEDA_CIPHER_TAG_BYTES

static const unsigned char key[RUEDA_CIPHER_KEY_BYTES] = {3, 1, 4};
static const unsigned char nonce[RUEDA_CIPHER_NONCE_BYTES] = {1, 5, 9};

static void every_load_finds_a_cipher(void **state)
{
    (void)state;
    for (int load = RUEDA_LOAD_SEALED; load <= RUEDA_LOAD_HEADS; load++) {
        struct rueda_ciphers ciphers = {.is_open = false};

        rueda_ciphers_open(&ciphers, (rueda_cipher_load)load);
        assert_true(ciphers.is_open);
        for (int kind = 0; kind < RUEDA_CIPHER_KINDS; kind++) {
            const struct rueda_cipher *best = ciphers.best[kind];

            assert_int_equal(best != NULL, ciphers.cost[kind] > 0);
            if (best != NULL)
                assert_int_equal(best->kind, kind);
        }
        assert_non_null(ciphers.best[RUEDA_CHACHA20_POLY1305]);
        if (crypto_aead_aes256gcm_is_available() != 0)
            assert_non_null(ciphers.best[RUEDA_AES_256_GCM]);
        rueda_ciphers_close(&ciphers);
        rueda_ciphers_close(&ciphers);
        assert_false(ciphers.is_open);
    }
}

/* One end may have libcrypto and the other not. */
static void implementations_of_one_cipher_understand_each_other(void **state)
{
    struct rueda_libcrypto *library = rueda_libcrypto_open();
    unsigned char plain[BYTES];
    unsigned char sealed[BYTES];
    unsigned char tag[TAG];
    void *ours;
    void *theirs;

    (void)state;
    if (sodium_init() < 0 || library == NULL ||
        crypto_aead_aes256gcm_is_available() == 0)
        skip();
    ours = rueda_cipher_libcrypto.key_new(library, key);
    theirs = rueda_cipher_aes.key_new(NULL, key);
    assert_non_null(ours);
    assert_non_null(theirs);
    for (size_t bytes = 0; bytes <= BYTES; bytes += 37) {
        memset(plain, (int)bytes, sizeof(plain));
        assert_true(rueda_cipher_libcrypto.close(ours, nonce, plain, bytes,
                                                 sealed, tag));
        assert_true(
            rueda_cipher_aes.open(theirs, nonce, sealed, bytes, sealed, tag));
        assert_memory_equal(sealed, plain, bytes);
        assert_true(
            rueda_cipher_aes.close(theirs, nonce, plain, bytes, NULL, tag));
        assert_true(
            rueda_cipher_libcrypto.open(ours, nonce, plain, bytes, NULL, tag));
        tag[bytes % TAG] ^= 1;
        assert_false(
            rueda_cipher_libcrypto.open(ours, nonce, plain, bytes, NULL, tag));
    }
    rueda_cipher_libcrypto.key_free(ours);
    rueda_cipher_aes.key_free(theirs);
    rueda_libcrypto_close(library);
}

static void both_ends_take_what_costs_the_slower_one_least(void **state)
{
    static const struct {
        uint16_t ours[2];
        uint16_t theirs[2];
        rueda_cipher_kind kind;
    } cases[] = {
        {{700, 200}, {700, 250}, RUEDA_AES_256_GCM},
        {{700, 0}, {700, 250}, RUEDA_CHACHA20_POLY1305},
        {{700, 200}, {700, 0}, RUEDA_CHACHA20_POLY1305},
        {{700, 200}, {600, 900}, RUEDA_CHACHA20_POLY1305},
        {{700, 200}, {600, 650}, RUEDA_AES_256_GCM},
        {{300, 300}, {300, 300}, RUEDA_CHACHA20_POLY1305},
        {{UINT16_MAX, 0}, {1, 1}, RUEDA_CHACHA20_POLY1305},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(rueda_cipher_choose(cases[i].ours, cases[i].theirs),
                         cases[i].kind);
        assert_int_equal(rueda_cipher_choose(cases[i].theirs, cases[i].ours),
                         cases[i].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_finds_a_cipher),
        cmocka_unit_test(implementations_of_one_cipher_understand_each_other),
        cmocka_unit_test(both_ends_take_what_costs_the_slower_one_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
