/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number that stands for some bytes; the same on every machine, as ranks
 * compare it. Not for bytes that an attacker chooses: with the constants known
 * it is easy to make two texts of one number.
 */
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

/* Both halves of a product, as wyhash makes them one (Wang Yi, 2019): quicker
 * than mixing twice, and every bit of both numbers counts. */
static inline uint64_t rueda_hash_fold(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* wyhash's way through the bytes: 16 at a time, then the last 16 or what there
 * is, which may overlap. The length is part of the result, so that zeros at the
 * end count. */
static inline uint64_t rueda_hash(const void *bytes, size_t len, uint64_t seed)
{
    const uint64_t first = 0xa0761d6478bd642fu;
    const uint64_t second = 0xe7037ed1a0b428dbu;
    const unsigned char *at = bytes;
    const unsigned char *end = at + len;
    uint64_t hash = seed ^ first;
    uint64_t a = 0;
    uint64_t b = 0;

    for (; end - at > 16; at += 16)
        hash = rueda_hash_fold(rueda_get_u64(at) ^ second,
                               rueda_get_u64(at + 8) ^ hash);
    if (len > 16)
        at = end - 16; /* some of them once more */
    if (end - at >= 8) {
        a = rueda_get_u64(at);
        b = rueda_get_u64(end - 8);
    } else {
        for (size_t i = 0; i < len; i++)
            a |= (uint64_t)at[i] << 8 * i;
    }
    return rueda_hash_fold(second ^ len, rueda_hash_fold(a ^ second, b ^ hash));
}

#endif /* RUEDA_BASE_HASH_H */
