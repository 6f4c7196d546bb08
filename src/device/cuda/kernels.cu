/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs on the GPU: reductions, scales, conversions, Adasum's dot products,
 * and packing. The arithmetic is that of device/host.h, bit by bit, but for the
 * order in which dot products are added.
 *
 * The file is C and CUDA C++ at the same time, so that one source is
 *
 *      compiled to PTX     by clang, without any header (tools/make-ptx)
 *      cross-checked       by nvcc (tools/gpu-check)
 *      run on the CPU      by tests, which include it after a definition of
 *                          THREAD and the other numbers below
 *
 * Every thread takes the elements THREAD, THREAD + THREADS, and so on; of
 * numbers that lie at multiples of 16 bytes it takes 16 bytes at a time.
 * Nothing may be contracted into fused operations (-ffp-contract=off).
 */
#include "kernel_args.h"

#if defined(__NVCC__)
#define KERNEL        extern "C" __global__ void
#define DEVICE        static __device__ __forceinline__
#define THREAD_HERE   threadIdx.x
#define THREADS_HERE  blockDim.x
#define BLOCK         blockIdx.x
#define BLOCKS        gridDim.x
#define UNROLL        _Pragma("unroll")
#define ON_GPU        1
#elif defined(__CUDA__)
#define KERNEL        extern "C" __attribute__((global)) void
#define DEVICE                                                                 \
    static __attribute__((device)) inline __attribute__((always_inline))
#define THREAD_HERE   ((unsigned)__nvvm_read_ptx_sreg_tid_x())
#define THREADS_HERE  ((unsigned)__nvvm_read_ptx_sreg_ntid_x())
#define BLOCK         ((unsigned)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCKS        ((unsigned)__nvvm_read_ptx_sreg_nctaid_x())
#define UNROLL        _Pragma("unroll")
#define ON_GPU        1
#else
#define KERNEL        static void
#define DEVICE        static inline __attribute__((unused))
#define UNROLL
#define ON_GPU        0
#endif

/* What a pointer of the arguments means here; a test may have it changed. */
#ifndef AT
#define AT(pointer)   (pointer)
#endif

#define THREAD        ((u64)BLOCK * THREADS_HERE + THREAD_HERE)
#define THREADS       ((u64)BLOCKS * THREADS_HERE)

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

/* As in rueda.h. */
enum {
    DTYPE_F16 = 6,
    DTYPE_F32 = 7,
    DTYPE_F64 = 8,
    DTYPE_BF16 = 10,
};
enum {
    BY_SUM = 0,
    BY_MIN = 2,
    BY_MAX = 3,
    BY_PRODUCT = 4,
};

/* ---- Floats and their bits ---------------------------------------------- */

DEVICE float f32_of_bits(u32 bits)
{
    union {
        u32 bits;
        float number;
    } both;

    both.bits = bits;
    return both.number;
}

DEVICE u32 bits_of_f32(float number)
{
    union {
        u32 bits;
        float number;
    } both;

    both.number = number;
    return both.bits;
}

DEVICE float f32_quiet(float x)
{
    return x != x ? f32_of_bits(bits_of_f32(x) | 0x00400000u) : x;
}

#if ON_GPU
/* The GPU's own conversions: to nearest even, denormals kept. */
DEVICE float f32_of_f16(u16 half)
{
    float x;

    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}

DEVICE u16 f16_of_f32(float x)
{
    u16 half;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
}
#else
/* The exponent's bias is 15 in fp16 and 127 in fp32. A denormal is put behind
 * the one of 2^-14, which is then taken away. */
DEVICE float f32_of_f16(u16 half)
{
    const u32 sign = (u32)(half & 0x8000u) << 16;
    const u32 magnitude = (u32)(half & 0x7fffu) << 13;
    const u32 bias = 112u << 23;
    const u32 one = 113u << 23;
    u32 bits = magnitude + bias;

    if (magnitude < 0x0400u << 13)
        bits = bits_of_f32(f32_of_bits(magnitude + one) - f32_of_bits(one));
    else if (magnitude >= 0x7c00u << 13)
        bits = magnitude + 2 * bias;
    if (magnitude > 0x7c00u << 13)
        bits |= 0x00400000u; /* quiet */
    return f32_of_bits(bits | sign);
}

/* Adding 0.5, whose last bit is worth 2^-24, rounds to a denormal of fp16. */
DEVICE u16 f16_of_f32(float x)
{
    const u32 sign = (bits_of_f32(x) >> 16) & 0x8000u;
    const u32 magnitude = bits_of_f32(x) & 0x7fffffffu;
    const u32 bias = 112u << 23;
    const u32 half = 126u << 23;
    const u32 odd = (magnitude >> 13) & 1u;
    u32 bits = (magnitude - bias + 0xfffu + odd) >> 13;

    if (magnitude < 113u << 23)
        bits = bits_of_f32(f32_of_bits(magnitude) + f32_of_bits(half)) - half;
    else if (magnitude > 0x7f800000u)
        bits = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    else if (magnitude >= 143u << 23)
        bits = 0x7c00u;
    return (u16)(bits | sign);
}
#endif

DEVICE float f32_of_bf16(u16 half)
{
    return f32_of_bits((u32)half << 16);
}

DEVICE u16 bf16_of_f32(float x)
{
    const u32 bits = bits_of_f32(x);

    if (x != x)
        return (u16)((bits | 0x00400000u) >> 16);
    return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* ---- One number of each dtype ------------------------------------------- */

/*
 * For a dtype named x there are: x_take() from memory to the type in which is
 * computed, and x_give() back; x_join_<op>(); x_times().
 */
#define PLAIN(name, type)                                                      \
    DEVICE type name##_take(type x)                                            \
    {                                                                          \
        return x;                                                              \
    }                                                                          \
    DEVICE type name##_give(type x)                                            \
    {                                                                          \
        return x;                                                              \
    }

/* Integers are added and multiplied unsigned, so that they wrap. */
#define INTEGER(name, type, wide)                                              \
    PLAIN(name, type)                                                          \
    DEVICE type name##_sum(type a, type b)                                     \
    {                                                                          \
        return (type)((wide)a + (wide)b);                                      \
    }                                                                          \
    DEVICE type name##_product(type a, type b)                                 \
    {                                                                          \
        return (type)((wide)a * (wide)b);                                      \
    }                                                                          \
    DEVICE type name##_min(type a, type b)                                     \
    {                                                                          \
        return a < b ? a : b;                                                  \
    }                                                                          \
    DEVICE type name##_max(type a, type b)                                     \
    {                                                                          \
        return a < b ? b : a;                                                  \
    }

INTEGER(u8, u8, u32)
INTEGER(i8, i8, u32)
INTEGER(u16, u16, u32)
INTEGER(i16, i16, u32)
INTEGER(i32, i32, u32)
INTEGER(i64, i64, u64)

/* Of a minimum or maximum, a stays if it is the smaller or greater one or NaN;
 * else b is taken, which may be NaN as well. */
#define FLOAT(name, type)                                                      \
    DEVICE type name##_sum(type a, type b)                                     \
    {                                                                          \
        return a + b;                                                          \
    }                                                                          \
    DEVICE type name##_product(type a, type b)                                 \
    {                                                                          \
        return a * b;                                                          \
    }                                                                          \
    DEVICE type name##_min(type a, type b)                                     \
    {                                                                          \
        return a < b || a != a ? a : b;                                        \
    }                                                                          \
    DEVICE type name##_max(type a, type b)                                     \
    {                                                                          \
        return a > b || a != a ? a : b;                                        \
    }                                                                          \
    DEVICE type name##_times(type x, const struct rueda_cuda_factor *by)       \
    {                                                                          \
        return x * (type)by->factor;                                           \
    }

#define HALF(name)                                                             \
    FLOAT(name, float)                                                         \
    DEVICE float name##_take(u16 x)                                            \
    {                                                                          \
        return f32_of_##name(x);                                               \
    }                                                                          \
    DEVICE u16 name##_give(float x)                                            \
    {                                                                          \
        return name##_of_f32(x);                                               \
    }

HALF(f16)
HALF(bf16)
PLAIN(f32, float)
FLOAT(f32, float)
PLAIN(f64, double)
FLOAT(f64, double)

/* Up to 32 bits, both ends of the range are exact in fp64 and a number can be
 * held between them before it is cut. */
#define TIMES(name, type, lowest, highest)                                     \
    DEVICE type name##_times(type x, const struct rueda_cuda_factor *by)       \
    {                                                                          \
        double product = by->factor * (double)x;                               \
                                                                               \
        product = product == product ? product : 0.0;                          \
        product = product > (double)(lowest) ? product : (double)(lowest);     \
        product = product < (double)(highest) ? product : (double)(highest);   \
        return (type)(i32)product;                                             \
    }

TIMES(u8, u8, 0, 255)
TIMES(i8, i8, -128, 127)
TIMES(u16, u16, 0, 65535)
TIMES(i16, i16, -32768, 32767)
TIMES(i32, i32, -2147483648.0, 2147483647.0)

DEVICE i64 i64_times(i64 x, const struct rueda_cuda_factor *by)
{
    const double end = 9223372036854775808.0; /* 2^63 */
    const double largest = end - 1024.0;      /* the last within range */
    double product;

    if (by->divisor != 0)
        return x / by->divisor;
    product = by->factor * (double)x;
    if (product > largest)
        return 0x7fffffffffffffffLL;
    product = product == product ? product : 0.0;
    product = product > -end ? product : -end;
    return (i64)product;
}

/* Any byte but 0 is true; the result is 0 or 1. */
DEVICE u8 flag_take(u8 x)
{
    return x != 0;
}

DEVICE u8 flag_give(u8 x)
{
    return x;
}

DEVICE u8 flag_sum(u8 a, u8 b)
{
    return a | b;
}

DEVICE u8 flag_max(u8 a, u8 b)
{
    return a | b;
}

DEVICE u8 flag_product(u8 a, u8 b)
{
    return a & b;
}

DEVICE u8 flag_min(u8 a, u8 b)
{
    return a & b;
}

DEVICE u8 flag_times(u8 x, const struct rueda_cuda_factor *by)
{
    return by->is_zero ? 0 : x;
}

/* ---- Reductions --------------------------------------------------------- */

struct quad {
    u32 word[4];
} __attribute__((aligned(16)));

DEVICE int is_aligned(const void *pointer)
{
    return ((u64)pointer & 15u) == 0;
}

DEVICE int are_aligned(const struct rueda_cuda_reduce *args)
{
    int all = is_aligned(args->dst);

    for (int k = 0; k < args->n; k++)
        all = all && is_aligned(args->src[k]);
    return all;
}

/* Join `width` numbers that have come with those that are there. */
#define JOIN(name, width)                                                      \
    switch (args.reduction) {                                                  \
    case BY_MIN:                                                               \
        UNROLL for (int j = 0; j < (width); j++)                               \
            sum[j] = name##_min(sum[j], next[j]);                              \
        break;                                                                 \
    case BY_MAX:                                                               \
        UNROLL for (int j = 0; j < (width); j++)                               \
            sum[j] = name##_max(sum[j], next[j]);                              \
        break;                                                                 \
    case BY_PRODUCT:                                                           \
        UNROLL for (int j = 0; j < (width); j++)                               \
            sum[j] = name##_product(sum[j], next[j]);                          \
        break;                                                                 \
    default:                                                                   \
        UNROLL for (int j = 0; j < (width); j++)                               \
            sum[j] = name##_sum(sum[j], next[j]);                              \
        break;                                                                 \
    }

/* `width` numbers of all sources, from i on; `cell` is as much memory. */
#define ONE_STEP(name, memory, number, cell, width)                            \
    {                                                                          \
        union {                                                                \
            cell all;                                                          \
            memory each[width];                                                \
        } lane;                                                                \
        number sum[width];                                                     \
        number next[width];                                                    \
                                                                               \
        lane.all = ((const cell *)AT(args.src[0]))[i];                         \
        UNROLL for (int j = 0; j < (width); j++)                               \
            sum[j] = name##_take(lane.each[j]);                                \
        if (!args.pre.is_one)                                                  \
            UNROLL for (int j = 0; j < (width); j++)                           \
                sum[j] = name##_times(sum[j], &args.pre);                      \
        for (int k = 1; k < args.n; k++) {                                     \
            lane.all = ((const cell *)AT(args.src[k]))[i];                     \
            UNROLL for (int j = 0; j < (width); j++)                           \
                next[j] = name##_take(lane.each[j]);                           \
            if (!args.pre.is_one)                                              \
                UNROLL for (int j = 0; j < (width); j++)                       \
                    next[j] = name##_times(next[j], &args.pre);                \
            JOIN(name, width)                                                  \
        }                                                                      \
        if (!args.post.is_one)                                                 \
            UNROLL for (int j = 0; j < (width); j++)                           \
                sum[j] = name##_times(sum[j], &args.post);                     \
        UNROLL for (int j = 0; j < (width); j++)                               \
            lane.each[j] = name##_give(sum[j]);                                \
        ((cell *)AT(args.dst))[i] = lane.all;                                  \
    }

#define REDUCE(name, memory, number)                                           \
    KERNEL rueda_reduce_##name(const struct rueda_cuda_reduce args)            \
    {                                                                          \
        enum { WIDTH = 16 / sizeof(memory) };                                  \
        u64 rest = 0;                                                          \
                                                                               \
        if (are_aligned(&args)) {                                              \
            const u64 quads = args.count / WIDTH;                              \
                                                                               \
            for (u64 i = THREAD; i < quads; i += THREADS)                      \
                ONE_STEP(name, memory, number, struct quad, WIDTH)             \
            rest = quads * WIDTH;                                              \
        }                                                                      \
        for (u64 i = rest + THREAD; i < args.count; i += THREADS)              \
            ONE_STEP(name, memory, number, memory, 1)                          \
    }

REDUCE(u8, u8, u8)
REDUCE(i8, i8, i8)
REDUCE(u16, u16, u16)
REDUCE(i16, i16, i16)
REDUCE(i32, i32, i32)
REDUCE(i64, i64, i64)
REDUCE(f16, u16, float)
REDUCE(bf16, u16, float)
REDUCE(f32, float, float)
REDUCE(f64, double, double)
REDUCE(flag, u8, u8)

KERNEL rueda_fill(const struct rueda_cuda_fill args)
{
    for (u64 i = THREAD; i < args.count; i += THREADS) {
        if (args.width == 1)
            ((u8 *)AT(args.dst))[i] = (u8)args.bits;
        else if (args.width == 2)
            ((u16 *)AT(args.dst))[i] = (u16)args.bits;
        else if (args.width == 4)
            ((u32 *)AT(args.dst))[i] = (u32)args.bits;
        else
            ((u64 *)AT(args.dst))[i] = args.bits;
    }
}

/* ---- Floats of several types -------------------------------------------- */

DEVICE float load_f32(int dtype, const void *at, u64 i)
{
    switch (dtype) {
    case DTYPE_F16:
        return f32_of_f16(((const u16 *)at)[i]);
    case DTYPE_BF16:
        return f32_of_bf16(((const u16 *)at)[i]);
    case DTYPE_F64:
        return (float)((const double *)at)[i];
    default:
        return ((const float *)at)[i];
    }
}

DEVICE double load_f64(int dtype, const void *at, u64 i)
{
    if (dtype == DTYPE_F64)
        return ((const double *)at)[i];
    return (double)load_f32(dtype, at, i);
}

DEVICE void store_f32(int dtype, void *at, u64 i, float x)
{
    switch (dtype) {
    case DTYPE_F16:
        ((u16 *)at)[i] = f16_of_f32(x);
        break;
    case DTYPE_BF16:
        ((u16 *)at)[i] = bf16_of_f32(x);
        break;
    case DTYPE_F64:
        ((double *)at)[i] = (double)x;
        break;
    default:
        ((float *)at)[i] = x;
        break;
    }
}

/* By way of fp32 in any case: one of the two is that, or a half. */
KERNEL rueda_convert(const struct rueda_cuda_convert args)
{
    for (u64 i = THREAD; i < args.count; i += THREADS)
        store_f32(args.to, AT(args.dst), i,
                  f32_quiet(load_f32(args.from, AT(args.src), i)));
}

KERNEL rueda_combine(const struct rueda_cuda_combine args)
{
    const float by_a = (float)args.by[0];
    const float by_b = (float)args.by[1];

    for (u64 i = THREAD; i < args.count; i += THREADS) {
        if (args.dtype == DTYPE_F64) {
            const double x = load_f64(DTYPE_F64, AT(args.a), i) * args.by[0];
            const double y = load_f64(DTYPE_F64, AT(args.b), i) * args.by[1];

            ((double *)AT(args.dst))[i] = x + y;
        } else {
            const float x = load_f32(args.dtype, AT(args.a), i) * by_a;
            const float y = load_f32(args.dtype, AT(args.b), i) * by_b;

            store_f32(args.dtype, AT(args.dst), i, x + y);
        }
    }
}

/* Number i goes to partial sum i % RUEDA_CUDA_DOT_SUMS. */
KERNEL rueda_dots(const struct rueda_cuda_dots args)
{
    for (u64 t = THREAD; t < RUEDA_CUDA_DOT_SUMS; t += THREADS) {
        double sum[3] = {0, 0, 0};

        for (u64 i = t; i < args.count; i += RUEDA_CUDA_DOT_SUMS) {
            const double x = load_f64(args.dtype, AT(args.a), i);
            const double y = load_f64(args.dtype, AT(args.b), i);

            sum[0] += x * y;
            sum[1] += x * x;
            sum[2] += y * y;
        }
        for (int s = 0; s < 3; s++)
            ((double *)AT(args.sums))[s * RUEDA_CUDA_DOT_SUMS + t] = sum[s];
    }
}

/* No thread reads what another one writes. */
KERNEL rueda_fold(const struct rueda_cuda_fold args)
{
    for (u64 t = THREAD; t < (u64)args.to; t += THREADS)
        for (int s = 0; s < 3; s++) {
            double *sums = (double *)AT(args.sums) + s * RUEDA_CUDA_DOT_SUMS;
            double sum = 0;

            for (u64 i = t; i < (u64)args.from; i += (u64)args.to)
                sum += sums[i];
            sums[t] = sum;
        }
}

/* ---- Packing ------------------------------------------------------------ */

/* 16 bytes that one instruction loads and another one stores. */
#if defined(__NVCC__)
typedef uint4 vector;
#elif ON_GPU
typedef u32 vector __attribute__((ext_vector_type(4)));
#else
typedef struct quad vector;
#endif

/* In units of this type, as far as whole ones go. A thread has four loads in
 * flight before it stores: memory is far away. */
#define MOVE(type)                                                             \
    {                                                                          \
        const u64 whole = piece.bytes / sizeof(type);                          \
        const u64 step = THREADS_HERE;                                         \
        const type *from = (const type *)src;                                  \
        type *to = (type *)dst;                                                \
        u64 i = THREAD_HERE;                                                   \
                                                                               \
        for (; i + 3 * step < whole; i += 4 * step) {                          \
            const type a = from[i];                                            \
            const type b = from[i + step];                                     \
            const type c = from[i + 2 * step];                                 \
            const type d = from[i + 3 * step];                                 \
                                                                               \
            to[i] = a;                                                         \
            to[i + step] = b;                                                  \
            to[i + 2 * step] = c;                                              \
            to[i + 3 * step] = d;                                              \
        }                                                                      \
        for (; i < whole; i += step)                                           \
            to[i] = from[i];                                                   \
        done = whole * sizeof(type);                                           \
    }

KERNEL rueda_move(const struct rueda_cuda_move args)
{
    const struct rueda_cuda_piece piece =
        ((const struct rueda_cuda_piece *)AT(args.pieces))[BLOCK];
    const u8 *src = (const u8 *)AT(piece.src);
    u8 *dst = (u8 *)AT(piece.dst);
    const u64 ends = (u64)piece.src | (u64)piece.dst;
    u64 done = 0;

    if (piece.src == 0) {
        for (u64 i = THREAD_HERE; i < piece.bytes; i += THREADS_HERE)
            dst[i] = 0;
        return;
    }
    if ((ends & 15u) == 0)
        MOVE(vector)
    else if ((ends & 3u) == 0)
        MOVE(u32)
    for (u64 i = done + THREAD_HERE; i < piece.bytes; i += THREADS_HERE)
        dst[i] = src[i];
}
