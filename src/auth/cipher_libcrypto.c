/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AES-256-GCM of the system's libcrypto (OpenSSL 1.1 or 3), which has code for
 * the widest vectors of the CPU. It is opened at run time; we use functions
 * that are the same in both releases, and no structure of theirs.
 */
#include <stdlib.h>

#include "auth/cipher.h"
#include "os/library.h"

/* Of <openssl/evp.h>; the numbers are part of its interface. */
#define CTRL_GET_TAG 0x10
#define CTRL_SET_TAG 0x11

struct rueda_libcrypto {
    void *library;
    void *(*context_new)(void);
    void (*context_free)(void *context);
    const void *(*aes_256_gcm)(void);
    int (*init)(void *context, const void *cipher, void *engine,
                const unsigned char *key, const unsigned char *nonce,
                int is_closing);
    int (*update)(void *context, unsigned char *out, int *out_bytes,
                  const unsigned char *in, int bytes);
    int (*final)(void *context, unsigned char *out, int *out_bytes);
    int (*ctrl)(void *context, int what, int number, void *bytes);
};

struct key {
    const struct rueda_libcrypto *library;
    void *context;
};

struct rueda_libcrypto *rueda_libcrypto_open(void)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
    struct rueda_libcrypto *self = calloc(1, sizeof(*self));
    void *library = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (self != NULL && library == NULL)
            library = rueda_library_open(names[i]);
    if (library != NULL) {
        const struct {
            const char *name;
            void *function;
        } all[] = {
            {"EVP_CIPHER_CTX_new", &self->context_new},
            {"EVP_CIPHER_CTX_free", &self->context_free},
            {"EVP_aes_256_gcm", &self->aes_256_gcm},
            {"EVP_CipherInit_ex", &self->init},
            {"EVP_CipherUpdate", &self->update},
            {"EVP_CipherFinal_ex", &self->final},
            {"EVP_CIPHER_CTX_ctrl", &self->ctrl},
        };
        bool has_all = true;

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            has_all =
                has_all && rueda_library_function(library, all[i].name,
                                                  all[i].function) == RUEDA_OK;
        self->library = library;
        if (has_all)
            return self;
    }
    rueda_libcrypto_close(self);
    return NULL;
}

void rueda_libcrypto_close(struct rueda_libcrypto *library)
{
    if (library == NULL)
        return;
    rueda_library_close(library->library);
    free(library);
}

static void key_free(void *arg)
{
    struct key *key = arg;

    if (key == NULL)
        return;
    if (key->context != NULL)
        key->library->context_free(key->context); /* wipes it */
    free(key);
}

static void *key_new(const struct rueda_libcrypto *library,
                     const unsigned char bytes[RUEDA_CIPHER_KEY_BYTES])
{
    struct key *key = calloc(1, sizeof(*key));

    if (key == NULL)
        return NULL;
    key->library = library;
    key->context = library->context_new();
    if (key->context == NULL ||
        library->init(key->context, library->aes_256_gcm(), NULL, bytes, NULL,
                      1) != 1) {
        key_free(key);
        return NULL;
    }
    return key;
}

/* Records are at most RUEDA_SEAL_MOST_BYTES long, so lengths fit an int. */
static bool pass(const struct key *key, const void *in, size_t bytes, void *out)
{
    unsigned char rest[RUEDA_CIPHER_TAG_BYTES];
    int len = 0;

    return (bytes == 0 || key->library->update(key->context, out, &len, in,
                                               (int)bytes) == 1) &&
           key->library->final(key->context, rest, &len) == 1;
}

static bool close_record(void *arg, const unsigned char *nonce, const void *in,
                         size_t bytes, void *out, void *out_tag)
{
    const struct key *key = arg;

    return key->library->init(key->context, NULL, NULL, NULL, nonce, 1) == 1 &&
           pass(key, in, bytes, out) &&
           key->library->ctrl(key->context, CTRL_GET_TAG,
                              RUEDA_CIPHER_TAG_BYTES, out_tag) == 1;
}

static bool open_record(void *arg, const unsigned char *nonce, const void *in,
                        size_t bytes, void *out, const void *tag)
{
    const struct key *key = arg;

    return key->library->init(key->context, NULL, NULL, NULL, nonce, 0) == 1 &&
           key->library->ctrl(key->context, CTRL_SET_TAG,
                              RUEDA_CIPHER_TAG_BYTES, (void *)tag) == 1 &&
           pass(key, in, bytes, out);
}

const struct rueda_cipher rueda_cipher_libcrypto = {
    .name = "AES-256-GCM of libcrypto",
    .kind = RUEDA_AES_256_GCM,
    .key_new = key_new,
    .key_free = key_free,
    .close = close_record,
    .open = open_record,
};
