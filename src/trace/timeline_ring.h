/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer of the timeline: records of several ranks, oldest first. One
 * thread puts and one takes, without a lock.
 */
#ifndef RUEDA_TRACE_TIMELINE_RING_H
#define RUEDA_TRACE_TIMELINE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an entry takes beside its bytes. */
#define RUEDA_TIMELINE_ENTRY_HEAD 8

struct rueda_timeline_ring {
    char *bytes;
    size_t size; /* a power of two */
    /* Bytes put and taken since the beginning. */
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
};

bool rueda_timeline_ring_init(struct rueda_timeline_ring *self, size_t bytes);
void rueda_timeline_ring_fini(struct rueda_timeline_ring *self);

/* Free bytes, for the thread that puts, and used bytes, for any thread. */
size_t rueda_timeline_ring_free(struct rueda_timeline_ring *self);
size_t rueda_timeline_ring_used(struct rueda_timeline_ring *self);

/* There is room for the bytes and RUEDA_TIMELINE_ENTRY_HEAD. */
void rueda_timeline_ring_put(struct rueda_timeline_ring *self, int rank,
                             const void *bytes, size_t len);

/* The length of the oldest entry and its rank; false: there is none. */
bool rueda_timeline_ring_peek(struct rueda_timeline_ring *self, int *out_rank,
                              size_t *out_len);

/* Take the oldest entry, of this length. */
void rueda_timeline_ring_take(struct rueda_timeline_ring *self, void *out,
                              size_t len);

#endif /* RUEDA_TRACE_TIMELINE_RING_H */
