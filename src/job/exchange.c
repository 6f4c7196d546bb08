/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which ranks put and get, whichever the launcher. Without a
 * secret:
 *
 *      rank 0 puts the card; all meet; the others get it
 *
 * With one there is a meeting before, as rank 0 has to know for whom to seal:
 *
 *      the others put public keys; all meet; rank 0 gets them
 *      rank 0 puts the card, with zeros in place of the secret, and an envelope
 *      for each rank; all meet; the others get both
 *
 * Cost: an X25519 or two for each rank, about 0.1 ms, and a round of the
 * launcher's fence.
 */
#include "job/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "auth/envelope.h"
#include "auth/key.h"

#define ENVELOPE_MOST (RUEDA_CARD_SECRET_BYTES + RUEDA_ENVELOPE_EXTRA_BYTES)

/* A conversation with a launcher. */
struct pass {
    const struct rueda_business_card_exchange *exchange;
    const struct rueda_business_card_ops *ops;
    void *arg;
    struct rueda_envelope_opener opener; /* of ranks other than 0 */
    struct rueda_text *error;
};

void rueda_launcher_exchange_late(int rank, int size, struct rueda_text *error)
{
    rueda_text_set(error,
                   "rank %d waited for all %d ranks, and not all ranks came to "
                   "meet in time; did every rank call rueda_init()? look at "
                   "the output of the others for one that ended, or that is "
                   "stuck before it; for a slow start raise "
                   "RUEDA_START_TIMEOUT",
                   rank, size);
}

/* PMI has one space of names for all ranks. */
static void name_of(const char *what, int rank, char out[32])
{
    snprintf(out, 32, "rueda.%s.%d", what, rank);
}

static rueda_status get(const struct pass *pass, int rank, const char *name,
                        void *out, size_t len)
{
    rueda_status status = pass->ops->get(pass->arg, rank, name, out, len);

    if (status == RUEDA_ERR_MISMATCH)
        rueda_text_set(pass->error,
                       "the launcher has no %s of %zu bytes of rank %d; run "
                       "the same version of rueda on all ranks",
                       strcmp(name, "rueda.card") == 0 ? "card" : name, len,
                       rank);
    return status;
}

/* ---- The secret ------------------------------------------------------- */

/* Tell rank 0 for whom to seal. */
static rueda_status put_public_key(struct pass *pass)
{
    rueda_status status = rueda_envelope_opener_make(&pass->opener);
    char name[32];

    if (status != RUEDA_OK) {
        rueda_text_set(pass->error, "no random numbers for a key");
        return status;
    }
    name_of("key", pass->exchange->rank, name);
    return pass->ops->put(pass->arg, name, pass->opener.public_key,
                          sizeof(pass->opener.public_key));
}

/* In rank 0. */
static rueda_status put_envelope(struct pass *pass, int rank,
                                 const unsigned char *secret)
{
    const size_t bytes = pass->exchange->secret_bytes;
    unsigned char public_key[RUEDA_ENVELOPE_KEY_BYTES];
    unsigned char envelope[ENVELOPE_MOST];
    rueda_status status;
    char name[32];

    name_of("key", rank, name);
    status = get(pass, rank, name, public_key, sizeof(public_key));
    if (status != RUEDA_OK)
        return status;
    status = rueda_envelope_seal(public_key, secret, bytes, envelope);
    if (status != RUEDA_OK) {
        rueda_text_set(pass->error,
                       "what the launcher passed on as the public key of rank "
                       "%d is none",
                       rank);
        return status;
    }
    name_of("envelope", rank, name);
    return pass->ops->put(pass->arg, name, envelope,
                          bytes + RUEDA_ENVELOPE_EXTRA_BYTES);
}

/* In the other ranks. */
static rueda_status get_secret(struct pass *pass, unsigned char *out_secret)
{
    const size_t bytes = pass->exchange->secret_bytes;
    unsigned char envelope[ENVELOPE_MOST];
    rueda_status status;
    char name[32];

    name_of("envelope", pass->exchange->rank, name);
    status = get(pass, 0, name, envelope, bytes + RUEDA_ENVELOPE_EXTRA_BYTES);
    if (status != RUEDA_OK)
        return status;
    status = rueda_envelope_open(&pass->opener, envelope, bytes, out_secret);
    if (status != RUEDA_OK)
        rueda_text_set(pass->error,
                       "rank %d cannot open what rank 0 sealed for it: it was "
                       "changed on its way through the launcher",
                       pass->exchange->rank);
    return status;
}

/* All tell rank 0 their public keys, and it puts an envelope for each. */
static rueda_status prepare_envelopes(struct pass *pass,
                                      const unsigned char *secret)
{
    const bool is_first = pass->exchange->rank == 0;
    rueda_status status = is_first ? RUEDA_OK : put_public_key(pass);

    if (status == RUEDA_OK)
        status = pass->ops->meet(pass->arg);
    for (int i = 1; i < pass->exchange->size && is_first && status == RUEDA_OK;
         i++)
        status = put_envelope(pass, i, secret);
    return status;
}

/* ---- The card --------------------------------------------------------- */

static rueda_status put_card(const struct pass *pass, const unsigned char *card,
                             size_t bytes)
{
    const struct rueda_business_card_exchange *exchange = pass->exchange;
    unsigned char open[RUEDA_BUSINESS_CARD_BYTES];
    rueda_status status;

    memcpy(open, card, bytes);
    rueda_secret_wipe(open + exchange->secret_at, exchange->secret_bytes);
    status = pass->ops->put(pass->arg, "rueda.card", open, bytes);
    rueda_secret_wipe(open, bytes);
    return status;
}

rueda_status
rueda_business_card_pass(const struct rueda_business_card_exchange *exchange,
                         const struct rueda_business_card_ops *ops, void *arg,
                         void *card, size_t bytes, struct rueda_text *error)
{
    struct pass pass = {
        .exchange = exchange, .ops = ops, .arg = arg, .error = error};
    unsigned char *secret = (unsigned char *)card + exchange->secret_at;
    const bool has_secret = exchange->secret_bytes > 0;
    const bool is_first = exchange->rank == 0;
    rueda_status status = RUEDA_OK;

    assert(bytes <= RUEDA_BUSINESS_CARD_BYTES &&
           exchange->secret_bytes <= RUEDA_CARD_SECRET_BYTES &&
           exchange->secret_at + exchange->secret_bytes <= bytes);
    if (has_secret)
        status = prepare_envelopes(&pass, secret);
    if (status == RUEDA_OK && is_first)
        status = put_card(&pass, card, bytes);
    if (status == RUEDA_OK)
        status = ops->meet(arg);
    if (status == RUEDA_OK && !is_first)
        status = get(&pass, 0, "rueda.card", card, bytes);
    if (status == RUEDA_OK && !is_first && has_secret)
        status = get_secret(&pass, secret);
    rueda_secret_wipe(&pass.opener, sizeof(pass.opener));
    return status;
}
