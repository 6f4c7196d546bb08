/* SPDX-License-Identifier: Apache-2.0 */
#include "op/op.h"

#include <stdlib.h>
#include <string.h>

/* A handle: life, then place in the pool. Lives begin at 1, so 0 is none. */
#define PLACE_BITS 16
#define PLACE_MASK ((rueda_handle)((1 << PLACE_BITS) - 1))

_Static_assert(RUEDA_OP_CHUNK *RUEDA_OP_CHUNKS <= 1 << PLACE_BITS,
               "places of operations must fit their bits");

void rueda_op_pool_init(struct rueda_op_pool *pool)
{
    memset(pool, 0, sizeof(*pool));
    pthread_mutex_init(&pool->lock, NULL);
}

void rueda_op_pool_fini(struct rueda_op_pool *pool)
{
    for (int i = 0; i < pool->chunk_count; i++)
        free(pool->chunks[i]);
    pthread_mutex_destroy(&pool->lock);
}

/* Under the lock. */
static rueda_status grow(struct rueda_op_pool *pool)
{
    struct rueda_op *chunk;

    if (pool->chunk_count == RUEDA_OP_CHUNKS)
        return RUEDA_ERR_LIMIT;
    chunk = calloc(RUEDA_OP_CHUNK, sizeof(*chunk));
    if (chunk == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = RUEDA_OP_CHUNK - 1; i >= 0; i--) {
        chunk[i].handle =
            (rueda_handle)pool->chunk_count * RUEDA_OP_CHUNK + (rueda_handle)i;
        chunk[i].next = pool->free;
        pool->free = &chunk[i];
    }
    pool->chunks[pool->chunk_count++] = chunk;
    return RUEDA_OK;
}

rueda_status rueda_op_take(struct rueda_op_pool *pool, struct rueda_op **out)
{
    rueda_status status = RUEDA_OK;

    pthread_mutex_lock(&pool->lock);
    if (pool->free == NULL)
        status = grow(pool);
    if (status == RUEDA_OK) {
        struct rueda_op *op = pool->free;

        pool->free = op->next;
        op->handle += PLACE_MASK + 1;
        op->is_free = false;
        atomic_store_explicit(&op->status, RUEDA_IN_PROGRESS,
                              memory_order_relaxed);
        *out = op;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

struct rueda_op *rueda_op_find(struct rueda_op_pool *pool, rueda_handle handle)
{
    size_t place = handle & PLACE_MASK;
    struct rueda_op *op = NULL;

    pthread_mutex_lock(&pool->lock);
    if (handle > PLACE_MASK &&
        place < (size_t)pool->chunk_count * RUEDA_OP_CHUNK) {
        op = &pool->chunks[place / RUEDA_OP_CHUNK][place % RUEDA_OP_CHUNK];
        if (op->handle != handle || op->is_free)
            op = NULL;
    }
    pthread_mutex_unlock(&pool->lock);
    return op;
}

void rueda_op_give(struct rueda_op_pool *pool, struct rueda_op *op)
{
    pthread_mutex_lock(&pool->lock);
    op->is_free = true;
    op->next = pool->free;
    pool->free = op;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- Queue ------------------------------------------------------------- */

void rueda_op_push(struct rueda_op_queue *queue, struct rueda_op *op)
{
    struct rueda_op *newest =
        atomic_load_explicit(&queue->arrived, memory_order_relaxed);

    /* Release: who takes the list sees what was written into op. */
    do
        op->next = newest;
    while (!atomic_compare_exchange_weak_explicit(&queue->arrived, &newest, op,
                                                  memory_order_release,
                                                  memory_order_relaxed));
}

/* Take what has arrived, turn it round and append it. */
static void collect(struct rueda_op_queue *queue)
{
    struct rueda_op *newest;
    struct rueda_op *oldest = NULL;
    struct rueda_op *last;

    if (atomic_load_explicit(&queue->arrived, memory_order_relaxed) == NULL)
        return;
    newest =
        atomic_exchange_explicit(&queue->arrived, NULL, memory_order_acquire);
    last = newest;
    while (newest != NULL) {
        struct rueda_op *older = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    if (queue->first == NULL)
        queue->first = oldest;
    else
        queue->last->next = oldest;
    queue->last = last;
}

struct rueda_op *rueda_op_peek(struct rueda_op_queue *queue)
{
    collect(queue);
    return queue->first;
}

void rueda_op_pop(struct rueda_op_queue *queue)
{
    queue->first = queue->first->next;
}

bool rueda_op_queue_has_news(const struct rueda_op_queue *queue)
{
    return atomic_load_explicit(&queue->arrived, memory_order_relaxed) != NULL;
}
