/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is going to happen, earliest first: a binary heap. Events of one time
 * come in the order in which they were put in, so that a run can be repeated.
 * Calls malloc only. One thread.
 */
#ifndef RUEDA_TRANSPORT_SIM_QUEUE_H
#define RUEDA_TRANSPORT_SIM_QUEUE_H

#include <rueda/rueda.h>

struct rueda_sim_event {
    uint64_t at_ns;
    uint64_t order; /* the queue's */
    int kind;
    int number;
    void *subject;
};

/* Zero is an empty queue. */
struct rueda_sim_queue {
    struct rueda_sim_event *events;
    size_t count;
    size_t room;
    uint64_t order;
};

void rueda_sim_queue_fini(struct rueda_sim_queue *queue);

rueda_status rueda_sim_queue_push(struct rueda_sim_queue *queue,
                                  struct rueda_sim_event event);

/* The queue is not empty. */
struct rueda_sim_event rueda_sim_queue_pop(struct rueda_sim_queue *queue);

#endif /* RUEDA_TRANSPORT_SIM_QUEUE_H */
