/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/rounds.h"

/* ---- What fits together ------------------------------------------------ */

bool rueda_round_may_share(const struct rueda_request *request)
{
    switch (request->kind) {
    case RUEDA_ALLREDUCE:
        return request->reduction != RUEDA_ADASUM &&
               (request->flags & RUEDA_UNPACKED) == 0;
    case RUEDA_ALLGATHER:
    case RUEDA_REDUCE_SCATTER:
        return true;
    case RUEDA_BROADCAST:
        return rueda_request_bytes(request) <= RUEDA_ROUND_BROADCAST_MOST;
    default:
        return false;
    }
}

bool rueda_round_fits(const struct rueda_request *a,
                      const struct rueda_request *b)
{
    return a->kind == b->kind && a->dtype == b->dtype &&
           a->reduction == b->reduction && a->prescale == b->prescale &&
           a->postscale == b->postscale && a->compression == b->compression &&
           a->flags == b->flags && a->root == b->root &&
           rueda_request_is_away(a) == rueda_request_is_away(b) &&
           rueda_round_may_share(a) && rueda_round_may_share(b);
}

static size_t rows_of(const struct rueda_request *request)
{
    return request->dims > 0 ? request->shape[0] : 1;
}

static size_t row_bytes_of(const struct rueda_request *request)
{
    return rueda_request_row(request) * rueda_dtype_bytes(request->dtype);
}

/* The largest share of a reduce-scatter's result. */
static size_t largest_share(const struct rueda_request *request, int members)
{
    return rueda_layout_share(rows_of(request), members, 0) *
           row_bytes_of(request);
}

size_t rueda_round_span(const struct rueda_request *request, int members)
{
    const size_t bytes = rueda_request_bytes(request);

    if (request->kind == RUEDA_ALLGATHER)
        return rueda_layout_span(bytes * (size_t)members);
    if (request->kind == RUEDA_REDUCE_SCATTER)
        return rueda_layout_span(bytes) +
               rueda_layout_span(largest_share(request, members));
    return rueda_layout_span(bytes);
}

/* ---- A round ----------------------------------------------------------- */

static bool add_whole(struct rueda_round *round,
                      const struct rueda_request *request)
{
    struct rueda_part *part = &round->parts[round->count];
    const size_t bytes = rueda_request_bytes(request);

    if (round->kind == RUEDA_BROADCAST && bytes > RUEDA_ROUND_BROADCAST_MOST)
        return false;
    if (!rueda_layout_add(&round->end, round->room, bytes, &part->at))
        return false;
    part->bytes = bytes;
    round->count++;
    return true;
}

static bool add_rows(struct rueda_round *round,
                     const struct rueda_request *request)
{
    struct rueda_tensor *tensor = &round->tensors[round->count];
    struct rueda_round with = *round;

    tensor->row_bytes = row_bytes_of(request);
    if (round->kind == RUEDA_REDUCE_SCATTER) {
        tensor->rows = rows_of(request);
        with.behind += largest_share(request, round->members);
    } else if (!rueda_layout_total(round->rows + round->count, round->stride,
                                   round->members, tensor->row_bytes,
                                   &tensor->rows)) {
        return false;
    }
    with.end += tensor->rows * tensor->row_bytes;
    if (with.end > round->room || rueda_round_bytes(&with) > round->room)
        return false;
    with.count++;
    *round = with;
    return true;
}

bool rueda_round_add(struct rueda_round *round,
                     const struct rueda_request *request)
{
    if (round->count == round->most || (request->flags & RUEDA_UNPACKED) != 0)
        return false;
    return rueda_round_is_whole(round) ? add_whole(round, request)
                                       : add_rows(round, request);
}

size_t rueda_round_block(const struct rueda_round *round, int member)
{
    size_t bytes = 0;

    for (int i = 0; i < round->count; i++)
        bytes +=
            rueda_round_rows(round, i, member) * round->tensors[i].row_bytes;
    return bytes;
}

size_t rueda_round_begin(const struct rueda_round *round, int member)
{
    size_t begin = 0;

    for (int i = 0; i < member; i++)
        begin += rueda_round_block(round, i);
    return begin;
}
