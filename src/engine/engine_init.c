/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine begins and ends: its memory, its lanes, its thread, and how
 * patient it is on this machine.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/drive.h"
#include "os/machine.h"
#include "os/memory.h"
#include "os/thread.h"

/* A rank may take this long from one tensor to the next that other ranks have
 * in one group, and still be told that its group differs from theirs. */
#define CALL_AFTER_NS RUEDA_MS(100)

static void set_patience(struct rueda_engine *engine)
{
    const struct rueda_job *job = engine->job;
    const struct rueda_policy_host host = {
        .cpus = rueda_segment_cpus(job->segment),
        .ranks = job->segment->size,
        .quota = rueda_machine_cpu_quota(),
        .has_network = job->network != NULL,
        .spin_us = job->config.spin_us,
        .yield_us = job->config.yield_us,
    };

    rueda_policy_set_patience(&engine->policy, &host);
}

/* Other ranks may stall because of this rank also while no thread calls us. */
static void set_checks(struct rueda_engine *engine)
{
    const struct rueda_config *config = &engine->job->config;
    const int64_t stall_ns = RUEDA_MS(rueda_watch_first_ms(config));

    rueda_policy_set_checks(&engine->policy, stall_ns, rueda_clock_ns());
    if (stall_ns == 0 || engine->formation->size == 1)
        return;
    pthread_mutex_lock(&engine->lock);
    rueda_drive_start_thread(engine);
    pthread_mutex_unlock(&engine->lock);
}

rueda_status rueda_engine_init(struct rueda_engine *engine,
                               struct rueda_job *job, struct rueda_text *error)
{
    const char *wanted = job->config.kernels;
    const struct rueda_device *device;
    struct rueda_lane *first;
    rueda_status status;

    memset(engine, 0, sizeof(*engine));
    engine->job = job;
    engine->formation = job->formation;
    rueda_select_init(&engine->select);
    status =
        rueda_select_parse(&engine->select, job->segment->common->algo, error);
    if (status != RUEDA_OK)
        return status;
    device = rueda_device_default(wanted);
    if (device == NULL) {
        rueda_text_set(error,
                       "RUEDA_KERNELS is \"%s\", which is not auto, c, avx2, "
                       "avx512 or neon, or this CPU cannot run it",
                       wanted);
        return RUEDA_ERR_INVALID;
    }
    status = rueda_lanes_init(&engine->lanes, job, &engine->select, device);
    if (status == RUEDA_OK) {
        status = rueda_lanes_need_ordered(&engine->lanes, RUEDA_SET_GLOBAL,
                                          &first, error);
        if (status != RUEDA_OK)
            rueda_lanes_fini(&engine->lanes);
    }
    if (status != RUEDA_OK) {
        rueda_text_set(error, "no memory for the engine");
        return status;
    }
    rueda_accelerator_init(&engine->accelerator, &job->config);
    engine->lanes.accelerator = &engine->accelerator;
    engine->lanes.numbers = &engine->numbers;
    engine->lanes.call_after_ns = CALL_AFTER_NS;
    engine->lanes.engine = engine;
    rueda_terms_init(engine);
    rueda_census_init(&engine->census);
    pthread_mutex_init(&engine->lock, NULL);
    rueda_condition_init(&engine->changed);
    rueda_condition_init(&engine->work);
    set_patience(engine);
    set_checks(engine);
    return RUEDA_OK;
}

void rueda_engine_fini(struct rueda_engine *engine)
{
    bool has_thread;

    pthread_mutex_lock(&engine->lock);
    engine->is_stopping = true;
    has_thread = engine->has_thread;
    pthread_cond_broadcast(&engine->work);
    pthread_mutex_unlock(&engine->lock);
    if (has_thread) {
        /* It lets go of the token for a caller, and we are one. */
        atomic_fetch_add(&engine->callers, 1);
        rueda_drive_wake_holder(engine);
        rueda_thread_join(engine->thread);
    }
    rueda_engine_flush(engine);
    rueda_failing_finish(engine);
    rueda_engine_end(engine, RUEDA_ERR_CLOSED, "the context was shut down");
    rueda_then_run(&engine->due);
    rueda_lanes_fini(&engine->lanes);
    rueda_terms_fini(engine);
    rueda_accelerator_fini(&engine->accelerator);
    pthread_cond_destroy(&engine->changed);
    pthread_cond_destroy(&engine->work);
    pthread_mutex_destroy(&engine->lock);
    rueda_census_fini(&engine->census);
    rueda_numbers_fini(&engine->numbers);
}
