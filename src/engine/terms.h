/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one term to the next (RUEDA_REPAIR=1): a member is gone, and the others
 * go on without it. What all of them have is delivered, and what is left runs
 * again among them, from inputs that are still whole.
 *
 *      FROZEN    this rank has stopped, and waits until all others have, and
 *                until it is decided which of them go on (job/council.h)
 *      MEETING   it has begun the next formation, and waits until the others
 *                have (job/formation.h); then operations are settled, and new
 *                lanes made
 *
 * A program sees another rank() and size() from its next boundary on, which it
 * marks by rueda_step(): all ranks change at the same one.
 *
 * This covers the ranks of one host that use the segment, and those of several
 * hosts; an allreduce or a barrier of all ranks, by name or in order. It does
 * not cover, and then all ranks fail as they do without RUEDA_REPAIR:
 *
 *      - messages by TCP within one host alone, elastic jobs, new members
 *      - other kinds of operation in flight, messages, joins, the timeline
 *      - process sets beside that of all ranks
 *      - programs that mark no boundaries
 *      - a rank that has failed, and said so: the job is to end
 *
 * By the holder of the engine's token, except where noted. Nothing blocks.
 */
#ifndef RUEDA_ENGINE_TERMS_H
#define RUEDA_ENGINE_TERMS_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "job/vote.h"

struct rueda_engine;
struct rueda_job;
struct rueda_lanes;
struct rueda_ticket;
struct rueda_set;

typedef enum rueda_terms_stage {
    RUEDA_TERMS_REST,
    RUEDA_TERMS_FROZEN,
    RUEDA_TERMS_MEETING,
} rueda_terms_stage;

struct rueda_terms {
    rueda_terms_stage stage;
    bool is_refused; /* the context fails, and changes no term any more */
    struct rueda_formation *from; /* whose members may go on; held */
    struct rueda_formation *next; /* that they have begun, or NULL; held */
    struct rueda_verdict verdict;
    int64_t begin_ns; /* when the stage began */
    bool has_warned;  /* that it takes long */
    int futile; /* terms since the last boundary that no member was lost by */

    uint64_t boundaries;         /* that the program has come to */
    uint64_t last_boundary;      /* the new numbers are shown after this one */
    const struct rueda_set *all; /* to be shown then, or NULL */
    _Atomic(const struct rueda_formation *) seen; /* by the program */
    struct rueda_formation *
        *past; /* [past_count] held: threads may look there */
    int past_count;
};

/* Can ranks of this job repair it? */
bool rueda_terms_cover(struct rueda_job *job);

/* The engine begins; and has ended. */
void rueda_terms_init(struct rueda_engine *engine);
void rueda_terms_fini(struct rueda_engine *engine);

/* A member is gone, or another one has frozen: freeze. False: what is in flight
 * is not covered, and the term fails. */
bool rueda_terms_begin(struct rueda_engine *engine);

/* Get on with it; the end is told by rueda_failing_end_repair(). */
void rueda_terms_turn(struct rueda_engine *engine);

/* Do other members wait for this one to freeze? Cheap. */
bool rueda_terms_is_called(const struct rueda_engine *engine);

/* The program has come to a boundary: an operation of kind RUEDA_STEP. */
void rueda_terms_step(struct rueda_lanes *lanes, struct rueda_ticket *ticket);

/* Does an operation speak of ranks by numbers of an old term? And: end it so,
 * and the context with it. */
bool rueda_terms_is_stale(const struct rueda_lanes *lanes,
                          const struct rueda_ticket *ticket);
rueda_status rueda_terms_refuse(struct rueda_lanes *lanes,
                                struct rueda_ticket *ticket,
                                struct rueda_text *error);

#endif /* RUEDA_ENGINE_TERMS_H */
