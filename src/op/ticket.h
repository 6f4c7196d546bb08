/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ticket is all of an operation: what was requested, and its result. That of
 * an ordered operation has the same fields, and no name.
 *
 * It belongs to the submitting thread until it is pushed, then to the holder of
 * the engine's token until its status leaves RUEDA_IN_PROGRESS, then to the
 * owner of its handle.
 */
#ifndef RUEDA_OP_TICKET_H
#define RUEDA_OP_TICKET_H

#include "op/names.h"
#include "op/op.h"
#include "op/request.h"

/* Shorter names need no memory of their own. */
#define RUEDA_SHORT_NAME_BYTES 64

/* The fields that a repeated step uses fill whole cache lines, and as few as
 * possible. */
struct rueda_ticket {
    struct rueda_op op; /* first: queues, the pool and handles know that */

    _Alignas(RUEDA_CACHE_LINE) int set;
    int member_count; /* of the set, when it was submitted */
    const void *send;
    void *recv;
    struct rueda_names *names; /* where its name is in flight, or NULL */
    uint64_t name_key;
    struct rueda_ticket *previous; /* its lane's: the one that came before it in
                                     the list of those not delivered (op.next
                                     comes after it) */
    void *data;                    /* results, with those below */
    size_t rows;

    _Alignas(RUEDA_CACHE_LINE) char short_name[RUEDA_SHORT_NAME_BYTES];
    struct rueda_request request;

    /* Of its own, or NULL; all are where op.has_own is not set, and
     * rueda_op_give() frees them. Both of the first are of as many as there are
     * members, and NULL splits are equal parts. */
    size_t *splits;
    size_t *rows_from;
    int *ranks; /* of a set to be made */
    char *long_name;
    char *error;

    /* Only of messages. */
    int peer;
    int tag;

    /* Only of joins and of changes of sets. */
    int last_rank;
    int made_set;
    int rank_count; /* of ranks, or the id of a set to be dropped */

    /* Only of an accelerator's memory: the point in the application's stream
     * behind which the tensor is complete; the device's own. */
    void *mark[2];

    /* Only where recv is NULL, and never of what is laid out. */
    rueda_alloc_fn alloc;
    void *alloc_arg;

    /* Only of what is laid out: elements, as in struct rueda_coll_args; the
     * lists are the caller's. */
    size_t count;
    const size_t *send_counts;
    const size_t *recv_counts;
};

/* The operation is the first part of one. */
static inline struct rueda_ticket *rueda_ticket_of(struct rueda_op *op)
{
    return (struct rueda_ticket *)op;
}

/* Its name is no longer in flight: its owner knows that it has ended, by a
 * callback or at the end of its handle. Not sooner, or whether a name can be
 * used again would depend on how fast the others are. */
static inline void rueda_ticket_release(struct rueda_ticket *ticket)
{
    if (ticket->names != NULL)
        rueda_names_leave(ticket->names, ticket->name_key);
    ticket->names = NULL;
}

/* A fresh one of this kind. Written field by field: most of it means nothing
 * yet, and is in cache lines that need not be fetched. */
static inline void rueda_ticket_init(struct rueda_ticket *ticket, int kind)
{
    ticket->set = 0;
    ticket->member_count = 0;
    ticket->send = NULL;
    ticket->recv = NULL;
    ticket->names = NULL;
    ticket->name_key = 0;
    ticket->data = NULL;
    ticket->rows = 0;
    ticket->op.outcome = RUEDA_OK;
    if (kind >= RUEDA_JOIN) {
        ticket->last_rank = -1;
        ticket->made_set = -1;
        ticket->rank_count = 0;
    }
    rueda_request_init(&ticket->request, kind);
}

#endif /* RUEDA_OP_TICKET_H */
