/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the arguments of a named operation valid on this rank?
 *
 * A message has four parts, because it ends in a traceback of a script that has
 * hundreds of tensors: rank, operation, what is wrong, what to do instead. What
 * ranks can disagree about (kind, type, shape, root) is not for this file:
 * src/negotiate compares that.
 */
#include "api/check_submit.h"

#include <string.h>

#include "api/check.h"

/* What is checked, and what was found out on the way. */
struct submit_query {
    int rank;
    const struct rueda_set *set;
    const struct rueda_submit_args *args;
    size_t row;  /* elements of all dimensions but the first */
    size_t rows; /* the first dimension; 1: there is none */
    size_t elem; /* bytes */
    struct rueda_text *why;
};

static bool is_of(const struct submit_query *query, rueda_kind kind)
{
    return query->args->kind == kind;
}

/* Has it numbers at all? */
static bool has_data(const struct submit_query *query)
{
    return !is_of(query, RUEDA_BARRIER) && !is_of(query, RUEDA_JOIN);
}

static bool is_message(const struct submit_query *query)
{
    return is_of(query, RUEDA_SEND) || is_of(query, RUEDA_RECV);
}

static bool is_from_any(const struct submit_query *query)
{
    return is_of(query, RUEDA_RECV) && query->args->peer == RUEDA_ANY_PEER;
}

static bool is_ordered(const struct submit_query *query)
{
    return (query->args->flags & RUEDA_ORDERED) != 0;
}

/* ---- The rank and the operation ------------------------------------------ */

/* The set must exist, and this rank must be a member of it. */
static rueda_status check_set(const struct submit_query *query)
{
    const struct rueda_set *set = query->set;
    struct rueda_text *why = query->why;

    if (set == NULL)
        rueda_text_add(why,
                       "there is no such process set; it was never made, or "
                       "has been removed");
    else if (set->me < 0)
        rueda_text_add(why,
                       "rank %d is not a member of this process set of %d "
                       "ranks; only members may submit to it",
                       query->rank, set->size);
    else if (set->id == RUEDA_WHOLE_JOB && !is_message(query))
        rueda_text_add(why, "RUEDA_WHOLE_JOB is for messages; collectives are "
                            "of process set 0 or one of its ranks");
    else if (is_of(query, RUEDA_JOIN) && set->id != RUEDA_SET_GLOBAL)
        rueda_text_add(why, "only the set of all ranks can be joined; use "
                            "process set 0");
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

/* Others that are named by their rank. */
static rueda_status check_ranks(const struct submit_query *query)
{
    const struct rueda_submit_args *args = query->args;
    struct rueda_text *why = query->why;

    if (is_of(query, RUEDA_BROADCAST) && !rueda_set_has(query->set, args->root))
        rueda_text_add(why,
                       "root rank %d is not in the process set; name a rank "
                       "of the job that is a member",
                       args->root);
    else if (is_message(query) && !is_from_any(query) &&
             (!rueda_set_has(query->set, args->peer) ||
              args->peer == query->rank))
        rueda_text_add(why,
                       "peer %d is not another rank of the process set; name "
                       "one that is",
                       args->peer);
    else if (is_message(query) && args->tag < 0)
        rueda_text_add(why, "tag %d is negative; use 0 or more", args->tag);
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

/* ---- What ------------------------------------------------------------- */

/* Types and reductions that are not plain, in the words of ordered collectives.
 */
static rueda_status check_special(const struct submit_query *query)
{
    const struct rueda_submit_args *args = query->args;
    const rueda_status status =
        rueda_check_numbers(args->kind, args->dtype, args->reduction,
                            args->compression, query->why);

    if (status != RUEDA_OK)
        return status;
    if (is_of(query, RUEDA_REDUCE_SCATTER) && args->reduction != RUEDA_SUM &&
        args->reduction != RUEDA_AVERAGE)
        rueda_text_add(query->why, "%s is not done here; use sum or average",
                       rueda_reduction_str(args->reduction));
    else if (args->reduction == RUEDA_ADASUM &&
             query->set->id != RUEDA_SET_GLOBAL)
        rueda_text_add(query->why, "adasum is done only by all ranks; use "
                                   "process set 0");
    else
        return RUEDA_OK;
    return RUEDA_ERR_UNSUPPORTED;
}

/* Nearly all are plain, and are done with here: no call, no message. */
static rueda_status check_numbers(const struct submit_query *query)
{
    const struct rueda_submit_args *args = query->args;

    return rueda_check_numbers_are_plain(args->dtype, args->reduction,
                                         args->compression)
               ? RUEDA_OK
               : check_special(query);
}

/* a * b, b taken for 1 if it is 0, so that a row of an empty tensor fits too.
 * False: that is more than fits an address space. */
static bool multiply(size_t *a, size_t b)
{
    return !__builtin_mul_overflow(*a, b > 0 ? b : 1, a) &&
           *a <= PTRDIFF_MAX / 16;
}

/* The dimensions and their product, which must fit an address space. */
static rueda_status check_shape(struct submit_query *query)
{
    const struct rueda_submit_args *args = query->args;
    struct rueda_text *why = query->why;
    size_t all = query->elem;
    bool fits = true;

    if (args->dims < 0 || args->dims > RUEDA_MAX_DIMS)
        rueda_text_add(why, "a tensor of %d dimensions; it may have 0 to %d",
                       args->dims, RUEDA_MAX_DIMS);
    else if (args->dims > 0 && args->shape == NULL)
        rueda_text_add(why, "the shape is NULL; give %d numbers", args->dims);
    else
        goto measure;
    return RUEDA_ERR_INVALID;

measure:
    query->rows = args->dims > 0 ? args->shape[0] : 1;
    query->row = 1;
    for (int i = 0; i < args->dims; i++) {
        fits = fits && multiply(&all, args->shape[i]);
        if (i > 0 && fits)
            query->row *= args->shape[i];
    }
    if (fits)
        return RUEDA_OK;
    rueda_text_add(why, "the shape has more elements than fit any memory");
    return RUEDA_ERR_INVALID;
}

/* Rows for each member. */
static rueda_status check_splits(const struct submit_query *query)
{
    const size_t *splits = query->args->splits;
    int members = query->set->size;
    size_t sum = 0;

    if (splits == NULL) {
        /* What has no rows is refused when all ranks know of it. */
        if (query->args->dims == 0 || query->rows % (size_t)members == 0)
            return RUEDA_OK;
        rueda_text_add(query->why,
                       "%zu rows do not divide evenly among %d ranks; say in "
                       "splits how many go to each",
                       query->rows, members);
        return RUEDA_ERR_INVALID;
    }
    for (int i = 0; i < members; i++) {
        if (splits[i] <= query->rows - sum) {
            sum += splits[i];
            continue;
        }
        rueda_text_add(query->why,
                       "splits add up to more rows than the %zu of the tensor, "
                       "at the latest with the %zu for member %d; give away "
                       "what there is, or less",
                       query->rows, splits[i], i);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* ---- Where ------------------------------------------------------------ */

/* Elements that are written here; SIZE_MAX: not known yet. */
static size_t result_count(const struct submit_query *query)
{
    int members = query->set->size;

    switch (query->args->kind) {
    case RUEDA_ALLREDUCE:
    case RUEDA_BROADCAST:
    case RUEDA_RECV:
        return query->rows * query->row;
    case RUEDA_REDUCE_SCATTER:
        return rueda_share_of(query->rows, members, query->set->me) *
               query->row;
    case RUEDA_ALLGATHER:
    case RUEDA_ALLTOALL:
        return query->row > 0 ? SIZE_MAX : 0;
    case RUEDA_BARRIER:
    case RUEDA_JOIN:
    case RUEDA_SEND:
        break;
    }
    return 0;
}

/* Are send and recv apart, or the same memory where that is allowed? */
static bool are_apart(const struct submit_query *query, size_t sent, size_t got)
{
    const struct rueda_submit_args *args = query->args;
    const bool is_same = args->send == args->recv;

    if (is_same &&
        (is_of(query, RUEDA_ALLREDUCE) || is_of(query, RUEDA_BROADCAST)))
        return true;
    if (got == SIZE_MAX) /* its own rows may be at home in a gathered result */
        return is_of(query, RUEDA_ALLGATHER) || !is_same;
    return rueda_are_apart(args->send, sent * query->elem, args->recv,
                           got * query->elem);
}

/* Every buffer that is read or written here must be given. */
static rueda_status check_memory(const struct submit_query *query)
{
    const struct rueda_submit_args *args = query->args;
    bool is_sent = is_of(query, RUEDA_BROADCAST) ? args->root == query->rank
                                                 : !is_of(query, RUEDA_RECV);
    size_t sent = is_sent ? query->rows * query->row : 0;
    size_t got = result_count(query);

    if (sent > 0 && args->send == NULL)
        rueda_text_add(query->why, "send is NULL; give the tensor's address");
    else if (got > 0 && args->recv == NULL && args->alloc == NULL)
        rueda_text_add(query->why, "recv is NULL and there is no alloc; give "
                                   "an address for the result, or both NULL "
                                   "and a function that makes room");
    else if (sent > 0 && got > 0 && args->recv != NULL &&
             !are_apart(query, sent, got))
        rueda_text_add(query->why, "send and recv overlap; let them lie apart, "
                                   "or be the same for an allreduce or "
                                   "broadcast in place");
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

/* An ordered operation is known by its turn, and has no name. */
static rueda_status check_order(const struct submit_query *query)
{
    if (is_ordered(query) && query->args->name != NULL)
        rueda_text_add(query->why,
                       "an ordered operation has no name; leave it NULL, or "
                       "leave out RUEDA_ORDERED");
    else if (is_ordered(query) && is_of(query, RUEDA_JOIN))
        rueda_text_add(query->why,
                       "a join cannot be ordered; leave out RUEDA_ORDERED");
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

/* Fields that do not depend on the kind. */
static rueda_status check_rest(const struct submit_query *query)
{
    const struct rueda_submit_args *args = query->args;
    const unsigned known =
        RUEDA_LIVE_AVERAGE | RUEDA_MORE | RUEDA_ORDERED | RUEDA_UNPACKED;

    if (args->device < RUEDA_DEVICE_HOST) {
        rueda_text_add(query->why,
                       "device %d is unknown; it is RUEDA_DEVICE_HOST, or the "
                       "number of an accelerator",
                       args->device);
        return RUEDA_ERR_INVALID;
    }
    if (args->device != RUEDA_DEVICE_HOST && is_message(query)) {
        rueda_text_add(query->why,
                       "the tensor is on accelerator %d, and only tensors in "
                       "the memory of the host are sent and received; copy it "
                       "there first",
                       args->device);
        return RUEDA_ERR_UNSUPPORTED;
    }
    if ((args->flags & ~known) == 0)
        return RUEDA_OK;
    rueda_text_add(query->why, "flags %#x are unknown", args->flags & ~known);
    return RUEDA_ERR_INVALID;
}

/* ---- All of it -------------------------------------------------------- */

void rueda_check_begin(int rank, const struct rueda_submit_args *args,
                       struct rueda_text *error)
{
    rueda_text_add(error, "rank %d: %s", rank, rueda_kind_str(args->kind));
    if (args->name != NULL)
        rueda_text_add(error, " \"%.100s%s\"", args->name,
                       strlen(args->name) > 100 ? "..." : "");
    if (args->set != RUEDA_ALL_RANKS)
        rueda_text_add(error, " in process set %d", args->set);
    rueda_text_add(error, ": ");
}

/* Of operations with data, in an order in which each check can rely on those
 * before it. */
static rueda_status check_data(struct submit_query *query)
{
    rueda_status status = check_numbers(query);

    if (status == RUEDA_OK)
        status = check_shape(query);
    if (status == RUEDA_OK && is_of(query, RUEDA_ALLTOALL))
        status = check_splits(query);
    if (status == RUEDA_OK)
        status = check_memory(query);
    return status;
}

/* Collect one message, with the operation's name in front, and turn it into a
 * status. */
rueda_status rueda_check_submit(int rank, const struct rueda_set *set,
                                const struct rueda_submit_args *args,
                                struct rueda_text *error)
{
    struct rueda_text why;
    struct submit_query query = {
        .rank = rank,
        .set = set,
        .args = args,
        .rows = 1,
        .row = 1,
        .elem = rueda_dtype_bytes(args->dtype),
        .why = &why,
    };
    rueda_status status = RUEDA_ERR_INVALID;

    why.chars[0] = '\0';
    if ((unsigned)args->kind > RUEDA_RECV)
        rueda_text_add(&why, "kind %d is unknown", (int)args->kind);
    else if (args->name != NULL && strlen(args->name) > RUEDA_MAX_NAME_BYTES)
        rueda_text_add(&why, "the name has over %d bytes; use a shorter one",
                       RUEDA_MAX_NAME_BYTES);
    else
        status = check_set(&query);
    if (status == RUEDA_OK)
        status = check_ranks(&query);
    if (status == RUEDA_OK)
        status = check_order(&query);
    if (status == RUEDA_OK)
        status = check_rest(&query);
    if (status == RUEDA_OK && has_data(&query))
        status = check_data(&query);
    if (status == RUEDA_OK)
        return RUEDA_OK;
    rueda_check_begin(rank, args, error);
    rueda_text_add(error, "%s", why.chars);
    return status;
}
