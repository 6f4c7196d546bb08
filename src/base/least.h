/* SPDX-License-Identifier: Apache-2.0 */
/* The lesser of two sizes, and the earlier of two times. */
#ifndef RUEDA_BASE_LEAST_H
#define RUEDA_BASE_LEAST_H

#include <stddef.h>
#include <stdint.h>

static inline size_t rueda_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline int64_t rueda_sooner(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

#endif /* RUEDA_BASE_LEAST_H */
