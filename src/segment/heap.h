/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages of a member's range are in use. Pure arithmetic over offsets:
 * the pages themselves are never touched, and the book is kept in private
 * memory, so no other process can spoil it. First fit; what is freed is joined
 * with its neighbours. Not for several threads at once.
 */
#ifndef RUEDA_SEGMENT_HEAP_H
#define RUEDA_SEGMENT_HEAP_H

#include <rueda/rueda.h>

struct rueda_heap;

/* Manages [begin, begin + bytes), both multiples of a page. NULL: no memory. */
struct rueda_heap *rueda_heap_new(uint64_t begin, uint64_t bytes);
void rueda_heap_free(struct rueda_heap *heap);

/* bytes > 0, rounded up to pages. RUEDA_ERR_LIMIT: the range is full. */
rueda_status rueda_heap_take(struct rueda_heap *heap, uint64_t bytes,
                             uint64_t *out_offset);

/* The rounded bytes of what begins at offset, which is then free; 0 if nothing
 * in use begins there. */
uint64_t rueda_heap_give(struct rueda_heap *heap, uint64_t offset);

#endif /* RUEDA_SEGMENT_HEAP_H */
