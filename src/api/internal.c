/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/ctx.h"
#include "device/host.h"
#include "job/links.h"

/* The i-th algorithm that can run the kind, in the order of the registry; NULL:
 * there are no more. */
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

const char *rueda_internal_transport(const rueda_ctx *ctx)
{
    return !rueda_is_server(ctx) &&
                   rueda_engine_place(&ctx->engine)->slab != NULL
               ? "direct"
               : rueda_links_name(ctx->job->formation);
}
