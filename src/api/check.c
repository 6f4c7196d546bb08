/* SPDX-License-Identifier: Apache-2.0 */
/* Are the arguments of an ordered collective valid on this rank? */
#include "api/check.h"

/* Elements that a rank reads and writes, and where in recv its own part is. */
struct extent {
    size_t send;
    size_t recv;
    size_t own;
};

/* a += b; false if that is more than fits an address space. The largest type
 * has 8 bytes, so the bytes of what passes fit as well. */
static bool add(size_t *a, size_t b)
{
    return !__builtin_add_overflow(*a, b, a) && *a <= SIZE_MAX / 16;
}

/* The sum of a list of pieces, or size pieces of count; and of those before
 * rank. */
static bool total(const struct rueda_limits *limits, const size_t *counts,
                  size_t count, size_t *out_all, size_t *out_before)
{
    *out_all = 0;
    *out_before = 0;
    for (int i = 0; i < limits->size; i++) {
        if (i == limits->rank)
            *out_before = *out_all;
        if (!add(out_all, counts != NULL ? counts[i] : count))
            return false;
    }
    return true;
}

/* How many elements each kind reads and writes. False: the counts do not fit an
 * address space. */
static bool extent_of(const struct rueda_limits *limits,
                      const struct rueda_coll_args *args, struct extent *out)
{
    size_t before;

    out->own = 0;
    out->send = args->count;
    out->recv = args->count;
    switch (args->kind) {
    case RUEDA_ALLREDUCE:
    case RUEDA_BROADCAST:
        return args->count <= SIZE_MAX / 16;
    case RUEDA_ALLGATHER:
        return total(limits, args->recv_counts, args->count, &out->recv,
                     &out->own);
    case RUEDA_REDUCE_SCATTER:
        if (args->recv_counts != NULL)
            out->recv = args->recv_counts[limits->rank];
        return total(limits, args->recv_counts, args->count, &out->send,
                     &before);
    case RUEDA_ALLTOALL:
        return total(limits, args->send_counts, args->count, &out->send,
                     &before) &&
               total(limits, args->recv_counts, args->count, &out->recv,
                     &before);
    case RUEDA_BARRIER:
    case RUEDA_JOIN:
    case RUEDA_SEND:
    case RUEDA_RECV:
        out->send = 0;
        out->recv = 0;
    }
    return true;
}

/* Is this placement of send and recv allowed? Apart always is. In place is what
 * MPI calls so: one address for both, or of an allgather this rank's own part
 * of recv. */
static bool buffers_fit(const struct rueda_coll_args *args,
                        const struct extent *extent)
{
    size_t elem = rueda_dtype_bytes(args->dtype);
    const bool is_same = args->send == args->recv;

    if (extent->send == 0 || extent->recv == 0 ||
        rueda_are_apart(args->send, extent->send * elem, args->recv,
                        extent->recv * elem))
        return true;
    if (args->kind == RUEDA_ALLGATHER)
        return (uintptr_t)args->send ==
               (uintptr_t)args->recv + extent->own * elem;
    return is_same &&
           (args->kind == RUEDA_ALLREDUCE || args->kind == RUEDA_BROADCAST);
}

/* Type, reduction and factors must be ones that the arithmetic has. */
static rueda_status check_reduction(rueda_kind kind, rueda_dtype dtype,
                                    rueda_reduction reduction,
                                    struct rueda_text *error)
{
    if (rueda_dtype_bytes(dtype) == 0)
        rueda_text_set(error, "dtype %d is unknown", (int)dtype);
    else if ((unsigned)reduction >= RUEDA_REDUCTION_COUNT)
        rueda_text_set(error, "reduction %d is unknown", (int)reduction);
    else if (reduction == RUEDA_ADASUM && !rueda_dtype_is_float(dtype))
        rueda_text_set(error, "adasum takes floating types, not %s",
                       rueda_dtype_str(dtype));
    else if (reduction == RUEDA_ADASUM && kind != RUEDA_ALLREDUCE)
        rueda_text_set(error, "adasum is an allreduce, not a %s",
                       rueda_kind_str(kind));
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

rueda_status rueda_check_numbers(rueda_kind kind, rueda_dtype dtype,
                                 rueda_reduction reduction,
                                 rueda_compression compression,
                                 struct rueda_text *error)
{
    const rueda_status status = check_reduction(kind, dtype, reduction, error);
    const char *name;

    if (status != RUEDA_OK || compression == RUEDA_COMPRESS_NONE)
        return status;
    name = rueda_compression_str(compression);
    if ((unsigned)compression >= RUEDA_COMPRESSION_COUNT)
        rueda_text_set(error, "compression %d is unknown", (int)compression);
    else if (kind != RUEDA_ALLREDUCE)
        rueda_text_set(error, "compression %s is for allreduce, not for %s",
                       name, rueda_kind_str(kind));
    else if (dtype != RUEDA_FLOAT32 && dtype != RUEDA_FLOAT64)
        rueda_text_set(error,
                       "compression %s is for float32 and float64, not for %s",
                       name, rueda_dtype_str(dtype));
    else if (reduction != RUEDA_SUM && reduction != RUEDA_AVERAGE)
        rueda_text_set(error,
                       "compression %s is for sum and average, not for %s",
                       name, rueda_reduction_str(reduction));
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

/* The checks in the order in which they rely on each other: the size of the
 * struct before its fields, the kind before what depends on it. */
rueda_status rueda_check_coll(const struct rueda_limits *limits,
                              const struct rueda_coll_args *args,
                              struct rueda_text *error)
{
    const char *kind = rueda_kind_str(args->kind);
    bool is_sent = args->kind != RUEDA_BROADCAST || args->root == limits->rank;
    struct extent extent;

    if (args->struct_size < RUEDA_FIRST_COLL_ARGS_BYTES)
        rueda_text_set(error,
                       "struct_size of the arguments is %zu; initialise "
                       "them with RUEDA_COLL_ARGS_INIT",
                       args->struct_size);
    else if ((unsigned)args->kind >= RUEDA_KIND_COUNT)
        rueda_text_set(error, "kind %d is unknown", (int)args->kind);
    else if (args->flags != 0)
        rueda_text_set(error, "flags %#x are unknown", args->flags);
    else if (rueda_check_numbers(args->kind, args->dtype, args->reduction,
                                 rueda_compression_of(args), error) != RUEDA_OK)
        return RUEDA_ERR_INVALID;
    else if (args->kind == RUEDA_BROADCAST &&
             (args->root < 0 || args->root >= limits->size))
        rueda_text_set(error, "broadcast from root %d in a job of %d ranks",
                       args->root, limits->size);
    else if (args->kind == RUEDA_ALLTOALL &&
             (args->send_counts == NULL) != (args->recv_counts == NULL))
        rueda_text_set(error, "alltoall with only one of send_counts and "
                              "recv_counts; give both or neither");
    else if (!extent_of(limits, args, &extent))
        rueda_text_set(error, "%s of more elements than fit any memory", kind);
    else if ((is_sent && extent.send > 0 && args->send == NULL) ||
             (extent.recv > 0 && args->recv == NULL))
        rueda_text_set(error, "%s with %s NULL", kind,
                       extent.send > 0 && args->send == NULL ? "send" : "recv");
    else if (args->kind == RUEDA_ALLGATHER && args->recv_counts != NULL &&
             args->recv_counts[limits->rank] != args->count)
        rueda_text_set(error,
                       "allgather of %zu elements, but recv_counts[%d] "
                       "is %zu",
                       args->count, limits->rank,
                       args->recv_counts[limits->rank]);
    else if (is_sent && !buffers_fit(args, &extent))
        rueda_text_set(error, "%s: send and recv overlap; %s", kind,
                       args->kind == RUEDA_ALLGATHER
                           ? "in place, send is my own part of recv"
                           : "they must be the same for an allreduce or "
                             "broadcast in place, or apart");
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}
