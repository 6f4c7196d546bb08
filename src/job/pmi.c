/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing rank 0's business card by PMI-1 or PMI-2. A card is longer than a
 * value may be, so rank 0 puts it in parts; all ranks meet in a fence; the
 * others get the parts and join them. Both dialects differ only in their
 * commands, which struct rueda_pmi_dialect has (exchange_pmi1.c,
 * exchange_pmi2.c).
 */
#include "job/pmi.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/key.h"
#include "base/duration.h"
#include "base/number.h"
#include "os/clock.h"

/* Find the launcher's socket. */
static rueda_status
find_socket(const struct rueda_business_card_exchange *exchange,
            const char *name, int *out_fd, struct rueda_text *error)
{
    const char *text = exchange->environment(exchange->arg, "PMI_FD");

    if (text == NULL || text[0] == '\0') {
        if (exchange->environment(exchange->arg, "PMI_PORT") != NULL)
            rueda_text_set(error, "the launcher offers PMI by PMI_PORT, which "
                                  "we do not use; start it without -pmi-port");
        else
            rueda_text_set(error,
                           "PMI_FD is not set: this process was not started "
                           "by a launcher that speaks %s (mpiexec of MPICH, "
                           "srun --mpi=pmi2)",
                           name);
        return RUEDA_ERR_UNSUPPORTED;
    }
    if (!rueda_parse_int(text, out_fd)) {
        rueda_text_set(error, "PMI_FD is \"%.40s\", which is no descriptor",
                       text);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* The part of the card from offset on, and the key that it is kept under. */
static size_t part_at(const struct rueda_pmi *pmi, size_t offset, size_t bytes,
                      char *key, size_t key_bytes)
{
    size_t most = pmi->value_most / 2;

    snprintf(key, key_bytes, "rueda.card.%zu", offset);
    return bytes - offset < most ? bytes - offset : most;
}

static rueda_status hand_out(const struct rueda_pmi_dialect *dialect,
                             struct rueda_pmi *pmi, const char *card,
                             size_t bytes)
{
    rueda_status status = RUEDA_OK;
    char value[RUEDA_PMI_VALUE + 1];
    char key[32];
    size_t len;

    for (size_t offset = 0; offset < bytes && status == RUEDA_OK;
         offset += len) {
        len = part_at(pmi, offset, bytes, key, sizeof(key));
        rueda_pmi_hex_write(card + offset, len, value);
        status = dialect->put(pmi, key, value);
    }
    rueda_secret_wipe(value, sizeof(value));
    return status;
}

static rueda_status fill_in(const struct rueda_pmi_dialect *dialect,
                            struct rueda_pmi *pmi, char *out_card, size_t bytes)
{
    rueda_status status = RUEDA_OK;
    char value[RUEDA_PMI_VALUE + 1];
    char key[32];
    size_t len;

    for (size_t offset = 0; offset < bytes && status == RUEDA_OK;
         offset += len) {
        len = part_at(pmi, offset, bytes, key, sizeof(key));
        status = dialect->get(pmi, key, value);
        if (status == RUEDA_OK &&
            !rueda_pmi_hex_read(value, out_card + offset, len))
            status = RUEDA_ERR_MISMATCH;
    }
    if (status == RUEDA_ERR_MISMATCH)
        rueda_text_set(pmi->wire.error,
                       "the launcher has no card of %zu bytes of rank 0; run "
                       "the same version of rueda on all ranks",
                       bytes);
    rueda_secret_wipe(value, sizeof(value));
    return status;
}

static rueda_status meet(const struct rueda_pmi_dialect *dialect,
                         struct rueda_pmi *pmi)
{
    const char *silence = pmi->wire.silence;
    struct rueda_text late = {{0}};
    rueda_status status;

    rueda_launcher_exchange_late(pmi->exchange->rank, pmi->exchange->size,
                                 &late);
    pmi->wire.silence = late.chars;
    status = dialect->fence(pmi);
    pmi->wire.silence = silence;
    return status;
}

/* Everything after the greeting; the card is for our own use. */
static rueda_status pass(const struct rueda_pmi_dialect *dialect,
                         struct rueda_pmi *pmi, char *card, size_t bytes)
{
    const bool is_first = pmi->exchange->rank == 0;
    rueda_status status = RUEDA_OK;

    if (is_first)
        status = hand_out(dialect, pmi, card, bytes);
    if (status == RUEDA_OK)
        status = meet(dialect, pmi);
    if (status == RUEDA_OK && !is_first)
        status = fill_in(dialect, pmi, card, bytes);
    if (status == RUEDA_OK)
        status = dialect->leave(pmi);
    return status;
}

/* For the launcher's answer to a farewell after the deadline. */
#define FAREWELL_NS RUEDA_MS(200)

/* A process that leaves without a word is taken for one that crashed; and Hydra
 * breaks if it is gone before the answer, with all that its ranks have said. */
static void take_leave(const struct rueda_pmi_dialect *dialect,
                       struct rueda_pmi *pmi)
{
    pmi->wire.deadline_ns = rueda_clock_ns() + FAREWELL_NS;
    dialect->leave(pmi);
}

rueda_status
rueda_pmi_exchange(const struct rueda_pmi_dialect *dialect,
                   const struct rueda_business_card_exchange *exchange,
                   void *card, size_t bytes, struct rueda_text *error)
{
    char copy[RUEDA_BUSINESS_CARD_BYTES];
    struct rueda_pmi *pmi;
    rueda_status status;
    int fd;

    assert(bytes > 0 && bytes <= sizeof(copy));
    if (exchange->size == 1)
        return RUEDA_OK;
    status = find_socket(exchange, dialect->name, &fd, error);
    if (status != RUEDA_OK)
        return status;
    pmi = calloc(1, sizeof(*pmi));
    if (pmi == NULL)
        return RUEDA_ERR_NOMEM;
    rueda_pmi_wire_init(&pmi->wire, fd, exchange->deadline_ns, error);
    pmi->exchange = exchange;
    pmi->value_most = RUEDA_PMI_VALUE;
    memcpy(copy, card, bytes);
    status = dialect->join(pmi);
    if (status == RUEDA_OK)
        status = pass(dialect, pmi, copy, bytes);
    if (status != RUEDA_OK)
        take_leave(dialect, pmi);
    else
        memcpy(card, copy, bytes);
    rueda_secret_wipe(copy, sizeof(copy));
    rueda_secret_wipe(pmi, sizeof(*pmi)); /* the inbox, the last answer */
    free(pmi);
    return status;
}
