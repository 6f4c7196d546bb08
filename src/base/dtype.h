/* SPDX-License-Identifier: Apache-2.0 */
/* rueda_dtype_size() where it is asked for every tensor, several times. */
#ifndef RUEDA_BASE_DTYPE_H
#define RUEDA_BASE_DTYPE_H

#include <rueda/rueda.h>

/* Of one number; 0: there is no such type. */
static inline size_t rueda_dtype_bytes(rueda_dtype dtype)
{
    static const unsigned char sizes[] = {
#define X(name, value, bytes, text) [value] = (bytes),
        RUEDA_DTYPE_MAP(X)
#undef X
    };

    return (unsigned)dtype < RUEDA_DTYPE_COUNT ? sizes[dtype] : 0;
}

/* The same to divide by: never 0. Types are checked before tensors are. */
static inline size_t rueda_dtype_divisor(rueda_dtype dtype)
{
    const size_t bytes = rueda_dtype_bytes(dtype);

    return bytes > 0 ? bytes : 1;
}

#endif /* RUEDA_BASE_DTYPE_H */
