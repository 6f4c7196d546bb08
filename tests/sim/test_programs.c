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
 * given alone). Every operation has to end as the plan says, on all ranks
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

/* ---- The scene ----------------------------------------------------------- */

static void set_network(struct scene *scene)
{
    static const size_t credits[] = {0, 10000, (size_t)4 << 20};
    const struct rueda_sim_wire wire = {
        .latency_ns = 20000, .jitter_ns = 30000, .bytes_per_s = 1e9};
    struct rueda_sim_net net =
        rueda_sim_net_flat(1 + below(&scene->fate, 5), wire);

    net.ranks_per_host = 1 + below(&scene->fate, PLAN_RANKS / net.hosts);
    net.hosts_per_rack = net.hosts;
    scene->settings = rueda_sim_settings_default(&net);
    scene->settings.seed = rueda_dice_roll(&scene->fate.dice);
    scene->settings.credit_bytes = credits[below(&scene->fate, 3)];
    scene->settings.overhead_ns = (uint64_t)below(&scene->fate, 3) * 300;
    scene->settings.skew_ns = (uint64_t)below(&scene->fate, 3) * MS;
    scene->settings.run_limit_events = 5000000;
    scene->size = rueda_sim_net_ranks(&net);
    scene->has_topology = net.hosts > 1 || below(&scene->fate, 2) == 0;
    scene->topology = (struct rueda_topology){
        .size = scene->size, .host_count = net.hosts, .places = scene->places};
    for (int i = 0; i < scene->size; i++) {
        scene->places[i].host = rueda_sim_net_host(&net, i);
        scene->places[i].index = i % net.ranks_per_host;
    }
}

static void set_lanes(struct scene *scene)
{
    static const int capacities[] = {0, 1, 2, 3, 8, 1024};
    static const size_t fusions[] = {0, 256, 1024, 8192, 65536};
    static const char *const rows[] = {"", "", "allreduce:ring",
                                       "allreduce:halving_doubling"};
    struct rueda_text error = {""};

    scene->config.cache_capacity = capacities[below(&scene->fate, 6)];
    scene->config.groups_alone = below(&scene->fate, 2) == 0;
    scene->fusion_bytes = fusions[below(&scene->fate, 5)];
    rueda_select_init(&scene->select);
    assert_int_equal(rueda_select_parse(&scene->select,
                                        rows[below(&scene->fate, 4)], &error),
                     RUEDA_OK);
}

static void set_scene(struct scene *scene, uint64_t seed)
{
    static const size_t most_bytes[] = {300, 3000, 30000};

    memset(scene, 0, sizeof(*scene));
    scene->fate.dice = (struct rueda_dice){seed};
    set_network(scene);
    set_lanes(scene);
    scene->has_delays = below(&scene->fate, 2) == 0;
    scene->is_deadly = scene->size > 1 && below(&scene->fate, 5) == 0;
    plan_make(&scene->plan, scene->size, most_bytes[below(&scene->fate, 3)],
              &scene->fate.dice);
}

/* ---- One seed ------------------------------------------------------------ */

static void finish(void *arg, int index, rueda_status status)
{
    struct scene *scene = arg;

    scene->rank[index].status = status;
    scene->tally.failed += status == RUEDA_ERR_PEER_LOST;
    if (status == RUEDA_ERR_TIMEOUT)
        program_rank_tell(scene, index, &scene->left);
    if (status < 0)
        program_rank_leave(scene, index, status);
}

static void add_death(struct scene *scene)
{
    struct rueda_sim_fault fault = {.kind = RUEDA_SIM_KILL,
                                    .until_ns = RUEDA_SIM_NEVER};

    fault.rank = below(&scene->fate, scene->size);
    fault.from_ns = (uint64_t)below(&scene->fate, 5000) * US;
    assert_int_equal(rueda_sim_add_fault(scene->sim, &fault), RUEDA_OK);
}

/* A rank that is slow for a while. */
static void add_slowness(struct scene *scene)
{
    struct rueda_sim_fault fault = {.kind = RUEDA_SIM_SLOW};

    fault.rank = below(&scene->fate, scene->size);
    fault.factor = 2 + below(&scene->fate, 20);
    fault.from_ns = (uint64_t)below(&scene->fate, 2000) * US;
    fault.until_ns =
        fault.from_ns + (uint64_t)below(&scene->fate, 5000) * US + 1;
    assert_int_equal(rueda_sim_add_fault(scene->sim, &fault), RUEDA_OK);
}

static bool check(struct scene *scene)
{
    for (int i = 0; i < scene->size && !scene->is_deadly; i++)
        if (scene->rank[i].status != RUEDA_OK)
            return complain(&scene->fate, "rank %d ends with %s in round %d", i,
                            rueda_status_str(scene->rank[i].status),
                            scene->rank[i].round);
    return true;
}

static const char *program_path;

static bool run_seed(struct scene *scene, uint64_t seed)
{
    const struct rueda_sim_program program = {.arg = scene,
                                              .start = program_rank_start,
                                              .turn = program_rank_turn,
                                              .finish = finish};
    struct rueda_text why = {""};

    seed_begin(program_path, seed);
    set_scene(scene, seed);
    assert_int_equal(rueda_sim_open(&scene->settings, &scene->sim, &why),
                     RUEDA_OK);
    for (int i = 0; i < scene->size; i++)
        program_rank_open(scene, i);
    if (scene->is_deadly)
        add_death(scene);
    if (below(&scene->fate, 3) == 0)
        add_slowness(scene);
    if (rueda_sim_run(scene->sim, &program, &why) == RUEDA_OK)
        check(scene);
    else
        complain(&scene->fate, "%.250s%.250s", why.chars, scene->left.chars);
    scene->trace = rueda_hash_mix(scene->trace ^ rueda_sim_events(scene->sim));
    for (int i = 0; i < scene->size; i++)
        program_rank_leave(scene, i, RUEDA_ERR_CLOSED);
    rueda_sim_close(scene->sim);
    seed_end();
    return scene->fate.why[0] == '\0';
}

static uint64_t first_seed = 1;
static uint64_t seed_count = 1500;

static void test_seeds(void **state)
{
    struct scene *scene = *state;
    struct tally all = {0};
    int failures = 0;

    for (uint64_t seed = first_seed;
         seed < first_seed + seed_count && failures < 5; seed++) {
        bool is_good = run_seed(scene, seed);

        all.right += scene->tally.right;
        all.refused += scene->tally.refused;
        all.in_vain += scene->tally.in_vain;
        all.cancelled += scene->tally.cancelled;
        all.failed += scene->tally.failed;
        if (is_good)
            continue;
        failures++;
        print_message("seed %llu: %s\n    repeat it with: %s %llu\n",
                      (unsigned long long)seed, scene->fate.why, program_path,
                      (unsigned long long)seed);
    }
    print_message("%zu results are right, %zu operations were refused by all, "
                  "%zu at once and %zu cancelled, %zu ranks lost another\n",
                  all.right, all.refused, all.in_vain, all.cancelled,
                  all.failed);
    assert_int_equal(failures, 0);
}

static void test_same_seed_same_run(void **state)
{
    struct scene *scene = *state;

    for (uint64_t seed = first_seed; seed < first_seed + 20; seed++) {
        uint64_t trace;

        run_seed(scene, seed);
        trace = scene->trace;
        run_seed(scene, seed);
        assert_true(trace == scene->trace);
    }
}

static int set_up(void **state)
{
    *state = aligned_alloc(64, (sizeof(struct scene) + 63) / 64 * 64);
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
