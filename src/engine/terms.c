/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The change of terms, as a state that turns of the engine carry on. No lane
 * takes a turn meanwhile, and what threads submit waits in the queue: it runs
 * in the next term.
 *
 * Operations are settled when the members have met, and not before: an attempt
 * that fails, because one more of them is gone, leaves everything as it was
 * when they froze.
 */
#define RUEDA_LOG_TAG "engine"

#include "engine/terms.h"

#include <stdlib.h>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/sets.h"
#include "job/council.h"
#include "job/failure_report.h"
#include "os/clock.h"

bool rueda_terms_cover(struct rueda_job *job)
{
    const struct rueda_formation *formation = job->formation;
    const bool is_wanted = job->segment->common->repairs != 0;
    const bool is_here =
        job->network == NULL && job->config.servers == 0 &&
        (formation->topology == NULL || formation->topology->host_count == 1) &&
        rueda_environment("RUEDA_ELASTIC_WORKER") == NULL;

    if (!is_wanted || formation->size == 1)
        return false;
    if (is_here)
        job->council = &rueda_council_in_memory;
    else if (job->store_council != NULL)
        job->council = &rueda_council_by_store;
    else if (formation->rank == 0)
        log_warn("RUEDA_REPAIR=1 is for jobs without servers that are not "
                 "elastic, of %d ranks at most; and where all are on one host, "
                 "for messages that do not take TCP; this job does not repair "
                 "itself",
                 RUEDA_SEGMENT_MAX);
    return job->council != NULL;
}

void rueda_terms_init(struct rueda_engine *engine)
{
    atomic_init(&engine->terms.seen, engine->formation);
}

/* Let go of an attempt. */
static void drop_attempt(struct rueda_terms *terms)
{
    rueda_formation_release(terms->next);
    rueda_formation_release(terms->from);
    terms->next = NULL;
    terms->from = NULL;
    terms->stage = RUEDA_TERMS_REST;
}

void rueda_terms_fini(struct rueda_engine *engine)
{
    struct rueda_terms *terms = &engine->terms;

    drop_attempt(terms);
    for (int i = 0; i < terms->past_count; i++)
        rueda_formation_release(terms->past[i]);
    free(terms->past);
}

/* Terms in a row with the members of the one before. */
#define MOST_FUTILE 3

/* ---- What is covered --------------------------------------------------- */

static bool is_covered_kind(int kind)
{
    return kind == RUEDA_ALLREDUCE || kind == RUEDA_BARRIER;
}

/* Has a member said that it cannot go on, and the job with it? */
static bool has_failed(const struct rueda_formation *formation)
{
    for (int rank = 0; rank < formation->size; rank++)
        if (formation->members[rank] >= 0 &&
            rueda_segment_has_failed(formation->segment,
                                     formation->members[rank]))
            return true;
    return rueda_failure_has_come(formation->job);
}

/* What stands in the way, in words; false: nothing does. */
static bool is_hindered(const struct rueda_engine *engine,
                        struct rueda_text *words)
{
    const struct rueda_lanes *lanes = &engine->lanes;

    if (lanes->timeline != NULL || lanes->relay.stop != NULL)
        rueda_text_set(words, "a timeline is written");
    else if (rueda_set_count(lanes->table) > 1 || lanes->openings != NULL ||
             lanes->dropped_count > 0)
        rueda_text_set(words, "there are process sets");
    for (int i = 0; i < lanes->count && rueda_text_is_empty(words); i++) {
        const struct rueda_lane *lane = lanes->all[i];
        const struct rueda_ticket *ticket = lane->first;

        if (!lane->kept.is_on)
            rueda_text_set(words, "there is a private process set");
        while (ticket != NULL && is_covered_kind(ticket->request.kind))
            ticket = (const struct rueda_ticket *)ticket->op.next;
        if (ticket == NULL)
            continue;
        rueda_text_set(words, "this is in flight: ");
        rueda_lane_tell_op(lane, &ticket->request, words);
    }
    return !rueda_text_is_empty(words);
}

bool rueda_terms_is_stale(const struct rueda_lanes *lanes,
                          const struct rueda_ticket *ticket)
{
    const int kind = ticket->request.kind;

    return !is_covered_kind(kind) && kind != RUEDA_TIMELINE_START &&
           kind != RUEDA_TIMELINE_STOP && kind != RUEDA_STEP &&
           lanes->formation->term > 1 &&
           ticket->member_count != lanes->formation->size;
}

rueda_status rueda_terms_refuse(struct rueda_lanes *lanes,
                                struct rueda_ticket *ticket,
                                struct rueda_text *error)
{
    rueda_text_set(error,
                   "%s was submitted after a rank was lost and before the "
                   "next rueda_step(), with the old numbers of ranks; only "
                   "allreduce and barrier may be. Restore the last commit",
                   rueda_kind_str((rueda_kind)ticket->request.kind));
    /* Ordered ones have no words of their own: they are the context's. */
    if (ticket->op.is_ordered)
        ticket->op.outcome = RUEDA_ERR_CANCELLED;
    else
        rueda_batch_refuse(ticket, RUEDA_ERR_CANCELLED, error->chars);
    rueda_lanes_append_ended(lanes, ticket);
    lanes->engine->terms.is_refused = true;
    return RUEDA_ERR_CANCELLED;
}

/* ---- Freezing ---------------------------------------------------------- */

static void enter(struct rueda_terms *terms, rueda_terms_stage stage)
{
    terms->stage = stage;
    terms->begin_ns = rueda_clock_ns();
    terms->has_warned = false;
}

/* Nothing of the term is in flight here any more: then say so. */
static void freeze(struct rueda_engine *engine, struct rueda_formation *from)
{
    struct rueda_terms *terms = &engine->terms;
    const struct rueda_lanes *lanes = &engine->lanes;
    struct rueda_standing standing = {.boundaries = terms->boundaries};

    for (int i = 0; i < lanes->count; i++)
        standing.has[lanes->all[i]->kept.lane] = lanes->all[i]->kept.has;
    terms->from = from;
    enter(terms, RUEDA_TERMS_FROZEN);
    engine->job->council->freeze(from, &standing);
}

bool rueda_terms_begin(struct rueda_engine *engine)
{
    struct rueda_text words = {{0}};
    struct rueda_lanes *lanes = &engine->lanes;

    if (!lanes->repairs || engine->terms.is_refused ||
        has_failed(engine->formation))
        return false;
    if (is_hindered(engine, &words)) {
        engine->terms.is_refused = true;
        log_warn("the job cannot go on without a rank that is lost: %s",
                 words.chars);
        engine->job->council->refuse(engine->job, words.chars);
        return false;
    }
    rueda_mesh_cancel(&engine->formation->mesh, RUEDA_ERR_PEER_LOST);
    for (int i = 0; i < lanes->count; i++)
        rueda_lane_freeze(lanes->all[i]);
    rueda_formation_hold(engine->formation);
    freeze(engine, engine->formation);
    return true;
}

bool rueda_terms_is_called(const struct rueda_engine *engine)
{
    return engine->lanes.repairs && !engine->terms.is_refused &&
           engine->job->council->is_called(engine->formation);
}

/* ---- The next formation ------------------------------------------------- */

/* The attempt has come to nothing: all members fail. */
static void give_up(struct rueda_engine *engine)
{
    drop_attempt(&engine->terms);
    engine->terms.is_refused = true;
    rueda_failing_end_repair(engine, false);
}

static void fail(struct rueda_engine *engine, rueda_status status,
                 const char *why)
{
    drop_attempt(&engine->terms);
    engine->terms.is_refused = true;
    engine->failing.stage = RUEDA_FAILING_NOT;
    rueda_failing_begin(engine, status, why);
}

static void begin_next(struct rueda_engine *engine)
{
    struct rueda_terms *terms = &engine->terms;
    struct rueda_text error = {{0}};
    rueda_status status;

    /* A connection that broke is made again. Where it breaks again and again,
     * more terms with the same members will not mend it. */
    if (terms->verdict.count < terms->from->size)
        terms->futile = 0;
    else if (++terms->futile > MOST_FUTILE) {
        log_warn("the connection between two ranks is lost again and again, "
                 "and neither of them is gone");
        give_up(engine);
        return;
    }
    /* The same on all. */
    if (terms->verdict.last_boundary == 0) {
        log_warn("the job cannot go on without a rank that is lost: no rank "
                 "has called rueda_step(), so that the number of ranks could "
                 "change nowhere");
        give_up(engine);
        return;
    }
    status =
        rueda_formation_begin_next(terms->from, terms->verdict.survivors,
                                   terms->verdict.count, &terms->next, &error);
    if (status != RUEDA_OK) {
        fail(engine, status, error.chars);
        return;
    }
    enter(terms, RUEDA_TERMS_MEETING);
    engine->job->council->offer(terms->next);
}

/* A rank that computes is slow, and not lost: say once that it is waited for,
 * and end where the settings limit such a wait. rank: one of them; -1: not
 * known. */
static void be_patient(struct rueda_engine *engine, int rank)
{
    const struct rueda_config *config = &engine->job->config;
    struct rueda_terms *terms = &engine->terms;
    const int64_t ms = (rueda_clock_ns() - terms->begin_ns) / 1000000;
    struct rueda_text why = {{0}};

    if (rank < 0)
        rueda_text_set(&why, "another rank");
    else
        rueda_text_set(&why, "rank %d", rank);
    rueda_text_add(&why,
                   " has not agreed for %.1f s to go on without a rank that is "
                   "lost",
                   (double)ms / 1e3);
    if (config->stall_end_ms > 0 && ms >= config->stall_end_ms) {
        rueda_text_add(&why, " (RUEDA_STALL_SHUTDOWN)");
        fail(engine, RUEDA_ERR_TIMEOUT, why.chars);
    } else if (config->stall_warn_ms > 0 && ms >= config->stall_warn_ms &&
               !terms->has_warned) {
        terms->has_warned = true;
        log_warn("%s; it computes, or is stopped", why.chars);
    }
}

static void decide(struct rueda_engine *engine)
{
    struct rueda_terms *terms = &engine->terms;
    int awaited = -1;
    const rueda_status status =
        engine->job->council->decide(terms->from, &terms->verdict, &awaited);

    if (status == RUEDA_OK)
        begin_next(engine);
    else if (status == RUEDA_IN_PROGRESS)
        be_patient(engine, awaited);
    else
        give_up(engine);
}

/* ---- What becomes of operations ----------------------------------------- */

/* What the next term needs, before anything is changed. */
struct fresh {
    struct rueda_set_table *table;
    const struct rueda_set *all;
    struct rueda_lane *lanes[RUEDA_MEMBER_LANES];
};

static void fresh_free(struct fresh *fresh)
{
    rueda_set_table_free(fresh->table);
    for (int i = 0; i < RUEDA_MEMBER_LANES; i++)
        if (fresh->lanes[i] != NULL)
            rueda_lane_free(fresh->lanes[i]);
}

static rueda_status fresh_make(struct rueda_lanes *lanes,
                               struct rueda_formation *next,
                               struct fresh *fresh, struct rueda_text *error)
{
    const uint64_t slabs[] = {next->slab_offset, next->named_offset};
    rueda_status status = RUEDA_OK;

    *fresh = (struct fresh){
        .table = rueda_set_table_new(next->rank, next->size),
    };
    if (fresh->table != NULL)
        fresh->all = rueda_sets_copy_all(lanes, next);
    if (fresh->all == NULL)
        status = RUEDA_ERR_NOMEM;
    for (int i = 0; i < RUEDA_MEMBER_LANES && status == RUEDA_OK; i++) {
        status = rueda_lane_new(lanes, next, fresh->all, i == 0,
                                &fresh->lanes[i], error);
        if (status == RUEDA_OK)
            rueda_lane_open(fresh->lanes[i], slabs[i]);
    }
    if (status != RUEDA_OK)
        fresh_free(fresh);
    return status;
}

/* Deliver what all members have. */
static rueda_status settle(struct rueda_lanes *lanes,
                           const struct rueda_verdict *verdict,
                           struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < lanes->count && status == RUEDA_OK; i++) {
        struct rueda_lane *lane = lanes->all[i];

        status =
            rueda_lane_settle(lane, verdict->limits[lane->kept.lane], error);
    }
    return status;
}

/* All lanes are those of all ranks, so that there are two at most. If this
 * fails, operations are in lanes of the one term or of the other, and end with
 * the context. */
static rueda_status hand_over(struct rueda_lanes *lanes,
                              const struct fresh *fresh, int count)
{
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < count && status == RUEDA_OK; i++) {
        struct rueda_lane *old = lanes->all[i];

        status = rueda_lane_hand_over(old, fresh->lanes[old->kept.lane]);
    }
    if (status != RUEDA_OK)
        return status;
    for (int i = 0; i < count; i++)
        rueda_lane_free(lanes->all[i]);
    for (int i = 0; i < RUEDA_MEMBER_LANES; i++)
        lanes->all[i] = fresh->lanes[i];
    lanes->count = RUEDA_MEMBER_LANES;
    lanes->has_log = true;
    lanes->has_talked = true; /* what they are due at is not known yet */
    return RUEDA_OK;
}

static rueda_status add_lanes(struct rueda_lanes *lanes, struct fresh *fresh)
{
    const int count = lanes->count;
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < RUEDA_MEMBER_LANES && status == RUEDA_OK; i++)
        status = rueda_lanes_add(lanes, fresh->lanes[i]);
    if (status != RUEDA_OK) {
        lanes->count = count;
        fresh_free(fresh);
    }
    return status;
}

/* The old one stays as long as the engine: threads of the program may look
 * there until they have come to a boundary, and a moment longer. */
static rueda_status keep_past(struct rueda_terms *terms,
                              struct rueda_formation *old)
{
    struct rueda_formation **past =
        realloc(terms->past, ((size_t)terms->past_count + 1) *
                                 sizeof(struct rueda_formation *));

    if (past == NULL)
        return RUEDA_ERR_NOMEM;
    rueda_formation_hold(old);
    past[terms->past_count++] = old;
    terms->past = past;
    return RUEDA_OK;
}

static rueda_status take_over(struct rueda_engine *engine,
                              struct rueda_text *error)
{
    struct rueda_terms *terms = &engine->terms;
    struct rueda_lanes *lanes = &engine->lanes;
    struct rueda_formation *next = terms->next;
    const int count = lanes->count;
    struct fresh fresh;
    rueda_status status = settle(lanes, &terms->verdict, error);

    if (status == RUEDA_OK)
        status = keep_past(terms, engine->formation);
    if (status == RUEDA_OK)
        status = fresh_make(lanes, next, &fresh, error);
    if (status == RUEDA_OK)
        status = add_lanes(lanes, &fresh);
    if (status != RUEDA_OK)
        return status;
    rueda_set_table_free(lanes->table);
    lanes->table = fresh.table;
    lanes->formation = next;
    engine->formation = next;
    rueda_formation_hold(next);
    rueda_job_follow(engine->job, next);
    terms->all = fresh.all;
    terms->last_boundary = terms->verdict.last_boundary;
    return hand_over(lanes, &fresh, count);
}

static void go_on(struct rueda_engine *engine)
{
    const int before = engine->formation->size;
    struct rueda_text error = {{0}};
    const rueda_status status = take_over(engine, &error);

    if (status != RUEDA_OK) {
        rueda_text_add(&error, "%s",
                       rueda_text_is_empty(&error) ? rueda_status_str(status)
                                                   : "");
        fail(engine, status, error.chars);
        return;
    }
    log_warn("%d of %d ranks go on in term %u: this one was rank %d, and is "
             "rank %d from the next step on",
             engine->formation->size, before, engine->formation->term,
             atomic_load(&engine->terms.seen)->rank, engine->formation->rank);
    drop_attempt(&engine->terms);
    rueda_failing_end_repair(engine, true);
    rueda_engine_deliver(engine);
}

/* One more is gone: again, without it. */
static void try_again(struct rueda_engine *engine)
{
    struct rueda_terms *terms = &engine->terms;
    struct rueda_formation *from = terms->next;

    terms->next = NULL;
    drop_attempt(terms);
    freeze(engine, from);
}

static void meet(struct rueda_engine *engine)
{
    struct rueda_terms *terms = &engine->terms;
    struct rueda_text error = {{0}};
    const rueda_status status = engine->job->council->meet(terms->next, &error);

    if (status == RUEDA_OK)
        go_on(engine);
    else if (status == RUEDA_IN_PROGRESS)
        be_patient(engine, -1);
    else if (status == RUEDA_ERR_PEER_LOST)
        try_again(engine);
    else if (status == RUEDA_ERR_CLOSED)
        give_up(engine);
    else
        fail(engine, status, error.chars);
}

void rueda_terms_turn(struct rueda_engine *engine)
{
    rueda_segment_watch(engine->job->segment);
    if (engine->terms.stage == RUEDA_TERMS_FROZEN)
        decide(engine);
    if (engine->terms.stage == RUEDA_TERMS_MEETING)
        meet(engine);
}

/* ---- Boundaries --------------------------------------------------------- */

/* All survivors have the same last boundary in mind. Before it some of them
 * have used the old numbers, and the others do so as well. */
void rueda_terms_step(struct rueda_lanes *lanes, struct rueda_ticket *ticket)
{
    struct rueda_terms *terms = &lanes->engine->terms;

    terms->boundaries++;
    terms->futile = 0;
    if (terms->all != NULL && terms->boundaries > terms->last_boundary) {
        ticket->op.outcome = rueda_sets_replace(lanes, terms->all);
        terms->all = NULL;
        atomic_store(&terms->seen, lanes->formation);
    }
    rueda_lanes_append_ended(lanes, ticket);
}
