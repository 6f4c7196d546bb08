/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of GPUs. */
#include <string.h>

#include "api/ctx.h"

/* The size of the struct in the first release, which never changes. */
#define FIRST_METRICS_BYTES 248
_Static_assert(sizeof(struct rueda_gpu_metrics) >= FIRST_METRICS_BYTES,
               "it only grows");

rueda_status rueda_gpu_count(rueda_ctx *ctx, int *out_count)
{
    struct rueda_text error = {{0}};
    rueda_status status = RUEDA_ERR_FORKED;

    if (atomic_load(&ctx->is_forked))
        return rueda_fault(status, rueda_error(ctx));
    status = rueda_gauge_count(&ctx->gauge, ctx->job->config.nvml_library,
                               out_count, &error);
    return status == RUEDA_OK ? status : rueda_fault(status, error.chars);
}

rueda_status rueda_gpu_read(rueda_ctx *ctx, int index,
                            struct rueda_gpu_metrics *out)
{
    const size_t bytes = out->struct_size;
    struct rueda_gpu_metrics all = RUEDA_GPU_METRICS_INIT;
    struct rueda_text error = {{0}};
    rueda_status status = RUEDA_ERR_FORKED;

    if (bytes < FIRST_METRICS_BYTES)
        return rueda_fault(RUEDA_ERR_INVALID,
                           "struct_size of the metrics is too small; "
                           "initialise them with RUEDA_GPU_METRICS_INIT");
    if (atomic_load(&ctx->is_forked))
        return rueda_fault(status, rueda_error(ctx));
    status = rueda_gauge_read(&ctx->gauge, ctx->job->config.nvml_library, index,
                              &all, &error);
    if (status != RUEDA_OK)
        return rueda_fault(status, error.chars);
    memcpy(out, &all, bytes < sizeof(all) ? bytes : sizeof(all));
    out->struct_size = bytes;
    return RUEDA_OK;
}
