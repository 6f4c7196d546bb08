/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping the timeline. */
#define RUEDA_LOG_TAG "api"

#include <string.h>

#include "api/ctx.h"
#include "base/log.h"

/* Horovod's word for a timeline that is only started by a call. */
#define DYNAMIC "DYNAMIC"

/* For the other ranks to come as well. */
#define MEET_MS 30000

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

/* Every rank has come so far, and so has my engine. */
static rueda_status meet(rueda_ctx *ctx, struct rueda_submit_args *args)
{
    rueda_handle handle;
    rueda_status status = rueda_submit(ctx, args, &handle);

    return status == RUEDA_OK ? rueda_wait(ctx, handle, MEET_MS) : status;
}

static rueda_status meet_at(rueda_ctx *ctx, const char *name)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = RUEDA_BARRIER;
    args.name = name;
    return meet(ctx, &args);
}

/* What rank 0 says of its file comes to all ranks. */
static rueda_status share_news(rueda_ctx *ctx)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    const size_t bytes = sizeof(ctx->timeline_news);

    args.kind = RUEDA_BROADCAST;
    args.name = "rueda.timeline.start";
    args.dtype = RUEDA_UINT8;
    args.send = &ctx->timeline_news;
    args.recv = &ctx->timeline_news;
    args.dims = 1;
    args.shape = &bytes;
    return meet(ctx, &args);
}

/*
 * Rank 0 makes the file, and keeps the timeline before the others begin to note
 * anything for it. If somebody does not come, the timeline of those who have
 * one stays.
 */
static rueda_status start(rueda_ctx *ctx, const char *path, bool marks_cycles)
{
    struct rueda_timeline_news *news = &ctx->timeline_news;
    rueda_status status = RUEDA_OK;

    memset(news, 0, sizeof(*news));
    if (ctx->job->rank == 0 && (path == NULL || path[0] == '\0')) {
        news->status = RUEDA_ERR_INVALID;
        rueda_text_set(&news->why, "a timeline needs the name of a file");
    } else if (ctx->job->rank == 0) {
        news->status = open_timeline(ctx, path, marks_cycles, &news->why);
    }
    if (ctx->job->size > 1)
        status = share_news(ctx);
    if (status != RUEDA_OK)
        return status;
    if (news->status != RUEDA_OK) {
        news->why.chars[sizeof(news->why.chars) - 1] = '\0';
        return rueda_fault(news->status, news->why.chars);
    }
    if (ctx->job->rank != 0)
        status = open_timeline(ctx, path, marks_cycles, &news->why);
    return status == RUEDA_OK ? status : rueda_fault(status, news->why.chars);
}

rueda_status rueda_timeline_start(rueda_ctx *ctx, const char *path,
                                  unsigned flags)
{
    rueda_status status = rueda_ctx_check(ctx);

    if (status == RUEDA_OK)
        status = rueda_ctx_check_wait();
    if (status != RUEDA_OK)
        return status;
    pthread_mutex_lock(&ctx->timeline_lock);
    if (ctx->timeline != NULL)
        status = rueda_fault(RUEDA_ERR_INVALID,
                             "there is a timeline already; stop it first");
    else
        status = start(ctx, path, (flags & RUEDA_MARK_CYCLES) != 0);
    pthread_mutex_unlock(&ctx->timeline_lock);
    return status;
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
    status = meet_at(ctx, "rueda.timeline.stop");
    if (status != RUEDA_OK)
        return status;
    rueda_lanes_want_timeline(lanes, NULL);
    status = meet_at(ctx, "rueda.timeline.stopped");
    if (status != RUEDA_OK)
        return status;
    rueda_timeline_close(ctx->timeline);
    ctx->timeline = NULL;
    return RUEDA_OK;
}

rueda_status rueda_timeline_stop(rueda_ctx *ctx)
{
    rueda_status status = rueda_ctx_check(ctx);

    if (status == RUEDA_OK)
        status = rueda_ctx_check_wait();
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
