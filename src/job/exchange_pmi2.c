/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI-2, as Slurm's pmi2 plugin speaks it (and Hydra). A line as in PMI-1
 * asks for the version; from then on messages are counted, and the answer to
 * x is x-response:
 *
 *   fullinit;pmijobid=;pmirank=;threaded=    rank=;size=
 *   job-getid                                jobid=
 *   kvs-put;key=;value=                      rc=
 *   kvs-fence                                rc=, when all have come
 *   kvs-get;jobid=;srcid=;key=               found=;value=
 *   finalize                                 rc=
 */
#include <string.h>

#include "job/pmi.h"

/* The launcher and our settings must agree on rank and size. */
static rueda_status check_seat(struct rueda_pmi *pmi)
{
    const struct rueda_business_card_exchange *exchange = pmi->exchange;
    int rank;
    int size;

    if (!rueda_pmi_number(&pmi->wire, "rank", &rank) ||
        !rueda_pmi_number(&pmi->wire, "size", &size)) {
        rueda_text_set(
            pmi->wire.error,
            "the launcher does not give our rank and size (PMI-2 fullinit)");
        return RUEDA_ERR_INVALID;
    }
    if (rank != exchange->rank || size != exchange->size) {
        rueda_text_set(pmi->wire.error,
                       "the launcher takes us for rank %d of %d, the settings "
                       "say rank %d of %d; set neither RUEDA_RANK nor "
                       "RUEDA_SIZE under a launcher",
                       rank, size, exchange->rank, exchange->size);
        return RUEDA_ERR_MISMATCH;
    }
    return RUEDA_OK;
}

/* The job's identity names the space of keys. */
static rueda_status join(struct rueda_pmi *pmi)
{
    const struct rueda_business_card_exchange *exchange = pmi->exchange;
    struct rueda_pmi_wire *wire = &pmi->wire;
    const char *job = exchange->environment(exchange->arg, "PMI_JOBID");
    rueda_status status;

    if (job == NULL || strcspn(job, ";=\n") != strlen(job))
        job = "0";
    status = rueda_pmi_ask(wire, "response_to_init",
                           "cmd=init pmi_version=2 pmi_subversion=0");
    if (status != RUEDA_OK)
        return status;
    wire->is_counted = true;
    status = rueda_pmi_ask(wire, "fullinit-response",
                           "cmd=fullinit;pmijobid=%s;pmirank=%d;"
                           "threaded=FALSE;",
                           job, exchange->rank);
    if (status == RUEDA_OK)
        status = check_seat(pmi);
    if (status == RUEDA_OK)
        status = rueda_pmi_ask(wire, "job-getid-response", "cmd=job-getid;");
    if (status == RUEDA_OK &&
        !rueda_pmi_value(wire, "jobid", pmi->space, sizeof(pmi->space))) {
        rueda_text_set(wire->error, "the launcher has no usable jobid");
        return RUEDA_ERR_INVALID;
    }
    return status;
}

static rueda_status put(struct rueda_pmi *pmi, const char *key,
                        const char *value)
{
    return rueda_pmi_ask(&pmi->wire, "kvs-put-response",
                         "cmd=kvs-put;key=%s;value=%s;", key, value);
}

static rueda_status fence(struct rueda_pmi *pmi)
{
    return rueda_pmi_ask(&pmi->wire, "kvs-fence-response", "cmd=kvs-fence;");
}

/* Read a value; one that is not there is RUEDA_ERR_MISMATCH. */
static rueda_status get(struct rueda_pmi *pmi, const char *key, char *out)
{
    rueda_status status =
        rueda_pmi_ask(&pmi->wire, "kvs-get-response",
                      "cmd=kvs-get;jobid=%s;srcid=0;key=%s;", pmi->space, key);
    char found[8];

    if (status != RUEDA_OK)
        return status;
    if (!rueda_pmi_value(&pmi->wire, "found", found, sizeof(found)) ||
        strcmp(found, "TRUE") != 0 ||
        !rueda_pmi_value(&pmi->wire, "value", out, RUEDA_PMI_VALUE + 1))
        return RUEDA_ERR_MISMATCH;
    return RUEDA_OK;
}

static rueda_status leave(struct rueda_pmi *pmi)
{
    return rueda_pmi_ask(&pmi->wire, "finalize-response", "cmd=finalize;");
}

rueda_status rueda_launcher_exchange_pmi2(
    const struct rueda_business_card_exchange *exchange, void *card,
    size_t bytes, struct rueda_text *error)
{
    static const struct rueda_pmi_dialect pmi2 = {
        .name = "PMI-2",
        .join = join,
        .put = put,
        .fence = fence,
        .get = get,
        .leave = leave,
    };

    return rueda_pmi_exchange(&pmi2, exchange, card, bytes, error);
}
