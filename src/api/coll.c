/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordered collectives: from the arguments to an operation that the engine gets.
 *
 * They have no name and no shape, and all ranks know all counts, so nothing is
 * negotiated: is_laid_out tells the engine that the operation may run as it is.
 * The caller's lists of counts are borrowed until its end, not copied.
 */
#define RUEDA_LOG_TAG "api"

#include "api/check.h"

#include "api/ctx.h"
#include "base/log.h"
#include "op/ticket.h"

_Static_assert(sizeof(struct rueda_coll_args) >= RUEDA_FIRST_COLL_ARGS_BYTES,
               "arguments only grow");

/* Write an operation of them. */
static void fill_in(const rueda_ctx *ctx, const struct rueda_coll_args *args,
                    struct rueda_ticket *ticket)
{
    struct rueda_request *request = &ticket->request;

    rueda_ticket_init(ticket, (int)args->kind);
    ticket->op.is_ordered = true;
    ticket->op.is_laid_out = true;
    ticket->member_count = rueda_size(ctx);
    ticket->send = args->send;
    ticket->recv = args->recv;
    ticket->data = args->recv;
    ticket->count = args->count;
    ticket->send_counts = args->send_counts;
    ticket->recv_counts = args->recv_counts;
    request->dtype = args->dtype;
    request->reduction = args->reduction;
    request->root = args->root;
    request->prescale = args->prescale;
    request->postscale = args->postscale;
    request->compression = rueda_compression_of(args);
}

/* May this operation start? The rank's state is checked before the arguments:
 * in a context that has failed every call says why, whatever it is given. */
static rueda_status admit(rueda_ctx *ctx, const struct rueda_coll_args *args)
{
    struct rueda_limits limits = {
        .rank = rueda_rank(ctx),
        .size = rueda_size(ctx),
    };
    struct rueda_text error;
    rueda_status status;

    status = rueda_ctx_check(ctx);
    if (status != RUEDA_OK)
        return status;
    status = rueda_ctx_check_worker(ctx);
    if (status != RUEDA_OK)
        return status;
    error.chars[0] = '\0';
    status = rueda_check_coll(&limits, args, &error);
    if (status == RUEDA_OK)
        return RUEDA_OK;
    log_error("rank %d: %s", limits.rank, error.chars);
    return rueda_fault(status, error.chars);
}

/* An ordered operation with a handle: from the pool, since it outlives this
 * call. */
rueda_status rueda_start(rueda_ctx *ctx, const struct rueda_coll_args *args,
                         rueda_handle *out_handle)
{
    rueda_status status = admit(ctx, args);
    struct rueda_op *op;

    if (status != RUEDA_OK)
        return status;
    status = rueda_op_take(&ctx->ops, &op);
    if (status != RUEDA_OK)
        return rueda_fault(status, rueda_status_str(status));
    fill_in(ctx, args, rueda_ticket_of(op));
    *out_handle = op->handle;
    rueda_engine_submit(&ctx->engine, op);
    return RUEDA_OK;
}

/* An ordered operation that the caller waits for at once: on its stack, which
 * saves the pool and the handle. */
rueda_status rueda_run(rueda_ctx *ctx, const struct rueda_coll_args *args)
{
    rueda_status status = admit(ctx, args);
    struct rueda_ticket ticket;

    if (status == RUEDA_OK)
        status = rueda_ctx_check_wait();
    if (status != RUEDA_OK)
        return status;
    rueda_op_init(&ticket.op);
    fill_in(ctx, args, &ticket);
    status = rueda_engine_run(&ctx->engine, &ticket.op);
    return status == RUEDA_OK ? status : rueda_fault(status, rueda_error(ctx));
}

/* ---- Boundaries -------------------------------------------------------- */

/* A boundary goes through the queue like an operation, so it comes after all
 * that this thread has submitted. Without repair the ranks never change, and
 * there is nothing to do. */
rueda_status rueda_step(rueda_ctx *ctx)
{
    rueda_status status = rueda_ctx_check(ctx);
    struct rueda_ticket ticket;

    if (status == RUEDA_OK)
        status = rueda_ctx_check_wait();
    if (status != RUEDA_OK || !ctx->engine.lanes.repairs)
        return status;
    rueda_op_init(&ticket.op);
    rueda_ticket_init(&ticket, RUEDA_STEP);
    ticket.op.is_ordered = true;
    rueda_op_push(&ctx->engine.lanes.arrived, &ticket.op);
    status = rueda_engine_wait(&ctx->engine, &ticket.op, -1);
    return status == RUEDA_OK ? status : rueda_fault(status, rueda_error(ctx));
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
