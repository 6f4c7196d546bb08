/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets: lists of ranks that run collectives among themselves.
 *
 * A table belongs to one rank. Set 0 has all ranks and stays. All ranks make
 * the same changes in the same order (the callers ensure that), so that a
 * set has the same id everywhere; ids grow and are never used again, so that
 * a late message cannot reach a set that came after its own.
 *
 * Memory only, nothing blocks. Not for several threads at once.
 */
#ifndef RUEDA_JOB_SET_H
#define RUEDA_JOB_SET_H

#include <rueda/rueda.h>

#include "base/text.h"

#define RUEDA_SET_GLOBAL 0
#define RUEDA_SET_MAX    1024 /* sets at a time, the global one included */

struct rueda_set {
    int id;
    int size;
    int me;           /* my index among the ranks, or -1: I am no member */
    const int *ranks; /* [size], ascending, no two the same */
};

struct rueda_set_table;

/* The table of `rank` in a job of `size`, with set 0; NULL without memory. */
struct rueda_set_table *rueda_set_table_new(int rank, int size);

/* All sets go with it. */
void rueda_set_table_free(struct rueda_set_table *table);

/*
 * A set of ranks[count], in any order; the list is copied. Refused with words
 * that name the rank or the set in the way, the table then being as it was:
 *
 *      RUEDA_ERR_INVALID  an empty list, a rank twice or out of range, or
 *                         the very ranks of a set that is there
 *      RUEDA_ERR_LIMIT    RUEDA_SET_MAX sets are there
 *      RUEDA_ERR_NOMEM
 */
rueda_status rueda_set_add(struct rueda_set_table *table, const int *ranks,
                           int count, int *out_id, struct rueda_text *error);

/* Remove a set; what find() gave for it is then no more. Refused with
 * RUEDA_ERR_INVALID for the global set and for ids that are not there. */
rueda_status rueda_set_remove(struct rueda_set_table *table, int id,
                              struct rueda_text *error);

/* How many there are, the global one included. */
int rueda_set_count(const struct rueda_set_table *table);

/* Valid until the set is removed; NULL where there is none. */
const struct rueda_set *rueda_set_find(const struct rueda_set_table *table,
                                       int id);

/* The index of a rank of the job in the set, or -1. */
int rueda_set_index(const struct rueda_set *set, int rank);

static inline bool rueda_set_has(const struct rueda_set *set, int rank)
{
    return rueda_set_index(set, rank) >= 0;
}

#endif /* RUEDA_JOB_SET_H */
