/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/exchange.h"

#include "algo/chunk.h"
#include "algo/local.h"

void rueda_exchange_begin(struct rueda_exchange *exchange)
{
    exchange->to = 0;
    exchange->out = NULL;
    exchange->out_bytes = 0;
    exchange->from = 0;
    exchange->in = NULL;
    exchange->in_bytes = 0;
    exchange->own = NULL;
    exchange->postscale = 1.0;
    rueda_window_reset(&exchange->sent);
    rueda_window_reset(&exchange->received);
}

/* Piece i, in bytes. */
static struct rueda_range piece_of(size_t bytes, size_t i)
{
    const struct rueda_range all = {0, bytes};

    return rueda_chunk_piece(all, RUEDA_PIECE_BYTES, i);
}

static char *buffer_of(const struct rueda_task *task, size_t i)
{
    return task->place->scratch + i % RUEDA_WINDOW_REQS * RUEDA_PIECE_BYTES;
}

static void send_pieces(struct rueda_exchange *exchange,
                        struct rueda_task *task)
{
    struct rueda_window *sent = &exchange->sent;
    const size_t end =
        rueda_chunk_pieces(exchange->out_bytes, RUEDA_PIECE_BYTES);

    while (sent->started < end && !rueda_window_is_full(sent)) {
        const struct rueda_range piece =
            piece_of(exchange->out_bytes, sent->started);

        rueda_window_send(sent, task, exchange->to, exchange->out + piece.at,
                          piece.count);
    }
}

static void receive_pieces(struct rueda_exchange *exchange,
                           struct rueda_task *task)
{
    struct rueda_window *received = &exchange->received;
    const size_t end =
        rueda_chunk_pieces(exchange->in_bytes, RUEDA_PIECE_BYTES);

    while (received->started < end && !rueda_window_is_full(received)) {
        const struct rueda_range piece =
            piece_of(exchange->in_bytes, received->started);
        char *buf = exchange->own != NULL ? buffer_of(task, received->started)
                                          : exchange->in + piece.at;

        rueda_window_recv(received, task, exchange->from, buf, piece.count);
    }
}

static void add_piece(struct rueda_exchange *exchange, struct rueda_task *task,
                      size_t i)
{
    const struct rueda_range piece = piece_of(exchange->in_bytes, i);

    rueda_local_add(task, exchange->in + piece.at, exchange->own + piece.at,
                    buffer_of(task, i), piece.count / task->coll.elem_bytes,
                    exchange->postscale);
}

rueda_status rueda_exchange_progress(struct rueda_exchange *exchange,
                                     struct rueda_task *task)
{
    struct rueda_window *sent = &exchange->sent;
    struct rueda_window *received = &exchange->received;
    rueda_status in;
    rueda_status out;

    if (task->work.status != RUEDA_OK)
        return task->work.status;
    do {
        receive_pieces(exchange, task);
        send_pieces(exchange, task);
        in = rueda_window_next(received);
        if (in == RUEDA_OK && exchange->own != NULL)
            add_piece(exchange, task, received->ended - 1);
        if (task->work.status != RUEDA_OK)
            return task->work.status;
        out = rueda_window_next(sent);
    } while (in == RUEDA_OK || out == RUEDA_OK);
    if (in < 0)
        return in;
    if (out < 0)
        return out;
    /* Nothing in flight in either direction: nothing is left. */
    return sent->ended == sent->started && received->ended == received->started
               ? RUEDA_OK
               : RUEDA_IN_PROGRESS;
}
