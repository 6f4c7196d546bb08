/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binomial tree: broadcast down it, allreduce up and down it (Thakur,
 * Rabenseifner and Gropp, 2005).
 *
 * Ranks are counted from the root. The parent of a rank is found by clearing
 * its lowest bit that is set, its children by setting one of the bits below
 * that. With eight ranks:
 *
 *      0 --- 4 --- 6 --- 7
 *      |     `---- 5
 *      |---- 2 --- 3
 *      `---- 1
 *
 * Going up, a rank adds what its children send, nearest first, and passes the
 * sum to its parent. Going down, it passes what its parent sends to its
 * children, the one with the most ranks below it first. Vectors are cut into
 * pieces, each of which moves on by itself, so that all levels of the tree work
 * at the same time on a long one.
 *
 * Cost: log2(size) steps each way, 2(size-1) messages for an allreduce, fewer
 * than anything else, each of the whole vector: for short vectors.
 */
#include "algo/chunk.h"
#include "algo/local.h"
#include "algo/registry.h"
#include "algo/window.h"

struct tree {
    bool is_rising; /* on the way up */
    int place;      /* my rank, counted from the root */
    size_t children;
    size_t pieces;
    const char *own; /* up: my numbers before any others are added to them */
    struct rueda_window in;
    struct rueda_window out;
};
_Static_assert(sizeof(struct tree) <= RUEDA_TASK_STATE_BYTES, "state");

static size_t children_of(int place, int size)
{
    size_t children = 0;

    for (int bit = 1; bit < size - place && (place & bit) == 0; bit *= 2)
        children++;
    return children;
}

static bool is_root(const struct tree *tree)
{
    return tree->place == 0;
}

static int rank_at(const struct rueda_task *task, int place)
{
    return (place + task->coll.root) % task->place->mesh->size;
}

static int parent_rank(const struct rueda_task *task)
{
    const struct tree *tree = (const struct tree *)task->state;

    return rank_at(task, tree->place & (tree->place - 1));
}

/* Child 0 is the nearest. */
static int child_rank(const struct rueda_task *task, size_t child)
{
    const struct tree *tree = (const struct tree *)task->state;

    return rank_at(task, tree->place + (1 << child));
}

/* Piece i of the vector, in bytes. */
static struct rueda_range piece_of(const struct rueda_task *task, size_t i)
{
    const struct rueda_range all = {0,
                                    task->coll.count * task->coll.elem_bytes};

    return rueda_chunk_piece(all, RUEDA_PIECE_BYTES, i);
}

static char *buffer_of(const struct rueda_task *task, size_t position)
{
    return task->place->scratch +
           position % RUEDA_WINDOW_REQS * RUEDA_PIECE_BYTES;
}

/* ---- Up -------------------------------------------------------------- */

/* Positions of what comes in are piece * children + child. */
static void receive_from_child(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const size_t position = tree->in.started;
    const struct rueda_range piece = piece_of(task, position / tree->children);

    rueda_window_recv(&tree->in, task,
                      child_rank(task, position % tree->children),
                      buffer_of(task, position), piece.count);
}

static void add_from_child(struct rueda_task *task, size_t position)
{
    struct tree *tree = (struct tree *)task->state;
    const size_t child = position % tree->children;
    const struct rueda_range piece = piece_of(task, position / tree->children);
    char *sum = (char *)task->coll.recv + piece.at;
    const bool is_whole = is_root(tree) && child == tree->children - 1;

    rueda_local_add(task, sum, child == 0 ? tree->own + piece.at : sum,
                    buffer_of(task, position),
                    piece.count / task->coll.elem_bytes,
                    is_whole ? task->coll.arith.postscale : 1.0);
}

static void send_to_parent(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const struct rueda_range piece = piece_of(task, tree->out.started);
    const char *sum = tree->children > 0 ? task->coll.recv : tree->own;

    rueda_window_send(&tree->out, task, parent_rank(task), sum + piece.at,
                      piece.count);
}

/* After a pass over both windows that has moved nothing: how the phase stands
 * that ends with this many pieces in and out. */
static rueda_status outcome_of(const struct tree *tree, size_t in_end,
                               size_t out_end, rueda_status in,
                               rueda_status out)
{
    if (in < 0)
        return in;
    if (out < 0)
        return out;
    return tree->in.ended == in_end && tree->out.ended == out_end
               ? RUEDA_OK
               : RUEDA_IN_PROGRESS;
}

static rueda_status rise(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const size_t in_end = tree->pieces * tree->children;
    const size_t out_end = is_root(tree) ? 0 : tree->pieces;
    rueda_status in;
    rueda_status out;

    do {
        size_t ready = tree->pieces;

        while (tree->in.started < in_end && !rueda_window_is_full(&tree->in))
            receive_from_child(task);
        in = rueda_window_next(&tree->in);
        if (in == RUEDA_OK)
            add_from_child(task, tree->in.ended - 1);
        if (task->work.status != RUEDA_OK)
            return task->work.status;
        if (tree->children > 0)
            ready = tree->in.ended / tree->children;
        while (tree->out.started < out_end && tree->out.started < ready &&
               !rueda_window_is_full(&tree->out))
            send_to_parent(task);
        out = rueda_window_next(&tree->out);
    } while (in == RUEDA_OK || out == RUEDA_OK);
    return outcome_of(tree, in_end, out_end, in, out);
}

/* ---- Down ------------------------------------------------------------ */

static void receive_from_parent(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const struct rueda_range piece = piece_of(task, tree->in.started);

    rueda_window_recv(&tree->in, task, parent_rank(task),
                      (char *)task->coll.recv + piece.at, piece.count);
}

/* Positions of what goes out are piece * children + child. The root of a
 * broadcast sends from where its data are, and copies them as it goes. */
static void send_to_child(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const size_t position = tree->out.started;
    const size_t child = position % tree->children;
    const struct rueda_range piece = piece_of(task, position / tree->children);
    const bool is_source = task->coll.kind == RUEDA_BROADCAST && is_root(tree);
    const char *from = is_source ? task->coll.send : task->coll.recv;
    const char *buf = from + piece.at;

    if (is_source && child == 0)
        rueda_local_move(task, (char *)task->coll.recv + piece.at, buf,
                         piece.count);
    rueda_window_send(&tree->out, task,
                      child_rank(task, tree->children - 1 - child), buf,
                      piece.count);
}

static rueda_status fall(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const size_t in_end = is_root(tree) ? 0 : tree->pieces;
    const size_t out_end = tree->pieces * tree->children;
    rueda_status in;
    rueda_status out;

    do {
        size_t ready = out_end;

        while (tree->in.started < in_end && !rueda_window_is_full(&tree->in))
            receive_from_parent(task);
        in = rueda_window_next(&tree->in);
        if (!is_root(tree))
            ready = tree->in.ended * tree->children;
        while (tree->out.started < ready && !rueda_window_is_full(&tree->out))
            send_to_child(task);
        out = rueda_window_next(&tree->out);
    } while (in == RUEDA_OK || out == RUEDA_OK);
    return outcome_of(tree, in_end, out_end, in, out);
}

/* ---- The task -------------------------------------------------------- */

static rueda_status tree_progress(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;

    if (task->work.status != RUEDA_OK)
        return task->work.status;
    if (tree->is_rising) {
        const rueda_status status = rise(task);

        if (status != RUEDA_OK)
            return status;
        tree->is_rising = false;
        rueda_window_reset(&tree->in);
        rueda_window_reset(&tree->out);
    }
    return fall(task);
}

static rueda_status tree_post(struct rueda_task *task)
{
    struct tree *tree = (struct tree *)task->state;
    const struct rueda_mesh *mesh = task->place->mesh;
    const struct rueda_coll *coll = &task->coll;

    if (mesh->size == 1) {
        rueda_local_alone(task);
        return RUEDA_OK;
    }
    tree->is_rising = coll->kind == RUEDA_ALLREDUCE;
    if (tree->is_rising)
        task->coll.root = 0;
    tree->place = (mesh->rank - coll->root + mesh->size) % mesh->size;
    tree->children = children_of(tree->place, mesh->size);
    tree->pieces =
        rueda_chunk_pieces(coll->count * coll->elem_bytes, RUEDA_PIECE_BYTES);
    tree->own = coll->send;
    if (tree->is_rising && coll->arith.prescale != 1.0) {
        rueda_local_take(task, coll->count);
        tree->own = coll->recv;
    }
    rueda_window_reset(&tree->in);
    rueda_window_reset(&tree->out);
    return tree_progress(task);
}

const struct rueda_algo rueda_algo_tree = {
    .name = "tree",
    .about = "binomial tree; fewest messages, for short vectors",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_BROADCAST,
    .memory = RUEDA_MEMKIND_ANY,
    .post = tree_post,
    .progress = tree_progress,
};
