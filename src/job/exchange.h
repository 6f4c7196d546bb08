/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How rank 0 publishes where it can be found: by a card, bytes that are opaque
 * here, passed through the exchange that the launcher offers.
 *
 *   pmix   Open MPI's mpirun, prrte, srun --mpi=pmix: libpmix, opened at run
 *          time
 *   pmi1   Hydra (MPICH, Intel MPI): lines over the socket PMI_FD
 *   pmi2   srun --mpi=pmi2: counted messages over the socket PMI_FD
 *
 * Every rank of the job calls the same function, once in its life: it finalizes
 * the launcher's interface after the exchange, so the caller keeps the card. A
 * launcher serves each process once, whichever of the three it speaks, so a
 * process that has an MPI, or will have one, must not come here: with PMI-1 and
 * PMI-2 the two would talk over the same socket, and under Open MPI 4 MPI_Init
 * fails after we have finalized. seat.h avoids that where an MPI is loaded.
 * What arrives is only as trustworthy as the launcher. A party that only
 * listens to it does not learn what is secret in a card.
 *
 * Calls block, until the deadline at most. One thread at a time.
 */
#ifndef RUEDA_JOB_EXCHANGE_H
#define RUEDA_JOB_EXCHANGE_H

#include <rueda/rueda.h>

#include "base/text.h"

/* The largest card, and the largest secret in it. */
#define RUEDA_BUSINESS_CARD_BYTES 512
#define RUEDA_CARD_SECRET_BYTES   32

struct rueda_business_card_exchange {
    int rank;
    int size;
    /* The part of the card that only the ranks may learn, up to
     * RUEDA_CARD_SECRET_BYTES from secret_at on; 0: none. It goes to each rank
     * in an envelope of its own (auth/envelope.h). */
    size_t secret_at;
    size_t secret_bytes;
    /* The value of a variable of the environment, or NULL. What the launcher
     * has set must be in the process's own too: PMIx reads it there. */
    const char *(*environment)(void *arg, const char *name);
    void *arg;
    int64_t deadline_ns; /* on rueda_clock_ns() */
};

/* ---- What the three have in common --------------------------------------- */

/* The message when the deadline passes while ranks are missing. */
void rueda_launcher_exchange_late(int rank, int size, struct rueda_text *error);

/* What a launcher offers. Failures put words into the text that pass() has. */
struct rueda_business_card_ops {
    rueda_status (*put)(void *arg, const char *name, const void *bytes,
                        size_t len);

    /* Ends when every rank has come; what was put before can be got after. */
    rueda_status (*meet)(void *arg);

    /* What that rank put under the name, if that has this length; else
     * RUEDA_ERR_MISMATCH, without words. */
    rueda_status (*get)(void *arg, int rank, const char *name, void *out,
                        size_t len);
};

/* Pass the card on over a conversation with the launcher that has begun. On
 * failure the card is undefined. */
rueda_status
rueda_business_card_pass(const struct rueda_business_card_exchange *exchange,
                         const struct rueda_business_card_ops *ops, void *arg,
                         void *card, size_t bytes, struct rueda_text *error);

/* ---- The three ----------------------------------------------------------- */

/*
 * In rank 0 the card is handed out, in the others it is filled in; bytes is
 * the same everywhere, 1 to RUEDA_BUSINESS_CARD_BYTES. On failure error says
 * what to do, the card is as it was, and nothing of ours stays open. (A PMIx
 * that could not reach its launcher keeps a thread of its own; if the launcher
 * is stopped, one of ours stays with it.) A job of one rank needs no launcher.
 *
 * RUEDA_ERR_TIMEOUT: some rank has not come, or the launcher does not answer.
 * RUEDA_ERR_UNSUPPORTED: this launcher offers no such exchange, or it speaks a
 * version that we do not know; another way may work.
 * RUEDA_ERR_MISMATCH: it has another idea of rank, size or card than we have.
 * RUEDA_ERR_PEER_LOST: the launcher has gone.
 * RUEDA_ERR_INVALID: what it said makes no sense, or it refused.
 * RUEDA_ERR_AUTH: what it passed on about the secret was changed on the way.
 */
rueda_status rueda_launcher_exchange_pmix(
    const struct rueda_business_card_exchange *exchange, void *card,
    size_t bytes, struct rueda_text *error);
rueda_status rueda_launcher_exchange_pmi1(
    const struct rueda_business_card_exchange *exchange, void *card,
    size_t bytes, struct rueda_text *error);
rueda_status rueda_launcher_exchange_pmi2(
    const struct rueda_business_card_exchange *exchange, void *card,
    size_t bytes, struct rueda_text *error);

#endif /* RUEDA_JOB_EXCHANGE_H */
