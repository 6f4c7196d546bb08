/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of a test with a GPU of the stand-in for the CUDA driver, whose path
 * is in RUEDA_CUDA_LIB: memory there, and operations on it. Nothing asserts;
 * what fails says why for the rank (test_rank.h).
 */
#ifndef RUEDA_TESTS_SUPPORT_GPU_SEAT_H
#define RUEDA_TESTS_SUPPORT_GPU_SEAT_H

#include "support/fake_cuda.h"
#include "support/test_rank.h"

struct gpu_seat {
    int number;
    const struct rueda_device *device;
    struct fake_cuda fake;
    void *context;
    void *stream; /* the application's */
};

/* Run a body on GPU `number`, and check that the library leaves the thread's
 * context as it was. */
int gpu_seat_with(struct test_rank *me, int number,
                  int (*body)(struct test_rank *me, struct gpu_seat *gpu));

/* Memory of the GPU with these bytes (NULL: any), or NULL. */
void *gpu_seat_put(const struct gpu_seat *gpu, const void *bytes, size_t count);

/* Fetch bytes from there, and free it. */
int gpu_seat_get(struct test_rank *me, const struct gpu_seat *gpu, void *out,
                 void *at, size_t count);

/* An operation in place on int32, of one dimension, behind the stream. */
struct rueda_submit_args gpu_seat_args(const struct gpu_seat *gpu,
                                       rueda_kind kind, const char *name,
                                       void *data, const size_t *shape);

/* Submit it and wait. */
int gpu_seat_run(struct test_rank *me, const struct rueda_submit_args *args);

#endif /* RUEDA_TESTS_SUPPORT_GPU_SEAT_H */
