/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/program_numbers.h"

#define GUARD_BYTES 16
#define GUARD       0x5a
#define NOTHING     0xa5 /* where no result has been written */

/* ---- Making one ---------------------------------------------------------- */

static void *memory(size_t bytes, int filling)
{
    char *at = malloc(bytes + GUARD_BYTES);

    assert_non_null(at);
    memset(at, filling, bytes);
    memset(at + bytes, GUARD, GUARD_BYTES);
    return at;
}

static void *give_memory(void *arg, size_t rows, size_t bytes)
{
    struct program_op *op = arg;

    (void)rows;
    free(op->recv);
    op->recv = memory(bytes, NOTHING);
    op->recv_bytes = bytes;
    return op->recv;
}

/* Some ranks in place, some by a callback, some neither, of one operation. */
static void give_buffers(const struct program_numbers *numbers,
                         struct program_op *op, int rank, int me)
{
    const struct script_op *what = op->script;
    const int kind = op->ticket->request.kind;
    const size_t bytes = rueda_dtype_size(what->request.dtype);
    const size_t count = numbers_sent(&numbers->all, me);
    const unsigned how = (what->salt + (unsigned)rank * 7) % 3;

    op->recv_bytes = numbers_received(&numbers->all, me) * bytes;
    op->send = memory(count * bytes, NOTHING);
    numbers_write(&numbers->all, rank, 0, count, op->send);
    if ((kind == RUEDA_ALLREDUCE ||
         (kind == RUEDA_BROADCAST && what->request.root == rank)) &&
        how == 0) {
        op->recv = op->send;
        op->ticket->recv = op->send;
    } else if (how == 1 && kind != RUEDA_SEND) {
        op->ticket->recv = NULL;
        op->ticket->alloc = give_memory;
        op->ticket->alloc_arg = op;
    } else {
        op->recv = memory(op->recv_bytes, NOTHING);
        op->ticket->recv = op->recv;
    }
    op->ticket->send = op->send;
    if (kind == RUEDA_BROADCAST && what->request.root != rank)
        op->ticket->send = NULL;
}

static void give_splits(const struct program_numbers *numbers,
                        struct program_op *op, int me)
{
    const struct script_set *set = numbers->set;

    if (op->ticket->request.kind != RUEDA_ALLTOALL || !op->script->is_uneven)
        return;
    op->ticket->op.has_own = true;
    op->ticket->splits = calloc((size_t)set->size, sizeof(size_t));
    assert_non_null(op->ticket->splits);
    for (int to = 0; to < set->size; to++)
        op->ticket->splits[to] = program_split(numbers, me, to);
}

static void toggle_kind(struct rueda_request *request)
{
    request->kind =
        request->kind == RUEDA_ALLGATHER ? RUEDA_ALLTOALL : RUEDA_ALLGATHER;
}

static int next_member(const struct script_set *set, int rank)
{
    return set->ranks[(script_index(set, rank) + 1) % set->size];
}

/* What no other rank says. */
static void be_odd(const struct script *script, const struct script_op *op,
                   struct rueda_request *request)
{
    switch (op->odd) {
    case SCRIPT_ODD_SHAPE:
        request->shape[request->dims - 1]++;
        break;
    case SCRIPT_ODD_SCALE:
        request->prescale += 1;
        break;
    case SCRIPT_ODD_KIND:
        toggle_kind(request);
        break;
    case SCRIPT_ODD_REDUCTION:
        request->reduction =
            request->reduction == RUEDA_MAX ? RUEDA_MIN : RUEDA_MAX;
        break;
    case SCRIPT_ODD_ROOT:
        request->root = next_member(&script->sets[op->set], request->root);
        break;
    case SCRIPT_ODD_DEVICE:
        request->device =
            request->device == RUEDA_DEVICE_HOST ? 0 : RUEDA_DEVICE_HOST;
        break;
    case SCRIPT_ODD_COMPRESSION:
        request->compression = request->compression == RUEDA_COMPRESS_FP16
                                   ? RUEDA_COMPRESS_BF16
                                   : RUEDA_COMPRESS_FP16;
        break;
    case SCRIPT_ODD_AVERAGE:
        request->flags ^= RUEDA_LIVE_AVERAGE;
        break;
    case SCRIPT_ODD_GROUP:
        request->group++; /* is made of others */
        request->group_count = (uint32_t)op->odd_count;
        break;
    case SCRIPT_ODD_ALONE:
        request->group = 0;
        request->group_count = 0;
        break;
    default:
        request->dtype =
            request->dtype == RUEDA_INT16 ? RUEDA_INT32 : RUEDA_INT16;
        break;
    }
}

static void give_ranks(const struct script *script, struct program_op *op)
{
    const struct script_set *set = &script->sets[op->script->changed];
    const bool is_added = op->script->request.kind == RUEDA_SET_ADD;

    op->ticket->op.has_own = true;
    op->ticket->rank_count = is_added ? set->size : 1;
    op->ticket->ranks = calloc((size_t)op->ticket->rank_count, sizeof(int));
    assert_non_null(op->ticket->ranks);
    for (int i = 0; i < op->ticket->rank_count; i++)
        op->ticket->ranks[i] = is_added ? set->ranks[i] : set->id;
}

/* A name that is in flight, or the next number. As in api/submit.c. */
static void label(rueda_ctx *ctx, const struct program_op *op)
{
    struct rueda_ticket *ticket = op->ticket;
    const char *name = op->script->request.kind == RUEDA_JOIN ? "rueda.join"
                       : op->script->name[0] != '\0'          ? op->script->name
                                                              : NULL;

    if (script_is_message(op->script))
        return;
    if (op->script->request.kind == RUEDA_JOIN)
        assert_int_equal(rueda_numbers_join(&ctx->engine.numbers, ticket->set),
                         RUEDA_OK);
    else
        assert_int_equal(rueda_submission_set_name(ticket, name), RUEDA_OK);
    if (name != NULL)
        assert_int_equal(rueda_submission_claim(ctx, ticket, name), RUEDA_OK);
    else
        assert_int_equal(rueda_numbers_next(&ctx->engine.numbers, ticket->set,
                                            &ticket->request.number),
                         RUEDA_OK);
}

/* What it asks for. */
static void describe(const struct program_numbers *numbers,
                     const struct program_op *op, int rank)
{
    const struct script_op *what = op->script;
    const int me = script_index(numbers->set, rank);
    struct rueda_ticket *ticket = op->ticket;

    ticket->request = what->request;
    ticket->set = numbers->set->id;
    ticket->member_count = numbers->set->size;
    if (script_is_message(what)) {
        ticket->request.kind = rank == what->from ? RUEDA_SEND : RUEDA_RECV;
        ticket->peer = rank == what->from ? what->to : what->from;
        ticket->tag = (int)what->request.number;
    }
    if (ticket->request.dims > 0 && rueda_request_has_free_rows(&what->request))
        ticket->request.shape[0] = program_rows_sent(numbers, me);
    if (what->is_on_device)
        ticket->request.device = rank;
}

struct program_op *program_op_new(const struct script *script,
                                  struct script_op *op, rueda_ctx *ctx)
{
    const int rank = ctx->job->formation->rank;
    const int me = script_index(&script->sets[op->set], rank);
    struct program_op *self = calloc(1, sizeof(*self));
    struct program_numbers numbers;

    assert_non_null(self);
    program_numbers_init(&numbers, script, op);
    assert_int_equal(
        rueda_submission_take(ctx, op->request.kind, &self->ticket), RUEDA_OK);
    self->handle = self->ticket->op.handle;
    self->script = op;
    self->rank = rank;
    describe(&numbers, self, rank);
    if (script_is_change(op)) {
        give_ranks(script, self);
    } else if (op->request.kind != RUEDA_BARRIER &&
               op->request.kind != RUEDA_JOIN) {
        give_buffers(&numbers, self, rank, me);
        give_splits(&numbers, self, me);
    }
    label(ctx, self);
    if (op->odd_rank == rank)
        be_odd(script, op, &self->ticket->request);
    return self;
}

void program_op_free(struct program_op *op)
{
    if (op->recv != op->send)
        free(op->recv);
    free(op->send);
    free(op);
}

/* ---- Results ------------------------------------------------------------- */

static bool has_guard(const char *at, size_t bytes)
{
    for (size_t i = 0; at != NULL && i < GUARD_BYTES; i++)
        if ((unsigned char)at[bytes + i] != GUARD)
            return false;
    return true;
}

static bool are_splits_right(const struct program_numbers *numbers,
                             const struct program_op *op, int me)
{
    for (int m = 0; m < numbers->set->size; m++)
        if (op->ticket->rows_from[m] != program_split(numbers, m, me))
            return false;
    return true;
}

static bool is_right(const struct program_numbers *numbers,
                     const struct program_op *op, int me)
{
    const rueda_kind kind = numbers->all.kind;
    const size_t bytes = numbers_received(&numbers->all, me) *
                         rueda_dtype_size(numbers->all.dtype);
    void *wanted;
    bool is_same;

    if (kind == RUEDA_ALLREDUCE || kind == RUEDA_REDUCE_SCATTER)
        return program_is_reduced(numbers, me, op->ticket->data);
    if (kind == RUEDA_ALLTOALL && !are_splits_right(numbers, op, me))
        return false;
    wanted = memory(bytes, NOTHING);
    numbers_expect(&numbers->all, me, wanted);
    is_same = memcmp(op->ticket->data, wanted, bytes) == 0;
    free(wanted);
    return is_same;
}

static bool is_input_whole(const struct program_numbers *numbers,
                           const struct program_op *op, int rank, int me)
{
    const size_t count = numbers_sent(&numbers->all, me);

    if (op->send == op->recv)
        return true;
    return numbers_is_input(&numbers->all, rank, op->send, count) &&
           has_guard(op->send, count * rueda_dtype_size(numbers->all.dtype));
}

const char *program_op_fault(const struct script *script,
                             const struct program_op *op, int rank)
{
    const int me = script_index(&script->sets[op->script->set], rank);
    struct program_numbers numbers;

    if (op->send == NULL)
        return NULL; /* no tensor */
    program_numbers_init(&numbers, script, op->script);
    if (!is_input_whole(&numbers, op, rank, me))
        return "the input has changed";
    if (op->ticket->request.kind == RUEDA_SEND)
        return NULL;
    if (op->ticket->rows != program_rows_received(&numbers, me))
        return "the result has another number of rows";
    if (!has_guard(op->recv, op->recv_bytes))
        return "the result is too long";
    if (op->recv_bytes > 0 && !is_right(&numbers, op, me))
        return "the result is wrong";
    return NULL;
}

bool program_op_is_explained(const struct program_op *op)
{
    static const char *const words[SCRIPT_ODDS] = {
        [SCRIPT_ODD_DTYPE] = "Mismatched data types",
        [SCRIPT_ODD_SHAPE] = " tensor shapes",
        [SCRIPT_ODD_SCALE] = "Mismatched prescale",
        [SCRIPT_ODD_KIND] = "Mismatched operations",
        [SCRIPT_ODD_REDUCTION] = "Mismatched reduction",
        [SCRIPT_ODD_ROOT] = " root ranks",
        [SCRIPT_ODD_DEVICE] = " device selection",
        [SCRIPT_ODD_COMPRESSION] = "Mismatched compression",
        [SCRIPT_ODD_AVERAGE] = "Mismatched averages",
        [SCRIPT_ODD_GROUP] = "Mismatched groups",
        [SCRIPT_ODD_ALONE] = "Mismatched groups",
    };
    const char *error = op->ticket->error != NULL ? op->ticket->error : "";
    char who[32];

    if (op->script->odd_rank < 0 || script_is_message(op->script) ||
        strstr(error, "another tensor of its group failed") != NULL)
        return error[0] != '\0';
    snprintf(who, sizeof(who), "rank (%d)", op->script->odd_rank);
    return strstr(error, words[op->script->odd]) != NULL &&
           strstr(error, who) != NULL;
}
