/* SPDX-License-Identifier: Apache-2.0 */
/* Cards from bytes: what is accepted and packed again is the same card. */
#include "fuzz/fuzz.h"
#include "job/business_card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED] = {0};
    unsigned char again[RUEDA_BUSINESS_CARD_PACKED];
    struct rueda_business_card card;
    struct rueda_business_card back;

    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    if (!rueda_business_card_unpack(bytes, &card))
        return 0;
    must(strnlen(card.addresses, sizeof(card.addresses)) <
         sizeof(card.addresses));
    rueda_business_card_pack(&card, again);
    must(rueda_business_card_unpack(again, &back));
    must(memcmp(back.nonce, card.nonce, sizeof(card.nonce)) == 0);
    must(memcmp(&back.key, &card.key, sizeof(card.key)) == 0);
    must(strcmp(back.addresses, card.addresses) == 0);
    rueda_business_card_wipe(&card);
    must(!card.key.present);
    return 0;
}
