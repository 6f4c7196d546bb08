/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that an implementation of device/host.h fills in, and the tables
 * there are. Only host.c, the implementations and the simulator include it.
 */
#ifndef RUEDA_DEVICE_HOST_KERNELS_H
#define RUEDA_DEVICE_HOST_KERNELS_H

#include <stddef.h>

#include "device/device.h"

enum {
    /* The most that block_bytes of an implementation may be. */
    RUEDA_KERNELS_BLOCK_MAX = 256,
};

/*
 * One pass over count numbers of n sources; count is a multiple of what fits in
 * the implementation's block_bytes. Many sources take several passes, tile by
 * tile; between them the accumulators stay in acc, in the precision and order
 * of the registers (4 bytes for each half).
 */
struct rueda_pass {
    rueda_reduction reduction;
    double prescale;  /* floats only */
    double postscale; /* floats only */
    const unsigned char *const *src;
    int n;
    unsigned char *dst;
    size_t offset; /* bytes to skip in dst and in each source */
    size_t count;
    const unsigned char *acc_in; /* NULL: start from src[0] */
    unsigned char *acc_out;      /* NULL: finish, round, and write to dst */
};

typedef void rueda_reduce_fn(const struct rueda_pass *pass);
typedef void rueda_scale_fn(void *dst, const void *src, size_t count,
                            double factor);
typedef void rueda_convert_fn(void *dst, const void *src, size_t count);
typedef void rueda_dots_fn(const unsigned char *a, const unsigned char *b,
                           size_t count, double out_dots[3]);
typedef void rueda_combine_fn(unsigned char *dst, const unsigned char *a,
                              const unsigned char *b, const double by[2],
                              size_t count);

/* Counts the work of one rank of a simulator. */
struct rueda_meter {
    uint64_t bytes;  /* of results */
    bool is_phantom; /* only count, and touch no memory */
};

struct rueda_kernels {
    struct rueda_device super;
    const char *name;
    size_t block_bytes;
    struct rueda_meter *meter; /* NULL but in a simulator's copy; borrowed */
    rueda_reduce_fn *reduce[RUEDA_DTYPE_COUNT];
    rueda_scale_fn *scale[RUEDA_DTYPE_COUNT];    /* integers */
    rueda_convert_fn *widen[RUEDA_DTYPE_COUNT];  /* halves, to fp32; that, */
    rueda_convert_fn *narrow[RUEDA_DTYPE_COUNT]; /* to fp64; and back to them */
    rueda_dots_fn *dots[RUEDA_DTYPE_COUNT];      /* floats */
    rueda_combine_fn *combine[RUEDA_DTYPE_COUNT]; /* floats */
};

extern const struct rueda_device_ops rueda_host_ops;
extern const struct rueda_kernels rueda_kernels_c;
extern const struct rueda_kernels rueda_kernels_avx2;
extern const struct rueda_kernels rueda_kernels_avx512;
extern const struct rueda_kernels rueda_kernels_neon;

#endif /* RUEDA_DEVICE_HOST_KERNELS_H */
