/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnvidia-ml.so.1 with two GPUs, the second of which tells
 * neither how busy it is nor its power. FAKE_NVML_INIT is the code with which
 * nvmlInit_v2() fails.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    OK = 0,
    ARGUMENT = 2,
    UNSUPPORTED = 3,
};

static int gpus[2];
static atomic_int opened;

EXPORT int fake_nvml_opened(void)
{
    return opened;
}

EXPORT int nvmlInit_v2(void)
{
    const char *text = getenv("FAKE_NVML_INIT");

    if (text != NULL)
        return (int)strtol(text, NULL, 10);
    opened++;
    return OK;
}

EXPORT int nvmlShutdown(void)
{
    opened--;
    return OK;
}

EXPORT const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : "an error of the stand-in";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = 2;
    return OK;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    if (index >= 2)
        return ARGUMENT;
    *out = &gpus[index];
    return OK;
}

EXPORT int nvmlDeviceGetName(void *gpu, char *out, unsigned bytes)
{
    snprintf(out, bytes, "stand-in %d", (int)((int *)gpu - gpus));
    return OK;
}

EXPORT int nvmlDeviceGetUUID(void *gpu, char *out, unsigned bytes)
{
    snprintf(out, bytes, "GPU-%d", (int)((int *)gpu - gpus));
    return OK;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *gpu, unsigned *out)
{
    if (gpu == &gpus[1])
        return UNSUPPORTED;
    out[0] = 87;
    out[1] = 31;
    return OK;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long *out)
{
    (void)gpu;
    out[0] = 80ull << 30;
    out[1] = 60ull << 30;
    out[2] = 20ull << 30;
    return OK;
}

EXPORT int nvmlDeviceGetPowerUsage(void *gpu, unsigned *out)
{
    *out = 123500;
    return gpu == &gpus[1] ? UNSUPPORTED : OK;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *out)
{
    (void)gpu;
    *out = 700000;
    return OK;
}

EXPORT int nvmlDeviceGetTemperature(void *gpu, int sensor, unsigned *out)
{
    (void)gpu;
    *out = 39;
    return sensor == 0 ? OK : ARGUMENT;
}
