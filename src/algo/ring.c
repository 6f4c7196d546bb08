/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring: allreduce as reduce-scatter, then allgather (Patarasuk and Yuan, 2009);
 * also each of the two phases alone.
 *
 * The vector is cut into `size` chunks, one for each rank. In step s of the
 * first phase rank r adds its own numbers to chunk r-1-s, which comes from the
 * left (in step 0 nothing comes), and sends it to the right; in step size-1 it
 * keeps it instead. With four ranks, the chunk in each rank's hands is
 *
 *      step   rank 0   rank 1   rank 2   rank 3
 *        0       3        0        1        2
 *        1       2        3        0        1
 *        2       1        2        3        0
 *        3       0        1        2        3      whole, and kept
 *
 * after which rank r holds the whole sum of chunk r. The second phase passes
 * the finished chunks once more round the ring: in step s rank r sends chunk
 * r-s to the right and receives chunk r-s-1.
 *
 * Chunks travel in pieces through a few slots of the scratch memory: a piece
 * is received into a slot, added to there and sent on from there, so what is
 * needed does not grow with the vector, and transfer and addition overlap. All
 * steps are done for the first few pieces of every chunk (the lanes), then for
 * the next few:
 *
 *      position = (turn * size + step) * lanes + lane
 *
 * One rank's send at a position is its right neighbour's receive a step later.
 * A slot is used again two steps later, by when its message must have left: it
 * leaves as soon as the neighbour has a slot for it, which waits only for
 * messages of earlier steps, so there is no circle of ranks that wait for one
 * another, even on a transport that keeps nothing on the way.
 *
 * Cost: 2(size-1) steps, 2(size-1)/size of the vector sent by every rank, which
 * no allreduce can beat on bandwidth; small vectors go elsewhere (select.c).
 */
#include "algo/chunk.h"
#include "algo/local.h"
#include "algo/registry.h"
#include "algo/window.h"

/* Lanes times two steps are the slots; one more part of the scratch memory
 * holds own numbers that had to be scaled before they could be added. */
#define MAX_LANES    (RUEDA_WINDOW_REQS / 2)
#define LEAST_BYTES  ((size_t)128 << 10) /* shorter pieces gain nothing */
#define GATHER_BYTES ((size_t)512 << 10) /* these do not pass through slots */

struct ring {
    bool is_gathering; /* in the second phase */
    bool is_copying;   /* own chunk is still in send, not in recv */
    size_t piece;      /* elements */
    size_t lanes;      /* first phase */
    size_t pieces;     /* of the longest chunk; second phase */
    size_t end;        /* positions of the phase */
    struct rueda_window in;
    struct rueda_window out;
};
_Static_assert(sizeof(struct ring) <= RUEDA_TASK_STATE_BYTES, "state");

static int neighbour(const struct rueda_task *task, int steps)
{
    const int size = task->place->mesh->size;

    return (task->place->mesh->rank + size + steps) % size;
}

/* The chunk of the rank that is `back` places to the left. */
static struct rueda_range chunk_behind(const struct rueda_task *task,
                                       size_t back)
{
    const struct rueda_coll *coll = &task->coll;
    const int size = task->place->mesh->size;
    const int i = (task->place->mesh->rank + size - (int)back) % size;

    if (coll->kind == RUEDA_ALLREDUCE)
        return rueda_chunk_even(coll->count, size, i);
    return rueda_chunk_listed(coll->recv_counts, coll->count, i);
}

static size_t longest_chunk(const struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;
    const int size = task->place->mesh->size;

    if (coll->kind == RUEDA_ALLREDUCE)
        return rueda_chunk_even(coll->count, size, 0).count;
    return rueda_chunk_longest(coll->recv_counts, coll->count, size);
}

/* ---- First phase: reduce-scatter ------------------------------------- */

struct spot {
    size_t step;
    size_t slot;
    struct rueda_range piece;
};

static struct spot spot_of(const struct rueda_task *task, size_t position)
{
    const struct ring *ring = (const struct ring *)task->state;
    const size_t size = (size_t)task->place->mesh->size;
    const size_t row = position / ring->lanes;
    const size_t lane = position % ring->lanes;
    struct spot spot;

    spot.step = row % size;
    spot.slot = position % (2 * ring->lanes);
    spot.piece =
        rueda_chunk_piece(chunk_behind(task, spot.step + 1), ring->piece,
                          row / size * ring->lanes + lane);
    return spot;
}

/* Pieces are a quarter of the longest chunk, so that even a short one is
 * received and added to at the same time, within limits. */
static void begin_reducing(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    const size_t elem = task->coll.elem_bytes;
    const size_t longest = longest_chunk(task);
    size_t pieces;

    ring->piece = rueda_chunk_pieces(longest, MAX_LANES);
    if (ring->piece < LEAST_BYTES / elem)
        ring->piece = LEAST_BYTES / elem;
    if (ring->piece > RUEDA_PIECE_BYTES / elem)
        ring->piece = RUEDA_PIECE_BYTES / elem;

    pieces = rueda_chunk_pieces(longest, ring->piece);
    ring->lanes = pieces < MAX_LANES ? pieces : MAX_LANES;
    ring->end = 0;
    if (pieces > 0)
        ring->end = rueda_chunk_pieces(pieces, ring->lanes) * ring->lanes *
                    (size_t)task->place->mesh->size;
    rueda_window_reset(&ring->in);
    rueda_window_reset(&ring->out);
}

/* Where the finished numbers of my chunk go. In place, the reduce-scatter's
 * result is moved to the front when nothing else is needed any more. */
static char *result_at(struct rueda_task *task, size_t at)
{
    const struct rueda_coll *coll = &task->coll;

    if (coll->kind == RUEDA_REDUCE_SCATTER && coll->send != coll->recv)
        at -= chunk_behind(task, 0).at;
    return rueda_local_at(coll->recv, task, at);
}

static void receive_piece(struct rueda_task *task, size_t position)
{
    struct ring *ring = (struct ring *)task->state;
    const struct spot spot = spot_of(task, position);
    const size_t count = spot.step > 0 ? spot.piece.count : 0;

    rueda_window_recv(&ring->in, task, neighbour(task, -1),
                      task->place->scratch + spot.slot * RUEDA_PIECE_BYTES,
                      count * task->coll.elem_bytes);
}

/* Add own numbers to what has come and send it on, or keep it. */
static void pass_piece(struct rueda_task *task, size_t position)
{
    struct ring *ring = (struct ring *)task->state;
    const struct rueda_arith *arith = &task->coll.arith;
    const struct spot spot = spot_of(task, position);
    const bool is_last = spot.step == (size_t)task->place->mesh->size - 1;
    const char *own =
        rueda_local_const_at(task->coll.send, task, spot.piece.at);
    char *slot = task->place->scratch + spot.slot * RUEDA_PIECE_BYTES;
    const char *passed = slot;
    size_t count = spot.piece.count;

    if (arith->prescale != 1.0 && count > 0) {
        char *scaled = spot.step == 0 ? slot : RUEDA_SPARE(task->place);

        rueda_host_scale(task->place->kernels, arith->dtype, scaled, own, count,
                         arith->prescale);
        own = scaled;
    }
    if (spot.step == 0)
        passed = own;
    else if (count > 0)
        rueda_local_add(task, is_last ? result_at(task, spot.piece.at) : slot,
                        slot, own, count, is_last ? arith->postscale : 1.0);
    if (is_last)
        count = 0;
    rueda_window_send(&ring->out, task, neighbour(task, 1), passed,
                      count * task->coll.elem_bytes);
}

static rueda_status reduce_progress(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    rueda_status status;
    bool is_moving;

    do {
        is_moving = false;
        status = rueda_window_drain(&ring->out);
        if (status < 0)
            return status;
        while (ring->in.started < ring->end &&
               ring->in.started < ring->out.ended + 2 * ring->lanes) {
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
    return ring->out.ended == ring->end ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

/* ---- Second phase: allgather ----------------------------------------- */

static void begin_gathering(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;

    ring->is_gathering = true;
    ring->piece = GATHER_BYTES / task->coll.elem_bytes;
    ring->pieces = rueda_chunk_pieces(longest_chunk(task), ring->piece);
    ring->end = ring->pieces * (size_t)(task->place->mesh->size - 1);
    rueda_window_reset(&ring->in);
    rueda_window_reset(&ring->out);
}

/* The piece of a position in the chunk of the rank `back` places behind the
 * one that is passed on in the position's step. */
static struct rueda_range gathered(const struct rueda_task *task,
                                   size_t position, size_t back)
{
    const struct ring *ring = (const struct ring *)task->state;
    const size_t step = position / ring->pieces;

    return rueda_chunk_piece(chunk_behind(task, step + back), ring->piece,
                             position % ring->pieces);
}

static void gather_in(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    const struct rueda_range piece = gathered(task, ring->in.started, 1);

    rueda_window_recv(&ring->in, task, neighbour(task, -1),
                      rueda_local_at(task->coll.recv, task, piece.at),
                      piece.count * task->coll.elem_bytes);
}

static void gather_out(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    const size_t position = ring->out.started;
    const struct rueda_range piece = gathered(task, position, 0);
    char *buf = rueda_local_at(task->coll.recv, task, piece.at);
    const size_t bytes = piece.count * task->coll.elem_bytes;

    if (ring->is_copying && position < ring->pieces) {
        const size_t at = piece.at - chunk_behind(task, 0).at;

        rueda_local_move(
            task, buf, rueda_local_const_at(task->coll.send, task, at), bytes);
    }
    rueda_window_send(&ring->out, task, neighbour(task, 1), buf, bytes);
}

static rueda_status gather_progress(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    rueda_status sent;
    rueda_status received;
    bool is_moving;

    do {
        is_moving = false;
        received = rueda_window_drain(&ring->in);
        if (received < 0)
            return received;
        while (ring->in.started < ring->end &&
               !rueda_window_is_full(&ring->in)) {
            gather_in(task);
            is_moving = true;
        }
        sent = rueda_window_drain(&ring->out);
        if (sent < 0)
            return sent;
        while (ring->out.started < ring->end &&
               ring->out.started < ring->in.ended + ring->pieces &&
               !rueda_window_is_full(&ring->out)) {
            gather_out(task);
            is_moving = true;
        }
    } while (is_moving);
    return ring->in.ended == ring->end && ring->out.ended == ring->end
               ? RUEDA_OK
               : RUEDA_IN_PROGRESS;
}

/* ---- The task -------------------------------------------------------- */

static void move_result_to_front(struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_range mine = chunk_behind(task, 0);

    if (coll->send == coll->recv)
        rueda_local_move(task, coll->recv,
                         rueda_local_at(coll->recv, task, mine.at),
                         mine.count * coll->elem_bytes);
}

static rueda_status ring_progress(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    rueda_status status;

    if (ring->is_gathering)
        return gather_progress(task);
    status = reduce_progress(task);
    if (status != RUEDA_OK)
        return status;
    if (task->coll.kind == RUEDA_REDUCE_SCATTER) {
        move_result_to_front(task);
        return RUEDA_OK;
    }
    begin_gathering(task);
    return gather_progress(task);
}

static rueda_status ring_post(struct rueda_task *task)
{
    struct ring *ring = (struct ring *)task->state;
    const struct rueda_coll *coll = &task->coll;

    if (task->place->mesh->size == 1) {
        rueda_local_alone(task);
        ring->end = 0;
        return RUEDA_OK;
    }
    ring->is_gathering = false;
    ring->is_copying = false;
    if (coll->kind == RUEDA_ALLGATHER) {
        const struct rueda_range mine = chunk_behind(task, 0);
        char *place = rueda_local_at(coll->recv, task, mine.at);

        /* In place it makes room for what comes from rank 0, at once. */
        if (coll->send == coll->recv)
            rueda_local_move(task, place, coll->send,
                             mine.count * coll->elem_bytes);
        else
            ring->is_copying = true;
        begin_gathering(task);
    } else {
        begin_reducing(task);
    }
    return ring_progress(task);
}

const struct rueda_algo rueda_algo_ring = {
    .name = "ring",
    .about = "chunks passed round a ring; least traffic for long vectors",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_REDUCE_SCATTER |
             1u << RUEDA_ALLGATHER,
    .post = ring_post,
    .progress = ring_progress,
};
