/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of operations, their handles and reference counts, delivery,
 * callbacks, and the lock-free list of submitted operations.
 */
#include "op/op.h"

#include <stdlib.h>
#include <string.h>

#include "op/ticket.h"

/*
 * A handle: life, then index in the pool. Lives that are odd are those of
 * operations; in between, while the index is free, it is even. So 0 is none.
 */
#define INDEX_BITS 20
#define INDEX_MASK (((rueda_handle)1 << INDEX_BITS) - 1)
#define LIFE       (INDEX_MASK + 1)

_Static_assert(RUEDA_OP_MOST == 1 << INDEX_BITS,
               "indices of operations must fit their bits");

/* The head of the free list: changes, then index + 1. */
#define HEAD_BITS (INDEX_BITS + 1)
#define HEAD_MASK (((uint64_t)1 << HEAD_BITS) - 1)

void rueda_op_init(struct rueda_op *op)
{
    atomic_init(&op->status, RUEDA_IN_PROGRESS);
    atomic_init(&op->handle, 0);
    op->is_ordered = false;
    op->is_laid_out = false;
    op->has_own = false;
}

/* ---- Places ------------------------------------------------------------ */

/* Chunk k > 0 begins at index 64 << (k - 1), and has as many. */
static int chunk_of(uint32_t index)
{
    return index < RUEDA_OP_CHUNK ? 0
                                  : 32 - __builtin_clz(index / RUEDA_OP_CHUNK);
}

static uint32_t chunk_start(int chunk)
{
    return chunk == 0 ? 0 : (uint32_t)RUEDA_OP_CHUNK << (chunk - 1);
}

static uint32_t chunk_length(int chunk)
{
    return chunk == 0 ? RUEDA_OP_CHUNK : chunk_start(chunk);
}

/* Wherever its memory begins, a whole line of it does soon. */
static size_t chunk_bytes(int chunk)
{
    return chunk_length(chunk) * sizeof(struct rueda_ticket) +
           _Alignof(struct rueda_ticket);
}

/* There is memory at this index. */
static struct rueda_op *at(struct rueda_op_pool *pool, uint32_t index)
{
    int chunk = chunk_of(index);
    struct rueda_ticket *first =
        atomic_load_explicit(&pool->chunks[chunk], memory_order_acquire);

    return &first[index - chunk_start(chunk)].op;
}

static uint32_t index_of(const struct rueda_op *op)
{
    return (uint32_t)(atomic_load_explicit(&op->handle, memory_order_relaxed) &
                      INDEX_MASK);
}

/* ---- The free list ------------------------------------------------------ */

/* Put first ... last, linked by next_free, in front. */
static void put(struct rueda_op_pool *pool, struct rueda_op *first,
                struct rueda_op *last)
{
    uint64_t head = atomic_load_explicit(&pool->free, memory_order_relaxed);
    uint64_t wanted;

    /* Release: a thread that takes them sees what was written into them. */
    do {
        atomic_store_explicit(&last->next_free, (uint32_t)(head & HEAD_MASK),
                              memory_order_relaxed);
        wanted = ((head >> HEAD_BITS) + 1) << HEAD_BITS |
                 (uint64_t)(index_of(first) + 1);
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, wanted,
                                                    memory_order_release,
                                                    memory_order_relaxed));
}

/* The next one to be taken, by the head of the list, has usually left the cache
 * since it was used: fetch it while the caller fills in this one. */
static void expect(struct rueda_op_pool *pool, uint64_t head)
{
    const size_t begin = offsetof(struct rueda_ticket, set);
    const size_t end = offsetof(struct rueda_ticket, request.shape[1]);
    const char *next;

    if ((head & HEAD_MASK) == 0)
        return;
    next = (const char *)at(pool, (uint32_t)(head & HEAD_MASK) - 1);
    __builtin_prefetch(next, 1);
    for (size_t i = begin; i < end; i += RUEDA_CACHE_LINE)
        __builtin_prefetch(next + i, 1);
}

/* NULL: it is empty. Another thread may take it while its link is read; the
 * count of changes then differs, and the result is discarded. */
static struct rueda_op *get(struct rueda_op_pool *pool)
{
    uint64_t head = atomic_load_explicit(&pool->free, memory_order_acquire);
    struct rueda_op *op;
    uint64_t wanted;

    do {
        if ((head & HEAD_MASK) == 0)
            return NULL;
        op = at(pool, (uint32_t)(head & HEAD_MASK) - 1);
        wanted = ((head >> HEAD_BITS) + 1) << HEAD_BITS |
                 atomic_load_explicit(&op->next_free, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, wanted,
                                                    memory_order_acquire,
                                                    memory_order_acquire));
    expect(pool, wanted);
    return op;
}

/* Under the lock: the next 64 indices come into the list, in new memory if need
 * be. They are not touched before, so that doubling costs addresses only. */
static rueda_status grow(struct rueda_op_pool *pool)
{
    uint32_t index = pool->index_count;
    int chunk = chunk_of(index);

    if (index == RUEDA_OP_MOST)
        return RUEDA_ERR_LIMIT;
    if (index == chunk_start(chunk)) {
        char *memory = calloc(1, chunk_bytes(chunk));

        if (memory == NULL)
            return RUEDA_ERR_NOMEM;
        pool->memory[chunk] = memory;
        memory += -(uintptr_t)memory % _Alignof(struct rueda_ticket);
        atomic_store_explicit(&pool->chunks[chunk],
                              (struct rueda_ticket *)(void *)memory,
                              memory_order_release);
    }
    for (uint32_t i = index; i < index + RUEDA_OP_CHUNK; i++) {
        struct rueda_op *op = at(pool, i);

        op->pool = pool;
        atomic_store_explicit(&op->handle, i, memory_order_relaxed);
        atomic_store_explicit(&op->next_free, i + 2, memory_order_relaxed);
    }
    pool->index_count += RUEDA_OP_CHUNK;
    put(pool, at(pool, index), at(pool, index + RUEDA_OP_CHUNK - 1));
    return RUEDA_OK;
}

/* ---- Pool ---------------------------------------------------------------- */

void rueda_op_pool_init(struct rueda_op_pool *pool)
{
    memset(pool, 0, sizeof(*pool));
    pthread_mutex_init(&pool->lock, NULL);
}

/* What an operation owns, usually nothing. */
static void strip(struct rueda_ticket *ticket)
{
    if (!ticket->op.has_own)
        return;
    free(ticket->splits);
    free(ticket->ranks);
    free(ticket->long_name);
    free(ticket->rows_from);
    free(ticket->error);
    ticket->splits = NULL;
    ticket->ranks = NULL;
    ticket->long_name = NULL;
    ticket->rows_from = NULL;
    ticket->error = NULL;
    ticket->op.has_own = false;
}

void rueda_op_pool_fini(struct rueda_op_pool *pool)
{
    for (uint32_t i = 0; i < pool->index_count; i++)
        strip(rueda_ticket_of(at(pool, i)));
    for (int i = 0; i < RUEDA_OP_CHUNKS; i++)
        free(pool->memory[i]);
    pthread_mutex_destroy(&pool->lock);
}

/* The list is empty. */
static rueda_status get_more(struct rueda_op_pool *pool, struct rueda_op **out)
{
    rueda_status status = RUEDA_OK;

    pthread_mutex_lock(&pool->lock);
    *out = get(pool);
    while (*out == NULL && status == RUEDA_OK) {
        status = grow(pool);
        *out = get(pool); /* others may have taken them all, or given one */
    }
    pthread_mutex_unlock(&pool->lock);
    return *out != NULL ? RUEDA_OK : status;
}

rueda_status rueda_op_take(struct rueda_op_pool *pool, struct rueda_op **out)
{
    struct rueda_op *op = get(pool);
    rueda_handle handle;

    if (op == NULL) {
        rueda_status status = get_more(pool, &op);

        if (status != RUEDA_OK)
            return status;
    }
    handle = atomic_load_explicit(&op->handle, memory_order_relaxed);
    op->is_ordered = false;
    op->is_laid_out = false;
    atomic_store_explicit(&op->status, RUEDA_IN_PROGRESS, memory_order_relaxed);
    atomic_store_explicit(&op->has_then, false, memory_order_relaxed);
    atomic_store_explicit(&op->holds, 1, memory_order_relaxed);
    atomic_store_explicit(&op->handle, handle + LIFE, memory_order_release);
    *out = op;
    return RUEDA_OK;
}

struct rueda_op *rueda_op_find(struct rueda_op_pool *pool, rueda_handle handle)
{
    uint32_t index = (uint32_t)(handle & INDEX_MASK);
    struct rueda_op *op;

    if ((handle & LIFE) == 0 ||
        atomic_load_explicit(&pool->chunks[chunk_of(index)],
                             memory_order_acquire) == NULL)
        return NULL;
    op = at(pool, index);
    return atomic_load_explicit(&op->handle, memory_order_acquire) == handle
               ? op
               : NULL;
}

/* The last holder puts it back. */
static void let_go(struct rueda_op *op)
{
    /* A thread that is the only holder stays so: only a holder can
     * add another. */
    if (atomic_load_explicit(&op->holds, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&op->holds, 1, memory_order_acq_rel) == 1)
        put(op->pool, op, op);
}

void rueda_op_give(struct rueda_op_pool *pool, struct rueda_op *op)
{
    rueda_handle handle =
        atomic_load_explicit(&op->handle, memory_order_relaxed);

    (void)pool;
    rueda_ticket_release(rueda_ticket_of(op));
    strip(rueda_ticket_of(op));
    atomic_store_explicit(&op->handle, handle + LIFE, memory_order_release);
    let_go(op);
}

/* ---- Delivery ------------------------------------------------------------ */

/* The callback is due. It holds the index, not the handle. */
static void append(struct rueda_then_list *due, struct rueda_op *op,
                   rueda_status status)
{
    atomic_fetch_add_explicit(&op->holds, 1, memory_order_relaxed);
    op->outcome = status;
    op->next = NULL;
    if (due->first == NULL)
        due->first = op;
    else
        due->last->next = op;
    due->last = op;
}

void rueda_op_deliver(struct rueda_op *op, rueda_status status,
                      struct rueda_then_list *due)
{
    int expected = RUEDA_IN_PROGRESS;

    /* One without a handle has no callback, and its owner waits for it. */
    if (atomic_load_explicit(&op->handle, memory_order_relaxed) == 0) {
        atomic_store_explicit(&op->status, status, memory_order_release);
        return;
    }
    /* Release: a thread that reads the status sees the result. Acquire: we see
     * the callback that was set before. */
    if (atomic_compare_exchange_strong_explicit(&op->status, &expected, status,
                                                memory_order_acq_rel,
                                                memory_order_acquire))
        return;
    /* A callback may use the name again. */
    rueda_ticket_release(rueda_ticket_of(op));
    append(due, op, status);
    atomic_store_explicit(&op->status, status, memory_order_release);
}

static _Thread_local bool is_calling;

/* A callback may ask to be called itself, and be so at once. */
static void call(rueda_then_fn fn, void *arg, rueda_status status)
{
    const bool was_calling = is_calling;

    is_calling = true;
    fn(arg, status);
    is_calling = was_calling;
}

bool rueda_then_is_running(void)
{
    return is_calling;
}

void rueda_then_run(struct rueda_then_list *due)
{
    struct rueda_op *op = due->first;

    due->first = NULL;
    due->last = NULL;
    while (op != NULL) {
        struct rueda_op *next = op->next;
        rueda_then_fn fn = op->then;
        void *arg = op->then_arg;
        rueda_status status = op->outcome;

        let_go(op);
        call(fn, arg, status);
        op = next;
    }
}

rueda_status rueda_op_then(struct rueda_op *op, rueda_then_fn fn, void *arg)
{
    int expected = RUEDA_IN_PROGRESS;

    if (atomic_exchange_explicit(&op->has_then, true, memory_order_relaxed))
        return RUEDA_ERR_INVALID;
    op->then = fn;
    op->then_arg = arg;
    if (!atomic_compare_exchange_strong_explicit(
            &op->status, &expected, RUEDA_OP_AWAITED, memory_order_acq_rel,
            memory_order_acquire)) {
        rueda_ticket_release(rueda_ticket_of(op));
        call(fn, arg, (rueda_status)expected);
    }
    return RUEDA_OK;
}

/* ---- Queue ------------------------------------------------------------- */

/* A chain, newest first. */
static void push(struct rueda_op_queue *queue, struct rueda_op *newest,
                 struct rueda_op *oldest)
{
    struct rueda_op *before =
        atomic_load_explicit(&queue->arrived, memory_order_relaxed);

    /* The thread that takes the list sees what was written into them.
     * Sequentially consistent: a thread pushes and then checks for a sleeper,
     * the sleeper says that it sleeps and then checks the list, so one of them
     * sees the other. */
    do
        oldest->next = before;
    while (!atomic_compare_exchange_weak_explicit(&queue->arrived, &before,
                                                  newest, memory_order_seq_cst,
                                                  memory_order_relaxed));
}

void rueda_op_push(struct rueda_op_queue *queue, struct rueda_op *op)
{
    push(queue, op, op);
}

void rueda_op_push_chain(struct rueda_op_queue *queue, struct rueda_op *oldest)
{
    struct rueda_op *newest = oldest;
    struct rueda_op *at = oldest->next;

    while (at != NULL) {
        struct rueda_op *next = at->next;

        at->next = newest;
        newest = at;
        at = next;
    }
    push(queue, newest, oldest);
}

/* `last` ends the list that begins with `oldest`. */
static void add(struct rueda_op_queue *queue, struct rueda_op *oldest,
                struct rueda_op *last)
{
    if (queue->first == NULL)
        queue->first = oldest;
    else
        queue->last->next = oldest;
    queue->last = last;
}

/* It was pushed newest first: turn it round. */
void rueda_op_collect(struct rueda_op_queue *queue)
{
    struct rueda_op *newest =
        atomic_exchange_explicit(&queue->arrived, NULL, memory_order_acquire);
    struct rueda_op *last = newest;
    struct rueda_op *oldest = NULL;

    while (newest != NULL) {
        struct rueda_op *older = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    add(queue, oldest, last);
}

void rueda_op_append(struct rueda_op_queue *queue, struct rueda_op *op)
{
    rueda_op_peek(queue);
    op->next = NULL;
    add(queue, op, op);
}
