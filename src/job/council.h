/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the members of a formation agree on the next one when some of them are
 * gone (RUEDA_REPAIR=1). There are two ways:
 *
 *      memory   the ranks of one host write in their lines of the segment
 *               (vote.h)
 *      store    ranks of several hosts say to the store what they have, and
 *               count what it has heard (ballot.h)
 *
 * With either one a member freezes, waits for the decision, makes what it needs
 * for the next formation, offers that, and waits until all others have.
 *
 * Used by the thread that holds the engine's token; nothing here blocks.
 */
#ifndef RUEDA_JOB_COUNCIL_H
#define RUEDA_JOB_COUNCIL_H

#include "job/job.h"
#include "job/vote.h"

/* What a member has when it freezes. */
struct rueda_standing {
    uint64_t has[RUEDA_MEMBER_LANES]; /* steps */
    uint64_t boundaries;              /* that its program has come to */
};

struct rueda_council_ops {
    /* Do members learn what others have by a barrier behind each step? Else
     * they read it in the segment (vote.h). */
    bool takes_barriers;

    /* Is a member frozen for a later term? Cheap. */
    bool (*is_called)(const struct rueda_formation *formation);

    /* Is a member of another host gone, so that an operation that needs it
     * cannot end? As the last poll has found. */
    bool (*is_spoilt)(struct rueda_job *job);

    /* I have stopped all that I do, and wait for the term after `from`. */
    void (*freeze)(struct rueda_formation *from,
                   const struct rueda_standing *standing);

    /*
     * The decision about the term after `from`. RUEDA_IN_PROGRESS: members that
     * are there have not frozen; *out_awaited is one of them.
     * RUEDA_ERR_PEER_LOST: there will be none for this rank; the job ends, or
     * goes on without it.
     */
    rueda_status (*decide)(struct rueda_formation *from,
                           struct rueda_verdict *out, int *out_awaited);

    /* My part of the next formation is there (rueda_formation_begin_next()). */
    void (*offer)(struct rueda_formation *next);

    /*
     * Have all offered? As rueda_formation_meet(), which this calls;
     * RUEDA_ERR_CLOSED: the job ends, or goes on without this rank.
     */
    rueda_status (*meet)(struct rueda_formation *next,
                         struct rueda_text *error);

    /* This rank does not take part, so that no other can go on: the words say
     * why. */
    void (*refuse)(struct rueda_job *job, const char *words);
};

extern const struct rueda_council_ops rueda_council_in_memory;
extern const struct rueda_council_ops rueda_council_by_store;

/* ---- By the store (store_council.c) ------------------------------------ */

/* Ranks of several hosts have met in the roll call, which has said that they
 * repair: listen to the store. RUEDA_ERR_NOMEM, or as rueda_client_ask(). */
rueda_status rueda_store_council_open(struct rueda_job *job,
                                      int64_t deadline_ns,
                                      struct rueda_text *error);

/* This rank leaves the job in good order, and says so; waits for a moment. NULL
 * is allowed for what was not opened. */
void rueda_store_council_leave(struct rueda_job *job);
void rueda_store_council_close(struct rueda_job *job);

/* What the store says if this rank is gone without a word: a key of
 * RUEDA_STORE_KEY_BYTES + 1; returns its length. */
size_t rueda_store_council_will(const struct rueda_job *job, char *out);

/* An event of the store; false: it is about something else. Within a call of
 * the client. */
bool rueda_store_council_event(struct rueda_job *job,
                               const struct rueda_store_reply *event);

/* Take in what the store has sent, and send what is to be said. */
void rueda_store_council_poll(struct rueda_job *job);

#endif /* RUEDA_JOB_COUNCIL_H */
