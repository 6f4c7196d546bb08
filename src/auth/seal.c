/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/seal.h"

#include <sodium.h>
#include <string.h>

#include "base/bytes.h"

#define NONCE_BYTES crypto_aead_chacha20poly1305_IETF_NPUBBYTES

_Static_assert(RUEDA_SEAL_TAG_BYTES == crypto_aead_chacha20poly1305_IETF_ABYTES,
               "a tag is as long as libsodium's");
_Static_assert(RUEDA_KEY_BYTES == crypto_aead_chacha20poly1305_IETF_KEYBYTES,
               "our keys fit the cipher");
_Static_assert(RUEDA_KEY_BYTES == crypto_kdf_KEYBYTES,
               "our keys can be derived from");

/* What the keys are for, in the words of libsodium's derivation. */
static const char purpose[crypto_kdf_CONTEXTBYTES] = {'R', 'u', 'e', 'd',
                                                      'a', 'S', 't', 'r'};

/* The key of what the end with this role sends. */
static void derive(const struct rueda_key *session, rueda_handshake_role role,
                   struct rueda_seal *out)
{
    memset(out, 0, sizeof(*out));
    crypto_kdf_derive_from_key(out->key.bytes, sizeof(out->key.bytes),
                               role == RUEDA_INITIATOR ? 1 : 2, purpose,
                               session->bytes);
    out->key.present = true;
}

rueda_status rueda_seal_pair(const struct rueda_key *session,
                             rueda_handshake_role role,
                             struct rueda_seal *out_send,
                             struct rueda_seal *out_receive)
{
    bool is_initiator = role == RUEDA_INITIATOR;

    /* The second picks the quick code for this CPU; the handshake has done so
     * already, and a repetition is harmless. */
    if (session == NULL || !session->present || sodium_init() < 0)
        return RUEDA_ERR_AUTH;
    derive(session, RUEDA_INITIATOR, is_initiator ? out_send : out_receive);
    derive(session, RUEDA_ACCEPTOR, is_initiator ? out_receive : out_send);
    return RUEDA_OK;
}

void rueda_seal_fini(struct rueda_seal *seal)
{
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
    if (seal->is_open) {
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(
            out, out_tag, NULL, plain, 0, plain, bytes, NULL, nonce,
            seal->key.bytes);
        if (bytes > 0 && out != plain)
            memcpy(out, plain, bytes);
        return RUEDA_OK;
    }
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        out, out_tag, NULL, plain, bytes, NULL, 0, NULL, nonce,
        seal->key.bytes);
    return RUEDA_OK;
}

/* Is it what the peer has sealed? Then it is in out. */
static bool is_genuine(const struct rueda_seal *seal, const void *sealed,
                       size_t bytes, const void *tag, void *out,
                       const unsigned char nonce[NONCE_BYTES])
{
    if (!seal->is_open)
        return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
                   out, NULL, sealed, bytes, tag, NULL, 0, nonce,
                   seal->key.bytes) == 0;
    if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(
            out, NULL, sealed, 0, tag, sealed, bytes, nonce, seal->key.bytes) !=
        0)
        return false;
    if (bytes > 0 && out != sealed)
        memcpy(out, sealed, bytes);
    return true;
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
    if (is_genuine(seal, sealed, bytes, tag, out, nonce))
        return RUEDA_OK;
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
