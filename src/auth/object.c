/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/object.h"

#include <sodium.h>
#include <string.h>

#include "base/bytes.h"

#define MAC_BYTES ((size_t)32)
#define AT_MAC    8
#define AT_SEAL   (AT_MAC + MAC_BYTES)

_Static_assert(AT_SEAL + MAC_BYTES == RUEDA_OBJECT_HEAD_BYTES,
               "the fields fill the head");

/* One label for each use of a key, its closing zero included. */
static const char key_label[] = "rueda objects 1: key";
static const char bytes_label[] = "rueda objects 1: bytes";
static const char head_label[] = "rueda objects 1: head";

rueda_status rueda_object_key(const struct rueda_key *secret, const void *fresh,
                              size_t fresh_bytes, struct rueda_key *out_key)
{
    struct rueda_key key = {.present = true};
    crypto_generichash_state state;

    if (!secret->present || sodium_init() < 0)
        return RUEDA_ERR_AUTH;
    crypto_generichash_init(&state, secret->bytes, sizeof(secret->bytes),
                            sizeof(key.bytes));
    crypto_generichash_update(&state, (const unsigned char *)key_label,
                              sizeof(key_label));
    crypto_generichash_update(&state, fresh, fresh_bytes);
    crypto_generichash_final(&state, key.bytes, sizeof(key.bytes));
    *out_key = key;
    rueda_key_wipe(&key);
    sodium_memzero(&state, sizeof(state));
    return RUEDA_OK;
}

/* All fields have one length but the name, whose length comes before it; so no
 * two places are the same bytes. */
static void add_id(crypto_generichash_state *state,
                   const struct rueda_object_id *id)
{
    const size_t name_bytes = strlen(id->name);
    unsigned char fields[28];

    rueda_put_u32(fields, id->purpose);
    rueda_put_u32(fields + 4, (uint32_t)id->sender);
    rueda_put_u32(fields + 8, (uint32_t)id->set);
    rueda_put_u64(fields + 12, id->sequence);
    rueda_put_u64(fields + 20, name_bytes);
    crypto_generichash_update(state, fields, sizeof(fields));
    crypto_generichash_update(state, (const unsigned char *)id->name,
                              name_bytes);
}

static void mac(const struct rueda_key *key, const char *label,
                const struct rueda_object_id *id, const void *bytes, size_t len,
                unsigned char out[MAC_BYTES])
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, key->bytes, sizeof(key->bytes), MAC_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)label,
                              strlen(label) + 1);
    add_id(&state, id);
    crypto_generichash_update(&state, bytes, len);
    crypto_generichash_final(&state, out, MAC_BYTES);
    sodium_memzero(&state, sizeof(state));
}

rueda_status rueda_object_seal(const struct rueda_key *key,
                               const struct rueda_object_id *id,
                               const void *bytes, size_t len,
                               unsigned char out_head[RUEDA_OBJECT_HEAD_BYTES])
{
    if (!key->present)
        return RUEDA_ERR_AUTH;
    rueda_put_u64(out_head, len);
    mac(key, bytes_label, id, bytes, len, out_head + AT_MAC);
    mac(key, head_label, id, out_head, AT_SEAL, out_head + AT_SEAL);
    return RUEDA_OK;
}

/* Compare in a time that does not depend on the bytes. */
static rueda_status compare(const unsigned char expected[MAC_BYTES],
                            const unsigned char found[MAC_BYTES])
{
    return sodium_memcmp(expected, found, MAC_BYTES) == 0 ? RUEDA_OK
                                                          : RUEDA_ERR_AUTH;
}

rueda_status rueda_object_length(
    const struct rueda_key *key, const struct rueda_object_id *id,
    const unsigned char head[RUEDA_OBJECT_HEAD_BYTES], uint64_t *out_len)
{
    unsigned char expected[MAC_BYTES];

    if (!key->present)
        return RUEDA_ERR_AUTH;
    mac(key, head_label, id, head, AT_SEAL, expected);
    if (compare(expected, head + AT_SEAL) != RUEDA_OK)
        return RUEDA_ERR_AUTH;
    *out_len = rueda_get_u64(head);
    return RUEDA_OK;
}

rueda_status
rueda_object_check(const struct rueda_key *key,
                   const struct rueda_object_id *id,
                   const unsigned char head[RUEDA_OBJECT_HEAD_BYTES],
                   const void *bytes, size_t len)
{
    unsigned char expected[MAC_BYTES];
    uint64_t announced;
    rueda_status status = rueda_object_length(key, id, head, &announced);

    if (status != RUEDA_OK || announced != len)
        return RUEDA_ERR_AUTH;
    mac(key, bytes_label, id, bytes, len, expected);
    return compare(expected, head + AT_MAC);
}
