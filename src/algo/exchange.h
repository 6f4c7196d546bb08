/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exchange: bytes go to one rank while others come from one, in pieces,
 * several in flight. What comes is put in its place or added to own numbers.
 * Part of the state of a task; called like it.
 */
#ifndef RUEDA_ALGO_EXCHANGE_H
#define RUEDA_ALGO_EXCHANGE_H

#include "algo/window.h"

struct rueda_exchange {
    int to;
    const char *out;
    size_t out_bytes;

    int from;
    char *in;
    size_t in_bytes;

    /* NULL: `in` is what comes. Otherwise in = postscale * (own (+) what
     * comes), in the task's arithmetic without its prescale; own may be in. */
    const char *own;
    double postscale;

    struct rueda_window sent;
    struct rueda_window received;
};

/* Nothing to do in either direction; the caller adds what there is. */
void rueda_exchange_begin(struct rueda_exchange *exchange);

/* As for a task. Uses the place's scratch memory if own is not NULL. */
rueda_status rueda_exchange_progress(struct rueda_exchange *exchange,
                                     struct rueda_task *task);

#endif /* RUEDA_ALGO_EXCHANGE_H */
