/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allgather between hosts of several ranks, whose members follow one another in
 * rank, so that the data of a host are one stretch of the result:
 *
 *           host 0                     host 1
 *      rank 0    rank 1           rank 2    rank 3
 *        a..       b..              c..       d..
 *        ab..      ab..             ..cd      ..cd   1: shared in the host
 *        A ======================== C                2: slices between hosts,
 *                  B ======================== D         a rank for each
 *        abcd      abcd             abcd      abcd   3: shared in the host
 *
 * Every byte comes to a host once, over as many ranks as all hosts have (the
 * carriers), however the pieces of its ranks differ in size. A ring takes as
 * many steps as there are ranks; this one as there are hosts, and a few that
 * need no network.
 *
 * What hosts have is cut into as many blocks, each into slices, one a carrier.
 * The second stage brings a rank its slice of a block from all hosts, in a
 * buffer of which there are two; the third is one allgather for each other
 * host, straight to where its data belong. While one block is shared the next
 * one travels.
 */
#include "algo/chunk.h"
#include "algo/hier.h"
#include "algo/local.h"

struct gather {
    size_t blocks;
    bool is_begun;    /* stage 1 has ended */
    size_t crossed;   /* blocks that have passed stage 2, */
    size_t shared;    /* and 3 */
    int host;         /* whose part of the next block is to be shared */
    size_t buffer_at; /* where that is in the buffer, in elements */
};
_Static_assert(sizeof(struct gather) <= RUEDA_TASK_STATE_BYTES, "state");

/* ---- Blocks and slices ------------------------------------------------- */

static size_t piece_of(const struct rueda_task *task, int rank)
{
    return task->coll.recv_counts != NULL ? task->coll.recv_counts[rank]
                                          : task->coll.count;
}

static void find_starts(const struct rueda_task *task)
{
    struct rueda_hier *hier = task->place->hier;
    size_t at = 0;

    for (int host = 0; host < hier->hosts; host++) {
        hier->starts[host] = at;
        for (int i = hier->firsts[host]; i < hier->firsts[host + 1]; i++)
            at += piece_of(task, i);
    }
    hier->starts[hier->hosts] = at;
}

/* Block i of a host, from the beginning of the result. */
static struct rueda_range block_of(const struct rueda_task *task, int host,
                                   size_t i)
{
    const struct gather *self = (const struct gather *)task->state;
    const size_t *starts = task->place->hier->starts;
    struct rueda_range range = rueda_chunk_even(starts[host + 1] - starts[host],
                                                (int)self->blocks, (int)i);

    range.at += starts[host];
    return range;
}

/* The slice of it of one of my host; empty beyond the carriers. */
static struct rueda_range slice_of(const struct rueda_task *task, int host,
                                   size_t i, int index)
{
    const int carriers = task->place->hier->carriers;
    const struct rueda_range block = block_of(task, host, i);
    struct rueda_range range = {0, 0};

    if (index < carriers)
        range = rueda_chunk_even(block.count, carriers, index);
    range.at += block.at;
    return range;
}

/* Where it goes in the result. */
static char *place_of(const struct rueda_task *task, struct rueda_range range)
{
    return rueda_local_at(task->coll.recv, task, range.at);
}

static char *buffer_of(const struct rueda_task *task, size_t i)
{
    return task->place->hier->buffers[i % RUEDA_HIER_BUFFERS];
}

/* ---- Stages ------------------------------------------------------------ */

/* The pieces of my host. */
static struct rueda_coll first_of(const struct rueda_task *task)
{
    const struct rueda_hier *hier = task->place->hier;
    struct rueda_coll coll = task->coll;

    for (int k = 0; k < hier->level[RUEDA_HIER_LOCAL].mesh.size; k++)
        hier->counts[k] = piece_of(task, hier->firsts[hier->host] + k);
    coll.recv = place_of(task, block_of(task, hier->host, 0));
    coll.recv_counts = hier->counts;
    return coll;
}

/* My slice of block i of all hosts; how many elements these are. */
static size_t cross_of(const struct rueda_task *task, size_t i,
                       struct rueda_coll *out)
{
    const struct rueda_hier *hier = task->place->hier;
    const struct rueda_range mine = slice_of(task, hier->host, i, hier->index);
    size_t total = 0;

    for (int host = 0; host < hier->hosts; host++) {
        hier->cross_counts[host] = slice_of(task, host, i, hier->index).count;
        total += hier->cross_counts[host];
    }
    *out = task->coll;
    out->send = place_of(task, mine);
    out->recv = buffer_of(task, i);
    out->count = mine.count;
    out->recv_counts = hier->cross_counts;
    return total;
}

/* The next part of a block to be shared: the slices of a host. */
static struct rueda_coll share_of(const struct rueda_task *task)
{
    const struct gather *self = (const struct gather *)task->state;
    const struct rueda_hier *hier = task->place->hier;
    struct rueda_coll coll = task->coll;

    for (int k = 0; k < hier->level[RUEDA_HIER_LOCAL].mesh.size; k++)
        hier->counts[k] = slice_of(task, self->host, self->shared, k).count;
    coll.send =
        rueda_local_at(buffer_of(task, self->shared), task, self->buffer_at);
    coll.recv = place_of(task, block_of(task, self->host, self->shared));
    coll.count = hier->counts[hier->index];
    coll.recv_counts = hier->counts;
    return coll;
}

/* On to the part of the next host, or to the next block. */
static void step(struct rueda_task *task)
{
    struct gather *self = (struct gather *)task->state;
    const struct rueda_hier *hier = task->place->hier;

    self->buffer_at +=
        slice_of(task, self->host, self->shared, hier->index).count;
    if (++self->host < hier->hosts)
        return;
    self->host = 0;
    self->buffer_at = 0;
    self->shared++;
}

/* ---- Levels ------------------------------------------------------------ */

/* RUEDA_OK: a stage has ended, there may be more to do. Empty stages are empty
 * on all ranks, and are skipped; so is what my own host has. */
static rueda_status progress_local(struct rueda_task *task)
{
    struct gather *self = (struct gather *)task->state;
    const struct rueda_hier *hier = task->place->hier;
    rueda_status status = RUEDA_OK;
    struct rueda_coll coll;

    if (hier->level[RUEDA_HIER_LOCAL].is_running) {
        status = rueda_hier_go_on(task, RUEDA_HIER_LOCAL);
    } else if (!self->is_begun) {
        if (hier->starts[hier->host] < hier->starts[hier->host + 1]) {
            coll = first_of(task);
            status = rueda_hier_start(task, RUEDA_HIER_LOCAL, &coll);
        }
    } else if (self->shared < self->blocks &&
               (self->shared < self->crossed || !rueda_hier_has_slice(hier))) {
        if (self->host != hier->host &&
            block_of(task, self->host, self->shared).count > 0) {
            coll = share_of(task);
            status = rueda_hier_start(task, RUEDA_HIER_LOCAL, &coll);
        }
    } else {
        return RUEDA_IN_PROGRESS;
    }
    if (status == RUEDA_OK && self->is_begun)
        step(task);
    else if (status == RUEDA_OK)
        self->is_begun = true;
    return status;
}

static rueda_status progress_cross(struct rueda_task *task)
{
    struct gather *self = (struct gather *)task->state;
    const struct rueda_hier *hier = task->place->hier;
    rueda_status status = RUEDA_OK;
    struct rueda_coll coll;

    if (hier->level[RUEDA_HIER_CROSS].is_running)
        status = rueda_hier_go_on(task, RUEDA_HIER_CROSS);
    else if (!self->is_begun || !rueda_hier_has_slice(hier) ||
             self->crossed == self->blocks ||
             self->crossed == self->shared + RUEDA_HIER_BUFFERS)
        return RUEDA_IN_PROGRESS;
    else if (cross_of(task, self->crossed, &coll) > 0)
        status = rueda_hier_start(task, RUEDA_HIER_CROSS, &coll);
    if (status == RUEDA_OK)
        self->crossed++;
    return status;
}

/* ---- The task ---------------------------------------------------------- */

rueda_status rueda_hier_gather_progress(struct rueda_task *task)
{
    const struct gather *self = (const struct gather *)task->state;
    const rueda_status status =
        rueda_hier_move(task, progress_cross, progress_local);

    if (status != RUEDA_OK)
        return status;
    return self->shared == self->blocks ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

/* A buffer holds the slices of all hosts, each of which may be longer by what
 * does not come out even, twice. */
rueda_status rueda_hier_gather_post(struct rueda_task *task)
{
    struct gather *self = (struct gather *)task->state;
    const struct rueda_hier *hier = task->place->hier;
    const size_t uneven = 2 * (size_t)hier->hosts * task->coll.elem_bytes;

    find_starts(task);
    *self = (struct gather){
        .blocks = rueda_hier_blocks(task, hier->starts[hier->hosts],
                                    hier->slice_bytes - uneven)};
    return self->blocks > 0 ? rueda_hier_gather_progress(task) : RUEDA_OK;
}
