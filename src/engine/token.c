/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token: the thread that holds it drives the engine.
 *
 * The token is one atomic word. A caller that finds it taken parks on a
 * condition (park() in wait.c). No wake-up is lost: the caller counts itself in
 * `parked` before it reads the token once more, and the holder reads `parked`
 * after it has freed the token.
 */
#include "engine/drive.h"

/* Many operations are submitted in a row, and the thread is told once. */
void rueda_drive_tell(struct rueda_engine *engine)
{
    if (atomic_exchange(&engine->is_told, true))
        return;
    pthread_mutex_lock(&engine->lock);
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

/* The background thread sleeps until the check that was planned before. */
static void tell_of_check(struct rueda_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

void rueda_drive_let_go(struct rueda_engine *engine)
{
    bool was_idle = rueda_drive_is_idle(engine);

    if (was_idle)
        rueda_policy_be_light(&engine->policy);
    if (engine->lanes.has_log && rueda_drive_plan_check(engine))
        tell_of_check(engine);
    /* What rueda_drive_has_arrivals() loads below must not be older than this
     * store of the token (do_duty() says why). The load of `parked` in between
     * sees to that: it is sequentially consistent like the store, so that it
     * comes after it, and no later load passes it. Neither order may be weaker.
     */
    atomic_store_explicit(&engine->token, 0, memory_order_seq_cst);
    if (atomic_load_explicit(&engine->parked, memory_order_seq_cst) > 0) {
        pthread_mutex_lock(&engine->lock);
        pthread_cond_broadcast(&engine->changed);
        pthread_mutex_unlock(&engine->lock);
    }
    /* What came since was_idle was told to the background thread while we
     * still held the token, and it gave up. */
    if ((!was_idle || rueda_drive_has_arrivals(engine)) &&
        atomic_load(&engine->callers) == 0)
        rueda_drive_tell(engine);
}

void rueda_drive_release(struct rueda_engine *engine)
{
    struct rueda_then_list due = engine->due;

    if (due.first == NULL) {
        rueda_drive_let_go(engine);
        return;
    }
    engine->due = (struct rueda_then_list){NULL, NULL};
    atomic_fetch_add(&engine->census.callings, 1);
    rueda_drive_let_go(engine);
    rueda_then_run(&due);
    atomic_fetch_sub(&engine->census.callings, 1);
}
