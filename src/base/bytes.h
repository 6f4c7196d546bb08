/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as bytes on a wire: little-endian, at any address. */
#ifndef RUEDA_BASE_BYTES_H
#define RUEDA_BASE_BYTES_H

#include <stdint.h>

static inline void rueda_put_u16(void *out, uint16_t value)
{
    unsigned char *bytes = out;

    bytes[0] = (unsigned char)value;
    bytes[1] = (unsigned char)(value >> 8);
}

static inline uint16_t rueda_get_u16(const void *in)
{
    const unsigned char *bytes = in;

    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline void rueda_put_u32(void *out, uint32_t value)
{
    unsigned char *bytes = out;

    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static inline uint32_t rueda_get_u32(const void *in)
{
    const unsigned char *bytes = in;
    uint32_t value = 0;

    for (int i = 0; i < 4; i++)
        value |= (uint32_t)bytes[i] << 8 * i;
    return value;
}

static inline void rueda_put_u64(void *out, uint64_t value)
{
    rueda_put_u32(out, (uint32_t)value);
    rueda_put_u32((unsigned char *)out + 4, (uint32_t)(value >> 32));
}

static inline uint64_t rueda_get_u64(const void *in)
{
    return rueda_get_u32(in) |
           (uint64_t)rueda_get_u32((const unsigned char *)in + 4) << 32;
}

#endif /* RUEDA_BASE_BYTES_H */
