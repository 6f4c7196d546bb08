/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/core.h"

#include "algo/local.h"

int rueda_algo_core_levels(const struct rueda_task *task)
{
    return rueda_chunk_log2(task->place->mesh->size);
}

bool rueda_algo_core_has(const struct rueda_task *task)
{
    return task->place->mesh->rank < 1 << rueda_algo_core_levels(task);
}

int rueda_algo_core_folded(const struct rueda_task *task)
{
    const struct rueda_mesh *mesh = task->place->mesh;
    const int core = 1 << rueda_algo_core_levels(task);

    if (mesh->rank >= core)
        return mesh->rank - core;
    return mesh->rank < mesh->size - core ? mesh->rank + core : -1;
}

int rueda_algo_core_partner(const struct rueda_task *task, int level)
{
    return task->place->mesh->rank ^ 1 << level;
}

struct rueda_range rueda_algo_core_mine(const struct rueda_task *task,
                                        int level)
{
    return rueda_chunk_halved(task->coll.count, task->place->mesh->rank,
                              level + 1);
}

struct rueda_range rueda_algo_core_theirs(const struct rueda_task *task,
                                          int level)
{
    return rueda_chunk_halved(task->coll.count,
                              rueda_algo_core_partner(task, level), level + 1);
}

void rueda_algo_core_double(struct rueda_exchange *exchange,
                            const struct rueda_task *task, int level)
{
    const struct rueda_range mine = rueda_algo_core_mine(task, level);
    const struct rueda_range theirs = rueda_algo_core_theirs(task, level);

    exchange->to = rueda_algo_core_partner(task, level);
    exchange->out = rueda_local_at(task->coll.recv, task, mine.at);
    exchange->out_bytes = mine.count * task->coll.elem_bytes;
    exchange->from = exchange->to;
    exchange->in = rueda_local_at(task->coll.recv, task, theirs.at);
    exchange->in_bytes = theirs.count * task->coll.elem_bytes;
}

void rueda_algo_core_unfold(struct rueda_exchange *exchange,
                            const struct rueda_task *task)
{
    const size_t bytes = task->coll.count * task->coll.elem_bytes;
    const int folded = rueda_algo_core_folded(task);

    if (folded < 0)
        return;
    if (rueda_algo_core_has(task)) {
        exchange->to = folded;
        exchange->out = task->coll.recv;
        exchange->out_bytes = bytes;
    } else {
        exchange->from = folded;
        exchange->in = task->coll.recv;
        exchange->in_bytes = bytes;
    }
}
