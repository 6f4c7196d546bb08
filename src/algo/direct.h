/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the direct algorithm share. direct.c moves blocks through
 * the rings of the slab; a shape says what a block of one kind of operation
 * holds: what I put into mine, what I add, what I take from the others'.
 */
#ifndef RUEDA_ALGO_DIRECT_H
#define RUEDA_ALGO_DIRECT_H

#include <string.h>

#include "algo/algo.h"
#include "algo/chunk.h"
#include "device/host.h"
#include "segment/slab.h"

/* Sums are made in pieces that stay in the first cache between being added and
 * being copied on. */
#define RUEDA_DIRECT_PIECE ((size_t)8 << 10)

struct rueda_direct;

struct rueda_shape {
    /* How many bytes a member passes through its ring, at most; the same number
     * for all of them, or no less than a block. */
    size_t (*bytes)(const struct rueda_direct *direct);

    /* How many blocks I need. With notice, the largest number of any member
     * counts; without, all members must compute the same number. */
    uint64_t (*blocks)(const struct rueda_direct *direct);
    bool needs_notice;

    /* Write block i of my data to my ring, or to a tray of mine. */
    void (*publish)(const struct rueda_direct *direct, uint64_t i);

    /* Optional: all have published block i; do my part of it. With piles, that
     * is what I take from the block's (segment/slab.h). */
    void (*reduce)(const struct rueda_direct *direct, uint64_t i);

    /* Everything of block i is there (all have reduced it, or, without
     * reduce(), all have published it): take what I need. */
    void (*fetch)(const struct rueda_direct *direct, uint64_t i);

    /* All buffers that others need of me lie in the segment: do my part
     * straight on them. NULL: that is not looked for. */
    void (*share)(const struct rueda_direct *direct);

    /* Only root publishes. */
    bool is_from_root;

    /* Blocks lie in trays and not in the rings, and perhaps have piles. */
    bool has_trays;
    bool has_piles;

    /* The vector is in parts, which are written to where they go, and restored
     * after a failure; they may stay in the members' buffers. */
    bool has_parts;

    /* Block 0 is the last part of the vector. The thread that filled it,
     * probably from front to back, has left its end in the cache, and will find
     * the front of the result there. */
    bool is_backward;
};

typedef enum rueda_direct_mode {
    RUEDA_DIRECT_TINY,   /* number and data in one cache line */
    RUEDA_DIRECT_LENT,   /* waiting for the end of the operation before */
    RUEDA_DIRECT_NOTICE, /* waiting for what the others need or have */
    RUEDA_DIRECT_BLOCKS, /* through the rings */
    RUEDA_DIRECT_SLICES, /* waiting for slices of a sum in shared buffers */
    RUEDA_DIRECT_LAST,   /* waiting until all have done that */
} rueda_direct_mode;

typedef enum rueda_direct_step {
    RUEDA_DIRECT_PUBLISH,
    RUEDA_DIRECT_REDUCE,
    RUEDA_DIRECT_FETCH,
} rueda_direct_step;

struct rueda_direct {
    struct rueda_slab *slab;
    const struct rueda_coll *coll;
    const struct rueda_kernels *kernels;
    const struct rueda_shape *shape;
    rueda_direct_mode mode;
    uint64_t first;     /* the first cell of block 0 */
    uint64_t cells;     /* of every block */
    size_t block_bytes; /* the same in bytes */
    uint64_t blocks;
    bool is_lent;    /* they lie in the members' buffers, not in rings */
    bool is_tried;   /* its blocks count in the slab's trial, */
    uint64_t before; /* after this many */
    uint64_t pile;   /* the number of block 0's */
    uint64_t turn;   /* publishes block turn, reduces turn-1, fetches turn-2 */
    rueda_direct_step step; /* within the turn */
    size_t chunk_bytes;     /* of one member's part in a block, for pieces */
};

extern const struct rueda_shape rueda_shape_allreduce_small;
extern const struct rueda_shape rueda_shape_allreduce;
extern const struct rueda_shape rueda_shape_allreduce_many;
extern const struct rueda_shape rueda_shape_allreduce_parts;
extern const struct rueda_shape rueda_shape_reduce_scatter;
extern const struct rueda_shape rueda_shape_scatter_parts;
extern const struct rueda_shape rueda_shape_broadcast;
extern const struct rueda_shape rueda_shape_allgather;
extern const struct rueda_shape rueda_shape_alltoall;

/*
 * An allreduce in shared buffers of which parts go elsewhere: my slice of it
 * into my own buffer, and then, when all have done so, parts from the slices of
 * all ranks.
 */
void rueda_direct_add_slice(const struct rueda_direct *direct);
void rueda_direct_fetch_parts(const struct rueda_direct *direct);

/* Slices of the whole vector begin at multiples of this. */
size_t rueda_direct_slice_bytes(const struct rueda_direct *direct);

/* How a reduce-scatter is cut, whatever its input is like. */
size_t rueda_scatter_bytes(const struct rueda_direct *direct);
uint64_t rueda_scatter_blocks(const struct rueda_direct *direct);

/* Parts of what the others share. */
void rueda_direct_gather_parts(const struct rueda_direct *direct);

/* Of an allreduce by rueda_shape_allreduce_parts the first blocks have been
 * written: restore what was there before. */
void rueda_direct_restore_parts(const struct rueda_direct *direct,
                                uint64_t blocks);

/* Where what a member sends lies, if it is shared. */
static inline const char *rueda_direct_sent(const struct rueda_direct *direct,
                                            int member)
{
    const struct rueda_slab *slab = direct->slab;

    return rueda_segment_at(slab->segment,
                            slab->lines[member].notice.send_offset);
}

/* And what it receives. */
static inline char *rueda_direct_made(const struct rueda_direct *direct,
                                      int member)
{
    const struct rueda_slab *slab = direct->slab;

    return rueda_segment_at(slab->segment,
                            slab->lines[member].notice.recv_offset);
}

/* The slab's number of block i. */
static inline uint64_t rueda_direct_block(const struct rueda_direct *direct,
                                          uint64_t i)
{
    return direct->first + i * direct->cells;
}

/* Where block i of a member lies. */
static inline char *rueda_direct_at(const struct rueda_direct *direct,
                                    int member, uint64_t i)
{
    return rueda_slab_at(direct->slab, member, rueda_direct_block(direct, i));
}

/* Where block i begins in the vector. */
static inline size_t rueda_direct_begin(const struct rueda_direct *direct,
                                        uint64_t i)
{
    uint64_t part = direct->shape->is_backward ? direct->blocks - 1 - i : i;

    return part * direct->block_bytes;
}

/* Is block i of mine streamed? */
static inline bool rueda_direct_streams(const struct rueda_direct *direct,
                                        uint64_t i)
{
    return direct->is_tried &&
           rueda_trial_way(&direct->slab->trial, direct->before + i) ==
               RUEDA_WAY_STREAM;
}

/* Write to my part of block i, which others are going to read. */
static inline void rueda_direct_write(const struct rueda_direct *direct,
                                      uint64_t i, void *dst, const void *src,
                                      size_t bytes)
{
    if (rueda_direct_streams(direct, i))
        rueda_host_stream(dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

/* The bytes of piece i, and of all before it; counts is one of the operation's
 * lists, or NULL. */
static inline size_t rueda_piece_bytes(const struct rueda_coll *coll,
                                       const size_t *counts, int i)
{
    return (counts != NULL ? counts[i] : coll->count) * coll->elem_bytes;
}

static inline size_t rueda_piece_offset(const struct rueda_coll *coll,
                                        const size_t *counts, int i)
{
    return rueda_chunk_listed(counts, coll->count, i).at * coll->elem_bytes;
}

/* The bytes of the longest piece. */
static inline size_t rueda_piece_longest(const struct rueda_direct *direct,
                                         const size_t *counts)
{
    const struct rueda_coll *coll = direct->coll;

    return rueda_chunk_longest(counts, coll->count, direct->slab->size) *
           coll->elem_bytes;
}

/* What is left of `bytes` from `begin` on, at most `most`. */
static inline size_t rueda_part(size_t bytes, size_t begin, size_t most)
{
    size_t left = bytes > begin ? bytes - begin : 0;

    return left < most ? left : most;
}

#endif /* RUEDA_ALGO_DIRECT_H */
