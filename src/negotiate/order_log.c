/* SPDX-License-Identifier: Apache-2.0 */
/* The log as an order source: the negotiator's functions in a table. */
#include "negotiate/negotiator.h"

static rueda_status submit(void *self, const struct rueda_request *request,
                           void *mine)
{
    return rueda_negotiator_submit(self, request, mine);
}

static rueda_status turn(void *self, struct rueda_text *error)
{
    return rueda_negotiator_turn(self, error);
}

static const struct rueda_decision *next(void *self)
{
    return rueda_negotiator_next(self);
}

static void done(void *self)
{
    rueda_negotiator_done(self);
}

static uint64_t latest(const void *self)
{
    return rueda_negotiator_latest(self);
}

static void end(void *self)
{
    rueda_negotiator_end(self);
}

static bool is_over(const void *self)
{
    return rueda_negotiator_is_over(self);
}

static bool is_sending(const void *self)
{
    return rueda_negotiator_is_sending(self);
}

static int64_t due_ns(const void *self)
{
    return rueda_negotiator_due_ns(self);
}

struct rueda_order rueda_order_log(struct rueda_negotiator *self)
{
    static const struct rueda_order_ops ops = {
        .name = "log",
        .submit = submit,
        .turn = turn,
        .next = next,
        .done = done,
        .latest = latest,
        .end = end,
        .is_over = is_over,
        .is_sending = is_sending,
        .due_ns = due_ns,
    };

    return (struct rueda_order){&ops, self};
}
