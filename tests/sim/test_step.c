/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step at scale: named tensors are negotiated, joined to batches and
 * reduced between hosts, on phantoms, by as many ranks as
 *
 *     test_sim_step [HOSTS [RANKS_PER_HOST]]
 *
 * says (128 hosts of 8). How many control messages a rank sends and receives
 * must not grow faster than the logarithm of the number of ranks.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "negotiate/negotiator.h"
#include "sim/collective.h"

#define TENSORS 200
#define BYTES   ((size_t)128 << 10) /* of each */
#define SLAB    ((size_t)16 << 20)
#define STEPS   2 /* the first in full, the second by number */

struct member {
    struct rueda_negotiator *negotiator;
    struct rueda_request requests[TENSORS];
    int step;
    int ended;
    bool is_running;
    struct rueda_negotiator_counts before; /* the last step */
};

struct job {
    struct collective *all;
    int *ranks;
    int *hosts;
    struct member *members;
    char (*names)[16];
    size_t batches; /* of rank 0 */
};

struct figures {
    uint64_t most; /* messages of one rank in the last step */
    double seconds;
    double virtual_ms;
};

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static rueda_status submit_all(struct job *job, int rank)
{
    struct member *member = &job->members[rank];
    rueda_status status = RUEDA_OK;

    member->before = rueda_negotiator_counts(member->negotiator);
    /* Every rank in another order. */
    for (int i = 0; i < TENSORS && status == RUEDA_OK; i++) {
        struct rueda_request *request =
            &member->requests[(i + 7 * rank) % TENSORS];

        status = rueda_negotiator_submit(member->negotiator, request, request);
    }
    return status;
}

static rueda_status start_batch(struct job *job, int rank,
                                const struct rueda_decision *decision)
{
    struct rueda_task *task = &job->all->task[rank];
    size_t bytes = 0;

    for (int i = 0; i < decision->count; i++)
        bytes += BYTES;
    memset(task->state, 0xaa, sizeof(task->state));
    task->place = &job->all->place[rank];
    task->tag = (struct rueda_tag){1, 1, decision->index};
    task->moves = 0;
    task->coll = (struct rueda_coll){
        .kind = RUEDA_ALLREDUCE,
        .arith = {RUEDA_FLOAT32, RUEDA_SUM, 1.0, 1.0},
        .elem_bytes = sizeof(float),
        .send = job, /* never touched */
        .recv = job,
        .count = bytes / sizeof(float),
    };
    task->algo =
        rueda_select_choose(&job->all->select, task->place, &task->coll);
    job->members[rank].is_running = true;
    job->batches += rank == 0;
    return rueda_task_post(task);
}

/* The batch at the head of the queue has ended. */
static rueda_status end_batch(struct job *job, int rank)
{
    struct member *member = &job->members[rank];
    struct rueda_task *task = &job->all->task[rank];

    if (task->algo->finish != NULL)
        task->algo->finish(task);
    member->is_running = false;
    member->ended += rueda_negotiator_next(member->negotiator)->count;
    rueda_negotiator_done(member->negotiator);
    if (member->ended < TENSORS)
        return RUEDA_OK;
    member->ended = 0;
    return ++member->step < STEPS ? submit_all(job, rank) : RUEDA_OK;
}

static rueda_status step_on(struct job *job, int rank)
{
    struct member *member = &job->members[rank];
    const struct rueda_decision *decision;
    rueda_status status = RUEDA_IN_PROGRESS;

    if (member->is_running) {
        status = rueda_task_progress(&job->all->task[rank]);
    } else {
        decision = rueda_negotiator_next(member->negotiator);
        if (decision != NULL)
            status = start_batch(job, rank, decision);
    }
    return status == RUEDA_OK ? end_batch(job, rank) : status;
}

static rueda_status turn(void *arg, int rank)
{
    struct job *job = arg;
    struct member *member = &job->members[rank];
    struct rueda_text error = {""};
    rueda_status talk;
    rueda_status work;

    do {
        talk = rueda_negotiator_turn(member->negotiator, &error);
        if (talk < 0)
            return talk;
        work = step_on(job, rank);
        if (work < 0)
            return work;
    } while (talk == RUEDA_OK || work == RUEDA_OK);
    return member->step == STEPS &&
                   !rueda_negotiator_is_sending(member->negotiator)
               ? RUEDA_OK
               : RUEDA_IN_PROGRESS;
}

static rueda_status start(void *arg, int rank)
{
    rueda_status status = submit_all(arg, rank);

    return status == RUEDA_OK ? turn(arg, rank) : status;
}

static void finish(void *arg, int rank, rueda_status status)
{
    struct job *job = arg;

    job->all->status[rank] = status;
}

/* ---- Life ---------------------------------------------------------------- */

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);

    assert_non_null(memory);
    return memory;
}

static void open_member(struct job *job, int rank)
{
    struct member *member = &job->members[rank];
    const struct rueda_negotiator_args args = {
        .mesh = &job->all->mesh[rank],
        .tag = {1, 1, 0},
        .ranks = job->ranks,
        .hosts = job->hosts,
        .cache_capacity = 1024,
        .fusion_bytes = SLAB,
        .now_ns = no_time,
    };

    assert_int_equal(rueda_negotiator_new(&args, &member->negotiator),
                     RUEDA_OK);
    for (int i = 0; i < TENSORS; i++)
        member->requests[i] = (struct rueda_request){
            .kind = RUEDA_ALLREDUCE,
            .dtype = RUEDA_FLOAT32,
            .root = -1,
            .device = RUEDA_DEVICE_HOST,
            .prescale = 1,
            .postscale = 1,
            .dims = 1,
            .shape = {BYTES / sizeof(float)},
            .name = job->names[i],
        };
}

static void open_job(struct job *job, int hosts, int ranks_per_host)
{
    const struct rueda_sim_wire wire = {.latency_ns = 10000,
                                        .bytes_per_s = 10e9};
    struct rueda_sim_net net = rueda_sim_net_flat(hosts, wire);
    struct rueda_sim_settings settings;
    size_t size;

    net.ranks_per_host = ranks_per_host;
    net.port = (struct rueda_sim_wire){.latency_ns = 500, .bytes_per_s = 50e9};
    settings = rueda_sim_settings_default(&net);
    settings.is_phantom = true;
    job->all = collective_open(&settings);
    size = (size_t)job->all->size;
    job->ranks = zeroed(size, sizeof(int));
    job->hosts = zeroed(size, sizeof(int));
    job->members = zeroed(size, sizeof(*job->members));
    job->names = zeroed(TENSORS, sizeof(*job->names));
    job->batches = 0;
    for (int i = 0; i < TENSORS; i++)
        snprintf(job->names[i], sizeof(job->names[i]), "grad.%d", i);
    for (int i = 0; i < job->all->size; i++) {
        job->ranks[i] = i;
        job->hosts[i] = rueda_sim_net_host(&net, i);
    }
    for (int i = 0; i < job->all->size; i++)
        open_member(job, i);
}

static void close_job(struct job *job)
{
    for (int i = 0; i < job->all->size; i++) {
        rueda_mesh_cancel(&job->all->mesh[i], RUEDA_ERR_CANCELLED);
        rueda_negotiator_free(job->members[i].negotiator);
    }
    collective_close(job->all);
    free(job->ranks);
    free(job->hosts);
    free(job->members);
    free(job->names);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct figures run(int hosts, int ranks_per_host)
{
    struct figures figures = {0};
    struct rueda_text why = {""};
    struct job job;
    const struct rueda_sim_program program = {
        .arg = &job, .start = start, .turn = turn, .finish = finish};
    double begun;

    open_job(&job, hosts, ranks_per_host);
    begun = now_s();
    if (rueda_sim_run(job.all->sim, &program, &why) != RUEDA_OK)
        fail_msg("%s", why.chars);
    figures.seconds = (now_s() - begun) / STEPS;
    figures.virtual_ms = (double)rueda_sim_took(job.all->sim) / 1e6 / STEPS;
    for (int i = 0; i < job.all->size; i++) {
        struct member *member = &job.members[i];
        struct rueda_negotiator_counts after =
            rueda_negotiator_counts(member->negotiator);
        uint64_t messages = after.sent - member->before.sent + after.received -
                            member->before.received;

        assert_int_equal(job.all->status[i], RUEDA_OK);
        if (messages > figures.most)
            figures.most = messages;
    }
    print_message("%d ranks: a step of %d tensors takes %.1f s to simulate and "
                  "%.2f ms of virtual time, in %zu batches; at most %llu "
                  "control messages a rank\n",
                  job.all->size, TENSORS, figures.seconds, figures.virtual_ms,
                  job.batches / STEPS, (unsigned long long)figures.most);
    close_job(&job);
    return figures;
}

static int hosts = 128;
static int ranks_per_host = 8;

static void test_step(void **state)
{
    struct figures few;
    struct figures many;
    double growth;

    (void)state;
    few = run(8, ranks_per_host);
    many = run(hosts, ranks_per_host);
    growth = log2(hosts * ranks_per_host) / log2(8 * ranks_per_host);
    if ((double)many.most > (double)few.most * growth + 1)
        fail_msg("from %llu to %llu control messages, and the logarithm grows "
                 "by %.2f",
                 (unsigned long long)few.most, (unsigned long long)many.most,
                 growth);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_step)};

    if (argc > 1)
        hosts = atoi(argv[1]);
    if (argc > 2)
        ranks_per_host = atoi(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
