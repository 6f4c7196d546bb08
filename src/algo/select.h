/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm runs: a table of rows, each saying that for a kind, a range
 * of ranks and a range of sizes an algorithm is worth so much.
 *
 * All ranks of a process set must choose alike, so the choice depends only on
 * what all of them know: the kind, the number of ranks, whether they share
 * memory or are on several hosts, and these sizes:
 *
 *      allreduce, broadcast       bytes of the vector
 *      allgather, reducescatter   bytes of a rank's piece, on average
 *      alltoall, barrier          none, as no rank knows the others' pieces
 *
 * Rows can be added by a string, which wins over the built-in rows:
 *
 *      allreduce:0-4k:tree;allreduce:4k-inf@2-8:ring;broadcast:tree
 *
 * that is, rows of kind:sizes@ranks:algorithm separated by semicolons. Sizes
 * are bytes, with k, m or g for powers of 1024, from the first up to but
 * without the second, `inf` for no end; ranks are from-to, both counted in, or
 * one number. Both may be left out. Where several rows fit, the last one wins;
 * a row whose algorithm cannot run (no shared memory, one host, Adasum) does
 * not fit. `kind:flat` is not an algorithm: it excludes `hier` for this kind.
 * An algorithm serves some kinds of memory; that of the place counts. One that
 * the device brings is taken before all rows, and where messages do not reach
 * the tensors, `mapped` or else `staged` is taken in place of all rows, which
 * then count for the algorithm that it runs on the host. A compressed allreduce
 * between hosts goes to `hier`, whatever rows say.
 *
 * Any thread, as long as none changes the table.
 */
#ifndef RUEDA_ALGO_SELECT_H
#define RUEDA_ALGO_SELECT_H

#include "algo/algo.h"
#include "base/text.h"

enum rueda_select_where {
    RUEDA_SELECT_HOST = 1, /* members share a slab */
    RUEDA_SELECT_NET = 2,  /* they do not */
    RUEDA_SELECT_ANYWHERE = 3,
    RUEDA_SELECT_HOSTS = 4, /* nor are they one a host */
};

struct rueda_select_row {
    rueda_kind kind;
    int ranks_from;
    int ranks_to; /* counted in */
    size_t bytes_from;
    size_t bytes_to; /* not counted in; SIZE_MAX: no end */
    enum rueda_select_where where;
    const char *algo;
    int score; /* the highest wins, the later of equals */
};

#define RUEDA_SELECT_ADDED_ROWS 32

struct rueda_select {
    struct rueda_select_row added[RUEDA_SELECT_ADDED_ROWS];
    int added_count;
    unsigned flat; /* bits 1u << rueda_kind that do without `hier` */
};

/* The built-in rows, ended by one whose algo is NULL. */
extern const struct rueda_select_row rueda_select_defaults[];

/* The built-in rows only. */
void rueda_select_init(struct rueda_select *select);

/* Add the rows of text; empty rows are skipped. On failure, RUEDA_ERR_INVALID
 * with a message in error, and nothing is added. */
rueda_status rueda_select_parse(struct rueda_select *select, const char *text,
                                struct rueda_text *error);

/* Write the added rows as a string that can be parsed. Cut, never overrun;
 * returns the length that was needed, without the final zero. */
size_t rueda_select_format(const struct rueda_select *select, char *buf,
                           size_t size);

/* The algorithm for coll in this place. There is one for every kind where all
 * transports of the mesh reach the memory of the device; else NULL, unless the
 * device brings one that shares a slab. */
const struct rueda_algo *rueda_select_choose(const struct rueda_select *select,
                                             const struct rueda_place *place,
                                             const struct rueda_coll *coll);

#endif /* RUEDA_ALGO_SELECT_H */
