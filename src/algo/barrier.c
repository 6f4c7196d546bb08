/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier by dissemination (Hensgen, Finkel and Manber, 1988).
 *
 * In round k rank r tells rank r + 2^k that it is here, and waits to hear the
 * same from rank r - 2^k, both modulo the number of ranks. After round k it has
 * heard, directly or not, of the 2^(k+1) - 1 ranks behind it. With five ranks,
 * rank 4
 *
 *      round   hears from   has heard of
 *        0         3        3
 *        1         2        3, 2, 1
 *        2         0        all
 *
 * Cost: ceil(log2 size) rounds of one empty message, for any number of ranks.
 */
#include "algo/registry.h"

struct barrier {
    int distance; /* 2^k, of the round that runs */
    struct rueda_req sent;
    struct rueda_req heard;
};
_Static_assert(sizeof(struct barrier) <= RUEDA_TASK_STATE_BYTES, "state");

static void begin_round(struct rueda_task *task)
{
    struct barrier *barrier = (struct barrier *)task->state;
    struct rueda_mesh *mesh = task->place->mesh;
    const int size = mesh->size;
    const int to = (int)(((long)mesh->rank + barrier->distance) % size);
    const int from = (mesh->rank - barrier->distance + size) % size;

    task->moves++;
    rueda_mesh_recv(mesh, from, task->tag, NULL, 0, &barrier->heard);
    rueda_mesh_send(mesh, to, task->tag, NULL, 0, &barrier->sent);
}

static rueda_status barrier_progress(struct rueda_task *task)
{
    struct barrier *barrier = (struct barrier *)task->state;

    while (barrier->distance < task->place->mesh->size) {
        if (barrier->heard.status != RUEDA_OK)
            return barrier->heard.status;
        if (barrier->sent.status != RUEDA_OK)
            return barrier->sent.status;
        barrier->distance *= 2;
        if (barrier->distance < task->place->mesh->size)
            begin_round(task);
    }
    return RUEDA_OK;
}

static rueda_status barrier_post(struct rueda_task *task)
{
    struct barrier *barrier = (struct barrier *)task->state;

    barrier->distance = 1;
    if (barrier->distance < task->place->mesh->size)
        begin_round(task);
    return barrier_progress(task);
}

const struct rueda_algo rueda_algo_dissemination = {
    .name = "dissemination",
    .about = "barrier in log2(ranks) rounds",
    .kinds = 1u << RUEDA_BARRIER,
    .memory = RUEDA_MEMKIND_ANY,
    .post = barrier_post,
    .progress = barrier_progress,
};
