/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An order source: it tells a lane which operations run next, in the same order
 * on every member of the process set. How the members come to that order is the
 * source's own affair. Of named operations it is the log (order_log.c): the
 * members negotiate, and the coordinator's log is the order. Of ordered ones it
 * is the counter (order_counter.c): the order of submission, which is the same
 * on all members because the program promises it.
 *
 * A new source is one file: a table of the functions below over a state of its
 * own, and a function that returns both as a struct rueda_order. It is set as
 * lane->order before the first operation is submitted. A source that works on
 * top of another one, as a learned plan over the log does, keeps that one's
 * struct rueda_order in its state and passes on what it does not decide itself.
 *
 * What a source promises:
 * - Each operation that was submitted is an item of exactly one decision, with
 *   the `mine` it was submitted with.
 * - Decisions have ascending indices. All members see the same decisions with
 *   the same items in the same order, whatever the order of submission (which
 *   only the counter relies on).
 * - Of operations that only other members have (this one has joined), `mine` is
 *   NULL and the request is another member's.
 * - No function blocks.
 *
 * All functions are called by the thread that holds the engine's token.
 */
#ifndef RUEDA_NEGOTIATE_ORDER_H
#define RUEDA_NEGOTIATE_ORDER_H

#include "base/text.h"
#include "op/request.h"

typedef enum rueda_decision_kind {
    RUEDA_DECIDED_RUN,    /* run these as one */
    RUEDA_DECIDED_ERROR,  /* the only item ends with RUEDA_ERR_MISMATCH */
    RUEDA_DECIDED_JOINED, /* all have joined; the only item is my join */
} rueda_decision_kind;

struct rueda_decision_item {
    void *mine; /* NULL: I have joined, and give what changes nothing */
    const struct rueda_request *request; /* where mine is NULL, another's */
};

struct rueda_decision {
    rueda_decision_kind kind;
    uint64_t index;    /* in the log: the same on all members, ascending */
    int live;          /* members that have not joined */
    int last_rank;     /* JOINED: the rank of the job that joined last */
    uint64_t number;   /* JOINED: of the next operation without a name; all
                          that ran or failed have numbers below this */
    const char *words; /* ERROR: which members differ, and in what */
    int count;
    struct rueda_decision_item *items;
};

struct rueda_order_ops {
    const char *name;

    /*
     * This member has an operation. Request and `mine`, which is not NULL, are
     * borrowed until done() of the decision that gives `mine` back, or until
     * end(). RUEDA_ERR_INVALID: an operation of this name is in flight here, or
     * this member has joined; the source then keeps neither.
     */
    rueda_status (*submit)(void *self, const struct rueda_request *request,
                           void *mine);

    /*
     * Take in and send on what can be. RUEDA_OK if anything moved,
     * RUEDA_IN_PROGRESS if not. A failure is one of the whole context;
     * RUEDA_ERR_PEER_LOST only if the lost member is needed. `error` may have
     * the words for it. NULL: the source has nothing to take in or send.
     */
    rueda_status (*turn)(void *self, struct rueda_text *error);

    /* The next decision, or NULL; the same one until done() is called, which
     * the lane does when it has carried that decision out. */
    const struct rueda_decision *(*next)(void *self);
    void (*done)(void *self);

    /* The index of the latest decision that is known and not done; 0: there is
     * none. */
    uint64_t (*latest)(const void *self);

    /* The set is dropped: forget what was submitted and decide nothing more.
     * turn() is still called until is_over(): nothing of the source is on the
     * mesh any more. */
    void (*end)(void *self);
    bool (*is_over)(const void *self);

    /* Is there anything that other members wait for and that is not sent? Then
     * turns are taken even if no operation is in flight. */
    bool (*is_sending)(const void *self);

    /* When the source wants a turn though nothing moves, in the time of
     * rueda_clock_ns(); INT64_MAX: never. */
    int64_t (*due_ns)(const void *self);
};

struct rueda_order {
    const struct rueda_order_ops *ops;
    void *self; /* borrowed */
};

static inline rueda_status
rueda_order_submit(const struct rueda_order *order,
                   const struct rueda_request *request, void *mine)
{
    return order->ops->submit(order->self, request, mine);
}

static inline rueda_status rueda_order_turn(const struct rueda_order *order,
                                            struct rueda_text *error)
{
    return order->ops->turn != NULL ? order->ops->turn(order->self, error)
                                    : RUEDA_IN_PROGRESS;
}

static inline const struct rueda_decision *
rueda_order_next(const struct rueda_order *order)
{
    return order->ops->next(order->self);
}

static inline void rueda_order_done(const struct rueda_order *order)
{
    order->ops->done(order->self);
}

static inline uint64_t rueda_order_latest(const struct rueda_order *order)
{
    return order->ops->latest(order->self);
}

static inline void rueda_order_end(const struct rueda_order *order)
{
    order->ops->end(order->self);
}

static inline bool rueda_order_is_over(const struct rueda_order *order)
{
    return order->ops->is_over(order->self);
}

static inline bool rueda_order_is_sending(const struct rueda_order *order)
{
    return order->ops->is_sending(order->self);
}

static inline int64_t rueda_order_due_ns(const struct rueda_order *order)
{
    return order->ops->due_ns(order->self);
}

#endif /* RUEDA_NEGOTIATE_ORDER_H */
