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

struct rueda_ticket;
struct rueda_op_pool;

struct rueda_op {
    /* rueda_status, or RUEDA_OP_AWAITED; read it with rueda_op_status(). */
    atomic_int status;
    bool is_ordered;  /* in the order of the program; the others are matched by
                         name or number */
    bool is_laid_out; /* ordered, and its caller says where all pieces lie */
    atomic_bool has_then;
    bool has_own; /* memory that is to be freed with it (ticket.h) */
    struct rueda_op *next;
    _Atomic rueda_handle handle; /* 0: it lives on a caller's stack */

    /* The pool's own. */
    struct rueda_op_pool *pool;
    atomic_int holds; /* the handle, and a callback that is due */
    _Atomic uint32_t next_free;

    /* The callback, written by the thread that has set has_then. */
    rueda_then_fn then;
    void *then_arg;

    /* How it ends: its lane's while it is not delivered; then that of the list
     * of callbacks that are due. */
    rueda_status outcome; /* last: all is one cache line */
};

/* In progress, with a callback for its end. */
#define RUEDA_OP_AWAITED 2

static inline rueda_status rueda_op_status(const struct rueda_op *op)
{
    int status = atomic_load_explicit(&op->status, memory_order_acquire);

    return status > 0 ? RUEDA_IN_PROGRESS : (rueda_status)status;
}

/* For one that lives on a caller's stack: in progress, of no handle, not
 * ordered. */
void rueda_op_init(struct rueda_op *op);

/* ---- Pool: operations that have a handle ------------------------------ */

/*
 * Every operation of a pool is the first part of a struct rueda_ticket. All
 * functions may be called by any thread, and only take() may lock: when more
 * are unfinished than ever before it fetches memory, which stays with the pool.
 */

/* Chunks double: 64, 64, 128, 256, ... operations. */
#define RUEDA_OP_CHUNK  64
#define RUEDA_OP_CHUNKS 15
#define RUEDA_OP_MOST   (RUEDA_OP_CHUNK << (RUEDA_OP_CHUNKS - 1))

struct rueda_op_pool {
    _Atomic uint64_t free; /* the first index + 1, or 0; and how often changed,
                              so that an old value is never taken for it */
    _Atomic(struct rueda_ticket *) chunks[RUEDA_OP_CHUNKS];
    pthread_mutex_t lock;          /* of the thread that allocates; guards: */
    uint32_t index_count;          /* indices that have been in the list */
    void *memory[RUEDA_OP_CHUNKS]; /* in which the chunks lie */
};

void rueda_op_pool_init(struct rueda_op_pool *pool);

/* With all that unfinished operations own. */
void rueda_op_pool_fini(struct rueda_op_pool *pool);

/* A new operation in progress, not ordered. RUEDA_ERR_LIMIT: RUEDA_OP_MOST are
 * unfinished. */
rueda_status rueda_op_take(struct rueda_op_pool *pool, struct rueda_op **out);

/* The operation that a handle names, or NULL if that is over. */
struct rueda_op *rueda_op_find(struct rueda_op_pool *pool, rueda_handle handle);

/* End of the handle. Frees its name and what it owns. */
void rueda_op_give(struct rueda_op_pool *pool, struct rueda_op *op);

/* ---- Delivery --------------------------------------------------------- */

/* Callbacks that are due. Zeroed, it is empty. Not for several threads. */
struct rueda_then_list {
    struct rueda_op *first;
    struct rueda_op *last;
};

/*
 * The operation has ended; its results are written. Frees its name for others,
 * appends its callback, if it has one, to `due`, and stores the status, after
 * which op may be gone. Only by the holder of the engine's token, once an
 * operation, which is in no queue any more.
 */
void rueda_op_deliver(struct rueda_op *op, rueda_status status,
                      struct rueda_then_list *due);

/*
 * Call all that are due, in the order of delivery, and empty the list. Without
 * the token: they may submit and end handles.
 */
void rueda_then_run(struct rueda_then_list *due);

/* Is this thread inside a callback? Then it must not wait. */
bool rueda_then_is_running(void);

/*
 * Have fn(arg, status) called when op is delivered; or, if that has been,
 * call it now. RUEDA_ERR_INVALID: there is a callback already. Any thread, on
 * an operation with a handle, which does not end meanwhile.
 */
rueda_status rueda_op_then(struct rueda_op *op, rueda_then_fn fn, void *arg);

/* ---- Queue: from any thread to the engine ----------------------------- */

struct rueda_op_queue {
    _Atomic(struct rueda_op *) arrived; /* newest first */
    struct rueda_op *first;             /* oldest first; the engine's own */
    struct rueda_op *last;
};

/* Any thread; lock-free. */
void rueda_op_push(struct rueda_op_queue *queue, struct rueda_op *op);

/* A whole chain by `next`, oldest first: they are taken together. */
void rueda_op_push_chain(struct rueda_op_queue *queue, struct rueda_op *oldest);

/* Has any been pushed since the last peek? Any thread, as a hint. */
static inline bool
rueda_op_queue_has_arrivals(const struct rueda_op_queue *queue)
{
    return atomic_load_explicit(&queue->arrived, memory_order_relaxed) != NULL;
}

/* Something has arrived: move it to the engine's own list. Only the engine may
 * call this, and all that follow. */
void rueda_op_collect(struct rueda_op_queue *queue);

/* The oldest operation, or NULL; it stays in the queue. */
static inline struct rueda_op *rueda_op_peek(struct rueda_op_queue *queue)
{
    if (rueda_op_queue_has_arrivals(queue))
        rueda_op_collect(queue);
    return queue->first;
}

/* Take out the oldest, which there is. */
static inline void rueda_op_pop(struct rueda_op_queue *queue)
{
    queue->first = queue->first->next;
}

/* As push(), for the engine itself: behind all that have been pushed before,
 * and without the cost of an atomic list. */
void rueda_op_append(struct rueda_op_queue *queue, struct rueda_op *op);

#endif /* RUEDA_OP_OP_H */
