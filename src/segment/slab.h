/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the segment in which the members of a process set exchange data:
 * a few lines, a ring of cells and some trays for each member. A member writes
 * its own lines and ring, and reads the others'.
 *
 * Cells are numbered from 0 through the whole life of the slab, in the same way
 * by every member; number k lies at place k % RUEDA_CELLS of the ring. A block
 * of data takes some cells in a row, a power of two, and is named by the first,
 * which is a multiple of their number, so that no block meets the ring's end.
 * `posted` and `reduced` are one more than the last block that a member has put
 * into its ring, and of which it has finished its part. What is counted is in
 * place: the counters are stored with release and read with acquire.
 *
 * The ring is larger than a core's own cache on purpose. A line that is written
 * again should have left the caches of the cores that read it last, and lie in
 * the one that they share: taking it from there is several times faster than
 * taking it out of another core's hands.
 *
 * A tray holds a block that its owner hands out and gets back: others write in
 * it, too. Trays are few, so that all that is on them stays in the caches of
 * the cores that work on it.
 *
 * Which rank uses a cell or a tray, and when it may be written again, is the
 * algorithm's business (algo/direct.c).
 */
#ifndef RUEDA_SEGMENT_SLAB_H
#define RUEDA_SEGMENT_SLAB_H

#include <rueda/rueda.h>

#include <stdatomic.h>

#include "segment/segment.h"
#include "segment/trial.h"

#define RUEDA_CELLS       256
#define RUEDA_BLOCK_CELLS 16 /* in a block at most */
#define RUEDA_TRAYS       3  /* of a member; each takes the longest block */
#define RUEDA_TINY_LINES  2
#define RUEDA_TINY_BYTES  56

/* One cache line that carries a number and a few bytes at once. */
struct rueda_tiny {
    _Alignas(128) _Atomic uint64_t number;
    unsigned char bytes[RUEDA_TINY_BYTES];
};

/* What a member shows of an operation before its first block. */
struct rueda_notice {
    _Alignas(128) _Atomic uint64_t number;
    bool is_shared;       /* others can reach its buffers: */
    uint64_t send_offset; /* where they are in the segment */
    uint64_t recv_offset;
    uint64_t blocks; /* how many it needs */
};

struct rueda_slab_line {
    _Alignas(128) _Atomic uint64_t posted;
    _Alignas(128) _Atomic uint64_t reduced;
    _Atomic uint64_t
        returned; /* as posted: I no longer read the others' buffers */
    struct rueda_notice notice;
    struct rueda_tiny tiny[RUEDA_TINY_LINES];
};

/* In all the blocks that had this pile: how many slices were asked for, those
 * included that were no longer there, and how many are done. */
struct rueda_pile {
    _Alignas(128) _Atomic uint64_t taken;
    _Alignas(128) _Atomic uint64_t done;
};

/* How far all others have come with one of their counters: every one is known
 * to be at least `reached`, and those of members below `at` to be beyond the
 * block that was last asked for. */
struct rueda_cursor {
    uint64_t reached;
    int at;
};

/* One member's view. */
struct rueda_slab {
    struct rueda_segment *segment;
    const int *members; /* [size] their places in the segment; borrowed; NULL:
                           all of them */
    int rank;           /* in the set */
    int size;
    struct rueda_slab_line *lines; /* [size] */
    struct rueda_pile *piles;      /* [RUEDA_TRAYS] */
    char *rings;
    char *trays;
    size_t cell_bytes;
    uint64_t next;       /* the number of the next free cell */
    uint64_t tinies;     /* how many tiny exchanges there were */
    uint64_t piles_used; /* how many blocks had a pile */
    uint64_t lent;       /* members that have returned this read none of mine */
    struct rueda_cursor posted;
    struct rueda_cursor reduced;
    struct rueda_cursor returned;
    struct rueda_trial trial;
};

/* Bytes of a slab for `size` members. */
size_t rueda_slab_bytes(int size, size_t cell_bytes);

/* Look at the slab of all members of the segment; at is zeroed memory in it,
 * the same for all. */
void rueda_slab_init(struct rueda_slab *slab, struct rueda_segment *segment,
                     void *at, size_t cell_bytes);

/* The same for some of them: members[size] are their places in the segment, in
 * the order of their ranks, and borrowed; mine is among them. */
void rueda_slab_init_some(struct rueda_slab *slab,
                          struct rueda_segment *segment, const int *members,
                          int size, void *at, size_t cell_bytes);

/* Where a member's block lies. */
static inline char *rueda_slab_at(const struct rueda_slab *slab, int member,
                                  uint64_t block)
{
    uint64_t cell = (uint64_t)member * RUEDA_CELLS + block % RUEDA_CELLS;

    return slab->rings + cell * slab->cell_bytes;
}

/* Where a member's tray for a block lies, if the blocks are counted. */
static inline char *rueda_slab_tray(const struct rueda_slab *slab, int member,
                                    uint64_t number)
{
    uint64_t which = (uint64_t)member * RUEDA_TRAYS + number % RUEDA_TRAYS;

    return slab->trays + which * RUEDA_BLOCK_CELLS * slab->cell_bytes;
}

/* Have all others posted (or reduced) this block? */
bool rueda_slab_all_posted(struct rueda_slab *slab, uint64_t block);
bool rueda_slab_all_reduced(struct rueda_slab *slab, uint64_t block);

/* Has this one? */
bool rueda_slab_has_posted(const struct rueda_slab *slab, int member,
                           uint64_t block);

/* My block is in its place (or reduced); wakes members that sleep. */
void rueda_slab_post(struct rueda_slab *slab, uint64_t block);
void rueda_slab_post_reduced(struct rueda_slab *slab, uint64_t block);

/*
 * The slices of a block, as many as there are members; the members that come
 * first do them. Such blocks have piles that are counted through the life of
 * the slab, in the same way by every member. A member takes slices and does
 * them, until it gets -1: there are no more. It gets that before it posts the
 * next block but one. A member that has seen that all are done sees what was
 * written in them.
 */
int rueda_slab_take_slice(struct rueda_slab *slab, uint64_t pile);
void rueda_slab_did_slice(struct rueda_slab *slab, uint64_t pile);
bool rueda_slab_did_all_slices(const struct rueda_slab *slab, uint64_t pile);

/*
 * A tiny exchange: my bytes and the number of a block in one line, and those of
 * all others. Every member takes part in each of them and waits for all, so
 * when the next but one begins, all have read the lines of this one.
 */
void rueda_slab_post_tiny(struct rueda_slab *slab, uint64_t block,
                          const void *bytes, size_t len);
bool rueda_slab_all_tiny(struct rueda_slab *slab, uint64_t block);

/* What a member has put into the exchange that was posted last. */
static inline const unsigned char *
rueda_slab_tiny(const struct rueda_slab *slab, int member)
{
    size_t which = (slab->tinies - 1) % RUEDA_TINY_LINES;

    return slab->lines[member].tiny[which].bytes;
}

/* Show a notice for the operation that begins with this block; and have all
 * members, myself included, shown theirs? */
void rueda_slab_post_notice(struct rueda_slab *slab, uint64_t block,
                            const struct rueda_notice *notice);
bool rueda_slab_all_noticed(const struct rueda_slab *slab, uint64_t block);

/*
 * lend(): the operation that begins with this block, whose notice I show, is
 * over for me, and I no longer read the others' buffers. Others may still read
 * mine, and the notice. The next function asks whether they are done, so that
 * both may be written again, or freed. A member that leaves the slab reads
 * nothing any more.
 */
void rueda_slab_lend(struct rueda_slab *slab, uint64_t block);
bool rueda_slab_is_back(struct rueda_slab *slab);
void rueda_slab_leave(struct rueda_slab *slab);

/* I do not look at the slab again, nor does any other member: its memory can be
 * freed. */
void rueda_slab_forget(struct rueda_slab *slab);
bool rueda_slab_is_forgotten(const struct rueda_slab *slab);

/* Is the notice that this member shows now the one of that operation? */
bool rueda_slab_has_notice(const struct rueda_slab *slab, int member,
                           uint64_t block);

#endif /* RUEDA_SEGMENT_SLAB_H */
