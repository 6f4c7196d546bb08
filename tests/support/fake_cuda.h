/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests with the stand-in for the CUDA driver (support/fake/cuda.c): its path,
 * and the functions by which a test looks into it.
 */
#ifndef RUEDA_TESTS_SUPPORT_FAKE_CUDA_H
#define RUEDA_TESTS_SUPPORT_FAKE_CUDA_H

#include <stddef.h>

#include "device/device.h"

struct fake_cuda {
    void *library;
    int (*depth)(void);    /* contexts that this thread has pushed */
    int (*blocks)(void);   /* allocations that are not freed */
    int (*mapped)(void);   /* allocations of other processes */
    int (*retained)(void); /* contexts that are held */
    int (*launches)(void); /* kernels so far */
    void (*capture)(void *stream, int is_capturing);
    int (*push)(void *context); /* of the driver itself, for streams */
    int (*pop)(void **out);
    int (*retain)(void **out, int gpu);
    int (*release)(int gpu);
    int (*stream_create)(void **out, unsigned flags);
    int (*stream_destroy)(void *stream);
};

/* Asserts. The library is loaded from this path. */
void fake_cuda_open(struct fake_cuda *fake, const char *path);
void fake_cuda_close(struct fake_cuda *fake);

/* Copy between GPU and host, and wait; false: it failed. */
bool fake_cuda_copy(const struct rueda_device *device, void *dst,
                    const void *src, size_t bytes);

/* Wait for a row of work. */
rueda_status fake_cuda_await(const struct rueda_device *device,
                             struct rueda_work *work);

#endif /* RUEDA_TESTS_SUPPORT_FAKE_CUDA_H */
