/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of the simulator: its network, memory that all ranks share and none of
 * them touches, a rank for each place (training_rank.c), faults, and the sums
 * of what came out.
 */
#include "predict/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/memory.h"
#include "predict/bound.h"
#include "predict/training_rank.h"

#define CACHE_CAPACITY 1024

/* Of a rank, for each message; and how fast a core adds pieces of 32 KiB, as
 * measured on an EPYC with AVX-512 (docs/scaling.md). */
#define OVERHEAD_NS      2000
#define WORK_BYTES_PER_S 24e9

void rueda_training_default(struct rueda_training *training,
                            const struct rueda_model *model,
                            const struct rueda_sim_net *net)
{
    *training = (struct rueda_training){
        .model = model,
        .net = *net,
        .compute_ns = model->compute_ns,
        .steps = 2,
        .seed = 1,
        .fusion_bytes = (size_t)16 << 20,
        .overhead_ns = OVERHEAD_NS,
        .work_bytes_per_s = WORK_BYTES_PER_S,
    };
    rueda_select_init(&training->select);
}

/* ---- Life ------------------------------------------------------------- */

/* Room for the largest gradient: all gradients of all ranks are at the same
 * addresses, as no byte of them is ever touched. */
static size_t most_elements(const struct rueda_model *model)
{
    size_t most = 1;

    for (int i = 0; i < model->gradient_count; i++)
        if (model->gradients[i].count > most)
            most = model->gradients[i].count;
    return most;
}

/* Ranks fill one host after another, as ruedarun places them. */
static rueda_status place_ranks(struct training_run *run)
{
    const struct rueda_sim_net *net = &run->training->net;
    struct rueda_topology *topology = &run->topology;

    topology->size = run->size;
    topology->host_count = net->hosts;
    topology->is_homogeneous = true;
    topology->rows = calloc((size_t)run->size, sizeof(*topology->rows));
    if (topology->rows == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < run->size; i++) {
        topology->rows[i].host = rueda_sim_net_host(net, i);
        topology->rows[i].index = i % net->ranks_per_host;
    }
    return RUEDA_OK;
}

/* A segment for as many ranks as one may have: lanes take their slabs from it,
 * of which no page is ever touched. */
static rueda_status open_segments(struct training_run *run,
                                  struct rueda_text *error)
{
    for (int at = 0; at < run->size; at += RUEDA_SEGMENT_MAX) {
        const int left = run->size - at;
        const rueda_status status = rueda_segment_threads(
            left < RUEDA_SEGMENT_MAX ? left : RUEDA_SEGMENT_MAX,
            &run->segments[at], error);

        if (status != RUEDA_OK)
            return status;
        run->segments[at]->common->fusion_bytes = run->training->fusion_bytes;
        run->segments[at]->common->cache_capacity = CACHE_CAPACITY;
    }
    return RUEDA_OK;
}

/* After any part of open_run(): what was not made is NULL. */
static void close_run(struct training_run *run)
{
    for (int i = 0; i < run->size && run->ranks != NULL; i++)
        rueda_training_rank_leave(run, i, RUEDA_ERR_CLOSED);
    for (int i = 0; i < run->size && run->segments != NULL; i++)
        rueda_segment_close(run->segments[i]);
    if (run->sim != NULL)
        rueda_sim_close(run->sim);
    if (run->gradients != NULL)
        rueda_memory_unmap(run->gradients, run->bytes);
    free(run->topology.rows);
    free(run->segments);
    free(run->ranks);
}

static rueda_status open_sim(struct training_run *run, struct rueda_text *error)
{
    const struct rueda_training *training = run->training;
    struct rueda_sim_settings settings =
        rueda_sim_settings_default(&training->net);

    settings.is_phantom = true;
    settings.seed = training->seed;
    settings.overhead_ns = training->overhead_ns;
    settings.work_bytes_per_s = training->work_bytes_per_s;
    return rueda_sim_open(&settings, &run->sim, error);
}

static rueda_status open_run(struct training_run *run, struct rueda_text *error)
{
    const size_t size = (size_t)run->size;
    rueda_status status = open_sim(run, error);

    if (status != RUEDA_OK)
        return status;
    run->bytes = most_elements(run->training->model) * sizeof(float);
    run->gradients = rueda_memory_map_private(run->bytes);
    run->segments = calloc(size, sizeof(struct rueda_segment *));
    run->ranks = aligned_alloc(_Alignof(struct training_rank),
                               size * sizeof(*run->ranks));
    if (run->ranks != NULL)
        memset(run->ranks, 0, size * sizeof(*run->ranks));
    if (run->gradients == NULL || run->segments == NULL || run->ranks == NULL ||
        place_ranks(run) != RUEDA_OK) {
        rueda_text_set(error, "no memory for %d ranks", run->size);
        return RUEDA_ERR_NOMEM;
    }
    status = open_segments(run, error);
    for (int i = 0; i < run->size && status == RUEDA_OK; i++)
        status = rueda_training_rank_open(run, i, error);
    return status;
}

/* ---- Faults ----------------------------------------------------------- */

/* The same faults are tried with each number of ranks, so some of them are of
 * ranks or hosts that a smaller part of the cluster does not have. */
static bool is_there(const struct training_run *run,
                     const struct rueda_sim_fault *fault)
{
    return fault->kind == RUEDA_SIM_UNPLUG
               ? fault->index <
                     rueda_sim_net_links(&run->training->net, fault->link)
               : fault->rank < run->size;
}

static rueda_status add_faults(struct training_run *run,
                               struct rueda_text *error)
{
    const struct rueda_training *training = run->training;

    for (int i = 0; i < training->fault_count; i++) {
        const struct rueda_sim_fault *fault = &training->faults[i];

        if (is_there(run, fault) &&
            rueda_sim_add_fault(run->sim, fault) != RUEDA_OK) {
            rueda_text_set(error, "fault %d cannot be", i);
            return RUEDA_ERR_INVALID;
        }
    }
    return RUEDA_OK;
}

/* ---- The run ---------------------------------------------------------- */

/* Of an element between hosts, where compression halves what is sent. */
static size_t wire_bytes(const struct rueda_training *training)
{
    return training->compression == RUEDA_COMPRESS_NONE ? sizeof(float) : 2;
}

/* A step of all is over when the last rank has ended it. The first step
 * negotiates the names and is not in the mean. A rank that died (CLOSED) is not
 * counted as failed; those that ended because of it are. */
static void sum_up(const struct training_run *run,
                   struct rueda_training_result *out)
{
    const struct rueda_training *training = run->training;
    uint64_t first = 0;
    uint64_t last = 0;

    for (int i = 0; i < run->size; i++) {
        const struct training_rank *rank = &run->ranks[i];

        if (rank->first_end_ns > first)
            first = rank->first_end_ns;
        if (rank->end_ns > last)
            last = rank->end_ns;
        if (rank->status != RUEDA_OK) {
            out->status = rank->status == RUEDA_ERR_CLOSED ? RUEDA_ERR_PEER_LOST
                                                           : rank->status;
            out->failed += rank->status != RUEDA_ERR_CLOSED;
        }
    }
    out->first_ns = (double)first;
    out->step_ns = (double)(last - first) / (training->steps - 1);
    out->bound_ns =
        rueda_bound_ns(training->model, &training->net, training->compute_ns,
                       (double)wire_bytes(training));
    out->over_ns = (double)rueda_sim_took(run->sim);
    out->digest = rueda_sim_digest(run->sim);
    out->events = rueda_sim_events(run->sim);
}

rueda_status rueda_training_run(const struct rueda_training *training,
                                struct rueda_training_result *out,
                                struct rueda_text *error)
{
    struct rueda_training_result result = {.status = RUEDA_OK};
    struct training_run run = {
        .training = training,
        .size = rueda_sim_net_ranks(&training->net),
    };
    const struct rueda_sim_program program = {
        .arg = &run,
        .start = rueda_training_rank_start,
        .turn = rueda_training_rank_turn,
        .finish = rueda_training_rank_finish,
    };
    rueda_status status;

    if (training->steps < 2 || !(training->compute_ns >= 0.0)) {
        rueda_text_set(error, "a training has two steps or more, and its "
                              "computation takes some time");
        return RUEDA_ERR_INVALID;
    }
    status = open_run(&run, error);
    if (status == RUEDA_OK)
        status = add_faults(&run, error);
    if (status == RUEDA_OK) {
        rueda_sim_run(run.sim, &program, &result.words);
        sum_up(&run, &result);
        *out = result;
    }
    close_run(&run);
    return status;
}
