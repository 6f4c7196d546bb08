/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random collectives on random networks on random bad days. A seed decides
 * everything:
 *
 *     test_sim_seeds [FIRST [COUNT]]
 *
 * runs seeds FIRST (1) up to FIRST + COUNT - 1 (1000 of them; 1 if FIRST is
 * given alone). Whatever happens, every rank ends, and who ends well has the
 * right answer; where nothing happens that a job cannot outlast, all do. For a
 * seed that fails, the command that repeats it is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/collective.h"
#include "sim/seed.h"
#include "support/coll_case.h"

#define US       ((uint64_t)1000)
#define MS       ((uint64_t)1000000)
#define MOST     12 /* ranks */
#define LIMIT_MS 20 /* patience with links */

struct scenario {
    struct rueda_dice dice;
    struct rueda_sim_settings settings;
    struct coll_case c;
    bool is_deadly;      /* some fault may end the job */
    bool has_losses;     /* some ranks did not end well */
    uint64_t horizon_ns; /* faults come before */
    char words[512];     /* what it is */
};

static int below(struct scenario *scenario, int n)
{
    return (int)rueda_dice_below(&scenario->dice, (uint64_t)n);
}

static void say(struct scenario *scenario, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(struct scenario *scenario, const char *format, ...)
{
    const size_t used = strlen(scenario->words);
    va_list args;

    va_start(args, format);
    vsnprintf(scenario->words + used, sizeof(scenario->words) - used, format,
              args);
    va_end(args);
}

/* ---- Network ---------------------------------------------------------- */

/* One roll a statement: the order within one is the compiler's. */
static struct rueda_sim_wire random_wire(struct scenario *scenario)
{
    static const double rates[] = {1e8, 1e9, 10e9};
    struct rueda_sim_wire wire = {.jitter_ns = 0};

    wire.latency_ns = (uint64_t)below(scenario, 30) * US;
    wire.bytes_per_s = rates[below(scenario, 3)];
    if (below(scenario, 2) == 0)
        wire.jitter_ns = (uint64_t)below(scenario, 100) * US;
    return wire;
}

static struct rueda_sim_net random_net(struct scenario *scenario)
{
    const struct rueda_sim_wire wire = random_wire(scenario);
    struct rueda_sim_net net = rueda_sim_net_flat(1, wire);

    net.hosts += below(scenario, 6);
    net.ranks_per_host = 1 + below(scenario, net.hosts < 5 ? 3 : 2);
    if (rueda_sim_net_ranks(&net) == 1)
        net.hosts = 2;
    net.hosts_per_rack = 1 + below(scenario, net.hosts);
    net.oversubscription = 1.0 + below(scenario, 4);
    net.port = random_wire(scenario);
    net.spine = random_wire(scenario);
    return net;
}

static void set_network(struct scenario *scenario)
{
    static const size_t credits[] = {0, 10000, (size_t)4 << 20};
    const struct rueda_sim_net net = random_net(scenario);

    scenario->settings = rueda_sim_settings_default(&net);
    scenario->settings.seed = rueda_dice_roll(&scenario->dice);
    scenario->settings.credit_bytes = credits[below(scenario, 3)];
    scenario->settings.skew_ns = (uint64_t)below(scenario, 3) * 200 * US;
    scenario->settings.overhead_ns = (uint64_t)below(scenario, 3) * 300;
    scenario->settings.work_bytes_per_s = below(scenario, 2) * 1e9;
    scenario->settings.detect_ns = (uint64_t)below(scenario, 2000) * US;
    scenario->settings.limit_ns = LIMIT_MS * MS;
    scenario->settings.run_limit_events = 5000000;
    say(scenario, "%d hosts of %d ranks, %d a rack, credit %zu", net.hosts,
        net.ranks_per_host, net.hosts_per_rack,
        scenario->settings.credit_bytes);
}

/* ---- Collective ------------------------------------------------------- */

static const struct rueda_algo *random_algo(struct scenario *scenario)
{
    const struct rueda_algo *fit[16] = {&rueda_algo_ring};
    int count = 0;

    for (int i = 0; rueda_algos[i] != NULL && count < 16; i++)
        if (!rueda_algos[i]->needs_slab && !rueda_algos[i]->does_adasum &&
            (!rueda_algos[i]->needs_hier || scenario->settings.net.hosts > 1))
            fit[count++] = rueda_algos[i];
    return fit[below(scenario, count)];
}

static void set_collective(struct scenario *scenario)
{
    static const rueda_dtype dtypes[] = {RUEDA_FLOAT32, RUEDA_FLOAT16,
                                         RUEDA_INT64, RUEDA_UINT8};
    static const int counts[] = {3, 300, 5000, 30000};
    const int size = rueda_sim_net_ranks(&scenario->settings.net);
    struct coll_case *c = &scenario->c;
    int kind;

    memset(c, 0, sizeof(*c));
    c->algo = random_algo(scenario);
    do
        kind = below(scenario, 8);
    while ((c->algo->kinds >> kind & 1) == 0);
    c->kind = (rueda_kind)kind;
    c->dtype = dtypes[below(scenario, 4)];
    c->count = (size_t)below(scenario, counts[below(scenario, 4)]);
    c->is_in_place = below(scenario, 2) == 0;
    if (c->kind == RUEDA_BROADCAST)
        c->root = below(scenario, size);
    else if (c->kind == RUEDA_BARRIER)
        c->count = 0;
    else if (c->kind != RUEDA_ALLREDUCE)
        c->is_uneven = below(scenario, 2) == 0;
    if (c->algo->needs_hier && below(scenario, 4) == 0)
        c->count *= 8; /* several blocks */
    if (c->algo->needs_hier && c->kind == RUEDA_ALLREDUCE &&
        c->dtype == RUEDA_FLOAT32)
        c->compression = (rueda_compression)below(scenario, 3);
    say(scenario, "; %s %s of %zu %s%s%s%s", c->algo->name,
        rueda_kind_str(c->kind), c->count, rueda_dtype_str(c->dtype),
        c->is_in_place ? ", in place" : "", c->is_uneven ? ", uneven" : "",
        c->compression != RUEDA_COMPRESS_NONE ? ", compressed" : "");
}

/* ---- Faults ----------------------------------------------------------- */

/* Half of the outages heal in time, some never. */
static void set_outage(struct scenario *scenario, struct rueda_sim_fault *fault)
{
    const struct rueda_sim_net *net = &scenario->settings.net;

    fault->until_ns = fault->from_ns + (uint64_t)below(scenario, LIMIT_MS) * MS;
    if (below(scenario, 2) == 0) {
        fault->until_ns = RUEDA_SIM_NEVER;
        scenario->is_deadly = true;
    }
    fault->link = (rueda_sim_link)below(scenario, 3);
    fault->index = below(scenario, rueda_sim_net_links(net, fault->link));
    say(scenario, " for %.3f ms",
        fault->until_ns == RUEDA_SIM_NEVER
            ? 1e9
            : (double)(fault->until_ns - fault->from_ns) / 1e6);
}

static void add_fault(struct scenario *scenario, struct rueda_sim *sim)
{
    static const char *const names[] = {"kill", "slow", "unplug", "partition"};
    bool is_apart[MOST];
    struct rueda_sim_fault fault = {
        .until_ns = RUEDA_SIM_NEVER,
        .is_apart = is_apart,
    };

    fault.kind = (rueda_sim_fault_kind)below(scenario, 4);
    fault.from_ns = rueda_dice_below(&scenario->dice, scenario->horizon_ns + 1);
    fault.rank = below(scenario, rueda_sim_size(sim));
    fault.factor = 1.0 + below(scenario, 50);
    say(scenario, "; %s %d at %.3f ms", names[fault.kind], fault.rank,
        (double)fault.from_ns / 1e6);
    for (int i = 0; i < MOST; i++)
        is_apart[i] = below(scenario, 2) == 0;
    if (fault.kind == RUEDA_SIM_UNPLUG || fault.kind == RUEDA_SIM_PARTITION)
        set_outage(scenario, &fault);
    if (fault.kind == RUEDA_SIM_KILL)
        scenario->is_deadly = true;
    assert_int_equal(rueda_sim_add_fault(sim, &fault), RUEDA_OK);
}

/* ---- One seed --------------------------------------------------------- */

/* The time that it would take, roughly. */
static uint64_t guess_ns(const struct scenario *scenario)
{
    const struct rueda_sim_net *net = &scenario->settings.net;
    const int size = rueda_sim_net_ranks(net);
    const double bytes =
        (double)scenario->c.count * (double)rueda_dtype_size(scenario->c.dtype);

    return (uint64_t)size * (net->uplink.latency_ns + net->port.latency_ns) +
           (uint64_t)(2e9 * bytes / net->uplink.bytes_per_s) +
           scenario->settings.skew_ns;
}

/* What is wrong with how the ranks ended, or NULL. */
static const char *judge(const struct scenario *scenario,
                         const struct collective *all,
                         const struct coll_job *job)
{
    for (int i = 0; i < all->size; i++) {
        const rueda_status status = all->status[i];

        if (status == RUEDA_OK && !coll_job_is_right(job, i))
            return "a rank that ended well has a wrong result";
        if (status != RUEDA_OK && !scenario->is_deadly)
            return "a rank failed though nothing was lost";
        if (status != RUEDA_OK && status != RUEDA_ERR_PEER_LOST &&
            status != RUEDA_ERR_CLOSED)
            return rueda_status_str(status);
    }
    return NULL;
}

/* One collective after another, as long as all ranks are there. */
static void run_rounds(struct scenario *scenario, struct collective *all,
                       int rounds, struct rueda_text *error)
{
    for (int round = 0; round < rounds && !scenario->has_losses; round++) {
        struct coll_job *job;
        const char *verdict;

        if (round > 0)
            set_collective(scenario);
        job = coll_job_open(&scenario->c, all->size);
        collective_run(all, scenario->c.algo, coll_job_colls(job), error);
        verdict = judge(scenario, all, job);
        if (verdict != NULL)
            rueda_text_set(error, "%s", verdict);
        for (int i = 0; i < all->size; i++)
            if (all->status[i] != RUEDA_OK)
                scenario->has_losses = true;
        coll_job_close(job);
    }
}

/* Returns the digest; what is wrong is in error. */
static uint64_t run_seed(uint64_t seed, struct scenario *scenario,
                         struct rueda_text *error)
{
    struct collective *all;
    uint64_t digest;
    int faults;
    int rounds;

    memset(scenario, 0, sizeof(*scenario));
    scenario->dice.state = seed;
    set_network(scenario);
    set_collective(scenario);
    rounds = 1 + below(scenario, 3);
    scenario->horizon_ns = guess_ns(scenario) * (uint64_t)rounds;
    all = collective_open(&scenario->settings);
    faults = below(scenario, 4);
    for (int i = 0; i < faults; i++)
        add_fault(scenario, all->sim);
    run_rounds(scenario, all, rounds, error);
    digest = rueda_sim_digest(all->sim);
    collective_close(all);
    return digest;
}

/* ---- Many ------------------------------------------------------------- */

struct range {
    const char *program;
    uint64_t first;
    uint64_t count;
};

static void every_rank_ends_whatever_happens(void **state)
{
    const struct range *range = *state;
    uint64_t sum = 0;
    uint64_t losses = 0;
    int failed = 0;

    for (uint64_t i = 0; i < range->count; i++) {
        const uint64_t seed = range->first + i;
        struct rueda_text error = {""};
        struct scenario scenario;

        seed_begin(range->program, seed);
        sum = rueda_hash_mix(sum + run_seed(seed, &scenario, &error));
        seed_end();
        losses += scenario.has_losses;
        if (!rueda_text_is_empty(&error)) {
            failed++;
            print_error("seed %llu: %s\n    %s\n    again: %s %llu\n",
                        (unsigned long long)seed, error.chars, scenario.words,
                        range->program, (unsigned long long)seed);
        }
    }
    print_message("%llu seeds, %llu with losses, digest %016llx\n",
                  (unsigned long long)range->count, (unsigned long long)losses,
                  (unsigned long long)sum);
    assert_int_equal(failed, 0);
    /* Neither rare nor the rule, or the faults miss their aim. */
    if (range->count >= 1000)
        assert_in_range(losses, range->count / 5, range->count * 3 / 4);
}

static void a_seed_gives_the_same_run_again(void **state)
{
    const struct range *range = *state;

    for (uint64_t i = 0; i < 50; i++) {
        struct rueda_text error = {""};
        struct scenario scenario;
        const uint64_t once = run_seed(range->first + i, &scenario, &error);

        assert_true(run_seed(range->first + i, &scenario, &error) == once);
    }
}

int main(int argc, char **argv)
{
    struct range range = {argv[0], 1, 1000};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(
            every_rank_ends_whatever_happens, NULL, seed_tear_down, &range),
        cmocka_unit_test_prestate(a_seed_gives_the_same_run_again, &range),
    };

    if (argc > 1) {
        range.first = strtoull(argv[1], NULL, 10);
        range.count = 1;
    }
    if (argc > 2)
        range.count = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
