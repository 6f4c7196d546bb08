/* SPDX-License-Identifier: Apache-2.0 */
#include "job/business_card.h"

#include <stdio.h>
#include <string.h>

#define AT_NONCE     4
#define AT_KEY       RUEDA_BUSINESS_CARD_KEY_AT
#define AT_HAS_KEY   (AT_KEY + RUEDA_KEY_BYTES)
#define AT_ADDRESSES (AT_HAS_KEY + 1)

static const unsigned char head[4] = {'R', 'C', 0, 1};

void rueda_business_card_pack(const struct rueda_business_card *card,
                              unsigned char out[RUEDA_BUSINESS_CARD_PACKED])
{
    memset(out, 0, RUEDA_BUSINESS_CARD_PACKED);
    memcpy(out, head, sizeof(head));
    memcpy(out + AT_NONCE, card->nonce, RUEDA_NONCE_BYTES);
    out[AT_HAS_KEY] = card->key.present;
    if (card->key.present)
        memcpy(out + AT_KEY, card->key.bytes, RUEDA_KEY_BYTES);
    memcpy(out + AT_ADDRESSES, card->addresses,
           strnlen(card->addresses, RUEDA_BUSINESS_CARD_ADDRESSES - 1));
}

static bool is_zero(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

bool rueda_business_card_unpack(
    const unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED],
    struct rueda_business_card *out)
{
    const unsigned char *addresses = bytes + AT_ADDRESSES;
    size_t used =
        strnlen((const char *)addresses, RUEDA_BUSINESS_CARD_ADDRESSES);

    if (memcmp(bytes, head, sizeof(head)) != 0 || bytes[AT_HAS_KEY] > 1 ||
        bytes[RUEDA_BUSINESS_CARD_PACKED - 1] != '\0' ||
        (bytes[AT_HAS_KEY] == 0 && !is_zero(bytes + AT_KEY, RUEDA_KEY_BYTES)) ||
        !is_zero(addresses + used, RUEDA_BUSINESS_CARD_ADDRESSES - used))
        return false;
    memset(out, 0, sizeof(*out));
    memcpy(out->nonce, bytes + AT_NONCE, RUEDA_NONCE_BYTES);
    out->key.present = bytes[AT_HAS_KEY] == 1;
    if (out->key.present)
        memcpy(out->key.bytes, bytes + AT_KEY, RUEDA_KEY_BYTES);
    memcpy(out->addresses, bytes + AT_ADDRESSES, RUEDA_BUSINESS_CARD_ADDRESSES);
    return true;
}

void rueda_business_card_wipe(struct rueda_business_card *card)
{
    rueda_key_wipe(&card->key);
}

void rueda_nonce_text(const unsigned char *nonce, char out[RUEDA_NONCE_TEXT])
{
    for (size_t i = 0; i < RUEDA_NONCE_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", nonce[i]);
}
