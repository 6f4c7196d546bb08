/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on random networks: the lanes of every rank, with tensors,
 * process sets that come and go, joins, messages, ranks that differ, that are
 * late and that die. A seed decides everything:
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

#include "engine/lanes.h"
#include "sim/fate.h"
#include "sim/program_data.h"
#include "transport/sim/sim.h"

#define US ((uint64_t)1000)
#define MS ((uint64_t)1000000)

struct rank {
    struct rueda_job job;
    struct rueda_lanes lanes;
    struct rueda_numbers numbers;
    bool is_open;
    rueda_status status;

    int round;
    int order[PLAN_OPS]; /* of those that are left to submit */
    int left;
    struct program_op *ops[PLAN_OPS]; /* NULL: not submitted */
};

struct scene {
    struct fate fate;
    struct rueda_sim_settings settings;
    struct rueda_sim *sim;
    struct rueda_topology topology;
    bool has_topology; /* not where all are on one host */
    struct rueda_topology_place places[PLAN_RANKS];
    struct rueda_select select;
    struct rueda_config config;
    size_t fusion_bytes;
    bool is_deadly;
    bool has_delays;
    int size;
    struct plan plan;
    struct rank rank[PLAN_RANKS];
    uint64_t trace; /* stands for all that ended, when and how */
    struct tally {
        size_t right; /* results */
        size_t refused;
        size_t cancelled; /* with their set */
        size_t failed;    /* ranks that lost one which died */
    } tally;
};

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

/* ---- What ends ----------------------------------------------------------- */

/* All ranks are told the same. */
static bool agree(struct scene *scene, int index, struct program_op *op)
{
    const struct rueda_named *named = &op->named;
    struct plan_op *plan = op->plan;
    const int told =
        plan->request.kind == RUEDA_JOIN ? named->last_rank : named->made_set;

    if (plan_is_message(plan))
        return true;
    if (plan->has_ended &&
        (plan->outcome != named->op.outcome || plan->told != told))
        return complain(&scene->fate,
                        "rank %d: %s \"%s\" of round %d ends with %s (%d), and "
                        "elsewhere with %s (%d)",
                        index, rueda_kind_str((rueda_kind)plan->request.kind),
                        plan->name, scene->rank[index].round,
                        rueda_status_str(named->op.outcome), told,
                        rueda_status_str(plan->outcome), plan->told);
    plan->has_ended = true;
    plan->outcome = named->op.outcome;
    plan->told = told;
    if (plan->request.kind == RUEDA_SET_ADD && named->op.outcome == RUEDA_OK)
        scene->plan.sets[plan->changed].id = named->made_set;
    if (plan->request.kind == RUEDA_JOIN &&
        plan_index(&scene->plan.sets[plan->set], told) < 0)
        return complain(&scene->fate, "rank %d: %d joined last", index, told);
    return true;
}

static bool judge(struct scene *scene, int index, struct program_op *op)
{
    const struct plan_op *plan = op->plan;
    const rueda_status outcome = op->named.op.outcome;
    const char *words = op->named.error;
    const char *fault;
    rueda_status expected = plan->expected;

    if (op->named.request.kind == RUEDA_SEND)
        expected = RUEDA_OK;
    if (outcome == RUEDA_ERR_CANCELLED && plan->may_end_early) {
        scene->tally.cancelled++;
        return agree(scene, index, op);
    }
    if (outcome != expected)
        return complain(&scene->fate,
                        "rank %d: %s \"%s\" of set %d, round %d: %s: %s", index,
                        rueda_kind_str((rueda_kind)plan->request.kind),
                        plan->name, plan->set, scene->rank[index].round,
                        rueda_status_str(outcome), words != NULL ? words : "");
    scene->tally.refused += outcome != RUEDA_OK;
    if (outcome != RUEDA_OK)
        return program_op_is_explained(op)
                   ? agree(scene, index, op)
                   : complain(&scene->fate,
                              "rank %d: \"%s\" is refused with the wrong "
                              "words: %s",
                              index, plan->name, words != NULL ? words : "");
    fault = program_op_fault(&scene->plan, op, index);
    if (fault != NULL)
        return complain(&scene->fate,
                        "rank %d: %s \"%s\" of set %d, round %d: %s", index,
                        rueda_kind_str((rueda_kind)plan->request.kind),
                        plan->name, plan->set, scene->rank[index].round, fault);
    scene->tally.right++;
    return agree(scene, index, op);
}

/* Take what has ended; a rank that has failed may end anything. */
static bool take_ended(struct scene *scene, int index, bool has_failed)
{
    struct rank *rank = &scene->rank[index];
    struct rueda_named *named;

    while ((named = rueda_lanes_pop_ended(&rank->lanes)) != NULL) {
        struct program_op *op = (struct program_op *)named;

        if (op->has_ended)
            return complain(&scene->fate, "rank %d: an operation ends twice",
                            index);
        op->has_ended = true;
        scene->trace =
            rueda_hash_mix(scene->trace ^ rueda_sim_now(scene->sim) ^
                           (uint64_t)(uint32_t)named->op.outcome << 32 ^
                           (uint64_t)index << 56);
        if ((!has_failed || named->op.outcome == RUEDA_OK) &&
            !judge(scene, index, op))
            return false;
    }
    return true;
}

/* ---- A rank -------------------------------------------------------------- */

/* What there is to submit in this round, in an order of its own. */
static void begin_round(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];
    const struct plan_round *round = &scene->plan.round[rank->round];

    rank->left = 0;
    for (int i = 0; i < round->count; i++)
        if (plan_takes(&round->ops[i], index))
            rank->order[rank->left++] = i;
    for (int i = rank->left - 1; i > 0; i--) {
        int other = below(&scene->fate, i + 1);
        int kept = rank->order[i];

        rank->order[i] = rank->order[other];
        rank->order[other] = kept;
    }
}

/* Changes of sets come one after another, what has no name in the order of the
 * program; who joins has submitted all else. */
static bool may_submit(const struct scene *scene, int index, int which)
{
    const struct rank *rank = &scene->rank[index];
    const struct plan_round *round = &scene->plan.round[rank->round];
    const struct plan_op *op = &round->ops[which];

    for (int i = 0; i < round->count; i++) {
        const struct plan_op *other = &round->ops[i];
        const struct program_op *submitted = rank->ops[i];
        const bool has_ended = submitted != NULL && submitted->has_ended;

        if (i == which || !plan_takes(other, index))
            continue;
        if (plan_is_change(op) && plan_is_change(other) && i < which &&
            !has_ended)
            return false;
        if (plan_is_numbered(op) && plan_is_numbered(other) &&
            other->set == op->set && i < which && submitted == NULL)
            return false;
        if (op->request.kind == RUEDA_JOIN && other->set == op->set &&
            (submitted == NULL || (round->is_polite && !has_ended)))
            return false;
    }
    return true;
}

static void submit(struct scene *scene, int index, int which)
{
    struct rank *rank = &scene->rank[index];
    struct plan_op *plan = &scene->plan.round[rank->round].ops[which];
    struct program_op *op = program_op_new(&scene->plan, plan, index);

    if (plan_is_numbered(plan))
        assert_int_equal(rueda_numbers_next(&rank->numbers, op->named.set,
                                            &op->named.request.number),
                         RUEDA_OK);
    rank->ops[which] = op;
    rueda_lanes_push(&rank->lanes, &op->named);
}

/* Submit some more; how many. */
static int submit_some(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];
    int most = 1 + below(&scene->fate, 5);
    int count = 0;

    for (int i = 0; i < rank->left && count < most;) {
        int which = rank->order[i];

        if (!may_submit(scene, index, which)) {
            i++;
            continue;
        }
        submit(scene, index, which);
        memmove(&rank->order[i], &rank->order[i + 1],
                (size_t)(rank->left - i - 1) * sizeof(int));
        rank->left--;
        count++;
    }
    return count;
}

static bool has_ended_round(const struct rank *rank)
{
    for (int i = 0; i < PLAN_OPS; i++)
        if (rank->ops[i] != NULL && !rank->ops[i]->has_ended)
            return false;
    return rank->left == 0;
}

static void free_round(struct rank *rank)
{
    for (int i = 0; i < PLAN_OPS; i++) {
        if (rank->ops[i] != NULL)
            program_op_free(rank->ops[i]);
        rank->ops[i] = NULL;
    }
}

/* Rounds that are over, also those in which there is nothing to do; is there
 * another one? */
static bool next_rounds(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];
    const int before = rank->round;

    while (rank->round < scene->plan.rounds && has_ended_round(rank)) {
        free_round(rank);
        if (++rank->round < scene->plan.rounds)
            begin_round(scene, index);
    }
    return rank->round > before && rank->round < scene->plan.rounds;
}

/* Who says that nothing can move is believed, and may be left to sleep. */
static void check_word(struct scene *scene, int index)
{
    struct rueda_text error = {""};

    if (rueda_lanes_turn(&scene->rank[index].lanes, &error) == RUEDA_OK)
        complain(&scene->fate, "rank %d moves after it said that nothing does",
                 index);
}

static rueda_status turn(void *arg, int index)
{
    struct scene *scene = arg;
    struct rank *rank = &scene->rank[index];
    struct rueda_text error = {""};
    rueda_status status;
    bool has_more;
    int submitted;

    do {
        submitted =
            rank->round < scene->plan.rounds ? submit_some(scene, index) : 0;
        status = rueda_lanes_turn(&rank->lanes, &error);
        if (status < 0 && status != RUEDA_ERR_PEER_LOST)
            complain(&scene->fate, "rank %d fails: %s: %s", index,
                     rueda_status_str(status), error.chars);
        if (status < 0)
            return status;
        if (!take_ended(scene, index, false))
            return RUEDA_ERR_INVALID;
        has_more = next_rounds(scene, index);
        if (submitted > 0 && scene->has_delays && below(&scene->fate, 3) == 0) {
            rueda_sim_spend(scene->sim, index,
                            (uint64_t)below(&scene->fate, 300) * US);
            return RUEDA_IN_PROGRESS;
        }
    } while (status == RUEDA_OK || submitted > 0 || has_more);
    check_word(scene, index);
    if (rank->round == scene->plan.rounds &&
        !rueda_lanes_are_busy(&rank->lanes))
        return RUEDA_OK;
    return rueda_sim_lost_peer(scene->sim, index) >= 0 ? RUEDA_ERR_PEER_LOST
                                                       : RUEDA_IN_PROGRESS;
}

static rueda_status start(void *arg, int index)
{
    begin_round(arg, index);
    return turn(arg, index);
}

static void leave(struct scene *scene, int index, rueda_status status)
{
    struct rank *rank = &scene->rank[index];

    if (!rank->is_open)
        return;
    rank->is_open = false;
    rueda_mesh_cancel(&rank->job.mesh, status);
    rueda_lanes_end(&rank->lanes, status);
    take_ended(scene, index, true);
    for (int i = 0; i < PLAN_OPS; i++)
        if (rank->ops[i] != NULL && !rank->ops[i]->has_ended)
            complain(&scene->fate, "rank %d: an operation never ends", index);
    free_round(rank);
    rueda_lanes_fini(&rank->lanes);
    rueda_mesh_fini(&rank->job.mesh);
    rueda_numbers_fini(&rank->numbers);
    rueda_segment_close(rank->job.segment);
    rueda_sim_leave(scene->sim, index);
}

static void finish(void *arg, int index, rueda_status status)
{
    struct scene *scene = arg;

    scene->rank[index].status = status;
    scene->tally.failed += status == RUEDA_ERR_PEER_LOST;
    if (status < 0)
        leave(scene, index, status);
}

/* ---- One seed ------------------------------------------------------------ */

static void open_rank(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];
    struct rueda_job *job = &rank->job;
    struct rueda_text error = {""};

    job->config = scene->config;
    job->rank = index;
    job->size = scene->size;
    job->topology = scene->has_topology ? &scene->topology : NULL;
    assert_int_equal(rueda_segment_threads(1, &job->segment, &error), RUEDA_OK);
    job->segment->agreement->fusion_bytes = scene->fusion_bytes;
    job->segment->agreement->cache_capacity =
        (uint32_t)scene->config.cache_capacity;
    assert_int_equal(rueda_mesh_init(&job->mesh, index, scene->size,
                                     rueda_sim_connect, scene->sim),
                     RUEDA_OK);
    assert_int_equal(rueda_lanes_init(&rank->lanes, job, &scene->select,
                                      rueda_sim_kernels(scene->sim, index)),
                     RUEDA_OK);
    rank->lanes.numbers = &rank->numbers;
    rank->is_open = true;
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

static bool run_seed(struct scene *scene, uint64_t seed)
{
    const struct rueda_sim_program program = {
        .arg = scene, .start = start, .turn = turn, .finish = finish};
    struct rueda_text why = {""};

    set_scene(scene, seed);
    assert_int_equal(rueda_sim_open(&scene->settings, &scene->sim, &why),
                     RUEDA_OK);
    for (int i = 0; i < scene->size; i++)
        open_rank(scene, i);
    if (scene->is_deadly)
        add_death(scene);
    if (below(&scene->fate, 3) == 0)
        add_slowness(scene);
    if (rueda_sim_run(scene->sim, &program, &why) == RUEDA_OK)
        check(scene);
    else
        complain(&scene->fate, "%.400s", why.chars);
    scene->trace = rueda_hash_mix(scene->trace ^ rueda_sim_events(scene->sim));
    for (int i = 0; i < scene->size; i++)
        leave(scene, i, RUEDA_ERR_CLOSED);
    rueda_sim_close(scene->sim);
    return scene->fate.why[0] == '\0';
}

static const char *program_path;
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
        all.cancelled += scene->tally.cancelled;
        all.failed += scene->tally.failed;
        if (is_good)
            continue;
        failures++;
        print_message("seed %llu: %s\n    repeat it with: %s %llu\n",
                      (unsigned long long)seed, scene->fate.why, program_path,
                      (unsigned long long)seed);
    }
    print_message("%zu results are right, %zu operations were refused and %zu "
                  "cancelled, %zu ranks lost another\n",
                  all.right, all.refused, all.cancelled, all.failed);
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
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_same_seed_same_run),
    };

    program_path = argv[0];
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
