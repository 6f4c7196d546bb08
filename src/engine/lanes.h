/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All lanes of a context: the process sets, a lane for each of which this rank
 * is a member, what was submitted and belongs to none of them yet, and what has
 * ended and is not delivered yet.
 *
 * Used by the thread that holds the engine's token, except where noted.
 */
#ifndef RUEDA_ENGINE_LANES_H
#define RUEDA_ENGINE_LANES_H

#include "engine/lane.h"
#include "op/numbers.h"
#include "trace/timeline.h"

struct rueda_accelerator;
struct rueda_engine;
struct rueda_sets_list;
struct rueda_sets_copied;
struct rueda_private_set;

/* The timeline (timeline_relay.c). */
struct rueda_relay {
    uint32_t number;  /* of the one that is kept, or was last */
    bool is_ending;   /* when what is decided so far has been carried out */
    int64_t held_ns;  /* not rank 0's: nothing is sent until then; 0: it is */
    int64_t heard_ns; /* not rank 0's: the last turn */
    int64_t ended_ns; /* not rank 0's: when one was last over here, or 0 */

    /* Only rank 0's: */
    struct rueda_timeline *file; /* or NULL; borrowed */
    bool *told;                  /* [ranks] have sent all their records */
    int told_count;
    struct rueda_ticket *stop; /* waits for them, or NULL */
    int64_t quiet_ns;          /* until when, if no more comes, */
    int64_t until_ns;          /* and in any case */
};

struct rueda_lanes {
    struct rueda_job *job;             /* borrowed, like the next four */
    struct rueda_formation *formation; /* of lanes that are made now */
    struct rueda_engine *engine; /* whose they are; NULL in tests without one */
    const struct rueda_select *select;
    const struct rueda_device *device;           /* of tensors on the host */
    const struct rueda_accelerator *accelerator; /* of others; borrowed; NULL in
                                                    tests without one */
    struct rueda_numbers *numbers; /* of operations without a name; borrowed */

    struct rueda_op_queue arrived; /* any thread pushes */
    struct rueda_lane **all;       /* [room], count of them are there */
    int count;
    int room;
    bool has_log;    /* one of all ranks that negotiates is there */
    int undelivered; /* operations in all of them; */
    int ordered;     /* those of them that are ordered */
    int sole;        /* which of `all` had all operations lately: a hint */
    bool has_ended;  /* the context has failed */
    bool repairs;    /* lanes of all ranks keep their results (kept.h) */

    atomic_bool *lost; /* [ranks] messages of the whole job found them lost */

    int64_t due_ns;  /* the last answer of rueda_lanes_due_ns(), ... */
    bool has_talked; /* ... since when a lane that negotiates had a turn */

    int64_t call_after_ns; /* of negotiators (negotiator.h), like their clock:
                              a simulator has one of its own */
    int64_t (*now_ns)(void *arg);
    void *now_arg;

    struct rueda_timeline *timeline; /* or NULL: nothing is noted */
    struct rueda_relay relay;

    struct rueda_ticket *ended; /* linked by op.next: to be delivered */
    struct rueda_ticket *last_ended;

    struct rueda_set_table *table;
    _Atomic(struct rueda_sets_list *) sets;   /* for other threads (sets.h) */
    _Atomic(const struct rueda_set *) global; /* of these, that of all */
    atomic_uint set_readers; /* other threads that look at one of these */
    struct rueda_sets_copied *copies;
    struct rueda_sets_copied *retired;  /* not in the list any more */
    struct rueda_private_set *openings; /* in the making (private_sets.h) */
    struct rueda_lane **dropped;        /* [dropped_count] */
    int dropped_count;
};

/* The lanes are made when they are first needed. On failure
 * (RUEDA_ERR_NOMEM) nothing is left. */
rueda_status rueda_lanes_init(struct rueda_lanes *lanes, struct rueda_job *job,
                              const struct rueda_select *select,
                              const struct rueda_device *device);

/* All operations have ended, and nothing is in flight. */
void rueda_lanes_fini(struct rueda_lanes *lanes);

/* Has anything been submitted that no lane has taken over? */
static inline bool rueda_lanes_have_arrivals(const struct rueda_lanes *lanes)
{
    return lanes->arrived.first != NULL ||
           rueda_op_queue_has_arrivals(&lanes->arrived);
}

/* Has anything been submitted that is not delivered? Cheap. */
static inline bool rueda_lanes_have_work(const struct rueda_lanes *lanes)
{
    return lanes->undelivered > 0 || rueda_lanes_have_arrivals(lanes);
}

/* Is this rank no member of the set of all workers? */
static inline bool rueda_lanes_are_servers(const struct rueda_lanes *lanes)
{
    return lanes->formation->rank >= rueda_job_workers(lanes->job);
}

/* Are there operations that end with the context when any rank fails? Messages
 * of the whole job do not. */
bool rueda_lanes_need_all(const struct rueda_lanes *lanes);

/* Is there anything that other ranks wait for and that is not sent yet? False
 * where it may have to go to a neighbour that is lost. */
bool rueda_lanes_are_sending(const struct rueda_lanes *lanes);

/* Does a task run that waits for what rings no bell? */
bool rueda_lanes_are_silent(const struct rueda_lanes *lanes);

/* Does a rank still read memory that a lane would free? */
bool rueda_lanes_have_lent(const struct rueda_lanes *lanes);

/* Does a thread have to take turns, for the one reason or the other? */
static inline bool rueda_lanes_are_busy(const struct rueda_lanes *lanes)
{
    return rueda_lanes_have_work(lanes) ||
           (lanes->has_log && rueda_lanes_are_sending(lanes));
}

/*
 * Take in what has arrived, and get on with every lane; messages have been
 * progressed before. Lanes that negotiate may be left out where only ordered
 * operations are in flight and nothing has come (`is_all` is false). RUEDA_OK
 * if anything moved, RUEDA_IN_PROGRESS if not. A failure is one of the context;
 * error may have the words for it.
 */
rueda_status rueda_lanes_turn(struct rueda_lanes *lanes, bool is_all,
                              struct rueda_text *error);

/* Make sure that there is a negotiator which hears what other ranks wait for.
 */
void rueda_lanes_wake(struct rueda_lanes *lanes);

/* Find out when a negotiator or the timeline needs a turn although nothing
 * moves, in the time of the clock; INT64_MAX: never. */
int64_t rueda_lanes_find_due(struct rueda_lanes *lanes);

/* The same. It cannot have changed where only ordered operations have come and
 * gone. */
static inline int64_t rueda_lanes_due_ns(struct rueda_lanes *lanes)
{
    return lanes->has_talked || lanes->timeline != NULL ||
                   rueda_lanes_have_work(lanes)
               ? rueda_lanes_find_due(lanes)
               : lanes->due_ns;
}

/* The next operation to be delivered, its outcome being its status, or NULL. */
static inline struct rueda_ticket *
rueda_lanes_pop_ended(struct rueda_lanes *lanes)
{
    struct rueda_ticket *ticket = lanes->ended;

    if (ticket != NULL)
        lanes->ended = (struct rueda_ticket *)ticket->op.next;
    return ticket;
}

/* End all operations; the mesh has been cancelled. */
void rueda_lanes_end(struct rueda_lanes *lanes, rueda_status status);

/* Has a rank died that a running operation still needs? And: add what a lane is
 * doing, if one does anything. */
bool rueda_lanes_are_spoilt(const struct rueda_lanes *lanes);
bool rueda_lanes_tell(const struct rueda_lanes *lanes,
                      struct rueda_text *words);

/* ---- The timeline (timeline_relay.c) ---------------------------------- */

/*
 * One of these calls, submitted like an operation and ended like one.
 * RUEDA_TIMELINE_START, on rank 0 only: recv is a timeline, which is borrowed
 * until the other one has ended, or the lanes are gone; its flags are not 0
 * where cycles are marked. RUEDA_TIMELINE_STOP: on rank 0 it ends when all
 * ranks have sent their records, or after a time limit; on others at once, and
 * what they have is sent.
 */
void rueda_relay_switch(struct rueda_lanes *lanes, struct rueda_ticket *ticket);

/* All operations end with this status. */
void rueda_relay_fail(struct rueda_lanes *lanes, rueda_status status);

void rueda_relay_fini(struct rueda_lanes *lanes);

/* At the end of every turn: send what this rank has recorded, if it is time,
 * and find out whether the timeline has ended. */
void rueda_relay_carry(struct rueda_lanes *lanes);

/* When that is due although nothing else happens; INT64_MAX: there is nothing
 * to do, or no negotiator yet that could send it. */
int64_t rueda_relay_due_ns(const struct rueda_lanes *lanes);

/* Send everything, before shutdown. */
void rueda_relay_flush(struct rueda_lanes *lanes);

/* Do other ranks send their records by way of this rank? */
bool rueda_relay_may_come(const struct rueda_lanes *lanes);

/* Of operations that run, from item up to after: one activity ends, the next
 * begins. */
void rueda_relay_step(struct rueda_lane *lane, int item, int after,
                      rueda_timeline_activity activity);

/* They have ended. */
void rueda_relay_end(struct rueda_lane *lane,
                     const struct rueda_decision *decision);

/* Another rank's records have come to rank 0; and rank 0's word to this one. */
void rueda_relay_heard(void *arg, int rank, const void *bytes, size_t len);
void rueda_relay_follow(void *arg, uint64_t word);

/* ---- Ranks that all wait (standstill.c) ------------------------------- */

/* The state of this rank, for the negotiator of a lane, which is arg. */
void rueda_standstill_look(void *arg, struct rueda_still *out);

/* When a negotiator wants that, if this rank has work; INT64_MAX: never. */
int64_t rueda_standstill_due_ns(const struct rueda_lanes *lanes);

/* How the job ends because all ranks wait, with words; RUEDA_OK: it does not.
 */
rueda_status rueda_standstill_found(const struct rueda_lanes *lanes,
                                    struct rueda_text *error);

/* ---- Operations that do not move (watch.c) ---------------------------- */

/* Add what the process of a rank does: "(pid 7 is stopped)"; nothing where that
 * cannot be seen. check_arg is a lane. */
void rueda_watch_tell_rank(void *check_arg, int rank, struct rueda_text *words);

/* ---- For lanes and sets -------------------------------------------------- */

/* The lane of a set of which I am a member, for ordered operations or others;
 * NULL: there is none, or not yet. */
struct rueda_lane *rueda_lanes_find(const struct rueda_lanes *lanes, int set,
                                    bool is_ordered);

/* The same for ordered operations; it is made if need be. NULL: there is no
 * such set. On failure (RUEDA_ERR_NOMEM, RUEDA_ERR_LIMIT) there may be words in
 * error. */
rueda_status rueda_lanes_need_ordered(struct rueda_lanes *lanes, int id,
                                      struct rueda_lane **out,
                                      struct rueda_text *error);

/* The lane is taken if there is memory. */
rueda_status rueda_lanes_add(struct rueda_lanes *lanes,
                             struct rueda_lane *lane);

/* It is closed; freed when nothing of its own is on its way any more. */
void rueda_lanes_drop(struct rueda_lanes *lanes, struct rueda_lane *lane);

static inline void rueda_lanes_append_ended(struct rueda_lanes *lanes,
                                            struct rueda_ticket *ticket)
{
    ticket->op.next = NULL;
    if (lanes->ended == NULL)
        lanes->ended = ticket;
    else
        lanes->last_ended->op.next = &ticket->op;
    lanes->last_ended = ticket;
}

#endif /* RUEDA_ENGINE_LANES_H */
