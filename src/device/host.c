/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of kernels, and what all of them have in common: the split of a
 * reduction into passes and tiles.
 *
 *     sources   0 ... 7 | 8 ... 15 | ...      up to SOURCES_A_PASS in a pass
 *     numbers   | tile | tile | ... | rest |
 *
 * One tile of all sources after another: what passes leave in `acc` then stays
 * in the first cache. The rest, less than a block of the kernels, is copied to
 * memory that holds a whole one, so that kernels know nothing of rests.
 */
#include "device/host.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/dtype.h"
#include "device/host_kernels.h"

enum {
    /* Sources read in one pass. More streams than this are too many for the
     * ways of the first cache and for the prefetchers. */
    SOURCES_A_PASS = 8,
    TILE_BYTES = 4096, /* of accumulators, which stay in the first cache */
};

static bool can_run_always(void)
{
    return true;
}

#if defined(__x86_64__)
/* The registers that the system saves for a thread, as bits of XCR0. */
#define SAVES_AVX    0x06u
#define SAVES_AVX512 0xe6u

/* Does the CPU have these features of leaf 7, and does the system save their
 * registers? Asked by hand: not every compiler's library has the table behind
 * __builtin_cpu_supports(). */
static bool has_features(unsigned wanted, unsigned saved)
{
    const unsigned first = (unsigned)(bit_OSXSAVE | bit_F16C);
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;

    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & first) != first)
        return false;
    __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    if ((eax & saved) != saved)
        return false;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
           (ebx & wanted) == wanted;
}

static bool can_run_avx2(void)
{
    return has_features(bit_AVX2, SAVES_AVX);
}

static bool can_run_avx512(void)
{
    return has_features((unsigned)(bit_AVX512F | bit_AVX512BW | bit_AVX512DQ) |
                            (unsigned)bit_AVX512VL,
                        SAVES_AVX512);
}
#endif

/* The best one first. */
static const struct {
    const struct rueda_kernels *kernels;
    bool (*can_run)(void);
} implementations[] = {
#if defined(__x86_64__)
    {&rueda_kernels_avx512, can_run_avx512},
    {&rueda_kernels_avx2, can_run_avx2},
#elif defined(__aarch64__)
    {&rueda_kernels_neon, can_run_always},
#endif
    {&rueda_kernels_c, can_run_always},
};

const struct rueda_kernels *rueda_host_kernels(const char *wanted)
{
    const size_t n = sizeof(implementations) / sizeof(implementations[0]);

    for (size_t i = 0; i < n; i++) {
        const struct rueda_kernels *kernels = implementations[i].kernels;

        if (wanted != NULL && strcmp(wanted, kernels->name) != 0)
            continue;
        if (implementations[i].can_run())
            return kernels;
    }
    return NULL;
}

const char *rueda_kernels_name(const struct rueda_kernels *kernels)
{
    return kernels->name;
}

bool rueda_host_is_phantom(const struct rueda_kernels *kernels, size_t bytes)
{
    struct rueda_meter *meter = kernels->meter;

    if (meter == NULL)
        return false;
    meter->bytes += bytes;
    return meter->is_phantom;
}

static bool is_half(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16;
}

/* memcpy() must not get one address twice, and NULL only where there are no
 * bytes. */
static void copy(void *dst, const void *src, size_t bytes)
{
    if (dst != src && bytes > 0)
        memcpy(dst, src, bytes);
}

/* Make pass the one for the group of sources that begins with source k of n.
 * Between groups the accumulators are in acc; only the last one writes to dst,
 * which may be one of the sources. */
static void set_group(struct rueda_pass *pass, int k, int n, unsigned char *acc)
{
    const int left = n - k;

    pass->n = left < SOURCES_A_PASS ? left : SOURCES_A_PASS;
    pass->acc_in = k > 0 ? acc : NULL;
    pass->acc_out = left > SOURCES_A_PASS ? acc : NULL;
}

/* Whole blocks. */
static void reduce_tile(const struct rueda_kernels *kernels, rueda_dtype dtype,
                        const struct rueda_pass *tile, unsigned char *acc)
{
    struct rueda_pass pass = *tile;

    for (int k = 0; k < tile->n; k += SOURCES_A_PASS) {
        set_group(&pass, k, tile->n, acc);
        pass.src = tile->src + k;
        kernels->reduce[dtype](&pass);
    }
}

/* Less than a block: done with a copy of each source that fills one. */
static void reduce_rest(const struct rueda_kernels *kernels, rueda_dtype dtype,
                        const struct rueda_pass *rest)
{
    const size_t bytes = rest->count * rueda_dtype_bytes(dtype);
    _Alignas(64) unsigned char acc[2 * RUEDA_KERNELS_BLOCK_MAX];
    unsigned char block[SOURCES_A_PASS][RUEDA_KERNELS_BLOCK_MAX];
    const unsigned char *src[SOURCES_A_PASS];
    struct rueda_pass pass = *rest;

    pass.src = src;
    pass.dst = block[0];
    pass.offset = 0;
    pass.count = kernels->block_bytes / rueda_dtype_divisor(dtype);
    for (int k = 0; k < rest->n; k += SOURCES_A_PASS) {
        set_group(&pass, k, rest->n, acc);
        for (int j = 0; j < pass.n; j++) {
            memcpy(block[j], rest->src[k + j] + rest->offset, bytes);
            memset(block[j] + bytes, 0, kernels->block_bytes - bytes);
            src[j] = block[j];
        }
        kernels->reduce[dtype](&pass);
    }
    memcpy(rest->dst + rest->offset, block[0], bytes);
}

/* A pass over any number of sources and numbers. */
static void reduce_all(const struct rueda_kernels *kernels, rueda_dtype dtype,
                       const struct rueda_pass *all)
{
    const size_t size = rueda_dtype_divisor(dtype);
    const size_t whole =
        all->count - all->count % (kernels->block_bytes / size);
    _Alignas(64) unsigned char acc[TILE_BYTES];
    struct rueda_pass pass = *all;
    size_t tile = whole;

    if (all->n > SOURCES_A_PASS)
        tile = TILE_BYTES / (is_half(dtype) ? sizeof(float) : size);
    for (size_t done = 0; done < whole; done += tile) {
        pass.offset = all->offset + done * size;
        pass.count = whole - done < tile ? whole - done : tile;
        reduce_tile(kernels, dtype, &pass, acc);
    }
    if (whole < all->count) {
        pass.offset = all->offset + whole * size;
        pass.count = all->count - whole;
        reduce_rest(kernels, dtype, &pass);
    }
}

/* Is there nothing to split? So it is for most tensors, and where there are
 * many small ones, splitting takes as long as adding. Blocks are powers of
 * two. */
static bool is_one_pass(const struct rueda_kernels *kernels,
                        const struct rueda_pass *pass, size_t bytes)
{
    return pass->n <= SOURCES_A_PASS &&
           (bytes & (kernels->block_bytes - 1)) == 0;
}

/* The whole number that factor is one over, or 0. */
static int64_t whole_inverse(double factor)
{
    double inverse = factor > 0x1p-31 && factor < 1.0 ? round(1.0 / factor) : 0;

    return inverse > 0 && 1.0 / inverse == factor ? (int64_t)inverse : 0;
}

/*
 * One over a whole number divides exactly: 49 times the nearest number to 1/49
 * would be a little less than 1 and be cut to 0. Up to 32 bits it is enough to
 * take the next factor, which is not below the true one.
 */
int64_t rueda_host_divisor(rueda_dtype dtype, double *factor)
{
    const int64_t divisor = whole_inverse(*factor);

    if (divisor == 0 || dtype == RUEDA_INT64)
        return divisor;
    *factor = nextafter(*factor, 1.0);
    return 0;
}

static void divide(void *dst, const void *src, size_t count, int64_t divisor)
{
    typedef int64_t any __attribute__((aligned(1), may_alias));
    const any *in = src;
    any *out = dst;

    for (size_t i = 0; i < count; i++)
        out[i] = in[i] / divisor;
}

static void scale_integers(const struct rueda_kernels *kernels,
                           rueda_dtype dtype, void *dst, const void *src,
                           size_t count, double factor)
{
    const int64_t divisor = rueda_host_divisor(dtype, &factor);

    if (divisor != 0)
        divide(dst, src, count, divisor);
    else
        kernels->scale[dtype](dst, src, count, factor);
}

/* One tile of integers that are scaled before they are added. */
static void reduce_prescaled_tile(const struct rueda_kernels *kernels,
                                  rueda_dtype dtype,
                                  const struct rueda_pass *tile)
{
    const size_t bytes = tile->count * rueda_dtype_bytes(dtype);
    _Alignas(64) unsigned char sum[TILE_BYTES];
    _Alignas(64) unsigned char next[TILE_BYTES];
    const unsigned char *const pair[2] = {sum, next};
    const struct rueda_pass pass = {
        .reduction = tile->reduction,
        .src = pair,
        .n = 2,
        .dst = sum,
        .count = tile->count,
    };

    scale_integers(kernels, dtype, sum, tile->src[0] + tile->offset,
                   tile->count, tile->prescale);
    for (int k = 1; k < tile->n; k++) {
        scale_integers(kernels, dtype, next, tile->src[k] + tile->offset,
                       tile->count, tile->prescale);
        reduce_all(kernels, dtype, &pass);
    }
    memcpy(tile->dst + tile->offset, sum, bytes);
}

/* Integers with scales, tile by tile: scaling is a step of its own for them. */
static void reduce_scaled_integers(const struct rueda_kernels *kernels,
                                   rueda_dtype dtype,
                                   const struct rueda_pass *all)
{
    const size_t size = rueda_dtype_divisor(dtype);
    const size_t tile = TILE_BYTES / size;
    struct rueda_pass pass = *all;

    for (size_t done = 0; done < all->count; done += tile) {
        pass.offset = done * size;
        pass.count = all->count - done < tile ? all->count - done : tile;
        if (all->prescale != 1.0)
            reduce_prescaled_tile(kernels, dtype, &pass);
        else
            reduce_all(kernels, dtype, &pass);
        if (all->postscale != 1.0)
            scale_integers(kernels, dtype, all->dst + pass.offset,
                           all->dst + pass.offset, pass.count, all->postscale);
    }
}

static void reduce(const struct rueda_kernels *kernels,
                   const struct rueda_arith *arith, void *dst,
                   const void *const *src, int n, size_t count)
{
    const rueda_dtype dtype = arith->dtype;
    const bool is_scaled = arith->prescale != 1.0 || arith->postscale != 1.0;
    const struct rueda_pass pass = {
        .reduction = arith->reduction,
        .prescale = arith->prescale,
        .postscale = arith->postscale,
        .src = (const unsigned char *const *)src,
        .n = n,
        .dst = dst,
        .count = count,
    };

    assert(n >= 1);
    assert(arith->reduction != RUEDA_AVERAGE &&
           arith->reduction != RUEDA_ADASUM);
    if (count == 0)
        return;

    if (dtype == RUEDA_BOOL) {
        if (arith->prescale == 0.0 || arith->postscale == 0.0)
            memset(dst, 0, count);
        else
            reduce_all(kernels, dtype, &pass);
    } else if (n == 1 && !is_scaled) {
        copy(dst, src[0], count * rueda_dtype_bytes(dtype));
    } else if (is_scaled && !rueda_dtype_is_float(dtype)) {
        reduce_scaled_integers(kernels, dtype, &pass);
    } else if (is_one_pass(kernels, &pass, count * rueda_dtype_bytes(dtype))) {
        kernels->reduce[dtype](&pass);
    } else {
        reduce_all(kernels, dtype, &pass);
    }
}

void rueda_host_reduce(const struct rueda_kernels *kernels,
                       const struct rueda_arith *arith, void *dst,
                       const void *const *src, int n, size_t count)
{
    if (!rueda_host_is_phantom(kernels,
                               count * rueda_dtype_bytes(arith->dtype)))
        reduce(kernels, arith, dst, src, n, count);
}

void rueda_host_scale(const struct rueda_kernels *kernels, rueda_dtype dtype,
                      void *dst, const void *src, size_t count, double factor)
{
    const struct rueda_arith arith = {
        .dtype = dtype,
        .reduction = RUEDA_SUM,
        .prescale = factor,
        .postscale = 1.0,
    };

    if (rueda_host_is_phantom(kernels, count * rueda_dtype_bytes(dtype)))
        return;
    if (factor == 1.0)
        copy(dst, src, count * rueda_dtype_bytes(dtype));
    else if (rueda_dtype_is_float(dtype) || dtype == RUEDA_BOOL)
        reduce(kernels, &arith, dst, &src, 1, count);
    else
        scale_integers(kernels, dtype, dst, src, count, factor);
}

void rueda_host_move(const struct rueda_kernels *kernels, void *dst,
                     const void *src, size_t bytes)
{
    if (bytes > 0 && dst != src && !rueda_host_is_phantom(kernels, bytes))
        memmove(dst, src, bytes);
}

/* Between halves and fp64: a tile at a time is fp32. */
static void convert_twice(const struct rueda_kernels *kernels, rueda_dtype to,
                          unsigned char *dst, rueda_dtype from,
                          const unsigned char *src, size_t count)
{
    float tile[TILE_BYTES / sizeof(float)];
    const size_t most = sizeof(tile) / sizeof(tile[0]);

    while (count > 0) {
        const size_t part = count < most ? count : most;

        if (is_half(from)) {
            kernels->widen[from](tile, src, part);
            kernels->widen[RUEDA_FLOAT32](dst, tile, part);
        } else {
            kernels->narrow[RUEDA_FLOAT32](tile, src, part);
            kernels->narrow[to](dst, tile, part);
        }
        src += part * rueda_dtype_bytes(from);
        dst += part * rueda_dtype_bytes(to);
        count -= part;
    }
}

void rueda_host_convert(const struct rueda_kernels *kernels, rueda_dtype to,
                        void *dst, rueda_dtype from, const void *src,
                        size_t count)
{
    const bool is_widened = rueda_dtype_bytes(to) > rueda_dtype_bytes(from);

    assert(rueda_dtype_is_float(to) && rueda_dtype_is_float(from) &&
           rueda_dtype_bytes(to) != rueda_dtype_bytes(from));
    if (rueda_host_is_phantom(kernels, count * rueda_dtype_bytes(to)))
        return;
    if ((is_half(to) && from == RUEDA_FLOAT64) ||
        (is_half(from) && to == RUEDA_FLOAT64))
        convert_twice(kernels, to, dst, from, src, count);
    else if (is_widened)
        kernels->widen[from](dst, src, count);
    else
        kernels->narrow[to](dst, src, count);
}

void rueda_host_dots(const struct rueda_kernels *kernels, rueda_dtype dtype,
                     const void *a, const void *b, size_t count,
                     double out_dots[3])
{
    assert(rueda_dtype_is_float(dtype));
    if (rueda_host_is_phantom(kernels, count * rueda_dtype_bytes(dtype)))
        memset(out_dots, 0, 3 * sizeof(double));
    else
        kernels->dots[dtype](a, b, count, out_dots);
}

void rueda_host_combine(const struct rueda_kernels *kernels, rueda_dtype dtype,
                        void *dst, const void *a, const void *b,
                        const double by[2], size_t count)
{
    assert(rueda_dtype_is_float(dtype));
    if (!rueda_host_is_phantom(kernels, count * rueda_dtype_bytes(dtype)))
        kernels->combine[dtype](dst, a, b, by, count);
}
