/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/timeline_ring.h"

#include <stdlib.h>
#include <string.h>

bool rueda_timeline_ring_init(struct rueda_timeline_ring *self, size_t bytes)
{
    self->size = 1;
    while (self->size < bytes)
        self->size *= 2;
    self->bytes = malloc(self->size);
    atomic_init(&self->head, 0);
    atomic_init(&self->tail, 0);
    return self->bytes != NULL;
}

void rueda_timeline_ring_fini(struct rueda_timeline_ring *self)
{
    free(self->bytes);
    self->bytes = NULL;
}

size_t rueda_timeline_ring_used(struct rueda_timeline_ring *self)
{
    /* Acquire on the tail: what was there has been copied, and may be written
     * over. On the head: what is there has been written. The tail comes first,
     * so that it is never ahead. */
    uint64_t tail = atomic_load_explicit(&self->tail, memory_order_acquire);
    uint64_t head = atomic_load_explicit(&self->head, memory_order_acquire);

    return (size_t)(head - tail);
}

size_t rueda_timeline_ring_free(struct rueda_timeline_ring *self)
{
    return self->size - rueda_timeline_ring_used(self);
}

static void copy_in(struct rueda_timeline_ring *self, uint64_t at,
                    const void *bytes, size_t len)
{
    const size_t start = (size_t)at & (self->size - 1);
    const size_t first = len < self->size - start ? len : self->size - start;

    memcpy(self->bytes + start, bytes, first);
    memcpy(self->bytes, (const char *)bytes + first, len - first);
}

static void copy_out(const struct rueda_timeline_ring *self, uint64_t at,
                     void *out, size_t len)
{
    const size_t start = (size_t)at & (self->size - 1);
    const size_t first = len < self->size - start ? len : self->size - start;

    memcpy(out, self->bytes + start, first);
    memcpy((char *)out + first, self->bytes, len - first);
}

void rueda_timeline_ring_put(struct rueda_timeline_ring *self, int rank,
                             const void *bytes, size_t len)
{
    const uint64_t head =
        atomic_load_explicit(&self->head, memory_order_relaxed);
    const uint32_t words[2] = {(uint32_t)rank, (uint32_t)len};

    copy_in(self, head, words, sizeof(words));
    copy_in(self, head + sizeof(words), bytes, len);
    /* Release: a reader that sees the head sees the entry. */
    atomic_store_explicit(&self->head, head + sizeof(words) + len,
                          memory_order_release);
}

bool rueda_timeline_ring_peek(struct rueda_timeline_ring *self, int *out_rank,
                              size_t *out_len)
{
    const uint64_t tail =
        atomic_load_explicit(&self->tail, memory_order_relaxed);
    uint32_t words[2];

    if (rueda_timeline_ring_used(self) == 0)
        return false;
    copy_out(self, tail, words, sizeof(words));
    *out_rank = (int)words[0];
    *out_len = words[1];
    return true;
}

void rueda_timeline_ring_take(struct rueda_timeline_ring *self, void *out,
                              size_t len)
{
    const uint64_t tail =
        atomic_load_explicit(&self->tail, memory_order_relaxed);

    copy_out(self, tail + RUEDA_TIMELINE_ENTRY_HEAD, out, len);
    /* Release: what was there has been copied. */
    atomic_store_explicit(&self->tail, tail + RUEDA_TIMELINE_ENTRY_HEAD + len,
                          memory_order_release);
}
