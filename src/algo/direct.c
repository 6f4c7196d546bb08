/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct exchange between ranks that share memory.
 *
 * Data pass in blocks through the slab (segment/slab.h), small enough to stay
 * in cache: packing a block is publishing it. In an allreduce of n ranks a
 * block is cut into n slices. Rank r publishes the slices of the others in a
 * tray of its own, adds slice r of all trays straight into its result, puts the
 * sum back into the trays of the others, and fetches theirs from its own tray:
 *
 *      tray of rank 0   |   .   |   1   |   2   |
 *      tray of rank 1   |   0   |   .   |   2   |
 *      tray of rank 2   |   0   |   1   |   .   |
 *
 * that is, rank r fills row r, adds up column r, writes the sum all over it,
 * and reads row r at the end. So a cache line goes to and fro between two
 * cores, near or far, and each of them finds it at hand when it writes it,
 * since it has just read it.
 *
 * Numbers are added in the order of ranks, whichever rank adds them. Each rank
 * reads its input once, writes its result once, and everything between stays in
 * cache.
 *
 * Cores are not equally fast, nor always there, and of many ranks one is slow.
 * With many ranks they therefore take slices from a pile as they come; a rank
 * then publishes and fetches the whole block, since it does not know which
 * slice will be its own.
 *
 * In turn t a rank publishes block t, reduces block t-1 and fetches block t-2,
 * so that it rarely waits. When it publishes a block it has fetched all but the
 * two before it: hence three trays are enough. No rank touches a tray after its
 * owner has fetched from it.
 *
 * Other operations use rings: a member writes its own and reads the others'. A
 * rank that has posted a block has fetched every cell that lies more than
 * 2 * RUEDA_BLOCK_CELLS behind: from that follows when a cell may be written
 * again. The turns of the next operation follow those of the last.
 *
 * Two ranks, and any number while the vector is small, need one round: each
 * publishes its whole vector in its ring, and each adds all of them. It moves
 * as much between two ranks as the other way, and waits half as often. A few
 * bytes travel in the line that says that they are there. Buffers that lie in
 * the segment (rueda_alloc) are not published at all: a notice says where they
 * are.
 */
#include "algo/direct.h"

#include <string.h>

#include "base/seldom.h"
#include "os/clock.h"

_Static_assert(sizeof(struct rueda_direct) <= RUEDA_TASK_STATE_BYTES,
               "the state of a task is too small");

/* A vector is small while the time to fetch it whole from every other rank is
 * below that of a second round of waiting. */
#define SMALL_BYTES     ((size_t)16 << 10)
#define SMALL_BYTES_OF2 ((size_t)4 << 20)

/* From here on it is worth asking whether all buffers are shared. */
#define NOTICE_BYTES ((size_t)32 << 10)

/* Two blocks overlap better than one, unless they become too short. */
#define SPLIT_BYTES ((size_t)64 << 10)

/* From this many ranks on, ranks take slices as they come: the extra slice to
 * publish and fetch costs less than waiting for the slowest rank. Slices must
 * be long compared with the cost of taking one. */
#define MANY_RANKS       8
#define MANY_SLICE_BYTES ((size_t)4 << 10)

/* Shorter blocks are waited for rather than copied: they stay in cache. So does
 * what lies in trays. */
#define STREAM_BYTES ((size_t)16 << 10)

static size_t small_bytes(int size)
{
    return size <= 2 ? SMALL_BYTES_OF2 : SMALL_BYTES / (size_t)(size - 1);
}

static struct rueda_direct *direct_of(struct rueda_task *task)
{
    return (struct rueda_direct *)task->state;
}

/* ---- A few bytes ------------------------------------------------------ */

RUEDA_SELDOM static void finish_tiny(const struct rueda_direct *direct)
{
    const struct rueda_coll *coll = direct->coll;
    const struct rueda_slab *slab = direct->slab;
    const void *sources[RUEDA_SEGMENT_MAX];

    if (coll->kind == RUEDA_BROADCAST && coll->count > 0 &&
        (coll->root != slab->rank || coll->recv != coll->send))
        memcpy(coll->recv, rueda_slab_tiny(slab, coll->root),
               coll->count * coll->elem_bytes);
    if (coll->kind != RUEDA_ALLREDUCE || coll->count == 0)
        return;
    for (int i = 0; i < slab->size; i++)
        sources[i] = rueda_slab_tiny(slab, i);
    rueda_host_reduce(direct->kernels, &coll->arith, coll->recv, sources,
                      slab->size, coll->count);
}

static rueda_status progress_tiny(struct rueda_direct *direct)
{
    if (!rueda_slab_all_tiny(direct->slab, direct->first))
        return RUEDA_IN_PROGRESS;
    finish_tiny(direct);
    return RUEDA_OK;
}

static rueda_status start_tiny(struct rueda_direct *direct)
{
    const struct rueda_coll *coll = direct->coll;

    direct->mode = RUEDA_DIRECT_TINY;
    direct->slab->next = direct->first + 1;
    rueda_slab_post_tiny(direct->slab, direct->first, coll->send,
                         coll->count * coll->elem_bytes);
    return progress_tiny(direct);
}

/* ---- Blocks ----------------------------------------------------------- */

/*
 * Do one step with block i, and see how long it takes if it is a trial of ways
 * to write. If only the root writes, no rank sees both sides; in an alltoall no
 * rank knows how much is in a block.
 */
static void act(struct rueda_direct *direct, uint64_t i,
                void (*step)(const struct rueda_direct *direct, uint64_t i))
{
    struct rueda_trial *trial = &direct->slab->trial;
    uint64_t block = direct->before + i;
    int64_t began;

    if (!direct->is_tried || !rueda_trial_is_on(block) ||
        direct->shape->is_from_root || direct->shape->needs_notice) {
        step(direct, i);
        return;
    }
    if (step == direct->shape->publish)
        rueda_trial_begin(trial, block,
                          rueda_part(direct->shape->bytes(direct),
                                     rueda_direct_begin(direct, i),
                                     direct->block_bytes));
    began = rueda_clock_ns();
    step(direct, i);
    rueda_trial_spend(trial, block, rueda_clock_ns() - began);
    if (step == direct->shape->fetch)
        rueda_trial_end(trial, block);
}

/* Have all ranks fetched what was in these cells the last time round? My trays
 * are mine once I have fetched. */
static bool may_write(struct rueda_direct *direct, uint64_t block)
{
    const uint64_t behind = RUEDA_CELLS - 2 * RUEDA_BLOCK_CELLS;
    uint64_t end = block + direct->cells;

    return direct->shape->has_trays || direct->is_lent || end < behind ||
           rueda_slab_all_posted(direct->slab, end - behind);
}

static bool publish_step(struct rueda_direct *direct)
{
    const struct rueda_shape *shape = direct->shape;
    uint64_t block = rueda_direct_block(direct, direct->turn);

    if (direct->turn >= direct->blocks)
        return true;
    if (!may_write(direct, block))
        return false;
    if (!shape->is_from_root || direct->coll->root == direct->slab->rank)
        act(direct, direct->turn, shape->publish);
    rueda_slab_post(direct->slab, block);
    return true;
}

static bool reduce_step(struct rueda_direct *direct)
{
    uint64_t i = direct->turn - 1;
    uint64_t block = rueda_direct_block(direct, i);

    if (direct->shape->reduce == NULL || direct->turn < 1 ||
        i >= direct->blocks)
        return true;
    if (!rueda_slab_all_posted(direct->slab, block))
        return false;
    act(direct, i, direct->shape->reduce);
    if (!direct->shape->has_piles)
        rueda_slab_post_reduced(direct->slab, block);
    return true;
}

static bool is_complete(struct rueda_direct *direct, uint64_t i)
{
    uint64_t block = rueda_direct_block(direct, i);

    if (direct->shape->has_piles)
        return rueda_slab_did_all_slices(direct->slab, direct->pile + i);
    if (direct->shape->is_from_root)
        return rueda_slab_has_posted(direct->slab, direct->coll->root, block);
    if (direct->shape->reduce != NULL)
        return rueda_slab_all_reduced(direct->slab, block);
    return rueda_slab_all_posted(direct->slab, block);
}

static bool fetch_step(struct rueda_direct *direct)
{
    uint64_t i = direct->turn - 2;

    if (direct->turn < 2 || i >= direct->blocks)
        return true;
    if (!is_complete(direct, i))
        return false;
    act(direct, i, direct->shape->fetch);
    return true;
}

/* False: the step waits for another rank. */
static bool take_step(struct rueda_direct *direct)
{
    switch (direct->step) {
    case RUEDA_DIRECT_PUBLISH:
        if (!publish_step(direct))
            return false;
        direct->step = RUEDA_DIRECT_REDUCE;
        return true;
    case RUEDA_DIRECT_REDUCE:
        if (!reduce_step(direct))
            return false;
        direct->step = RUEDA_DIRECT_FETCH;
        return true;
    default:
        if (!fetch_step(direct))
            return false;
        direct->step = RUEDA_DIRECT_PUBLISH;
        direct->turn++;
        return true;
    }
}

static rueda_status progress_blocks(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);

    while (direct->turn < direct->blocks + 2) {
        if (!take_step(direct))
            return RUEDA_IN_PROGRESS;
        task->moves++;
    }
    if (direct->shape->has_parts)
        task->coll.part_count = 0;
    if (direct->is_lent)
        rueda_slab_lend(direct->slab,
                        rueda_direct_block(direct, direct->blocks - 1));
    return RUEDA_OK;
}

static rueda_status start_blocks(struct rueda_task *task, uint64_t blocks)
{
    struct rueda_direct *direct = direct_of(task);

    direct->mode = RUEDA_DIRECT_BLOCKS;
    direct->blocks = blocks;
    direct->is_tried =
        !direct->shape->has_trays && direct->block_bytes >= STREAM_BYTES;
    direct->before = direct->slab->trial.blocks;
    if (direct->is_tried)
        direct->slab->trial.blocks += blocks;
    direct->pile = direct->slab->piles_used;
    if (direct->shape->has_piles)
        direct->slab->piles_used += blocks;
    direct->slab->next = rueda_direct_block(direct, blocks);
    return progress_blocks(task);
}

/* ---- Notices ---------------------------------------------------------- */

/* The bytes that I send, for others to read where they are. */
static size_t sent_bytes(const struct rueda_direct *direct)
{
    const struct rueda_coll *coll = direct->coll;
    size_t count = coll->count;

    if (coll->kind == RUEDA_ALLTOALL || coll->kind == RUEDA_REDUCE_SCATTER)
        count = rueda_chunk_total(coll->recv_counts, count, direct->slab->size);
    return count * coll->elem_bytes;
}

/* Can others reach my buffers? An allreduce writes to all of them; the places
 * of uneven pieces are known to their owners alone. */
static bool is_shared(const struct rueda_direct *direct)
{
    const struct rueda_segment *segment = direct->slab->segment;
    const struct rueda_coll *coll = direct->coll;
    size_t bytes = sent_bytes(direct);

    return rueda_segment_holds(segment, coll->send, bytes) &&
           (coll->kind != RUEDA_ALLREDUCE ||
            rueda_segment_holds(segment, coll->recv, bytes)) &&
           (coll->kind != RUEDA_ALLTOALL || coll->send_counts == NULL);
}

/* Is there no other way? */
static bool must_share(const struct rueda_direct *direct)
{
    return direct->coll->kind == RUEDA_ALLGATHER &&
           direct->coll->part_count > 0;
}

static void show_notice(struct rueda_direct *direct, bool may_share)
{
    const struct rueda_segment *segment = direct->slab->segment;
    struct rueda_notice notice = {.blocks = direct->blocks,
                                  .is_shared = may_share};

    if (may_share) {
        notice.send_offset = rueda_segment_offset(segment, direct->coll->send);
        notice.recv_offset = rueda_segment_offset(segment, direct->coll->recv);
    }
    rueda_slab_post_notice(direct->slab, direct->first, &notice);
}

static rueda_status progress_last(struct rueda_direct *direct)
{
    return rueda_slab_all_posted(direct->slab, direct->first)
               ? RUEDA_OK
               : RUEDA_IN_PROGRESS;
}

/* No rank touches its buffers, or shows its next notice, before all
 * are done. */
static rueda_status end_shared(struct rueda_direct *direct)
{
    direct->slab->next = direct->first + 1;
    rueda_slab_post(direct->slab, direct->first);
    direct->mode = RUEDA_DIRECT_LAST;
    return progress_last(direct);
}

/* ---- Parts ------------------------------------------------------------- */

/* The result is complete and will be delivered even if a peer dies now. Others
 * may still read my buffer; the next writer waits for that. */
static rueda_status end_parts(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);

    task->coll.part_count = 0;
    direct->slab->next = direct->first + 1;
    rueda_slab_lend(direct->slab, direct->first);
    return RUEDA_OK;
}

static rueda_status progress_slices(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);

    if (!rueda_slab_all_reduced(direct->slab, direct->first))
        return RUEDA_IN_PROGRESS;
    task->moves++;
    rueda_direct_fetch_parts(direct);
    return end_parts(task);
}

/* The buffers of all hold what is to be added, or taken. */
static rueda_status start_parts(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);

    if (task->coll.kind == RUEDA_ALLGATHER) {
        rueda_direct_gather_parts(direct);
        return end_parts(task);
    }
    rueda_direct_add_slice(direct);
    direct->mode = RUEDA_DIRECT_SLICES;
    rueda_slab_post_reduced(direct->slab, direct->first);
    return progress_slices(task);
}

/* ---- Shared buffers ---------------------------------------------------- */

static rueda_status start_notice(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);
    bool may_share = is_shared(direct);

    direct->mode = RUEDA_DIRECT_LENT;
    if (!rueda_slab_is_back(direct->slab))
        return RUEDA_IN_PROGRESS; /* another rank may still read my last notice
                                   */
    task->moves++;
    if (must_share(direct) && !may_share)
        return RUEDA_ERR_INVALID;
    if (direct->is_lent) {
        /* A rank that has posted a block has shown its notice before. */
        show_notice(direct, true);
        return start_blocks(task, direct->blocks);
    }
    direct->mode = RUEDA_DIRECT_NOTICE;
    if (direct->shape->is_from_root) {
        /* Root alone decides, and shows a notice only if it shares. */
        if (direct->coll->root != direct->slab->rank)
            return RUEDA_IN_PROGRESS;
        if (!may_share)
            return start_blocks(task, direct->blocks);
        show_notice(direct, true);
        direct->shape->share(direct);
        return end_shared(direct);
    }
    show_notice(direct, may_share);
    /* A rank with private memory already knows that buffers are not shared. */
    if (!may_share && !direct->shape->needs_notice)
        return start_blocks(task, direct->blocks);
    return RUEDA_IN_PROGRESS;
}

/* Root has posted either its notice or its first block. If it had shared, it
 * would not have gone on to another notice without me. */
static rueda_status hear_root(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);
    int root = direct->coll->root;

    if (!rueda_slab_has_posted(direct->slab, root, direct->first))
        return RUEDA_IN_PROGRESS;
    task->moves++;
    if (!rueda_slab_has_notice(direct->slab, root, direct->first))
        return start_blocks(task, direct->blocks);
    direct->shape->share(direct);
    return end_shared(direct);
}

static rueda_status progress_notice(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);
    const struct rueda_slab *slab = direct->slab;
    bool all_share = true;
    uint64_t blocks = 0;

    if (direct->shape->is_from_root)
        return hear_root(task);
    if (!rueda_slab_all_noticed(slab, direct->first))
        return RUEDA_IN_PROGRESS;
    task->moves++;
    for (int i = 0; i < slab->size; i++) {
        const struct rueda_notice *notice = &slab->lines[i].notice;

        all_share = all_share && notice->is_shared;
        if (notice->blocks > blocks)
            blocks = notice->blocks;
    }
    if (!all_share && blocks > 0)
        return start_blocks(task, blocks);
    if (all_share && task->coll.part_count > 0)
        return start_parts(task);
    if (all_share)
        direct->shape->share(direct);
    return end_shared(direct);
}

/* ---- The algorithm ---------------------------------------------------- */

/* Does all of it stay in my ring to the end? */
static bool fits_ring(const struct rueda_slab *slab,
                      const struct rueda_coll *coll)
{
    return coll->count * coll->elem_bytes <=
           (RUEDA_CELLS - 2 * RUEDA_BLOCK_CELLS) * slab->cell_bytes;
}

/* Between two ranks, where each adds everything, if all that is published
 * stays where it is to the end: then all can be undone. */
static bool direct_takes_parts(const struct rueda_place *place,
                               const struct rueda_coll *coll)
{
    const struct rueda_slab *slab = place->slab;
    const size_t bytes = coll->count * coll->elem_bytes;

    return slab->size == 2 && bytes > RUEDA_TINY_BYTES &&
           (fits_ring(slab, coll) ||
            rueda_segment_holds(slab->segment, coll->send, bytes));
}

static const struct rueda_shape *
allreduce_shape(const struct rueda_place *place, const struct rueda_coll *coll)
{
    const struct rueda_slab *slab = place->slab;
    const size_t bytes = coll->count * coll->elem_bytes;
    const size_t size = (size_t)slab->size;
    const size_t most = RUEDA_BLOCK_CELLS * slab->cell_bytes;
    const size_t block = bytes / 2 < most ? bytes / 2 : most;

    if (coll->part_count > 0 && direct_takes_parts(place, coll))
        return &rueda_shape_allreduce_parts;
    if (bytes <= small_bytes(slab->size))
        return &rueda_shape_allreduce_small;
    return size >= MANY_RANKS && block / size >= MANY_SLICE_BYTES
               ? &rueda_shape_allreduce_many
               : &rueda_shape_allreduce;
}

static const struct rueda_shape *shape_of(const struct rueda_place *place,
                                          const struct rueda_coll *coll)
{
    switch (coll->kind) {
    case RUEDA_ALLREDUCE:
        return allreduce_shape(place, coll);
    case RUEDA_REDUCE_SCATTER:
        return coll->part_count > 0 ? &rueda_shape_scatter_parts
                                    : &rueda_shape_reduce_scatter;
    case RUEDA_ALLGATHER:
        return &rueda_shape_allgather;
    case RUEDA_ALLTOALL:
        return &rueda_shape_alltoall;
    default:
        return &rueda_shape_broadcast;
    }
}

/* Cut the operation into blocks of some cells: a block holds half of it if that
 * is long enough, a whole number of cells, and a power of two of them. */
static void cut(struct rueda_direct *direct)
{
    struct rueda_slab *slab = direct->slab;
    size_t bytes = direct->shape->bytes(direct);

    if (bytes > SPLIT_BYTES && bytes / 2 < SPLIT_BYTES)
        bytes = SPLIT_BYTES;
    else if (bytes > SPLIT_BYTES)
        bytes = bytes / 2;
    direct->cells = 1;
    while (direct->cells < RUEDA_BLOCK_CELLS &&
           direct->cells * slab->cell_bytes < bytes)
        direct->cells *= 2;
    direct->first = (slab->next + direct->cells - 1) & ~(direct->cells - 1);
    direct->block_bytes = direct->cells * slab->cell_bytes;
    /* A part of a block for each member, whole cache lines. */
    direct->chunk_bytes = direct->block_bytes / (size_t)slab->size &
                          ~((size_t)RUEDA_CACHE_LINE - 1);
}

static bool is_tiny(const struct rueda_coll *coll)
{
    return (coll->kind == RUEDA_ALLREDUCE || coll->kind == RUEDA_BROADCAST ||
            coll->kind == RUEDA_BARRIER) &&
           coll->count * coll->elem_bytes <= RUEDA_TINY_BYTES;
}

static rueda_status direct_post(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);
    const struct rueda_coll *coll = &task->coll;

    memset(direct, 0, sizeof(*direct));
    direct->slab = task->place->slab;
    direct->coll = coll;
    direct->kernels = rueda_host_of(task->place->device);
    direct->first = direct->slab->next;
    if (is_tiny(coll))
        return start_tiny(direct);
    direct->shape = shape_of(task->place, coll);
    cut(direct);
    direct->blocks = direct->shape->blocks(direct);
    direct->is_lent =
        direct->shape->has_parts && !fits_ring(direct->slab, coll);
    if (direct->shape->needs_notice || must_share(direct) || direct->is_lent ||
        (direct->shape->share != NULL && direct->blocks > 0 &&
         direct->shape->bytes(direct) > NOTICE_BYTES))
        return start_notice(task);
    return start_blocks(task, direct->blocks);
}

RUEDA_SELDOM static rueda_status progress_others(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);

    switch (direct->mode) {
    case RUEDA_DIRECT_LENT:
        return start_notice(task);
    case RUEDA_DIRECT_NOTICE:
        return progress_notice(task);
    case RUEDA_DIRECT_BLOCKS:
        return progress_blocks(task);
    case RUEDA_DIRECT_SLICES:
        return progress_slices(task);
    default:
        return progress_last(direct);
    }
}

static rueda_status direct_progress(struct rueda_task *task)
{
    struct rueda_direct *direct = direct_of(task);

    return direct->mode == RUEDA_DIRECT_TINY ? progress_tiny(direct)
                                             : progress_others(task);
}

/* In turn t block t-2 is fetched, as the last step. */
static void direct_finish(struct rueda_task *task)
{
    const struct rueda_direct *direct = direct_of(task);

    if (direct->shape != NULL && direct->shape->has_parts &&
        task->coll.part_count > 0 && direct->turn > 2)
        rueda_direct_restore_parts(direct, direct->turn - 2);
}

const struct rueda_algo rueda_algo_direct = {
    .name = "direct",
    .about = "blocks through shared memory, each rank adds its slice",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_ALLGATHER |
             1u << RUEDA_BROADCAST | 1u << RUEDA_ALLTOALL |
             1u << RUEDA_REDUCE_SCATTER | 1u << RUEDA_BARRIER,
    .memory = RUEDA_MEMKIND_HOST,
    .needs_slab = true,
    .takes_parts = direct_takes_parts,
    .post = direct_post,
    .progress = direct_progress,
    .finish = direct_finish,
};
