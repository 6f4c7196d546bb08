/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: how an operation ended, and what came of it.
 *
 * A handle that is not waited for keeps its operation and the results. Waiting
 * with success or failure ends it; a wait that is over before the operation
 * leaves it as it was, and may be repeated.
 */
#include <stdio.h>
#include <string.h>

#include "api/ctx.h"
#include "base/duration.h"
#include "op/ticket.h"
#include "os/clock.h"

/* The size of a result in the first release, which never changes. */
#define FIRST_RESULT_BYTES 64
_Static_assert(sizeof(struct rueda_result) >= FIRST_RESULT_BYTES,
               "results only grow");

static const char unknown_words[] =
    "the handle names no operation: it was waited for already, or is of "
    "another context";

/* NULL: there is none, and why is in *out_status. */
static struct rueda_op *find(rueda_ctx *ctx, rueda_handle handle,
                             rueda_status *out_status)
{
    struct rueda_op *op;

    if (atomic_load(&ctx->is_forked)) {
        *out_status = rueda_fault(RUEDA_ERR_FORKED, rueda_error(ctx));
        return NULL;
    }
    op = rueda_op_find(&ctx->ops, handle);
    if (op == NULL)
        *out_status = rueda_fault(RUEDA_ERR_INVALID, unknown_words);
    return op;
}

/* Asking also drives the engine if the background thread would need a core for
 * that. */
rueda_status rueda_poll(rueda_ctx *ctx, rueda_handle handle)
{
    rueda_status status = RUEDA_OK;
    struct rueda_op *op = find(ctx, handle, &status);

    if (op == NULL)
        return status;
    status = rueda_op_status(op);
    if (status == RUEDA_IN_PROGRESS) {
        rueda_engine_poll(&ctx->engine);
        status = rueda_op_status(op);
    }
    /* A callback may have ended the handle meanwhile, and its place be in use
     * by another. */
    return rueda_op_find(&ctx->ops, handle) == op ? status : RUEDA_ERR_INVALID;
}

/* ---- Words and results --------------------------------------------------- */

/* Why it failed: what is known of it alone (a mismatch, a message that was too
 * long), or the failure that ended all. */
static const char *words_of(const rueda_ctx *ctx, struct rueda_op *op,
                            rueda_status status)
{
    if (rueda_ticket_of(op)->error != NULL)
        return rueda_ticket_of(op)->error;
    return rueda_error(ctx)[0] != '\0' ? rueda_error(ctx)
                                       : rueda_status_str(status);
}

static void copy_rows(const struct rueda_ticket *ticket, int members,
                      struct rueda_result *result)
{
    if (!ticket->op.has_own || ticket->rows_from == NULL)
        return;
    if (result->rows_from != NULL && result->rows_from_count >= members)
        memcpy(result->rows_from, ticket->rows_from,
               (size_t)members * sizeof(size_t));
    result->rows_from_count = members;
}

/* The caller of an older version does not know of it. */
static bool has_peer(const struct rueda_result *result)
{
    return result->struct_size >=
           offsetof(struct rueda_result, peer) + sizeof(result->peer);
}

/* What the caller learns of an operation that has ended, by its kind. */
static void fill_in(rueda_ctx *ctx, struct rueda_op *op, rueda_status status,
                    struct rueda_result *result)
{
    const struct rueda_ticket *ticket = rueda_ticket_of(op);

    if (status != RUEDA_OK) {
        if (result->error != NULL && result->error_bytes > 0)
            snprintf(result->error, result->error_bytes, "%s",
                     words_of(ctx, op, status));
        return;
    }
    result->data = ticket->data;
    result->rows = ticket->rows;
    if (ticket->request.kind == RUEDA_JOIN)
        result->last_rank = ticket->last_rank;
    else if (ticket->request.kind == RUEDA_SET_ADD ||
             ticket->request.kind == RUEDA_SET_OPEN)
        result->set = ticket->made_set;
    else if (ticket->request.kind == RUEDA_RECV && has_peer(result))
        result->peer = ticket->peer;
    copy_rows(ticket, ticket->member_count, result);
}

/* ---- Waiting ---------------------------------------------------------- */

/* The caller of an older version does not know of it. */
static bool is_slice(const struct rueda_result *result)
{
    return result != NULL &&
           result->struct_size >= offsetof(struct rueda_result, is_slice) +
                                      sizeof(result->is_slice) &&
           result->is_slice;
}

/* Wait, fill in the result if there is to be one, and end the handle. */
static rueda_status finish(rueda_ctx *ctx, rueda_handle handle, int timeout_ms,
                           struct rueda_result *result)
{
    int64_t deadline = -1;
    rueda_status status = RUEDA_OK;
    struct rueda_op *op = find(ctx, handle, &status);

    if (op == NULL)
        return status;
    if (rueda_op_status(op) == RUEDA_IN_PROGRESS) {
        status = rueda_ctx_check_wait();
        if (status != RUEDA_OK)
            return status;
    }
    if (timeout_ms >= 0)
        deadline = rueda_clock_ns() + RUEDA_MS(timeout_ms);
    status = is_slice(result)
                 ? rueda_engine_wait_slice(&ctx->engine, op, deadline)
                 : rueda_engine_wait(&ctx->engine, op, deadline);
    if (rueda_op_status(op) == RUEDA_IN_PROGRESS)
        return rueda_fault(status, rueda_status_str(status));
    status = rueda_op_status(op);
    if (status != RUEDA_OK)
        rueda_fault(status, words_of(ctx, op, status));
    if (result != NULL)
        fill_in(ctx, op, status, result);
    rueda_op_give(&ctx->ops, op);
    return status;
}

rueda_status rueda_wait(rueda_ctx *ctx, rueda_handle handle, int timeout_ms)
{
    return finish(ctx, handle, timeout_ms, NULL);
}

rueda_status rueda_wait_for(rueda_ctx *ctx, rueda_handle handle, int timeout_ms,
                            struct rueda_result *result)
{
    if (result->struct_size < FIRST_RESULT_BYTES)
        return rueda_fault(RUEDA_ERR_INVALID,
                           "struct_size of the result is too small; "
                           "initialise it with RUEDA_RESULT_INIT");
    return finish(ctx, handle, timeout_ms, result);
}

/* Register the one callback of an operation. */
rueda_status rueda_handle_then(rueda_ctx *ctx, rueda_handle handle,
                               rueda_then_fn fn, void *arg)
{
    rueda_status status = RUEDA_OK;
    struct rueda_op *op;
    bool is_left;

    if (fn == NULL)
        return rueda_fault(RUEDA_ERR_INVALID, "the function to call is NULL");
    op = find(ctx, handle, &status);
    if (op == NULL)
        return status;
    /* Before the callback is there, since the handle may end in it. */
    is_left = rueda_op_status(op) == RUEDA_IN_PROGRESS;
    status = rueda_op_then(op, fn, arg);
    if (is_left && status == RUEDA_OK)
        rueda_engine_leave(&ctx->engine);
    return status == RUEDA_OK
               ? status
               : rueda_fault(status, "the handle has a callback already");
}
