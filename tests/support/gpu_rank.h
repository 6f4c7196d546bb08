/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of a test (test_rank.h) with a GPU of the stand-in for the driver
 * (fake_cuda.h): memory there, a stream of the application's, and operations.
 */
#ifndef RUEDA_TESTS_SUPPORT_GPU_RANK_H
#define RUEDA_TESTS_SUPPORT_GPU_RANK_H

#include "support/fake_cuda.h"
#include "support/test_rank.h"

/* Of the build; RUEDA_CUDA_LIB is to name it. */
#define GPU_LIBRARY FAKE_CUDA_FOLDER "libcuda.so.1"

struct gpu {
    const struct rueda_device *device;
    struct fake_cuda fake;
    void *context;
    void *stream; /* the application's */
};

/* Of the driver that RUEDA_CUDA_LIB names; 0, or the words are said.
 * gpu_close() checks that the library has left the thread its own context. */
int gpu_open(struct test_rank *me, struct gpu *gpu);
int gpu_close(struct test_rank *me, struct gpu *gpu);

/* Memory of the GPU with these bytes, or NULL. */
void *gpu_put(const struct gpu *gpu, const void *bytes, size_t count);

/* Copy it to the host, and free it there. */
int gpu_get(struct test_rank *me, const struct gpu *gpu, void *out, void *at,
            size_t count);

/* An operation in place on int32, in the stream. */
struct rueda_submit_args gpu_args(const struct gpu *gpu, rueda_kind kind,
                                  const char *name, void *data,
                                  const size_t *shape);

/* Submit it and wait. */
int gpu_run(struct test_rank *me, const struct rueda_submit_args *args);

/* Say if a number is not the one that was wanted. */
int gpu_expect(struct test_rank *me, const char *what, size_t i, int is,
               int wanted);

/* Run a body with a GPU. */
int gpu_with(struct test_rank *me,
             int (*body)(struct test_rank *me, struct gpu *gpu));

#endif /* RUEDA_TESTS_SUPPORT_GPU_RANK_H */
