/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a vector is cut: arithmetic only, apart from all messages. Positions and
 * lengths are numbers of elements, or of bytes where the caller counts bytes.
 *
 * A chunk is a rank's share of a vector, a piece what travels in one message.
 * Calls nothing. Any thread.
 */
#ifndef RUEDA_ALGO_CHUNK_H
#define RUEDA_ALGO_CHUNK_H

#include <stddef.h>

struct rueda_range {
    size_t at;
    size_t count;
};

static inline size_t rueda_chunk_end(struct rueda_range range)
{
    return range.at + range.count;
}

/* Chunk i of count elements cut into `parts` nearly equal chunks; the first
 * ones are larger by one where it does not come out even. */
struct rueda_range rueda_chunk_even(size_t count, int parts, int i);

/* Chunk i where chunk j has counts[j] elements, or `count` if counts is NULL.
 * Takes time in proportion to i. */
struct rueda_range rueda_chunk_listed(const size_t *counts, size_t count,
                                      int i);

/* The longest of `parts` such chunks, and all of them together. */
size_t rueda_chunk_longest(const size_t *counts, size_t count, int parts);
size_t rueda_chunk_total(const size_t *counts, size_t count, int parts);

/* The number of pieces of `piece` elements, the last of them shorter. */
size_t rueda_chunk_pieces(size_t count, size_t piece);

/* Piece i of a range; empty, at the end of it, if there are fewer. */
struct rueda_range rueda_chunk_piece(struct rueda_range range, size_t piece,
                                     size_t i);

/*
 * What rank is responsible for after `levels` halvings of count elements: at
 * level l the ranks with bit l clear keep the lower half of their range, the
 * others the upper one. Partners of a level have the same range before it.
 */
struct rueda_range rueda_chunk_halved(size_t count, int rank, int levels);

/* The exponent of the largest power of two that is not above n; n >= 1. */
int rueda_chunk_log2(int n);

#endif /* RUEDA_ALGO_CHUNK_H */
