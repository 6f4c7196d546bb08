/* SPDX-License-Identifier: Apache-2.0 */
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "algo/hier.h"

#define TURNS 200000

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);

    assert_non_null(memory);
    return memory;
}

struct ranks *ranks_open(int size)
{
    struct ranks *ranks = zeroed(1, sizeof(*ranks));
    const size_t n = (size_t)size;

    ranks->size = size;
    ranks->leaver = -1;
    ranks->seed = 1;
    ranks->mesh = zeroed(n, sizeof(*ranks->mesh));
    ranks->place = zeroed(n, sizeof(*ranks->place));
    ranks->task = aligned_alloc(64, n * sizeof(*ranks->task));
    assert_non_null(ranks->task);
    ranks->status = zeroed(n, sizeof(*ranks->status));
    ranks->is_open = zeroed(n, sizeof(*ranks->is_open));
    assert_int_equal(rueda_loop_hub_open(size, &ranks->hub), RUEDA_OK);
    for (int i = 0; i < size; i++) {
        assert_int_equal(rueda_mesh_init(&ranks->mesh[i], i, size,
                                         rueda_loop_connect, ranks->hub),
                         RUEDA_OK);
        ranks->place[i].mesh = &ranks->mesh[i];
        ranks->place[i].device = rueda_device_default("auto");
        ranks->place[i].scratch = malloc(RUEDA_SCRATCH_BYTES);
        assert_non_null(ranks->place[i].scratch);
        ranks->place[i].scratch_bytes = RUEDA_SCRATCH_BYTES;
        ranks->is_open[i] = true;
    }
    return ranks;
}

void ranks_arrange(struct ranks *ranks, const int *hosts)
{
    const struct rueda_hier_args args = {
        .hosts = hosts, .host_limit = ranks->size, .select = &ranks->select};

    rueda_select_init(&ranks->select);
    for (int i = 0; i < ranks->size; i++)
        assert_int_equal(
            rueda_hier_new(&ranks->place[i], &args, &ranks->place[i].hier),
            RUEDA_OK);
}

static void leave(struct ranks *ranks, int rank)
{
    if (!ranks->is_open[rank])
        return;
    rueda_hier_free(ranks->place[rank].hier);
    ranks->place[rank].hier = NULL;
    rueda_mesh_fini(&ranks->mesh[rank]);
    rueda_loop_hub_leave(ranks->hub, rank);
    ranks->is_open[rank] = false;
}

void ranks_close(struct ranks *ranks)
{
    for (int i = 0; i < ranks->size; i++) {
        leave(ranks, i);
        free(ranks->place[i].scratch);
    }
    for (int i = 0; i < ranks->size; i++)
        rueda_loop_hub_release(ranks->hub);
    free(ranks->mesh);
    free(ranks->place);
    free(ranks->task);
    free(ranks->status);
    free(ranks->is_open);
    free(ranks);
}

/* The task of this rank has ended, or is ended. */
static void end(struct ranks *ranks, int rank, rueda_status status)
{
    struct rueda_task *task = &ranks->task[rank];

    if (status < 0)
        rueda_mesh_cancel(&ranks->mesh[rank], status);
    if (task->algo->finish != NULL)
        task->algo->finish(task);
    /* What the task held must not be looked at any more. */
    memset(task->state, 0xee, sizeof(task->state));
    ranks->status[rank] = status;
    if (status < 0)
        leave(ranks, rank);
}

static void turn(struct ranks *ranks, int rank)
{
    struct rueda_task *task = &ranks->task[rank];
    int lost_peer = -1;
    rueda_status moved;
    rueda_status status;

    if (ranks->status[rank] != RUEDA_IN_PROGRESS)
        return;
    moved = rueda_mesh_progress(&ranks->mesh[rank], &lost_peer);
    status = rueda_task_progress(task);
    if (status == RUEDA_IN_PROGRESS && moved < 0)
        status = moved;
    if (status != RUEDA_IN_PROGRESS)
        end(ranks, rank, status);
}

/* Some ranks are slower than others, another time other ones. */
static bool is_idle(struct ranks *ranks)
{
    ranks->seed = ranks->seed * 1664525u + 1013904223u;
    return ranks->seed >> 30 == 0;
}

static void start(struct ranks *ranks, const struct rueda_algo *algo,
                  const struct rueda_coll *coll, int rank)
{
    struct rueda_task *task = &ranks->task[rank];
    rueda_status status;

    memset(task->state, 0xaa, sizeof(task->state));
    task->algo = algo;
    task->place = &ranks->place[rank];
    task->coll = coll[rank];
    task->tag = (struct rueda_tag){1, 0, ranks->sequence};
    task->moves = 0;
    ranks->status[rank] = RUEDA_IN_PROGRESS;
    status = rueda_task_post(task);
    if (status != RUEDA_IN_PROGRESS)
        end(ranks, rank, status);
}

static bool is_running(const struct ranks *ranks)
{
    for (int i = 0; i < ranks->size; i++)
        if (ranks->status[i] == RUEDA_IN_PROGRESS)
            return true;
    return false;
}

rueda_status ranks_run(struct ranks *ranks, const struct rueda_algo *algo,
                       const struct rueda_coll *coll)
{
    ranks->sequence++;
    for (int i = 0; i < ranks->size; i++)
        start(ranks, algo, coll, i);
    for (int t = 0; t < TURNS && is_running(ranks); t++) {
        if (ranks->leaver >= 0 && t == ranks->leaves_after &&
            ranks->status[ranks->leaver] == RUEDA_IN_PROGRESS)
            end(ranks, ranks->leaver, RUEDA_ERR_CLOSED);
        for (int i = 0; i < ranks->size; i++)
            if (!is_idle(ranks))
                turn(ranks, t % 2 == 0 ? i : ranks->size - 1 - i);
    }
    for (int i = 0; i < ranks->size; i++)
        if (ranks->status[i] == RUEDA_IN_PROGRESS)
            end(ranks, i, RUEDA_ERR_TIMEOUT);
    for (int i = 0; i < ranks->size; i++)
        if (ranks->status[i] != RUEDA_OK)
            return ranks->status[i];
    return RUEDA_OK;
}
