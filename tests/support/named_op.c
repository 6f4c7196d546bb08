/* SPDX-License-Identifier: Apache-2.0 */
#include "support/named_op.h"

#include <stdio.h>
#include <string.h>

#include "api/ctx.h"
#include "os/clock.h"
#include "support/numbers.h"

/* ---- Numbers ---------------------------------------------------------- */

static size_t rows_of(const struct named_what *what, int rank)
{
    return what->kind == RUEDA_ALLGATHER
               ? what->rows + ((unsigned)rank + what->salt) % 3
               : what->rows;
}

/* Rows that go from one rank to another in an alltoall. */
static size_t split(const struct named_what *what, int from, int to)
{
    return ((unsigned)from + 2 * (unsigned)to + what->salt) % 3 + what->rows;
}

static int index_of(const struct named_what *what, int rank)
{
    for (int i = 0; i < what->size; i++)
        if (what->members[i] == rank)
            return i;
    return -1;
}

/* The elements that go from one member to another. */
static size_t piece(const void *arg, int from, int to)
{
    const struct named_what *what = arg;
    const size_t size = (size_t)what->size;

    if (what->kind == RUEDA_ALLGATHER)
        return rows_of(what, what->members[from]) * what->row;
    if (what->kind == RUEDA_ALLTOALL)
        return split(what, from, to) * what->row;
    return (what->rows / size + ((size_t)to < what->rows % size)) * what->row;
}

/* Ranks that have joined change nothing. */
static struct numbers numbers_of(const struct named_what *what)
{
    return (struct numbers){
        .kind = what->kind,
        .dtype = what->dtype,
        .reduction = what->reduction,
        .root = what->root,
        .ranks = what->members,
        .size = what->size,
        .absent = what->joined,
        .salt = what->salt,
        .count = what->rows * what->row,
        .piece = piece,
        .arg = what,
    };
}

/* ---- Submitting ------------------------------------------------------- */

void named_begin(struct named_op *op, int kind, const char *name, int set)
{
    struct rueda_ticket *ticket = &op->ticket;

    memset(op, 0, sizeof(*op));
    atomic_init(&ticket->op.status, RUEDA_IN_PROGRESS);
    snprintf(ticket->short_name, sizeof(ticket->short_name), "%s", name);
    ticket->request.name = name[0] != '\0' ? ticket->short_name : NULL;
    ticket->request.kind = kind;
    ticket->request.root = -1;
    ticket->request.device = RUEDA_DEVICE_HOST;
    ticket->request.prescale = 1;
    ticket->request.postscale = 1;
    ticket->set = set;
}

void named_hand_over(struct test_rank *me, struct named_op *op)
{
    rueda_engine_submit(&me->ctx->engine, &op->ticket.op);
}

static void *allocate(void *arg, size_t rows, size_t bytes)
{
    struct named_op *op = arg;

    (void)rows;
    if (op->what.has_no_memory)
        return NULL;
    op->recv = malloc(bytes > 0 ? bytes : 1);
    return op->recv;
}

/* Room for any result. */
static size_t room_of(const struct named_what *what)
{
    return ((what->rows + 4) * (size_t)(what->size + 1) * what->row + 1) *
           rueda_dtype_size(what->dtype);
}

static void fill_in(struct test_rank *me, const struct named_what *what,
                    struct named_op *op)
{
    struct rueda_request *request = &op->ticket.request;
    const struct numbers numbers = numbers_of(what);
    size_t rows = rows_of(what, me->rank);

    if (what->kind == RUEDA_ALLTOALL) {
        rows = 0;
        for (int k = 0; k < what->size; k++) {
            op->splits[k] = split(what, index_of(what, me->rank), k);
            rows += op->splits[k];
        }
        op->ticket.splits = op->splits;
    }
    request->dtype = what->dtype;
    request->reduction = what->reduction;
    request->flags = what->flags;
    request->group = what->group;
    request->group_count = what->group_count;
    request->dims = 2;
    request->shape[0] = rows;
    request->shape[1] = what->row;
    if (what->kind == RUEDA_BROADCAST)
        request->root = what->root;
    op->send = malloc(room_of(what));
    numbers_write(&numbers, me->rank, 0, rows * what->row, op->send);
}

struct named_op *named_ops_new(size_t count)
{
    const size_t bytes = count * sizeof(struct named_op);
    struct named_op *ops = aligned_alloc(_Alignof(struct named_op), bytes);

    assert_non_null(ops);
    memset(ops, 0, bytes);
    return ops;
}

void named_submit(struct test_rank *me, const struct named_what *what,
                  struct named_op *op)
{
    bool in_place = what->in_place && (what->kind == RUEDA_ALLREDUCE ||
                                       what->kind == RUEDA_BROADCAST);

    named_begin(op, (int)what->kind, what->name, what->set);
    op->what = *what;
    op->ticket.op.is_ordered = what->is_ordered;
    if (what->kind != RUEDA_BARRIER)
        fill_in(me, what, op);
    op->ticket.send = op->send;
    if (in_place) {
        op->ticket.recv = op->send;
    } else if (what->by_alloc) {
        op->ticket.alloc = allocate;
        op->ticket.alloc_arg = op;
    } else {
        op->recv = malloc(room_of(what));
        op->ticket.recv = op->recv;
    }
    named_hand_over(me, op);
}

static void release(struct named_op *op)
{
    free(op->send);
    free(op->recv);
    free(op->ticket.rows_from);
    free(op->ticket.error);
}

rueda_status named_wait(struct test_rank *me, struct named_op *op,
                        int timeout_ms)
{
    int64_t deadline = rueda_clock_ns() + (int64_t)timeout_ms * 1000000;
    rueda_status status =
        rueda_engine_wait(&me->ctx->engine, &op->ticket.op, deadline);

    if (status != RUEDA_ERR_TIMEOUT)
        release(op);
    return status;
}

static int check(struct test_rank *me, struct named_op *op)
{
    const struct named_what *what = &op->what;
    const struct numbers numbers = numbers_of(what);
    const int member = index_of(what, me->rank);
    void *wanted = calloc(1, room_of(what));
    size_t rows = numbers_received(&numbers, member) / what->row;
    size_t bytes = rows * what->row * rueda_dtype_size(what->dtype);
    int failed = 0;

    numbers_expect(&numbers, member, wanted);
    if (op->ticket.rows != rows)
        failed = rank_says(me, "%s: %zu rows instead of %zu", what->name,
                           op->ticket.rows, rows);
    else if (bytes > 0 && memcmp(op->ticket.data, wanted, bytes) != 0)
        failed = rank_says(me, "%s (%s, %s, %zu rows of %zu, set %d): wrong",
                           what->name, rueda_kind_str(what->kind),
                           rueda_dtype_str(what->dtype), what->rows, what->row,
                           what->set);
    for (int m = 0;
         m < what->size && failed == 0 && what->kind == RUEDA_ALLTOALL; m++)
        if (op->ticket.rows_from[m] != split(what, m, member))
            failed = rank_says(me, "%s: %zu rows from %d", what->name,
                               op->ticket.rows_from[m], m);
    free(wanted);
    return failed;
}

int named_check(struct test_rank *me, struct named_op *op)
{
    int64_t deadline = rueda_clock_ns() + (int64_t)RANK_DEADLINE_MS * 1000000;
    rueda_status status =
        rueda_engine_wait(&me->ctx->engine, &op->ticket.op, deadline);
    int failed = 0;

    if (status != RUEDA_OK)
        failed = rank_says(
            me, "%s: %s: %s", op->what.name, rueda_status_str(status),
            op->ticket.error != NULL ? op->ticket.error : rueda_error(me->ctx));
    else if (op->what.kind != RUEDA_BARRIER)
        failed = check(me, op);
    if (status != RUEDA_ERR_TIMEOUT)
        release(op);
    return failed;
}

/* ---- Sets ------------------------------------------------------------- */

static rueda_status change_sets(struct test_rank *me, struct named_op *op)
{
    named_hand_over(me, op);
    return named_wait(me, op, RANK_DEADLINE_MS);
}

int named_add_set(struct test_rank *me, const int *ranks, int count)
{
    int copy[RANK_MOST];
    struct named_op op;
    rueda_status status;

    memcpy(copy, ranks, (size_t)count * sizeof(int));
    named_begin(&op, RUEDA_SET_ADD, "add", RUEDA_ALL_RANKS);
    op.ticket.ranks = copy;
    op.ticket.rank_count = count;
    status = change_sets(me, &op);
    return status == RUEDA_OK ? op.ticket.made_set : (int)status;
}

rueda_status named_drop_set(struct test_rank *me, int set)
{
    struct named_op op;

    named_begin(&op, RUEDA_SET_DROP, "drop", RUEDA_ALL_RANKS);
    op.ticket.ranks = &set;
    op.ticket.rank_count = 1;
    return change_sets(me, &op);
}
