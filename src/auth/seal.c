/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a seal, the numbers of its records, and sealing and opening one. */
#include "auth/seal.h"

#include <sodium.h>
#include <string.h>

#include "base/bytes.h"

#define NONCE_BYTES RUEDA_CIPHER_NONCE_BYTES

_Static_assert(RUEDA_SEAL_TAG_BYTES == crypto_aead_chacha20poly1305_IETF_ABYTES,
               "a tag is as long as libsodium's");
_Static_assert(RUEDA_SEAL_TAG_BYTES == crypto_aead_aes256gcm_ABYTES,
               "a tag is as long as libsodium's");
_Static_assert(NONCE_BYTES == crypto_aead_chacha20poly1305_IETF_NPUBBYTES,
               "a nonce is as long as libsodium's");
_Static_assert(NONCE_BYTES == crypto_aead_aes256gcm_NPUBBYTES,
               "a nonce is as long as libsodium's");
_Static_assert(RUEDA_KEY_BYTES == RUEDA_CIPHER_KEY_BYTES,
               "our keys fit the ciphers");
_Static_assert(RUEDA_KEY_BYTES == crypto_kdf_KEYBYTES,
               "our keys can be derived from");

/* What the keys are for, in the words of libsodium's derivation. */
static const char purpose[crypto_kdf_CONTEXTBYTES] = {'R', 'u', 'e', 'd',
                                                      'a', 'S', 't', 'r'};

/* The key of what the end with this role sends; each cipher has its own. */
static rueda_status derive(const struct rueda_ciphers *ciphers,
                           const struct rueda_cipher *cipher,
                           const struct rueda_key *session,
                           rueda_handshake_role role, struct rueda_seal *out)
{
    const uint64_t number =
        (role == RUEDA_INITIATOR ? 1 : 2) + 2 * (uint64_t)cipher->kind;

    memset(out, 0, sizeof(*out));
    crypto_kdf_derive_from_key(out->key.bytes, sizeof(out->key.bytes), number,
                               purpose, session->bytes);
    out->key.present = true;
    out->cipher = cipher;
    if (cipher->key_new == NULL)
        return RUEDA_OK;
    out->cipher_key = cipher->key_new(
        ciphers != NULL ? ciphers->libcrypto : NULL, out->key.bytes);
    rueda_secret_wipe(out->key.bytes, sizeof(out->key.bytes));
    return out->cipher_key != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

rueda_status rueda_seal_pair_by(const struct rueda_ciphers *ciphers,
                                const struct rueda_cipher *cipher,
                                const struct rueda_key *session,
                                rueda_handshake_role role,
                                struct rueda_seal *out_send,
                                struct rueda_seal *out_receive)
{
    const rueda_handshake_role peers =
        role == RUEDA_INITIATOR ? RUEDA_ACCEPTOR : RUEDA_INITIATOR;
    rueda_status status;

    /* The second picks the quick code for this CPU; the handshake has done so
     * already, and a repetition is harmless. */
    if (session == NULL || !session->present || sodium_init() < 0)
        return RUEDA_ERR_AUTH;
    status = derive(ciphers, cipher, session, role, out_send);
    if (status == RUEDA_OK)
        status = derive(ciphers, cipher, session, peers, out_receive);
    else
        memset(out_receive, 0, sizeof(*out_receive));
    if (status == RUEDA_OK)
        return RUEDA_OK;
    rueda_seal_fini(out_send);
    rueda_seal_fini(out_receive);
    return status;
}

rueda_status rueda_seal_pair(const struct rueda_key *session,
                             rueda_handshake_role role,
                             struct rueda_seal *out_send,
                             struct rueda_seal *out_receive)
{
    return rueda_seal_pair_by(NULL, &rueda_cipher_chacha, session, role,
                              out_send, out_receive);
}

void rueda_seal_fini(struct rueda_seal *seal)
{
    if (seal->cipher_key != NULL)
        seal->cipher->key_free(seal->cipher_key);
    rueda_secret_wipe(seal, sizeof(*seal));
}

void rueda_seal_leave_open(struct rueda_seal *seal)
{
    seal->is_open = true;
}

/* May there be one more record? A seal that has reached its limit fails. */
static rueda_status check(struct rueda_seal *seal)
{
    if (!seal->key.present)
        return RUEDA_ERR_CLOSED;
    if (seal->next < RUEDA_SEAL_RECORDS)
        return RUEDA_OK;
    rueda_seal_fini(seal);
    return RUEDA_ERR_LIMIT;
}

/* The nonce of the next record, which is spent with this. */
static void spend_nonce(struct rueda_seal *seal, unsigned char out[NONCE_BYTES])
{
    memset(out, 0, NONCE_BYTES);
    rueda_put_u64(out, seal->next);
    seal->next++;
}

static void *cipher_key_of(struct rueda_seal *seal)
{
    return seal->cipher_key != NULL ? seal->cipher_key : seal->key.bytes;
}

rueda_status rueda_seal_close(struct rueda_seal *seal, const void *plain,
                              size_t bytes, void *out, void *out_tag)
{
    unsigned char nonce[NONCE_BYTES];
    rueda_status status = check(seal);

    if (status != RUEDA_OK)
        return status;
    if (bytes > RUEDA_SEAL_MOST_BYTES)
        return RUEDA_ERR_INVALID;
    spend_nonce(seal, nonce);
    if (!seal->cipher->close(cipher_key_of(seal), nonce, plain, bytes,
                             seal->is_open ? NULL : out, out_tag)) {
        rueda_seal_fini(seal);
        return RUEDA_ERR_NOMEM;
    }
    if (seal->is_open && bytes > 0 && out != plain)
        memcpy(out, plain, bytes);
    return RUEDA_OK;
}

rueda_status rueda_seal_open(struct rueda_seal *seal, const void *sealed,
                             size_t bytes, const void *tag, void *out)
{
    unsigned char nonce[NONCE_BYTES];
    rueda_status status = check(seal);

    if (status != RUEDA_OK)
        return status;
    if (bytes > RUEDA_SEAL_MOST_BYTES)
        return RUEDA_ERR_INVALID;
    spend_nonce(seal, nonce);
    if (seal->cipher->open(cipher_key_of(seal), nonce, sealed, bytes,
                           seal->is_open ? NULL : out, tag)) {
        if (seal->is_open && bytes > 0 && out != sealed)
            memcpy(out, sealed, bytes);
        return RUEDA_OK;
    }
    if (bytes > 0)
        memset(out, 0, bytes);
    rueda_seal_fini(seal);
    return RUEDA_ERR_AUTH;
}

rueda_status rueda_seal_skip(struct rueda_seal *seal)
{
    rueda_status status = check(seal);

    if (status == RUEDA_OK)
        seal->next++;
    return status;
}
