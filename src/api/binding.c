/* SPDX-License-Identifier: Apache-2.0 */
/* What default.h has for the modules of bindings beside the context itself. */
#define RUEDA_LOG_TAG "bind"

#include "api/ctx.h"
#include "api/default.h"
#include "base/log.h"
#include "os/memory.h"

rueda_status rueda_default_map(const rueda_ctx *ctx, const void *memory,
                               size_t bytes, void **out)
{
    const struct rueda_segment *segment = ctx->job->segment;

    return rueda_memory_map_part(rueda_segment_fd(segment),
                                 rueda_segment_offset(segment, memory), bytes,
                                 out);
}

void rueda_default_unmap(void *at, size_t bytes)
{
    rueda_memory_unmap(at, bytes);
}

void rueda_default_debug(const rueda_ctx *ctx, const char *words)
{
    (void)ctx;
    log_debug("%s", words);
}
