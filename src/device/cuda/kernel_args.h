/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the kernels, one struct for each, passed by value. Both
 * sides include this file: the code that launches kernels, and kernels.cu,
 * which is compiled without any header of the system.
 *
 * Numbers of dtypes and reductions are those of rueda.h; launch.c checks that
 * at compile time.
 */
#ifndef RUEDA_DEVICE_CUDA_KERNEL_ARGS_H
#define RUEDA_DEVICE_CUDA_KERNEL_ARGS_H

enum {
    /* Sources of one reduction. The struct must fit into the 4 KiB that a
     * launch may pass. */
    RUEDA_CUDA_SOURCES = 128,

    /* Threads of a block, and blocks of a grid at most, but for moves. */
    RUEDA_CUDA_THREADS = 256,
    RUEDA_CUDA_BLOCKS = 2048,

    /* A block moves one piece of this size or less. */
    RUEDA_CUDA_PIECE = 32 << 10,

    /* Partial sums of a dot product. It depends on nothing else how numbers are
     * added, so the result is the same on every GPU. */
    RUEDA_CUDA_DOT_SUMS = 16384,
    RUEDA_CUDA_DOT_FOLDED = 128,
};

/* How numbers are multiplied. Integers are divided where divisor is not 0. */
struct rueda_cuda_factor {
    double factor;
    long long divisor;
    int is_one; /* nothing is to be done */
    int is_zero;
};

/* dst = post * (pre * src[0] (+) ... (+) pre * src[n - 1]), and the same to
 * copies[0] ... copies[copy_count - 1] */
struct rueda_cuda_reduce {
    void *dst;
    unsigned long long count;
    struct rueda_cuda_factor pre;
    struct rueda_cuda_factor post;
    int reduction;
    int n;
    int copy_count;
    const void *src[RUEDA_CUDA_SOURCES];
    void *copies[RUEDA_CUDA_SOURCES];
};

/* dst = count times the number with these bits, of 1, 2, 4 or 8 bytes. */
struct rueda_cuda_fill {
    void *dst;
    unsigned long long count;
    unsigned long long bits;
    int width;
};

struct rueda_cuda_convert {
    void *dst;
    const void *src;
    unsigned long long count;
    int to;
    int from;
};

/* sums[s * RUEDA_CUDA_DOT_SUMS + i]: partial sum i of a.b, a.a and b.b */
struct rueda_cuda_dots {
    const void *a;
    const void *b;
    unsigned long long count;
    double *sums;
    int dtype;
};

/* Add `from` partial sums of each kind to `to` of them, which divides it. */
struct rueda_cuda_fold {
    double *sums;
    int from;
    int to;
};

/* dst = by[0] * a + by[1] * b */
struct rueda_cuda_combine {
    void *dst;
    const void *a;
    const void *b;
    unsigned long long count;
    double by[2];
    int dtype;
};

/* A block for each piece; src NULL: zeros. */
struct rueda_cuda_piece {
    void *dst;
    const void *src;
    unsigned long long bytes;
};

struct rueda_cuda_move {
    const struct rueda_cuda_piece *pieces;
};

#endif /* RUEDA_DEVICE_CUDA_KERNEL_ARGS_H */
