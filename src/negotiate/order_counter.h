/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter: an order source for operations that all members submit in the
 * same order, as the program promises. Each operation is a decision of its own
 * as soon as it is submitted; its index is its place in that order, from 1.
 * Nothing is negotiated, so the counter sends no message and finds no mismatch.
 */
#ifndef RUEDA_NEGOTIATE_ORDER_COUNTER_H
#define RUEDA_NEGOTIATE_ORDER_COUNTER_H

#include <stddef.h>

#include "negotiate/order.h"

struct rueda_order_counter {
    struct rueda_decision decision;    /* the oldest operation, ... */
    struct rueda_decision_item oldest; /* ... once it was asked for */
    struct rueda_decision_item *items; /* [room], a ring */
    size_t room;                       /* a power of 2 */
    size_t first;                      /* of the ring: the oldest */
    size_t count;
    bool is_ended;
};

/* For a process set of so many members. RUEDA_ERR_NOMEM. */
rueda_status rueda_order_counter_init(struct rueda_order_counter *self,
                                      int members);

/* A zeroed one is allowed. */
void rueda_order_counter_fini(struct rueda_order_counter *self);

/* It as a lane's order source. Borrows it. submit() fails with RUEDA_ERR_NOMEM
 * alone: where more operations wait than ever before, it needs memory. */
struct rueda_order rueda_order_counter(struct rueda_order_counter *self);

#endif /* RUEDA_NEGOTIATE_ORDER_COUNTER_H */
