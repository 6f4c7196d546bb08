/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring: allreduce as reduce-scatter, then allgather (Patarasuk and Yuan, 2009);
 * also each of the two alone.
 *
 * The vector is cut into `size` chunks, one for each rank. In step s rank r has
 * chunk r-1-s in its hands. It comes from the left, but for the first step, and
 * goes to the right, but for the last. Up to step size-1 the rank adds its own
 * numbers; from then on the chunk is whole and belongs into the result. With
 * four ranks:
 *
 *      step   rank 0   rank 1   rank 2   rank 3
 *        0       3        0        1        2
 *        1       2        3        0        1
 *        2       1        2        3        0
 *        3       0        1        2        3      becomes whole
 *        4       3        0        1        2
 *        5       2        3        0        1
 *        6       1        2        3        0
 *
 * Reduce-scatter ends with step size-1, allgather begins with it.
 *
 * Chunks travel in pieces. A piece that is not whole is received into a buffer
 * of the scratch memory, added to there and sent on from there, so what is
 * needed does not grow with the vector, and transfer and addition overlap. All
 * steps are done for the first few pieces of every chunk (the columns), then
 * for the next few:
 *
 *      position = (turn * steps + step) * columns + column
 *
 * One rank's send at a position is its right neighbour's receive a step later.
 * A receive waits until the send of two steps before has left, which frees its
 * buffer, or, in place, the numbers that it writes over. That send leaves as
 * soon as the neighbour receives it, which waits only for messages of earlier
 * steps, so there is no circle of ranks that wait for one another, even on a
 * transport that keeps nothing on the way.
 *
 * Cost: 2(size-1) messages, 2(size-1)/size of the vector sent by every rank,
 * which no allreduce can beat on bandwidth; small vectors go elsewhere
 * (select.c).
 */
#include "algo/chunk.h"
#include "algo/local.h"
#include "algo/registry.h"
#include "algo/window.h"

/* Columns times two steps are the buffers; one more part of the scratch memory
 * holds own numbers that had to be scaled before they could be added. */
#define MAX_COLUMNS (RUEDA_WINDOW_REQS / 2)
#define LEAST_BYTES ((size_t)128 << 10) /* shorter pieces gain nothing */

/* Longer ones leave the caches. What is in flight on a link is one piece a
 * column, and where ranks share cores that are far from one another half as
 * much was slower by a fifth: docs/benchmarks.md. */
#define MOST_BYTES ((size_t)512 << 10)

struct ring {
    size_t first; /* step */
    size_t last;  /* step */
    size_t piece; /* elements */
    size_t columns;
    size_t end;         /* positions */
    const char *passed; /* what is sent next, when it is ready, */
    size_t passed_bytes;
    bool is_passing; /* if there is anything */
    struct rueda_window in;
    struct rueda_window out;
};
_Static_assert(sizeof(struct ring) <= RUEDA_TASK_STATE_BYTES, "state");
_Static_assert(MOST_BYTES <= RUEDA_PIECE_BYTES, "a buffer");

static int neighbour(const struct rueda_task *task, int steps)
{
    const int size = task->place->mesh->size;

    return (task->place->mesh->rank + size + steps) % size;
}

/* ---- Where ------------------------------------------------------------- */

static struct rueda_range chunk_of(const struct rueda_task *task, int rank)
{
    const struct rueda_coll *coll = &task->coll;

    if (coll->kind == RUEDA_ALLREDUCE)
        return rueda_chunk_even(coll->count, task->place->mesh->size, rank);
    return rueda_chunk_listed(coll->recv_counts, coll->count, rank);
}

static struct rueda_range own_chunk(const struct rueda_task *task)
{
    return chunk_of(task, task->place->mesh->rank);
}

static size_t longest_chunk(const struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;
    const int size = task->place->mesh->size;

    if (coll->kind == RUEDA_ALLREDUCE)
        return rueda_chunk_even(coll->count, size, 0).count;
    return rueda_chunk_longest(coll->recv_counts, coll->count, size);
}

struct spot {
    size_t step;
    char *buffer;
    struct rueda_range piece;
};

static struct spot spot_of(const struct rueda_task *task, size_t position)
{
    const struct ring *ring = (const struct ring *)task->state;
    const size_t steps = ring->last - ring->first + 1;
    const size_t row = position / ring->columns;
    const size_t column = position % ring->columns;
    const size_t buffer = position % (2 * ring->columns);
    const size_t size = (size_t)task->place->mesh->size;
    struct rueda_range chunk;
    struct spot spot;

    spot.step = ring->first + row % steps;
    chunk = chunk_of(task, neighbour(task, -(int)((spot.step + 1) % size)));
    spot.buffer = task->place->scratch + buffer * RUEDA_PIECE_BYTES;
    spot.piece = rueda_chunk_piece(chunk, ring->piece,
                                   row / steps * ring->columns + column);
    return spot;
}

/* Where whole numbers go. In place, the reduce-scatter's result is moved to the
 * front when nothing else is needed any more. */
static char *result_at(struct rueda_task *task, size_t at)
{
    const struct rueda_coll *coll = &task->coll;

    if (coll->kind == RUEDA_REDUCE_SCATTER && coll->send != coll->recv)
        at -= own_chunk(task).at;
    return rueda_local_at(coll->recv, task, at);
}

/* ---- In whose hands ---------------------------------------------------- */

/* Has it arrived here complete? */
static bool comes_whole(const struct rueda_task *task, const struct spot *spot)
{
    return spot->step >= (size_t)task->place->mesh->size;
}

static void receive_piece(struct rueda_task *task, size_t position)
{
    struct ring *ring = (struct ring *)task->state;
    const struct spot spot = spot_of(task, position);
    char *place =
        comes_whole(task, &spot) ? result_at(task, spot.piece.at) : spot.buffer;
    const size_t count = spot.step > ring->first ? spot.piece.count : 0;

    rueda_window_recv(&ring->in, task, neighbour(task, -1), place,
                      count * task->coll.elem_bytes);
}

/* Allgather: a piece of our own enters the ring. Returns where it is now. */
static const char *bring_piece(struct rueda_task *task, const struct spot *spot)
{
    const struct rueda_coll *coll = &task->coll;
    char *place = result_at(task, spot->piece.at);

    if (coll->send != coll->recv)
        rueda_local_move(
            task, place,
            rueda_local_const_at(coll->send, task,
                                 spot->piece.at - own_chunk(task).at),
            spot->piece.count * coll->elem_bytes);
    return place;
}

/* Add our own numbers to what has arrived. Returns where the sum is. */
static const char *add_piece(struct rueda_task *task, const struct spot *spot)
{
    const struct rueda_arith *arith = &task->coll.arith;
    const size_t count = spot->piece.count;
    const char *own =
        rueda_local_const_at(task->coll.send, task, spot->piece.at);
    char *sum = spot->buffer;
    double scale = 1.0;

    if (arith->prescale != 1.0) {
        char *scaled =
            spot->step == 0 ? spot->buffer : RUEDA_WINDOW_SPARE(task->place);

        rueda_device_scale(task->place->device, &task->work, arith->dtype,
                           scaled, own, count, arith->prescale);
        own = scaled;
    }
    if (spot->step == 0)
        return own;
    if (spot->step == (size_t)task->place->mesh->size - 1) {
        sum = result_at(task, spot->piece.at);
        scale = arith->postscale;
    }
    rueda_local_add(task, sum, spot->buffer, own, count, scale);
    return sum;
}

/* Process what has arrived, so that it can be sent on or kept. */
static void pass_piece(struct rueda_task *task, size_t position)
{
    struct ring *ring = (struct ring *)task->state;
    const struct spot spot = spot_of(task, position);
    const size_t count = spot.step < ring->last ? spot.piece.count : 0;

    ring->passed = NULL;
    ring->passed_bytes = count * task->coll.elem_bytes;
    ring->is_passing = true;
    if (comes_whole(task, &spot))
        ring->passed = result_at(task, spot.piece.at);
    else if (spot.piece.count > 0)
        ring->passed = task->coll.kind == RUEDA_ALLGATHER
                           ? bring_piece(task, &spot)
                           : add_piece(task, &spot);
}

/* Send on what the device has got ready. */
static void send_piece(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;

    if (ring->is_passing)
        rueda_window_send(&ring->out, task, neighbour(task, 1), ring->passed,
                          ring->passed_bytes);
    ring->is_passing = false;
}

/* ---- The task ---------------------------------------------------------- */

/* Pieces are a quarter of the longest chunk, so that even a short one is
 * received and added to at the same time, within limits. */
static size_t piece_bytes(const struct rueda_task *task)
{
    size_t quarter;

    if (task->coll.kind == RUEDA_ALLGATHER)
        return MOST_BYTES;
    quarter = rueda_chunk_pieces(longest_chunk(task), MAX_COLUMNS) *
              task->coll.elem_bytes;
    if (quarter < LEAST_BYTES)
        return LEAST_BYTES;
    return quarter < MOST_BYTES ? quarter : MOST_BYTES;
}

static void begin(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    const enum rueda_kind kind = task->coll.kind;
    const size_t size = (size_t)task->place->mesh->size;
    size_t pieces;

    ring->first = kind == RUEDA_ALLGATHER ? size - 1 : 0;
    ring->last = kind == RUEDA_REDUCE_SCATTER ? size - 1 : 2 * size - 2;
    ring->piece = piece_bytes(task) / task->coll.elem_bytes;
    pieces = rueda_chunk_pieces(longest_chunk(task), ring->piece);
    ring->columns = pieces < MAX_COLUMNS ? pieces : MAX_COLUMNS;
    ring->end = 0;
    if (pieces > 0)
        ring->end = rueda_chunk_pieces(pieces, ring->columns) * ring->columns *
                    (ring->last - ring->first + 1);
    ring->is_passing = false;
    rueda_window_reset(&ring->in);
    rueda_window_reset(&ring->out);
}

static void move_result_to_front(struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_range mine = own_chunk(task);

    if (coll->kind == RUEDA_REDUCE_SCATTER && coll->send == coll->recv)
        rueda_local_move(task, coll->recv,
                         rueda_local_at(coll->recv, task, mine.at),
                         mine.count * coll->elem_bytes);
}

static rueda_status ring_progress(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    rueda_status status;
    bool is_moving;

    do {
        if (task->work.status != RUEDA_OK)
            return task->work.status;
        is_moving = false;
        send_piece(task);
        status = rueda_window_drain(&ring->out);
        if (status < 0)
            return status;
        while (ring->in.started < ring->end &&
               ring->in.started < ring->out.ended + 2 * ring->columns) {
            receive_piece(task, ring->in.started);
            is_moving = true;
        }
        status = rueda_window_next(&ring->in);
        if (status < 0)
            return status;
        if (status == RUEDA_OK) {
            pass_piece(task, ring->in.ended - 1);
            is_moving = true;
        }
    } while (is_moving);
    if (ring->out.ended < ring->end)
        return RUEDA_IN_PROGRESS;
    move_result_to_front(task);
    return RUEDA_OK;
}

static rueda_status ring_post(struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;

    if (task->place->mesh->size == 1) {
        rueda_local_alone(task);
        return RUEDA_OK;
    }
    /* In place, our own makes room for what comes from rank 0, at once. */
    if (coll->kind == RUEDA_ALLGATHER && coll->send == coll->recv) {
        const struct rueda_range mine = own_chunk(task);

        rueda_local_move(task, rueda_local_at(coll->recv, task, mine.at),
                         coll->send, mine.count * coll->elem_bytes);
    }
    begin(task);
    return ring_progress(task);
}

const struct rueda_algo rueda_algo_ring = {
    .name = "ring",
    .about = "chunks passed round a ring; least traffic for long vectors",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_REDUCE_SCATTER |
             1u << RUEDA_ALLGATHER,
    .memory = RUEDA_MEMKIND_ANY,
    .post = ring_post,
    .progress = ring_progress,
};
