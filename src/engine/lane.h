/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: where operations of one process set run, as one of its members sees
 * it. Its order source (negotiate/order.h) says what runs next; each decision
 * becomes a batch (batch.h), one at a time. A set has two lanes: one for named
 * operations, whose source is the log, and one for ordered operations, whose
 * source is the counter. Lanes do not wait for one another.
 *
 * Used by the thread that holds the engine's token. Nothing blocks.
 */
#ifndef RUEDA_ENGINE_LANE_H
#define RUEDA_ENGINE_LANE_H

#include "engine/away.h"
#include "engine/batch.h"
#include "engine/kept.h"
#include "engine/message.h"
#include "engine/track.h"
#include "job/set.h"
#include "negotiate/negotiator.h"
#include "negotiate/order_counter.h"
#include "op/ticket.h"
#include "segment/slab.h"

struct rueda_lanes;

/* The sequence of a send or receive is this and its tag; those of tasks count
 * from 0. */
#define RUEDA_LANE_MESSAGES ((uint64_t)1 << 63)

struct rueda_lane {
    struct rueda_lanes *lanes;         /* all of them; borrowed */
    struct rueda_formation *formation; /* held */
    const struct rueda_set *set;       /* borrowed */
    struct rueda_mesh view;            /* of the set's members; size 0: there is
                                          none, */
    struct rueda_mesh *mesh;           /* this being the formation's */
    int *hosts;  /* [set->size] the number of each one's */
    int *locals; /* [slab.size] members of this host, by their
                    places in the segment */
    struct rueda_slab slab;
    bool has_slab;
    bool is_open;    /* where the slab is, is known */
    bool is_ordered; /* its operations are ordered */
    struct rueda_track track;
    struct rueda_order order; /* what runs next */

    /* One of both is `order`, unless another source was set. The log also
     * carries timeline records; NULL where operations are ordered. */
    struct rueda_negotiator *negotiator;
    struct rueda_order_counter counter;

    uint64_t submitted; /* ordered collectives so far */
    char *fusion;       /* in the segment, or NULL: nothing is packed */
    size_t fusion_bytes;
    struct rueda_away away;

    /* Operations that are not delivered, in the order in which they came. */
    struct rueda_ticket *first;
    struct rueda_ticket *last;
    int count;

    struct rueda_batch batch;
    struct rueda_kept kept; /* what it may have to run again */
    struct rueda_messages messages;
    uint64_t moves; /* counted up whenever it got on by itself */

    /* The log: no decision from `limit` on is begun, those before `begun` have
     * been, those before `ended` are carried out. */
    uint64_t begun;
    uint64_t ended;
    uint64_t limit;
    uint64_t noted_to; /* the last that belongs to a timeline which ends */
    bool is_closed;    /* nothing is negotiated any more */
};

/*
 * All that can fail in making a lane, of ordered operations or of others, from
 * a formation and a process set. The set is borrowed, and this rank is among
 * its members. The slab of the members of this host is told later. On failure
 * (RUEDA_ERR_NOMEM, RUEDA_ERR_LIMIT) nothing is left, and the second comes with
 * words.
 */
rueda_status rueda_lane_new(struct rueda_lanes *lanes,
                            struct rueda_formation *formation,
                            const struct rueda_set *set, bool is_ordered,
                            struct rueda_lane **out, struct rueda_text *error);

/* Bytes of that slab; 0: the members share none. */
size_t rueda_lane_slab_bytes(const struct rueda_lane *lane);

/* It is here in the segment: the lane can be used. */
void rueda_lane_open(struct rueda_lane *lane, uint64_t slab_offset);

/* Its set is dropped: end all that are not delivered, but messages. Turns go on
 * until it is over: nothing of it is in flight any more. */
void rueda_lane_close(struct rueda_lane *lane);
bool rueda_lane_is_over(struct rueda_lane *lane);

/* May others of this host still read in the fusion slab, for an operation that
 * is over here? */
bool rueda_lane_has_lent(struct rueda_lane *lane);

/* No operation is in it, and nothing in flight on its mesh. */
void rueda_lane_free(struct rueda_lane *lane);

/* Take an operation over. A failure is one of the whole context: an ordered
 * operation cannot end on one rank alone. */
rueda_status rueda_lane_submit(struct rueda_lane *lane,
                               struct rueda_ticket *ticket);

/*
 * Get on. RUEDA_OK if anything moved, RUEDA_IN_PROGRESS if not. A failure is
 * one of the whole context; error may have the words for it.
 */
rueda_status rueda_lane_turn(struct rueda_lane *lane, struct rueda_text *error);

/* An operation of the lane has ended: it is taken out of the list, and waits to
 * be delivered (lanes.h). */
void rueda_lane_finish(struct rueda_lane *lane, struct rueda_ticket *ticket,
                       rueda_status status);

/* Only where results are kept (kept.h). The term ends: stop what runs. And
 * later: these steps count as carried out, so deliver what belongs to them;
 * what is left in the lane has to run again. */
void rueda_lane_freeze(struct rueda_lane *lane);
rueda_status rueda_lane_settle(struct rueda_lane *lane, uint64_t steps,
                               struct rueda_text *error);

/* Give all that is left to another lane, in the order in which it came. */
rueda_status rueda_lane_hand_over(struct rueda_lane *lane,
                                  struct rueda_lane *next);

/* End all that are not delivered, but messages. The running batch ends as
 * well. */
void rueda_lane_end(struct rueda_lane *lane, rueda_status status);

/* Is it that of RUEDA_WHOLE_JOB? It has nothing but messages. */
static inline bool rueda_lane_is_for_messages(const struct rueda_lane *lane)
{
    return lane->set->id == RUEDA_WHOLE_JOB;
}

/* Has a member of this host died that a running operation still needs? */
bool rueda_lane_is_spoilt(const struct rueda_lane *lane);

/* Add what the lane is at: "allreduce "grad.3"". There is something. */
void rueda_lane_tell(const struct rueda_lane *lane, struct rueda_text *words);

/* Add one operation of the lane: "broadcast "w" from rank 0". */
void rueda_lane_tell_op(const struct rueda_lane *lane,
                        const struct rueda_request *request,
                        struct rueda_text *words);

#endif /* RUEDA_ENGINE_LANE_H */
