/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's membership (launch/membership.h) with 16 to 256 ranks in
 * virtual time. A seed decides everything:
 *
 *     test_sim_membership [FIRST [COUNT]]
 *
 * Around the real state machine are modelled agents, processes and the time
 * that word of them takes. Processes die, alone or several at once, while they
 * start, work or ask; agents die; hosts are cut off, come back, are listed and
 * no longer listed, are told to leave. Whatever happens the job ends, and what
 * membership.h promises holds after each action.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/membership.h"
#include "sim/seed.h"
#include "transport/sim/dice.h"
#include "unit/unit.h"

#define MS     ((int64_t)1000000)
#define SECOND ((int64_t)1000000000)

#define MOST_HOSTS   24
#define MOST_WORKERS 4096
#define MOST_EVENTS  65536
#define MOST_STEPS   400000 /* events of one job */
#define GOAL         60     /* commits until the training is done */
#define FAULTS_UNTIL (120 * SECOND)

typedef enum event_kind {
    AGENT_COMES,
    AGENT_GOES, /* the launcher hears of it */
    ASKS,
    ENDS, /* the launcher hears of it */
    COMMITS,
    FAULT,
    TICK,
} event_kind;

struct event {
    int64_t then_ns;
    uint64_t order;
    event_kind kind;
    int number;    /* of a host, a worker or a term */
    unsigned life; /* of the host: what was meant for an earlier one is void */
    int code;
};

typedef enum worker_state {
    STARTS,
    WAITS,
    WORKS,
    LEAVES,
    DEAD
} worker_state;

struct worker {
    worker_state state;
    bool is_known_dead; /* the launcher has heard */
    int host;
    uint32_t term;
    int rank;
    uint64_t progress;
    bool is_drained;
};

struct host {
    int slots;  /* listed; 0: not */
    int listed; /* when it is */
    bool is_asked;
    bool is_there;
    bool is_drained;
    unsigned life;
};

struct world {
    struct rueda_dice dice;
    struct rueda_membership *members;
    struct rueda_membership_args args;
    int64_t now_ns;
    struct event events[MOST_EVENTS]; /* a heap */
    int event_count;
    uint64_t order;
    struct host hosts[MOST_HOSTS];
    int host_count;
    struct worker workers[MOST_WORKERS];
    int worker_count;
    uint32_t term;
    int size;
    int placed;
    bool is_broken; /* a member of the term has died or the news are out */
    bool is_ended;
    int code;
    char words[RUEDA_TEXT_BYTES];
    struct rueda_text error; /* what does not hold */
};

/* ---- Events ----------------------------------------------------------- */

static int below(struct world *world, int n)
{
    return (int)rueda_dice_below(&world->dice, (uint64_t)n);
}

static void wrong(struct world *world, const char *what)
{
    if (rueda_text_is_empty(&world->error))
        rueda_text_set(&world->error, "at %.3f s in term %u: %s",
                       (double)world->now_ns / 1e9, world->term, what);
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->then_ns != b->then_ns ? a->then_ns < b->then_ns
                                    : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
    const struct event kept = *a;

    *a = *b;
    *b = kept;
}

static void later(struct world *world, int64_t delay_ns, event_kind kind,
                  int number, int code)
{
    int at = world->event_count;

    if (at == MOST_EVENTS) {
        wrong(world, "too many events");
        return;
    }
    world->events[world->event_count++] = (struct event){
        .then_ns = world->now_ns + delay_ns,
        .order = world->order++,
        .kind = kind,
        .number = number,
        .life = kind <= AGENT_GOES ? world->hosts[number].life : 0,
        .code = code};
    while (at > 0 &&
           is_before(&world->events[at], &world->events[(at - 1) / 2])) {
        swap(&world->events[at], &world->events[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct event take(struct world *world)
{
    const struct event first = world->events[0];
    int at = 0;

    world->events[0] = world->events[--world->event_count];
    for (;;) {
        int least = at;

        for (int child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < world->event_count &&
                is_before(&world->events[child], &world->events[least]))
                least = child;
        if (least == at)
            return first;
        swap(&world->events[at], &world->events[least]);
        at = least;
    }
}

/* ---- What the membership does ----------------------------------------- */

static int count_alive(const struct world *world)
{
    int count = 0;

    for (int i = 0; i < world->worker_count; i++)
        count += world->workers[i].state <= WORKS &&
                 !world->workers[i].is_known_dead;
    return count;
}

static void see_start(struct world *world, const struct rueda_action *action)
{
    struct worker *worker = &world->workers[action->worker];

    if (action->worker != world->worker_count ||
        world->worker_count == MOST_WORKERS)
        wrong(world, "a process has a number out of turn");
    if (!world->hosts[action->host].is_there)
        wrong(world, "a process starts where no agent is");
    world->worker_count++;
    *worker = (struct worker){.host = action->host, .rank = -1};
    if (count_alive(world) > world->args.most)
        wrong(world, "more processes than --max-np");
    if (world->now_ns < FAULTS_UNTIL && below(world, 60) == 0) {
        worker->state = DEAD;
        later(world, below(world, 2000) * MS, ENDS, action->worker, 1);
    } else {
        later(world, (50 + below(world, 4000)) * MS, ASKS, action->worker, 0);
    }
}

/* A new term begins: no rank may be left in the one before. */
static void see_term(struct world *world,
                     const struct rueda_rendezvous_ranks *place)
{
    if (place->term != world->term + 1)
        wrong(world, "terms are not numbered in order");
    if (world->placed != world->size)
        wrong(world, "a term began before all of the last had their places");
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].state == WORKS &&
            !world->workers[i].is_known_dead)
            wrong(world, "a term began while a rank worked in the last");
    if (place->size > world->args.most || place->size < world->args.least)
        wrong(world, "a term has too many or too few ranks");
    world->term = place->term;
    world->size = place->size;
    world->placed = 0;
    world->is_broken = false;
    later(world, (5 + below(world, 50)) * MS, COMMITS, (int)place->term, 0);
}

static void see_place(struct world *world, const struct rueda_action *action)
{
    struct worker *worker = &world->workers[action->worker];
    const struct rueda_rendezvous_ranks *place = &action->ranks;

    if (place->term != world->term)
        see_term(world, place);
    if (worker->state != WAITS && worker->state != DEAD)
        wrong(world, "a place for a process that has not asked");
    if (worker->is_drained)
        wrong(world, "a place for a process that was told to leave");
    if (place->rank != world->placed || place->size != world->size ||
        place->local_rank >= place->local_size ||
        place->cross_rank >= place->cross_size)
        wrong(world, "a place that makes no sense");
    world->placed++;
    worker->term = place->term;
    worker->rank = place->rank;
    if (worker->state == WAITS)
        worker->state = WORKS;
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].term == world->term &&
            world->workers[i].rank == 0 &&
            world->workers[i].progress < worker->progress)
            wrong(world, "a rank has come farther than rank 0");
}

static void see_leave(struct world *world, int worker, int code)
{
    if (world->workers[worker].state >= LEAVES)
        return;
    world->workers[worker].state = LEAVES;
    later(world, (1 + below(world, 3000)) * MS, ENDS, worker, code);
}

static void members_notice(struct world *world, int64_t least_ms,
                           int spread_ms);

static void see(void *arg, const struct rueda_action *action)
{
    struct world *world = arg;
    struct host *host = &world->hosts[action->host];

    if (world->is_ended)
        wrong(world, "an action after the end");
    switch (action->kind) {
    case RUEDA_ACTION_REACH:
        host->is_asked = true;
        host->is_drained = false;
        later(world, (10 + below(world, 3000)) * MS, AGENT_COMES, action->host,
              0);
        break;
    case RUEDA_ACTION_LEAVE:
        host->is_asked = false;
        host->is_there = false;
        host->life++;
        break;
    case RUEDA_ACTION_START:
        see_start(world, action);
        break;
    case RUEDA_ACTION_RANKS:
        see_place(world, action);
        break;
    case RUEDA_ACTION_REFUSE:
    case RUEDA_ACTION_KILL:
        see_leave(world, action->worker, 0);
        break;
    case RUEDA_ACTION_OVER:
        members_notice(world, 0, 40);
        break;
    case RUEDA_ACTION_CHANGE:
        if (action->term != world->term)
            wrong(world, "news of another term");
        world->is_broken = true;
        members_notice(world, 5, 100);
        break;
    case RUEDA_ACTION_SAY:
        break;
    case RUEDA_ACTION_END:
        world->is_ended = true;
        world->code = action->code;
        snprintf(world->words, sizeof(world->words), "%s", action->words);
        break;
    }
}

/* ---- What happens ----------------------------------------------------- */

/* The members of a term that is over leave it and ask again. Some had their
 * last commit, the others not. */
static void members_notice(struct world *world, int64_t least_ms, int spread_ms)
{
    world->is_broken = true;
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].state == WORKS)
            later(world, (least_ms + 1 + below(world, spread_ms)) * MS, ASKS, i,
                  (int)world->workers[i].term);
}

static void die(struct world *world, int number, int64_t delay_ns)
{
    struct worker *worker = &world->workers[number];

    if (worker->state == DEAD)
        return;
    if (worker->state == WORKS && worker->term == world->term) {
        /* A commit may have come through on some of the others. */
        for (int i = 0; i < world->worker_count && !world->is_broken; i++)
            if (world->workers[i].state == WORKS && below(world, 2) == 0)
                world->workers[i].progress++;
        world->is_broken = true;
        members_notice(world, 1, 200);
    }
    worker->state = DEAD;
    later(world, delay_ns, ENDS, number, 137);
}

/* All of a host is gone; the launcher hears of it later. */
static void lose_host(struct world *world, int h, int64_t delay_ns)
{
    if (!world->hosts[h].is_there)
        return;
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].host == h && world->workers[i].state != DEAD &&
            !world->workers[i].is_known_dead)
            die(world, i, delay_ns);
    later(world, delay_ns, AGENT_GOES, h, 0);
}

static void list_hosts(struct world *world)
{
    struct rueda_hosts hosts = {.list = NULL};

    for (int h = 0; h < world->host_count; h++) {
        struct rueda_hosts_entry host = {.slots = world->hosts[h].listed};

        snprintf(host.name, sizeof(host.name), "h%d", h);
        if (host.slots > 0 && !rueda_hosts_append(&hosts, &host))
            wrong(world, "no memory");
    }
    rueda_membership_hosts(world->members, &hosts, world->now_ns);
    rueda_hosts_fini(&hosts);
}

static void drain_worker(struct world *world, int i)
{
    if (world->workers[i].state > WORKS || world->workers[i].is_known_dead)
        return;
    world->workers[i].is_drained = true;
    rueda_membership_drain(world->members, i, "told to end", world->now_ns);
}

static void drain_host(struct world *world, int h)
{
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].host == h && world->workers[i].state <= WORKS)
            world->workers[i].is_drained = true;
    rueda_membership_drain_host(world->members, h, "told to end",
                                world->now_ns);
}

static void fault(struct world *world)
{
    const int h = below(world, world->host_count);
    const int victims = 1 + (below(world, 4) == 0) * below(world, 4);

    if (world->worker_count == 0)
        return;
    switch (below(world, 12)) {
    case 0:
        lose_host(world, h, (1 + below(world, 50)) * MS); /* its agent dies */
        break;
    case 1:
        lose_host(world, h, 10 * SECOND); /* it is cut off */
        break;
    case 2:
        world->hosts[h].listed = world->hosts[h].listed > 0
                                     ? 0
                                     : 1 + below(world, world->hosts[h].slots);
        list_hosts(world);
        break;
    case 3:
        drain_worker(world, below(world, world->worker_count));
        break;
    case 4:
        drain_host(world, h);
        break;
    case 5: /* two sides do not see each other, and both see the launcher */
        members_notice(world, 0, 10000);
        break;
    default:
        for (int i = 0; i < victims; i++)
            die(world, below(world, world->worker_count),
                (1 + below(world, 50)) * MS);
    }
}

/* Every rank of the term takes a step and commits it. */
static void commit(struct world *world, uint32_t term)
{
    uint64_t farthest = 0;

    if (term != world->term || world->is_broken)
        return;
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].state == WORKS &&
            world->workers[i].progress > farthest)
            farthest = world->workers[i].progress;
    for (int i = 0; i < world->worker_count; i++) {
        if (world->workers[i].state != WORKS)
            continue;
        world->workers[i].progress = farthest + 1;
        if (farthest + 1 >= GOAL) {
            world->workers[i].state = LEAVES;
            later(world, (1 + below(world, 500)) * MS, ENDS, i, 0);
        }
    }
    if (farthest + 1 < GOAL)
        later(world, (200 + below(world, 3000)) * MS, COMMITS, (int)term, 0);
}

static void ask(struct world *world, const struct event *event)
{
    struct worker *worker = &world->workers[event->number];
    const bool is_first = event->code == 0 && worker->state == STARTS;
    const bool is_again = event->code != 0 && worker->state == WORKS &&
                          worker->term == (uint32_t)event->code;

    if (!is_first && !is_again)
        return;
    worker->state = WAITS;
    rueda_membership_ready(world->members, event->number, worker->progress,
                           world->now_ns);
}

static void agent_comes(struct world *world, const struct event *event)
{
    struct host *host = &world->hosts[event->number];

    if (event->life != host->life || !host->is_asked)
        return;
    if (world->now_ns < FAULTS_UNTIL && below(world, 12) == 0) {
        host->is_asked = false;
        host->life++;
        rueda_membership_lost(world->members, event->number, "no agent",
                              world->now_ns);
        return;
    }
    host->is_there = true;
    rueda_membership_reached(world->members, event->number, world->now_ns);
}

static void agent_goes(struct world *world, const struct event *event)
{
    struct host *host = &world->hosts[event->number];

    if (event->life != host->life || !host->is_there)
        return;
    host->is_asked = false;
    host->is_there = false;
    host->life++;
    for (int i = 0; i < world->worker_count; i++)
        if (world->workers[i].host == event->number) {
            world->workers[i].state = DEAD;
            world->workers[i].is_known_dead = true;
        }
    rueda_membership_lost(world->members, event->number, "it is lost",
                          world->now_ns);
}

static void happen(struct world *world, const struct event *event)
{
    struct worker *worker = &world->workers[event->number];

    switch (event->kind) {
    case AGENT_COMES:
        agent_comes(world, event);
        break;
    case AGENT_GOES:
        agent_goes(world, event);
        break;
    case ASKS:
        ask(world, event);
        break;
    case ENDS:
        if (worker->is_known_dead)
            break;
        worker->state = DEAD;
        worker->is_known_dead = true;
        rueda_membership_ended(world->members, event->number, event->code,
                               "it died", world->now_ns);
        break;
    case COMMITS:
        commit(world, (uint32_t)event->number);
        break;
    case FAULT:
        fault(world);
        break;
    case TICK:
        rueda_membership_tick(world->members, world->now_ns);
        break;
    }
}

/* ---- A job ------------------------------------------------------------ */

static void make_hosts(struct world *world)
{
    /* 16 to 256 ranks, and most jobs are smaller ones. */
    const int ranks = 16 << below(world, 1 + below(world, 5));

    world->host_count = 2 + below(world, MOST_HOSTS - 2);
    for (int h = 0; h < world->host_count; h++) {
        world->hosts[h].slots =
            (ranks + world->host_count - 1) / world->host_count;
        world->hosts[h].listed = world->hosts[h].slots;
    }
    world->args = (struct rueda_membership_args){
        .size = ranks,
        .least = 1 + below(world, ranks),
        .most = below(world, 2) == 0 ? ranks : INT_MAX,
        .reset_limit = -1,
        .cooldown_low_s = below(world, 2) == 0 ? 1 + below(world, 5) : 0,
        .cooldown_high_s = 30,
        .patience_ns = 600 * SECOND,
        .bars_hosts = below(world, 4) == 0,
        .tells_early = below(world, 4) == 0,
        .seed = rueda_dice_roll(&world->dice)};
}

/* The next event is an event of the world, or the membership's time. */
static bool go_on(struct world *world)
{
    const int64_t tick_ns = rueda_membership_next_ns(world->members);
    struct event event = {.then_ns = INT64_MAX};

    if (world->event_count > 0)
        event.then_ns = world->events[0].then_ns;
    if (event.then_ns == INT64_MAX && tick_ns == INT64_MAX) {
        wrong(world, "nothing will ever happen any more");
        return false;
    }
    if (tick_ns <= event.then_ns)
        event = (struct event){.then_ns = tick_ns, .kind = TICK};
    else
        event = take(world);
    world->now_ns = event.then_ns;
    happen(world, &event);
    return rueda_text_is_empty(&world->error) && !world->is_ended;
}

/* Why may a job end badly? */
static void judge(struct world *world)
{
    static const char *const reasons[] = {"state of the training",
                                          "no rank is left",
                                          "no host is left",
                                          "are needed",
                                          "is needed",
                                          "the job is ended"};
    bool is_known = false;

    if (!world->is_ended || world->code == 0)
        return;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        is_known = is_known || strstr(world->words, reasons[i]) != NULL;
    if (!is_known)
        wrong(world, "the job ended badly without a reason");
}

static struct world *run_seed(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    int steps = 0;
    int64_t at_ns = 0;

    assert_non_null(world);
    world->dice.state = seed;
    make_hosts(world);
    world->members = rueda_membership_new(&world->args, see, world);
    assert_non_null(world->members);
    for (int i = below(world, 25); i > 0; i--) {
        at_ns += below(world, 8000) * MS;
        later(world, at_ns, FAULT, 0, 0);
    }
    list_hosts(world);
    while (go_on(world))
        if (++steps == MOST_STEPS)
            wrong(world, "the job does not come to its end");
    judge(world);
    rueda_membership_free(world->members);
    return world;
}

/* ---- The test --------------------------------------------------------- */

struct range {
    const char *program;
    uint64_t first;
    uint64_t count;
};

static void every_job_ends_and_terms_are_whole(void **state)
{
    const struct range *range = *state;
    uint64_t good = 0;
    uint64_t terms = 0;
    int failed = 0;

    for (uint64_t i = 0; i < range->count; i++) {
        const uint64_t seed = range->first + i;
        struct world *world;

        seed_begin(range->program, seed);
        world = run_seed(seed);
        seed_end();
        good += world->code == 0;
        terms += world->term;
        if (!rueda_text_is_empty(&world->error)) {
            failed++;
            print_error("seed %llu: %s; %s\n    again: %s %llu\n",
                        (unsigned long long)seed, world->error.chars,
                        world->words, range->program, (unsigned long long)seed);
        }
        free(world);
    }
    print_message("%llu seeds, %llu terms, %llu jobs ended well\n",
                  (unsigned long long)range->count, (unsigned long long)terms,
                  (unsigned long long)good);
    assert_int_equal(failed, 0);
    /* Neither never nor always, or the faults miss their aim. */
    if (range->count >= 200) {
        assert_in_range(good, range->count / 4, range->count - 1);
        assert_true(terms > 2 * range->count);
    }
}

int main(int argc, char **argv)
{
    struct range range = {argv[0], 1, 300};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(
            every_job_ends_and_terms_are_whole, NULL, seed_tear_down, &range),
    };

    if (argc > 1) {
        range.first = strtoull(argv[1], NULL, 10);
        range.count = 1;
    }
    if (argc > 2)
        range.count = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
