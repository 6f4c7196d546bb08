/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole numbers as bytes on a wire: little-endian, at any address. memcpy() is
 * how C reads a number where it is not aligned; compilers make one load of it.
 * The caller has checked that the bytes are there.
 */
#ifndef RUEDA_BASE_BYTES_H
#define RUEDA_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

/* To little-endian, and back. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RUEDA_LE16(value) (value)
#define RUEDA_LE32(value) (value)
#define RUEDA_LE64(value) (value)
#else
#define RUEDA_LE16(value) __builtin_bswap16(value)
#define RUEDA_LE32(value) __builtin_bswap32(value)
#define RUEDA_LE64(value) __builtin_bswap64(value)
#endif

static inline void rueda_put_u16(void *out, uint16_t value)
{
    const uint16_t bytes = RUEDA_LE16(value);

    memcpy(out, &bytes, sizeof(bytes));
}

static inline uint16_t rueda_get_u16(const void *in)
{
    uint16_t value;

    memcpy(&value, in, sizeof(value));
    return RUEDA_LE16(value);
}

static inline void rueda_put_u32(void *out, uint32_t value)
{
    const uint32_t bytes = RUEDA_LE32(value);

    memcpy(out, &bytes, sizeof(bytes));
}

static inline uint32_t rueda_get_u32(const void *in)
{
    uint32_t value;

    memcpy(&value, in, sizeof(value));
    return RUEDA_LE32(value);
}

static inline void rueda_put_u64(void *out, uint64_t value)
{
    const uint64_t bytes = RUEDA_LE64(value);

    memcpy(out, &bytes, sizeof(bytes));
}

static inline uint64_t rueda_get_u64(const void *in)
{
    uint64_t value;

    memcpy(&value, in, sizeof(value));
    return RUEDA_LE64(value);
}

#endif /* RUEDA_BASE_BYTES_H */
