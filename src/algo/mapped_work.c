/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank gives its device to do, once it knows where all buffers are. */
#include "algo/chunk.h"
#include "algo/mapped_state.h"

/* The least that is worth a kernel on another rank, in bytes. */
#define SLICE_LEAST ((size_t)256 << 10)

/* Slices begin at multiples of this, so that vector loads are possible. */
#define LINE ((size_t)128)

size_t rueda_mapped_bytes(const struct rueda_task *task, int member)
{
    const struct rueda_coll *coll = &task->coll;
    const int size = task->place->mesh->size;
    size_t count = coll->count;

    if (coll->kind == RUEDA_REDUCE_SCATTER)
        count = rueda_chunk_total(coll->recv_counts, coll->count, size);
    else if (coll->kind == RUEDA_ALLGATHER)
        count =
            rueda_chunk_listed(coll->recv_counts, coll->count, member).count;
    return count * coll->elem_bytes;
}

static const struct rueda_mapped_notice *
notice_of(struct rueda_task *task, const struct rueda_mapped *kept, int member)
{
    return rueda_mapped_notice_of(kept, rueda_mapped_task_of(task)->stride,
                                  member);
}

/* A member's buffer; `mine` if that is me. */
static void *at(const struct rueda_mapped *kept, int member,
                const struct rueda_mapped_buffer *buffer, size_t bytes,
                const void *mine)
{
    return member == kept->table.me
               ? (void *)mine
               : rueda_mapped_at(&kept->table, member, buffer, bytes);
}

/* ---- Whole vectors ---------------------------------------------------- */

/* Where the inputs (and results) of all are, from an element on. */
static bool find_all(struct rueda_task *task, struct rueda_mapped *kept,
                     size_t from)
{
    const struct rueda_coll *coll = &task->coll;
    const size_t skip = from * coll->elem_bytes;

    for (int i = 0; i < kept->table.size; i++) {
        const struct rueda_mapped_part *whole =
            &notice_of(task, kept, i)->whole;
        const size_t bytes = rueda_mapped_bytes(task, i);
        const char *src = at(kept, i, &whole->send, bytes, coll->send);
        char *dst = coll->recv;

        if (coll->kind == RUEDA_ALLREDUCE)
            dst = at(kept, i, &whole->recv, bytes, coll->recv);
        if (src == NULL || dst == NULL)
            return false;
        kept->src[i] = src + skip;
        kept->dst[i] = dst + skip;
    }
    return true;
}

static struct rueda_range slice_of(struct rueda_task *task, int member)
{
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_range all = {0, coll->count};
    const struct rueda_range none = {0, 0};
    const size_t size = (size_t)task->place->mesh->size;
    const int server = rueda_mapped_task_of(task)->server;
    size_t bytes = (coll->count * coll->elem_bytes + size - 1) / size;

    if (server >= 0)
        return server == member ? all : none;
    bytes =
        bytes < SLICE_LEAST ? SLICE_LEAST : (bytes + LINE - 1) / LINE * LINE;
    return rueda_chunk_piece(all, bytes / coll->elem_bytes, (size_t)member);
}

static bool reduce_slice(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_range slice = slice_of(task, kept->table.me);

    if (slice.count == 0)
        return true;
    if (!find_all(task, kept, slice.at))
        return false;
    rueda_device_reduce_all(task->place->device, &task->work, &task->coll.arith,
                            kept->dst, kept->src, kept->table.size,
                            slice.count);
    return true;
}

static bool reduce_piece(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_range piece =
        rueda_chunk_listed(coll->recv_counts, coll->count, kept->table.me);

    if (piece.count == 0)
        return true;
    if (!find_all(task, kept, piece.at))
        return false;
    rueda_device_reduce(task->place->device, &task->work, &coll->arith,
                        coll->recv, kept->src, kept->table.size, piece.count);
    return true;
}

static bool fetch_pieces(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_coll *coll = &task->coll;
    int count = 0;

    for (int i = 0; i < kept->table.size; i++) {
        const struct rueda_range piece =
            rueda_chunk_listed(coll->recv_counts, coll->count, i);
        const size_t bytes = piece.count * coll->elem_bytes;
        const void *src;

        if (piece.count == 0)
            continue;
        src = at(kept, i, &notice_of(task, kept, i)->whole.send, bytes,
                 coll->send);
        if (src == NULL)
            return false;
        kept->list[count++] = (struct rueda_part){
            .send = src, .at = piece.at * coll->elem_bytes, .bytes = bytes};
    }
    if (count > 0)
        rueda_device_gather(task->place->device, &task->work, coll->recv,
                            kept->list, count);
    return true;
}

static bool fetch_from_root(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_coll *coll = &task->coll;
    const size_t bytes = rueda_mapped_bytes(task, coll->root);
    const void *src;

    if (bytes == 0)
        return true;
    src = at(kept, coll->root, &notice_of(task, kept, coll->root)->whole.send,
             bytes, coll->send);
    if (src == NULL)
        return false;
    if (src != coll->recv)
        rueda_device_copy(task->place->device, &task->work, coll->recv, src,
                          bytes);
    return true;
}

/* ---- Parts ------------------------------------------------------------ */

/* The parts of a member, as they are mapped here, in the list from `first` on.
 */
static bool list_parts(struct rueda_task *task, struct rueda_mapped *kept,
                       int member, int first)
{
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_mapped_notice *notice = notice_of(task, kept, member);

    for (int i = 0; i < coll->part_count; i++) {
        const struct rueda_part *mine = &coll->parts[i];
        struct rueda_part *part = &kept->list[first + i];

        *part = *mine;
        part->send =
            at(kept, member, &notice->parts[i].send, mine->bytes, mine->send);
        part->recv =
            at(kept, member, &notice->parts[i].recv, mine->bytes, mine->recv);
        if (part->send == NULL || part->recv == NULL)
            return false;
    }
    return true;
}

/* One part is read where it is; several are packed first, each rank's into the
 * rank's own slab. */
static bool serve(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_device *device = task->place->device;
    const struct rueda_coll *coll = &task->coll;
    const bool is_one = coll->part_count == 1;
    const size_t count =
        is_one ? coll->parts[0].bytes / coll->elem_bytes : coll->count;

    for (int i = 0; i < kept->table.size; i++) {
        void *slab;

        if (!list_parts(task, kept, i, 0))
            return false;
        kept->src[i] = kept->list[0].send;
        if (is_one)
            continue;
        slab = at(kept, i, &notice_of(task, kept, i)->whole.recv,
                  count * coll->elem_bytes, coll->recv);
        if (slab == NULL)
            return false;
        rueda_device_gather(device, &task->work, slab, kept->list,
                            coll->part_count);
        kept->src[i] = slab;
    }
    rueda_device_reduce(device, &task->work, &coll->arith, coll->recv,
                        kept->src, kept->table.size, count);
    return true;
}

bool rueda_mapped_give(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_device *device = task->place->device;
    const struct rueda_coll *coll = &task->coll;

    if (rueda_mapped_task_of(task)->server != kept->table.me)
        return true;
    for (int i = 0; i < kept->table.size; i++)
        if (!list_parts(task, kept, i, i * coll->part_count))
            return false;
    if (coll->part_count > 1)
        rueda_device_scatter(device, &task->work, coll->recv, kept->list,
                             kept->table.size * coll->part_count);
    for (int i = 0; i < kept->table.size && coll->part_count == 1; i++)
        rueda_device_copy(device, &task->work, kept->list[i].recv, coll->recv,
                          coll->parts[0].bytes);
    return true;
}

bool rueda_mapped_work(struct rueda_task *task, struct rueda_mapped *kept)
{
    const struct rueda_mapped_task *self = rueda_mapped_task_of(task);

    if (self->is_in_parts)
        return self->server != kept->table.me || serve(task, kept);
    switch (task->coll.kind) {
    case RUEDA_ALLREDUCE:
        return reduce_slice(task, kept);
    case RUEDA_REDUCE_SCATTER:
        return reduce_piece(task, kept);
    case RUEDA_ALLGATHER:
        return fetch_pieces(task, kept);
    case RUEDA_BROADCAST:
        return fetch_from_root(task, kept);
    default:
        return false;
    }
}
