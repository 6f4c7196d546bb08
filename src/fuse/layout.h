/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tensors lie that share a slab: one after another, each from a multiple
 * of 64 bytes on, the last one with nothing behind it. Pure arithmetic, the
 * same on all ranks that have the same sizes and the same room; any thread.
 */
#ifndef RUEDA_FUSE_LAYOUT_H
#define RUEDA_FUSE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

#define RUEDA_LAYOUT_ALIGN ((size_t)64)

/* What a tensor takes of the slab, up to where the next may begin. */
static inline size_t rueda_layout_span(size_t bytes)
{
    return (bytes + RUEDA_LAYOUT_ALIGN - 1) & ~(RUEDA_LAYOUT_ALIGN - 1);
}

/* Zero is an empty one. */
struct rueda_layout {
    size_t end; /* of the last tensor */
};

/* Put one more tensor in; false, and nothing is changed, if there is no room.
 * *out_offset is where it begins. */
static inline bool rueda_layout_add(struct rueda_layout *layout, size_t room,
                                    size_t bytes, size_t *out_offset)
{
    size_t begin = rueda_layout_span(layout->end);

    if (begin > room || room - begin < bytes)
        return false;
    layout->end = begin + bytes;
    *out_offset = begin;
    return true;
}

#endif /* RUEDA_FUSE_LAYOUT_H */
