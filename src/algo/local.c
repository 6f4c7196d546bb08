/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/local.h"

#include "algo/chunk.h"

void rueda_local_take(struct rueda_task *task, size_t count)
{
    const struct rueda_coll *coll = &task->coll;

    if (coll->arith.prescale == 1.0)
        rueda_local_move(task, coll->recv, coll->send,
                         count * coll->elem_bytes);
    else if (count > 0)
        rueda_device_scale(task->place->device, &task->work, coll->arith.dtype,
                           coll->recv, coll->send, count, coll->arith.prescale);
}

void rueda_local_postscale(struct rueda_task *task, size_t at, size_t count)
{
    const struct rueda_arith *arith = &task->coll.arith;
    void *result = rueda_local_at(task->coll.recv, task, at);

    if (arith->postscale != 1.0 && count > 0)
        rueda_device_scale(task->place->device, &task->work, arith->dtype,
                           result, result, count, arith->postscale);
}

void rueda_local_add(struct rueda_task *task, void *dst, const void *own,
                     const void *arrived, size_t count, double postscale)
{
    const void *const both[2] = {own, arrived};
    struct rueda_arith arith = task->coll.arith;

    arith.prescale = 1.0;
    arith.postscale = postscale;
    rueda_device_reduce(task->place->device, &task->work, &arith, dst, both, 2,
                        count);
}

void rueda_local_alone(struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;

    switch (coll->kind) {
    case RUEDA_ALLREDUCE:
        rueda_local_take(task, coll->count);
        rueda_local_postscale(task, 0, coll->count);
        break;
    case RUEDA_REDUCE_SCATTER: {
        const size_t mine =
            rueda_chunk_total(coll->recv_counts, coll->count, 1);

        rueda_local_take(task, mine);
        rueda_local_postscale(task, 0, mine);
        break;
    }
    case RUEDA_ALLGATHER:
    case RUEDA_BROADCAST:
        rueda_local_move(task, coll->recv, coll->send,
                         coll->count * coll->elem_bytes);
        break;
    case RUEDA_ALLTOALL:
        rueda_local_move(task, coll->recv, coll->send,
                         rueda_chunk_total(coll->send_counts, coll->count, 1) *
                             coll->elem_bytes);
        break;
    case RUEDA_BARRIER:
    case RUEDA_JOIN:
    case RUEDA_SEND:
    case RUEDA_RECV:
        break;
    }
}
