/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator as a whole: its making, its clock, what happens next. */
#define RUEDA_LOG_TAG "sim"

#include "transport/sim/sim.h"

#include <stdlib.h>

#include "base/log.h"
#include "transport/sim/state.h"

struct rueda_sim_settings
rueda_sim_settings_default(const struct rueda_sim_net *net)
{
    return (struct rueda_sim_settings){
        .net = *net,
        .seed = 1,
        .credit_bytes = (size_t)4 << 20,
        .detect_ns = 1000000,
        .limit_ns = 3000000000,
        .run_limit_ns = RUEDA_SIM_NEVER,
        .run_limit_events = UINT64_MAX,
    };
}

/* ---- Making ----------------------------------------------------------- */

static void init_ranks(struct rueda_sim *sim)
{
    for (int i = 0; i < sim->size; i++) {
        struct rueda_sim_rank *rank = &sim->ranks[i];

        rank->slowness = 1.0;
        rank->meter.is_phantom = sim->settings.is_phantom;
        rank->kernels = *rueda_host_kernels(NULL);
        rank->kernels.meter = &rank->meter;
    }
}

static void init_ways(struct rueda_sim *sim)
{
    const struct rueda_sim_net *net = &sim->settings.net;

    for (int i = 0; i < rueda_sim_net_ways(net); i++) {
        const struct rueda_sim_wire wire = rueda_sim_net_way(net, i);

        sim->ways[i].latency_ns = wire.latency_ns;
        sim->ways[i].jitter_ns = wire.jitter_ns;
        sim->ways[i].ns_per_byte = 1e9 / wire.bytes_per_s;
    }
}

/* A power of two; ranks have few peers, but in an alltoall. */
static size_t bucket_count(size_t size)
{
    size_t count = 64;

    while (count < 16 * size)
        count *= 2;
    return count;
}

static void release(struct rueda_sim *sim)
{
    rueda_sim_queue_fini(&sim->queue);
    free(sim->ready);
    free(sim->buckets);
    free(sim->ways);
    free(sim->ranks);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

rueda_status rueda_sim_open(const struct rueda_sim_settings *settings,
                            struct rueda_sim **out_sim,
                            struct rueda_text *error)
{
    rueda_status status = rueda_sim_net_check(&settings->net, error);
    struct rueda_sim *sim;
    size_t size;

    if (status != RUEDA_OK)
        return status;
    sim = calloc(1, sizeof(*sim));
    if (sim == NULL)
        goto err;
    size = (size_t)rueda_sim_net_ranks(&settings->net);
    sim->settings = *settings;
    sim->size = (int)size;
    sim->dice.state = settings->seed;
    pthread_mutex_init(&sim->lock, NULL);
    sim->ranks = calloc(size, sizeof(*sim->ranks));
    sim->ways =
        calloc((size_t)rueda_sim_net_ways(&settings->net), sizeof(*sim->ways));
    sim->bucket_mask = bucket_count(size) - 1;
    sim->buckets =
        calloc(sim->bucket_mask + 1, sizeof(struct rueda_sim_pair *));
    sim->ready = calloc(2 * size, sizeof(int));
    if (sim->ranks == NULL || sim->ways == NULL || sim->buckets == NULL ||
        sim->ready == NULL)
        goto err_release;
    init_ranks(sim);
    init_ways(sim);
    *out_sim = sim;
    return RUEDA_OK;

err_release:
    release(sim);
err:
    rueda_text_set(error, "no memory for a simulator of %d ranks",
                   rueda_sim_net_ranks(&settings->net));
    return RUEDA_ERR_NOMEM;
}

static void free_pair(struct rueda_sim_pair *pair)
{
    for (int i = 0; i < 2; i++)
        while (pair->ends[i].first != NULL) {
            struct rueda_sim_message *message = pair->ends[i].first;

            pair->ends[i].first = message->next;
            free(message->bytes);
        }
    free(pair);
}

void rueda_sim_close(struct rueda_sim *sim)
{
    while (sim->pairs != NULL) {
        struct rueda_sim_pair *pair = sim->pairs;

        sim->pairs = pair->next;
        free_pair(pair);
    }
    while (sim->blocks != NULL) {
        struct rueda_sim_block *block = sim->blocks;

        sim->blocks = block->next;
        free(block);
    }
    while (sim->troubles != NULL) {
        struct rueda_sim_trouble *trouble = sim->troubles;

        sim->troubles = trouble->next;
        free((void *)trouble->what.is_apart);
        free(trouble);
    }
    release(sim);
}

/* ---- Questions -------------------------------------------------------- */

int rueda_sim_size(const struct rueda_sim *sim)
{
    return sim->size;
}

uint64_t rueda_sim_now(const struct rueda_sim *sim)
{
    return sim->now_ns;
}

uint64_t rueda_sim_events(const struct rueda_sim *sim)
{
    return sim->events;
}

uint64_t rueda_sim_digest(const struct rueda_sim *sim)
{
    return sim->digest;
}

uint64_t rueda_sim_took(const struct rueda_sim *sim)
{
    return sim->ended_ns - sim->began_ns;
}

const struct rueda_device *rueda_sim_device(struct rueda_sim *sim, int rank)
{
    return &sim->ranks[rank].kernels.super;
}

/* ---- Events ----------------------------------------------------------- */

void rueda_sim_push(struct rueda_sim *sim, uint64_t at_ns, enum event_kind kind,
                    void *subject, int number)
{
    const struct rueda_sim_event event = {
        .at_ns = at_ns,
        .kind = (int)kind,
        .number = number,
        .subject = subject,
    };

    if (rueda_sim_queue_push(&sim->queue, event) == RUEDA_OK)
        return;
    if (!sim->is_short_of_memory)
        log_error("no memory for more than %zu events", sim->queue.count);
    sim->is_short_of_memory = true;
}

static void digest(struct rueda_sim *sim, const struct rueda_sim_event *event)
{
    rueda_sim_note(sim, event->at_ns);
    rueda_sim_note(sim, (uint64_t)event->kind << 32 | (uint32_t)event->number);
}

bool rueda_sim_step(struct rueda_sim *sim)
{
    struct rueda_sim_event event;

    if (sim->queue.count == 0)
        return false;
    event = rueda_sim_queue_pop(&sim->queue);
    sim->now_ns = event.at_ns;
    sim->events++;
    digest(sim, &event);
    switch ((enum event_kind)event.kind) {
    case EVENT_HOP:
    case EVENT_SENT:
    case EVENT_HERE:
    case EVENT_GO:
        rueda_sim_message_event(event.subject, (enum event_kind)event.kind);
        break;
    case EVENT_LOST:
        rueda_sim_end_lose(event.subject);
        break;
    case EVENT_WAKE:
        rueda_sim_rank_wake(sim, event.number);
        break;
    case EVENT_ALARM:
        rueda_sim_rank_touch(sim, event.number);
        break;
    case EVENT_FAULT_BEGIN:
    case EVENT_FAULT_END:
    case EVENT_FAULT_LIMIT:
        rueda_sim_trouble_event(sim, event.subject,
                                (enum event_kind)event.kind);
        break;
    }
    return true;
}
