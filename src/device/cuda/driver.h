/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver: its functions that we use, found at run time in libcuda.so.1
 * (RUEDA_CUDA_LIB names another one). No header and no library of CUDA is
 * needed to build; the types below are as wide as the driver's.
 *
 * The library is loaded by rueda_cuda_driver_open() and not before, so a
 * process without tensors on a GPU never loads it. Any thread.
 */
#ifndef RUEDA_DEVICE_CUDA_DRIVER_H
#define RUEDA_DEVICE_CUDA_DRIVER_H

#include <stddef.h>

#include <rueda/rueda.h>

#include "base/text.h"

typedef int rueda_cuda_result;  /* CUresult */
typedef int rueda_cuda_ordinal; /* CUdevice */

enum {
    RUEDA_CUDA_SUCCESS = 0,
    RUEDA_CUDA_OUT_OF_MEMORY = 2,
    RUEDA_CUDA_NO_DEVICE = 100,
    RUEDA_CUDA_INVALID_DEVICE = 101,
    RUEDA_CUDA_BAD_PTX = 218,
    RUEDA_CUDA_OLD_PTX = 222,
    RUEDA_CUDA_ALREADY_MAPPED = 712,
    RUEDA_CUDA_NOT_READY = 600,
    RUEDA_CUDA_ILLEGAL_ADDRESS = 700,
    RUEDA_CUDA_CAPTURING = 900,
};

enum {
    /* cuStreamCreate(), cuEventCreate() */
    RUEDA_CUDA_NON_BLOCKING = 1,
    RUEDA_CUDA_NO_TIMING = 2,

    /* cuPointerGetAttribute() */
    RUEDA_CUDA_ATTRIBUTE_MEMORY = 2,
    RUEDA_CUDA_ATTRIBUTE_ORDINAL = 9,
    RUEDA_CUDA_MEMORY_DEVICE = 2,

    /* cuThreadExchangeStreamCaptureMode() */
    RUEDA_CUDA_CAPTURE_RELAXED = 2,
};

/* The name that the library exports, the field, and the parameters. */
#define RUEDA_CUDA_FUNCTIONS(X)                                                \
    X(cuInit, init, (unsigned flags))                                          \
    X(cuDriverGetVersion, version, (int *out))                                 \
    X(cuGetErrorName, error_name, (rueda_cuda_result, const char **out))       \
    X(cuGetErrorString, error_string, (rueda_cuda_result, const char **out))   \
    X(cuDeviceGetCount, device_count, (int *out))                              \
    X(cuDeviceGet, device_get, (rueda_cuda_ordinal * out, int number))         \
    X(cuDeviceGetName, device_name,                                            \
      (char *out, int bytes, rueda_cuda_ordinal device))                       \
    X(cuDeviceGetUuid, device_uuid, (void *out, rueda_cuda_ordinal device))    \
    X(cuDevicePrimaryCtxRetain, context_retain,                                \
      (void **out, rueda_cuda_ordinal device))                                 \
    X(cuDevicePrimaryCtxRelease_v2, context_release,                           \
      (rueda_cuda_ordinal device))                                             \
    X(cuCtxPushCurrent_v2, context_push, (void *context))                      \
    X(cuCtxPopCurrent_v2, context_pop, (void **out))                           \
    X(cuThreadExchangeStreamCaptureMode, capture_mode, (int *mode))            \
    X(cuMemAlloc_v2, alloc, (void **out, size_t bytes))                        \
    X(cuMemFree_v2, free, (void *at))                                          \
    X(cuMemHostAlloc, host_alloc, (void **out, size_t bytes, unsigned flags))  \
    X(cuMemFreeHost, host_free, (void *at))                                    \
    X(cuMemcpyAsync, copy,                                                     \
      (void *dst, const void *src, size_t bytes, void *stream))                \
    X(cuStreamCreate, stream_create, (void **out, unsigned flags))             \
    X(cuStreamDestroy_v2, stream_destroy, (void *stream))                      \
    X(cuStreamQuery, stream_query, (void *stream))                             \
    X(cuStreamSynchronize, stream_synchronize, (void *stream))                 \
    X(cuStreamWaitEvent, stream_wait,                                          \
      (void *stream, void *event, unsigned flags))                             \
    X(cuStreamIsCapturing, stream_capturing, (void *stream, int *out))         \
    X(cuEventCreate, event_create, (void **out, unsigned flags))               \
    X(cuEventDestroy_v2, event_destroy, (void *event))                         \
    X(cuEventRecord, event_record, (void *event, void *stream))                \
    X(cuEventQuery, event_query, (void *event))                                \
    X(cuModuleLoadData, module_load, (void **out, const void *image))          \
    X(cuModuleUnload, module_unload, (void *module))                           \
    X(cuModuleGetFunction, module_function,                                    \
      (void **out, void *module, const char *name))                            \
    X(cuLaunchKernel, launch,                                                  \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,      \
       unsigned block_x, unsigned block_y, unsigned block_z,                   \
       unsigned shared_bytes, void *stream, void **params, void **extra))      \
    X(cuPointerGetAttribute, pointer_attribute,                                \
      (void *out, int attribute, const void *at))

/* NOLINTBEGIN(bugprone-macro-parentheses): they are parts of declarations */
struct rueda_cuda_driver {
    void *library;
#define X(symbol, field, parameters) rueda_cuda_result(*field) parameters;
    RUEDA_CUDA_FUNCTIONS(X)
#undef X
};
/* NOLINTEND(bugprone-macro-parentheses) */

/*
 * Load the library by this name or path, find its functions and start it. A
 * driver that has started stays loaded until the process ends, because threads
 * of its own may run. On failure nothing stays loaded, and error says what is
 * missing and what helps.
 */
rueda_status rueda_cuda_driver_open(struct rueda_cuda_driver *driver,
                                    const char *library,
                                    struct rueda_text *error);
/* A result of the driver as a status; and in words, with what helps. */
rueda_status rueda_cuda_status(rueda_cuda_result result);
void rueda_cuda_explain(const struct rueda_cuda_driver *driver,
                        rueda_cuda_result result, struct rueda_text *out);

#endif /* RUEDA_DEVICE_CUDA_DRIVER_H */
