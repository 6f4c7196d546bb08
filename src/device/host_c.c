/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels in plain C, for any CPU. Vectors of 16 bytes suit SSE2 and NEON.
 * Where fp16 is converted with the help of fp32 arithmetic, no operand or
 * result is a denormal of fp32, so that a framework may have told the CPU to
 * flush those.
 */
#define VECTOR_BYTES 16
#include "device/host_vectors.h"

/* Four halves, zero extended. */
INLINED vu32 halves_load(const unsigned char *p)
{
    uint16_t half[4];

    memcpy(half, p, sizeof(half));
    return (vu32){half[0], half[1], half[2], half[3]};
}

INLINED void halves_store(unsigned char *p, vu32 v)
{
    const uint16_t half[4] = {(uint16_t)v[0], (uint16_t)v[1], (uint16_t)v[2],
                              (uint16_t)v[3]};

    memcpy(p, half, sizeof(half));
}

INLINED vu32 choose(vi32 condition, vu32 yes, vu32 no)
{
    return ((vu32)condition & yes) | (~(vu32)condition & no);
}

/* The exponent's bias is 15 in fp16 and 127 in fp32. A denormal is put behind
 * the one of 2^-14, which is then taken away. */
INLINED vf32 f16_load(const unsigned char *p)
{
    const uint32_t bias = 112u << 23;
    const uint32_t one = 113u << 23;
    const vu32 half = halves_load(p);
    const vu32 magnitude = (half & 0x7fffu) << 13;
    const vu32 special = magnitude + 2 * bias;
    const vf32 ones = (vf32)((vu32){0} + one);
    const vu32 denormal = (vu32)((vf32)(magnitude + one) - ones);
    vu32 bits = magnitude + bias;

    bits = choose((vi32)magnitude < (0x0400 << 13), denormal, bits);
    bits = choose((vi32)magnitude >= (0x7c00 << 13), special, bits);
    bits |= (vu32)((vi32)magnitude > (0x7c00 << 13)) & 0x00400000u; /* quiet */
    return (vf32)(bits | ((half & 0x8000u) << 16));
}

/* Adding 0.5, whose last bit is worth 2^-24, rounds to a denormal of fp16. In
 * the other numbers the carry of rounding goes on into the exponent. */
INLINED void f16_store(unsigned char *p, vf32 v)
{
    const uint32_t bias = 112u << 23;
    const uint32_t half = 126u << 23;
    const vu32 magnitude = (vu32)v & 0x7fffffffu;
    const vf32 halves = (vf32)((vu32){0} + half);
    const vu32 denormal = (vu32)((vf32)magnitude + halves) - half;
    const vu32 odd = (magnitude >> 13) & 1u;
    const vu32 nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    vu32 bits = (magnitude - bias + 0xfffu + odd) >> 13;

    bits = choose((vi32)magnitude < (113 << 23), denormal, bits);
    bits = choose((vi32)magnitude >= (143 << 23), (vu32){0} + 0x7c00u, bits);
    bits = choose((vi32)magnitude > 0x7f800000, nan, bits);
    halves_store(p, bits | (((vu32)v >> 16) & 0x8000u));
}

INLINED vf32 bf16_load_in_order(const unsigned char *p)
{
    return (vf32)(halves_load(p) << 16);
}

INLINED void bf16_store_in_order(unsigned char *p, vf32 v)
{
    halves_store(p, f32_round_to_bf16(v) >> 16);
}

INLINED void f32_widen(vf32 v, vf64 out[2])
{
    out[0] = (vf64){v[0], v[1]};
    out[1] = (vf64){v[2], v[3]};
}

#define KERNELS      rueda_kernels_c
#define KERNELS_NAME "c"
#include "device/host_template.h"
