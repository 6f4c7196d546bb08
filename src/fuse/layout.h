/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where tensors lie that share a slab, by arithmetic alone: the same on all
 * ranks that have the same sizes and the same room. Two ways:
 *
 *      whole     | a   | b | c      |    each from a multiple of 64 bytes on,
 *                                        the last one with nothing behind it
 *      by rows   | a0 b0 c0 | a1 b1 c1 | ...    a block for each member, with
 *                                        that member's rows of each tensor
 *
 * Any thread.
 */
#ifndef RUEDA_FUSE_LAYOUT_H
#define RUEDA_FUSE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUEDA_LAYOUT_ALIGN ((size_t)64)

/* What a tensor takes of the slab, up to where the next may begin. */
static inline size_t rueda_layout_span(size_t bytes)
{
    return (bytes + RUEDA_LAYOUT_ALIGN - 1) & ~(RUEDA_LAYOUT_ALIGN - 1);
}

/* Put one more whole tensor behind those that end at *end; false, and nothing
 * is changed, if there is no room. *out_at is where it begins. */
static inline bool rueda_layout_add(size_t *end, size_t room, size_t bytes,
                                    size_t *out_at)
{
    size_t begin = rueda_layout_span(*end);

    if (begin > room || room - begin < bytes)
        return false;
    *end = begin + bytes;
    *out_at = begin;
    return true;
}

/* Rows of a reduce-scatter that a member gets: equal shares, and one more for
 * the lowest members. */
static inline size_t rueda_layout_share(size_t rows, int members, int member)
{
    const size_t size = (size_t)members;

    return rows / size + ((size_t)member < rows % size ? 1 : 0);
}

/* The rows of an allgather that all members bring: rows[0], rows[stride], and
 * so on. False if that is more than fits any memory. */
bool rueda_layout_total(const uint64_t *rows, int stride, int members,
                        size_t row_bytes, size_t *out_total);

#endif /* RUEDA_FUSE_LAYOUT_H */
