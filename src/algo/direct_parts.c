/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that add vectors in parts, wherever these are: blocks are made of
 * them and become them again with no copy in between. */
#include <string.h>

#include "algo/direct.h"

/* ---- Pieces ------------------------------------------------------------ */

/* What of a part is in a range of the vector, in bytes. */
struct range_piece {
    const struct rueda_part *part;
    size_t in_part;
    size_t in_range;
    size_t bytes;
};

/* Those of a range that are still to come. */
struct pieces {
    const struct rueda_part *next;
    const struct rueda_part *last;
    size_t begin;
    size_t end;
};

/* The first part that ends behind `at`. */
static int part_behind(const struct rueda_coll *coll, size_t at)
{
    int low = 0;
    int high = coll->part_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (coll->parts[middle].at + coll->parts[middle].bytes > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct pieces pieces_of(const struct rueda_coll *coll, size_t begin,
                               size_t bytes)
{
    return (struct pieces){
        .next = coll->parts + part_behind(coll, begin),
        .last = coll->parts + coll->part_count,
        .begin = begin,
        .end = begin + bytes,
    };
}

/* Between parts there may be a few bytes that are of none. */
static bool next_piece(struct pieces *pieces, struct range_piece *out)
{
    const struct rueda_part *part = pieces->next;

    while (part < pieces->last && part->bytes == 0)
        part++;
    if (part == pieces->last || part->at >= pieces->end)
        return false;
    pieces->next = part + 1;
    out->part = part;
    out->in_part = part->at < pieces->begin ? pieces->begin - part->at : 0;
    out->in_range = part->at + out->in_part - pieces->begin;
    out->bytes = rueda_part(part->bytes, out->in_part,
                            pieces->end - part->at - out->in_part);
    return true;
}

/* Write a range of my input to `to`, a place in my part of block i. */
static void publish_range(const struct rueda_direct *direct, uint64_t i,
                          struct pieces range, char *to)
{
    const bool is_streamed = rueda_direct_streams(direct, i);
    struct range_piece piece;

    while (next_piece(&range, &piece)) {
        const char *from = piece.part->send;

        if (from == NULL)
            memset(to + piece.in_range, 0, piece.bytes);
        else if (is_streamed)
            rueda_host_stream_piece(to + piece.in_range, from + piece.in_part,
                                    piece.bytes);
        else
            memcpy(to + piece.in_range, from + piece.in_part, piece.bytes);
    }
}

/* ---- Allreduce --------------------------------------------------------- */

/*
 * As the small one. What was published stays in the ring, or in the buffer
 * where it does not fit that, to the end, so that an input that is written
 * before can come back.
 */

/* Where block i of a member lies. */
static char *block_at(const struct rueda_direct *direct, int member, uint64_t i)
{
    const size_t begin = rueda_direct_begin(direct, i);

    if (!direct->is_lent)
        return rueda_direct_at(direct, member, i);
    return member == direct->slab->rank
               ? (char *)direct->coll->recv + begin
               : rueda_direct_made(direct, member) + begin;
}

static struct pieces block_pieces(const struct rueda_direct *direct, uint64_t i)
{
    return pieces_of(direct->coll, rueda_direct_begin(direct, i),
                     direct->block_bytes);
}

static void allreduce_publish(const struct rueda_direct *direct, uint64_t i)
{
    publish_range(direct, i, block_pieces(direct, i),
                  block_at(direct, direct->slab->rank, i));
    rueda_host_stream_end();
}

static void allreduce_fetch(const struct rueda_direct *direct, uint64_t i)
{
    struct pieces range = block_pieces(direct, i);
    const void *sources[RUEDA_SEGMENT_MAX];
    struct range_piece piece;

    while (next_piece(&range, &piece)) {
        const struct rueda_part *part = piece.part;

        if (part->recv == NULL)
            continue;
        for (int member = 0; member < direct->slab->size; member++)
            sources[member] = block_at(direct, member, i) + piece.in_range;
        sources[direct->slab->rank] = (const char *)part->send + piece.in_part;
        rueda_host_reduce(direct->kernels, &direct->coll->arith,
                          (char *)part->recv + piece.in_part, sources,
                          direct->slab->size,
                          piece.bytes / direct->coll->elem_bytes);
    }
}

static void restore_block(const struct rueda_direct *direct, uint64_t i)
{
    const char *from = block_at(direct, direct->slab->rank, i);
    struct pieces range = block_pieces(direct, i);
    struct range_piece piece;

    while (next_piece(&range, &piece)) {
        const struct rueda_part *part = piece.part;

        if (part->recv != NULL && part->recv == part->send)
            memcpy((char *)part->recv + piece.in_part, from + piece.in_range,
                   piece.bytes);
    }
}

void rueda_direct_restore_parts(const struct rueda_direct *direct,
                                uint64_t blocks)
{
    for (uint64_t i = 0; i < blocks; i++)
        restore_block(direct, i);
}

static size_t allreduce_bytes(const struct rueda_direct *direct)
{
    return direct->coll->count * direct->coll->elem_bytes;
}

static uint64_t allreduce_blocks(const struct rueda_direct *direct)
{
    return (allreduce_bytes(direct) + direct->block_bytes - 1) /
           direct->block_bytes;
}

const struct rueda_shape rueda_shape_allreduce_parts = {
    .has_parts = true,
    .bytes = allreduce_bytes,
    .blocks = allreduce_blocks,
    .publish = allreduce_publish,
    .fetch = allreduce_fetch,
};

/* A part may lie in the slices of several members. */
void rueda_direct_fetch_parts(const struct rueda_direct *direct)
{
    const struct rueda_coll *coll = direct->coll;
    const size_t most = rueda_direct_slice_bytes(direct);

    for (int i = 0; i < coll->part_count && most > 0; i++) {
        const struct rueda_part *part = &coll->parts[i];
        size_t done = 0;

        while (done < part->bytes && part->recv != NULL) {
            size_t at = part->at + done;
            size_t bytes = rueda_part(part->bytes, done, most - at % most);

            memcpy((char *)part->recv + done,
                   rueda_direct_made(direct, (int)(at / most)) + at, bytes);
            done += bytes;
        }
    }
}

/* ---- Reduce-scatter ---------------------------------------------------- */

/* What of a member's piece of the input is in block i. */
static struct pieces chunk_pieces(const struct rueda_direct *direct, uint64_t i,
                                  int member)
{
    const struct rueda_coll *coll = direct->coll;
    const size_t begin = i * direct->chunk_bytes;
    const size_t bytes = rueda_piece_bytes(coll, coll->recv_counts, member);

    return pieces_of(coll,
                     coll->parts_from +
                         rueda_piece_offset(coll, coll->recv_counts, member) +
                         begin,
                     rueda_part(bytes, begin, direct->chunk_bytes));
}

/* Where that lies in the ring of another. */
static char *chunk_at(const struct rueda_direct *direct, int owner, uint64_t i,
                      int member)
{
    return rueda_direct_at(direct, owner, i) +
           (size_t)member * direct->chunk_bytes;
}

static void scatter_publish(const struct rueda_direct *direct, uint64_t i)
{
    const int rank = direct->slab->rank;

    for (int member = 0; member < direct->slab->size; member++)
        if (member != rank)
            publish_range(direct, i, chunk_pieces(direct, i, member),
                          chunk_at(direct, rank, i, member));
    rueda_host_stream_end();
}

/* My own chunk is not published: there is room for zeros. */
static const void *own_source(const struct rueda_direct *direct, uint64_t i,
                              const struct range_piece *piece)
{
    const int rank = direct->slab->rank;
    char *zeros = chunk_at(direct, rank, i, rank) + piece->in_range;

    if (piece->part->send != NULL)
        return (const char *)piece->part->send + piece->in_part;
    return memset(zeros, 0, piece->bytes);
}

static void scatter_fetch(const struct rueda_direct *direct, uint64_t i)
{
    const int rank = direct->slab->rank;
    char *to = (char *)direct->coll->recv + i * direct->chunk_bytes;
    struct pieces range = chunk_pieces(direct, i, rank);
    const void *sources[RUEDA_SEGMENT_MAX];
    struct range_piece piece;

    while (next_piece(&range, &piece)) {
        for (int member = 0; member < direct->slab->size; member++)
            sources[member] =
                chunk_at(direct, member, i, rank) + piece.in_range;
        sources[rank] = own_source(direct, i, &piece);
        rueda_host_reduce(direct->kernels, &direct->coll->arith,
                          to + piece.in_range, sources, direct->slab->size,
                          piece.bytes / direct->coll->elem_bytes);
    }
}

const struct rueda_shape rueda_shape_scatter_parts = {
    .bytes = rueda_scatter_bytes,
    .blocks = rueda_scatter_blocks,
    .publish = scatter_publish,
    .fetch = scatter_fetch,
};
