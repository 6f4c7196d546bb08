/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker does for each command; worker_main.c is its process.
 *
 * A batch has the same steps on all ranks and in all systems:
 *
 *     refill    the buffers, so that an old result is not taken for a new one
 *     barrier   all ranks begin together
 *     run       timed, `iterations` times
 *     barrier   no rank checks while another one still needs its core
 *     check     every element
 */
#include "tool/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/clock.h"
#include "tool/placing.h"
#include "tool/probe.h"

static void fail(struct rueda_bench_worker *worker, struct rueda_reply *reply)
{
    reply->is_ok = false;
    snprintf(reply->words, sizeof(reply->words), "%.380s",
             worker->system->words.chars);
}

static void release(struct rueda_bench_worker *worker)
{
    struct rueda_system *system = worker->system;
    const bool is_shared = worker->work.is_shared;

    if (worker->recv != NULL)
        system->ops->release(system, worker->recv, is_shared);
    if (worker->send != NULL)
        system->ops->release(system, worker->send, is_shared);
    free(worker->copy);
    worker->recv = NULL;
    worker->send = NULL;
    worker->copy = NULL;
}

/* Make buffers for a case and fill them. */
static void prepare(struct rueda_bench_worker *worker,
                    const struct rueda_control_command *command,
                    struct rueda_reply *reply)
{
    struct rueda_system *system = worker->system;
    const struct rueda_case *work = &command->work;
    const size_t send_bytes = rueda_case_send_bytes(work);

    release(worker);
    worker->work = *work;
    worker->recv = system->ops->alloc(system, rueda_case_recv_bytes(work),
                                      work->is_shared);
    if (send_bytes != 0)
        worker->send = system->ops->alloc(system, send_bytes, work->is_shared);
    if (worker->recv == NULL || (send_bytes != 0 && worker->send == NULL)) {
        fail(worker, reply);
        return;
    }
    rueda_case_fill(work, system->rank, worker->send, worker->recv);
    if (!system->ops->prepare(system, work, worker->send, worker->recv))
        fail(worker, reply);
}

/* The time of one iteration of a batch. False where the system fails; a wrong
 * answer is recorded in the reply, and the run continues, because the other
 * ranks need this one. */
static bool run_batch(struct rueda_bench_worker *worker, unsigned iterations,
                      struct rueda_reply *reply, double *out_seconds)
{
    struct rueda_system *system = worker->system;
    double start;

    rueda_case_refill(&worker->work, system->rank, worker->recv);
    if (!system->ops->barrier(system))
        return false;
    start = rueda_tool_clock();
    for (unsigned i = 0; i < iterations; i++)
        if (!system->ops->run(system, i))
            return false;
    *out_seconds = (rueda_tool_clock() - start) / iterations;
    /* Others may still be at it, and need the core that a check takes. */
    if (!system->ops->barrier(system))
        return false;
    if (reply->is_ok &&
        !rueda_case_check(&worker->work, system->rank, iterations, worker->recv,
                          reply->words, sizeof(reply->words)))
        reply->is_ok = false;
    return true;
}

/* The last barrier lets every rank finish what others need of it before it
 * blocks in recv(), where it makes no progress. */
static void run(struct rueda_bench_worker *worker,
                const struct rueda_control_command *command,
                struct rueda_reply *reply)
{
    struct rueda_system *system = worker->system;
    bool is_well = true;
    double ignored;

    for (uint32_t i = 0; i < command->warmups && is_well; i++)
        is_well = run_batch(worker, command->iterations, reply, &ignored);
    for (uint32_t i = 0; i < command->batches && is_well; i++) {
        is_well =
            run_batch(worker, command->iterations, reply, &reply->seconds[i]);
        reply->count = i + 1;
    }
    if (!is_well || !system->ops->barrier(system))
        fail(worker, reply);
}

static bool get_copy_buffers(struct rueda_bench_worker *worker)
{
    worker->copy_bytes = rueda_case_bytes(&worker->work);
    if (worker->copy != NULL)
        return true;
    worker->copy = rueda_system_private(worker->system, 2 * worker->copy_bytes);
    if (worker->copy == NULL)
        return false;
    memset(worker->copy, 1, 2 * worker->copy_bytes);
    return true;
}

/* memcpy of the same bytes, on all ranks at the same time. */
static void copy(struct rueda_bench_worker *worker,
                 const struct rueda_control_command *command,
                 struct rueda_reply *reply)
{
    /* Called through a pointer that could change, so that it is called. */
    void *(*volatile call)(void *, const void *, size_t) = memcpy;
    struct rueda_system *system = worker->system;

    if (!get_copy_buffers(worker)) {
        fail(worker, reply);
        return;
    }
    for (uint32_t i = 0; i < command->batches; i++) {
        double start;

        if (!system->ops->barrier(system)) {
            fail(worker, reply);
            return;
        }
        start = rueda_tool_clock();
        for (uint32_t j = 0; j < command->iterations; j++)
            call(worker->copy, worker->copy + worker->copy_bytes,
                 worker->copy_bytes);
        reply->seconds[i] = (rueda_tool_clock() - start) / command->iterations;
    }
    reply->count = command->batches;
    if (!system->ops->barrier(system))
        fail(worker, reply);
}

/* Only ranks 0 and 1 take part, whatever the system: what is measured is the
 * machine. */
static void probe(struct rueda_bench_worker *worker,
                  const struct rueda_control_command *command,
                  struct rueda_reply *reply)
{
    struct rueda_probe_result result;

    if (worker->system->rank > 1)
        return;
    if (!rueda_probe_run(command->path, worker->system->rank, &result,
                         &worker->system->words)) {
        fail(worker, reply);
        return;
    }
    reply->cpu = result.cpu;
    reply->seconds[0] = result.seconds;
    reply->count = 1;
}

/* Carry out one command of the coordinator and fill in the reply. */
void rueda_bench_worker_do(struct rueda_bench_worker *worker,
                           const struct rueda_control_command *command,
                           struct rueda_reply *out_reply)
{
    const double start = rueda_tool_clock();

    memset(out_reply, 0, sizeof(*out_reply));
    out_reply->is_ok = true;
    out_reply->rank = worker->system->rank;
    rueda_placing_apply(worker->system->rank, worker->placing);
    switch (command->kind) {
    case RUEDA_CONTROL_PREPARE:
        prepare(worker, command, out_reply);
        break;
    case RUEDA_CONTROL_RUN:
        run(worker, command, out_reply);
        break;
    case RUEDA_CONTROL_COPY:
        copy(worker, command, out_reply);
        break;
    case RUEDA_CONTROL_PROBE:
        probe(worker, command, out_reply);
        break;
    case RUEDA_CONTROL_QUIT:
        break;
    }
    out_reply->wall = rueda_tool_clock() - start;
}

void rueda_bench_worker_fini(struct rueda_bench_worker *worker)
{
    release(worker);
}
