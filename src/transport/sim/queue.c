/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sim/queue.h"

#include <stdlib.h>

void rueda_sim_queue_fini(struct rueda_sim_queue *queue)
{
    free(queue->events);
    *queue = (struct rueda_sim_queue){.count = 0};
}

static bool is_before(const struct rueda_sim_event *a,
                      const struct rueda_sim_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static rueda_status grow(struct rueda_sim_queue *queue)
{
    const size_t room = queue->room > 0 ? 2 * queue->room : 64;
    struct rueda_sim_event *events =
        realloc(queue->events, room * sizeof(*events));

    if (events == NULL)
        return RUEDA_ERR_NOMEM;
    queue->events = events;
    queue->room = room;
    return RUEDA_OK;
}

rueda_status rueda_sim_queue_push(struct rueda_sim_queue *queue,
                                  struct rueda_sim_event event)
{
    size_t i = queue->count;

    if (queue->count == queue->room && grow(queue) != RUEDA_OK)
        return RUEDA_ERR_NOMEM;
    event.order = queue->order++;
    queue->count++;
    while (i > 0) {
        const size_t parent = (i - 1) / 2;

        if (!is_before(&event, &queue->events[parent]))
            break;
        queue->events[i] = queue->events[parent];
        i = parent;
    }
    queue->events[i] = event;
    return RUEDA_OK;
}

struct rueda_sim_event rueda_sim_queue_pop(struct rueda_sim_queue *queue)
{
    struct rueda_sim_event *events = queue->events;
    const struct rueda_sim_event first = events[0];
    const struct rueda_sim_event moved = events[--queue->count];
    size_t i = 0;

    for (size_t child = 1; child < queue->count; child = 2 * i + 1) {
        if (child + 1 < queue->count &&
            is_before(&events[child + 1], &events[child]))
            child++;
        if (!is_before(&events[child], &moved))
            break;
        events[i] = events[child];
        i = child;
    }
    events[i] = moved;
    return first;
}
