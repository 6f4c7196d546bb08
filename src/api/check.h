/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the arguments of a collective possible at all? What holds for those of
 * rueda_run() and of rueda_submit() alike is here. Any thread.
 */
#ifndef RUEDA_API_CHECK_H
#define RUEDA_API_CHECK_H

#include <rueda/rueda.h>

#include <stddef.h>

#include "base/dtype.h"
#include "base/text.h"

/* What arguments are checked against. */
struct rueda_limits {
    int rank;
    int size;
};

/* The size of the arguments in the first release, which never changes. */
#define RUEDA_FIRST_COLL_ARGS_BYTES 88

/* Programs that were compiled before the field existed ask for none. */
static inline rueda_compression
rueda_compression_of(const struct rueda_coll_args *args)
{
    return args->struct_size >= offsetof(struct rueda_coll_args, compression) +
                                    sizeof(args->compression)
               ? args->compression
               : RUEDA_COMPRESS_NONE;
}

/* RUEDA_OK, or a failure with a message in error. */
rueda_status rueda_check_coll(const struct rueda_limits *limits,
                              const struct rueda_coll_args *args,
                              struct rueda_text *error);

/* Are these valid, whatever the kind? */
static inline bool rueda_check_numbers_are_plain(rueda_dtype dtype,
                                                 rueda_reduction reduction,
                                                 rueda_compression compression)
{
    return rueda_dtype_bytes(dtype) > 0 &&
           (reduction == RUEDA_SUM || reduction == RUEDA_AVERAGE) &&
           compression == RUEDA_COMPRESS_NONE;
}

/* The type, the reduction and the compression for this kind. */
rueda_status rueda_check_numbers(rueda_kind kind, rueda_dtype dtype,
                                 rueda_reduction reduction,
                                 rueda_compression compression,
                                 struct rueda_text *error);

/* Do these pieces of memory have no byte in common? */
static inline bool rueda_are_apart(const void *a, size_t a_bytes, const void *b,
                                   size_t b_bytes)
{
    return (uintptr_t)a + a_bytes <= (uintptr_t)b ||
           (uintptr_t)b + b_bytes <= (uintptr_t)a;
}

#endif /* RUEDA_API_CHECK_H */
