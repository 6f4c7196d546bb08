/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens between the first sign of a failure and the end of the context:
 * the cause is looked for, the other ranks are told, and only then do
 * operations end. Each step is one that a turn can take without waiting.
 */
#define RUEDA_LOG_TAG "engine"

#include "engine/failing.h"

#include "base/log.h"
#include "engine/engine.h"
#include "os/clock.h"
#include "trace/flight.h"

static bool has_failed(const struct rueda_engine *engine)
{
    return atomic_load_explicit(&engine->failed, memory_order_relaxed) < 0;
}

rueda_failing_size rueda_failing_size_of(rueda_status status, bool is_message)
{
    if (status == RUEDA_ERR_PEER_LOST)
        return RUEDA_FAILING_TERM;
    /* A message ends at both ends. A collective whose messages differ leaves
     * some of them in flight, for others to take for theirs. */
    return status == RUEDA_ERR_MISMATCH && is_message ? RUEDA_FAILING_OPERATION
                                                      : RUEDA_FAILING_CONTEXT;
}

/* The operations of the context end with the words that stand. */
static void end_all(struct rueda_engine *engine)
{
    engine->failing.stage = RUEDA_FAILING_OVER;
    rueda_engine_end(engine, RUEDA_ERR_CLOSED, "");
    rueda_job_hang_up(engine->job, engine->cause.chars);
}

/* The program has failed the context before, in words of its own. */
static void yield_to_program(struct rueda_engine *engine)
{
    engine->failing.size = RUEDA_FAILING_CONTEXT;
    end_all(engine);
}

/* The words stand, and the store may be about to take them. */
static void wait_until_told(struct rueda_engine *engine)
{
    if (!rueda_failure_is_told(engine->job)) {
        engine->failing.stage = RUEDA_FAILING_TELLING;
        return;
    }
    rueda_segment_fail(engine->job->segment, engine->error.chars);
    end_all(engine);
}

void rueda_failing_begin(struct rueda_engine *engine, rueda_status status,
                         const char *why)
{
    if (engine->failing.stage != RUEDA_FAILING_NOT)
        return;
    if (!rueda_engine_keep_first(engine, status, why)) {
        yield_to_program(engine);
        return;
    }
    engine->failing.size = RUEDA_FAILING_CONTEXT;
    log_error("%s", why);
    rueda_failure_tell(engine->job, why);
    wait_until_told(engine);
}

/* Adds what this rank was doing when a peer was lost. */
static void add_work(const struct rueda_engine *engine,
                     struct rueda_text *words)
{
    struct rueda_text work = {{0}};

    if (rueda_lanes_have_work(&engine->lanes) &&
        rueda_lanes_tell(&engine->lanes, &work))
        rueda_text_add(words, " while rank %d was in %s",
                       engine->formation->rank, work.chars);
}

/* Hearing is over: `heard` has the words of the rank that failed, or none. Only
 * what no other rank has said yet is news for the other hosts. */
static void blame_peer(struct rueda_engine *engine,
                       const struct rueda_text *heard)
{
    const int peer = engine->failing.peer;
    struct rueda_segment *segment = engine->job->segment;
    struct rueda_text why = *heard;
    bool is_news = false;
    int first = -1;

    if (rueda_text_is_empty(&why))
        first = rueda_segment_first_gone(segment, &why);
    if (rueda_text_is_empty(&why)) {
        rueda_job_why_lost(engine->job, peer, &why);
        is_news = true;
    }
    engine->cause = why;
    add_work(engine, &why);
    if (first >= 0)
        rueda_flight_tell(segment, first, &why);
    if (!rueda_engine_keep_first(engine, RUEDA_ERR_PEER_LOST, why.chars)) {
        yield_to_program(engine);
        return;
    }
    log_error("%s", why.chars);
    if (is_news)
        rueda_failure_spread(engine->job, peer, engine->cause.chars);
    wait_until_told(engine);
}

/* A thread that called rueda_fail() has said more than there is to hear. */
static void hear(struct rueda_engine *engine)
{
    struct rueda_failing *failing = &engine->failing;
    struct rueda_text heard = {{0}};

    if (has_failed(engine))
        yield_to_program(engine);
    else if (rueda_failure_has_heard(engine->job, &failing->hearing,
                                     &failing->peer, &heard))
        blame_peer(engine, &heard);
}

/* The term fails, and the context with it. */
static void end_term(struct rueda_engine *engine)
{
    const struct rueda_text none = {{0}};
    struct rueda_failing *failing = &engine->failing;
    int peer = failing->peer;

    if (peer < 0)
        rueda_mesh_progress(&engine->formation->mesh, &peer);
    failing->peer = peer;
    /* The words of a failing rank say more than the loss of a rank that went
     * because of it. Of a silent host no rank knows more than we do. */
    if (rueda_job_is_certain(engine->job, peer) &&
        !rueda_failure_has_come(engine->job)) {
        blame_peer(engine, &none);
        return;
    }
    failing->stage = RUEDA_FAILING_HEARING;
    rueda_failure_hear(&failing->hearing);
    hear(engine);
}

void rueda_failing_begin_by_peer(struct rueda_engine *engine, int peer)
{
    struct rueda_failing *failing = &engine->failing;
    struct rueda_text words = {{0}};
    rueda_status found;

    if (failing->stage != RUEDA_FAILING_NOT)
        return;
    /* The peer may have read of the standstill earlier than this rank. */
    found = rueda_standstill_found(&engine->lanes, &words);
    if (found != RUEDA_OK) {
        rueda_failing_begin(engine, found, words.chars);
        return;
    }
    rueda_segment_watch(engine->job->segment);
    failing->size = RUEDA_FAILING_TERM;
    failing->peer = peer;
    if (rueda_terms_begin(engine))
        failing->stage = RUEDA_FAILING_REPAIRING;
    else
        end_term(engine);
}

void rueda_failing_end_repair(struct rueda_engine *engine, bool is_repaired)
{
    engine->failing.stage = RUEDA_FAILING_NOT;
    if (!is_repaired)
        end_term(engine);
}

/* A thread of the program may fail the context meanwhile. */
static void repair(struct rueda_engine *engine)
{
    if (has_failed(engine))
        yield_to_program(engine);
    else
        rueda_terms_turn(engine);
}

void rueda_failing_take(struct rueda_engine *engine, rueda_status status,
                        int peer, const char *why)
{
    if (rueda_failing_size_of(status, false) == RUEDA_FAILING_TERM)
        rueda_failing_begin_by_peer(engine, peer);
    else
        rueda_failing_begin(engine, status, why);
}

bool rueda_failing_is_on(const struct rueda_engine *engine)
{
    return engine->failing.stage == RUEDA_FAILING_REPAIRING ||
           engine->failing.stage == RUEDA_FAILING_HEARING ||
           engine->failing.stage == RUEDA_FAILING_TELLING;
}

bool rueda_failing_turn(struct rueda_engine *engine)
{
    switch (engine->failing.stage) {
    case RUEDA_FAILING_REPAIRING:
        repair(engine);
        break;
    case RUEDA_FAILING_HEARING:
        hear(engine);
        break;
    case RUEDA_FAILING_TELLING:
        wait_until_told(engine);
        break;
    case RUEDA_FAILING_NOT:
        yield_to_program(engine);
        break;
    case RUEDA_FAILING_OVER:
        end_all(engine);
        break;
    }
    return engine->failing.stage == RUEDA_FAILING_OVER;
}

void rueda_failing_finish(struct rueda_engine *engine)
{
    /* The others need not wait for this rank, which leaves. */
    if (engine->failing.stage == RUEDA_FAILING_REPAIRING)
        end_all(engine);
    while (rueda_failing_is_on(engine)) {
        rueda_failing_turn(engine);
        if (rueda_failing_is_on(engine))
            rueda_sleep_ns(RUEDA_FAILURE_POLL_NS);
    }
}

void rueda_failing_by_program(struct rueda_engine *engine, const char *why)
{
    if (!rueda_engine_keep_first(engine, RUEDA_ERR_CANCELLED, why))
        return;
    /* What the program says of itself it can show as it likes. */
    log_info("%s", why);
    rueda_failure_tell(engine->job, why);
    rueda_failure_await_told(engine->job);
    rueda_segment_fail(engine->job->segment, why);
}
