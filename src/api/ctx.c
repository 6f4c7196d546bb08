/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context from rueda_init() to rueda_shutdown(), and what it tells about
 * itself.
 */
#define RUEDA_LOG_TAG "api"

#include "api/ctx.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/horovod.h"
#include "base/log.h"
#include "base/seldom.h"
#include "job/rendezvous.h"

static const char forked_words[] =
    "this context belongs to the parent of a fork(); call rueda_init() again "
    "in the child, or start workers before rueda_init()";

/* In the child no other thread is running: only flags and
 * descriptors matter. */
static void in_child(struct rueda_fork_hook *hook)
{
    rueda_ctx *ctx =
        (rueda_ctx *)((char *)hook - offsetof(struct rueda_ctx, fork_hook));

    atomic_store(&ctx->is_forked, true);
    rueda_job_forked(ctx->job);
    if (ctx->timeline != NULL)
        rueda_timeline_leave(ctx->timeline);
}

/* Takes the job in any case. The fork hook comes last: it reaches into a
 * context that is complete. */
static rueda_status ctx_new(struct rueda_job *job, rueda_ctx **out,
                            struct rueda_text *error)
{
    rueda_ctx *ctx = calloc(1, sizeof(*ctx));
    rueda_status status = RUEDA_ERR_NOMEM;

    if (ctx == NULL)
        goto err_job;
    ctx->job = job;
    status = rueda_engine_init(&ctx->engine, job, error);
    if (status != RUEDA_OK)
        goto err_free;
    rueda_op_pool_init(&ctx->ops);
    rueda_names_init(&ctx->names);
    rueda_gauge_init(&ctx->gauge);
    rueda_ctx_begin_timeline(ctx);
    ctx->fork_hook.in_child = in_child;
    rueda_fork_hook_add(&ctx->fork_hook);
    *out = ctx;
    return RUEDA_OK;

err_free:
    free(ctx);
err_job:
    rueda_job_close(job);
    return status;
}

/* In place of a list of process sets: there is none yet. */
#define DYNAMIC "dynamic"

/* The caller's list wins over RUEDA_PROCESS_SETS, also an empty one. */
static const char *sets_of(const struct rueda_init_args *args,
                           const struct rueda_config *config)
{
    return args->process_sets != NULL ? args->process_sets
                                      : config->process_sets;
}

/* Settings, with what the caller says in their place. The log's level is set as
 * soon as it is known, so that what follows is logged by it. */
static rueda_status load(const struct rueda_init_args *args,
                         struct rueda_config *config, struct rueda_text *error)
{
    rueda_status status = rueda_config_load(config, error);

    if (status != RUEDA_OK)
        return status;
    rueda_log_set_level(config->log_level);
    if (args->timeout_ms > 0)
        config->start_timeout_ms = args->timeout_ms;
    if (args->servers >= 0)
        config->servers = args->servers;
    if (strcmp(sets_of(args, config), DYNAMIC) == 0)
        config->dynamic_sets = true;
    if (args->key_file != NULL &&
        snprintf(config->key_file, sizeof(config->key_file), "%s",
                 args->key_file) >= (int)sizeof(config->key_file)) {
        rueda_text_set(error, "the name of the key file has over %d characters",
                       RUEDA_PATH_BYTES - 1);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* What job/ needs from the caller's arguments. */
static struct rueda_job_args job_args(const struct rueda_init_args *args)
{
    struct rueda_job_args wanted = {.exchange = args->exchange,
                                    .exchange_arg = args->exchange_arg};
    struct rueda_seat_query *query = &wanted.query;

    rueda_seat_query_init(query);
    query->rank = args->rank;
    query->size = args->size;
    query->local_rank = args->local_rank;
    query->local_size = args->local_size;
    query->cross_rank = args->cross_rank;
    query->cross_size = args->cross_size;
    query->has_exchange = args->exchange != NULL;
    query->job = args->job;
    query->store = args->store;
    return wanted;
}

/* The size of the arguments in the first release, which never changes: a
 * program that was compiled against any release passes at least so much. */
#define FIRST_ARGS_BYTES 56
_Static_assert(sizeof(struct rueda_init_args) >= FIRST_ARGS_BYTES,
               "arguments only grow");

/* Complete what the caller passed, which may be older and shorter, or NULL. */
static rueda_status complete(const struct rueda_init_args *args,
                             struct rueda_init_args *out)
{
    size_t bytes;

    *out = (struct rueda_init_args)RUEDA_INIT_ARGS_INIT;
    if (args == NULL)
        return RUEDA_OK;
    bytes = args->struct_size;
    if (bytes < FIRST_ARGS_BYTES) {
        log_error("struct_size of the arguments is %zu; initialise them with "
                  "RUEDA_INIT_ARGS_INIT",
                  bytes);
        return rueda_fault(RUEDA_ERR_INVALID,
                           "struct_size of the arguments is too small; "
                           "initialise them with RUEDA_INIT_ARGS_INIT");
    }
    memcpy(out, args, bytes < sizeof(*out) ? bytes : sizeof(*out));
    return RUEDA_OK;
}

/* A caller that has given room gets the message and decides whether it is
 * printed; for the others it is logged. rueda_last_error() has it in any case.
 */
static void report(const struct rueda_init_args *args, rueda_status status,
                   struct rueda_text *error)
{
    rueda_text_set(error, "%s", rueda_status_str(status));
    if (args->error != NULL && args->error_bytes > 0)
        snprintf(args->error, args->error_bytes, "%s", error->chars);
    else
        log_error("%s", error->chars);
    rueda_fault(status, error->chars);
}

/* Those that are there from the start; without them there is no context. */
static rueda_status make_sets(rueda_ctx *ctx,
                              const struct rueda_init_args *args,
                              struct rueda_text *error)
{
    const char *sets = sets_of(args, &ctx->job->config);
    rueda_status status = RUEDA_OK;

    if (strcmp(sets, DYNAMIC) != 0 && !rueda_is_server(ctx))
        status = rueda_static_sets_make(ctx, sets, error);
    if (status != RUEDA_OK)
        rueda_shutdown(ctx);
    return status;
}

/* In an elastic job a rank may be lost while the others start; these then start
 * again without it. */
static rueda_status open_ctx(const struct rueda_config *config,
                             const struct rueda_init_args *args,
                             const struct rueda_job_args *wanted,
                             rueda_ctx **out, struct rueda_text *error)
{
    struct rueda_job *job;
    rueda_status status;
    rueda_ctx *ctx = NULL;

    do {
        error->chars[0] = '\0';
        status = rueda_job_open(config, wanted, &job, error);
        if (status == RUEDA_OK)
            status = ctx_new(job, &ctx, error);
        if (status == RUEDA_OK)
            status = make_sets(ctx, args, error);
        if (status != RUEDA_OK)
            log_info("%s", error->chars);
    } while (rueda_rendezvous_may_retry(status));
    if (status == RUEDA_OK)
        *out = ctx;
    return status;
}

/* Settings first, then the job, then the context: a setting that is wrong is
 * reported before this rank waits for others. */
rueda_status rueda_init(const struct rueda_init_args *args, rueda_ctx **out_ctx)
{
    struct rueda_text error = {{0}};
    struct rueda_init_args all;
    struct rueda_job_args wanted;
    struct rueda_config config;
    rueda_status status;
    rueda_ctx *ctx;

    status = complete(args, &all);
    if (status != RUEDA_OK)
        return status;
    wanted = job_args(&all);
    status = load(&all, &config, &error);
    if (status == RUEDA_OK && strcmp(sets_of(&all, &config), DYNAMIC) != 0)
        wanted.sets = sets_of(&all, &config);
    if (status == RUEDA_OK)
        status = open_ctx(&config, &all, &wanted, &ctx, &error);
    if (status != RUEDA_OK) {
        report(&all, status, &error);
        return status;
    }
    if (rueda_ctx_formation(ctx)->rank == 0)
        rueda_horovod_tell(&config);
    *out_ctx = ctx;
    return RUEDA_OK;
}

/* All of them or none; the jobs are taken either way. */
static rueda_status ctx_new_all(struct rueda_job **jobs, int size,
                                rueda_ctx **out, struct rueda_text *error)
{
    for (int i = 0; i < size; i++) {
        rueda_status status = ctx_new(jobs[i], &out[i], error);

        if (status == RUEDA_OK)
            continue;
        for (int k = 0; k < i; k++)
            rueda_shutdown(out[k]);
        for (int k = i + 1; k < size; k++)
            rueda_job_close(jobs[k]);
        return status;
    }
    return RUEDA_OK;
}

/* All ranks of a job as threads of this process, for tests and for programs
 * that want them so. All contexts are made, or none. */
rueda_status rueda_init_threads(int size, const struct rueda_init_args *args,
                                rueda_ctx **out_ctx)
{
    struct rueda_text error = {{0}};
    struct rueda_init_args all;
    struct rueda_config config;
    const size_t room = size > 0 ? (size_t)size : 1;
    struct rueda_job **jobs;
    rueda_ctx **made;
    rueda_status status;

    status = complete(args, &all);
    if (status != RUEDA_OK)
        return status;
    jobs = calloc(room, sizeof(struct rueda_job *));
    made = calloc(room, sizeof(rueda_ctx *));
    status = jobs == NULL || made == NULL ? RUEDA_ERR_NOMEM
                                          : load(&all, &config, &error);
    if (status == RUEDA_OK)
        status = rueda_job_open_threads(&config, size, jobs, &error);
    if (status == RUEDA_OK)
        status = ctx_new_all(jobs, size, made, &error);
    if (status == RUEDA_OK) {
        memcpy(out_ctx, made, room * sizeof(rueda_ctx *));
        rueda_horovod_tell(&config);
    } else {
        report(&all, status, &error);
    }
    free(made);
    free(jobs);
    return status;
}

/* Ends what is unfinished. Harmless when repeated, and in the child of a fork.
 */
void rueda_shutdown(rueda_ctx *ctx)
{
    if (ctx != NULL && rueda_then_is_running()) {
        log_error("rueda_shutdown() is refused in a callback, whose thread it "
                  "would wait for; call it from a thread of yours");
        return;
    }
    /* Not in the list: forked, or shut down before and no longer ours. */
    if (ctx == NULL || !rueda_fork_hook_remove(&ctx->fork_hook))
        return;
    rueda_engine_fini(&ctx->engine);
    rueda_ctx_end_timeline(ctx);
    rueda_job_close(ctx->job);
    rueda_op_pool_fini(&ctx->ops);
    rueda_names_fini(&ctx->names);
    rueda_gauge_fini(&ctx->gauge);
    free(ctx);
}

int rueda_rank(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->rank;
}

/* Servers are the last ranks, and do not count. */
int rueda_size(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->size - ctx->job->config.servers;
}

int rueda_server_count(const rueda_ctx *ctx)
{
    return ctx->job->config.servers;
}

bool rueda_is_server(const rueda_ctx *ctx)
{
    return rueda_rank(ctx) >= rueda_size(ctx);
}

bool rueda_is_lost(const rueda_ctx *ctx, int rank)
{
    return rank >= 0 && rank < ctx->job->formation->size &&
           atomic_load(&ctx->engine.lanes.lost[rank]);
}

bool rueda_is_master(const rueda_ctx *ctx)
{
    return rueda_rank(ctx) == 0;
}

int rueda_local_rank(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->row.local_rank;
}

int rueda_local_size(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->row.local_size;
}

int rueda_cross_rank(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->row.cross_rank;
}

int rueda_cross_size(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->row.cross_size;
}

bool rueda_is_homogeneous(const rueda_ctx *ctx)
{
    return rueda_ctx_formation(ctx)->topology == NULL ||
           rueda_ctx_formation(ctx)->topology->is_homogeneous;
}

/* The engine tells the other ranks; this call does not wait for that. */
void rueda_fail(rueda_ctx *ctx, const char *why)
{
    if (!atomic_load(&ctx->is_forked))
        rueda_engine_abort(&ctx->engine, why != NULL ? why : "no reason given");
}

const char *rueda_error(const rueda_ctx *ctx)
{
    if (atomic_load(&ctx->is_forked))
        return forked_words;
    /* Acquire: the message is written before the status. */
    if (atomic_load_explicit(&ctx->engine.failed, memory_order_acquire) == 0)
        return "";
    return ctx->engine.error.chars;
}

/* Of one thread, as errno is. */
static _Thread_local struct rueda_text last_error;

const char *rueda_last_error(void)
{
    return last_error.chars;
}

rueda_status rueda_fault(rueda_status status, const char *words)
{
    /* They may be those that are kept already. */
    if (words != last_error.chars) {
        last_error.chars[0] = '\0';
        rueda_text_set(&last_error, "%s", words);
    }
    return status;
}

/* On the path of every operation: two loads, and no lock. */
rueda_status rueda_ctx_check(const rueda_ctx *ctx)
{
    rueda_status status = RUEDA_ERR_FORKED;

    if (!atomic_load_explicit(&ctx->is_forked, memory_order_relaxed))
        status = (rueda_status)atomic_load_explicit(&ctx->engine.failed,
                                                    memory_order_acquire);
    return status == RUEDA_OK ? status : rueda_fault(status, rueda_error(ctx));
}

RUEDA_SELDOM static rueda_status refuse_server(const rueda_ctx *ctx)
{
    struct rueda_text error = {{0}};

    rueda_text_set(&error,
                   "rank %d is one of %d servers (RUEDA_SERVERS), which are in "
                   "no collective; use messages in RUEDA_WHOLE_JOB",
                   rueda_rank(ctx), rueda_server_count(ctx));
    return rueda_fault(RUEDA_ERR_INVALID, error.chars);
}

rueda_status rueda_ctx_check_worker(const rueda_ctx *ctx)
{
    if (ctx->job->config.servers == 0 || !rueda_is_server(ctx))
        return RUEDA_OK;
    return refuse_server(ctx);
}

rueda_status rueda_ctx_check_wait(void)
{
    if (!rueda_then_is_running())
        return RUEDA_OK;
    return rueda_fault(RUEDA_ERR_INVALID,
                       "a callback must not wait, as others are called after "
                       "it; submit, and ask to be called when that has ended");
}

/* Memory in the segment, which other ranks of the host reach without a copy. */
rueda_status rueda_alloc(rueda_ctx *ctx, size_t bytes, void **out)
{
    struct rueda_text error = {{0}};
    rueda_status status;

    if (atomic_load(&ctx->is_forked))
        return rueda_fault(RUEDA_ERR_FORKED, forked_words);
    status = rueda_segment_alloc(ctx->job->segment, bytes, out, &error);
    if (status == RUEDA_OK)
        return RUEDA_OK;
    log_error("%s", error.chars);
    return rueda_fault(status, error.chars);
}

/* In the child of a fork the segment is the parent's, and so is the memory. */
void rueda_free(rueda_ctx *ctx, void *ptr)
{
    if (atomic_load(&ctx->is_forked))
        return;
    rueda_segment_free(ctx->job->segment, ptr);
}
