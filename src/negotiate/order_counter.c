/* SPDX-License-Identifier: Apache-2.0 */
#include "negotiate/order_counter.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16

static struct rueda_decision_item *item_at(struct rueda_order_counter *self,
                                           size_t i)
{
    return &self->items[(self->first + i) & (self->room - 1)];
}

rueda_status rueda_order_counter_init(struct rueda_order_counter *self,
                                      int members)
{
    *self = (struct rueda_order_counter){
        .decision = {.kind = RUEDA_DECIDED_RUN,
                     .index = 1,
                     .live = members,
                     .count = 1},
        .items = calloc(FIRST_ROOM, sizeof(struct rueda_decision_item)),
        .room = FIRST_ROOM,
    };
    return self->items != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

void rueda_order_counter_fini(struct rueda_order_counter *self)
{
    free(self->items);
    self->items = NULL;
}

/* Twice as many, the oldest first. */
static rueda_status grow(struct rueda_order_counter *self)
{
    struct rueda_decision_item *items =
        calloc(2 * self->room, sizeof(struct rueda_decision_item));

    if (items == NULL)
        return RUEDA_ERR_NOMEM;
    for (size_t i = 0; i < self->count; i++)
        items[i] = *item_at(self, i);
    free(self->items);
    self->items = items;
    self->room *= 2;
    self->first = 0;
    return RUEDA_OK;
}

static rueda_status submit(void *arg, const struct rueda_request *request,
                           void *mine)
{
    struct rueda_order_counter *self = arg;

    if (self->count == self->room && grow(self) != RUEDA_OK)
        return RUEDA_ERR_NOMEM;
    *item_at(self, self->count++) =
        (struct rueda_decision_item){.mine = mine, .request = request};
    return RUEDA_OK;
}

static const struct rueda_decision *next(void *arg)
{
    struct rueda_order_counter *self = arg;

    if (self->count == 0)
        return NULL;
    /* A copy, for the ring may grow while the lane carries it out. */
    self->oldest = *item_at(self, 0);
    self->decision.items = &self->oldest;
    return &self->decision;
}

static void done(void *arg)
{
    struct rueda_order_counter *self = arg;

    self->first = (self->first + 1) & (self->room - 1);
    self->count--;
    self->decision.index++;
}

static uint64_t latest(const void *arg)
{
    const struct rueda_order_counter *self = arg;

    return self->count > 0 ? self->decision.index + self->count - 1 : 0;
}

static void end(void *arg)
{
    struct rueda_order_counter *self = arg;

    self->count = 0;
    self->is_ended = true;
}

static bool is_over(const void *arg)
{
    const struct rueda_order_counter *self = arg;

    return self->is_ended;
}

static bool is_sending(const void *arg)
{
    (void)arg;
    return false;
}

static int64_t due_ns(const void *arg)
{
    (void)arg;
    return INT64_MAX;
}

struct rueda_order rueda_order_counter(struct rueda_order_counter *self)
{
    static const struct rueda_order_ops ops = {
        .name = "counter",
        .submit = submit,
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
