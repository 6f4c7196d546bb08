/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on random networks: the lanes of every rank and the threads
 * that submit to them, with tensors of all types and reductions, process sets
 * that come and go, joins, messages, callbacks, ranks that differ in anything,
 * that are late and that die. A seed decides everything:
 *
 *     test_sim_programs [FIRST [COUNT]]
 *
 * runs seeds FIRST (1) up to FIRST + COUNT - 1 (1500 of them; 1 if FIRST is
 * given alone). Every operation has to end as the script says, on all ranks
 * alike, and every result to be right; where a rank dies the others end too.
 * For a seed that fails, the command that repeats it is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/program_rank.h"
#include "sim/seed.h"

/* ---- The scenario ----------------------------------------------------- */

static void set_network(struct scenario *scenario)
{
    static const size_t credits[] = {0, 10000, (size_t)4 << 20};
    const struct rueda_sim_wire wire = {
        .latency_ns = 20000, .jitter_ns = 30000, .bytes_per_s = 1e9};
    struct rueda_sim_net net =
        rueda_sim_net_flat(1 + below(&scenario->check, 5), wire);

    net.ranks_per_host = 1 + below(&scenario->check, SCRIPT_RANKS / net.hosts);
    net.hosts_per_rack = net.hosts;
    scenario->settings = rueda_sim_settings_default(&net);
    scenario->settings.seed = rueda_dice_roll(&scenario->check.dice);
    scenario->settings.credit_bytes = credits[below(&scenario->check, 3)];
    scenario->settings.overhead_ns = (uint64_t)below(&scenario->check, 3) * 300;
    scenario->settings.skew_ns = (uint64_t)below(&scenario->check, 3) * MS;
    scenario->settings.run_limit_events = 5000000;
    scenario->size = rueda_sim_net_ranks(&net);
    scenario->has_topology = net.hosts > 1 || below(&scenario->check, 2) == 0;
    scenario->topology = (struct rueda_topology){.size = scenario->size,
                                                 .host_count = net.hosts,
                                                 .rows = scenario->rows};
    for (int i = 0; i < scenario->size; i++) {
        scenario->rows[i].host = rueda_sim_net_host(&net, i);
        scenario->rows[i].index = i % net.ranks_per_host;
    }
}

static void set_lanes(struct scenario *scenario)
{
    static const int capacities[] = {0, 1, 2, 3, 8, 1024};
    static const size_t fusions[] = {0, 256, 1024, 8192, 65536};
    static const char *const rows[] = {"", "", "allreduce:ring",
                                       "allreduce:halving_doubling"};
    struct rueda_text error = {""};

    scenario->config.cache_capacity = capacities[below(&scenario->check, 6)];
    scenario->config.groups_alone = below(&scenario->check, 2) == 0;
    scenario->fusion_bytes = fusions[below(&scenario->check, 5)];
    rueda_select_init(&scenario->select);
    assert_int_equal(rueda_select_parse(&scenario->select,
                                        rows[below(&scenario->check, 4)],
                                        &error),
                     RUEDA_OK);
}

static void set_scenario(struct scenario *scenario, uint64_t seed)
{
    static const size_t most_bytes[] = {300, 3000, 30000};

    memset(scenario, 0, sizeof(*scenario));
    scenario->check.dice = (struct rueda_dice){seed};
    set_network(scenario);
    set_lanes(scenario);
    scenario->has_delays = below(&scenario->check, 2) == 0;
    scenario->is_deadly = scenario->size > 1 && below(&scenario->check, 5) == 0;
    script_make(&scenario->script, scenario->size,
                most_bytes[below(&scenario->check, 3)], &scenario->check.dice);
}

/* ---- One seed ------------------------------------------------------------ */

static void finish(void *arg, int index, rueda_status status)
{
    struct scenario *scenario = arg;

    scenario->rank[index].status = status;
    scenario->tally.failed += status == RUEDA_ERR_PEER_LOST;
    if (status == RUEDA_ERR_TIMEOUT)
        program_rank_tell(scenario, index, &scenario->left);
    if (status < 0)
        program_rank_leave(scenario, index, status);
}

static void add_death(struct scenario *scenario)
{
    struct rueda_sim_fault fault = {.kind = RUEDA_SIM_KILL,
                                    .until_ns = RUEDA_SIM_NEVER};

    fault.rank = below(&scenario->check, scenario->size);
    fault.from_ns = (uint64_t)below(&scenario->check, 5000) * US;
    assert_int_equal(rueda_sim_add_fault(scenario->sim, &fault), RUEDA_OK);
}

/* A rank that is slow for a while. */
static void add_slowness(struct scenario *scenario)
{
    struct rueda_sim_fault fault = {.kind = RUEDA_SIM_SLOW};

    fault.rank = below(&scenario->check, scenario->size);
    fault.factor = 2 + below(&scenario->check, 20);
    fault.from_ns = (uint64_t)below(&scenario->check, 2000) * US;
    fault.until_ns =
        fault.from_ns + (uint64_t)below(&scenario->check, 5000) * US + 1;
    assert_int_equal(rueda_sim_add_fault(scenario->sim, &fault), RUEDA_OK);
}

static bool check(struct scenario *scenario)
{
    for (int i = 0; i < scenario->size && !scenario->is_deadly; i++)
        if (scenario->rank[i].status != RUEDA_OK)
            return complain(&scenario->check,
                            "rank %d ends with %s in round %d", i,
                            rueda_status_str(scenario->rank[i].status),
                            scenario->rank[i].round);
    return true;
}

static const char *program_path;

static bool run_seed(struct scenario *scenario, uint64_t seed)
{
    const struct rueda_sim_program program = {.arg = scenario,
                                              .start = program_rank_start,
                                              .turn = program_rank_turn,
                                              .finish = finish};
    struct rueda_text why = {""};

    seed_begin(program_path, seed);
    set_scenario(scenario, seed);
    assert_int_equal(rueda_sim_open(&scenario->settings, &scenario->sim, &why),
                     RUEDA_OK);
    for (int i = 0; i < scenario->size; i++)
        program_rank_open(scenario, i);
    if (scenario->is_deadly)
        add_death(scenario);
    if (below(&scenario->check, 3) == 0)
        add_slowness(scenario);
    if (rueda_sim_run(scenario->sim, &program, &why) == RUEDA_OK)
        check(scenario);
    else
        complain(&scenario->check, "%.250s%.250s", why.chars,
                 scenario->left.chars);
    scenario->trace =
        rueda_hash_mix(scenario->trace ^ rueda_sim_events(scenario->sim));
    for (int i = 0; i < scenario->size; i++)
        program_rank_leave(scenario, i, RUEDA_ERR_CLOSED);
    rueda_sim_close(scenario->sim);
    seed_end();
    return scenario->check.why[0] == '\0';
}

static uint64_t first_seed = 1;
static uint64_t seed_count = 1500;

static void test_seeds(void **state)
{
    struct scenario *scenario = *state;
    struct tally all = {0};
    int failures = 0;

    for (uint64_t seed = first_seed;
         seed < first_seed + seed_count && failures < 5; seed++) {
        bool is_good = run_seed(scenario, seed);

        all.right += scenario->tally.right;
        all.refused += scenario->tally.refused;
        all.in_vain += scenario->tally.in_vain;
        all.cancelled += scenario->tally.cancelled;
        all.failed += scenario->tally.failed;
        all.helped += scenario->tally.helped;
        all.left += scenario->tally.left;
        if (is_good)
            continue;
        failures++;
        print_message("seed %llu: %s\n    repeat it with: %s %llu\n",
                      (unsigned long long)seed, scenario->check.why,
                      program_path, (unsigned long long)seed);
    }
    print_message("%zu results are right, %zu operations were refused by all, "
                  "%zu at once and %zu cancelled, %zu ranks lost another\n",
                  all.right, all.refused, all.in_vain, all.cancelled,
                  all.failed);
    print_message("%zu turns by threads that had submitted, %zu left to the "
                  "background thread\n",
                  all.helped, all.left);
    assert_int_equal(failures, 0);
    if (seed_count >= 100)
        assert_true(all.helped > 0 && all.left > 0);
}

static void test_same_seed_same_run(void **state)
{
    struct scenario *scenario = *state;

    for (uint64_t seed = first_seed; seed < first_seed + 20; seed++) {
        uint64_t trace;

        run_seed(scenario, seed);
        trace = scenario->trace;
        run_seed(scenario, seed);
        assert_true(trace == scenario->trace);
    }
}

static int set_up(void **state)
{
    *state = aligned_alloc(64, (sizeof(struct scenario) + 63) / 64 * 64);
    return *state != NULL ? 0 : 1;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_seeds, seed_tear_down),
        cmocka_unit_test_teardown(test_same_seed_same_run, seed_tear_down),
    };

    program_path = argv[0];
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
