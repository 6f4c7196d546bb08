/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of tensors in memory that no message and no other rank reaches,
 * such as a GPU's, by way of the host: chunks are copied to the host, another
 * algorithm works on them there, and the results are copied back.
 *
 * The staging belongs to the place of such tensors (struct rueda_place). It is
 * used by the thread that holds the engine's token.
 */
#ifndef RUEDA_ALGO_STAGED_H
#define RUEDA_ALGO_STAGED_H

#include "algo/mapped.h"
#include "algo/select.h"

/* Chunks that are between the first copy and the last. */
#define RUEDA_STAGED_DEPTH 3

/* Bytes of one: long enough that a copy runs at full speed. */
#define RUEDA_STAGED_CHUNK ((size_t)4 << 20)

/* A vector up to this length, in so few parts, is copied from and to where the
 * parts are. Then the accelerator computes nothing, which is quicker for it
 * than to start: the more so where it belongs to other ranks, too. */
#define RUEDA_STAGED_SHORT ((size_t)256 << 10)
#define RUEDA_STAGED_PARTS 8

struct rueda_staging {
    struct rueda_place *host; /* where the other algorithm works; borrowed */
    const struct rueda_select *select; /* chooses it; borrowed */
    const struct rueda_device *device; /* of the tensors; borrowed */
    struct rueda_task task;            /* of the other algorithm */

    struct rueda_mapped *mapped; /* of `mapped`, when first needed */

    /* On the host, from the device's alloc_host(), when first needed: chunks,
     * and what is not cut, which grows to the largest that came. */
    char *buffers[RUEDA_STAGED_DEPTH];
    char *whole;
    size_t whole_bytes;
};

/* NULL: no memory. */
struct rueda_staging *rueda_staging_new(struct rueda_place *host,
                                        const struct rueda_select *select,
                                        const struct rueda_device *device);

/* No task runs on it; NULL is allowed. */
void rueda_staging_free(struct rueda_staging *staging);

/* Chosen for every place that has a staging, if its device has no algorithm of
 * its own that can run, nor `mapped`. It is in no list. */
extern const struct rueda_algo rueda_algo_staged;

/* Is it an allreduce of so few bytes, in so few parts if it is in parts? */
static inline bool rueda_staged_is_short(const struct rueda_coll *coll)
{
    return coll->kind == RUEDA_ALLREDUCE &&
           coll->arith.reduction != RUEDA_ADASUM &&
           coll->count * coll->elem_bytes <= RUEDA_STAGED_SHORT &&
           (coll->parts == NULL || coll->part_count <= RUEDA_STAGED_PARTS);
}

/* The task that runs on the host for this one, or this one. */
static inline const struct rueda_task *
rueda_staged_inner(const struct rueda_task *task)
{
    return task->algo == &rueda_algo_staged || task->algo == &rueda_algo_mapped
               ? &task->place->staging->task
               : task;
}

#endif /* RUEDA_ALGO_STAGED_H */
