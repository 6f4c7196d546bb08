/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rank 0 sends to all ranks through their launcher (exchange.h): where its
 * store can be reached, and the key by which a rank proves that it belongs to
 * the job. Pure.
 *
 * As bytes, RUEDA_BUSINESS_CARD_PACKED of them:
 *
 *      at   bytes
 *       0       4   "RC" 0 and the version of this layout, 1
 *       4      16   nonce: names the store's Unix socket
 *      20      32   key, or zeros
 *      52       1   1 if there is a key
 *      53     400   addresses for TCP, separated by blanks, then zeros
 */
#ifndef RUEDA_JOB_BUSINESS_CARD_H
#define RUEDA_JOB_BUSINESS_CARD_H

#include <rueda/rueda.h>

#include "auth/key.h"

#define RUEDA_NONCE_BYTES             16
#define RUEDA_BUSINESS_CARD_ADDRESSES 400
#define RUEDA_BUSINESS_CARD_PACKED                                             \
    (4 + RUEDA_NONCE_BYTES + RUEDA_KEY_BYTES + 1 +                             \
     RUEDA_BUSINESS_CARD_ADDRESSES)

/* Where the key is, which has to remain secret. */
#define RUEDA_BUSINESS_CARD_KEY_AT (4 + RUEDA_NONCE_BYTES)

struct rueda_business_card {
    unsigned char nonce[RUEDA_NONCE_BYTES];
    struct rueda_key key;
    char addresses[RUEDA_BUSINESS_CARD_ADDRESSES];
};

void rueda_business_card_pack(const struct rueda_business_card *card,
                              unsigned char out[RUEDA_BUSINESS_CARD_PACKED]);

/* False for bytes that pack() cannot have made. */
bool rueda_business_card_unpack(
    const unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED],
    struct rueda_business_card *out);

/* Forget its key. */
void rueda_business_card_wipe(struct rueda_business_card *card);

/* A nonce as text: 32 digits and an end. */
#define RUEDA_NONCE_TEXT (2 * RUEDA_NONCE_BYTES + 1)
void rueda_nonce_text(const unsigned char *nonce, char out[RUEDA_NONCE_TEXT]);

#endif /* RUEDA_JOB_BUSINESS_CARD_H */
