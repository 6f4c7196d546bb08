/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMI-1, as Hydra speaks it (and Slurm's pmi2 plugin, and Flux). Lines; for
 * each command on the left, the answer on the right:
 *
 *   init pmi_version= pmi_subversion=    response_to_init, with rc
 *   get_maxes                            maxes keylen_max= vallen_max=
 *   get_my_kvsname                       my_kvsname kvsname=
 *   put kvsname= key= value=             put_result, with rc
 *   barrier_in                           barrier_out, when all are in
 *   get kvsname= key=                    get_result value=, with rc
 *   finalize                             finalize_ack
 */
#include "job/pmi.h"

/* Say hello, and learn how long names and values may be. */
static rueda_status join(struct rueda_pmi *pmi)
{
    struct rueda_pmi_wire *wire = &pmi->wire;
    rueda_status status;
    int most;

    status = rueda_pmi_ask(wire, "response_to_init",
                           "cmd=init pmi_version=1 pmi_subversion=1");
    if (status == RUEDA_OK)
        status = rueda_pmi_ask(wire, "maxes", "cmd=get_maxes");
    if (status != RUEDA_OK)
        return status;
    /* The limits count the zero at the end, or do not: assume they do. */
    if (!rueda_pmi_number(wire, "vallen_max", &most) || most < 3) {
        rueda_text_set(wire->error, "the launcher says nothing useful about "
                                    "the length of values (vallen_max)");
        return RUEDA_ERR_UNSUPPORTED;
    }
    if ((size_t)most - 1 < pmi->value_most)
        pmi->value_most = (size_t)most - 1;
    status = rueda_pmi_ask(wire, "my_kvsname", "cmd=get_my_kvsname");
    if (status == RUEDA_OK &&
        !rueda_pmi_value(wire, "kvsname", pmi->space, sizeof(pmi->space))) {
        rueda_text_set(wire->error, "the launcher has no usable kvsname");
        return RUEDA_ERR_INVALID;
    }
    return status;
}

static rueda_status put(struct rueda_pmi *pmi, const char *key,
                        const char *value)
{
    return rueda_pmi_ask(&pmi->wire, "put_result",
                         "cmd=put kvsname=%s key=%s value=%s", pmi->space, key,
                         value);
}

static rueda_status fence(struct rueda_pmi *pmi)
{
    return rueda_pmi_ask(&pmi->wire, "barrier_out", "cmd=barrier_in");
}

static rueda_status get(struct rueda_pmi *pmi, const char *key, char *out)
{
    rueda_status status = rueda_pmi_ask(
        &pmi->wire, "get_result", "cmd=get kvsname=%s key=%s", pmi->space, key);

    if (status == RUEDA_OK &&
        !rueda_pmi_value(&pmi->wire, "value", out, RUEDA_PMI_VALUE + 1))
        return RUEDA_ERR_MISMATCH;
    return status;
}

static rueda_status leave(struct rueda_pmi *pmi)
{
    return rueda_pmi_ask(&pmi->wire, "finalize_ack", "cmd=finalize");
}

rueda_status rueda_launcher_exchange_pmi1(
    const struct rueda_business_card_exchange *exchange, void *card,
    size_t bytes, struct rueda_text *error)
{
    static const struct rueda_pmi_dialect pmi1 = {
        .name = "PMI-1",
        .join = join,
        .put = put,
        .fence = fence,
        .get = get,
        .leave = leave,
    };

    return rueda_pmi_exchange(&pmi1, exchange, card, bytes, error);
}
