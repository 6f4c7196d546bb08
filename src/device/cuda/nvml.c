/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: metrics of GPUs from the driver's own library, which is loaded by the
 * first question. */
#include "device/cuda/nvml.h"

#include <string.h>

#include "os/library.h"

static rueda_status find_functions(struct rueda_nvml *nvml, const char *library,
                                   struct rueda_text *error)
{
#define X(symbol, field, parameters)                                           \
    if (rueda_library_function(nvml->library, #symbol, &nvml->field) !=        \
        RUEDA_OK) {                                                            \
        rueda_text_set(error,                                                  \
                       "%s has no function %s; update the NVIDIA driver, or "  \
                       "set RUEDA_NVML_LIB to its libnvidia-ml.so.1",          \
                       library, #symbol);                                      \
        return RUEDA_ERR_UNSUPPORTED;                                          \
    }
    RUEDA_NVML_FUNCTIONS(X)
    X(nvmlErrorString, error_string, )
#undef X
    return RUEDA_OK;
}

/* All failures are "unsupported": there are no metrics, and a job runs on. */
static rueda_status explain(const struct rueda_nvml *nvml,
                            rueda_nvml_result result, const char *what,
                            struct rueda_text *error)
{
    const char *words = nvml->error_string(result);

    rueda_text_set(error, "NVML: %s: %s", what,
                   words != NULL ? words : "unknown error");
    return RUEDA_ERR_UNSUPPORTED;
}

rueda_status rueda_nvml_open(struct rueda_nvml *nvml, const char *library,
                             struct rueda_text *error)
{
    rueda_nvml_result result;
    rueda_status status;

    memset(nvml, 0, sizeof(*nvml));
    nvml->library = rueda_library_open(library);
    if (nvml->library == NULL) {
        rueda_text_set(error,
                       "NVML's library %s cannot be loaded (%s), so there are "
                       "no metrics of NVIDIA GPUs; install the NVIDIA driver, "
                       "mount it into the container, or set RUEDA_NVML_LIB",
                       library, rueda_library_error());
        return RUEDA_ERR_UNSUPPORTED;
    }
    status = find_functions(nvml, library, error);
    if (status == RUEDA_OK) {
        result = nvml->init();
        if (result != 0)
            status = explain(nvml, result, "nvmlInit", error);
    }
    if (status != RUEDA_OK)
        rueda_library_close(nvml->library);
    return status;
}

void rueda_nvml_close(struct rueda_nvml *nvml)
{
    nvml->shut_down();
    rueda_library_close(nvml->library);
}

rueda_status rueda_nvml_count(const struct rueda_nvml *nvml, int *out,
                              struct rueda_text *error)
{
    unsigned count = 0;
    const rueda_nvml_result result = nvml->count(&count);

    if (result != 0)
        return explain(nvml, result, "nvmlDeviceGetCount", error);
    *out = (int)count;
    return RUEDA_OK;
}

/* What a GPU does not tell stays as it is. */
static void ask(const struct rueda_nvml *nvml, void *gpu,
                struct rueda_gpu_metrics *out)
{
    struct rueda_nvml_rates rates;
    struct rueda_nvml_memory memory;
    unsigned value;

    if (nvml->rates(gpu, &rates) == 0) {
        out->busy_percent = (int)rates.gpu;
        out->memory_busy_percent = (int)rates.memory;
    }
    if (nvml->memory(gpu, &memory) == 0) {
        out->memory_used_bytes = (int64_t)memory.used;
        out->memory_total_bytes = (int64_t)memory.total;
    }
    if (nvml->power(gpu, &value) == 0)
        out->power_watts = value / 1000.0;
    if (nvml->power_limit(gpu, &value) == 0)
        out->power_limit_watts = value / 1000.0;
    if (nvml->temperature(gpu, 0, &value) == 0)
        out->celsius = (int)value;
}

rueda_status rueda_nvml_read(const struct rueda_nvml *nvml, int index,
                             struct rueda_gpu_metrics *out,
                             struct rueda_text *error)
{
    void *gpu = NULL;
    const rueda_nvml_result result = nvml->get((unsigned)index, &gpu);

    if (result != 0)
        return explain(nvml, result, "nvmlDeviceGetHandleByIndex", error);
    *out = (struct rueda_gpu_metrics)RUEDA_GPU_METRICS_INIT;
    nvml->name(gpu, out->name, sizeof(out->name));
    nvml->uuid(gpu, out->uuid, sizeof(out->uuid));
    ask(nvml, gpu, out);
    return RUEDA_OK;
}
