/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is ready on every member of a process set, and in which order it runs.
 *
 * Members report what was submitted to them, in full the first time and later
 * by id. The reports go up a tree of members, combined on the way, to the
 * coordinator, the lowest member. It writes its decisions into a log that goes
 * down the same tree, and that all members follow in its order: run these
 * together; these differ, and why; all members have joined.
 *
 * A state machine over a mesh: nothing blocks, nothing is shared between
 * ranks but messages. Used by the thread that holds the engine's token.
 */
#ifndef RUEDA_NEGOTIATE_NEGOTIATOR_H
#define RUEDA_NEGOTIATE_NEGOTIATOR_H

#include "negotiate/order.h"
#include "transport/transport.h"

struct rueda_negotiator;
struct rueda_timeline;

/* Does a member of the set wait, so that nothing new comes from it? */
typedef enum rueda_still_level {
    RUEDA_STILL_NOT,   /* it may go on by itself */
    RUEDA_STILL_WAITS, /* it waits, perhaps for what is at work */
    RUEDA_STILL_STUCK, /* it waits, and all it has submitted is undecided */
} rueda_still_level;

struct rueda_still {
    rueda_still_level level;
    uint64_t version;  /* another one whenever anything has changed */
    uint64_t sent;     /* messages that negotiators of other sets have sent */
    uint64_t received; /* and received here */
    char *what;        /* where to write what it waits for, in words; or NULL */
    size_t what_bytes;
};

struct rueda_negotiator_args {
    struct rueda_mesh *mesh; /* of the set's members; borrowed */
    struct rueda_tag tag;    /* its sequence is kept for control */
    const int *ranks;        /* [mesh->size] in the job; borrowed */
    const int *hosts;        /* [mesh->size] the number of each one's host, from
                                0; borrowed; NULL: all are on one */
    int cache_capacity;      /* names that are known by number; 0: none */
    size_t fusion_bytes;     /* of tensors that run together; 0: one by one */
    bool groups_alone;       /* a group runs with nothing but itself */

    int64_t stall_warn_ns;   /* 0: never */
    int64_t stall_end_ns;    /* 0: never */
    int64_t stall_repeat_ns; /* the same warning again, if that is later than
                                another stall_warn_ns */
    int64_t call_after_ns;   /* how long members may take to submit the rest
                                of a mismatched group */
    int64_t give_up_ns;      /* the job ends when all members have waited this
                                long and nothing moves; 0: never */
    int64_t (*now_ns)(void *arg);
    void *now_arg;

    /* A look at the state of this member. NULL: deadlocks are not searched for;
     * all members have this function, or none. */
    void (*look)(void *arg, struct rueda_still *out);
    void *look_arg;
    /* Add what the process of a rank does, for a warning. May be NULL. */
    void (*tell_rank)(void *look_arg, int rank, struct rueda_text *words);

    /* The coordinator's: a member has sent cargo. May be NULL. */
    void (*heard_cargo)(void *arg, int rank, const void *bytes, size_t len);
    /* A word of the coordinator's caller, at this place of the log. NULL: words
     * are not used in this set. */
    void (*heard_word)(void *arg, uint64_t word);
    void *cargo_arg;
};

rueda_status rueda_negotiator_new(const struct rueda_negotiator_args *args,
                                  struct rueda_negotiator **out);

/* What was submitted and not decided is forgotten. Its requests on the mesh
 * must have ended (rueda_mesh_cancel). NULL is allowed. */
void rueda_negotiator_free(struct rueda_negotiator *self);

/*
 * This member has an operation. Both pointers are borrowed until a decision
 * gives `mine` back, and are not NULL. A join is submitted like any other
 * operation. RUEDA_ERR_INVALID:
 * one of its name is in flight here, or I have joined.
 */
rueda_status rueda_negotiator_submit(struct rueda_negotiator *self,
                                     const struct rueda_request *request,
                                     void *mine);

/*
 * Take in and send on what can be. RUEDA_OK if anything moved,
 * RUEDA_IN_PROGRESS if not; a negative status if a member is lost or has sent
 * what it must not, with words in `error`.
 */
rueda_status rueda_negotiator_turn(struct rueda_negotiator *self,
                                   struct rueda_text *error);

/* The next decision, in the order of the log, or NULL. Valid until
 * rueda_negotiator_done(), to be called when it has been carried out. */
const struct rueda_decision *
rueda_negotiator_next(struct rueda_negotiator *self);
void rueda_negotiator_done(struct rueda_negotiator *self);

/*
 * Decide nothing more. What is written is still sent; turns drop what comes,
 * until all neighbours have sent their last message and nothing of it is on the
 * mesh any more (is_over). Operations that were submitted are forgotten.
 */
void rueda_negotiator_end(struct rueda_negotiator *self);
bool rueda_negotiator_is_over(const struct rueda_negotiator *self);

/* How many of mine are not decided; and is there anything to send? While either
 * is so, a thread has to take turns. */
int rueda_negotiator_pending(const struct rueda_negotiator *self);
bool rueda_negotiator_is_sending(const struct rueda_negotiator *self);

/* When a turn is needed to check for stalled operations, in the time of
 * now_ns(); INT64_MAX: never. */
int64_t rueda_negotiator_due_ns(const struct rueda_negotiator *self);

/* When a member that has work needs a turn to check whether all members wait;
 * INT64_MAX: never. */
int64_t rueda_negotiator_look_ns(const struct rueda_negotiator *self);

/* How the job ends, as the coordinator has decided, with words; RUEDA_OK: it
 * goes on. Turns return the same a little later. */
rueda_status rueda_negotiator_standstill(const struct rueda_negotiator *self,
                                         struct rueda_text *error);

/* This negotiator as a lane's order source: the log. Borrows it. */
struct rueda_order rueda_order_log(struct rueda_negotiator *self);

/* Do other members send their messages by way of this one? */
bool rueda_negotiator_has_children(const struct rueda_negotiator *self);

/* Bytes for the coordinator's heard_cargo(); they arrive before anything that
 * is submitted here from now on is decided. */
void rueda_negotiator_send_cargo(struct rueda_negotiator *self,
                                 const void *bytes, size_t len);

/* The coordinator's: send this word to all members, itself included, after what
 * is decided so far. RUEDA_ERR_NOMEM. */
rueda_status rueda_negotiator_tell(struct rueda_negotiator *self,
                                   uint64_t word);

/* The index of the latest decision that is not done; 0: there is none. */
uint64_t rueda_negotiator_latest(const struct rueda_negotiator *self);

/* What to add to my clock to have the coordinator's, as messages have shown; 0
 * where we are on one host. False: none has yet. */
bool rueda_negotiator_find_shift(const struct rueda_negotiator *self,
                                 int64_t *out_ns);

/* Record from now on what happens to operations, also to those of mine that
 * wait to be decided; NULL: no more. Borrowed. */
void rueda_negotiator_trace(struct rueda_negotiator *self,
                            struct rueda_timeline *timeline);

/* Messages sent and received so far. */
struct rueda_negotiator_counts {
    uint64_t sent;
    uint64_t received;
};
struct rueda_negotiator_counts
rueda_negotiator_counts(const struct rueda_negotiator *self);

#endif /* RUEDA_NEGOTIATE_NEGOTIATOR_H */
