/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who drives the engine, and how it waits.
 *
 * The token is one atomic word. A caller that finds it taken parks on a
 * condition; to lose no wake-up it counts itself in `parked` before it looks at
 * the token once more, and who releases the token looks at `parked` after.
 */
#define RUEDA_LOG_TAG "engine"

#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/fence.h"
#include "base/log.h"
#include "engine/engine.h"
#include "job/news.h"
#include "os/clock.h"
#include "os/machine.h"
#include "os/memory.h"
#include "os/thread.h"

/* How long to wait awake, where there are cores enough and where not. */
#define SPIN_NS          5000
#define YIELD_NS         1000000
#define YIELD_CROWDED_NS 2000000

/* And for whom nobody waits: a core that is awake for nothing makes those at
 * work slower, which share its power and its caches. */
#define YIELD_UNASKED_NS 50000

/* A core that comes back only after this is at work for somebody else, and is
 * likely to be for a while. Who sleeps is woken sooner than who yields then. */
#define LONG_YIELD_NS 500000
#define BUSY_NS       100000000

/* How often somebody looks whether others wait for this rank: several times
 * before a stall is worth a word. */
#define LOOKS_A_STALL 4
#define LOOK_LEAST_NS ((int64_t)50000000)
#define LOOK_MOST_NS  ((int64_t)10000000000)
#define LOOK_APART_NS ((int64_t)10000000) /* whatever anybody wants */

/* Who submits mostly waits soon, and drives then: so long the background thread
 * leaves it to that, and longer where it has always been so, or where it has no
 * core of its own: to take over, or only to look, costs both sides a change of
 * threads, and whoever computes there its cache. If there is no network either
 * that could work meanwhile, what is done early is done no sooner. */
#define GRACE_NS         ((int64_t)250000)
#define GRACE_MOST_NS    ((int64_t)3200000)
#define GRACE_CROWDED_NS GRACE_MOST_NS
#define GRACE_ALONE_NS   ((int64_t)20000000)

/* Where the background thread has no core of its own, who submits one after
 * another takes a turn now and then, and it stays away meanwhile: that costs no
 * change of threads. It is for light operations only, so that submitting stays
 * short. Where it has one, it does all of that: the rank that is last finds
 * everybody ready, and what it did itself all others would wait for. */
#define HELP_APART_NS     ((int64_t)50000)
#define RUSH_TICKS        ((uint64_t)8192) /* some microseconds at most */
#define LIGHT_BYTES       ((size_t)4 << 20)
#define LIGHT_ALONE_BYTES ((size_t)64 << 10)

/* So long after the last was submitted the background thread looks in by
 * itself, where those who submit drive: being woken for every step costs them
 * more. */
#define AWAKE_NS ((int64_t)50000000)

/* So long a rank may take from one tensor to the next that others have in one
 * group, and still hear that they differ in it. */
#define CALL_AFTER_NS ((int64_t)100000000)

/* How many turns one look takes at most. */
#define LOOK_TURNS 64

static bool take(struct rueda_engine *engine)
{
    int free = 0;

    return atomic_load_explicit(&engine->token, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong(&engine->token, &free, 1);
}

/* Whoever holds the token may sleep. */
static void wake_holder(struct rueda_engine *engine)
{
    struct rueda_segment *segment = engine->job->segment;

    rueda_segment_notify(segment, segment->me);
}

/* Many are submitted in a row, and told once. */
static void tell_thread(struct rueda_engine *engine)
{
    if (atomic_exchange(&engine->is_told, true))
        return;
    pthread_mutex_lock(&engine->lock);
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

static bool is_idle(struct rueda_engine *engine)
{
    return rueda_op_peek(&engine->queue) == NULL &&
           !rueda_lanes_are_busy(&engine->lanes);
}

static bool has_news(const struct rueda_engine *engine)
{
    return rueda_op_queue_has_news(&engine->queue) ||
           rueda_op_queue_has_news(&engine->lanes.arrived);
}

/* The next look is no later than a lane wants it. True if that is sooner than
 * it was. */
static bool plan_look(struct rueda_engine *engine)
{
    int64_t wanted = rueda_lanes_next_look_ns(&engine->lanes);

    if (wanted < engine->last_look_ns + LOOK_APART_NS)
        wanted = engine->last_look_ns + LOOK_APART_NS;
    if (wanted >= atomic_load_explicit(&engine->look_ns, memory_order_relaxed))
        return false;
    atomic_store_explicit(&engine->look_ns, wanted, memory_order_relaxed);
    return true;
}

/* The background thread sleeps until the look that was planned before. */
static void tell_of_look(struct rueda_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

/* All but the callbacks that are due. */
static void let_go(struct rueda_engine *engine)
{
    bool was_idle = is_idle(engine);

    if (was_idle)
        atomic_store_explicit(&engine->is_heavy, false, memory_order_relaxed);
    if (engine->lanes.count > 0 && plan_look(engine))
        tell_of_look(engine);
    atomic_store(&engine->token, 0);
    if (atomic_load(&engine->parked) > 0) {
        pthread_mutex_lock(&engine->lock);
        pthread_cond_broadcast(&engine->changed);
        pthread_mutex_unlock(&engine->lock);
    }
    /* What came since we looked was told to the background thread while we
     * still held the token. */
    if ((!was_idle || has_news(engine)) && atomic_load(&engine->callers) == 0)
        tell_thread(engine);
}

/* Callbacks run when the token is free again, for they may submit. */
static void release(struct rueda_engine *engine)
{
    struct rueda_then_list due = engine->due;

    if (due.first != NULL)
        engine->due = (struct rueda_then_list){NULL, NULL};
    let_go(engine);
    if (due.first != NULL)
        rueda_then_run(&due);
}

/* Until when those who submit, and have helped lately, are left to go on. */
static int64_t help_until_ns(const struct rueda_engine *engine)
{
    return atomic_load_explicit(&engine->helped_ns, memory_order_relaxed) +
           engine->grace_ns;
}

/* Should the holder stop driving? So if callbacks are due; op is what a caller
 * waits for; the background thread has none and gives way to callers, and to
 * those who submit. */
static bool is_enough(struct rueda_engine *engine, struct rueda_op *op)
{
    if (engine->due.first != NULL)
        return true;
    if (op != NULL)
        return rueda_op_status(op) != RUEDA_IN_PROGRESS;
    return atomic_load_explicit(&engine->callers, memory_order_relaxed) > 0 ||
           is_idle(engine) || help_until_ns(engine) > rueda_clock_ns();
}

/* Is somebody gone without whom an operation cannot end? */
static bool is_spoilt(const struct rueda_engine *engine)
{
    const struct rueda_track *track = &engine->track;
    const bool is_at_work =
        track->is_running || rueda_lanes_have_work(&engine->lanes);

    return (track->is_running &&
            rueda_segment_has_gone(engine->job->segment,
                                   rueda_track_shares(track))) ||
           rueda_lanes_are_spoilt(&engine->lanes) ||
           (is_at_work && rueda_news_has_come(engine->job));
}

/* How long to sleep at most. */
static int64_t patience_ns(const struct rueda_engine *engine,
                           int64_t deadline_ns)
{
    const struct rueda_tcp_hub *tcp = engine->job->tcp;
    int64_t patience = tcp != NULL ? rueda_tcp_hub_patience_ns(tcp) : -1;
    int64_t look = atomic_load_explicit(&engine->look_ns, memory_order_relaxed);
    int64_t left;

    if (deadline_ns < 0 || look < deadline_ns)
        deadline_ns = look;
    left = deadline_ns - rueda_clock_ns();
    if (left < 0)
        left = 0;
    return patience >= 0 && patience < left ? patience : left;
}

static bool is_time_to_look(const struct rueda_engine *engine)
{
    return rueda_clock_ns() >=
           atomic_load_explicit(&engine->look_ns, memory_order_relaxed);
}

/* Is it, with what negotiators want? */
static bool is_look_due(struct rueda_engine *engine)
{
    plan_look(engine);
    return is_time_to_look(engine);
}

/* See whether others wait for this rank. */
static bool look(struct rueda_engine *engine)
{
    bool has_moved = rueda_engine_look(engine);

    for (int i = 1; i < LOOK_TURNS && has_moved; i++)
        if (!rueda_engine_look(engine))
            break;
    engine->last_look_ns = rueda_clock_ns();
    atomic_store_explicit(&engine->look_ns,
                          engine->last_look_ns + engine->look_period_ns,
                          memory_order_relaxed);
    return has_moved;
}

/* Nothing has moved for long: sleep until somebody has news. A peer that is
 * gone may have done its part before, so there is one more turn after that is
 * seen and before it is held against it. */
static void sleep_for_news(struct rueda_engine *engine, struct rueda_op *op,
                           int64_t deadline_ns)
{
    struct rueda_segment *segment = engine->job->segment;
    bool has_lost;

    rueda_segment_arm(segment);
    if (engine->job->tcp != NULL) {
        rueda_tcp_hub_tend(engine->job->tcp);
        rueda_tcp_hub_look_at_all(engine->job->tcp);
    }
    has_lost = is_spoilt(engine);
    if ((is_look_due(engine) ? look(engine) : engine_turn(engine)) ||
        is_enough(engine, op) || has_news(engine)) {
        rueda_segment_disarm(segment);
        return;
    }
    if (!has_lost) {
        rueda_segment_wait(segment, patience_ns(engine, deadline_ns));
        return;
    }
    rueda_segment_disarm(segment);
    rueda_engine_fail_by_peer(engine, -1);
}

/* Did others of this system have my core for most of that time? If it was the
 * hypervisor that took it, to sleep would only give it more to take. */
static bool was_shared(struct rueda_engine *engine, int64_t away_ns)
{
    const bool is_known = pthread_equal(engine->yielder, pthread_self());
    const int64_t before = engine->delay_ns;

    engine->yielder = pthread_self();
    engine->delay_ns = rueda_thread_delay_ns();
    return engine->delay_ns < 0 ||
           (is_known && engine->delay_ns - before > away_ns / 2);
}

/* Give up the core, and remember if it was long gone. */
static void give_way(struct rueda_engine *engine, int64_t now_ns,
                     struct rueda_backoff *backoff)
{
    int64_t back_ns;

    rueda_yield();
    back_ns = rueda_clock_ns();
    if (back_ns - now_ns < LONG_YIELD_NS ||
        !was_shared(engine, back_ns - now_ns))
        return;
    engine->busy_until_ns = back_ns + BUSY_NS;
    backoff->yield_ns = 0;
}

static bool is_busy(struct rueda_engine *engine)
{
    if (engine->busy_until_ns > 0 && rueda_clock_ns() >= engine->busy_until_ns)
        engine->busy_until_ns = 0;
    return engine->busy_until_ns > 0;
}

/* How long to yield before sleeping. */
static int64_t awake_ns(struct rueda_engine *engine, bool is_waited_for)
{
    if (is_busy(engine))
        return 0;
    return is_waited_for || engine->yield_ns < YIELD_UNASKED_NS
               ? engine->yield_ns
               : YIELD_UNASKED_NS;
}

static void drive(struct rueda_engine *engine, struct rueda_op *op,
                  int64_t deadline_ns)
{
    struct rueda_backoff backoff;

    if (op == NULL && !engine->has_room)
        rueda_backoff_init(&backoff, 0, 0);
    else
        rueda_backoff_init(&backoff, engine->spin_ns,
                           awake_ns(engine, op != NULL));
    for (;;) {
        bool moved = engine_turn(engine);
        int64_t now = 0;

        if (is_enough(engine, op))
            return;
        if (moved)
            rueda_backoff_reset(&backoff);
        if (deadline_ns >= 0 || (!moved && rueda_backoff_wants_time(&backoff)))
            now = rueda_clock_ns();
        if (deadline_ns >= 0 && now >= deadline_ns)
            return;
        if (moved)
            continue;
        switch (rueda_backoff_next(&backoff, now)) {
        case RUEDA_SPIN:
            rueda_relax();
            break;
        case RUEDA_YIELD:
            give_way(engine, now, &backoff);
            break;
        case RUEDA_SLEEP:
            sleep_for_news(engine, op, deadline_ns);
            break;
        }
    }
}

/* Wait until the holder has delivered op or has let go of the token. */
static void park(struct rueda_engine *engine, struct rueda_op *op,
                 int64_t deadline_ns)
{
    pthread_mutex_lock(&engine->lock);
    atomic_fetch_add(&engine->parked, 1);
    rueda_fence();
    if (rueda_op_status(op) == RUEDA_IN_PROGRESS &&
        atomic_load(&engine->token) != 0)
        rueda_condition_wait(&engine->changed, &engine->lock, deadline_ns);
    atomic_fetch_sub(&engine->parked, 1);
    pthread_mutex_unlock(&engine->lock);
}

rueda_status rueda_engine_wait(struct rueda_engine *engine, struct rueda_op *op,
                               int64_t deadline_ns)
{
    bool has_waited = false;

    while (rueda_op_status(op) == RUEDA_IN_PROGRESS) {
        if (take(engine)) {
            drive(engine, op, deadline_ns);
            release(engine);
        } else {
            if (!has_waited) {
                /* The background thread may sleep: it should let go. */
                has_waited = true;
                atomic_fetch_add(&engine->callers, 1);
                wake_holder(engine);
            }
            park(engine, op, deadline_ns);
        }
        if (deadline_ns >= 0 && rueda_clock_ns() >= deadline_ns)
            break;
    }
    if (has_waited) {
        /* While we were counted, nobody told the background thread. */
        atomic_fetch_sub(&engine->callers, 1);
        tell_thread(engine);
    }
    if (rueda_op_status(op) == RUEDA_IN_PROGRESS) {
        /* Nobody may be driving now, and the operation runs on. */
        tell_thread(engine);
        return RUEDA_ERR_TIMEOUT;
    }
    return rueda_op_status(op);
}

/* ---- The background thread -------------------------------------------- */

/* Something to do, or time to look. Under the lock. */
static bool has_duty(struct rueda_engine *engine)
{
    if (atomic_load(&engine->is_told) || is_time_to_look(engine))
        return true;
    rueda_condition_wait(
        &engine->work, &engine->lock,
        atomic_load_explicit(&engine->look_ns, memory_order_relaxed));
    return atomic_load(&engine->is_told);
}

/* Those who submit have driven what they had; or nobody did. */
static void be_patient(struct rueda_engine *engine, bool have_driven)
{
    if (!have_driven)
        engine->grace_ns = engine->grace_least_ns;
    else if (engine->grace_ns < GRACE_MOST_NS)
        engine->grace_ns *= 2;
}

/* If somebody else holds the token, that one tells us on release, and looks
 * while it waits. */
static void do_duty(struct rueda_engine *engine, bool is_look)
{
    if (!take(engine)) {
        if (is_look)
            atomic_store_explicit(&engine->look_ns,
                                  rueda_clock_ns() + engine->look_period_ns,
                                  memory_order_relaxed);
        else
            be_patient(engine, true);
        return;
    }
    if (is_look)
        look(engine);
    else
        be_patient(engine, is_idle(engine));
    drive(engine, NULL, -1);
    release(engine);
}

/* Leave it to those who submit, as long as they help. Under the lock. */
static void leave_to_others(struct rueda_engine *engine)
{
    int64_t until = rueda_clock_ns() + engine->grace_ns;

    while (!engine->is_stopping && !engine->is_hurried &&
           rueda_clock_ns() < until) {
        rueda_condition_wait(&engine->work, &engine->lock, until);
        if (rueda_clock_ns() >= until)
            until = help_until_ns(engine);
    }
    engine->is_hurried = false;
}

/* Does it look in again, told or not? */
static bool stays_awake(struct rueda_engine *engine)
{
    const int64_t now = rueda_clock_ns();

    if (atomic_exchange_explicit(&engine->is_used, false, memory_order_relaxed))
        engine->used_ns = now;
    return engine->grace_ns >= GRACE_MOST_NS &&
           now - engine->used_ns < AWAKE_NS;
}

static void *background(void *arg)
{
    struct rueda_engine *engine = arg;

    rueda_log_set_rank(engine->job->rank);
    pthread_mutex_lock(&engine->lock);
    while (!engine->is_stopping) {
        bool is_look;

        if (!has_duty(engine))
            continue;
        is_look = !atomic_load(&engine->is_told);
        if (!is_look)
            leave_to_others(engine);
        is_look = is_look || is_time_to_look(engine);
        /* Else what is submitted from now on is told again. */
        if (!stays_awake(engine))
            atomic_store(&engine->is_told, false);
        pthread_mutex_unlock(&engine->lock);
        do_duty(engine, is_look);
        pthread_mutex_lock(&engine->lock);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

/* Under the lock. */
static void start_thread(struct rueda_engine *engine)
{
    if (engine->has_thread || engine->is_stopping)
        return;
    engine->has_thread =
        rueda_thread_start(&engine->thread, background, engine) == RUEDA_OK;
    if (!engine->has_thread)
        log_warn("no background thread: operations make progress only while "
                 "somebody waits for one");
}

/* Remember it if this is not light. Before it is pushed. */
static void weigh(struct rueda_engine *engine, struct rueda_op *op)
{
    if (op->is_named &&
        rueda_request_bytes(&rueda_named_of(op)->request) > engine->light_bytes)
        atomic_store_explicit(&engine->is_heavy, true, memory_order_relaxed);
}

/* The background thread is not to leave this to anybody. */
static void hurry_thread(struct rueda_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->is_hurried = true;
    atomic_store(&engine->is_told, true);
    pthread_cond_signal(&engine->work);
    pthread_mutex_unlock(&engine->lock);
}

/* Do many come at once? Then they go together, without a turn for the first. */
static bool is_rush(struct rueda_engine *engine)
{
    const uint64_t before =
        atomic_load_explicit(&engine->came_ticks, memory_order_relaxed);
    const uint64_t now = rueda_ticks();
    const bool is_near = now - before < RUSH_TICKS;
    const bool was_near =
        atomic_load_explicit(&engine->is_rush, memory_order_relaxed);

    if (!is_near)
        atomic_store_explicit(&engine->came_ticks, now, memory_order_relaxed);
    if (is_near != was_near)
        atomic_store_explicit(&engine->is_rush, is_near, memory_order_relaxed);
    return is_near || was_near;
}

/* By one who does not wait; true if there was one. Callbacks are left to the
 * background thread, for they may want locks that our caller holds. */
static bool take_turn(struct rueda_engine *engine)
{
    bool is_due;

    if (!take(engine))
        return false;
    engine_turn(engine);
    is_due = engine->due.first != NULL;
    let_go(engine);
    if (is_due)
        hurry_thread(engine);
    return true;
}

/* By one who has submitted; true if there was a turn. */
static bool help(struct rueda_engine *engine)
{
    int64_t now;

    if (engine->has_room ||
        atomic_load_explicit(&engine->is_heavy, memory_order_relaxed) ||
        is_rush(engine))
        return false;
    now = rueda_clock_ns();
    if (now - atomic_load_explicit(&engine->helped_ns, memory_order_relaxed) <
        HELP_APART_NS)
        return false;
    /* Also if it is the background thread that has the token: it lets go. */
    atomic_store_explicit(&engine->helped_ns, now, memory_order_relaxed);
    return take_turn(engine);
}

void rueda_engine_poll(struct rueda_engine *engine)
{
    if (!engine->has_room)
        take_turn(engine);
}

void rueda_engine_submit_more(struct rueda_engine *engine, struct rueda_op *op)
{
    weigh(engine, op);
    rueda_engine_push(engine, op);
}

/* Something was pushed. */
static void see_to_progress(struct rueda_engine *engine, bool is_named)
{
    if (!atomic_load_explicit(&engine->is_used, memory_order_relaxed))
        atomic_store_explicit(&engine->is_used, true, memory_order_relaxed);
    if (!atomic_load_explicit(&engine->has_thread, memory_order_relaxed)) {
        pthread_mutex_lock(&engine->lock);
        start_thread(engine);
        pthread_mutex_unlock(&engine->lock);
    }
    if (is_named && help(engine))
        return;
    /* A holder that sleeps looks at the queue when it wakes. */
    if (rueda_segment_is_asleep(engine->job->segment))
        wake_holder(engine);
    /* Either we see that the background thread has to be told again, or it sees
     * what we have pushed. */
    if (!atomic_load(&engine->is_told))
        tell_thread(engine);
}

void rueda_engine_submit(struct rueda_engine *engine, struct rueda_op *op)
{
    const bool is_named = op->is_named; /* it may be gone when it is pushed */

    weigh(engine, op);
    rueda_engine_push(engine, op);
    see_to_progress(engine, is_named);
}

void rueda_engine_submit_chain(struct rueda_engine *engine,
                               struct rueda_op *first)
{
    for (struct rueda_op *op = first; op != NULL; op = op->next)
        weigh(engine, op);
    rueda_op_push_chain(&engine->lanes.arrived, first);
    see_to_progress(engine, true);
}

void rueda_engine_abort(struct rueda_engine *engine, const char *why)
{
    rueda_engine_blame(engine, RUEDA_ERR_CANCELLED, why);
    wake_holder(engine);
    tell_thread(engine);
}

/* ---- Life ------------------------------------------------------------- */

/* Spinning helps nobody where ranks share cores or pay for their time; nor
 * where each look at a socket takes as long as giving way does. */
static void set_patience(struct rueda_engine *engine)
{
    const struct rueda_config *config = &engine->job->config;
    const struct rueda_segment *segment = engine->job->segment;
    bool is_crowded = rueda_segment_cpus(segment) < segment->size;
    double quota = rueda_machine_cpu_quota();
    bool is_tight = quota > 0 && quota < segment->size;
    bool has_tcp = engine->job->tcp != NULL;

    engine->has_room = rueda_segment_cpus(segment) >= 2 * segment->size;
    engine->grace_least_ns = engine->has_room ? GRACE_NS
                             : has_tcp        ? GRACE_CROWDED_NS
                                              : GRACE_ALONE_NS;
    engine->light_bytes = has_tcp ? LIGHT_BYTES : LIGHT_ALONE_BYTES;
    engine->grace_ns = engine->grace_least_ns;
    engine->spin_ns = is_crowded || is_tight || has_tcp ? 0 : SPIN_NS;
    engine->yield_ns = is_tight ? 0 : is_crowded ? YIELD_CROWDED_NS : YIELD_NS;
    if (config->spin_us >= 0)
        engine->spin_ns = config->spin_us * 1000;
    if (config->yield_us >= 0)
        engine->yield_ns = config->yield_us * 1000;
}

/* Others may stall for want of this rank also while nobody calls us. */
static void set_looks(struct rueda_engine *engine)
{
    const struct rueda_config *config = &engine->job->config;
    int64_t stall_ns = (config->stall_warn_ms > 0 ? config->stall_warn_ms
                                                  : config->stall_end_ms) *
                       1000000;
    int64_t period = stall_ns / LOOKS_A_STALL;

    if (period == 0 || period > LOOK_MOST_NS)
        period = LOOK_MOST_NS;
    engine->look_period_ns = period < LOOK_LEAST_NS ? LOOK_LEAST_NS : period;
    atomic_init(&engine->look_ns, rueda_clock_ns() + engine->look_period_ns);
    if (stall_ns == 0 || engine->job->size == 1)
        return;
    pthread_mutex_lock(&engine->lock);
    start_thread(engine);
    pthread_mutex_unlock(&engine->lock);
}

static void unmap(struct rueda_engine *engine)
{
    rueda_track_close(&engine->track);
    rueda_numbers_fini(&engine->numbers);
    if (engine->keep != NULL)
        rueda_memory_unmap(engine->keep, engine->job->config.keep_bytes);
}

/* Where ordered operations run. */
static rueda_status open_track(struct rueda_engine *engine,
                               const struct rueda_kernels *kernels)
{
    struct rueda_job *job = engine->job;
    struct rueda_track_args args = {
        .job = job,
        .select = &engine->select,
        .kernels = kernels,
        .mesh = &job->mesh,
        .slab = job->has_slab ? &job->slab : NULL,
    };
    rueda_status status;
    int *hosts = NULL;

    if (job->topology != NULL) {
        hosts = calloc((size_t)job->size, sizeof(int));
        if (hosts == NULL)
            return RUEDA_ERR_NOMEM;
        for (int rank = 0; rank < job->size; rank++)
            hosts[rank] = job->topology->places[rank].host;
        args.hosts = hosts;
        args.host_limit = job->topology->host_count;
    }
    status = rueda_track_open(&engine->track, &args);
    free(hosts);
    return status;
}

rueda_status rueda_engine_init(struct rueda_engine *engine,
                               struct rueda_job *job, struct rueda_text *error)
{
    const char *wanted = job->config.kernels;
    const struct rueda_kernels *kernels;
    rueda_status status;

    memset(engine, 0, sizeof(*engine));
    engine->job = job;
    rueda_select_init(&engine->select);
    status = rueda_select_parse(&engine->select, job->segment->agreement->algo,
                                error);
    if (status != RUEDA_OK)
        return status;
    kernels = rueda_host_kernels(strcmp(wanted, "auto") == 0 ? NULL : wanted);
    if (kernels == NULL) {
        rueda_text_set(error,
                       "RUEDA_KERNELS is \"%s\", which is not auto, c, avx2 or "
                       "avx512, or this CPU cannot run it",
                       wanted);
        return RUEDA_ERR_INVALID;
    }
    engine->keep = rueda_memory_map_private(job->config.keep_bytes);
    if (engine->keep == NULL || open_track(engine, kernels) != RUEDA_OK ||
        rueda_lanes_init(&engine->lanes, job, &engine->select, kernels) !=
            RUEDA_OK) {
        rueda_text_set(error, "no memory for the engine");
        unmap(engine);
        return RUEDA_ERR_NOMEM;
    }
    engine->lanes.numbers = &engine->numbers;
    engine->lanes.call_after_ns = CALL_AFTER_NS;
    pthread_mutex_init(&engine->lock, NULL);
    rueda_condition_init(&engine->changed);
    rueda_condition_init(&engine->work);
    set_patience(engine);
    set_looks(engine);
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
        wake_holder(engine);
        rueda_thread_join(engine->thread);
    }
    rueda_engine_leave(engine);
    rueda_engine_end(engine, RUEDA_ERR_CLOSED, "the context was shut down");
    rueda_then_run(&engine->due);
    rueda_lanes_fini(&engine->lanes);
    pthread_cond_destroy(&engine->changed);
    pthread_cond_destroy(&engine->work);
    pthread_mutex_destroy(&engine->lock);
    unmap(engine);
}
