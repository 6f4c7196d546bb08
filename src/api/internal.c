/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <stdlib.h>

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

bool rueda_internal_algo_needs_slab(const char *name)
{
    const struct rueda_algo *algo = rueda_algo_find(name);

    return algo != NULL && algo->needs_slab;
}

bool rueda_internal_algo_needs_hosts(const char *name)
{
    const struct rueda_algo *algo = rueda_algo_find(name);

    return algo != NULL && algo->needs_hier;
}

const char *rueda_internal_kernels_find(const char *wanted)
{
    const struct rueda_kernels *kernels = rueda_host_kernels(wanted);

    return kernels != NULL ? rueda_kernels_name(kernels) : NULL;
}

const char *rueda_internal_kernels(const rueda_ctx *ctx)
{
    return rueda_kernels_name(ctx->engine.track.place.kernels);
}

const char *rueda_internal_transport(const rueda_ctx *ctx)
{
    return ctx->engine.track.place.slab != NULL ? "direct"
                                                : rueda_job_transport(ctx->job);
}

static void widen(rueda_ctx *ctx)
{
    struct rueda_place *place = &ctx->engine.track.place;

    if (place->mesh == &ctx->job->mesh)
        return;
    rueda_mesh_fini(place->mesh);
    free(place->mesh);
    place->mesh = &ctx->job->mesh;
}

rueda_status rueda_internal_narrow(rueda_ctx *ctx, const int *ranks, int count)
{
    struct rueda_mesh *view;
    rueda_status status;

    widen(ctx);
    if (ranks == NULL)
        return RUEDA_OK;
    view = calloc(1, sizeof(*view));
    if (view == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_mesh_init_view(view, &ctx->job->mesh, ranks, count);
    if (status != RUEDA_OK) {
        free(view);
        return status;
    }
    ctx->engine.track.place.mesh = view;
    return RUEDA_OK;
}
