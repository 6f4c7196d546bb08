/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank says of an operation, so that the others can compare it with what
 * they say. Nothing here is of one rank alone but the rows of what it gathers.
 */
#ifndef RUEDA_OP_REQUEST_H
#define RUEDA_OP_REQUEST_H

#include <rueda/rueda.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/line.h"

/* Beside the kinds of rueda.h: changes of process sets, agreed upon by all
 * ranks of the job like any other operation, and the end of a private set,
 * agreed upon by its members. */
enum {
    RUEDA_SET_ADD = RUEDA_RECV + 1,
    RUEDA_SET_DROP,
    RUEDA_SET_CLOSE,

    /* And calls of one rank, of which the others hear in another way. */
    RUEDA_TIMELINE_START,
    RUEDA_TIMELINE_STOP,

    /* The beginning of a private set, of which its members hear by messages. */
    RUEDA_SET_OPEN,

    /* A boundary of the program, at which the number of ranks may change. */
    RUEDA_STEP,
};

struct rueda_request {
    /* What two ranks compare, except the shape; without padding, so that one
     * memcmp() finds equal ones (compare.h). */
    int kind; /* rueda_kind, or one of the above */
    rueda_dtype dtype;
    rueda_reduction reduction;
    rueda_compression compression;
    int root; /* a rank of the job; -1: the kind has none */
    int device;
    int priority;
    unsigned flags;
    double prescale;
    double postscale;

    /* Those of a group have the same number and the same count; 0: none. */
    uint64_t group;
    uint32_t group_count;

    uint32_t dims;

    /* Operations are matched by name, or by number among those without. */
    const char *name; /* NULL: none */
    uint64_t number;
    uint64_t hash; /* rueda_name_hash() of the name; 0: not computed yet */

    uint64_t shape[RUEDA_MAX_DIMS]; /* what is behind dims means nothing */
};

/* What a name is looked for by; never 0. */
static inline uint64_t rueda_name_hash(const char *name, size_t len)
{
    uint64_t hash = rueda_hash(name, len, 0);

    return hash != 0 ? hash : 1;
}

/* One of this kind that says nothing else. */
static inline void rueda_request_init(struct rueda_request *self, int kind)
{
    self->kind = kind;
    self->dtype = RUEDA_UINT8;
    self->reduction = RUEDA_SUM;
    self->compression = RUEDA_COMPRESS_NONE;
    self->root = -1;
    self->device = RUEDA_DEVICE_HOST;
    self->priority = 0;
    self->flags = 0;
    self->prescale = 1;
    self->postscale = 1;
    self->group = 0;
    self->group_count = 0;
    self->dims = 0;
    self->name = NULL;
    self->number = 0;
    self->hash = 0;
}

/* Is the tensor in the memory of an accelerator? */
static inline bool rueda_request_is_away(const struct rueda_request *self)
{
    return self->device != RUEDA_DEVICE_HOST;
}

static inline bool rueda_request_is_local(const struct rueda_request *self)
{
    return self->kind >= RUEDA_TIMELINE_START;
}

/* Do rows, the first dimension, differ between ranks? */
static inline bool rueda_request_has_free_rows(const struct rueda_request *self)
{
    return self->kind == RUEDA_ALLGATHER || self->kind == RUEDA_ALLTOALL;
}

/* Elements of all dimensions; of all but the first. */
static inline size_t rueda_request_row(const struct rueda_request *self)
{
    size_t count = 1;

    for (uint32_t i = 1; i < self->dims; i++)
        count *= self->shape[i];
    return count;
}

static inline size_t rueda_request_count(const struct rueda_request *self)
{
    return self->dims > 0 ? self->shape[0] * rueda_request_row(self) : 1;
}

static inline size_t rueda_request_bytes(const struct rueda_request *self)
{
    return rueda_request_count(self) * rueda_dtype_bytes(self->dtype);
}

#endif /* RUEDA_OP_REQUEST_H */
