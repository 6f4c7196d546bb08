/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on vectors in host memory: reduce, scale, convert, and the sums of
 * Adasum, for every dtype.
 *
 * There are several implementations ("c", "avx2", "avx512", "neon"); each is a
 * constant table, chosen once by rueda_host_kernels() and passed to every call.
 * They agree bit by bit, because nothing is contracted into fused operations
 * and every sum has a fixed order. One thing is left open: a NaN is a NaN in
 * all of them, but its sign and payload may differ.
 *
 * Pointers need no alignment. Nothing here allocates, blocks or fails. Calls
 * the C library only. Any thread.
 */
#ifndef RUEDA_DEVICE_HOST_H
#define RUEDA_DEVICE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

struct rueda_kernels;

/* The implementation of that name, or the best for this CPU where wanted is
 * NULL. NULL for a name that is unknown or that this CPU cannot run. */
const struct rueda_kernels *rueda_host_kernels(const char *wanted);

const char *rueda_kernels_name(const struct rueda_kernels *kernels);

/* The kernels of a device of host memory, which begin with it. */
static inline const struct rueda_kernels *
rueda_host_of(const struct rueda_device *device)
{
    return (const struct rueda_kernels *)device;
}

/*
 * dst = postscale * (prescale * src[0] (+) ... (+) prescale * src[n - 1]), for
 * each of count numbers, from left to right; n >= 1. dst may be one of the
 * sources, the very same pointer; otherwise it overlaps none of them.
 *
 * Halves (fp16, bf16) are added in fp32 over all sources and rounded once, at
 * the end; scales are applied in fp32 before that. fp32 and fp64 are scaled in
 * their own precision, integers as by rueda_host_scale(). A scale of exactly
 * 1.0 does nothing and costs nothing. Integers wrap. If any number of a minimum
 * or maximum is NaN, the result is NaN; of zeros that compare equal, the later
 * one is taken. For bool, sum and max are "or", product and min are "and"; any
 * byte but 0 counts as true and the result is 0 or 1.
 */
void rueda_host_reduce(const struct rueda_kernels *kernels,
                       const struct rueda_arith *arith, void *dst,
                       const void *const *src, int n, size_t count);

/*
 * dst = count times the number that changes no result, whatever else is
 * reduced: 0 for a sum, an average and Adasum, 1 for a product, for a minimum
 * the highest and for a maximum the lowest, which floats have as infinities.
 * It is one before it is scaled; that of a product only if it is not scaled.
 */
void rueda_host_neutral(const struct rueda_arith *arith, void *dst,
                        size_t count);

/*
 * dst = factor * src; the two may be the same pointer. An integer is divided
 * exactly where factor is one over a whole number, else multiplied in fp64, cut
 * towards zero and held within its range (NaN gives 0). A bool
 * becomes 0 if factor is 0, else 0 or 1. A factor of exactly 1.0 is a copy.
 */
void rueda_host_scale(const struct rueda_kernels *kernels, rueda_dtype dtype,
                      void *dst, const void *src, size_t count, double factor);

/* How an integer of this dtype is scaled by *factor: it is divided by what is
 * returned, or if that is 0, multiplied by what *factor is then. */
int64_t rueda_host_divisor(rueda_dtype dtype, double *factor);

/* Counts the work of this many bytes of results, where a simulator wants that;
 * true: the numbers are phantoms, and nothing else is to be done. */
bool rueda_host_is_phantom(const struct rueda_kernels *kernels, size_t bytes);

/* memmove(), for which NULL is allowed where there is nothing to move. */
void rueda_host_move(const struct rueda_kernels *kernels, void *dst,
                     const void *src, size_t bytes);

/* From a half (fp16, bf16), fp32 or fp64 to a wider one, or to a narrower one
 * with rounding to nearest even; between halves and fp64 by way of fp32, so
 * rounded twice. NaN stays NaN, made quiet. The two do not overlap. */
void rueda_host_convert(const struct rueda_kernels *kernels, rueda_dtype to,
                        void *dst, rueda_dtype from, const void *src,
                        size_t count);

/*
 * out_dots = {a.b, a.a, b.b}, multiplied and added in fp64; dtype is one of the
 * four floats. Number i is added to partial sum i % 16, and the 16 sums are
 * then added in halves, so that every implementation rounds alike.
 */
void rueda_host_dots(const struct rueda_kernels *kernels, rueda_dtype dtype,
                     const void *a, const void *b, size_t count,
                     double out_dots[3]);

/* dst = by[0] * a + by[1] * b, for one of the four floats: in fp64 for fp64,
 * else in fp32 with the factors rounded to it. dst may be a or b. */
void rueda_host_combine(const struct rueda_kernels *kernels, rueda_dtype dtype,
                        void *dst, const void *a, const void *b,
                        const double by[2], size_t count);

/*
 * Copy past the caches, into memory; the two do not overlap. When it returns
 * the copy is complete, also for threads that see a later release store of the
 * caller. A plain copy where the CPU has no such stores.
 */
void rueda_host_stream(void *dst, const void *src, size_t bytes);

/* The same in pieces, which are done when end() returns. */
void rueda_host_stream_piece(void *dst, const void *src, size_t bytes);
void rueda_host_stream_end(void);

#endif /* RUEDA_DEVICE_HOST_H */
