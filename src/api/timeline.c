/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping the timeline: rank 0 does, and the others hear of it
 * (engine/timeline_relay.c). */
#define RUEDA_LOG_TAG "api"

#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "base/log.h"

/* Horovod's word for a timeline that is only started by a call. */
#define DYNAMIC "DYNAMIC"

/* Have the engine do this; it sees to it that it takes a few seconds at most.
 */
static rueda_status switch_to(rueda_ctx *ctx, int kind,
                              struct rueda_timeline *timeline,
                              bool marks_cycles)
{
    struct rueda_ticket ticket = {.set = RUEDA_SET_GLOBAL};
    rueda_status status;

    rueda_op_init(&ticket.op);
    rueda_ticket_init(&ticket, kind);
    ticket.recv = timeline;
    ticket.request.flags = marks_cycles;
    rueda_engine_submit(&ctx->engine, &ticket.op);
    status = rueda_engine_wait(&ctx->engine, &ticket.op, -1);
    return status == RUEDA_OK ? status : rueda_fault(status, rueda_error(ctx));
}

/* The file is whole then. If this fails the timeline stays until the end. */
static rueda_status stop(rueda_ctx *ctx)
{
    rueda_status status = switch_to(ctx, RUEDA_TIMELINE_STOP, NULL, false);

    if (status != RUEDA_OK)
        return status;
    rueda_timeline_close(ctx->timeline);
    ctx->timeline = NULL;
    free(ctx->timeline_path);
    ctx->timeline_path = NULL;
    return RUEDA_OK;
}

/* Replaces a running timeline, if there is one; that continues if the new file
 * cannot be made. */
static rueda_status start(rueda_ctx *ctx, const char *path, bool marks_cycles)
{
    const struct rueda_timeline_args args = {
        .ranks = rueda_size(ctx),
        .path = path,
        .marks_cycles = marks_cycles,
    };
    struct rueda_text error = {{0}};
    struct rueda_timeline *timeline = NULL;
    char *kept_path = strdup(path);
    rueda_status status = kept_path != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;

    if (status == RUEDA_OK)
        status = rueda_timeline_open(&args, &timeline, &error);
    if (status != RUEDA_OK) {
        rueda_text_set(&error, "%s", rueda_status_str(status));
        free(kept_path);
        return rueda_fault(status, error.chars);
    }
    if (ctx->timeline != NULL)
        status = stop(ctx);
    if (status == RUEDA_OK)
        status = switch_to(ctx, RUEDA_TIMELINE_START, timeline, marks_cycles);
    if (status != RUEDA_OK) {
        rueda_timeline_close(timeline);
        free(kept_path);
        return status;
    }
    ctx->timeline = timeline;
    ctx->timeline_path = kept_path;
    return RUEDA_OK;
}

void rueda_ctx_begin_timeline(rueda_ctx *ctx)
{
    const struct rueda_config *config = &ctx->job->config;

    pthread_mutex_init(&ctx->timeline_lock, NULL);
    if (rueda_ctx_formation(ctx)->rank != 0 || config->timeline[0] == '\0' ||
        strcmp(config->timeline, DYNAMIC) == 0)
        return;
    if (start(ctx, config->timeline, config->mark_cycles) != RUEDA_OK)
        log_error("no timeline: %s", rueda_last_error());
}

void rueda_ctx_end_timeline(rueda_ctx *ctx)
{
    rueda_timeline_close(ctx->timeline);
    free(ctx->timeline_path);
    pthread_mutex_destroy(&ctx->timeline_lock);
}

/* May it be called here and now? */
static rueda_status check(const rueda_ctx *ctx)
{
    rueda_status status = rueda_ctx_check(ctx);

    return status == RUEDA_OK ? rueda_ctx_check_wait() : status;
}

/* Only rank 0 does anything; the call is allowed on all ranks, as Horovod's is.
 */
rueda_status rueda_timeline_start(rueda_ctx *ctx, const char *path,
                                  unsigned flags)
{
    rueda_status status = check(ctx);

    if (status != RUEDA_OK || rueda_ctx_formation(ctx)->rank != 0)
        return status;
    if (path == NULL || path[0] == '\0')
        return rueda_fault(RUEDA_ERR_INVALID,
                           "a timeline needs the name of a file");
    pthread_mutex_lock(&ctx->timeline_lock);
    if (ctx->timeline == NULL || strcmp(path, ctx->timeline_path) != 0)
        status = start(ctx, path, (flags & RUEDA_MARK_CYCLES) != 0);
    pthread_mutex_unlock(&ctx->timeline_lock);
    return status;
}

/* Rank 0 waits until all ranks have sent what they noted; the others send it
 * and return. */
rueda_status rueda_timeline_stop(rueda_ctx *ctx)
{
    rueda_status status = check(ctx);

    if (status != RUEDA_OK || rueda_is_server(ctx))
        return status;
    pthread_mutex_lock(&ctx->timeline_lock);
    if (rueda_ctx_formation(ctx)->rank != 0)
        status = switch_to(ctx, RUEDA_TIMELINE_STOP, NULL, false);
    else if (ctx->timeline != NULL)
        status = stop(ctx);
    pthread_mutex_unlock(&ctx->timeline_lock);
    return status;
}
