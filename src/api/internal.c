/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/ctx.h"

const char *rueda_internal_algo_name(size_t i, rueda_kind kind)
{
    for (int at = 0; rueda_algos[at] != NULL; at++) {
        const struct rueda_algo *algo = rueda_algos[at];

        if ((algo->kinds & 1u << kind) == 0 || algo->does_adasum)
            continue;
        if (i == 0)
            return algo->name;
        i--;
    }
    return NULL;
}

const char *rueda_internal_kernels(const rueda_ctx *ctx)
{
    return rueda_kernels_name(ctx->engine.place.kernels);
}

const char *rueda_internal_transport(const rueda_ctx *ctx)
{
    return ctx->job->has_slab ? "direct" : rueda_job_transport(ctx->job);
}
