/* SPDX-License-Identifier: Apache-2.0 */
/* Bad days: deaths, slow ranks, links and hosts that cannot be reached. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "transport/sim/state.h"

static bool is_outage(const struct rueda_sim_fault *fault)
{
    return fault->kind == RUEDA_SIM_UNPLUG ||
           fault->kind == RUEDA_SIM_PARTITION;
}

static bool is_between(const struct rueda_sim *sim,
                       const struct rueda_sim_fault *outage, int rank_a,
                       int rank_b)
{
    const struct rueda_sim_net *net = &sim->settings.net;

    if (outage->kind == RUEDA_SIM_UNPLUG)
        return rueda_sim_net_uses(net, outage->link, outage->index, rank_a,
                                  rank_b);
    return outage->is_apart[rueda_sim_net_host(net, rank_a)] !=
           outage->is_apart[rueda_sim_net_host(net, rank_b)];
}

uint64_t rueda_sim_trouble_until(const struct rueda_sim *sim, int rank_a,
                                 int rank_b)
{
    const struct rueda_sim_trouble *trouble = sim->troubles;
    uint64_t until = sim->now_ns;

    for (; trouble != NULL; trouble = trouble->next) {
        const struct rueda_sim_fault *what = &trouble->what;

        if (is_outage(what) && what->from_ns <= sim->now_ns &&
            what->until_ns > until && is_between(sim, what, rank_a, rank_b))
            until = what->until_ns;
    }
    return until;
}

void rueda_sim_trouble_meet(struct rueda_sim *sim, struct rueda_sim_pair *pair)
{
    const uint64_t limit = sim->now_ns + sim->settings.limit_ns;
    const bool is_cut = rueda_sim_trouble_until(sim, pair->ends[0].rank,
                                                pair->ends[1].rank) > limit;

    for (int i = 0; i < 2; i++) {
        struct rueda_sim_end *end = &pair->ends[i];

        if (sim->ranks[end->other->rank].is_dead)
            rueda_sim_push(sim, sim->now_ns + sim->settings.detect_ns,
                           EVENT_LOST, end, end->rank);
        if (is_cut)
            rueda_sim_push(sim, limit, EVENT_LOST, end, end->rank);
    }
}

static void kill_rank(struct rueda_sim *sim, int number)
{
    struct rueda_sim_rank *rank = &sim->ranks[number];
    struct rueda_sim_end *end = rank->ends;

    if (rank->is_dead)
        return;
    rank->is_dead = true;
    if (rank->is_running)
        rueda_sim_rank_end(sim, number, RUEDA_ERR_CLOSED);
    for (; end != NULL; end = end->next)
        rueda_sim_push(sim, sim->now_ns + sim->settings.detect_ns, EVENT_LOST,
                       end->other, end->other->rank);
}

static void give_up(struct rueda_sim *sim, const struct rueda_sim_fault *outage)
{
    struct rueda_sim_pair *pair = sim->pairs;

    for (; pair != NULL; pair = pair->next)
        if (is_between(sim, outage, pair->ends[0].rank, pair->ends[1].rank)) {
            rueda_sim_end_lose(&pair->ends[0]);
            rueda_sim_end_lose(&pair->ends[1]);
        }
}

void rueda_sim_trouble_event(struct rueda_sim *sim,
                             struct rueda_sim_trouble *trouble,
                             enum event_kind kind)
{
    const struct rueda_sim_fault *what = &trouble->what;

    if (kind == EVENT_FAULT_LIMIT)
        give_up(sim, what);
    else if (what->kind == RUEDA_SIM_KILL)
        kill_rank(sim, what->rank);
    else if (what->kind == RUEDA_SIM_SLOW && kind == EVENT_FAULT_BEGIN)
        sim->ranks[what->rank].slowness *= what->factor;
    else if (what->kind == RUEDA_SIM_SLOW)
        sim->ranks[what->rank].slowness /= what->factor;
}

/* ---- Adding ----------------------------------------------------------- */

static bool is_possible(const struct rueda_sim *sim,
                        const struct rueda_sim_fault *fault)
{
    const bool is_rank = fault->rank >= 0 && fault->rank < sim->size;

    if (fault->kind != RUEDA_SIM_KILL && fault->until_ns < fault->from_ns)
        return false;
    switch (fault->kind) {
    case RUEDA_SIM_KILL:
        return is_rank;
    case RUEDA_SIM_SLOW:
        return is_rank && isfinite(fault->factor) && fault->factor > 0.0;
    case RUEDA_SIM_UNPLUG:
        return fault->index >= 0 &&
               fault->index <
                   rueda_sim_net_links(&sim->settings.net, fault->link);
    case RUEDA_SIM_PARTITION:
        return fault->is_apart != NULL;
    }
    return false;
}

static void schedule(struct rueda_sim *sim, struct rueda_sim_trouble *trouble)
{
    const struct rueda_sim_fault *what = &trouble->what;
    const uint64_t limit = sim->settings.limit_ns;

    rueda_sim_push(sim, what->from_ns, EVENT_FAULT_BEGIN, trouble,
                   (int)what->kind);
    if (what->kind == RUEDA_SIM_SLOW && what->until_ns != RUEDA_SIM_NEVER)
        rueda_sim_push(sim, what->until_ns, EVENT_FAULT_END, trouble,
                       (int)what->kind);
    if (is_outage(what) && what->until_ns - what->from_ns > limit)
        rueda_sim_push(sim, what->from_ns + limit, EVENT_FAULT_LIMIT, trouble,
                       (int)what->kind);
}

rueda_status rueda_sim_add_fault(struct rueda_sim *sim,
                                 const struct rueda_sim_fault *fault)
{
    const size_t hosts = (size_t)sim->settings.net.hosts;
    struct rueda_sim_trouble *trouble;
    bool *is_apart = NULL;

    if (!is_possible(sim, fault))
        return RUEDA_ERR_INVALID;
    trouble = calloc(1, sizeof(*trouble));
    if (trouble == NULL)
        return RUEDA_ERR_NOMEM;
    trouble->what = *fault;
    if (fault->kind == RUEDA_SIM_PARTITION) {
        is_apart = malloc(hosts * sizeof(bool));
        if (is_apart == NULL) {
            free(trouble);
            return RUEDA_ERR_NOMEM;
        }
        memcpy(is_apart, fault->is_apart, hosts * sizeof(bool));
    }
    trouble->what.is_apart = is_apart;
    if (trouble->what.from_ns < sim->now_ns)
        trouble->what.from_ns = sim->now_ns;
    if (trouble->what.until_ns < trouble->what.from_ns)
        trouble->what.until_ns = trouble->what.from_ns;
    trouble->next = sim->troubles;
    sim->troubles = trouble;
    schedule(sim, trouble);
    return RUEDA_OK;
}
