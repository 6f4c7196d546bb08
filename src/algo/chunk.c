/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/chunk.h"

struct rueda_range rueda_chunk_even(size_t count, int parts, int i)
{
    const size_t each = count / (size_t)parts;
    const size_t larger = count % (size_t)parts;
    const size_t index = (size_t)i;
    struct rueda_range range;

    range.at = index * each + (index < larger ? index : larger);
    range.count = each + (index < larger ? 1 : 0);
    return range;
}

struct rueda_range rueda_chunk_listed(const size_t *counts, size_t count, int i)
{
    struct rueda_range range;

    range.at = rueda_chunk_total(counts, count, i);
    range.count = counts != NULL ? counts[i] : count;
    return range;
}

size_t rueda_chunk_longest(const size_t *counts, size_t count, int parts)
{
    size_t longest = 0;

    if (counts == NULL)
        return count;
    for (int i = 0; i < parts; i++)
        if (counts[i] > longest)
            longest = counts[i];
    return longest;
}

size_t rueda_chunk_total(const size_t *counts, size_t count, int parts)
{
    size_t total = 0;

    if (counts == NULL)
        return count * (size_t)parts;
    for (int i = 0; i < parts; i++)
        total += counts[i];
    return total;
}

size_t rueda_chunk_pieces(size_t count, size_t piece)
{
    return count / piece + (count % piece != 0 ? 1 : 0);
}

struct rueda_range rueda_chunk_piece(struct rueda_range range, size_t piece,
                                     size_t i)
{
    struct rueda_range cut = {rueda_chunk_end(range), 0};

    if (i >= rueda_chunk_pieces(range.count, piece))
        return cut;
    cut.at = range.at + i * piece;
    cut.count = rueda_chunk_end(range) - cut.at;
    if (cut.count > piece)
        cut.count = piece;
    return cut;
}

struct rueda_range rueda_chunk_halved(size_t count, int rank, int levels)
{
    struct rueda_range range = {0, count};

    for (int level = 0; level < levels; level++) {
        const size_t lower = range.count - range.count / 2;

        if ((rank >> level & 1) == 0) {
            range.count = lower;
        } else {
            range.at += lower;
            range.count -= lower;
        }
    }
    return range;
}

int rueda_chunk_log2(int n)
{
    int exponent = 0;

    while (n >> exponent > 1)
        exponent++;
    return exponent;
}
