/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML, which tells how busy NVIDIA GPUs are: its functions that we use, found
 * at run time in libnvidia-ml.so.1, which belongs to the driver. No header and
 * no library of it is needed to build. Not for several threads at once.
 */
#ifndef RUEDA_DEVICE_CUDA_NVML_H
#define RUEDA_DEVICE_CUDA_NVML_H

#include <rueda/rueda.h>

#include "base/text.h"

typedef int rueda_nvml_result; /* nvmlReturn_t */

struct rueda_nvml_rates { /* nvmlUtilization_t, in percent */
    unsigned gpu;
    unsigned memory;
};

struct rueda_nvml_memory { /* nvmlMemory_t, in bytes */
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

/* The name that the library exports, the field, and the parameters. */
#define RUEDA_NVML_FUNCTIONS(X)                                                \
    X(nvmlInit_v2, init, (void))                                               \
    X(nvmlShutdown, shut_down, (void))                                         \
    X(nvmlDeviceGetCount_v2, count, (unsigned *out))                           \
    X(nvmlDeviceGetHandleByIndex_v2, get, (unsigned index, void **out))        \
    X(nvmlDeviceGetName, name, (void *gpu, char *out, unsigned bytes))         \
    X(nvmlDeviceGetUUID, uuid, (void *gpu, char *out, unsigned bytes))         \
    X(nvmlDeviceGetUtilizationRates, rates,                                    \
      (void *gpu, struct rueda_nvml_rates *out))                               \
    X(nvmlDeviceGetMemoryInfo, memory,                                         \
      (void *gpu, struct rueda_nvml_memory *out))                              \
    X(nvmlDeviceGetPowerUsage, power, (void *gpu, unsigned *out_mw))           \
    X(nvmlDeviceGetEnforcedPowerLimit, power_limit,                            \
      (void *gpu, unsigned *out_mw))                                           \
    X(nvmlDeviceGetTemperature, temperature,                                   \
      (void *gpu, int sensor, unsigned *out_celsius))

/* NOLINTBEGIN(bugprone-macro-parentheses): they are parts of declarations */
struct rueda_nvml {
    void *library;
    const char *(*error_string)(rueda_nvml_result result);
#define X(symbol, field, parameters) rueda_nvml_result(*field) parameters;
    RUEDA_NVML_FUNCTIONS(X)
#undef X
};
/* NOLINTEND(bugprone-macro-parentheses) */

/* Load the library and start it. Blocks. On failure nothing stays, and error
 * says what is missing and what helps. */
rueda_status rueda_nvml_open(struct rueda_nvml *nvml, const char *library,
                             struct rueda_text *error);
void rueda_nvml_close(struct rueda_nvml *nvml);

/* GPUs that it sees; and what one of them says. On failure, with words in
 * error, the outputs are left alone. */
rueda_status rueda_nvml_count(const struct rueda_nvml *nvml, int *out,
                              struct rueda_text *error);
rueda_status rueda_nvml_read(const struct rueda_nvml *nvml, int index,
                             struct rueda_gpu_metrics *out,
                             struct rueda_text *error);

#endif /* RUEDA_DEVICE_CUDA_NVML_H */
