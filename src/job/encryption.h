/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How messages between hosts are protected: one decision for the whole job.
 * Each rank reports its RUEDA_ENCRYPT and the addresses at which it listens to
 * the store, over a sealed connection; rank 0 decides and announces it. By the
 * settings of all ranks:
 *
 *      always and never         there is no job, with words that name both
 *      authenticate and never   the same
 *      any always               all streams are sealed
 *      any never                none is
 *      else, where any is auto  sealed if an address of any rank is neither
 *                               private nor link-local (os/address.h)
 *      any authenticate         every frame carries a MAC, and is not encrypted
 *      else                     plain: tensors are bare, and what says which
 *                               operation they belong to carries a MAC
 *
 * Pure; any thread.
 */
#ifndef RUEDA_JOB_ENCRYPTION_H
#define RUEDA_JOB_ENCRYPTION_H

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/text.h"
#include "os/tcp.h"

#define RUEDA_ENCRYPT_CHOICES 4

/* What ranks have said; zeroed to begin with. */
struct rueda_encrypt_vote {
    int count[RUEDA_ENCRYPT_CHOICES]; /* of ranks with this setting */
    int first[RUEDA_ENCRYPT_CHOICES]; /* the lowest rank of them */
    int far_rank;                     /* the first that listens so */
    char far[RUEDA_ADDRESS_TEXT];     /* that address; empty: there is none */
};

/* A rank has this setting and listens at these addresses. Ranks come in
 * ascending order. */
void rueda_encrypt_hear(struct rueda_encrypt_vote *vote, int rank,
                        rueda_config_encrypt setting,
                        const struct rueda_address *addresses, int count);

/*
 * Decide: RUEDA_ENCRYPT_ALWAYS, RUEDA_ENCRYPT_AUTHENTICATE or
 * RUEDA_ENCRYPT_NEVER. why says in words what decided. RUEDA_ERR_MISMATCH, and
 * why names the ranks that contradict each other and what to do.
 */
rueda_status rueda_encrypt_decide(const struct rueda_encrypt_vote *vote,
                                  rueda_config_encrypt *out,
                                  struct rueda_text *why);

/* How each kind of message travels between hosts, in one line. */
void rueda_encrypt_explain(rueda_config_encrypt decision, const char *why,
                           struct rueda_text *out);

#endif /* RUEDA_JOB_ENCRYPTION_H */
