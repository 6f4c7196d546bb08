/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The range is a list of spans in the order of their offsets, used and free
 * ones; two free ones are never neighbours. Tensors are few and large, so a
 * walk is cheap.
 */
#include "segment/heap.h"

#include <stdlib.h>

#include "os/memory.h"

struct heap_span {
    uint64_t offset;
    uint64_t bytes;
    bool is_used;
    struct heap_span *next;
};

struct rueda_heap {
    struct heap_span *first;
};

static struct heap_span *span_new(uint64_t offset, uint64_t bytes,
                                  struct heap_span *next)
{
    struct heap_span *span = malloc(sizeof(*span));

    if (span != NULL)
        *span =
            (struct heap_span){.offset = offset, .bytes = bytes, .next = next};
    return span;
}

struct rueda_heap *rueda_heap_new(uint64_t begin, uint64_t bytes)
{
    struct rueda_heap *heap = malloc(sizeof(*heap));

    if (heap == NULL)
        return NULL;
    heap->first = span_new(begin, bytes, NULL);
    if (heap->first == NULL) {
        free(heap);
        return NULL;
    }
    return heap;
}

void rueda_heap_free(struct rueda_heap *heap)
{
    if (heap == NULL)
        return;
    while (heap->first != NULL) {
        struct heap_span *span = heap->first;

        heap->first = span->next;
        free(span);
    }
    free(heap);
}

rueda_status rueda_heap_take(struct rueda_heap *heap, uint64_t bytes,
                             uint64_t *out_offset)
{
    uint64_t wanted = (bytes + RUEDA_PAGE_BYTES - 1) & ~(RUEDA_PAGE_BYTES - 1);
    struct heap_span *span = heap->first;

    if (wanted < bytes)
        return RUEDA_ERR_LIMIT;
    while (span != NULL && (span->is_used || span->bytes < wanted))
        span = span->next;
    if (span == NULL)
        return RUEDA_ERR_LIMIT;
    if (span->bytes > wanted) {
        struct heap_span *rest =
            span_new(span->offset + wanted, span->bytes - wanted, span->next);

        if (rest == NULL)
            return RUEDA_ERR_NOMEM;
        span->next = rest;
        span->bytes = wanted;
    }
    span->is_used = true;
    *out_offset = span->offset;
    return RUEDA_OK;
}

/* Join span with its successor, if both are free. */
static void join_next(struct heap_span *span)
{
    struct heap_span *next = span->next;

    if (next == NULL || span->is_used || next->is_used)
        return;
    span->bytes += next->bytes;
    span->next = next->next;
    free(next);
}

uint64_t rueda_heap_give(struct rueda_heap *heap, uint64_t offset)
{
    struct heap_span *before = NULL;
    struct heap_span *span = heap->first;
    uint64_t bytes;

    while (span != NULL && span->offset != offset) {
        before = span;
        span = span->next;
    }
    if (span == NULL || !span->is_used)
        return 0;
    bytes = span->bytes;
    span->is_used = false;
    join_next(span);
    if (before != NULL)
        join_next(before);
    return bytes;
}
