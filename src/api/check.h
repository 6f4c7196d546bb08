/* SPDX-License-Identifier: Apache-2.0 */
/* Are the arguments of a collective possible at all? Any thread. */
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

/* Does the program know of compression? */
static inline bool rueda_has_compression(const struct rueda_coll_args *args)
{
    return args->struct_size >= offsetof(struct rueda_coll_args, compression) +
                                    sizeof(args->compression);
}

/* RUEDA_OK, or a failure with a message in error. */
rueda_status rueda_check_coll(const struct rueda_limits *limits,
                              const struct rueda_coll_args *args,
                              struct rueda_text *error);

/* Are these valid, whatever the kind? */
static inline bool rueda_numbers_are_plain(rueda_dtype dtype,
                                           rueda_reduction reduction,
                                           rueda_compression compression)
{
    return rueda_dtype_bytes(dtype) > 0 &&
           (reduction == RUEDA_SUM || reduction == RUEDA_AVERAGE) &&
           compression == RUEDA_COMPRESS_NONE;
}

/* The type, the reduction and the compression alone. */
rueda_status rueda_check_numbers(const struct rueda_coll_args *args,
                                 struct rueda_text *error);

#endif /* RUEDA_API_CHECK_H */
