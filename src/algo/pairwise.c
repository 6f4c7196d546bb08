/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alltoall by pairwise exchange (Thakur, Rabenseifner and Gropp, 2005).
 *
 * In step s rank r sends to rank r + s and receives from rank r - s, modulo the
 * number of ranks, so that in each step every rank is the target of one other.
 * Pieces go straight from send to recv, one message each; a few steps run at a
 * time. Step 0 is a copy.
 *
 * In place, every piece may have to go where another has still to leave from.
 * Then, and only then, the input is copied first, into memory that the task
 * allocates.
 *
 * Cost: size-1 messages a rank, each byte moved once.
 */
#include <stdlib.h>

#include "algo/chunk.h"
#include "algo/local.h"
#include "algo/registry.h"
#include "algo/window.h"

struct pairwise {
    char *copy; /* of send, where it is recv too; else NULL */
    const char *from;
    struct rueda_window in;
    struct rueda_window out;
};
_Static_assert(sizeof(struct pairwise) <= RUEDA_TASK_STATE_BYTES, "state");

static void send_piece(struct rueda_task *task, int peer)
{
    struct pairwise *pairwise = (struct pairwise *)task->state;
    const struct rueda_range piece =
        rueda_chunk_listed(task->coll.send_counts, task->coll.count, peer);

    rueda_window_send(&pairwise->out, task, peer,
                      rueda_local_const_at(pairwise->from, task, piece.at),
                      piece.count * task->coll.elem_bytes);
}

static void receive_piece(struct rueda_task *task, int peer)
{
    struct pairwise *pairwise = (struct pairwise *)task->state;
    const struct rueda_range piece =
        rueda_chunk_listed(task->coll.recv_counts, task->coll.count, peer);

    rueda_window_recv(&pairwise->in, task, peer,
                      rueda_local_at(task->coll.recv, task, piece.at),
                      piece.count * task->coll.elem_bytes);
}

static rueda_status pairwise_progress(struct rueda_task *task)
{
    struct pairwise *pairwise = (struct pairwise *)task->state;
    const int rank = task->place->mesh->rank;
    const int size = task->place->mesh->size;
    const size_t steps = (size_t)size - 1;
    rueda_status in;
    rueda_status out;

    if (task->work.status != RUEDA_OK)
        return task->work.status;
    do {
        while (pairwise->in.started < steps &&
               !rueda_window_is_full(&pairwise->in))
            receive_piece(task,
                          (rank + size - 1 - (int)pairwise->in.started) % size);
        while (pairwise->out.started < steps &&
               !rueda_window_is_full(&pairwise->out))
            send_piece(task, (rank + 1 + (int)pairwise->out.started) % size);
        in = rueda_window_next(&pairwise->in);
        out = rueda_window_next(&pairwise->out);
    } while (in == RUEDA_OK || out == RUEDA_OK);
    if (in < 0)
        return in;
    if (out < 0)
        return out;
    return pairwise->in.ended == steps && pairwise->out.ended == steps
               ? RUEDA_OK
               : RUEDA_IN_PROGRESS;
}

static rueda_status pairwise_post(struct rueda_task *task)
{
    struct pairwise *pairwise = (struct pairwise *)task->state;
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_mesh *mesh = task->place->mesh;
    const struct rueda_device *device = task->place->device;
    const size_t bytes =
        rueda_chunk_total(coll->send_counts, coll->count, mesh->size) *
        coll->elem_bytes;
    struct rueda_range sent;
    struct rueda_range kept;

    pairwise->copy = NULL;
    pairwise->from = coll->send;
    rueda_window_reset(&pairwise->in);
    rueda_window_reset(&pairwise->out);
    if (mesh->size == 1) {
        rueda_local_alone(task);
        return RUEDA_OK;
    }
    if (coll->send == coll->recv && bytes > 0) {
        pairwise->copy = device->ops->alloc(device, bytes);
        if (pairwise->copy == NULL)
            return RUEDA_ERR_NOMEM;
        rueda_local_move(task, pairwise->copy, coll->send, bytes);
        pairwise->from = pairwise->copy;
    }
    sent = rueda_chunk_listed(coll->send_counts, coll->count, mesh->rank);
    kept = rueda_chunk_listed(coll->recv_counts, coll->count, mesh->rank);
    if (sent.count != kept.count)
        return RUEDA_ERR_MISMATCH;
    rueda_local_move(task, rueda_local_at(coll->recv, task, kept.at),
                     rueda_local_const_at(pairwise->from, task, sent.at),
                     kept.count * coll->elem_bytes);
    return pairwise_progress(task);
}

static void pairwise_finish(struct rueda_task *task)
{
    struct pairwise *pairwise = (struct pairwise *)task->state;
    const struct rueda_device *device = task->place->device;

    device->ops->free(device, pairwise->copy);
}

const struct rueda_algo rueda_algo_pairwise = {
    .name = "pairwise",
    .about = "every pair of ranks exchanges its pieces, a few at a time",
    .kinds = 1u << RUEDA_ALLTOALL,
    .memory = RUEDA_MEMKIND_ANY,
    .post = pairwise_post,
    .progress = pairwise_progress,
    .finish = pairwise_finish,
};
