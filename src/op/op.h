/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one operation: submitted by any thread, pending, running,
 * delivered exactly once.
 *
 * Operations come from a pool and are named by handles that are never reused:
 * the low bits say where the operation lies, the high bits which life it is.
 * Submitting is a push on a lock-free list that the holder of the engine's
 * token empties; the rest of a queue belongs to that holder.
 */
#ifndef RUEDA_OP_OP_H
#define RUEDA_OP_OP_H

#include <rueda/rueda.h>

#include <pthread.h>
#include <stdatomic.h>

struct rueda_op {
    atomic_int status; /* rueda_status; leaves RUEDA_IN_PROGRESS once */
    struct rueda_op *next;
    rueda_handle handle; /* 0: of no handle, it lives on a caller's stack */
    bool is_free;        /* in the pool's list */
    bool is_named;       /* the first part of a struct rueda_named (named.h),
                            which then has no args */
    struct rueda_coll_args args;
};

/* ---- Pool: operations that have a handle ------------------------------ */

#define RUEDA_OP_CHUNK  64
#define RUEDA_OP_CHUNKS 1024

struct rueda_op_pool {
    pthread_mutex_t lock; /* guards all of it */
    struct rueda_op *chunks[RUEDA_OP_CHUNKS];
    int chunk_count;
    struct rueda_op *free;
};

void rueda_op_pool_init(struct rueda_op_pool *pool);
void rueda_op_pool_fini(struct rueda_op_pool *pool);

/* A new operation in progress. RUEDA_ERR_LIMIT: too many are unfinished. */
rueda_status rueda_op_take(struct rueda_op_pool *pool, struct rueda_op **out);

/* The operation that a handle names, or NULL if that is over. */
struct rueda_op *rueda_op_find(struct rueda_op_pool *pool, rueda_handle handle);

/* End of the handle. */
void rueda_op_give(struct rueda_op_pool *pool, struct rueda_op *op);

/* ---- Queue: from any thread to the engine ----------------------------- */

struct rueda_op_queue {
    _Atomic(struct rueda_op *) arrived; /* newest first */
    struct rueda_op *first;             /* oldest first; the engine's own */
    struct rueda_op *last;
};

/* Any thread; lock-free. */
void rueda_op_push(struct rueda_op_queue *queue, struct rueda_op *op);

/* The oldest operation, or NULL; it stays in the queue. */
struct rueda_op *rueda_op_peek(struct rueda_op_queue *queue);

/* Take out the oldest, which there is. */
void rueda_op_pop(struct rueda_op_queue *queue);

/* Has any arrived since the last peek? Any thread, as a hint. */
bool rueda_op_queue_has_news(const struct rueda_op_queue *queue);

static inline rueda_status rueda_op_status(const struct rueda_op *op)
{
    return (rueda_status)atomic_load_explicit(&op->status,
                                              memory_order_acquire);
}

#endif /* RUEDA_OP_OP_H */
