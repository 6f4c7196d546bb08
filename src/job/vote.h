/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the members of a formation in one host agree on the next one, by what
 * each of them writes in its line of the segment. tests/model/repair.py has the
 * rules, and checks them.
 *
 * A step is what all members of a lane carry out together. A member counts the
 * steps that it HAS: its share is complete, and the result not delivered yet.
 * It delivers a step when all members have it. If one of them is gone, the
 * others freeze, and then one word in the segment takes the first proposal of
 * who goes on, and from which step. So no store is asked, and any member may be
 * the one that is gone.
 *
 * Used by the thread that holds the engine's token; nothing here blocks.
 */
#ifndef RUEDA_JOB_VOTE_H
#define RUEDA_JOB_VOTE_H

#include "job/formation.h"

/* What the members have decided for a term. */
struct rueda_verdict {
    uint64_t limits[RUEDA_MEMBER_LANES]; /* steps that count as carried out */
    uint64_t last_boundary; /* the latest that a survivor has come to */
    int count;
    int survivors[RUEDA_SEGMENT_MAX]; /* [count] ranks, ascending */
};

/* I have this number of steps of a lane in this formation. */
void rueda_vote_publish(const struct rueda_formation *formation, int lane,
                        uint64_t steps);

/* Has every member that many? Cheap. */
bool rueda_vote_is_carried(const struct rueda_formation *formation, int lane,
                           uint64_t steps);

/* Is a member frozen for a term after this one? Cheap. */
static inline bool rueda_vote_is_called(const struct rueda_formation *formation)
{
    return atomic_load_explicit(&formation->segment->common->called,
                                memory_order_acquire) > formation->term;
}

/* I have stopped all that I do in my formation, have come to this number of
 * boundaries, and wait for this term. Wakes the others. */
void rueda_vote_freeze(struct rueda_segment *segment, uint32_t term,
                       uint64_t boundaries);

/*
 * The decision about the term after `from`, whose members are those that may go
 * on. RUEDA_IN_PROGRESS: members that are there have not frozen; *out_awaited
 * is one of them, and the segment notifies this rank. RUEDA_ERR_PEER_LOST: a
 * member has failed, and with it the job; there will be no decision.
 */
rueda_status rueda_vote_decide(const struct rueda_formation *from,
                               struct rueda_verdict *out, int *out_awaited);

#endif /* RUEDA_JOB_VOTE_H */
