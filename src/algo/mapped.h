/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives between ranks of one host that map each other's memory of an
 * accelerator: each rank works straight on the buffers of all. mapped.c is the
 * algorithm, mapped_work.c what it gives the device to do, mapped_table.c keeps
 * what is mapped.
 *
 * Called like a task.
 */
#ifndef RUEDA_ALGO_MAPPED_H
#define RUEDA_ALGO_MAPPED_H

#include "algo/algo.h"

/* It can be tried here: the ranks share a segment, the device lets others map
 * its memory, and no member is missing. The same for all ranks. */
bool rueda_mapped_fits(const struct rueda_place *place,
                       const struct rueda_coll *coll);

/* Like `staged`, it is in no list. Where memory turns out to be out of reach
 * it hands the task to `staged`, on all ranks. */
extern const struct rueda_algo rueda_algo_mapped;

/* What it keeps for a place; NULL is allowed. No task runs. */
struct rueda_mapped;
void rueda_mapped_free(struct rueda_mapped *self);

/* ---- What is mapped ------------------------------------------------------ */

/* Allocations of one rank that the others have mapped, at most; and those that
 * one task can add. */
#define RUEDA_MAPPED_ROWS  64
#define RUEDA_MAPPED_FRESH 6

/* A buffer of a rank, as it tells the others. */
struct rueda_mapped_buffer {
    uint64_t id;  /* of its allocation, which is in */
    uint64_t row; /* this row of the rank's; */
    uint64_t at;  /* where it begins in the allocation */
};

/* What changes in the rows of a rank, as it tells the others. */
struct rueda_mapped_changes {
    uint64_t dropped; /* bits of rows whose memory is freed */
    uint64_t count;   /* of those that not all have mapped: */
    uint64_t rows[RUEDA_MAPPED_FRESH];
    struct rueda_shared memory[RUEDA_MAPPED_FRESH];
};

/* An allocation of mine. */
struct rueda_mapped_mine {
    struct rueda_shared memory; /* region.bytes 0: the row is free */
    bool is_mapped;             /* by all others */
    uint64_t used;              /* in the task of this number */
};

/* One of another rank. */
struct rueda_mapped_theirs {
    struct rueda_shared memory;
    void *at; /* NULL: the row is free */
};

struct rueda_mapped_table {
    const struct rueda_device *device;
    int size;
    int me;
    uint64_t task; /* counted from 1 */
    struct rueda_mapped_mine mine[RUEDA_MAPPED_ROWS];
    struct rueda_mapped_theirs *theirs; /* [size * RUEDA_MAPPED_ROWS] */
};

rueda_status rueda_mapped_table_init(struct rueda_mapped_table *table,
                                     const struct rueda_device *device,
                                     int size, int me);

/* Lets go of all that it has mapped; no kernel uses it. */
void rueda_mapped_table_fini(struct rueda_mapped_table *table);

/*
 * Describe a buffer of mine for the others, and add to the changes what they
 * need for it. RUEDA_ERR_LIMIT: the task has too many of them. Otherwise why
 * says why others cannot map it.
 */
rueda_status rueda_mapped_offer(struct rueda_mapped_table *table,
                                const void *buffer,
                                struct rueda_mapped_buffer *out,
                                struct rueda_mapped_changes *changes,
                                struct rueda_text *why);

/* All have mapped what I have offered. */
void rueda_mapped_taken(struct rueda_mapped_table *table,
                        const struct rueda_mapped_changes *changes);

/* Let go of what another rank has freed. */
void rueda_mapped_drop(struct rueda_mapped_table *table, int member,
                       uint64_t rows);

/* Map what is new of another rank. May block. */
rueda_status rueda_mapped_take(struct rueda_mapped_table *table, int member,
                               const struct rueda_mapped_changes *changes,
                               struct rueda_text *why);

/* Where a buffer of another rank is here; NULL: it has not been mapped, or is
 * shorter. */
void *rueda_mapped_at(const struct rueda_mapped_table *table, int member,
                      const struct rueda_mapped_buffer *buffer, size_t bytes);

#endif /* RUEDA_ALGO_MAPPED_H */
