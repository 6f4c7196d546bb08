/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "algo/hier.h"

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);

    assert_non_null(memory);
    return memory;
}

/* Addresses without memory: who touches them crashes. */
static void *phantom(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

static void arrange(struct collective *all, const struct rueda_sim_net *net)
{
    int *hosts = zeroed((size_t)all->size, sizeof(int));
    const struct rueda_hier_args args = {
        .hosts = hosts, .host_limit = net->hosts, .select = &all->select};

    rueda_select_init(&all->select);
    for (int i = 0; i < all->size; i++)
        hosts[i] = i / net->ranks_per_host;
    for (int i = 0; i < all->size; i++)
        assert_int_equal(
            rueda_hier_new(&all->place[i], &args, &all->place[i].hier),
            RUEDA_OK);
    free(hosts);
}

struct collective *collective_open(const struct rueda_sim_settings *settings)
{
    struct collective *all = zeroed(1, sizeof(*all));
    struct rueda_text error = {""};
    size_t n;

    assert_int_equal(rueda_sim_open(settings, &all->sim, &error), RUEDA_OK);
    all->size = rueda_sim_size(all->sim);
    n = (size_t)all->size;
    all->mesh = zeroed(n, sizeof(*all->mesh));
    all->place = zeroed(n, sizeof(*all->place));
    all->task = aligned_alloc(64, n * sizeof(*all->task));
    assert_non_null(all->task);
    all->status = zeroed(n, sizeof(*all->status));
    all->is_open = zeroed(n, sizeof(*all->is_open));
    all->scratch_bytes = n * RUEDA_SCRATCH_BYTES;
    all->scratch = phantom(all->scratch_bytes);
    if (!settings->is_phantom)
        assert_int_equal(
            mprotect(all->scratch, all->scratch_bytes, PROT_READ | PROT_WRITE),
            0);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rueda_mesh_init(&all->mesh[i], (int)i, all->size,
                                         rueda_sim_connect, all->sim),
                         RUEDA_OK);
        all->is_open[i] = true;
        all->place[i].mesh = &all->mesh[i];
        all->place[i].device = rueda_sim_device(all->sim, (int)i);
        all->place[i].scratch = all->scratch + i * RUEDA_SCRATCH_BYTES;
        all->place[i].scratch_bytes = RUEDA_SCRATCH_BYTES;
    }
    arrange(all, &settings->net);
    return all;
}

static void leave(struct collective *all, int rank)
{
    if (!all->is_open[rank])
        return;
    rueda_hier_free(all->place[rank].hier);
    rueda_mesh_fini(&all->mesh[rank]);
    rueda_sim_leave(all->sim, rank);
    all->is_open[rank] = false;
}

void collective_close(struct collective *all)
{
    for (int i = 0; i < all->size; i++)
        leave(all, i);
    rueda_sim_close(all->sim);
    munmap(all->scratch, all->scratch_bytes);
    free(all->mesh);
    free(all->place);
    free(all->task);
    free(all->status);
    free(all->is_open);
    free(all);
}

/* ---- The program ------------------------------------------------------ */

static rueda_status start(void *arg, int rank)
{
    struct collective *all = arg;
    struct rueda_task *task = &all->task[rank];

    memset(task->state, 0xaa, sizeof(task->state));
    task->algo = all->algo;
    task->place = &all->place[rank];
    task->coll = all->coll[rank];
    task->tag = (struct rueda_tag){1, 0, all->sequence};
    task->moves = 0;
    return rueda_task_post(task);
}

/* A rank that has left may have done its part: only a task that waits on is
 * failed by it. */
static rueda_status turn(void *arg, int rank)
{
    struct collective *all = arg;
    rueda_status status = rueda_task_progress(&all->task[rank]);

    if (status == RUEDA_IN_PROGRESS && rueda_sim_lost_peer(all->sim, rank) >= 0)
        status = RUEDA_ERR_PEER_LOST;
    return status;
}

/* A rank may be ended before it has started. */
static void finish(void *arg, int rank, rueda_status status)
{
    struct collective *all = arg;
    struct rueda_task *task = &all->task[rank];

    if (status < 0)
        rueda_mesh_cancel(&all->mesh[rank], status);
    if (task->algo != NULL && task->algo->finish != NULL)
        task->algo->finish(task);
    /* What the task held must not be looked at any more. */
    memset(task->state, 0xee, sizeof(task->state));
    all->status[rank] = status;
    if (status < 0)
        leave(all, rank);
}

rueda_status collective_run(struct collective *all,
                            const struct rueda_algo *algo,
                            const struct rueda_coll *coll,
                            struct rueda_text *why)
{
    const struct rueda_sim_program program = {
        .arg = all,
        .start = start,
        .turn = turn,
        .finish = finish,
    };

    all->algo = algo;
    all->coll = coll;
    all->sequence++;
    for (int i = 0; i < all->size; i++) {
        all->task[i].algo = NULL;
        all->status[i] = RUEDA_ERR_CLOSED;
    }
    return rueda_sim_run(all->sim, &program, why);
}

/* ---- Time ------------------------------------------------------------- */

uint64_t collective_time(struct collective *all, const struct rueda_algo *algo,
                         size_t bytes)
{
    struct rueda_coll *coll = zeroed((size_t)all->size, sizeof(*coll));
    struct rueda_text why = {""};
    void *vector = phantom(bytes);

    for (int i = 0; i < all->size; i++)
        coll[i] = (struct rueda_coll){
            .kind = RUEDA_ALLREDUCE,
            .arith = {RUEDA_FLOAT32, RUEDA_SUM, 1.0, 1.0},
            .elem_bytes = sizeof(float),
            .send = vector,
            .recv = vector,
            .count = bytes / sizeof(float),
        };
    assert_int_equal(collective_run(all, algo, coll, &why), RUEDA_OK);
    for (int i = 0; i < all->size; i++)
        assert_int_equal(all->status[i], RUEDA_OK);
    munmap(vector, bytes);
    free(coll);
    return rueda_sim_took(all->sim);
}
