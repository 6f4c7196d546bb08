/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping the timeline. */
#define RUEDA_LOG_TAG "api"

#include <string.h>

#include "api/ctx.h"
#include "base/log.h"

/* Horovod's word for a timeline that is only started by a call. */
#define DYNAMIC "DYNAMIC"

#define STOP_MS 30000

static rueda_status open_timeline(rueda_ctx *ctx, const char *path,
                                  bool marks_cycles, struct rueda_text *error)
{
    const struct rueda_timeline_args args = {
        .rank = ctx->job->rank,
        .ranks = ctx->job->size,
        .path = path,
        .marks_cycles = marks_cycles,
    };
    rueda_status status = rueda_timeline_open(&args, &ctx->timeline, error);

    if (status == RUEDA_OK)
        rueda_lanes_want_timeline(&ctx->engine.lanes, ctx->timeline);
    return status;
}

void rueda_timeline_begin_ctx(rueda_ctx *ctx)
{
    const struct rueda_config *config = &ctx->job->config;
    struct rueda_text error = {{0}};

    pthread_mutex_init(&ctx->timeline_lock, NULL);
    if (config->timeline[0] == '\0' || strcmp(config->timeline, DYNAMIC) == 0)
        return;
    if (open_timeline(ctx, config->timeline, config->mark_cycles, &error) !=
        RUEDA_OK)
        log_error("no timeline: %s", error.chars);
}

void rueda_timeline_end_ctx(rueda_ctx *ctx)
{
    rueda_timeline_close(ctx->timeline);
    pthread_mutex_destroy(&ctx->timeline_lock);
}

rueda_status rueda_timeline_start(rueda_ctx *ctx, const char *path,
                                  unsigned flags)
{
    rueda_status status = rueda_ctx_check(ctx);
    struct rueda_text error = {{0}};

    if (status != RUEDA_OK)
        return status;
    if (path == NULL || path[0] == '\0')
        return rueda_fault(RUEDA_ERR_INVALID,
                           "a timeline needs the name of a file");
    pthread_mutex_lock(&ctx->timeline_lock);
    if (ctx->timeline != NULL) {
        status = RUEDA_ERR_INVALID;
        rueda_text_set(&error, "there is a timeline already; stop it first");
    } else {
        status =
            open_timeline(ctx, path, (flags & RUEDA_MARK_CYCLES) != 0, &error);
    }
    pthread_mutex_unlock(&ctx->timeline_lock);
    return status == RUEDA_OK ? status : rueda_fault(status, error.chars);
}

/* Every rank has come so far, and so has my engine. */
static rueda_status meet(rueda_ctx *ctx, const char *name)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle;
    rueda_status status;

    args.kind = RUEDA_BARRIER;
    args.name = name;
    status = rueda_submit(ctx, &args, &handle);
    return status == RUEDA_OK ? rueda_wait(ctx, handle, STOP_MS) : status;
}

/*
 * The notes of the others are sent before they meet for the first time, so rank
 * 0 has them all then, and stops. When they have met again, no engine uses its
 * timeline any more. If that fails the timeline stays until the end.
 */
static rueda_status stop(rueda_ctx *ctx)
{
    struct rueda_lanes *lanes = &ctx->engine.lanes;
    rueda_status status;

    if (ctx->job->rank != 0)
        rueda_lanes_want_timeline(lanes, NULL);
    status = meet(ctx, "rueda.timeline.stop");
    if (status != RUEDA_OK)
        return status;
    rueda_lanes_want_timeline(lanes, NULL);
    status = meet(ctx, "rueda.timeline.stopped");
    if (status != RUEDA_OK)
        return status;
    rueda_timeline_close(ctx->timeline);
    ctx->timeline = NULL;
    return RUEDA_OK;
}

rueda_status rueda_timeline_stop(rueda_ctx *ctx)
{
    rueda_status status = rueda_ctx_check(ctx);

    if (status != RUEDA_OK)
        return status;
    pthread_mutex_lock(&ctx->timeline_lock);
    if (ctx->timeline == NULL)
        status = rueda_fault(RUEDA_ERR_INVALID, "there is no timeline to stop");
    else
        status = stop(ctx);
    pthread_mutex_unlock(&ctx->timeline_lock);
    return status;
}
