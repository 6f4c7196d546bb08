/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's training loop. Its computation is an accelerator's: it costs time,
 * and none of the rank's thread, which drives the lanes meanwhile.
 *
 *     began       forward        backward
 *       |----------------|--g--g---g----g--g|           computation
 *                           submit ...                   alarms
 *                              [=== allreduce ===]...|   until all have ended
 *                                                    next step
 */
#include "predict/training_rank.h"

#include <stdlib.h>
#include <string.h>

#include "api/submit.h"

/* ---- A step ----------------------------------------------------------- */

static const struct rueda_model *model_of(const struct training_run *run)
{
    return run->training->model;
}

/* Whatever the order of events, a rank's step has the same time: it is drawn
 * from seed, rank and step, and not from a common row of random numbers. */
static double compute_time(const struct training_run *run, int index, int step)
{
    const struct rueda_training *training = run->training;
    struct rueda_dice dice = {
        rueda_hash_mix(training->seed * 0x9e3779b97f4a7c15u +
                       (uint64_t)index * 1000003u + (uint64_t)step)};
    const double roll =
        (double)rueda_dice_below(&dice, 2000001) / 1000000.0 - 1.0;
    double ns = training->compute_ns * (1.0 + training->jitter * roll);

    for (int i = 0; i < training->straggler_count; i++)
        if (training->stragglers[i].rank == index)
            ns *= training->stragglers[i].factor;
    return ns;
}

/* When the step before it has ended: an optimizer takes no time here. */
static void begin_step(struct training_run *run, int index)
{
    struct training_rank *rank = &run->ranks[index];

    rank->submitted = 0;
    rank->ended = 0;
    rank->began_ns = rueda_sim_now(run->sim);
    rank->compute_ns = compute_time(run, index, rank->step);
}

static uint64_t ready_at(const struct training_run *run, int index, int which)
{
    const struct training_rank *rank = &run->ranks[index];
    const struct rueda_model_gradient *gradient =
        &model_of(run)->gradients[which];

    return rank->began_ns +
           (uint64_t)(rank->compute_ns * gradient->ready + 0.5);
}

static uint64_t compute_end(const struct training_run *run, int index)
{
    const struct training_rank *rank = &run->ranks[index];

    return rank->began_ns + (uint64_t)(rank->compute_ns + 0.5);
}

/* As rueda_submit() does, but that no name is claimed: a step's have ended
 * before the next one begins. */
static rueda_status submit(struct training_run *run, int index, int which)
{
    const struct rueda_model_gradient *gradient =
        &model_of(run)->gradients[which];
    struct training_rank *rank = &run->ranks[index];
    struct rueda_ticket *ticket = &rank->ticket[which];
    struct rueda_request *request = &ticket->request;
    rueda_status status;

    rueda_op_init(&ticket->op);
    rueda_ticket_init(ticket, RUEDA_ALLREDUCE);
    status = rueda_submission_set_name(ticket, gradient->name);
    if (status != RUEDA_OK)
        return status;
    request->dtype = RUEDA_FLOAT32;
    request->reduction = RUEDA_AVERAGE;
    request->compression = run->training->compression;
    request->dims = 1;
    request->shape[0] = gradient->count;
    ticket->member_count = run->size;
    ticket->send = run->gradients;
    ticket->recv = run->gradients;
    rueda_op_push(&rank->engine.lanes.arrived, &ticket->op);
    rank->submitted++;
    return RUEDA_OK;
}

/* Submit all that the backward pass has made by now, and ask for a turn when it
 * makes the next one, or ends. */
static rueda_status submit_ready(struct training_run *run, int index)
{
    struct training_rank *rank = &run->ranks[index];
    const uint64_t now = rueda_sim_now(run->sim);
    uint64_t next;

    while (rank->submitted < model_of(run)->gradient_count &&
           ready_at(run, index, rank->submitted) <= now) {
        const rueda_status status = submit(run, index, rank->submitted);

        if (status != RUEDA_OK)
            return status;
    }
    next = rank->submitted < model_of(run)->gradient_count
               ? ready_at(run, index, rank->submitted)
               : compute_end(run, index);
    if (next > now && next != rank->alarm_ns) {
        rank->alarm_ns = next;
        rueda_sim_alarm(run->sim, index, next);
    }
    return RUEDA_OK;
}

static void drop(struct rueda_ticket *ticket)
{
    if (!ticket->op.has_own)
        return;
    free(ticket->long_name);
    free(ticket->error);
    ticket->long_name = NULL;
    ticket->error = NULL;
    ticket->op.has_own = false;
}

/* What the engine's thread would deliver. The first failure ends the rank. */
static rueda_status take_ended(struct training_run *run, int index)
{
    struct training_rank *rank = &run->ranks[index];
    struct rueda_ticket *ticket;

    while ((ticket = rueda_lanes_pop_ended(&rank->engine.lanes)) != NULL) {
        const rueda_status outcome = ticket->op.outcome;

        drop(ticket);
        rank->ended++;
        if (outcome < 0)
            return outcome;
    }
    return RUEDA_OK;
}

static bool has_ended_step(const struct training_run *run, int index)
{
    return run->ranks[index].ended == model_of(run)->gradient_count &&
           rueda_sim_now(run->sim) >= compute_end(run, index);
}

static void end_step(struct training_run *run, int index)
{
    struct training_rank *rank = &run->ranks[index];

    rank->end_ns = rueda_sim_now(run->sim);
    if (rank->step == 0)
        rank->first_end_ns = rank->end_ns;
    rank->step++;
    if (rank->step < run->training->steps)
        begin_step(run, index);
}

/* A turn goes on while anything moves, as nothing else would give this rank
 * another one at the same virtual time. */
rueda_status rueda_training_rank_turn(void *arg, int index)
{
    struct training_run *run = arg;
    struct training_rank *rank = &run->ranks[index];
    struct rueda_lanes *lanes = &rank->engine.lanes;
    struct rueda_text words = {""};
    rueda_status status;
    bool has_moved;

    do {
        if (rank->step < run->training->steps) {
            status = submit_ready(run, index);
            if (status < 0)
                return status;
        }
        status = rueda_lanes_turn(lanes, true, &words);
        if (status < 0)
            return status;
        has_moved = status == RUEDA_OK;
        status = take_ended(run, index);
        if (status < 0)
            return status;
        if (rank->step < run->training->steps && has_ended_step(run, index)) {
            end_step(run, index);
            has_moved = true;
        }
    } while (has_moved);
    if (rank->step == run->training->steps && !rueda_lanes_are_busy(lanes))
        return RUEDA_OK;
    return rueda_sim_lost_peer(run->sim, index) >= 0 ? RUEDA_ERR_PEER_LOST
                                                     : RUEDA_IN_PROGRESS;
}

rueda_status rueda_training_rank_start(void *arg, int index)
{
    begin_step(arg, index);
    return rueda_training_rank_turn(arg, index);
}

void rueda_training_rank_finish(void *arg, int index, rueda_status status)
{
    struct training_run *run = arg;

    run->ranks[index].status = status;
    if (status < 0)
        rueda_training_rank_leave(run, index, status);
}

/* ---- Life ------------------------------------------------------------- */

/* As a rank's formation is, but for the simulator's messages: members of one
 * host know each other's places, and the mesh connects through the simulator.
 */
static rueda_status form(struct training_run *run, int index)
{
    struct training_rank *rank = &run->ranks[index];
    const struct rueda_sim_net *net = &run->training->net;
    struct rueda_formation *formation =
        rueda_formation_new(&rank->job, index, run->size);

    if (formation == NULL)
        return RUEDA_ERR_NOMEM;
    rank->job.formation = formation;
    formation->segment = rank->segment;
    if (net->hosts > 1)
        formation->topology = &run->topology;
    for (int peer = 0; peer < run->size; peer++)
        formation->members[peer] =
            rueda_sim_net_host(net, peer) == rueda_sim_net_host(net, index)
                ? peer % net->ranks_per_host
                : -1;
    return rueda_mesh_init(&formation->mesh, index, run->size,
                           rueda_sim_connect, run->sim);
}

static int64_t virtual_now(void *arg)
{
    return (int64_t)rueda_sim_now(arg);
}

rueda_status rueda_training_rank_open(struct training_run *run, int index,
                                      struct rueda_text *error)
{
    struct training_rank *rank = &run->ranks[index];
    struct rueda_engine *engine = &rank->engine;
    const size_t count = (size_t)model_of(run)->gradient_count;
    rueda_status status;

    rank->status = RUEDA_IN_PROGRESS;
    rank->segment = run->segments[index];
    rank->job.segment = rank->segment;
    rank->ticket = aligned_alloc(_Alignof(struct rueda_ticket),
                                 count * sizeof(*rank->ticket));
    if (rank->ticket == NULL)
        goto err;
    memset(rank->ticket, 0, count * sizeof(*rank->ticket));
    status = form(run, index);
    if (status != RUEDA_OK)
        goto err_formation;
    if (rueda_lanes_init(&engine->lanes, &rank->job, &run->training->select,
                         rueda_sim_device(run->sim, index)) != RUEDA_OK)
        goto err_formation;
    engine->job = &rank->job;
    engine->formation = rank->job.formation;
    rueda_terms_init(engine);
    engine->lanes.numbers = &engine->numbers;
    engine->lanes.now_ns = virtual_now;
    engine->lanes.now_arg = run->sim;
    rank->is_open = true;
    return RUEDA_OK;

err_formation:
    if (rank->job.formation != NULL) {
        rank->job.formation->topology = NULL;
        rueda_formation_release(rank->job.formation);
    }
    free(rank->ticket);
    rank->ticket = NULL;
err:
    rueda_text_set(error, "no memory for rank %d of %d", index, run->size);
    return RUEDA_ERR_NOMEM;
}

void rueda_training_rank_leave(struct training_run *run, int index,
                               rueda_status status)
{
    struct training_rank *rank = &run->ranks[index];
    struct rueda_lanes *lanes = &rank->engine.lanes;
    struct rueda_formation *formation = rank->job.formation;

    if (!rank->is_open)
        return;
    rank->is_open = false;
    rueda_mesh_cancel(&formation->mesh, status);
    rueda_lanes_end(lanes, status);
    rueda_lanes_fini(lanes);
    for (int i = 0; i < model_of(run)->gradient_count; i++)
        drop(&rank->ticket[i]);
    free(rank->ticket);
    formation->topology = NULL; /* the run's */
    rueda_formation_release(formation);
    rueda_numbers_fini(&rank->engine.numbers);
    rueda_sim_leave(run->sim, index);
}
