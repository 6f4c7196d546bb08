/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "api"

#include "api/check.h"

#include <string.h>

#include "api/ctx.h"
#include "base/log.h"
#include "os/clock.h"

_Static_assert(sizeof(struct rueda_coll_args) >= RUEDA_FIRST_COLL_ARGS_BYTES,
               "arguments only grow");

/* Copy what the caller passed, which may be shorter than what we know. */
static void complete(const struct rueda_coll_args *args,
                     struct rueda_coll_args *out)
{
    size_t bytes = args->struct_size;

    *out = (struct rueda_coll_args)RUEDA_COLL_ARGS_INIT;
    memcpy(out, args, bytes < sizeof(*out) ? bytes : sizeof(*out));
}

/* May this operation start? */
static rueda_status admit(rueda_ctx *ctx, const struct rueda_coll_args *args)
{
    struct rueda_limits limits = {
        .rank = ctx->job->rank,
        .size = ctx->job->size,
        .keep_bytes = ctx->job->config.keep_bytes,
    };
    struct rueda_text error;
    rueda_status status;

    if (atomic_load_explicit(&ctx->is_forked, memory_order_relaxed))
        return RUEDA_ERR_FORKED;
    status = (rueda_status)atomic_load_explicit(&ctx->engine.failed,
                                                memory_order_acquire);
    if (status != RUEDA_OK)
        return status;
    error.chars[0] = '\0';
    status = rueda_check_coll(&limits, args, &error);
    if (status != RUEDA_OK)
        log_error("rank %d: %s", limits.rank, error.chars);
    return status;
}

rueda_status rueda_start(rueda_ctx *ctx, const struct rueda_coll_args *args,
                         rueda_handle *out_handle)
{
    rueda_status status = admit(ctx, args);
    struct rueda_op *op;

    if (status != RUEDA_OK)
        return status;
    status = rueda_op_take(&ctx->ops, &op);
    if (status != RUEDA_OK)
        return status;
    complete(args, &op->args);
    *out_handle = op->handle;
    rueda_engine_submit(&ctx->engine, op);
    return RUEDA_OK;
}

rueda_status rueda_poll(rueda_ctx *ctx, rueda_handle handle)
{
    struct rueda_op *op;

    if (atomic_load(&ctx->is_forked))
        return RUEDA_ERR_FORKED;
    op = rueda_op_find(&ctx->ops, handle);
    return op != NULL ? rueda_op_status(op) : RUEDA_ERR_INVALID;
}

rueda_status rueda_wait(rueda_ctx *ctx, rueda_handle handle, int timeout_ms)
{
    int64_t deadline = -1;
    rueda_status status;
    struct rueda_op *op;

    if (atomic_load(&ctx->is_forked))
        return RUEDA_ERR_FORKED;
    op = rueda_op_find(&ctx->ops, handle);
    if (op == NULL)
        return RUEDA_ERR_INVALID;
    if (timeout_ms >= 0)
        deadline = rueda_clock_ns() + (int64_t)timeout_ms * 1000000;
    status = rueda_engine_wait(&ctx->engine, op, deadline);
    if (rueda_op_status(op) != RUEDA_IN_PROGRESS) {
        status = rueda_op_status(op);
        rueda_op_give(&ctx->ops, op);
    }
    return status;
}

rueda_status rueda_run(rueda_ctx *ctx, const struct rueda_coll_args *args)
{
    rueda_status status = admit(ctx, args);
    struct rueda_op op;

    if (status != RUEDA_OK)
        return status;
    atomic_init(&op.status, RUEDA_IN_PROGRESS);
    op.handle = 0;
    complete(args, &op.args);
    rueda_engine_push(&ctx->engine, &op);
    return rueda_engine_wait(&ctx->engine, &op, -1);
}

/* ---- The usual cases ---------------------------------------------------- */

static struct rueda_coll_args usual(rueda_kind kind, const void *send,
                                    void *recv, size_t count, rueda_dtype dtype)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

    args.kind = kind;
    args.send = send;
    args.recv = recv;
    args.count = count;
    args.dtype = dtype;
    return args;
}

rueda_status rueda_allreduce(rueda_ctx *ctx, const void *send, void *recv,
                             size_t count, rueda_dtype dtype,
                             rueda_reduction reduction)
{
    struct rueda_coll_args args =
        usual(RUEDA_ALLREDUCE, send, recv, count, dtype);

    args.reduction = reduction;
    return rueda_run(ctx, &args);
}

rueda_status rueda_allgather(rueda_ctx *ctx, const void *send, void *recv,
                             size_t count, rueda_dtype dtype)
{
    struct rueda_coll_args args =
        usual(RUEDA_ALLGATHER, send, recv, count, dtype);

    return rueda_run(ctx, &args);
}

rueda_status rueda_broadcast(rueda_ctx *ctx, void *buf, size_t count,
                             rueda_dtype dtype, int root)
{
    struct rueda_coll_args args =
        usual(RUEDA_BROADCAST, buf, buf, count, dtype);

    args.root = root;
    return rueda_run(ctx, &args);
}

rueda_status rueda_alltoall(rueda_ctx *ctx, const void *send, void *recv,
                            size_t count, rueda_dtype dtype)
{
    struct rueda_coll_args args =
        usual(RUEDA_ALLTOALL, send, recv, count, dtype);

    return rueda_run(ctx, &args);
}

rueda_status rueda_reduce_scatter(rueda_ctx *ctx, const void *send, void *recv,
                                  size_t count, rueda_dtype dtype,
                                  rueda_reduction reduction)
{
    struct rueda_coll_args args =
        usual(RUEDA_REDUCE_SCATTER, send, recv, count, dtype);

    args.reduction = reduction;
    return rueda_run(ctx, &args);
}

rueda_status rueda_barrier(rueda_ctx *ctx)
{
    struct rueda_coll_args args =
        usual(RUEDA_BARRIER, NULL, NULL, 0, RUEDA_UINT8);

    return rueda_run(ctx, &args);
}
