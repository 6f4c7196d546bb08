/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on the memory of a GPU: each call fills in the arguments of one
 * kernel and starts it. What the kernels compute is in kernels.cu.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cuda/cuda_state.h"
#include "device/host.h"

/* kernels.cu knows these numbers. */
_Static_assert((int)RUEDA_FLOAT16 == 6 && (int)RUEDA_FLOAT32 == 7 &&
                   (int)RUEDA_FLOAT64 == 8 && (int)RUEDA_BFLOAT16 == 10,
               "dtypes");
_Static_assert((int)RUEDA_SUM == 0 && (int)RUEDA_MIN == 2 &&
                   (int)RUEDA_MAX == 3 && (int)RUEDA_PRODUCT == 4,
               "reductions");
_Static_assert((int)RUEDA_CUDA_REDUCE + (int)RUEDA_BFLOAT16 ==
                       (int)RUEDA_CUDA_REDUCE_BF16 &&
                   (int)RUEDA_CUDA_REDUCE + (int)RUEDA_BOOL ==
                       (int)RUEDA_CUDA_REDUCE_FLAG,
               "the kernels are in the order of dtypes");
_Static_assert(sizeof(struct rueda_cuda_reduce) <= 4096, "a launch's limit");

rueda_cuda_result rueda_cuda_launch(const struct rueda_cuda_scope *scope,
                                    int kernel, uint64_t blocks, void *args)
{
    void *params[] = {args};

    return scope->cuda->driver.launch(
        scope->cuda->kernels[kernel], (unsigned)blocks, 1, 1,
        RUEDA_CUDA_THREADS, 1, 1, 0, scope->row->stream, params, NULL);
}

/* Blocks for this many steps of a thread. */
static uint64_t blocks_for(uint64_t steps)
{
    const uint64_t blocks =
        (steps + RUEDA_CUDA_THREADS - 1) / RUEDA_CUDA_THREADS;

    return blocks < RUEDA_CUDA_BLOCKS ? blocks : RUEDA_CUDA_BLOCKS;
}

/* A call that is one kernel. */
static rueda_status run_kernel(const struct rueda_device *device,
                               struct rueda_work *work, int kernel,
                               uint64_t steps, void *args)
{
    struct rueda_cuda_scope scope;

    rueda_cuda_begin(device, work, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result =
            rueda_cuda_launch(&scope, kernel, blocks_for(steps), args);
    return rueda_cuda_end(&scope, scope.result, "cuLaunchKernel");
}

/* Exactly one does nothing, and exactly zero makes a bool 0, as on the host
 * (device/host.h). */
static struct rueda_cuda_factor factor_of(rueda_dtype dtype, double factor)
{
    struct rueda_cuda_factor by = {
        .factor = factor,
        .is_one = factor == 1.0,
        .is_zero = factor == 0.0,
    };

    if (!rueda_dtype_is_float(dtype) && dtype != RUEDA_BOOL && !by.is_one)
        by.divisor = rueda_host_divisor(dtype, &by.factor);
    return by;
}

static void refuse_sources(const struct rueda_device *device, int n)
{
    struct rueda_text words = {{0}};

    rueda_text_add(&words, "a sum of %d vectors on a GPU; at most %d are done",
                   n, RUEDA_CUDA_SOURCES);
    rueda_cuda_keep(rueda_cuda_of(device), &words);
}

static void fill_in(struct rueda_cuda_reduce *args,
                    const struct rueda_arith *arith, size_t count)
{
    args->count = count;
    args->pre = factor_of(arith->dtype, arith->prescale);
    args->post = factor_of(arith->dtype, arith->postscale);
    args->reduction = (int)arith->reduction;
    args->copy_count = 0;
}

/* One source and no factor is a copy, and needs no kernel. Not so for bool: any
 * byte but 0 becomes 1. */
rueda_status rueda_cuda_reduce(const struct rueda_device *device,
                               struct rueda_work *work,
                               const struct rueda_arith *arith, void *dst,
                               const void *const *src, int n, size_t count)
{
    const size_t bytes = count * rueda_dtype_size(arith->dtype);
    struct rueda_cuda_reduce args;

    assert(n >= 1);
    if (count == 0)
        return work->status;
    if (n > RUEDA_CUDA_SOURCES) {
        refuse_sources(device, n);
        return RUEDA_ERR_LIMIT;
    }
    fill_in(&args, arith, count);
    if (n == 1 && args.pre.is_one && args.post.is_one &&
        arith->dtype != RUEDA_BOOL)
        return device->ops->copy(device, work, dst, src[0], bytes);
    args.dst = dst;
    args.n = n;
    memcpy(args.src, src, (size_t)n * sizeof(src[0]));
    return run_kernel(device, work, RUEDA_CUDA_REDUCE + (int)arith->dtype,
                      bytes / 16 + 1, &args);
}

/* The same sum written to several places by one kernel: each number is read
 * once. */
rueda_status rueda_cuda_reduce_all(const struct rueda_device *device,
                                   struct rueda_work *work,
                                   const struct rueda_arith *arith,
                                   void *const *dst, const void *const *src,
                                   int n, size_t count)
{
    const size_t bytes = count * rueda_dtype_size(arith->dtype);
    struct rueda_cuda_reduce args;

    assert(n >= 1 && n <= RUEDA_CUDA_SOURCES);
    if (count == 0)
        return work->status;
    fill_in(&args, arith, count);
    args.dst = dst[0];
    args.n = n;
    args.copy_count = n - 1;
    memcpy(args.src, src, (size_t)n * sizeof(src[0]));
    memcpy(args.copies, dst + 1, (size_t)(n - 1) * sizeof(dst[0]));
    return run_kernel(device, work, RUEDA_CUDA_REDUCE + (int)arith->dtype,
                      bytes / 16 + 1, &args);
}

rueda_status rueda_cuda_scale(const struct rueda_device *device,
                              struct rueda_work *work, rueda_dtype dtype,
                              void *dst, const void *src, size_t count,
                              double factor)
{
    const struct rueda_arith arith = {
        .dtype = dtype,
        .reduction = RUEDA_SUM,
        .prescale = factor,
        .postscale = 1.0,
    };

    if (factor == 1.0)
        return device->ops->copy(device, work, dst, src,
                                 count * rueda_dtype_size(dtype));
    return rueda_cuda_reduce(device, work, &arith, dst, &src, 1, count);
}

rueda_status rueda_cuda_neutral(const struct rueda_device *device,
                                struct rueda_work *work,
                                const struct rueda_arith *arith, void *dst,
                                size_t count)
{
    struct rueda_cuda_fill args = {
        .dst = dst,
        .count = count,
        .width = (int)rueda_dtype_size(arith->dtype),
    };

    if (count == 0)
        return work->status;
    rueda_host_neutral(arith, &args.bits, 1); /* the low bytes */
    return run_kernel(device, work, RUEDA_CUDA_FILL, count, &args);
}

rueda_status rueda_cuda_convert(const struct rueda_device *device,
                                struct rueda_work *work, rueda_dtype to,
                                void *dst, rueda_dtype from, const void *src,
                                size_t count)
{
    struct rueda_cuda_convert args = {
        .dst = dst,
        .src = src,
        .count = count,
        .to = (int)to,
        .from = (int)from,
    };

    if (count == 0)
        return work->status;
    return run_kernel(device, work, RUEDA_CUDA_CONVERT, count, &args);
}

rueda_status rueda_cuda_combine(const struct rueda_device *device,
                                struct rueda_work *work, rueda_dtype dtype,
                                void *dst, const void *const src[2],
                                const double by[2], size_t count)
{
    struct rueda_cuda_combine args = {
        .dst = dst,
        .a = src[0],
        .b = src[1],
        .count = count,
        .by = {by[0], by[1]},
        .dtype = (int)dtype,
    };

    if (count == 0)
        return work->status;
    return run_kernel(device, work, RUEDA_CUDA_COMBINE, count, &args);
}

/* ---- Dot products ----------------------------------------------------- */

/* Memory of a row that has dot products, from its first on; it stays with the
 * row. */
static rueda_cuda_result need_sums(const struct rueda_cuda_scope *scope)
{
    const struct rueda_cuda_driver *driver = &scope->cuda->driver;
    struct rueda_cuda_row *row = scope->row;
    const size_t sums = 3 * (size_t)RUEDA_CUDA_DOT_SUMS * sizeof(double);
    const size_t dots = 3 * (size_t)RUEDA_CUDA_ROW_DOTS * sizeof(double);
    rueda_cuda_result result = RUEDA_CUDA_SUCCESS;

    if (row->sums == NULL)
        result = driver->alloc((void **)&row->sums, sums);
    if (result == RUEDA_CUDA_SUCCESS && row->dots == NULL)
        result = driver->host_alloc((void **)&row->dots, dots, 0);
    return result;
}

/* Partial sums, fewer of them, one of each kind. */
static rueda_cuda_result add_up(const struct rueda_cuda_scope *scope,
                                struct rueda_cuda_dots *args)
{
    struct rueda_cuda_fold folds[] = {
        {args->sums, RUEDA_CUDA_DOT_SUMS, RUEDA_CUDA_DOT_FOLDED},
        {args->sums, RUEDA_CUDA_DOT_FOLDED, 1},
    };
    rueda_cuda_result result = rueda_cuda_launch(
        scope, RUEDA_CUDA_DOTS, blocks_for(RUEDA_CUDA_DOT_SUMS), args);

    for (int i = 0; i < 2 && result == RUEDA_CUDA_SUCCESS; i++)
        result = rueda_cuda_launch(scope, RUEDA_CUDA_FOLD, 1, &folds[i]);
    return result;
}

/* The results are one double at the head of each kind's partial sums. */
static rueda_cuda_result fetch(const struct rueda_cuda_scope *scope,
                               double *out)
{
    rueda_cuda_result result = RUEDA_CUDA_SUCCESS;

    for (int s = 0; s < 3 && result == RUEDA_CUDA_SUCCESS; s++)
        result = scope->cuda->driver.copy(
            out + s, scope->row->sums + (size_t)s * RUEDA_CUDA_DOT_SUMS,
            sizeof(double), scope->row->stream);
    return result;
}

rueda_status rueda_cuda_dots(const struct rueda_device *device,
                             struct rueda_work *work, rueda_dtype dtype,
                             const void *a, const void *b, size_t count,
                             double out_dots[3])
{
    struct rueda_cuda_dots args = {
        .a = a, .b = b, .count = count, .dtype = (int)dtype};
    struct rueda_cuda_scope scope;

    rueda_cuda_begin(device, work, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = need_sums(&scope);
    if (scope.result == RUEDA_CUDA_SUCCESS &&
        scope.row->dot_count == RUEDA_CUDA_ROW_DOTS)
        scope.result = RUEDA_CUDA_OUT_OF_MEMORY;
    if (scope.result == RUEDA_CUDA_SUCCESS) {
        args.sums = scope.row->sums;
        scope.result = add_up(&scope, &args);
    }
    if (scope.result == RUEDA_CUDA_SUCCESS) {
        const int place = scope.row->dot_count++;

        scope.row->owners[place] = out_dots;
        scope.result =
            fetch(&scope, scope.row->dots + (size_t)3 * (size_t)place);
    }
    return rueda_cuda_end(&scope, scope.result, "a dot product");
}
