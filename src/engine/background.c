/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The background thread: it drives the engine while no caller does, and checks
 * periodically whether other ranks wait for this one. It sleeps on `work` until
 * another thread wakes it or a check is due. It first leaves the work for a
 * while to the threads that submitted it, because those usually wait soon.
 */
#define RUEDA_LOG_TAG "engine"

#include <errno.h>
#include <string.h>

#include "base/fence.h"
#include "base/log.h"
#include "engine/drive.h"
#include "os/clock.h"
#include "os/thread.h"

/* How long after the system had no thread for us to ask it again. */
#define RETRY_NS ((int64_t)1000000000)

static bool is_check_due(const struct rueda_engine *engine)
{
    return rueda_clock_ns() >= rueda_policy_background_ns(&engine->policy);
}

/* Is there something to do, or is it time to check? Under the lock. */
static bool has_duty(struct rueda_engine *engine)
{
    if (atomic_load(&engine->is_told) || is_check_due(engine))
        return true;
    rueda_condition_wait(&engine->work, &engine->lock,
                         rueda_policy_background_ns(&engine->policy));
    /* Who woke us may have planned a check, and drives no more. */
    engine->policy.back_ns = 0;
    return atomic_load(&engine->is_told);
}

/* If another thread holds the token, that thread wakes us when it releases the
 * token, and checks while it waits. */
static void do_duty(struct rueda_engine *engine, bool is_check)
{
    /* Our store of false in is_told comes before our load of the token, also on
     * machines that reorder them (tests/model/fences.py). A submitter pushes,
     * then loads is_told: if it still found true there, what it pushed is seen
     * by us where the token is free, and where it is not by the holder, which
     * frees the token and then reads the queues. */
    rueda_fence();
    if (!rueda_drive_take(engine)) {
        if (is_check)
            rueda_policy_stand_back(&engine->policy, rueda_clock_ns());
        else
            rueda_policy_be_patient(&engine->policy, true);
        return;
    }
    if (is_check)
        rueda_drive_check(engine);
    else
        rueda_policy_be_patient(&engine->policy, rueda_drive_is_idle(engine));
    rueda_drive(engine, NULL, -1);
    rueda_drive_release(engine);
}

/* Leave the work to threads that submit, as long as they help. Under the
 * lock. */
static void leave_to_others(struct rueda_engine *engine)
{
    int64_t until =
        rueda_policy_grace_until_ns(&engine->policy, rueda_clock_ns());

    while (!engine->is_stopping && !engine->is_hurried &&
           rueda_clock_ns() < until) {
        rueda_condition_wait(&engine->work, &engine->lock, until);
        if (rueda_clock_ns() >= until)
            until = rueda_policy_help_until_ns(&engine->policy);
    }
    engine->is_hurried = false;
}

static void *background(void *arg)
{
    struct rueda_engine *engine = arg;

    rueda_log_set_rank(atomic_load(&engine->terms.seen)->rank);
    pthread_mutex_lock(&engine->lock);
    while (!engine->is_stopping) {
        bool is_check;

        if (!has_duty(engine))
            continue;
        is_check = !atomic_load(&engine->is_told);
        if (!is_check)
            leave_to_others(engine);
        is_check = is_check || is_check_due(engine);
        /* Else what is submitted from now on is told again. */
        if (!rueda_policy_stays_awake(&engine->policy, rueda_clock_ns()))
            atomic_store(&engine->is_told, false);
        pthread_mutex_unlock(&engine->lock);
        do_duty(engine, is_check);
        pthread_mutex_lock(&engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

void rueda_drive_start_thread(struct rueda_engine *engine)
{
    const int64_t now_ns = rueda_clock_ns();

    if (engine->has_thread || engine->is_stopping || now_ns < engine->retry_ns)
        return;
    engine->has_thread =
        rueda_thread_start(&engine->thread, background, engine) == RUEDA_OK;
    if (!engine->has_thread && engine->retry_ns == 0)
        log_warn("no background thread: %s; raise `ulimit -u`. Operations make "
                 "progress only while a thread waits for one",
                 strerror(errno));
    engine->retry_ns = now_ns + RETRY_NS;
}
