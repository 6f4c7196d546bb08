/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rueda_submit() and rueda_submit_group(): from the caller's arguments to
 * operations that the engine gets.
 *
 *     complete()      arguments of an older program get the newer fields
 *     prepare()       check, take from the pool, fill in, mark, claim the name
 *     number()        a number instead of a name; cannot be undone
 *     engine          gets one operation, or a chain of them at once
 *
 * A failure undoes the steps before it, so a call either submits all or leaves
 * nothing. Only a number cannot be given back: the other ranks count too. So it
 * is drawn last.
 */
#include "api/submit.h"

#include <stdlib.h>
#include <string.h>

#include "api/accelerator.h"
#include "api/check_submit.h"
#include "base/hash.h"

_Static_assert(sizeof(struct rueda_submit_args) >=
                   RUEDA_FIRST_SUBMIT_ARGS_BYTES,
               "arguments only grow");

/* A rank joins once at a time, under a name that stands for that. */
#define JOIN_NAME "rueda.join"

/* ---- One operation ---------------------------------------------------- */

/* An operation comes from the pool with its handle; its other fields are set
 * where their meaning is known. */
rueda_status rueda_submission_take(rueda_ctx *ctx, int kind,
                                   struct rueda_ticket **out)
{
    struct rueda_ticket *ticket;
    struct rueda_op *op;
    rueda_status status = rueda_op_take(&ctx->ops, &op);

    if (status != RUEDA_OK)
        return status;
    ticket = rueda_ticket_of(op);
    rueda_ticket_init(ticket, kind);
    *out = ticket;
    return RUEDA_OK;
}

/* Short names live in the operation, so that a repeated step allocates nothing.
 */
rueda_status rueda_submission_set_name(struct rueda_ticket *ticket,
                                       const char *name)
{
    size_t bytes;

    if (name == NULL)
        return RUEDA_OK;
    bytes = strlen(name) + 1;
    ticket->request.hash = rueda_name_hash(name, bytes - 1);
    if (bytes <= sizeof(ticket->short_name)) {
        memcpy(ticket->short_name, name, bytes);
        ticket->request.name = ticket->short_name;
        return RUEDA_OK;
    }
    ticket->long_name = malloc(bytes);
    ticket->op.has_own = true;
    if (ticket->long_name == NULL)
        return RUEDA_ERR_NOMEM;
    memcpy(ticket->long_name, name, bytes);
    ticket->request.name = ticket->long_name;
    return RUEDA_OK;
}

/* From here on a second operation of this name is refused. */
rueda_status rueda_submission_claim(rueda_ctx *ctx, struct rueda_ticket *ticket,
                                    const char *name)
{
    uint64_t hash = name == ticket->request.name
                        ? ticket->request.hash
                        : rueda_name_hash(name, strlen(name));
    uint64_t key = rueda_names_key(ticket->set, hash);
    rueda_status status = rueda_names_enter(&ctx->names, key);

    if (status != RUEDA_OK)
        return status;
    ticket->names = &ctx->names;
    ticket->name_key = key;
    return RUEDA_OK;
}

void rueda_submission_drop(rueda_ctx *ctx, struct rueda_ticket *ticket)
{
    if (rueda_request_is_away(&ticket->request))
        rueda_submission_unmark(ctx, ticket);
    rueda_ticket_release(ticket);
    rueda_op_give(&ctx->ops, &ticket->op);
}

/* ---- From arguments --------------------------------------------------- */

/* What the caller passed; it may be shorter than what we know, and is then
 * completed in `room`. NULL: it is no such struct. */
static const struct rueda_submit_args *
complete(const struct rueda_submit_args *args, struct rueda_submit_args *room)
{
    size_t bytes = args->struct_size;

    if (bytes < RUEDA_FIRST_SUBMIT_ARGS_BYTES) {
        rueda_fault(RUEDA_ERR_INVALID,
                    "struct_size of the arguments is too small; "
                    "initialise them with RUEDA_SUBMIT_ARGS_INIT");
        return NULL;
    }
    if (bytes >= sizeof(*room))
        return args;
    *room = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    memcpy(room, args, bytes);
    return room;
}

/* Do ranks find each other's part of it by name or number? Messages have a peer
 * and a tag for that, and a join has a name that is the same for all. */
static bool is_matched(int kind)
{
    return kind != RUEDA_SEND && kind != RUEDA_RECV && kind != RUEDA_JOIN;
}

/* What others compare. Fields that mean nothing for the kind keep their
 * defaults, so that ranks cannot differ in them. */
static void describe(const struct rueda_submit_args *args,
                     struct rueda_request *out)
{
    bool is_reduced =
        args->kind == RUEDA_ALLREDUCE || args->kind == RUEDA_REDUCE_SCATTER;

    out->priority = args->priority;
    if (args->kind == RUEDA_BARRIER || args->kind == RUEDA_JOIN)
        return;
    out->dtype = args->dtype;
    out->device = args->device;
    out->dims = (uint32_t)args->dims;
    for (int i = 0; i < args->dims; i++)
        out->shape[i] = args->shape[i];
    if (args->kind == RUEDA_BROADCAST)
        out->root = args->root;
    if (!is_reduced)
        return;
    out->reduction = args->reduction;
    out->prescale = args->prescale;
    out->postscale = args->postscale;
    out->compression = args->compression;
    out->flags = args->flags & RUEDA_LIVE_AVERAGE;
    if (args->kind == RUEDA_ALLREDUCE)
        out->flags |= args->flags & RUEDA_UNPACKED;
}

/* The caller's list may be gone when the operation runs. */
static rueda_status copy_splits(const struct rueda_submit_args *args,
                                struct rueda_ticket *ticket)
{
    size_t bytes = (size_t)ticket->member_count * sizeof(size_t);

    if (args->kind != RUEDA_ALLTOALL || args->splits == NULL)
        return RUEDA_OK;
    ticket->splits = malloc(bytes);
    ticket->op.has_own = true;
    if (ticket->splits == NULL)
        return RUEDA_ERR_NOMEM;
    memcpy(ticket->splits, args->splits, bytes);
    return RUEDA_OK;
}

/* From the checked arguments to the operation. */
static rueda_status fill_in(const struct rueda_submit_args *args, int members,
                            struct rueda_ticket *ticket)
{
    rueda_status status;

    describe(args, &ticket->request);
    ticket->op.is_ordered = (args->flags & RUEDA_ORDERED) != 0;
    ticket->set = args->set;
    ticket->member_count = members;
    ticket->send = args->send;
    ticket->recv = args->recv;
    if (args->kind == RUEDA_SEND || args->kind == RUEDA_RECV) {
        ticket->peer = args->peer;
        ticket->tag = args->tag;
    }
    ticket->mark[0] = NULL;
    ticket->mark[1] = NULL;
    if (args->recv == NULL) {
        ticket->alloc = args->alloc;
        ticket->alloc_arg = args->alloc_arg;
    }
    status = copy_splits(args, ticket);
    /* A join has the same name everywhere, whatever it is given. */
    if (status == RUEDA_OK && args->kind != RUEDA_JOIN)
        status = rueda_submission_set_name(ticket, args->name);
    return status;
}

/* Why a valid operation cannot be submitted. */
static rueda_status refuse(const rueda_ctx *ctx,
                           const struct rueda_submit_args *args,
                           rueda_status status)
{
    struct rueda_text error = {{0}};

    rueda_check_begin(rueda_ctx_formation(ctx)->rank, args, &error);
    if (status == RUEDA_ERR_INVALID &&
        (args->kind == RUEDA_JOIN || args->name == NULL))
        rueda_text_add(&error, "this rank has joined already; wait for that "
                               "to end");
    else if (status == RUEDA_ERR_INVALID)
        rueda_text_add(&error, "requested with the same name as another tensor "
                               "that is currently being processed; wait for "
                               "that first, or use a different tensor name");
    else if (status == RUEDA_ERR_LIMIT)
        rueda_text_add(&error,
                       "%d operations are unfinished, or a million process "
                       "sets were made; wait for some of them",
                       RUEDA_OP_MOST);
    else
        rueda_text_add(&error, "%s", rueda_status_str(status));
    return rueda_fault(status, error.chars);
}

/* Check it; on success write how many ranks its set has. */
static rueda_status check(rueda_ctx *ctx, const struct rueda_submit_args *args,
                          int *out_size)
{
    const struct rueda_set *set =
        rueda_engine_hold_set(&ctx->engine, args->set);
    struct rueda_text error;
    rueda_status status;

    error.chars[0] = '\0';
    status =
        rueda_check_submit(rueda_ctx_formation(ctx)->rank, set, args, &error);
    if (status == RUEDA_OK)
        *out_size = set->size;
    rueda_engine_release_set(&ctx->engine, set);
    return status == RUEDA_OK ? RUEDA_OK : rueda_fault(status, error.chars);
}

/* Check it and make an operation of it that has its name, if any; on failure
 * nothing is left. before: as rueda_named_mark(). */
static rueda_status prepare(rueda_ctx *ctx,
                            const struct rueda_submit_args *args,
                            const struct rueda_ticket *before,
                            struct rueda_ticket **out)
{
    struct rueda_ticket *ticket;
    rueda_status status;
    int size = 0;

    status = check(ctx, args, &size);
    if (status != RUEDA_OK)
        return status;
    status = rueda_submission_take(ctx, (int)args->kind, &ticket);
    if (status != RUEDA_OK)
        return refuse(ctx, args, status);
    status = fill_in(args, size, ticket);
    if (status == RUEDA_OK && rueda_request_is_away(&ticket->request)) {
        status = rueda_submission_mark(ctx, args, before, ticket);
        if (status != RUEDA_OK) {
            rueda_submission_drop(ctx, ticket);
            return status;
        }
    }
    if (status == RUEDA_OK && args->kind == RUEDA_JOIN)
        status = rueda_submission_claim(ctx, ticket, JOIN_NAME);
    else if (status == RUEDA_OK && args->name != NULL && is_matched(args->kind))
        status = rueda_submission_claim(ctx, ticket, ticket->request.name);
    if (status == RUEDA_OK) {
        *out = ticket;
        return RUEDA_OK;
    }
    rueda_submission_drop(ctx, ticket);
    return refuse(ctx, args, status);
}

/* Those without a name that are negotiated are counted, when nothing else can
 * go wrong: a number that is not used would never be matched. None is from a
 * join to its end. */
static rueda_status number(rueda_ctx *ctx, struct rueda_ticket *ticket)
{
    struct rueda_request *request = &ticket->request;

    if (request->kind == RUEDA_JOIN)
        return rueda_numbers_join(&ctx->engine.numbers, ticket->set);
    if (request->name != NULL || !is_matched(request->kind) ||
        ticket->op.is_ordered)
        return RUEDA_OK;
    return rueda_numbers_next(&ctx->engine.numbers, ticket->set,
                              &request->number);
}

/* A number is drawn last, since one that is drawn must be used: the other ranks
 * count, too. */
rueda_status rueda_submit(rueda_ctx *ctx, const struct rueda_submit_args *args,
                          rueda_handle *out_handle)
{
    rueda_status status = rueda_ctx_check(ctx);
    const struct rueda_submit_args *all;
    struct rueda_submit_args room;
    struct rueda_ticket *ticket;

    if (status != RUEDA_OK)
        return status;
    all = complete(args, &room);
    if (all == NULL)
        return RUEDA_ERR_INVALID;
    status = prepare(ctx, all, NULL, &ticket);
    if (status != RUEDA_OK)
        return status;
    status = number(ctx, ticket);
    if (status != RUEDA_OK) {
        rueda_submission_drop(ctx, ticket);
        return refuse(ctx, all, status);
    }
    *out_handle = ticket->op.handle;
    if ((all->flags & RUEDA_MORE) != 0)
        rueda_engine_submit_more(&ctx->engine, &ticket->op);
    else
        rueda_engine_submit(&ctx->engine, &ticket->op);
    return RUEDA_OK;
}

/* ---- Several at once, and groups -------------------------------------- */

/* All of a group are of one kind and one set, because they run as one; of
 * several, so that only the first can be refused when it is counted. */
static rueda_status check_group(const rueda_ctx *ctx,
                                const struct rueda_submit_args *first,
                                const struct rueda_submit_args *other)
{
    struct rueda_text error = {{0}};

    rueda_check_begin(rueda_ctx_formation(ctx)->rank, other, &error);
    if ((unsigned)other->kind >= RUEDA_BARRIER)
        rueda_text_add(&error, "this kind is not done in groups; submit them "
                               "one by one");
    else if ((other->flags & RUEDA_ORDERED) != 0)
        rueda_text_add(&error, "ordered operations are not grouped; submit "
                               "them one by one");
    else if (other->kind != first->kind)
        rueda_text_add(&error,
                       "the group began with %s; all of a group are of "
                       "one kind",
                       rueda_kind_str(first->kind));
    else if (other->set != first->set)
        rueda_text_add(&error,
                       "the group began in process set %d; all of a "
                       "group are of one",
                       first->set);
    else
        return RUEDA_OK;
    return rueda_fault(RUEDA_ERR_INVALID, error.chars);
}

/* A chain of operations that are not submitted yet, by op.next. */
static void drop_all(rueda_ctx *ctx, struct rueda_op *op)
{
    while (op != NULL) {
        struct rueda_op *next = op->next;

        rueda_submission_drop(ctx, rueda_ticket_of(op));
        op = next;
    }
}

/* Do tensors with these arguments wait for the same point of one stream, if
 * both are handed over now? */
static bool is_same_stream(const struct rueda_submit_args *one,
                           const struct rueda_submit_args *other)
{
    return one->device != RUEDA_DEVICE_HOST && one->device == other->device &&
           one->stream == other->stream;
}

/* All of them as a chain, or none. Operations of one stream share the mark that
 * the first of them has made: all are handed over at the same point of it. */
static rueda_status chain(rueda_ctx *ctx, const struct rueda_submit_args *args,
                          int count, struct rueda_op **out_first)
{
    struct rueda_op *first = NULL;
    struct rueda_op **end = &first;
    struct rueda_submit_args begin = RUEDA_SUBMIT_ARGS_INIT;
    const struct rueda_ticket *marked = NULL; /* of the stream of the first */

    for (int i = 0; i < count; i++) {
        struct rueda_submit_args room;
        const struct rueda_submit_args *all = complete(&args[i], &room);
        struct rueda_ticket *ticket = NULL;
        rueda_status status = all != NULL ? RUEDA_OK : RUEDA_ERR_INVALID;

        if (i == 0 && all != NULL)
            begin = *all;
        if (status == RUEDA_OK)
            status = check_group(ctx, &begin, all);
        if (status == RUEDA_OK)
            status = prepare(
                ctx, all, is_same_stream(&begin, all) ? marked : NULL, &ticket);
        if (ticket == NULL) {
            drop_all(ctx, first);
            return status;
        }
        if (i == 0)
            marked = ticket;
        *end = &ticket->op;
        end = &ticket->op.next;
        *end = NULL;
    }
    *out_first = first;
    return RUEDA_OK;
}

/* Those without a name are counted: all of the chain, or none. */
static rueda_status number_all(rueda_ctx *ctx,
                               const struct rueda_submit_args *args,
                               struct rueda_op *first)
{
    for (struct rueda_op *op = first; op != NULL; op = op->next) {
        /* Only the first of them can fail, and none is counted then. */
        const rueda_status status = number(ctx, rueda_ticket_of(op));

        if (status != RUEDA_OK) {
            drop_all(ctx, first);
            return refuse(ctx, args, status);
        }
    }
    return RUEDA_OK;
}

/* All are checked before the first is submitted, so a group is never half
 * there. */
static rueda_status prepare_all(rueda_ctx *ctx,
                                const struct rueda_submit_args *args, int count,
                                struct rueda_op **out_first)
{
    rueda_status status = rueda_ctx_check(ctx);

    if (status == RUEDA_OK && count < 1)
        status = rueda_fault(RUEDA_ERR_INVALID, "a group has 1 tensor or more");
    if (status == RUEDA_OK)
        status = chain(ctx, args, count, out_first);
    return status == RUEDA_OK ? number_all(ctx, args, *out_first) : status;
}

static void push_all(rueda_ctx *ctx, struct rueda_op *first,
                     rueda_handle *out_handles)
{
    for (struct rueda_op *op = first; op != NULL; op = op->next)
        *out_handles++ = op->handle;
    rueda_engine_submit_chain(&ctx->engine, first);
}

/* Several at once that are no group: they are pushed together, which wakes the
 * engine once, and each is negotiated by itself. */
rueda_status rueda_submit_all(rueda_ctx *ctx,
                              const struct rueda_submit_args *args, int count,
                              rueda_handle *out_handles)
{
    struct rueda_op *first = NULL;
    const rueda_status status = prepare_all(ctx, args, count, &first);

    if (status == RUEDA_OK)
        push_all(ctx, first, out_handles);
    return status;
}

/* One member's share of its group's number, which is the sum: so it is the same
 * on all ranks, in whatever order they list the members. Numbers count from 1
 * here, since 0 would mix to 0. */
static uint64_t share_of(const struct rueda_ticket *ticket)
{
    return rueda_hash_mix(ticket->request.name != NULL
                              ? ticket->name_key
                              : ticket->request.number + 1);
}

rueda_status rueda_submit_group(rueda_ctx *ctx,
                                const struct rueda_submit_args *args, int count,
                                rueda_handle *out_handles)
{
    struct rueda_op *first = NULL;
    const rueda_status status = prepare_all(ctx, args, count, &first);
    uint64_t group = 0;

    if (status != RUEDA_OK)
        return status;
    for (struct rueda_op *op = first; op != NULL; op = op->next)
        group += share_of(rueda_ticket_of(op));
    for (struct rueda_op *op = first; op != NULL; op = op->next) {
        rueda_ticket_of(op)->request.group = group;
        rueda_ticket_of(op)->request.group_count = (uint32_t)count;
    }
    push_all(ctx, first, out_handles);
    return RUEDA_OK;
}
