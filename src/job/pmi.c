/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passing rank 0's business card by PMI-1 or PMI-2. What is put may be longer
 * than a value of the launcher's, so it is put in parts, which get() joins.
 * Both dialects differ only in their commands, which struct rueda_pmi_dialect
 * has (exchange_pmi1.c, exchange_pmi2.c).
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

/* The part of a value from offset on, and the key that it is kept under. */
static size_t part_at(const struct rueda_pmi *pmi, const char *name,
                      size_t offset, size_t bytes, char *key, size_t key_bytes)
{
    size_t most = pmi->value_most / 2;

    snprintf(key, key_bytes, "%s.%zu", name, offset);
    return bytes - offset < most ? bytes - offset : most;
}

static rueda_status put(void *arg, const char *name, const void *bytes,
                        size_t len)
{
    struct rueda_pmi *pmi = arg;
    rueda_status status = RUEDA_OK;
    char value[RUEDA_PMI_VALUE + 1];
    char key[64];
    size_t part;

    for (size_t at = 0; at < len && status == RUEDA_OK; at += part) {
        part = part_at(pmi, name, at, len, key, sizeof(key));
        rueda_pmi_hex_write((const char *)bytes + at, part, value);
        status = pmi->dialect->put(pmi, key, value);
    }
    rueda_secret_wipe(value, sizeof(value));
    return status;
}

static rueda_status get(void *arg, int rank, const char *name, void *out,
                        size_t len)
{
    struct rueda_pmi *pmi = arg;
    rueda_status status = RUEDA_OK;
    char value[RUEDA_PMI_VALUE + 1];
    char key[64];
    size_t part;

    (void)rank; /* it is in the name */
    for (size_t at = 0; at < len && status == RUEDA_OK; at += part) {
        part = part_at(pmi, name, at, len, key, sizeof(key));
        status = pmi->dialect->get(pmi, key, value);
        if (status == RUEDA_OK &&
            !rueda_pmi_hex_read(value, (char *)out + at, part))
            status = RUEDA_ERR_MISMATCH;
    }
    rueda_secret_wipe(value, sizeof(value));
    return status;
}

static rueda_status meet(void *arg)
{
    struct rueda_pmi *pmi = arg;
    const char *silence = pmi->wire.silence;
    struct rueda_text late = {{0}};
    rueda_status status;

    rueda_launcher_exchange_late(pmi->exchange->rank, pmi->exchange->size,
                                 &late);
    pmi->wire.silence = late.chars;
    status = pmi->dialect->fence(pmi);
    pmi->wire.silence = silence;
    return status;
}

/* Everything after the greeting; the card is for our own use. */
static rueda_status pass(struct rueda_pmi *pmi, char *card, size_t bytes)
{
    static const struct rueda_business_card_ops ops = {
        .put = put, .meet = meet, .get = get};
    rueda_status status = rueda_business_card_pass(
        pmi->exchange, &ops, pmi, card, bytes, pmi->wire.error);

    return status == RUEDA_OK ? pmi->dialect->leave(pmi) : status;
}

/* For the launcher's answer to a farewell after the deadline. */
#define FAREWELL_NS RUEDA_MS(200)

/* A process that leaves without a word is taken for one that crashed; and Hydra
 * breaks if it is gone before the answer, with all that its ranks have said. */
static void take_leave(struct rueda_pmi *pmi)
{
    pmi->wire.deadline_ns = rueda_clock_ns() + FAREWELL_NS;
    pmi->dialect->leave(pmi);
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
    pmi->dialect = dialect;
    pmi->value_most = RUEDA_PMI_VALUE;
    memcpy(copy, card, bytes);
    status = dialect->join(pmi);
    if (status == RUEDA_OK)
        status = pass(pmi, copy, bytes);
    if (status != RUEDA_OK)
        take_leave(pmi);
    else
        memcpy(card, copy, bytes);
    rueda_secret_wipe(copy, sizeof(copy));
    rueda_secret_wipe(pmi, sizeof(*pmi)); /* the inbox, the last answer */
    free(pmi);
    return status;
}
