/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of one register, and what a kernel does with them.
 *
 * An implementation defines VECTOR_BYTES, the width of its registers, and
 * includes this file. Vectors are the compiler's own (vector_size), so that
 * arithmetic is written with the operators of C; intrinsics are needed only to
 * widen and narrow floats, and the implementation adds those. Where a vector
 * has to be looked at as another type of the same size, it is cast.
 *
 * For each element, a way to hold one dtype in registers, there are
 *
 *      <element>_load(p)        a vector from unaligned memory
 *      <element>_store(p, v)    and back
 *      <element>_join(r, a, b)  a (+) b under reduction r, which is a constant
 *                            wherever this is inlined
 *      <element>_times(v, x)    x * v, for floats
 */
#ifndef RUEDA_DEVICE_HOST_VECTORS_H
#define RUEDA_DEVICE_HOST_VECTORS_H

#include <stdint.h>
#include <string.h>

#include <rueda/rueda.h>

#define INLINED      static inline __attribute__((always_inline, unused))
#define VECTOR(type) type __attribute__((vector_size(VECTOR_BYTES)))

typedef VECTOR(uint8_t) vu8;
typedef VECTOR(uint16_t) vu16;
typedef VECTOR(uint32_t) vu32;
typedef VECTOR(uint64_t) vu64;
typedef VECTOR(int8_t) vi8;
typedef VECTOR(int16_t) vi16;
typedef VECTOR(int32_t) vi32;
typedef VECTOR(int64_t) vi64;
typedef VECTOR(float) vf32;
typedef VECTOR(double) vf64;

/* Loads and stores of a dtype that is held as it lies in memory. */
#define PLAIN_VEC(element, vec)                                                \
    INLINED vec element##_load(const unsigned char *p)                         \
    {                                                                          \
        vec v;                                                                 \
        memcpy(&v, p, sizeof(v));                                              \
        return v;                                                              \
    }                                                                          \
    INLINED void element##_store(unsigned char *p, vec v)                      \
    {                                                                          \
        memcpy(p, &v, sizeof(v));                                              \
    }

/* Integers are held unsigned, so that they wrap, and compared as what they
 * are. A comparison of vectors gives all ones or all zeros in each element. */
#define INTEGER_VEC(element, vec, compared)                                    \
    PLAIN_VEC(element, vec)                                                    \
    INLINED vec element##_join(rueda_reduction r, vec a, vec b)                \
    {                                                                          \
        const vec less = (vec)((compared)a < (compared)b);                     \
        switch (r) {                                                           \
        case RUEDA_MIN:                                                        \
            return (a & less) | (b & ~less);                                   \
        case RUEDA_MAX:                                                        \
            return (b & less) | (a & ~less);                                   \
        case RUEDA_PRODUCT:                                                    \
            return a * b;                                                      \
        default:                                                               \
            return a + b;                                                      \
        }                                                                      \
    }

INTEGER_VEC(u8, vu8, vu8)
INTEGER_VEC(i8, vu8, vi8)
INTEGER_VEC(u16, vu16, vu16)
INTEGER_VEC(i16, vu16, vi16)
INTEGER_VEC(i32, vu32, vi32)
INTEGER_VEC(i64, vu64, vi64)

/* For a minimum or maximum, a is kept if it is the smaller or greater one or
 * NaN; else b is taken, which may be NaN as well. bits is the type of a
 * comparison's result. */
#define FLOAT_VEC(element, vec, bits, number)                                  \
    PLAIN_VEC(element, vec)                                                    \
    INLINED bits element##_is_nan(vec v)                                       \
    {                                                                          \
        return v != v;                                                         \
    }                                                                          \
    INLINED vec element##_times(vec v, number factor)                          \
    {                                                                          \
        return v * factor;                                                     \
    }                                                                          \
    INLINED vec element##_join(rueda_reduction r, vec a, vec b)                \
    {                                                                          \
        bits keep;                                                             \
        switch (r) {                                                           \
        case RUEDA_MIN:                                                        \
            keep = (a < b) | element##_is_nan(a);                              \
            break;                                                             \
        case RUEDA_MAX:                                                        \
            keep = (a > b) | element##_is_nan(a);                              \
            break;                                                             \
        case RUEDA_PRODUCT:                                                    \
            return a * b;                                                      \
        default:                                                               \
            return a + b;                                                      \
        }                                                                      \
        return (vec)(((bits)a & keep) | ((bits)b & ~keep));                    \
    }

FLOAT_VEC(f32, vf32, vi32, float)
FLOAT_VEC(f64, vf64, vi64, double)

INLINED vu8 flag_load(const unsigned char *p)
{
    return (vu8)(u8_load(p) != 0) & 1;
}

INLINED void flag_store(unsigned char *p, vu8 v)
{
    u8_store(p, v);
}

INLINED vu8 flag_join(rueda_reduction r, vu8 a, vu8 b)
{
    return r == RUEDA_MIN || r == RUEDA_PRODUCT ? (a & b) : (a | b);
}

/* A NaN of fp32 with its quiet bit set; other numbers as they are. */
INLINED vu32 f32_quiet(vf32 v)
{
    return (vu32)v | ((vu32)f32_is_nan(v) & 0x00400000u);
}

/* Round each fp32 to bf16, nearest even, in the upper 16 bits of the result;
 * the lower ones are left over. A NaN gets no carry, which could run through
 * its ones, but the quiet bit. */
INLINED vu32 f32_round_to_bf16(vf32 v)
{
    const vu32 nan = (vu32)f32_is_nan(v);
    const vu32 bits = (vu32)v;
    const vu32 carry = 0x7fffu + ((bits >> 16) & 1u);

    return (bits + (carry & ~nan)) | (nan & 0x00400000u);
}

/*
 * A register full of bf16 is two registers of fp32, and it is cheapest to take
 * the numbers at even places from the lower halves of 32-bit words and those at
 * odd places from the upper halves: no number changes its element. The words
 * are little endian.
 */
struct vbf16 {
    vf32 even;
    vf32 odd;
};

INLINED struct vbf16 vbf16_load(const unsigned char *p)
{
    return (struct vbf16){f32_load(p), f32_load(p + VECTOR_BYTES)};
}

INLINED void vbf16_store(unsigned char *p, struct vbf16 v)
{
    f32_store(p, v.even);
    f32_store(p + VECTOR_BYTES, v.odd);
}

INLINED struct vbf16 bf16_load(const unsigned char *p)
{
    vu32 v;

    memcpy(&v, p, sizeof(v));
    return (struct vbf16){(vf32)(v << 16), (vf32)(v & 0xffff0000u)};
}

INLINED void bf16_store(unsigned char *p, struct vbf16 v)
{
    const vu32 word = (f32_round_to_bf16(v.even) >> 16) |
                      (f32_round_to_bf16(v.odd) & 0xffff0000u);

    memcpy(p, &word, sizeof(word));
}

INLINED struct vbf16 bf16_join(rueda_reduction r, struct vbf16 a,
                               struct vbf16 b)
{
    return (struct vbf16){f32_join(r, a.even, b.even),
                          f32_join(r, a.odd, b.odd)};
}

INLINED struct vbf16 bf16_times(struct vbf16 v, float factor)
{
    return (struct vbf16){v.even * factor, v.odd * factor};
}

#endif /* RUEDA_DEVICE_HOST_VECTORS_H */
