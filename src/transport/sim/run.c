/* SPDX-License-Identifier: Apache-2.0 */
/* The driver: which rank gets a turn when, and what its work costs. */
#include "transport/sim/state.h"

#include <string.h>

#define RANKS_TOLD 8 /* in the words about a run that stands still */

/* ---- One rank --------------------------------------------------------- */

void rueda_sim_rank_charge(struct rueda_sim *sim, int rank, int messages)
{
    const struct rueda_sim_settings *settings = &sim->settings;
    struct rueda_sim_rank *r = &sim->ranks[rank];
    const uint64_t bytes = r->meter.bytes - r->charged;
    double ns = (double)settings->overhead_ns * messages;

    r->charged = r->meter.bytes;
    if (settings->work_bytes_per_s > 0.0)
        ns += (double)bytes * 1e9 / settings->work_bytes_per_s;
    if (ns <= 0.0)
        return;
    if (r->busy_ns < sim->now_ns)
        r->busy_ns = sim->now_ns;
    r->busy_ns += (uint64_t)(ns * r->slowness + 0.5);
}

static void get_ready(struct rueda_sim *sim, int rank)
{
    struct rueda_sim_rank *r = &sim->ranks[rank];

    if (r->busy_ns > sim->now_ns) {
        r->turn = TURN_LATER;
        rueda_sim_push(sim, r->busy_ns, EVENT_WAKE, NULL, rank);
    } else {
        r->turn = TURN_NOW;
        sim->ready[sim->ready_count++] = rank;
    }
}

void rueda_sim_rank_touch(struct rueda_sim *sim, int rank)
{
    if (sim->ranks[rank].is_running && sim->ranks[rank].turn == TURN_NONE)
        get_ready(sim, rank);
}

void rueda_sim_spend(struct rueda_sim *sim, int rank, uint64_t ns)
{
    struct rueda_sim_rank *r = &sim->ranks[rank];

    if (r->busy_ns < sim->now_ns)
        r->busy_ns = sim->now_ns;
    r->busy_ns += (uint64_t)((double)ns * r->slowness + 0.5);
    rueda_sim_rank_touch(sim, rank);
}

void rueda_sim_alarm(struct rueda_sim *sim, int rank, uint64_t at_ns)
{
    rueda_sim_push(sim, at_ns > sim->now_ns ? at_ns : sim->now_ns, EVENT_ALARM,
                   NULL, rank);
}

void rueda_sim_rank_wake(struct rueda_sim *sim, int rank)
{
    if (sim->ranks[rank].is_running && sim->ranks[rank].turn == TURN_LATER)
        get_ready(sim, rank);
}

void rueda_sim_rank_end(struct rueda_sim *sim, int rank, rueda_status status)
{
    struct rueda_sim_rank *r = &sim->ranks[rank];
    const uint64_t end =
        r->busy_ns > sim->now_ns && !r->is_dead ? r->busy_ns : sim->now_ns;

    r->is_running = false;
    r->turn = TURN_NONE;
    sim->running--;
    if (sim->ended_ns < end)
        sim->ended_ns = end;
    rueda_sim_note(sim, (uint64_t)(uint32_t)rank << 32 | (uint32_t)status);
    sim->program->finish(sim->program->arg, rank, status);
}

static void give_turn(struct rueda_sim *sim, int rank)
{
    const struct rueda_sim_program *program = sim->program;
    struct rueda_sim_rank *r = &sim->ranks[rank];
    rueda_status status;

    if (r->turn != TURN_NOW)
        return;
    r->turn = TURN_NONE;
    if (r->has_started) {
        status = program->turn(program->arg, rank);
    } else {
        r->has_started = true;
        status = program->start(program->arg, rank);
    }
    rueda_sim_rank_charge(sim, rank, 0);
    if (status != RUEDA_IN_PROGRESS)
        rueda_sim_rank_end(sim, rank, status);
}

/* ---- Ranks that wait for each other ----------------------------------- */

static bool is_receiving(const struct rueda_sim_end *end)
{
    const struct rueda_sim_message *message = end->other->first;

    while (message != NULL && message->recv == NULL)
        message = message->next;
    return end->recvs.head != NULL || message != NULL;
}

static bool is_sending(const struct rueda_sim_end *end)
{
    const struct rueda_sim_message *message = end->first;

    while (message != NULL && message->send == NULL)
        message = message->next;
    return message != NULL;
}

static void tell_rank(const struct rueda_sim *sim, int rank,
                      struct rueda_text *why)
{
    const struct rueda_sim_end *end = sim->ranks[rank].ends;
    const char *comma = "";

    rueda_text_add(why, "; rank %d waits for ", rank);
    for (; end != NULL; end = end->next) {
        const int peer = end->super.peer;

        if (!is_receiving(end) && !is_sending(end))
            continue;
        rueda_text_add(why, "%s%d (to %s%s)", comma, peer,
                       is_receiving(end) ? "receive" : "send",
                       sim->ranks[peer].is_running ? "" : "; it has ended");
        comma = ", ";
    }
    if (*comma == '\0')
        rueda_text_add(why, "no rank");
}

static void tell(const struct rueda_sim *sim, const char *what,
                 struct rueda_text *why)
{
    int told = 0;

    rueda_text_set(why, "%s after %.6f s, %d of %d ranks are not done", what,
                   (double)(sim->now_ns - sim->began_ns) / 1e9, sim->running,
                   sim->size);
    for (int i = 0; i < sim->size && told < RANKS_TOLD; i++)
        if (sim->ranks[i].is_running) {
            tell_rank(sim, i, why);
            told++;
        }
    if (told < sim->running)
        rueda_text_add(why, "; and %d more", sim->running - told);
}

/* ---- The run ---------------------------------------------------------- */

/* All that are ready now; a rank may become so again by its own turn. */
static void give_turns(struct rueda_sim *sim)
{
    const int count = sim->ready_count;

    for (int i = 0; i < count; i++)
        give_turn(sim, sim->ready[i]);
    sim->ready_count -= count;
    memmove(sim->ready, sim->ready + count,
            (size_t)sim->ready_count * sizeof(int));
}

/* Why the run cannot go on, or NULL. */
static const char *next_moment(struct rueda_sim *sim, uint64_t first_event)
{
    const struct rueda_sim_queue *queue = &sim->queue;
    uint64_t moment;

    if (sim->is_short_of_memory)
        return "no memory for events:";
    if (queue->count == 0)
        return "nothing is left to happen:";
    if (sim->events - first_event >= sim->settings.run_limit_events)
        return "too many events:";
    moment = queue->events[0].at_ns;
    if (moment - sim->began_ns > sim->settings.run_limit_ns)
        return "too much time has passed:";
    while (queue->count > 0 && queue->events[0].at_ns == moment)
        rueda_sim_step(sim);
    return NULL;
}

static void start_ranks(struct rueda_sim *sim)
{
    sim->running = 0;
    sim->ready_count = 0;
    sim->began_ns = sim->now_ns;
    sim->ended_ns = sim->now_ns;
    for (int i = 0; i < sim->size; i++) {
        struct rueda_sim_rank *rank = &sim->ranks[i];
        const uint64_t skew =
            rueda_dice_below(&sim->dice, sim->settings.skew_ns + 1);

        if (rank->is_dead || rank->is_gone)
            continue;
        rank->is_running = true;
        rank->has_started = false;
        rank->turn = TURN_LATER;
        sim->running++;
        rueda_sim_push(sim, sim->now_ns + skew, EVENT_WAKE, NULL, i);
    }
}

rueda_status rueda_sim_run(struct rueda_sim *sim,
                           const struct rueda_sim_program *program,
                           struct rueda_text *why)
{
    const uint64_t first_event = sim->events;
    const char *obstacle = NULL;

    sim->program = program;
    start_ranks(sim);
    while (sim->running > 0 && obstacle == NULL) {
        if (sim->ready_count > 0)
            give_turns(sim);
        else
            obstacle = next_moment(sim, first_event);
    }
    if (obstacle != NULL)
        tell(sim, obstacle, why);
    for (int i = 0; i < sim->size; i++)
        if (sim->ranks[i].is_running)
            rueda_sim_rank_end(sim, i, RUEDA_ERR_TIMEOUT);
    sim->program = NULL;
    return obstacle == NULL ? RUEDA_OK : RUEDA_ERR_TIMEOUT;
}
