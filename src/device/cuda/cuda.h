/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs with CUDA, as a kind of memory (device/device.h). One device is one GPU
 * as one context of the library uses it.
 *
 * The driver is loaded by rueda_cuda_open(). The GPU's primary context is
 * shared with the frameworks of the process; each call makes it current for
 * the calling thread and restores what was current before. Every row of work
 * has a stream of its own, so rows run at the same time and never wait for the
 * application's streams but by after().
 */
#ifndef RUEDA_DEVICE_CUDA_CUDA_H
#define RUEDA_DEVICE_CUDA_CUDA_H

#include "base/config.h"
#include "device/device.h"

/*
 * Open GPU `number`, counted as the process sees them (CUDA_VISIBLE_DEVICES),
 * with the driver library of this name or path. Blocks: the first time on a
 * machine the driver compiles the kernels, and keeps them in its cache. On
 * failure nothing is left, and error says why and what helps. Any thread.
 */
rueda_status rueda_cuda_open(const char *library, int number,
                             const struct rueda_device **out,
                             struct rueda_text *error);

/* What the settings say about its algorithms and its memory. Without this call
 * it has no algorithms, and its memory may be shared. The settings are borrowed
 * until it is closed. */
void rueda_cuda_set_up(const struct rueda_device *device,
                       const struct rueda_config *config);

/* Waits for what is in progress. */
void rueda_cuda_close(const struct rueda_device *device);

#endif /* RUEDA_DEVICE_CUDA_CUDA_H */
