/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/census.h"

#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "os/thread.h"

struct rueda_census_thread {
    struct rueda_census_thread *next;
    int id;                 /* of the system */
    atomic_bool is_waiting; /* for what no delivery before `seen` was */
    _Atomic uint64_t seen;
};

/* The entry of this thread in the census that it used last. */
static _Thread_local struct {
    uint64_t serial;
    struct rueda_census_thread *thread;
} mine;

static _Atomic uint64_t serials;

void rueda_census_init(struct rueda_census *census)
{
    memset(census, 0, sizeof(*census));
    census->serial = atomic_fetch_add(&serials, 1) + 1;
    pthread_mutex_init(&census->lock, NULL);
}

void rueda_census_fini(struct rueda_census *census)
{
    while (census->first != NULL) {
        struct rueda_census_thread *thread = census->first;

        census->first = thread->next;
        free(thread);
    }
    pthread_mutex_destroy(&census->lock);
}

/* The place of this thread, or a new one; NULL without memory. */
static struct rueda_census_thread *find_me(struct rueda_census *census)
{
    const int id = rueda_thread_id();
    struct rueda_census_thread *thread;

    pthread_mutex_lock(&census->lock);
    thread = census->first;
    while (thread != NULL && thread->id != id)
        thread = thread->next;
    if (thread == NULL) {
        thread = calloc(1, sizeof(*thread));
        if (thread != NULL) {
            thread->id = id;
            thread->next = census->first;
            census->first = thread;
        }
        census->is_blind = census->is_blind || thread == NULL;
    }
    pthread_mutex_unlock(&census->lock);
    if (thread != NULL) {
        mine.serial = census->serial;
        mine.thread = thread;
    }
    return thread;
}

static inline struct rueda_census_thread *me_in(struct rueda_census *census)
{
    return mine.serial == census->serial ? mine.thread : find_me(census);
}

/* Is it known that this thread does not wait? */
static bool is_at_work(const struct rueda_census *census)
{
    return mine.thread != NULL && mine.serial == census->serial &&
           !atomic_load_explicit(&mine.thread->is_waiting,
                                 memory_order_relaxed);
}

void rueda_census_act(struct rueda_census *census)
{
    struct rueda_census_thread *me;

    if (is_at_work(census) || rueda_then_is_running())
        return;
    me = me_in(census);
    if (me != NULL)
        atomic_store(&me->is_waiting, false);
}

void rueda_census_wait(struct rueda_census *census, uint64_t deliveries)
{
    struct rueda_census_thread *me = me_in(census);

    if (me == NULL)
        return;
    atomic_store_explicit(&me->seen, deliveries, memory_order_relaxed);
    atomic_store_explicit(&me->is_waiting, true, memory_order_release);
}

/* Can this thread still submit anything? One that has ended cannot. */
static bool may_act(const struct rueda_census_thread *thread,
                    uint64_t deliveries)
{
    if (!atomic_load(&thread->is_waiting))
        return rueda_thread_is_alive(thread->id);
    return atomic_load_explicit(&thread->seen, memory_order_relaxed) !=
           deliveries;
}

bool rueda_census_all_wait(struct rueda_census *census)
{
    const uint64_t deliveries = rueda_census_deliveries(census);
    bool is_one = false;
    bool is_so = true;

    if (atomic_load(&census->callings) > 0)
        return false;
    pthread_mutex_lock(&census->lock);
    for (struct rueda_census_thread *thread = census->first;
         thread != NULL && is_so; thread = thread->next) {
        is_so = !may_act(thread, deliveries);
        is_one = is_one || atomic_load(&thread->is_waiting);
    }
    is_so = is_so && !census->is_blind;
    pthread_mutex_unlock(&census->lock);
    return is_so && is_one;
}
