/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of an elastic job: events in, actions out. The last test plays
 * many jobs in random orders and checks what must hold after each action. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launch/membership.h"
#include "unit/unit.h"

#define SECOND       ((int64_t)1000000000)
#define MOST_WORKERS 512
#define MOST_HOSTS   8
#define MOST_ACTIONS 256

/* ---- A world ------------------------------------------------------------- */

typedef enum stage_of_life {
    NOT_YET,
    BOOTING,
    WAITING,
    WORKING,
    DONE
} stage;

struct being {
    stage life;
    int host;
    int slot;
    uint32_t term;
    int rank; /* in the last term */
    uint64_t progress;
    bool is_refused;
};

struct world {
    struct rueda_membership *members;
    int64_t now_ns;
    struct being beings[MOST_WORKERS];
    int being_count;
    bool is_reached[MOST_HOSTS]; /* the agent is asked for */
    bool is_there[MOST_HOSTS];
    uint32_t term;
    int term_size;
    int placed; /* of the term, so far */
    bool is_ended;
    int code;
    char last_words[RUEDA_TEXT_BYTES];
    int news;
    unsigned flags;
    int overs;
    int refusals;
    int least;
    int most;
};

/* Without those that are being killed. */
static int count_life(const struct world *world, stage life)
{
    int count = 0;

    for (int i = 0; i < world->being_count; i++)
        count += world->beings[i].life == life && !world->beings[i].is_refused;
    return count;
}

static int count_living(const struct world *world)
{
    int count = 0;

    for (int i = 0; i < world->being_count; i++)
        count += world->beings[i].life != DONE && !world->beings[i].is_refused;
    return count;
}

static void see_start(struct world *world, const struct rueda_action *action)
{
    struct being *being = &world->beings[action->worker];
    const struct rueda_rendezvous_ranks *place = &action->ranks;

    assert_int_equal(action->worker, world->being_count);
    assert_true(world->is_there[action->host]);
    for (int i = 0; i < world->being_count; i++)
        assert_false(world->beings[i].life != DONE &&
                     world->beings[i].host == action->host &&
                     world->beings[i].slot == action->slot);
    assert_true(place->rank >= 0 && place->rank < place->size);
    assert_true(place->local_rank >= 0 &&
                place->local_rank < place->local_size);
    assert_true(place->local_size <= place->size);
    assert_true(place->cross_rank >= 0 &&
                place->cross_rank < place->cross_size);
    assert_true(place->cross_size <= place->size);
    *being = (struct being){.life = BOOTING,
                            .host = action->host,
                            .slot = action->slot,
                            .rank = -1};
    world->being_count++;
    assert_true(count_living(world) <= world->most);
}

/* The first of a term: no member is left in the one before. */
static void see_new_term(struct world *world,
                         const struct rueda_rendezvous_ranks *place)
{
    assert_int_equal(place->term, world->term + 1);
    assert_int_equal(world->placed, world->term_size);
    assert_int_equal(count_life(world, WORKING), 0);
    world->term = place->term;
    world->term_size = place->size;
    world->placed = 0;
    assert_true(place->size >= world->least && place->size <= world->most);
}

static void see_place(struct world *world, const struct rueda_action *action)
{
    const struct rueda_rendezvous_ranks *place = &action->ranks;
    struct being *being = &world->beings[action->worker];

    if (place->term != world->term)
        see_new_term(world, place);
    assert_int_equal(being->life, WAITING);
    assert_false(being->is_refused);
    assert_int_equal(place->size, world->term_size);
    assert_int_equal(place->rank, world->placed); /* each once, in order */
    assert_true(place->local_rank < place->local_size);
    assert_true(place->cross_rank < place->cross_size);
    world->placed++;
    being->life = WORKING;
    being->term = place->term;
    being->rank = place->rank;
    /* No other member has come farther than rank 0, which is placed first. */
    for (int i = 0; i < world->being_count; i++) {
        const struct being *other = &world->beings[i];

        if (other->life == WORKING && other->rank == 0 && !other->is_refused)
            assert_true(other->progress >= being->progress);
    }
}

static void see(void *arg, const struct rueda_action *action)
{
    struct world *world = arg;

    assert_false(world->is_ended);
    switch (action->kind) {
    case RUEDA_ACTION_REACH:
        assert_false(world->is_reached[action->host]);
        world->is_reached[action->host] = true;
        break;
    case RUEDA_ACTION_LEAVE:
        assert_true(world->is_reached[action->host]);
        world->is_reached[action->host] = false;
        world->is_there[action->host] = false;
        break;
    case RUEDA_ACTION_START:
        see_start(world, action);
        break;
    case RUEDA_ACTION_RANKS:
        see_place(world, action);
        break;
    case RUEDA_ACTION_REFUSE:
        assert_int_not_equal(world->beings[action->worker].life, WORKING);
        world->beings[action->worker].is_refused = true;
        world->refusals++;
        break;
    case RUEDA_ACTION_KILL:
        world->beings[action->worker].is_refused = true;
        break;
    case RUEDA_ACTION_OVER:
        assert_int_equal(action->term, world->term);
        world->overs++;
        break;
    case RUEDA_ACTION_CHANGE:
        assert_int_equal(action->term, world->term);
        assert_int_equal(count_life(world, WORKING), world->term_size);
        world->news++;
        world->flags = action->flags;
        break;
    case RUEDA_ACTION_SAY:
    case RUEDA_ACTION_END:
        if (action->words[0] != '\0')
            snprintf(world->last_words, sizeof(world->last_words), "%s",
                     action->words);
        if (action->kind == RUEDA_ACTION_SAY)
            break;
        world->is_ended = true;
        world->code = action->code;
        break;
    }
}

static struct world *new_world(struct rueda_membership_args args)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    if (args.most == 0)
        args.most = INT_MAX;
    if (args.patience_ns == 0)
        args.patience_ns = 600 * SECOND;
    args.seed = 1;
    if (args.reset_limit == 0)
        args.reset_limit = -1;
    world->least = args.least < args.size ? args.least : args.size;
    world->most = args.most;
    world->members = rueda_membership_new(&args, see, world);
    assert_non_null(world->members);
    return world;
}

static void end_world(struct world *world)
{
    rueda_membership_free(world->members);
    free(world);
}

static void list(struct world *world, const char *text)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    assert_true(rueda_hosts_parse(text, &hosts, &words));
    rueda_membership_hosts(world->members, &hosts, world->now_ns);
    rueda_hosts_fini(&hosts);
}

static void answer_agents(struct world *world)
{
    for (int h = 0; h < MOST_HOSTS; h++) {
        if (!world->is_reached[h] || world->is_there[h] || world->is_ended)
            continue;
        world->is_there[h] = true;
        rueda_membership_reached(world->members, h, world->now_ns);
    }
}

/* A worker asks for a place. */
static void ask(struct world *world, int worker)
{
    world->beings[worker].life = WAITING;
    rueda_membership_ready(world->members, worker,
                           world->beings[worker].progress, world->now_ns);
}

static void die(struct world *world, int worker, int code)
{
    world->beings[worker].life = DONE;
    rueda_membership_ended(world->members, worker, code, "it died",
                           world->now_ns);
}

/* All that have to ask do: those that boot, and members. */
static void all_ask(struct world *world, stage from)
{
    const int count = world->being_count;

    for (int i = 0; i < count && !world->is_ended; i++)
        if (world->beings[i].life == from && !world->beings[i].is_refused)
            ask(world, i);
}

static void all_step(struct world *world, uint64_t progress)
{
    for (int i = 0; i < world->being_count; i++)
        if (world->beings[i].life == WORKING)
            world->beings[i].progress = progress;
}

static void wait_until(struct world *world, int64_t then_ns)
{
    world->now_ns = then_ns;
    rueda_membership_tick(world->members, then_ns);
}

/* A job in its first term, of which step 1 is done. */
static struct world *working_job(struct rueda_membership_args args,
                                 const char *hosts)
{
    struct world *world = new_world(args);

    list(world, hosts);
    answer_agents(world);
    all_ask(world, BOOTING);
    assert_int_equal(world->term, 1);
    all_step(world, 1);
    return world;
}

/* ---- One thing at a time ---------------------------------------------- */

static void the_first_term_waits_for_all_processes(void **state)
{
    struct world *world =
        new_world((struct rueda_membership_args){.size = 3, .least = 1});

    (void)state;
    list(world, "a:1");
    answer_agents(world);
    assert_int_equal(world->being_count, 0); /* room for 1 of 3 */
    list(world, "a:1,b:2");
    answer_agents(world);
    assert_int_equal(world->being_count, 3);
    ask(world, 0);
    ask(world, 2);
    assert_int_equal(world->term, 0);
    ask(world, 1);
    assert_int_equal(world->term, 1);
    assert_int_equal(world->term_size, 3);
    end_world(world);
}

static void survivors_keep_their_ranks_and_the_highest_moves_down(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 4, .least = 1}, "a:4");

    (void)state;
    die(world, 1, 137);
    assert_int_equal(world->overs, 1);
    assert_int_equal(world->term, 1); /* the others are still in it */
    all_ask(world, WORKING);
    assert_int_equal(world->term, 2);
    assert_int_equal(world->beings[0].rank, 0);
    assert_int_equal(world->beings[2].rank, 2);
    assert_int_equal(world->beings[3].rank, 1);
    end_world(world);
}

static void rank_0_is_the_one_that_has_come_farthest(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 3, .least = 1}, "a:3");

    (void)state;
    world->beings[1].progress = 2; /* the others have not committed it */
    die(world, 2, 137);
    all_ask(world, WORKING);
    assert_int_equal(world->beings[1].rank, 0);
    assert_int_equal(world->beings[0].rank, 1);
    end_world(world);
}

static void a_newcomer_is_never_rank_0(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 2, .least = 1}, "a:1,b:1");

    (void)state;
    list(world, "a:1,b:1,c:1");
    answer_agents(world);
    ask(world, 2);
    assert_int_equal(world->news, 1);
    assert_int_equal(world->flags, RUEDA_RENDEZVOUS_ADDED);
    die(world, 0, 1);
    ask(world, 1);
    assert_int_equal(world->term_size, 2);
    assert_int_equal(world->beings[1].rank, 0);
    assert_int_equal(world->beings[2].rank, 1);
    end_world(world);
}

static void nothing_interrupts_members_before_a_newcomer_waits(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 1, .least = 1}, "a:1");

    (void)state;
    list(world, "a:3");
    answer_agents(world);
    assert_int_equal(world->news, 0);
    ask(world, 1);
    assert_int_equal(world->news, 0); /* another one starts with it */
    wait_until(world, rueda_membership_next_ns(world->members));
    assert_int_equal(world->news, 1); /* but may be slow */
    ask(world, 0);
    assert_int_equal(world->term_size, 2);
    end_world(world);
}

static void members_of_a_host_that_goes_stay_until_they_ask(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 4, .least = 1}, "a:2,b:2");

    (void)state;
    list(world, "a:2");
    assert_int_equal(world->flags, RUEDA_RENDEZVOUS_REMOVED);
    assert_int_equal(world->refusals, 0);
    all_ask(world, WORKING);
    assert_int_equal(world->term_size, 2);
    assert_int_equal(world->refusals, 2);
    die(world, 2, 1); /* how they end does not matter */
    die(world, 3, 0);
    assert_false(world->is_there[1]); /* it is not needed */
    assert_int_equal(world->overs, 0);
    end_world(world);
}

static void too_few_ranks_wait_until_the_time_is_over(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 2, .least = 2, .patience_ns = 5 * SECOND},
        "a:2");

    (void)state;
    die(world, 0, 9);
    ask(world, 1);
    assert_non_null(strstr(world->last_words, "--min-np"));
    wait_until(world, 4 * SECOND);
    assert_false(world->is_ended);
    wait_until(world, 5 * SECOND);
    assert_true(world->is_ended);
    assert_int_equal(world->code, 9);
    end_world(world);
}

static void a_rank_that_does_not_come_back_is_named(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 3, .least = 1, .patience_ns = 5 * SECOND},
        "a:3");

    (void)state;
    die(world, 0, 9);
    ask(world, 1);
    wait_until(world, 6 * SECOND);
    assert_true(world->is_ended);
    assert_non_null(strstr(world->last_words, "rank 2 on a has not come back"));
    end_world(world);
}

static void a_lost_host_comes_back_after_the_cooldown(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 4, .least = 2, .cooldown_low_s = 10, .cooldown_high_s = 60},
        "a:2,b:2");
    int64_t back_ns;

    (void)state;
    for (int i = 2; i < 4; i++)
        world->beings[i].life = DONE;
    world->is_reached[1] = false;
    world->is_there[1] = false;
    rueda_membership_lost(world->members, 1, "b is lost", world->now_ns);
    all_ask(world, WORKING);
    assert_int_equal(world->term_size, 2);
    back_ns = rueda_membership_next_ns(world->members);
    assert_in_range(back_ns, 20 * SECOND, 30 * SECOND); /* 2 * 10 + 0..10 */
    wait_until(world, back_ns - 1);
    assert_false(world->is_reached[1]);
    wait_until(world, back_ns);
    assert_true(world->is_reached[1]);
    answer_agents(world);
    assert_int_equal(world->being_count, 6);
    end_world(world);
}

static void horovod_bars_the_host_of_a_failed_process(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 4, .least = 1, .bars_hosts = true},
        "a:2,b:2");

    (void)state;
    die(world, 0, 1);
    assert_true(world->beings[1].is_refused); /* killed */
    die(world, 1, 143);
    all_ask(world, WORKING);
    assert_int_equal(world->term_size, 2);
    assert_int_equal(world->beings[2].rank, 0);
    assert_int_equal(world->beings[3].rank, 1);
    end_world(world);
}

static void newcomers_are_told_of_early_where_horovod_does(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 1, .least = 1, .tells_early = true},
        "a:1");

    (void)state;
    list(world, "a:1,b:1");
    answer_agents(world);
    assert_int_equal(world->flags, RUEDA_RENDEZVOUS_ADDED); /* it only starts */
    ask(world, 0);
    assert_int_equal(world->term, 1); /* and is waited for */
    ask(world, 1);
    assert_int_equal(world->term_size, 2);
    end_world(world);
}

static void a_rank_that_is_told_to_leave_stays_until_all_ask(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 3, .least = 1}, "a:3");

    (void)state;
    rueda_membership_drain(world->members, 1, "it is to end", 0);
    assert_int_equal(world->flags, RUEDA_RENDEZVOUS_REMOVED);
    assert_int_equal(world->overs, 0);
    assert_int_equal(world->refusals, 0);
    all_ask(world, WORKING);
    assert_int_equal(world->term_size, 2);
    assert_true(world->beings[1].is_refused);
    assert_int_equal(world->being_count, 3); /* its slot is not used again */
    end_world(world);
}

static void a_host_that_is_told_to_leave_goes_with_its_last_rank(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 3, .least = 1}, "a:1,b:2");

    (void)state;
    rueda_membership_drain_host(world->members, 1, "it is to go", 0);
    assert_int_equal(world->flags, RUEDA_RENDEZVOUS_REMOVED);
    all_ask(world, WORKING);
    assert_int_equal(world->term_size, 1);
    die(world, 1, 0);
    assert_true(world->is_there[1]);
    die(world, 2, 0);
    assert_false(world->is_there[1]);
    rueda_membership_welcome(world->members, "b");
    list(world, "a:1,b:2");
    answer_agents(world);
    assert_int_equal(world->being_count, 5);
    end_world(world);
}

static void what_is_missing_is_named_when_the_time_is_over(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 3, .least = 3, .patience_ns = 5 * SECOND},
        "a:2,b:1");

    (void)state;
    die(world, 0, 9);
    ask(world, 1);
    ask(world, 2);
    wait_until(world, 5 * SECOND);
    assert_true(world->is_ended);
    assert_non_null(strstr(world->last_words, "2 ranks are there, and 3"));
    assert_non_null(strstr(world->last_words, "; it died; "));
    end_world(world);
}

static void the_reset_limit_ends_the_job(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 3, .least = 1, .reset_limit = 1},
        "a:3");

    (void)state;
    die(world, 0, 1);
    all_ask(world, WORKING);
    assert_int_equal(world->term, 2);
    die(world, 1, 1);
    all_ask(world, WORKING);
    assert_true(world->is_ended);
    assert_non_null(strstr(world->last_words, "exceeds the limit: 1"));
    end_world(world);
}

static void newcomers_do_not_begin_again_what_is_lost(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){
            .size = 1, .least = 1, .cooldown_low_s = 1, .cooldown_high_s = 1},
        "a:1,b:1");

    (void)state;
    /* The one that was there from the start dies with its state. */
    list(world, "a:1,b:1,c:1");
    answer_agents(world);
    ask(world, 2);
    die(world, 0, 9);
    die(world, 1, 9);
    assert_true(world->is_ended);
    assert_int_equal(world->code, 9);
    assert_non_null(strstr(world->last_words, "state of the training"));
    end_world(world);
}

static void the_job_ends_well_when_all_members_have(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 2, .least = 1}, "a:2");

    (void)state;
    list(world, "a:3");
    die(world, 0, 0);
    assert_true(world->beings[2].is_refused); /* is not needed any more */
    assert_false(world->is_ended);
    die(world, 1, 0);
    assert_true(world->is_ended);
    assert_int_equal(world->code, 0);
    end_world(world);
}

static void
a_rank_that_fails_after_another_has_finished_fails_the_job(void **state)
{
    struct world *world = working_job(
        (struct rueda_membership_args){.size = 2, .least = 1}, "a:2");

    (void)state;
    die(world, 0, 0);
    die(world, 1, 3);
    assert_true(world->is_ended);
    assert_int_equal(world->code, 3);
    end_world(world);
}

/* ---- Many jobs -------------------------------------------------------- */

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static int below(uint64_t *seed, int limit)
{
    return (int)(next_random(seed) % (uint64_t)limit);
}

/* A living being, or -1. */
static int pick(struct world *world, uint64_t *seed)
{
    const int first = below(seed, world->being_count + 1);

    for (int i = 0; i < world->being_count; i++) {
        const int at = (first + i) % world->being_count;

        if (world->beings[at].life != DONE)
            return at;
    }
    return -1;
}

static void list_random(struct world *world, uint64_t *seed)
{
    char text[128] = "";

    for (int h = 0; h < 4; h++) {
        const int slots = below(seed, 4);

        if (slots > 0)
            snprintf(text + strlen(text), sizeof(text) - strlen(text),
                     "%sh%d:%d", text[0] != '\0' ? "," : "", h, slots);
    }
    if (text[0] != '\0')
        list(world, text);
}

static void lose_host(struct world *world, int host)
{
    if (!world->is_reached[host])
        return;
    world->is_reached[host] = false;
    world->is_there[host] = false;
    for (int i = 0; i < world->being_count; i++)
        if (world->beings[i].host == host)
            world->beings[i].life = DONE;
    rueda_membership_lost(world->members, host, "it is lost", world->now_ns);
}

/* Something happens to a being, as it may in its state of life. */
static void live(struct world *world, int at, uint64_t *seed)
{
    struct being *being = &world->beings[at];

    if (being->is_refused || below(seed, 12) == 0)
        die(world, at, 1 + below(seed, 200));
    else if (being->life == WORKING && below(seed, 2) == 0)
        being->progress =
            (uint64_t)world->term * 100 + (uint64_t)below(seed, 9);
    else if (being->life == BOOTING || being->life == WORKING)
        ask(world, at);
}

static void disturb(struct world *world, uint64_t *seed)
{
    const int at = pick(world, seed);

    world->now_ns += below(seed, 1000) * (SECOND / 500);
    switch (below(seed, 10)) {
    case 0:
        list_random(world, seed);
        break;
    case 1:
        lose_host(world, below(seed, 4));
        break;
    case 2:
        rueda_membership_tick(world->members, world->now_ns);
        break;
    case 3:
    case 4:
        answer_agents(world);
        break;
    default:
        if (at >= 0)
            live(world, at, seed);
    }
}

/* Nothing fails any more, and there is room: the job has to come to its end. */
static void come_to_rest(struct world *world)
{
    for (int round = 0; round < 200 && !world->is_ended; round++) {
        list(world, "h0:3,h1:3,h2:3,h3:3");
        answer_agents(world);
        all_ask(world, BOOTING);
        for (int i = 0; i < world->being_count && !world->is_ended; i++)
            if (world->beings[i].is_refused && world->beings[i].life != DONE)
                die(world, i, 0);
        if (world->is_ended)
            return;
        if (count_life(world, WORKING) == world->term_size && world->term > 0 &&
            round > 100)
            break;
        all_ask(world, WORKING);
        world->now_ns += 100 * SECOND;
        if (!world->is_ended)
            rueda_membership_tick(world->members, world->now_ns);
    }
    for (int i = 0; i < world->being_count && !world->is_ended; i++)
        if (world->beings[i].life != DONE)
            die(world, i, 0);
    assert_true(world->is_ended);
}

static void in_any_order_of_events_terms_are_whole_and_jobs_end(void **state)
{
    int terms = 0;
    int well = 0;

    (void)state;
    for (uint64_t number = 1; number <= 2000; number++) {
        uint64_t seed = number * 0x9e3779b97f4a7c15u;
        const int size = 1 + below(&seed, 4);
        struct world *world = new_world((struct rueda_membership_args){
            .size = size,
            .least = 1 + below(&seed, size),
            .most = size + below(&seed, 4),
            .reset_limit = below(&seed, 8) == 0 ? 3 : -1,
            .cooldown_low_s = below(&seed, 3),
            .cooldown_high_s = 4,
            .bars_hosts = below(&seed, 2) == 0});

        for (int i = 0; i < 150 && !world->is_ended; i++)
            disturb(world, &seed);
        if (!world->is_ended)
            come_to_rest(world);
        terms += (int)world->term;
        well += world->is_ended && world->code == 0;
        end_world(world);
    }
    assert_true(terms > 2000); /* the jobs were worth it */
    assert_true(well > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_term_waits_for_all_processes),
        cmocka_unit_test(survivors_keep_their_ranks_and_the_highest_moves_down),
        cmocka_unit_test(rank_0_is_the_one_that_has_come_farthest),
        cmocka_unit_test(a_newcomer_is_never_rank_0),
        cmocka_unit_test(nothing_interrupts_members_before_a_newcomer_waits),
        cmocka_unit_test(members_of_a_host_that_goes_stay_until_they_ask),
        cmocka_unit_test(too_few_ranks_wait_until_the_time_is_over),
        cmocka_unit_test(a_rank_that_does_not_come_back_is_named),
        cmocka_unit_test(a_lost_host_comes_back_after_the_cooldown),
        cmocka_unit_test(horovod_bars_the_host_of_a_failed_process),
        cmocka_unit_test(newcomers_are_told_of_early_where_horovod_does),
        cmocka_unit_test(a_rank_that_is_told_to_leave_stays_until_all_ask),
        cmocka_unit_test(a_host_that_is_told_to_leave_goes_with_its_last_rank),
        cmocka_unit_test(what_is_missing_is_named_when_the_time_is_over),
        cmocka_unit_test(the_reset_limit_ends_the_job),
        cmocka_unit_test(newcomers_do_not_begin_again_what_is_lost),
        cmocka_unit_test(the_job_ends_well_when_all_members_have),
        cmocka_unit_test(
            a_rank_that_fails_after_another_has_finished_fails_the_job),
        cmocka_unit_test(in_any_order_of_events_terms_are_whole_and_jobs_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
