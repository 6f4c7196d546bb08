/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allreduce between hosts of several ranks, in three stages: reduce-scatter
 * inside each host, allreduce of each slice between hosts, allgather inside
 * each host. (hier_gather.c has the allgather.) Two hosts of two ranks:
 *
 *           host 0                     host 1
 *      rank 0    rank 1           rank 2    rank 3
 *        ab        ab               ab        ab     a vector, cut in two
 *        A         B                A         B      1: sums of the host
 *        A* ======================= A*               2: of all hosts,
 *                  B* ======================= B*        a rank for each slice
 *        A*B*      A*B*             A*B*      A*B*   3: shared in the host
 *
 * Every byte leaves its host once, over as many ranks as all hosts have (the
 * carriers); ranks beyond these carry no slice, and take part in the first and
 * the last stage.
 *
 * A long vector goes through in blocks. The two levels work by themselves, each
 * on one stage of one block at a time and in an order that is the same on every
 * rank, so that the network is busy with one block while memory is with its
 * neighbours:
 *
 *      local   RS 0   RS 1   AG 0   RS 2   AG 1   RS 3   AG 2   AG 3
 *      cross          AR 0   AR 1          AR 2          AR 3
 *
 * In this order a block's last stage ends before the first one of the next but
 * one begins: two buffers hold what is between. Nothing else is written before
 * the last stage, so a rank's input stays whole until then.
 *
 * The stages are tasks of other algorithms, chosen as for any place. They share
 * the task's tag: no two ranks have both levels in common, and within a level
 * stages follow each other in one order.
 *
 * Compressed, a slice is rounded to 16 bits before the second stage and widened
 * after it, so that all ranks get the same bytes. A postscale that makes
 * numbers smaller, as an average's does, is then applied before and not after
 * the second stage, in full precision: sums that would not fit fp16 may as
 * averages.
 */
#define RUEDA_LOG_TAG "algo"

#include "algo/hier.h"

#include <stdlib.h>

#include "algo/chunk.h"
#include "algo/local.h"
#include "algo/registry.h"
#include "base/log.h"
#include "segment/slab.h"

/*
 * Even a vector that fits one block is cut in a few, so that the levels
 * overlap; but not into slices that take longer to synchronize than to
 * transfer, nor into ones whose chunks, one a host, are so short that latency
 * rules. Longer slices than these fall out of the cache between two stages.
 */
#define PARTS       8
#define SLICE_LEAST ((size_t)256 << 10)
#define SLICE_MOST  ((size_t)512 << 10)
#define CHUNK_LEAST ((size_t)32 << 10)

struct hier {
    size_t blocks;
    size_t scattered;  /* blocks that have passed stage 1, */
    size_t crossed;    /* 2 */
    size_t gathered;   /* and 3 */
    bool is_gathering; /* what the local level is running */
    bool is_in_place;  /* slices stay where they are until all are there */
};
_Static_assert(sizeof(struct hier) <= RUEDA_TASK_STATE_BYTES, "state");

/* ---- Blocks and slices ------------------------------------------------- */

size_t rueda_hier_blocks(const struct rueda_task *task, size_t count,
                         size_t most)
{
    const struct rueda_hier *hier = task->place->hier;
    const size_t elem_bytes = task->coll.elem_bytes;
    const size_t carriers = (size_t)hier->carriers;
    const size_t chunks = (size_t)hier->hosts * CHUNK_LEAST;
    size_t slice = rueda_chunk_pieces(count, carriers * PARTS) * elem_bytes;

    if (slice > SLICE_MOST)
        slice = SLICE_MOST;
    if (slice < SLICE_LEAST)
        slice = SLICE_LEAST;
    if (slice < chunks)
        slice = chunks;
    if (slice > most)
        slice = most;
    return rueda_chunk_pieces(count, carriers * (slice / elem_bytes));
}

static size_t blocks_of(const struct rueda_task *task)
{
    return rueda_hier_blocks(task, task->coll.count,
                             task->place->hier->slice_bytes);
}

static struct rueda_range block_of(const struct rueda_task *task, size_t i)
{
    const struct hier *self = (const struct hier *)task->state;

    return rueda_chunk_even(task->coll.count, (int)self->blocks, (int)i);
}

static size_t slice_of(const struct rueda_task *task, size_t i, int index)
{
    const int carriers = task->place->hier->carriers;

    if (index >= carriers)
        return 0;
    return rueda_chunk_even(block_of(task, i).count, carriers, index).count;
}

static size_t my_slice(const struct rueda_task *task, size_t i)
{
    return slice_of(task, i, task->place->hier->index);
}

/* Where my slice of block i is between stage 1 and 3. */
static char *buffer_of(const struct rueda_task *task, size_t i)
{
    const struct hier *self = (const struct hier *)task->state;
    const struct rueda_hier *hier = task->place->hier;
    const struct rueda_range block = block_of(task, i);

    if (!self->is_in_place)
        return hier->buffers[i % RUEDA_HIER_BUFFERS];
    if (!rueda_hier_has_slice(hier))
        return rueda_local_at(task->coll.recv, task, block.at);
    return rueda_local_at(
        task->coll.recv, task,
        block.at +
            rueda_chunk_even(block.count, hier->carriers, hier->index).at);
}

/* ---- Compression ------------------------------------------------------- */

static bool is_compressed(const struct rueda_task *task)
{
    return task->coll.compression != RUEDA_COMPRESS_NONE;
}

static rueda_dtype wire_dtype(const struct rueda_task *task)
{
    return task->coll.compression == RUEDA_COMPRESS_FP16 ? RUEDA_FLOAT16
                                                         : RUEDA_BFLOAT16;
}

/* What of the postscale belongs before numbers are rounded to travel. */
static double early_scale(const struct rueda_task *task)
{
    const double scale = task->coll.arith.postscale;

    return is_compressed(task) && scale > -1.0 && scale < 1.0 ? scale : 1.0;
}

static void compress(struct rueda_task *task, size_t i)
{
    rueda_device_convert(task->place->device, &task->work, wire_dtype(task),
                         task->place->hier->wire, task->coll.arith.dtype,
                         buffer_of(task, i), my_slice(task, i));
}

static void expand(struct rueda_task *task, size_t i)
{
    const struct rueda_arith *arith = &task->coll.arith;
    const size_t count = my_slice(task, i);
    char *buffer = buffer_of(task, i);

    rueda_device_convert(task->place->device, &task->work, arith->dtype, buffer,
                         wire_dtype(task), task->place->hier->wire, count);
    if (early_scale(task) == 1.0 && arith->postscale != 1.0)
        rueda_device_scale(task->place->device, &task->work, arith->dtype,
                           buffer, buffer, count, arith->postscale);
}

/* ---- Stages ------------------------------------------------------------ */

static void list_slices(const struct rueda_task *task, size_t i)
{
    struct rueda_hier *hier = task->place->hier;

    for (int k = 0; k < hier->level[RUEDA_HIER_LOCAL].mesh.size; k++)
        hier->counts[k] = slice_of(task, i, k);
}

static struct rueda_coll scatter_of(const struct rueda_task *task, size_t i)
{
    const struct hier *self = (const struct hier *)task->state;
    struct rueda_coll coll = task->coll;

    list_slices(task, i);
    coll.kind = RUEDA_REDUCE_SCATTER;
    if (!self->is_in_place)
        coll.part_count = 0;
    coll.parts_from = block_of(task, i).at * coll.elem_bytes;
    coll.compression = RUEDA_COMPRESS_NONE;
    coll.arith.postscale = early_scale(task);
    coll.send = rueda_local_const_at(coll.send, task, block_of(task, i).at);
    coll.recv = buffer_of(task, i);
    coll.count = my_slice(task, i);
    coll.recv_counts = task->place->hier->counts;
    return coll;
}

static struct rueda_coll gather_of(const struct rueda_task *task, size_t i)
{
    struct rueda_coll coll = task->coll;

    list_slices(task, i);
    coll.kind = RUEDA_ALLGATHER;
    coll.part_count = 0;
    coll.compression = RUEDA_COMPRESS_NONE;
    coll.send = buffer_of(task, i);
    coll.recv = rueda_local_at(coll.recv, task, block_of(task, i).at);
    coll.count = my_slice(task, i);
    coll.recv_counts = task->place->hier->counts;
    return coll;
}

static struct rueda_coll cross_of(const struct rueda_task *task, size_t i)
{
    struct rueda_coll coll = task->coll;

    coll.part_count = 0;
    coll.compression = RUEDA_COMPRESS_NONE;
    coll.arith.prescale = 1.0;
    coll.recv = buffer_of(task, i);
    coll.count = my_slice(task, i);
    if (is_compressed(task)) {
        coll.arith.dtype = wire_dtype(task);
        coll.arith.postscale = 1.0;
        coll.elem_bytes = rueda_dtype_size(coll.arith.dtype);
        coll.recv = task->place->hier->wire;
    }
    coll.send = coll.recv;
    return coll;
}

/* ---- In place ---------------------------------------------------------- */

/*
 * Where there is a place for a vector in parts in memory that the ranks of my
 * host share, the first stage takes parts from where they are, a slice stays in
 * that place from then on, and the third stage is one for all blocks: each rank
 * takes parts to their final places. That saves two copies, from the place to
 * buffers and back. Hosts need not do it alike.
 */
static bool may_stay_in_place(const struct rueda_task *task)
{
    const struct rueda_hier *hier = task->place->hier;
    const struct rueda_place *local = &hier->level[RUEDA_HIER_LOCAL].place;
    const struct rueda_coll *coll = &task->coll;
    struct rueda_coll scatter;

    if (coll->part_count == 0 || local->slab == NULL ||
        !rueda_segment_holds(local->slab->segment, coll->recv,
                             coll->count * coll->elem_bytes))
        return false;
    scatter = scatter_of(task, 0);
    return rueda_select_choose(hier->select, local, &scatter) ==
           &rueda_algo_direct;
}

/* The part of a vector that is in this slice, bytes from begin to end. */
static struct rueda_part cut_off(const struct rueda_part *part, size_t done,
                                 size_t end, int from)
{
    const size_t at = part->at + done;
    const size_t left = part->bytes - done;

    return (struct rueda_part){
        .recv = part->recv != NULL ? (char *)part->recv + done : NULL,
        .at = at,
        .bytes = left < end - at ? left : end - at,
        .from = from,
    };
}

/* The parts, cut where slices end: which rank has which. As many as there are,
 * which are no more than parts and slices together. */
static int list_parts(const struct rueda_task *task, struct rueda_part *out)
{
    const struct hier *self = (const struct hier *)task->state;
    const struct rueda_part *part = task->coll.parts;
    const struct rueda_part *last = part + task->coll.part_count;
    size_t done = 0;
    size_t end = 0;
    int count = 0;

    for (size_t i = 0; i < self->blocks; i++) {
        for (int k = 0; k < task->place->hier->carriers; k++) {
            end += slice_of(task, i, k) * task->coll.elem_bytes;
            while (part < last && part->at + done < end) {
                out[count] = cut_off(part, done, end, k);
                done += out[count++].bytes;
                if (done < part->bytes)
                    break;
                part++;
                done = 0;
            }
        }
    }
    return count;
}

static rueda_status gather_parts_of(const struct rueda_task *task,
                                    struct rueda_coll *out)
{
    const struct hier *self = (const struct hier *)task->state;
    struct rueda_hier *hier = task->place->hier;
    const size_t most =
        (size_t)task->coll.part_count + self->blocks * (size_t)hier->carriers;

    if (hier->part_room < most) {
        struct rueda_part *parts = realloc(hier->parts, most * sizeof(*parts));

        if (parts == NULL)
            return RUEDA_ERR_NOMEM;
        hier->parts = parts;
        hier->part_room = most;
    }
    *out = task->coll;
    out->kind = RUEDA_ALLGATHER;
    out->compression = RUEDA_COMPRESS_NONE;
    out->parts = hier->parts;
    out->part_count = list_parts(task, hier->parts);
    return RUEDA_OK;
}

/* ---- Levels ------------------------------------------------------------ */

/* See how a level's task stands, having called one of its functions. */
static rueda_status see_end(struct rueda_task *task,
                            struct rueda_hier_level *level,
                            rueda_status (*go)(struct rueda_task *task))
{
    const uint64_t moves = level->task.moves;
    const rueda_status status = go(&level->task);

    task->moves += level->task.moves - moves;
    if (status != RUEDA_OK)
        return status;
    task->moves++;
    level->is_running = false;
    if (level->task.algo->finish != NULL)
        level->task.algo->finish(&level->task);
    return RUEDA_OK;
}

static rueda_status start(struct rueda_task *task,
                          struct rueda_hier_level *level,
                          const struct rueda_coll *coll)
{
    /* The allgather has a state of its own. */
    const bool is_in_place = task->coll.kind == RUEDA_ALLREDUCE &&
                             ((const struct hier *)task->state)->is_in_place;
    struct rueda_task *sub = &level->task;

    sub->place = &level->place;
    sub->coll = *coll;
    sub->tag = task->tag;
    sub->moves = 0;
    sub->algo =
        rueda_select_choose(task->place->hier->select, sub->place, &sub->coll);
    if (is_in_place && sub->place->slab != NULL)
        sub->algo = &rueda_algo_direct;
    log_trace("hier: %s of %zu bytes between %d ranks runs as %s",
              rueda_kind_str(sub->coll.kind),
              sub->coll.count * sub->coll.elem_bytes, sub->place->mesh->size,
              sub->algo->name);
    level->is_running = true;
    return see_end(task, level, rueda_task_post);
}

static bool may_scatter(const struct rueda_task *task)
{
    const struct hier *self = (const struct hier *)task->state;

    return self->scattered < self->blocks &&
           (self->is_in_place ||
            self->scattered < self->gathered + RUEDA_HIER_BUFFERS);
}

/* A rank without a slice learns from the others when a block may
 * be gathered. */
static bool may_gather(const struct rueda_task *task)
{
    const struct hier *self = (const struct hier *)task->state;
    const bool has_slice = rueda_hier_has_slice(task->place->hier);

    if (self->gathered == self->blocks)
        return false;
    if (!self->is_in_place)
        return self->gathered < self->crossed || !has_slice;
    return self->scattered == self->blocks &&
           (self->crossed == self->blocks || !has_slice);
}

static rueda_status start_gather(struct rueda_task *task,
                                 struct rueda_hier_level *level)
{
    const struct hier *self = (const struct hier *)task->state;
    rueda_status status = RUEDA_OK;
    struct rueda_coll coll;

    if (self->is_in_place)
        status = gather_parts_of(task, &coll);
    else
        coll = gather_of(task, self->gathered);
    return status == RUEDA_OK ? start(task, level, &coll) : status;
}

static void end_gather(struct rueda_task *task)
{
    struct hier *self = (struct hier *)task->state;

    self->gathered = self->is_in_place ? self->blocks : self->gathered + 1;
    if (self->is_in_place)
        task->coll.part_count = 0;
}

/*
 * RUEDA_OK: a stage has ended, there may be more to do. Two blocks are
 * scattered before the first is gathered, and then one for each; in place all
 * of them are before all are gathered.
 */
static rueda_status progress_local(struct rueda_task *task)
{
    struct hier *self = (struct hier *)task->state;
    struct rueda_hier_level *level =
        &task->place->hier->level[RUEDA_HIER_LOCAL];
    rueda_status status;

    if (level->is_running) {
        status = see_end(task, level, rueda_task_progress);
    } else if (may_scatter(task)) {
        const struct rueda_coll coll = scatter_of(task, self->scattered);

        self->is_gathering = false;
        status = start(task, level, &coll);
    } else if (may_gather(task)) {
        self->is_gathering = true;
        status = start_gather(task, level);
    } else {
        return RUEDA_IN_PROGRESS;
    }
    if (status == RUEDA_OK && self->is_gathering)
        end_gather(task);
    else if (status == RUEDA_OK)
        self->scattered++;
    return status;
}

static rueda_status progress_cross(struct rueda_task *task)
{
    struct hier *self = (struct hier *)task->state;
    struct rueda_hier *hier = task->place->hier;
    struct rueda_hier_level *level = &hier->level[RUEDA_HIER_CROSS];
    rueda_status status;

    if (level->is_running) {
        status = see_end(task, level, rueda_task_progress);
    } else if (rueda_hier_has_slice(hier) && self->crossed < self->scattered) {
        const struct rueda_coll coll = cross_of(task, self->crossed);

        if (is_compressed(task))
            compress(task, self->crossed);
        status = start(task, level, &coll);
    } else {
        return RUEDA_IN_PROGRESS;
    }
    if (status == RUEDA_OK && is_compressed(task))
        expand(task, self->crossed);
    if (status == RUEDA_OK)
        self->crossed++;
    return status;
}

rueda_status rueda_hier_start(struct rueda_task *task, int level,
                              const struct rueda_coll *coll)
{
    return start(task, &task->place->hier->level[level], coll);
}

rueda_status rueda_hier_go_on(struct rueda_task *task, int level)
{
    struct rueda_hier_level *self = &task->place->hier->level[level];

    return see_end(task, self, rueda_task_progress);
}

rueda_status rueda_hier_move(struct rueda_task *task, rueda_hier_step *cross,
                             rueda_hier_step *local)
{
    rueda_status by_cross;
    rueda_status by_local;

    do {
        by_cross = cross(task);
        if (by_cross < 0)
            return by_cross;
        by_local = local(task);
        if (by_local < 0)
            return by_local;
    } while (by_cross == RUEDA_OK || by_local == RUEDA_OK);
    return RUEDA_OK;
}

/* ---- The task ---------------------------------------------------------- */

static rueda_status hier_progress(struct rueda_task *task)
{
    const struct hier *self = (const struct hier *)task->state;
    rueda_status status;

    if (task->coll.kind == RUEDA_ALLGATHER)
        return rueda_hier_gather_progress(task);
    status = rueda_hier_move(task, progress_cross, progress_local);
    if (status != RUEDA_OK)
        return status;
    return self->gathered == self->blocks ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

static bool hier_takes_parts(const struct rueda_place *place,
                             const struct rueda_coll *coll)
{
    struct rueda_task task;
    struct hier *self = (struct hier *)task.state;

    if (coll->kind != RUEDA_ALLREDUCE)
        return false;
    task.place = (struct rueda_place *)place;
    task.coll = *coll;
    *self = (struct hier){.blocks = blocks_of(&task)};
    return may_stay_in_place(&task);
}

static rueda_status hier_post(struct rueda_task *task)
{
    struct hier *self = (struct hier *)task->state;

    if (task->coll.kind == RUEDA_ALLGATHER)
        return rueda_hier_gather_post(task);
    *self = (struct hier){.blocks = blocks_of(task)};
    self->is_in_place = may_stay_in_place(task);
    return hier_progress(task);
}

/* After a failure tasks of both levels may be in flight. */
static void hier_finish(struct rueda_task *task)
{
    for (int i = 0; i < RUEDA_HIER_LEVELS; i++) {
        struct rueda_hier_level *level = &task->place->hier->level[i];

        if (level->is_running && level->task.algo->finish != NULL)
            level->task.algo->finish(&level->task);
        level->is_running = false;
    }
}

const struct rueda_algo rueda_algo_hier = {
    .name = "hier",
    .about = "inside each host, slices of that between hosts, side by side",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_ALLGATHER,
    .memory = RUEDA_MEMKIND_HOST,
    .needs_hier = true,
    .takes_parts = hier_takes_parts,
    .post = hier_post,
    .progress = hier_progress,
    .finish = hier_finish,
};
