/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that add: allreduce, small and large, and reduce-scatter. */
#include <string.h>

#include "algo/direct.h"

/* The pieces of all members that are added at a time stay in the first cache
 * until the sum is written over them. */
#define TRAY_PIECES_BYTES ((size_t)32 << 10)

/* Slices are fetched side by side, this many bytes of each at a time: they come
 * from as many cores, and one does not wait for the other. */
#define FETCH_BYTES ((size_t)512)

/* A range of elements. */
struct range {
    size_t begin;
    size_t count;
};

static size_t block_elems(const struct rueda_direct *direct)
{
    return direct->block_bytes / direct->coll->elem_bytes;
}

static struct range block_range(const struct rueda_direct *direct, uint64_t i)
{
    size_t most = block_elems(direct);
    size_t begin = rueda_direct_begin(direct, i) / direct->coll->elem_bytes;

    return (struct range){begin, rueda_part(direct->coll->count, begin, most)};
}

/* The slice of a member in `count` elements: near-equal, whole cache lines. */
static struct range slice_of(const struct rueda_direct *direct, int member,
                             size_t count)
{
    size_t line = RUEDA_CACHE_LINE / direct->coll->elem_bytes;
    size_t size = (size_t)direct->slab->size;
    size_t most = ((count + size - 1) / size + line - 1) / line * line;
    size_t begin = (size_t)member * most;

    return (struct range){begin < count ? begin : count,
                          rueda_part(count, begin, most)};
}

/* ---- Allreduce -------------------------------------------------------- */

static size_t allreduce_bytes(const struct rueda_direct *direct)
{
    return direct->coll->count * direct->coll->elem_bytes;
}

static uint64_t allreduce_blocks(const struct rueda_direct *direct)
{
    size_t most = block_elems(direct);

    return (direct->coll->count + most - 1) / most;
}

static const char *input(const struct rueda_direct *direct, struct range block)
{
    return (const char *)direct->coll->send +
           block.begin * direct->coll->elem_bytes;
}

static char *output(const struct rueda_direct *direct, struct range block)
{
    return (char *)direct->coll->recv + block.begin * direct->coll->elem_bytes;
}

static void small_publish(const struct rueda_direct *direct, uint64_t i)
{
    struct range block = block_range(direct, i);

    rueda_direct_write(
        direct, i, rueda_direct_at(direct, direct->slab->rank, i),
        input(direct, block), block.count * direct->coll->elem_bytes);
}

static void small_fetch(const struct rueda_direct *direct, uint64_t i)
{
    struct range block = block_range(direct, i);
    const void *sources[RUEDA_SEGMENT_MAX];

    for (int member = 0; member < direct->slab->size; member++)
        sources[member] = rueda_direct_at(direct, member, i);
    sources[direct->slab->rank] = input(direct, block);
    rueda_host_reduce(direct->kernels, &direct->coll->arith,
                      output(direct, block), sources, direct->slab->size,
                      block.count);
}

/* Reduce my slice of all buffers, and write the result to mine and, piece by
 * piece, to as many of the others as are to have it. */
static void share_slice(const struct rueda_direct *direct, int others)
{
    const struct rueda_slab *slab = direct->slab;
    size_t elem = direct->coll->elem_bytes;
    size_t piece = RUEDA_DIRECT_PIECE / elem;
    struct range slice = slice_of(direct, slab->rank, direct->coll->count);
    const void *sources[RUEDA_SEGMENT_MAX];
    char *mine = direct->coll->recv;

    for (size_t at = 0; at < slice.count; at += piece) {
        size_t count = rueda_part(slice.count, at, piece);
        size_t offset = (slice.begin + at) * elem;

        for (int i = 0; i < slab->size; i++)
            sources[i] = rueda_direct_sent(direct, i) + offset;
        rueda_host_reduce(direct->kernels, &direct->coll->arith, mine + offset,
                          sources, slab->size, count);
        for (int i = 0; i < others; i++)
            if (i != slab->rank)
                memcpy(rueda_direct_made(direct, i) + offset, mine + offset,
                       count * elem);
    }
}

static void allreduce_share(const struct rueda_direct *direct)
{
    share_slice(direct, direct->slab->size);
}

const struct rueda_shape rueda_shape_allreduce_small = {
    .bytes = allreduce_bytes,
    .blocks = allreduce_blocks,
    .publish = small_publish,
    .fetch = small_fetch,
    .share = allreduce_share,
    .is_backward = true,
};

/* Where block i of a member lies. */
static char *tray(const struct rueda_direct *direct, int member, uint64_t i)
{
    return rueda_slab_tray(direct->slab, member, i);
}

/* A range of block i of my input. */
static void publish(const struct rueda_direct *direct, uint64_t i,
                    struct range range)
{
    size_t elem = direct->coll->elem_bytes;
    size_t at = range.begin * elem;

    if (range.count > 0)
        memcpy(tray(direct, direct->slab->rank, i) + at,
               input(direct, block_range(direct, i)) + at, range.count * elem);
}

/* The slices of the others: all but mine, which is one range in the middle. */
static void allreduce_publish(const struct rueda_direct *direct, uint64_t i)
{
    struct range block = block_range(direct, i);
    struct range mine = slice_of(direct, direct->slab->rank, block.count);
    size_t end = mine.begin + mine.count;

    publish(direct, i, (struct range){0, mine.begin});
    publish(direct, i, (struct range){end, block.count - end});
}

/* Bytes of a slice that are added at a time: whole cache lines. */
static size_t piece_of(int size)
{
    size_t lines = TRAY_PIECES_BYTES / RUEDA_CACHE_LINE / (size_t)size;

    return (lines > 0 ? lines : 1) * RUEDA_CACHE_LINE;
}

/*
 * Add `slice` of block i of all members into out, and write the sum to the
 * trays of the others. `in` is my block. Beginning with my right neighbour, so
 * that not all write to one member.
 */
static void reduce_slice(const struct rueda_direct *direct, uint64_t i,
                         struct range slice, const char *in, char *out)
{
    const int rank = direct->slab->rank;
    const int size = direct->slab->size;
    size_t elem = direct->coll->elem_bytes;
    size_t piece = piece_of(size) / elem;
    const void *sources[RUEDA_SEGMENT_MAX];

    for (size_t at = 0; at < slice.count; at += piece) {
        size_t count = rueda_part(slice.count, at, piece);
        size_t offset = (slice.begin + at) * elem;

        for (int member = 0; member < size; member++)
            sources[member] = tray(direct, member, i) + offset;
        sources[rank] = in + offset;
        rueda_host_reduce(direct->kernels, &direct->coll->arith, out + offset,
                          sources, size, count);
        for (int member = rank + 1; member < size; member++)
            memcpy(tray(direct, member, i) + offset, out + offset,
                   count * elem);
        for (int member = 0; member < rank; member++)
            memcpy(tray(direct, member, i) + offset, out + offset,
                   count * elem);
    }
}

static void allreduce_reduce(const struct rueda_direct *direct, uint64_t i)
{
    struct range block = block_range(direct, i);

    reduce_slice(direct, i, slice_of(direct, direct->slab->rank, block.count),
                 input(direct, block), output(direct, block));
}

/* Copy slices of block i from my tray: mine, if it is there, and those of the
 * others, beginning with my right neighbour. */
static void fetch(const struct rueda_direct *direct, uint64_t i, bool with_mine)
{
    struct range block = block_range(direct, i);
    const char *from = tray(direct, direct->slab->rank, i);
    char *to = output(direct, block);
    size_t bytes = block.count * direct->coll->elem_bytes;
    /* All slices begin at a multiple of the first one's length. */
    size_t slice =
        slice_of(direct, 0, block.count).count * direct->coll->elem_bytes;
    const size_t rank = (size_t)direct->slab->rank;
    const size_t size = (size_t)direct->slab->size;

    for (size_t at = 0; at < slice; at += FETCH_BYTES)
        for (size_t step = with_mine ? 0 : 1; step < size; step++) {
            size_t member =
                rank + step < size ? rank + step : rank + step - size;
            size_t offset = member * slice + at;
            size_t part =
                rueda_part(bytes, offset, rueda_part(slice, at, FETCH_BYTES));

            if (part > 0)
                memcpy(to + offset, from + offset, part);
        }
}

static void allreduce_fetch(const struct rueda_direct *direct, uint64_t i)
{
    fetch(direct, i, false);
}

const struct rueda_shape rueda_shape_allreduce = {
    .bytes = allreduce_bytes,
    .blocks = allreduce_blocks,
    .publish = allreduce_publish,
    .reduce = allreduce_reduce,
    .fetch = allreduce_fetch,
    .share = allreduce_share,
    .has_trays = true,
    .is_backward = true,
};

/* ---- Allreduce of many ------------------------------------------------ */

static void many_publish(const struct rueda_direct *direct, uint64_t i)
{
    publish(direct, i, (struct range){0, block_range(direct, i).count});
}

static void many_reduce(const struct rueda_direct *direct, uint64_t i)
{
    struct rueda_slab *slab = direct->slab;
    const uint64_t pile = direct->pile + i;
    size_t count = block_range(direct, i).count;
    char *own = tray(direct, slab->rank, i);
    int slice = rueda_slab_take_slice(slab, pile);

    for (; slice >= 0; slice = rueda_slab_take_slice(slab, pile)) {
        reduce_slice(direct, i, slice_of(direct, slice, count), own, own);
        rueda_slab_did_slice(slab, pile);
    }
}

static void many_fetch(const struct rueda_direct *direct, uint64_t i)
{
    fetch(direct, i, true);
}

const struct rueda_shape rueda_shape_allreduce_many = {
    .bytes = allreduce_bytes,
    .blocks = allreduce_blocks,
    .publish = many_publish,
    .reduce = many_reduce,
    .fetch = many_fetch,
    .share = allreduce_share,
    .has_trays = true,
    .has_piles = true,
    .is_backward = true,
};

size_t rueda_direct_slice_bytes(const struct rueda_direct *direct)
{
    return slice_of(direct, 0, direct->coll->count).count *
           direct->coll->elem_bytes;
}

void rueda_direct_add_slice(const struct rueda_direct *direct)
{
    share_slice(direct, 0);
}

/* ---- Reduce-scatter --------------------------------------------------- */

/* Piece d of the input goes to member d; a block holds a chunk of each. */
static size_t piece_bytes(const struct rueda_direct *direct, int member)
{
    return rueda_piece_bytes(direct->coll, direct->coll->recv_counts, member);
}

static size_t longest_piece(const struct rueda_direct *direct)
{
    return rueda_piece_longest(direct, direct->coll->recv_counts);
}

static size_t piece_offset(const struct rueda_direct *direct, int member)
{
    return rueda_piece_offset(direct->coll, direct->coll->recv_counts, member);
}

size_t rueda_scatter_bytes(const struct rueda_direct *direct)
{
    size_t lines = longest_piece(direct) / RUEDA_CACHE_LINE + 1;

    return lines * RUEDA_CACHE_LINE * (size_t)direct->slab->size;
}

uint64_t rueda_scatter_blocks(const struct rueda_direct *direct)
{
    return (longest_piece(direct) + direct->chunk_bytes - 1) /
           direct->chunk_bytes;
}

static void scatter_publish(const struct rueda_direct *direct, uint64_t i)
{
    char *own = rueda_direct_at(direct, direct->slab->rank, i);
    const char *piece = direct->coll->send;
    size_t begin = i * direct->chunk_bytes;

    for (int member = 0; member < direct->slab->size; member++) {
        size_t bytes = piece_bytes(direct, member);
        size_t part = rueda_part(bytes, begin, direct->chunk_bytes);

        if (member != direct->slab->rank && part > 0)
            rueda_direct_write(direct, i,
                               own + (size_t)member * direct->chunk_bytes,
                               piece + begin, part);
        piece += bytes;
    }
}

static void scatter_fetch(const struct rueda_direct *direct, uint64_t i)
{
    int rank = direct->slab->rank;
    size_t begin = i * direct->chunk_bytes;
    size_t part =
        rueda_part(piece_bytes(direct, rank), begin, direct->chunk_bytes);
    const void *sources[RUEDA_SEGMENT_MAX];
    const char *mine = direct->coll->send;

    if (part == 0)
        return;
    for (int member = 0; member < direct->slab->size; member++)
        sources[member] = rueda_direct_at(direct, member, i) +
                          (size_t)rank * direct->chunk_bytes;
    sources[rank] = mine + piece_offset(direct, rank) + begin;
    rueda_host_reduce(direct->kernels, &direct->coll->arith,
                      (char *)direct->coll->recv + begin, sources,
                      direct->slab->size, part / direct->coll->elem_bytes);
}

static void scatter_share(const struct rueda_direct *direct)
{
    const struct rueda_slab *slab = direct->slab;
    const void *sources[RUEDA_SEGMENT_MAX];
    size_t before = piece_offset(direct, slab->rank);

    for (int member = 0; member < slab->size; member++)
        sources[member] = rueda_direct_sent(direct, member) + before;
    rueda_host_reduce(
        direct->kernels, &direct->coll->arith, direct->coll->recv, sources,
        slab->size, piece_bytes(direct, slab->rank) / direct->coll->elem_bytes);
}

const struct rueda_shape rueda_shape_reduce_scatter = {
    .bytes = rueda_scatter_bytes,
    .blocks = rueda_scatter_blocks,
    .publish = scatter_publish,
    .fetch = scatter_fetch,
    .share = scatter_share,
};
