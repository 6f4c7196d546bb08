/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hierarchy of a place whose members are on several hosts: the members on
 * my host, the members on other hosts that carry the same slice as I do, and
 * what the algorithm `hier` keeps between operations.
 *
 * It belongs to its place: made with it, on any thread, and used by the thread
 * that holds the engine's token.
 */
#ifndef RUEDA_ALGO_HIER_H
#define RUEDA_ALGO_HIER_H

#include "algo/select.h"

/* Two levels, and the work of each goes on by itself. */
enum {
    RUEDA_HIER_LOCAL, /* among the members of my host */
    RUEDA_HIER_CROSS, /* among those of my slice, one a host */
    RUEDA_HIER_LEVELS,
};

/* Blocks that are between their first stage and their last. */
#define RUEDA_HIER_BUFFERS 2

struct rueda_hier_level {
    struct rueda_mesh mesh; /* a view of the place's */
    struct rueda_place place;
    struct rueda_task task; /* one at a time */
    bool is_running;
};

struct rueda_hier {
    const struct rueda_select *select;
    int hosts;
    int carriers; /* slices of a block: the least number of members of any host
                   */
    int most;     /* the largest */

    /* My place on my host. Beyond the carriers there is no slice for me, and no
     * cross level. */
    int index;
    size_t *counts; /* [local size] of the slices of the block at hand */

    /* For an allgather, where the members of each host follow one another, as
     * NULL says that they do not: the first member of each, my host's place
     * among them, where the data of each begin, and what each gives to the
     * block at hand. */
    int *firsts; /* [hosts + 1] */
    int host;
    size_t *starts;       /* [hosts + 1] */
    size_t *cross_counts; /* [hosts] */
    struct rueda_hier_level level[RUEDA_HIER_LEVELS];

    /* My slices of some blocks, one of them as it travels if it is compressed,
     * and the scratch memory of the cross level: private, mapped once, costs
     * nothing until it is touched. */
    char *memory;
    size_t memory_bytes;
    size_t slice_bytes; /* the most of one */
    char *buffers[RUEDA_HIER_BUFFERS];
    char *wire;

    /* Parts of a result, by the rank of my host that has them. */
    struct rueda_part *parts;
    size_t part_room;
};

struct rueda_hier_args {
    const int *hosts; /* [size] a number for the host of each member, from 0 */
    int host_limit;   /* up to, but without this; not all need be there */
    struct rueda_slab *slab;           /* of the members of my host, or NULL */
    const struct rueda_select *select; /* for both levels; borrowed */
};

/*
 * The hierarchy of a place, whose mesh and scratch memory it borrows; NULL in
 * *out, and success, where all members are on one host. Members of a host are
 * counted in the order of ranks, on all of them alike. On failure
 * (RUEDA_ERR_NOMEM) nothing is left.
 */
rueda_status rueda_hier_new(const struct rueda_place *place,
                            const struct rueda_hier_args *args,
                            struct rueda_hier **out);

/* Before the place's mesh; NULL is allowed. */
void rueda_hier_free(struct rueda_hier *hier);

static inline bool rueda_hier_has_slice(const struct rueda_hier *hier)
{
    return hier->index < hier->carriers;
}

/* ---- For both kinds ----------------------------------------------------- */

/* Into how many blocks `count` elements are cut, so that a rank's slice of one
 * takes `most` bytes or less; the same on all ranks. */
size_t rueda_hier_blocks(const struct rueda_task *task, size_t count,
                         size_t most);

/* Begin a stage on a level that runs none, and see how it stands; see how one
 * stands that runs. RUEDA_OK: it has ended. */
rueda_status rueda_hier_start(struct rueda_task *task, int level,
                              const struct rueda_coll *coll);
rueda_status rueda_hier_go_on(struct rueda_task *task, int level);

/* What one level can do now. RUEDA_IN_PROGRESS: nothing. */
typedef rueda_status rueda_hier_step(struct rueda_task *task);

/* Take steps on both levels until neither can do more. RUEDA_OK, or the first
 * error. */
rueda_status rueda_hier_move(struct rueda_task *task, rueda_hier_step *cross,
                             rueda_hier_step *local);

/* The allgather (hier_gather.c), as post() and progress() of the algorithm. */
rueda_status rueda_hier_gather_post(struct rueda_task *task);
rueda_status rueda_hier_gather_progress(struct rueda_task *task);

/* Does this task wait for others in shared memory, in one of its stages? */
static inline bool rueda_hier_shares(const struct rueda_task *task)
{
    return task->algo->needs_hier &&
           task->place->hier->level[RUEDA_HIER_LOCAL].place.slab != NULL;
}

#endif /* RUEDA_ALGO_HIER_H */
