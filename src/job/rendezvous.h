/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process of an elastic job, whose ranks change while it runs, gets its
 * ranks in a term. The launcher decides on them; a process asks each time that
 * it enters a term (launch/membership.h). They speak through the launcher's
 * store:
 *
 *      elastic/ready/<w>  from worker w: it asks for ranks; its progress, in
 *                         8 bytes
 *      elastic/ready/<w>/leave
 *                         from worker w: it was told to end, and leaves at the
 *                         next commit
 *      elastic/ranks/<w>  to worker w: its ranks, or why it has none
 *      elastic/change       to all: a change waits for the members of a term
 *      <term>/over        to all of a term: it is over, perhaps before it began
 *
 * What a term's ranks say to each other is under "<term>/" too (rollcall.h).
 *
 * A process has one place at a time, so what is known of it belongs to the
 * process. Exported for the modules beside the library, not for programs.
 */
#ifndef RUEDA_JOB_RENDEZVOUS_H
#define RUEDA_JOB_RENDEZVOUS_H

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/text.h"
#include "job/seat.h"
#include "job/store/client.h"

#define RUEDA_RENDEZVOUS_READY   "elastic/ready/"
#define RUEDA_RENDEZVOUS_LEAVE   "/leave"
#define RUEDA_RENDEZVOUS_RANKS   "elastic/ranks/"
#define RUEDA_RENDEZVOUS_CHANGES "elastic/change"

struct rueda_rendezvous_ranks {
    uint32_t term; /* from 1 */
    int rank;
    int size;
    int local_rank;
    int local_size;
    int cross_rank;
    int cross_size;
};

/* ---- Bytes: pure ------------------------------------------------------ */

#define RUEDA_RENDEZVOUS_BYTES 29

void rueda_rendezvous_write(const struct rueda_rendezvous_ranks *place,
                            unsigned char out[RUEDA_RENDEZVOUS_BYTES]);

/* A process that has no place is told why. Returns how many bytes are used. */
size_t rueda_rendezvous_write_refusal(const char *words,
                                      unsigned char out[1 + RUEDA_TEXT_BYTES]);

/* RUEDA_OK: a place. RUEDA_ERR_CLOSED: there is none, with words.
 * RUEDA_ERR_INVALID: it makes no sense. */
rueda_status rueda_rendezvous_read(const void *bytes, size_t len,
                                   struct rueda_rendezvous_ranks *out,
                                   struct rueda_text *words);

/* What has become of the hosts, as Horovod's workers know it. */
#define RUEDA_RENDEZVOUS_REMOVED 1
#define RUEDA_RENDEZVOUS_ADDED   2

/* A change of the hosts that waits for the members of a term. */
struct rueda_rendezvous_change {
    uint32_t term;
    uint32_t flags;
};

#define RUEDA_RENDEZVOUS_CHANGE_BYTES 8

void rueda_rendezvous_change_write(
    const struct rueda_rendezvous_change *change,
    unsigned char out[RUEDA_RENDEZVOUS_CHANGE_BYTES]);
bool rueda_rendezvous_change_read(const void *bytes, size_t len,
                                  struct rueda_rendezvous_change *out);

/* ---- A process of an elastic job ----------------------------------------- */

/*
 * Ask for a place in the next term and wait until it has begun to form, which a
 * newcomer may have to do for hours. The seat gets the place; key is that of
 * the job. RUEDA_ERR_CLOSED with words: this process is not needed any more.
 * Else as rueda_client_ask().
 */
rueda_status rueda_rendezvous_take(struct rueda_seat *seat,
                                   const struct rueda_key *key,
                                   struct rueda_text *error);

/* Have the client give up what it waits for when the term is over
 * (rueda_rendezvous_is_over()). */
rueda_status rueda_rendezvous_watch(struct rueda_client *client, uint32_t term,
                                    int64_t deadline_ns,
                                    struct rueda_text *error);

/* Is this event the end of a term? */
bool rueda_rendezvous_is_over(const struct rueda_store_reply *event);

/* The term of this process's place; 0: it has none. */
RUEDA_API unsigned rueda_rendezvous_term(void);

/* Its number among the processes of the job; 0 before it has a place. */
int rueda_rendezvous_worker(void);

/* A connection of its own with the launcher's store. The place must have been
 * asked for. */
rueda_status rueda_rendezvous_reach(int worker, struct rueda_client **out,
                                    struct rueda_text *error);

/* Has the launcher told it that it has none any more? */
RUEDA_API bool rueda_rendezvous_is_refused(void);

/* Has a start failed because of another rank, so that it is worth asking for a
 * place in the next term? Not after many such failures in a row. */
bool rueda_rendezvous_may_retry(rueda_status status);

/* Say how far the training has come in the state that this process keeps; 0: it
 * has none. The process that has come farthest hands out its state. */
RUEDA_API void rueda_rendezvous_set_progress(uint64_t progress);

/*
 * Wait for a change of the hosts, newer than the last. The place must have been
 * taken. RUEDA_ERR_TIMEOUT: there are none so far. One thread at a time.
 */
RUEDA_API rueda_status
rueda_rendezvous_wait(int timeout_ms, struct rueda_rendezvous_change *out);

/* ---- rendezvous_ask.c ------------------------------------------------------
 */

/* Tell the launcher that this process was told to end, so that it has no place
 * in the next term. Any thread. */
RUEDA_API rueda_status rueda_rendezvous_leave(void);

/* Add to a number in the launcher's store and return the sum. key: without a
 * zero byte, at most RUEDA_STORE_KEY_BYTES. Any thread. */
RUEDA_API rueda_status rueda_rendezvous_add(const char *key, int64_t count,
                                            int64_t *out_sum);

#endif /* RUEDA_JOB_RENDEZVOUS_H */
