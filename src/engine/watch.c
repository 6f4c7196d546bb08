/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warnings about this rank's oldest operation when it has not moved for long:
 * the ranks it waits for, and processes of this host that are stopped. One rank
 * of each host writes the warning, and later, where the settings ask for it,
 * ends the job.
 */
#define RUEDA_LOG_TAG "engine"

#include "engine/watch.h"

#include "base/hash.h"
#include "base/log.h"
#include "engine/drive.h"
#include "os/process.h"
#include "trace/flight.h"

/* Ranks whose processes a warning describes. */
#define MOST_TOLD 4

/* The operation that is watched. */
struct subject {
    const struct rueda_lane *lane;
    const struct rueda_ticket *ticket;
    bool is_decided;
    uint64_t mark;
};

int64_t rueda_watch_first_ms(const struct rueda_config *config)
{
    const int64_t all[] = {config->stall_warn_ms, config->stall_end_ms,
                           config->stall_give_up_ms};
    int64_t first = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] > 0 && (first == 0 || all[i] < first))
            first = all[i];
    return first;
}

/* ---- The oldest operation --------------------------------------------- */

static uint64_t mark_track(const struct rueda_track *track, uint64_t salt)
{
    return rueda_hash_mix(rueda_hash_mix(track->tag.sequence + 1) +
                          track->task.moves + salt);
}

/* A message waits for its own rank, and a join for the end of all work. */
static const struct rueda_ticket *oldest_of(const struct rueda_lane *lane)
{
    const struct rueda_ticket *ticket = lane->first;

    while (ticket != NULL && ticket->request.kind != RUEDA_SET_ADD &&
           ticket->request.kind != RUEDA_SET_DROP &&
           ticket->request.kind != RUEDA_SET_CLOSE &&
           ticket->request.kind > RUEDA_BARRIER)
        ticket = (const struct rueda_ticket *)ticket->op.next;
    return ticket;
}

static bool find_subject(struct rueda_engine *engine, struct subject *out)
{
    const struct rueda_lanes *lanes = &engine->lanes;

    *out = (struct subject){.is_decided = true};
    for (int i = 0; i < lanes->count; i++) {
        const struct rueda_lane *lane = lanes->all[i];

        if (lane->batch.decision == NULL)
            continue;
        out->lane = lane;
        out->mark = mark_track(&lane->track, lane->moves + 1);
        return true;
    }
    for (int i = 0; i < lanes->count; i++) {
        out->lane = lanes->all[i];
        out->ticket = oldest_of(out->lane);
        out->is_decided = false;
        if (out->ticket != NULL) {
            out->mark = rueda_hash_mix(
                (uint64_t)atomic_load(
                    &((struct rueda_ticket *)out->ticket)->op.handle) +
                ((uint64_t)i << 32));
            return true;
        }
    }
    return false;
}

static void tell_subject(const struct subject *subject,
                         struct rueda_text *words)
{
    if (subject->is_decided)
        rueda_lane_tell(subject->lane, words);
    else
        rueda_lane_tell_op(subject->lane, &subject->ticket->request, words);
}

/* ---- The processes of this host --------------------------------------- */

static bool is_stopped(char state)
{
    return state == 'T';
}

/* Is the process unable to report itself? */
static bool is_mute(char state)
{
    return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

static const char *words_of(char state)
{
    switch (state) {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps in a system call";
    case 'D':
        return "waits in the kernel, for a disk or a file system";
    case 'T':
        return "is stopped; SIGCONT lets it go on";
    case 't':
        return "is stopped by a debugger";
    case 'Z':
    case 'X':
        return "has ended";
    default:
        return NULL;
    }
}

static char state_of(const struct rueda_segment *segment, int member)
{
    return rueda_process_state(segment->members[member].pid);
}

/* Is that member another process of the set? */
static bool is_other(const struct rueda_engine *engine,
                     const struct subject *subject, int member)
{
    const struct rueda_segment *segment = engine->job->segment;
    const struct rueda_set *set = subject->lane->set;
    bool is_in = false;

    if (member == segment->me || segment->is_dismissed[member] ||
        segment->members[member].pid == segment->members[segment->me].pid)
        return false;
    for (int i = 0; i < set->size; i++)
        is_in = is_in || set->ranks[i] == segment->members[member].rank;
    return is_in;
}

/* A stopped process of the set, or -1. */
static int find_stopped(const struct rueda_engine *engine,
                        const struct subject *subject)
{
    const struct rueda_segment *segment = engine->job->segment;

    for (int i = 0; i < segment->size; i++)
        if (is_other(engine, subject, i) && is_stopped(state_of(segment, i)))
            return i;
    return -1;
}

/* One rank of a host speaks for it: the lowest one that can. */
static bool is_speaker(const struct rueda_engine *engine,
                       const struct subject *subject)
{
    const struct rueda_segment *segment = engine->job->segment;

    for (int i = 0; i < segment->me; i++)
        if (is_other(engine, subject, i) && !is_mute(state_of(segment, i)))
            return false;
    return true;
}

void rueda_watch_tell_rank(void *check_arg, int rank, struct rueda_text *words)
{
    const struct rueda_lane *lane = check_arg;
    const struct rueda_segment *segment = lane->formation->segment;

    for (int i = 0; i < segment->size; i++) {
        const int pid = segment->members[i].pid;
        const char *does;

        if (segment->members[i].rank != rank || i == segment->me ||
            segment->is_dismissed[i] ||
            pid == segment->members[segment->me].pid)
            continue;
        does = words_of(rueda_process_state(pid));
        if (does != NULL)
            rueda_text_add(words, "(pid %d %s)", pid, does);
    }
}

static void tell_member(const struct rueda_segment *segment, int member,
                        struct rueda_text *words)
{
    const char *does = words_of(state_of(segment, member));

    rueda_text_add(words, ". Rank %d (pid %d) %s",
                   segment->members[member].rank, segment->members[member].pid,
                   does != NULL ? does : "cannot be seen from here");
    rueda_flight_tell(segment, member, words);
}

/* Those that are stopped or gone; if there is none, all others. */
static void tell_members(const struct rueda_engine *engine,
                         const struct subject *subject,
                         struct rueda_text *words)
{
    const struct rueda_segment *segment = engine->job->segment;
    int told = 0;

    for (int i = 0; i < segment->size && told < MOST_TOLD; i++)
        if (is_other(engine, subject, i) && is_mute(state_of(segment, i))) {
            tell_member(segment, i, words);
            told++;
        }
    if (told > 0)
        return;
    for (int i = 0; i < segment->size && told < MOST_TOLD; i++)
        if (is_other(engine, subject, i)) {
            tell_member(segment, i, words);
            told++;
        }
    if (segment->size < engine->formation->size)
        rueda_text_add(words,
                       ". What ranks of other hosts do cannot be seen here");
}

/* ---- Checking ----------------------------------------------------------- */

/* The coordinator warns about operations that ranks have not submitted, and
 * ends the job. After how many times their limits do other ranks do so, which
 * cannot know whether the coordinator still does? 0: they leave it to the
 * coordinator.
 */
static int times_of(const struct rueda_engine *engine,
                    const struct subject *subject)
{
    const struct rueda_segment *segment = engine->job->segment;
    int lowest;

    if (subject->is_decided)
        return 1;
    lowest = subject->lane->set->ranks[0];
    if (lowest == engine->formation->rank)
        return 0;
    for (int i = 0; i < segment->size; i++)
        if (segment->members[i].rank == lowest && !segment->is_dismissed[i])
            return is_mute(state_of(segment, i)) ? 1 : 0;
    return 2;
}

static void fail(struct rueda_engine *engine, const struct subject *subject,
                 int64_t limit_ms, const char *setting)
{
    struct rueda_text words = {{0}};

    tell_subject(subject, &words);
    rueda_text_add(&words,
                   " has not moved in rank %d for more than %g seconds, so the "
                   "job ends (%s)",
                   engine->formation->rank, (double)limit_ms / 1e3, setting);
    tell_members(engine, subject, &words);
    rueda_failing_begin(engine, RUEDA_ERR_STALLED, words.chars);
}

static void warn(struct rueda_engine *engine, const struct subject *subject,
                 int64_t age_ns)
{
    struct rueda_text words = {{0}};

    tell_subject(subject, &words);
    rueda_text_add(&words,
                   " has not moved in rank %d for %.1f seconds "
                   "(RUEDA_STALL_WARN)",
                   engine->formation->rank, (double)age_ns / 1e9);
    tell_members(engine, subject, &words);
    log_warn("%s", words.chars);
}

/* Checks are a period apart, or two; after this many the rank did not run. */
#define LATE_PERIODS 4

/* While this rank did not run, because it was stopped itself or the machine
 * was, others had no chance to show that they move: that time does not count.
 */
static void leave_out_absence(struct rueda_watch *watch, int64_t period_ns,
                              int64_t now_ns)
{
    const int64_t gap_ns = now_ns - watch->looked_ns;

    if (watch->looked_ns > 0 && gap_ns > LATE_PERIODS * period_ns) {
        watch->since_ns += gap_ns - period_ns;
        if (watch->stopped_ns > 0)
            watch->stopped_ns += gap_ns - period_ns;
    }
    watch->looked_ns = now_ns;
}

/* Nothing has changed since. */
static void judge(struct rueda_engine *engine, const struct subject *subject,
                  int64_t now_ns)
{
    const struct rueda_config *config = &engine->job->config;
    struct rueda_watch *watch = &engine->watch;
    const int64_t age_ns = now_ns - watch->since_ns;
    const int64_t warn_ns = RUEDA_MS(config->stall_warn_ms);
    const int64_t repeat_ns = RUEDA_MS(config->stall_repeat_ms);
    const int times = times_of(engine, subject);

    if (config->stall_give_up_ms > 0 && watch->stopped_ns > 0 &&
        now_ns - watch->stopped_ns >= RUEDA_MS(config->stall_give_up_ms)) {
        fail(engine, subject, config->stall_give_up_ms, "RUEDA_STALL_GIVE_UP");
        return;
    }
    if (times == 0)
        return;
    if (config->stall_end_ms > 0 &&
        age_ns >= times * RUEDA_MS(config->stall_end_ms)) {
        fail(engine, subject, config->stall_end_ms, "RUEDA_STALL_SHUTDOWN");
        return;
    }
    if (warn_ns == 0 || age_ns < times * warn_ns ||
        (watch->warned_ns > 0 &&
         now_ns - watch->warned_ns <
             (repeat_ns > warn_ns ? repeat_ns : warn_ns)))
        return;
    watch->warned_ns = now_ns;
    if (is_speaker(engine, subject))
        warn(engine, subject, age_ns);
}

void rueda_watch_check(struct rueda_engine *engine)
{
    const int64_t first_ms = rueda_watch_first_ms(&engine->job->config);
    struct rueda_watch *watch = &engine->watch;
    const int64_t now_ns = rueda_clock_ns();
    struct subject subject;

    if (first_ms == 0 || engine->formation->size == 1 ||
        atomic_load(&engine->failed) < 0)
        return;
    leave_out_absence(watch, engine->policy.check_period_ns, now_ns);
    if (!find_subject(engine, &subject)) {
        watch->mark = 0;
        return;
    }
    if (subject.mark != watch->mark) {
        *watch = (struct rueda_watch){
            .mark = subject.mark, .since_ns = now_ns, .looked_ns = now_ns};
        return;
    }
    if (now_ns - watch->since_ns < RUEDA_MS(first_ms) / 2)
        return;
    if (find_stopped(engine, &subject) < 0)
        watch->stopped_ns = 0;
    else if (watch->stopped_ns == 0)
        watch->stopped_ns = now_ns;
    judge(engine, &subject, now_ns);
}
