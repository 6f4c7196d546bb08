/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation by name: what was asked for, and what came of it.
 *
 * It belongs to who submits it until it is pushed, then to the holder of the
 * engine's token until its status leaves RUEDA_IN_PROGRESS, then to the owner
 * of its handle.
 */
#ifndef RUEDA_OP_NAMED_H
#define RUEDA_OP_NAMED_H

#include "op/op.h"
#include "op/request.h"

/* Shorter names need no memory of their own. */
#define RUEDA_SHORT_NAME_BYTES 64

struct rueda_named {
    struct rueda_op op; /* first, so that a queue can carry both kinds */
    struct rueda_request request;
    int set;
    const void *send;
    void *recv;
    size_t *splits; /* [members] of its own, or NULL: equal parts */
    int peer;
    int tag;
    void *stream;
    rueda_alloc_fn alloc;
    void *alloc_arg;

    /* The ranks of a set to be made, or the id of one to be dropped. */
    int *ranks;
    int rank_count;

    char short_name[RUEDA_SHORT_NAME_BYTES];
    char *long_name; /* of its own, or NULL */

    /* Results. */
    void *data;
    size_t rows;
    size_t *rows_from; /* [members] of its own, or NULL */
    int last_rank;
    int made_set;
    char *error; /* of its own, or NULL */
};

#endif /* RUEDA_OP_NAMED_H */
