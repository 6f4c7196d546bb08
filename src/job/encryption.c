/* SPDX-License-Identifier: Apache-2.0 */
#include "job/encryption.h"

#include <string.h>

void rueda_encrypt_hear(struct rueda_encrypt_vote *vote, int rank,
                        rueda_config_encrypt setting,
                        const struct rueda_address *addresses, int count)
{
    if (vote->count[setting]++ == 0)
        vote->first[setting] = rank;
    for (int i = 0; i < count && vote->far[0] == '\0'; i++) {
        if (rueda_address_is_near(&addresses[i]))
            continue;
        vote->far_rank = rank;
        rueda_address_text(&addresses[i], vote->far, sizeof(vote->far));
    }
}

static rueda_status contradict(const struct rueda_encrypt_vote *vote,
                               rueda_config_encrypt setting, const char *name,
                               struct rueda_text *why)
{
    rueda_text_set(why,
                   "rank %d has RUEDA_ENCRYPT=%s and rank %d has "
                   "RUEDA_ENCRYPT=never, so they cannot talk; give all ranks "
                   "the same, or leave it at auto",
                   vote->first[setting], name,
                   vote->first[RUEDA_ENCRYPT_NEVER]);
    return RUEDA_ERR_MISMATCH;
}

/* A setting of a rank is the reason. */
static void blame(const struct rueda_encrypt_vote *vote,
                  rueda_config_encrypt setting, const char *name,
                  struct rueda_text *why)
{
    rueda_text_set(why, "rank %d has RUEDA_ENCRYPT=%s", vote->first[setting],
                   name);
}

rueda_status rueda_encrypt_decide(const struct rueda_encrypt_vote *vote,
                                  rueda_config_encrypt *out,
                                  struct rueda_text *why)
{
    const bool is_always = vote->count[RUEDA_ENCRYPT_ALWAYS] > 0;
    const bool is_never = vote->count[RUEDA_ENCRYPT_NEVER] > 0;
    const bool is_proven = vote->count[RUEDA_ENCRYPT_AUTHENTICATE] > 0;
    const bool is_auto = vote->count[RUEDA_ENCRYPT_AUTO] > 0;

    if (is_always && is_never)
        return contradict(vote, RUEDA_ENCRYPT_ALWAYS, "always", why);
    if (is_proven && is_never)
        return contradict(vote, RUEDA_ENCRYPT_AUTHENTICATE, "authenticate",
                          why);
    *out = RUEDA_ENCRYPT_NEVER;
    if (is_always) {
        *out = RUEDA_ENCRYPT_ALWAYS;
        blame(vote, RUEDA_ENCRYPT_ALWAYS, "always", why);
    } else if (is_never) {
        blame(vote, RUEDA_ENCRYPT_NEVER, "never", why);
    } else if (is_auto && vote->far[0] != '\0') {
        *out = RUEDA_ENCRYPT_ALWAYS;
        rueda_text_set(why,
                       "RUEDA_ENCRYPT=auto, and rank %d listens at %s, which "
                       "is neither private nor link-local",
                       vote->far_rank, vote->far);
    } else if (is_proven) {
        *out = RUEDA_ENCRYPT_AUTHENTICATE;
        blame(vote, RUEDA_ENCRYPT_AUTHENTICATE, "authenticate", why);
    } else {
        rueda_text_set(why, "RUEDA_ENCRYPT=auto, and all ranks listen at "
                            "private or link-local addresses only");
    }
    return RUEDA_OK;
}

void rueda_encrypt_explain(rueda_config_encrypt decision, const char *why,
                           struct rueda_text *out)
{
    const char *how = decision == RUEDA_ENCRYPT_ALWAYS ? "sealed"
                      : decision == RUEDA_ENCRYPT_AUTHENTICATE
                          ? "authenticated and not encrypted"
                          : "neither encrypted nor authenticated";
    const char *talk =
        decision == RUEDA_ENCRYPT_ALWAYS ? "sealed" : "authenticated";
    const bool is_plain = decision != RUEDA_ENCRYPT_ALWAYS &&
                          decision != RUEDA_ENCRYPT_AUTHENTICATE;

    rueda_text_set(out,
                   "between hosts tensors are %s (%s); negotiation is %s; the "
                   "store and last words are sealed; objects%s are "
                   "authenticated",
                   how, why, talk, is_plain ? ", bytes and integers" : "");
}
