/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs together. The coordinator asks which requests fit together in a
 * batch, and how much of the slab each takes. A batch is carried out in rounds
 * of tensors that are in the slab at the same time: usually one, more where an
 * allgather has more rows than the coordinator expected.
 *
 * Which tensors are in a round depends on what all members know, so that all
 * members choose the same. Where the tensors come from and go to is up to each
 * member.
 *
 * No clock, no message, and no byte of a tensor is touched here. A round is
 * used by one thread.
 */
#ifndef RUEDA_FUSE_ROUNDS_H
#define RUEDA_FUSE_ROUNDS_H

#include "device/device.h"
#include "fuse/layout.h"
#include "op/request.h"

/* Tensors of a batch, and of a round, at most. */
#define RUEDA_ROUND_MOST 4096

/* Larger tensors are broadcast one by one: to copy them into the slab and out
 * of it would take longer than a broadcast more. */
#define RUEDA_ROUND_BROADCAST_MOST ((size_t)32 << 10)

/* ---- What fits together ------------------------------------------------ */

/* May it run together with others? */
bool rueda_round_may_share(const struct rueda_request *request);

/* May these two run together, as far as they are concerned? */
bool rueda_round_fits(const struct rueda_request *a,
                      const struct rueda_request *b);

/* What a request takes of the slab; of an allgather as if all members brought
 * as many rows. Requests that fit the slab by the sum of this fit one round. */
size_t rueda_round_span(const struct rueda_request *request, int members);

/* ---- A round ----------------------------------------------------------- */

/* A tensor that lies in the slab by rows. */
struct rueda_tensor {
    const char *send; /* what this member gives; NULL: zeros */
    char *recv;       /* where its result goes; NULL: nowhere */
    size_t row_bytes;
    size_t rows; /* of all members together */
    size_t done; /* while it is packed: bytes of it so far */
};

struct rueda_round {
    rueda_kind kind;
    int members;
    int me;
    int root;    /* of a broadcast: the member that gives */
    int most;    /* tensors; 0: none shares a round */
    size_t room; /* bytes of the slab */
    char *slab;  /* where this round is in it */

    /* Borrowed, [most]. Of kinds that lie in the slab whole, the tensors are
     * in parts; of the others in tensors, and parts are for packing. */
    struct rueda_part *parts;
    struct rueda_tensor *tensors;

    /* The rows that members bring to an allgather: those of its tensor i and
     * member m are in rows[m * stride + i]. */
    const uint64_t *rows;
    int stride;

    int count;     /* tensors so far */
    size_t end;    /* of what they take, */
    size_t behind; /* and of a reduce-scatter's result, in bytes from there */
};

/* Does the kind lie in the slab whole? */
static inline bool rueda_round_is_whole(const struct rueda_round *round)
{
    return round->kind == RUEDA_ALLREDUCE || round->kind == RUEDA_BROADCAST;
}

/* One more tensor, which fits the ones before it; false, and nothing is
 * changed, if it cannot be in this round. Its send and recv are to be filled
 * in. */
bool rueda_round_add(struct rueda_round *round,
                     const struct rueda_request *request);

/* What the round takes of the slab. */
static inline size_t rueda_round_bytes(const struct rueda_round *round)
{
    return round->behind > 0 ? rueda_layout_span(round->end) + round->behind
                             : round->end;
}

/* The block of a member: in bytes, and where it begins in the slab. */
size_t rueda_round_block(const struct rueda_round *round, int member);
size_t rueda_round_begin(const struct rueda_round *round, int member);

/* The rows of a tensor that are in the block of a member. */
static inline size_t rueda_round_rows(const struct rueda_round *round,
                                      int tensor, int member)
{
    return round->kind == RUEDA_ALLGATHER
               ? (size_t)round->rows[member * round->stride + tensor]
               : rueda_layout_share(round->tensors[tensor].rows, round->members,
                                    member);
}

#endif /* RUEDA_FUSE_ROUNDS_H */
