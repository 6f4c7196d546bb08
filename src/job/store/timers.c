/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/timers.h"

#include <stdbool.h>
#include <stdlib.h>

#define FIRST_ROOM 64
#define NS_PER_MS  1000000

void rueda_store_timers_fini(struct rueda_store_timers *timers)
{
    free(timers->heap);
    *timers = (struct rueda_store_timers){0};
}

static bool is_before(const struct rueda_store_timer *a,
                      const struct rueda_store_timer *b)
{
    if (a->due_ns != b->due_ns)
        return a->due_ns < b->due_ns;
    return a->order < b->order;
}

static void put(struct rueda_store_timers *timers, size_t at,
                struct rueda_store_timer *timer)
{
    timers->heap[at] = timer;
    timer->at = at;
}

/* Let timer rise from a free place to where it belongs. */
static void rise(struct rueda_store_timers *timers, size_t at,
                 struct rueda_store_timer *timer)
{
    while (at > 0 && is_before(timer, timers->heap[(at - 1) / 2])) {
        put(timers, at, timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(timers, at, timer);
}

/* Let timer sink from a free place to a leaf, or to where it belongs. */
static size_t sink(struct rueda_store_timers *timers, size_t at,
                   const struct rueda_store_timer *timer)
{
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < timers->count &&
            is_before(timers->heap[child + 1], timers->heap[child]))
            child++;
        if (child >= timers->count || !is_before(timers->heap[child], timer))
            return at;
        put(timers, at, timers->heap[child]);
        at = child;
    }
}

/* Put timer where it belongs, starting from a free place. */
static void settle(struct rueda_store_timers *timers, size_t at,
                   struct rueda_store_timer *timer)
{
    rise(timers, sink(timers, at, timer), timer);
}

static rueda_status make_room(struct rueda_store_timers *timers)
{
    size_t room = timers->room == 0 ? FIRST_ROOM : timers->room * 2;
    struct rueda_store_timer **heap;

    if (timers->count < timers->room)
        return RUEDA_OK;
    heap = realloc(timers->heap, room * sizeof(struct rueda_store_timer *));
    if (heap == NULL)
        return RUEDA_ERR_NOMEM;
    timers->heap = heap;
    timers->room = room;
    return RUEDA_OK;
}

rueda_status rueda_store_timers_add(struct rueda_store_timers *timers,
                                    struct rueda_store_timer *timer,
                                    rueda_store_timer_kind kind)
{
    rueda_status status = make_room(timers);

    if (status != RUEDA_OK)
        return status;
    timer->kind = kind;
    timer->due_ns = RUEDA_STORE_NEVER;
    timer->order = timers->order++;
    rise(timers, timers->count++, timer);
    return RUEDA_OK;
}

void rueda_store_timers_remove(struct rueda_store_timers *timers,
                               struct rueda_store_timer *timer)
{
    struct rueda_store_timer *last = timers->heap[--timers->count];

    if (last != timer)
        settle(timers, timer->at, last);
}

static void set_due(struct rueda_store_timers *timers,
                    struct rueda_store_timer *timer, int64_t due_ns)
{
    timer->due_ns = due_ns;
    timer->order = timers->order++;
    settle(timers, timer->at, timer);
}

void rueda_store_timers_set(struct rueda_store_timers *timers,
                            struct rueda_store_timer *timer, int64_t now_ns,
                            uint32_t time_ms)
{
    int64_t due_ns;

    if (__builtin_add_overflow(now_ns, (int64_t)time_ms * NS_PER_MS, &due_ns))
        due_ns = RUEDA_STORE_NEVER;
    set_due(timers, timer, due_ns);
}

void rueda_store_timers_unset(struct rueda_store_timers *timers,
                              struct rueda_store_timer *timer)
{
    set_due(timers, timer, RUEDA_STORE_NEVER);
}

struct rueda_store_timer *
rueda_store_timers_first(const struct rueda_store_timers *timers)
{
    if (timers->count == 0 || timers->heap[0]->due_ns == RUEDA_STORE_NEVER)
        return NULL;
    return timers->heap[0];
}
