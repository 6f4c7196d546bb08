/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "auth"

#include "auth/refusals.h"

#include "base/duration.h"
#include "base/log.h"

#define WHILE_NS RUEDA_S(10)

static const char *const more_words[RUEDA_REFUSAL_KINDS] = {
    [RUEDA_REFUSED_UNPROVEN] = "proved nothing",
    [RUEDA_REFUSED_VERSION] = "spoke another version",
    [RUEDA_REFUSED_MISFIT] = "did not belong here",
    [RUEDA_REFUSED_LEFT] = "left before they had proven themselves",
    [RUEDA_REFUSED_SLOW] = "did not prove themselves in time",
    [RUEDA_REFUSED_CROWD] = "made room for others",
};

rueda_refusal rueda_refusal_of(rueda_status status)
{
    if (status == RUEDA_ERR_AUTH)
        return RUEDA_REFUSED_UNPROVEN;
    return status == RUEDA_ERR_VERSION ? RUEDA_REFUSED_VERSION
                                       : RUEDA_REFUSED_LEFT;
}

void rueda_refuse(struct rueda_refusals *refusals, rueda_refusal kind,
                  const char *who, const struct rueda_address *from,
                  const char *why, int64_t now_ns)
{
    char text[RUEDA_ADDRESS_TEXT] = "an unknown address";

    rueda_refusals_sum(refusals, who, now_ns);
    if (refusals->kinds[kind].until_ns > 0) {
        refusals->kinds[kind].held++;
        return;
    }
    refusals->kinds[kind].until_ns = now_ns + WHILE_NS;
    if (from != NULL && from->len > 0)
        rueda_address_text(from, text, sizeof(text));
    log_warn("%s refused a caller from %s: %s", who, text, why);
}

void rueda_refusals_sum(struct rueda_refusals *refusals, const char *who,
                        int64_t now_ns)
{
    for (int kind = 0; kind < RUEDA_REFUSAL_KINDS; kind++) {
        if (refusals->kinds[kind].until_ns == 0 ||
            now_ns < refusals->kinds[kind].until_ns)
            continue;
        if (refusals->kinds[kind].held > 0)
            log_warn("%s refused %u more callers: they %s", who,
                     refusals->kinds[kind].held, more_words[kind]);
        refusals->kinds[kind].until_ns = 0;
        refusals->kinds[kind].held = 0;
    }
}
