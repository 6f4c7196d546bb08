/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PMI-1 and PMI-2 have in common: join, put, meet, get, leave. A card
 * travels as hexadecimal digits, cut so that each part fits a value.
 */
#ifndef RUEDA_JOB_PMI_H
#define RUEDA_JOB_PMI_H

#include "job/exchange.h"
#include "job/pmi_wire.h"

/* The name of a space of keys: more than any server is known to give. */
#define RUEDA_PMI_SPACE 257

/* The most digits in one value, so that a message stays within
 * RUEDA_PMI_MOST_OUT with the longest space and key. */
#define RUEDA_PMI_VALUE 512

struct rueda_pmi_dialect;

struct rueda_pmi {
    struct rueda_pmi_wire wire;
    const struct rueda_pmi_dialect *dialect;
    const struct rueda_business_card_exchange *exchange;
    char space[RUEDA_PMI_SPACE]; /* where keys live; set by join */
    size_t value_most;           /* digits in a value; join may lower it */
};

/* Each is one round of the wire, or a few. On failure the wire's error has the
 * words. */
struct rueda_pmi_dialect {
    const char *name;
    rueda_status (*join)(struct rueda_pmi *pmi);
    rueda_status (*put)(struct rueda_pmi *pmi, const char *key,
                        const char *value);
    /* Ends when every rank has come; what was put before can be got after. */
    rueda_status (*fence)(struct rueda_pmi *pmi);
    /* RUEDA_ERR_MISMATCH: no such key. out has room for RUEDA_PMI_VALUE digits
     * and a zero. */
    rueda_status (*get)(struct rueda_pmi *pmi, const char *key, char *out);
    rueda_status (*leave)(struct rueda_pmi *pmi);
};

/* As in exchange.h. */
rueda_status
rueda_pmi_exchange(const struct rueda_pmi_dialect *dialect,
                   const struct rueda_business_card_exchange *exchange,
                   void *card, size_t bytes, struct rueda_text *error);

#endif /* RUEDA_JOB_PMI_H */
