/* SPDX-License-Identifier: Apache-2.0 */
/* A number that stands for some bytes; the same on every machine. Not for
 * bytes that somebody chooses in order to do harm. */
#ifndef RUEDA_BASE_HASH_H
#define RUEDA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* The last steps of splitmix64 (Steele, Lea, Flood 2014): every bit of the
 * input changes about half of the output. */
static inline uint64_t rueda_hash_mix(uint64_t value)
{
    value ^= value >> 30;
    value *= 0xbf58476d1ce4e5b9u;
    value ^= value >> 27;
    value *= 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static inline uint64_t rueda_hash(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t hash = rueda_hash_mix(seed + len);
    uint64_t last = 0;

    if (len >= 8) {
        for (; len > 8; at += 8, len -= 8)
            hash = rueda_hash_mix(hash ^ rueda_get_u64(at));
        /* The last eight bytes, some of them perhaps once more. */
        return rueda_hash_mix(hash ^ rueda_get_u64(at + len - 8));
    }
    for (size_t i = 0; i < len; i++)
        last |= (uint64_t)at[i] << 8 * i;
    return rueda_hash_mix(hash ^ last);
}

#endif /* RUEDA_BASE_HASH_H */
