/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All kernels of one implementation, and its table. The implementation defines
 * VECTOR_BYTES, includes host_vectors.h, defines the functions that need its
 * intrinsics,
 *
 *      f16_load, f16_store  fp16 in memory, fp32 in the register
 *      bf16_load_in_order   half a register of bf16 as one of fp32
 *      bf16_store_in_order  and back
 *      f32_widen            fp32 as two vectors of fp64, in order
 *
 * then KERNELS and KERNELS_NAME, the table's variable and its name, and
 * includes this file last.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "device/host_kernels.h"
#include "device/host_vectors.h"

/* dst may be src, but nothing written is read again by a later turn. clang
 * complains where a sanitizer is in the way of its vectors. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"
#define LOOP_WITHOUT_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOP_WITHOUT_OVERLAP _Pragma("GCC ivdep")
#endif

/* Which scales of a pass are not 1; known where a kernel is compiled. */
enum scales {
    SCALE_NONE,
    SCALE_RESULT, /* the postscale only */
    SCALE_ALL,
};

enum {
    BLOCK_VECTORS = 4, /* registers filled from one source before the next */
    DOT_SUMS = 16,     /* partial sums, the same for all implementations */
    DOT_VECTORS = DOT_SUMS * sizeof(double) / VECTOR_BYTES,
};

INLINED double sum_of_sums(const vf64 sums[DOT_VECTORS])
{
    double elements[DOT_SUMS];

    memcpy(elements, sums, sizeof(elements));
    for (int half = DOT_SUMS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            elements[i] += elements[i + half];
    return elements[0];
}

/* Halves are fp32 once loaded. */
INLINED vf32 f16_join(rueda_reduction r, vf32 a, vf32 b)
{
    return f32_join(r, a, b);
}

INLINED vf32 f16_times(vf32 v, float factor)
{
    return v * factor;
}

/* The next numbers, in order, as one or two vectors of fp64. */
INLINED void f16_spread(const unsigned char *p, vf64 out[2])
{
    f32_widen(f16_load(p), out);
}

INLINED void bf16_spread(const unsigned char *p, vf64 out[2])
{
    f32_widen(bf16_load_in_order(p), out);
}

INLINED void f32_spread(const unsigned char *p, vf64 out[2])
{
    f32_widen(f32_load(p), out);
}

INLINED void f64_spread(const unsigned char *p, vf64 out[2])
{
    out[0] = f64_load(p);
}

#define VEC        u8
#define VEC_KEPT   u8
#define VEC_VECTOR vu8
#define VEC_NUMBER uint8_t
#define VEC_BYTES  1
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        i8
#define VEC_KEPT   i8
#define VEC_VECTOR vu8
#define VEC_NUMBER int8_t
#define VEC_BYTES  1
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        u16
#define VEC_KEPT   u16
#define VEC_VECTOR vu16
#define VEC_NUMBER uint16_t
#define VEC_BYTES  2
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        i16
#define VEC_KEPT   i16
#define VEC_VECTOR vu16
#define VEC_NUMBER int16_t
#define VEC_BYTES  2
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        i32
#define VEC_KEPT   i32
#define VEC_VECTOR vu32
#define VEC_NUMBER int32_t
#define VEC_BYTES  4
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        i64
#define VEC_KEPT   i64
#define VEC_VECTOR vu64
#define VEC_NUMBER int64_t
#define VEC_BYTES  8
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        flag
#define VEC_KEPT   u8
#define VEC_VECTOR vu8
#define VEC_NUMBER uint8_t
#define VEC_BYTES  1
#define VEC_FLOAT  0
#include "device/host_vector.inc.h"

#define VEC        f16
#define VEC_KEPT   f32
#define VEC_VECTOR vf32
#define VEC_NUMBER float
#define VEC_BYTES  2
#define VEC_FLOAT  1
#include "device/host_vector.inc.h"

#define VEC        bf16
#define VEC_KEPT   vbf16
#define VEC_VECTOR struct vbf16
#define VEC_NUMBER float
#define VEC_BYTES  2
#define VEC_FLOAT  1
#include "device/host_vector.inc.h"

#define VEC        f32
#define VEC_KEPT   f32
#define VEC_VECTOR vf32
#define VEC_NUMBER float
#define VEC_BYTES  4
#define VEC_FLOAT  1
#include "device/host_vector.inc.h"

#define VEC        f64
#define VEC_KEPT   f64
#define VEC_VECTOR vf64
#define VEC_NUMBER double
#define VEC_BYTES  8
#define VEC_FLOAT  1
#include "device/host_vector.inc.h"

/*
 * Integers are scaled by plain loops, which the compiler makes vectors of. Up
 * to 32 bits, both ends of the range are exact in fp64 and a number can be held
 * between them before it is cut.
 */
#define SCALE_INTEGERS(element, type, lowest, highest)                         \
    static void element##_scale(void *dst, const void *src, size_t count,      \
                                double factor)                                 \
    {                                                                          \
        typedef type any __attribute__((aligned(1), may_alias));               \
        const any *in = src;                                                   \
        any *out = dst;                                                        \
                                                                               \
        LOOP_WITHOUT_OVERLAP                                                   \
        for (size_t i = 0; i < count; i++) {                                   \
            double x = factor * (double)in[i];                                 \
                                                                               \
            x = x == x ? x : 0.0;                                              \
            x = x > (double)(lowest) ? x : (double)(lowest);                   \
            x = x < (double)(highest) ? x : (double)(highest);                 \
            out[i] = (type)(int32_t)x;                                         \
        }                                                                      \
    }

SCALE_INTEGERS(u8, uint8_t, 0, UINT8_MAX)
SCALE_INTEGERS(i8, int8_t, INT8_MIN, INT8_MAX)
SCALE_INTEGERS(u16, uint16_t, 0, UINT16_MAX)
SCALE_INTEGERS(i16, int16_t, INT16_MIN, INT16_MAX)
SCALE_INTEGERS(i32, int32_t, INT32_MIN, INT32_MAX)

static void i64_scale(void *dst, const void *src, size_t count, double factor)
{
    typedef int64_t any __attribute__((aligned(1), may_alias));
    const double largest = 0x1p63 - 0x1p10; /* the last fp64 within range */
    const any *in = src;
    any *out = dst;

    LOOP_WITHOUT_OVERLAP
    for (size_t i = 0; i < count; i++) {
        const double x = factor * (double)in[i];
        double held = x == x ? x : 0.0;
        int64_t whole;

        held = held > -0x1p63 ? held : -0x1p63;
        held = held < largest ? held : largest;
        whole = (int64_t)held;
        out[i] = x > largest ? INT64_MAX : whole;
    }
}

/* A half and its fp32, either way. Widening bf16 is a shift, which does not
 * make a NaN quiet by itself. */
#define CONVERT_HALVES(element, load, store)                                   \
    static void element##_widen(void *dst, const void *src, size_t count)      \
    {                                                                          \
        const unsigned char *in = src;                                         \
        unsigned char *out = dst;                                              \
        unsigned char half[VECTOR_BYTES / 2] = {0};                            \
        unsigned char full[VECTOR_BYTES];                                      \
                                                                               \
        for (; count >= VECTOR_BYTES / 4; count -= VECTOR_BYTES / 4) {         \
            f32_store(out, (vf32)f32_quiet(load(in)));                         \
            in += VECTOR_BYTES / 2;                                            \
            out += VECTOR_BYTES;                                               \
        }                                                                      \
        if (count > 0) {                                                       \
            memcpy(half, in, 2 * count);                                       \
            f32_store(full, (vf32)f32_quiet(load(half)));                      \
            memcpy(out, full, 4 * count);                                      \
        }                                                                      \
    }                                                                          \
                                                                               \
    static void element##_narrow(void *dst, const void *src, size_t count)     \
    {                                                                          \
        const unsigned char *in = src;                                         \
        unsigned char *out = dst;                                              \
        unsigned char half[VECTOR_BYTES / 2];                                  \
        unsigned char full[VECTOR_BYTES] = {0};                                \
                                                                               \
        for (; count >= VECTOR_BYTES / 4; count -= VECTOR_BYTES / 4) {         \
            store(out, f32_load(in));                                          \
            in += VECTOR_BYTES;                                                \
            out += VECTOR_BYTES / 2;                                           \
        }                                                                      \
        if (count > 0) {                                                       \
            memcpy(full, in, 4 * count);                                       \
            store(half, f32_load(full));                                       \
            memcpy(out, half, 2 * count);                                      \
        }                                                                      \
    }

CONVERT_HALVES(f16, f16_load, f16_store)
CONVERT_HALVES(bf16, bf16_load_in_order, bf16_store_in_order)

/* fp32 and fp64, by plain loops. */
static void f32_widen_all(void *dst, const void *src, size_t count)
{
    typedef double wide __attribute__((aligned(1), may_alias));
    typedef float narrow __attribute__((aligned(1), may_alias));
    const narrow *in = src;
    wide *out = dst;

    LOOP_WITHOUT_OVERLAP
    for (size_t i = 0; i < count; i++)
        out[i] = (double)in[i];
}

static void f32_narrow_all(void *dst, const void *src, size_t count)
{
    typedef double wide __attribute__((aligned(1), may_alias));
    typedef float narrow __attribute__((aligned(1), may_alias));
    const wide *in = src;
    narrow *out = dst;

    LOOP_WITHOUT_OVERLAP
    for (size_t i = 0; i < count; i++)
        out[i] = (float)in[i];
}

const struct rueda_kernels KERNELS = {
    .super = {.ops = &rueda_host_ops},
    .name = KERNELS_NAME,
    .block_bytes = (size_t)BLOCK_VECTORS * VECTOR_BYTES,
    .reduce =
        {
            [RUEDA_UINT8] = u8_reduce,
            [RUEDA_INT8] = i8_reduce,
            [RUEDA_UINT16] = u16_reduce,
            [RUEDA_INT16] = i16_reduce,
            [RUEDA_INT32] = i32_reduce,
            [RUEDA_INT64] = i64_reduce,
            [RUEDA_FLOAT16] = f16_reduce,
            [RUEDA_FLOAT32] = f32_reduce,
            [RUEDA_FLOAT64] = f64_reduce,
            [RUEDA_BOOL] = flag_reduce,
            [RUEDA_BFLOAT16] = bf16_reduce,
        },
    .scale =
        {
            [RUEDA_UINT8] = u8_scale,
            [RUEDA_INT8] = i8_scale,
            [RUEDA_UINT16] = u16_scale,
            [RUEDA_INT16] = i16_scale,
            [RUEDA_INT32] = i32_scale,
            [RUEDA_INT64] = i64_scale,
        },
    .widen =
        {
            [RUEDA_FLOAT16] = f16_widen,
            [RUEDA_BFLOAT16] = bf16_widen,
            [RUEDA_FLOAT32] = f32_widen_all,
        },
    .narrow =
        {
            [RUEDA_FLOAT16] = f16_narrow,
            [RUEDA_BFLOAT16] = bf16_narrow,
            [RUEDA_FLOAT32] = f32_narrow_all,
        },
    .dots =
        {
            [RUEDA_FLOAT16] = f16_dots,
            [RUEDA_FLOAT32] = f32_dots,
            [RUEDA_FLOAT64] = f64_dots,
            [RUEDA_BFLOAT16] = bf16_dots,
        },
    .combine =
        {
            [RUEDA_FLOAT16] = f16_combine,
            [RUEDA_FLOAT32] = f32_combine,
            [RUEDA_FLOAT64] = f64_combine,
            [RUEDA_BFLOAT16] = bf16_combine,
        },
};
