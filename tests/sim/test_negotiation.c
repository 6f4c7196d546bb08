/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random negotiations on random networks, and now and then a rank that dies. A
 * seed decides everything:
 *
 *     test_sim_negotiation [FIRST [COUNT]]
 *
 * runs seeds FIRST (1) up to FIRST + COUNT - 1 (1500 of them; 1 if FIRST is
 * given alone). Ranks submit the same tensors round by round, each in its own
 * order; of some, one rank says something else; some ranks join early. All must
 * come to the same decisions in the same order, and every tensor ends once and
 * as it has to. For a seed that fails, the command that repeats it is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "negotiate/negotiator.h"
#include "sim/random_check.h"
#include "sim/seed.h"
#include "transport/sim/sim.h"

#define MS      ((uint64_t)1000000)
#define ROUNDS  6
#define TENSORS 14
#define MOST    48 /* ranks */

/* What one round has of a tensor, on all ranks. */
struct tensor {
    char name[32]; /* empty: none */
    struct rueda_request request;
    int odd_rank; /* says something else; -1: none */
    bool is_refused;
};

struct rank {
    struct rueda_mesh mesh;
    struct rueda_negotiator *negotiator;
    struct rueda_request said[ROUNDS][TENSORS];
    int order[TENSORS];
    int round;
    int rounds;    /* that it takes part in */
    int submitted; /* of this round */
    int ended;
    bool has_joined;
    bool is_done;
    rueda_status status;

    /* What it was told to run, in order. */
    uint64_t *log;
    size_t log_len;
    size_t log_room;
};

struct scenario {
    struct random_check check;
    uint64_t seed;
    struct rueda_sim_settings settings;
    struct rueda_sim *sim;
    struct rueda_negotiator_args args;
    int size;
    int rank_list[MOST];
    int host_list[MOST];
    int rounds;
    int tensors;
    bool has_joins;
    bool is_deadly;
    struct tensor tensor[ROUNDS][TENSORS];
    struct rank rank[MOST];
};

/* ---- The scenario ----------------------------------------------------- */

static void set_network(struct scenario *scenario)
{
    const struct rueda_sim_wire wire = {
        .latency_ns = 20000, .jitter_ns = 30000, .bytes_per_s = 1e9};
    struct rueda_sim_net net =
        rueda_sim_net_flat(1 + below(&scenario->check, 7), wire);

    net.ranks_per_host = 1 + below(&scenario->check, 6);
    if (net.hosts == 1)
        net.ranks_per_host = 1 + below(&scenario->check, MOST); /* two levels */
    net.hosts_per_rack = net.hosts;
    scenario->settings = rueda_sim_settings_default(&net);
    scenario->settings.seed = rueda_dice_roll(&scenario->check.dice);
    scenario->settings.skew_ns = (uint64_t)below(&scenario->check, 3) * MS;
    scenario->settings.run_limit_events = 5000000;
    scenario->size = rueda_sim_net_ranks(&net);
    for (int i = 0; i < scenario->size; i++) {
        scenario->rank_list[i] = 10 + 3 * i; /* of a job that has more */
        scenario->host_list[i] = rueda_sim_net_host(&net, i);
    }
}

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static void set_negotiation(struct scenario *scenario)
{
    static const int capacities[] = {0, 1, 2, 3, 8, 1024};
    static const size_t fusions[] = {0, 256, 1000, 1 << 20};

    scenario->args = (struct rueda_negotiator_args){
        .tag = {1, 7, 0},
        .ranks = scenario->rank_list,
        .hosts = scenario->host_list,
        .now_ns = no_time,
    };
    scenario->args.cache_capacity = capacities[below(&scenario->check, 6)];
    scenario->args.fusion_bytes = fusions[below(&scenario->check, 4)];
    scenario->args.groups_alone = below(&scenario->check, 2) == 0;
}

static struct rueda_request random_request(struct scenario *scenario)
{
    static const int kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,
                                RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                RUEDA_BROADCAST, RUEDA_BARRIER};
    struct rueda_request request = {
        .dtype =
            below(&scenario->check, 3) == 0 ? RUEDA_FLOAT64 : RUEDA_FLOAT32,
        .root = -1,
        .device = RUEDA_DEVICE_HOST,
        .prescale = 1,
        .postscale = 1,
        .dims = 2,
    };

    request.kind = kinds[below(&scenario->check, scenario->has_joins ? 3 : 6)];
    request.priority =
        below(&scenario->check, 4) == 0 ? below(&scenario->check, 3) : 0;
    request.shape[0] = (uint64_t)below(&scenario->check, 20);
    request.shape[1] = 3;
    if (request.kind == RUEDA_BROADCAST)
        request.root = scenario->rank_list[0];
    return request;
}

/* Names that stay, names of one round, and none. */
static void name_it(struct scenario *scenario, struct tensor *tensor, int round,
                    int index)
{
    int how = below(&scenario->check, 6);

    if (how > 1)
        snprintf(tensor->name, sizeof(tensor->name), "t%d", index);
    else if (how == 1)
        snprintf(tensor->name, sizeof(tensor->name), "r%d.t%d", round, index);
    tensor->request.number = (uint64_t)round * TENSORS + (uint64_t)index;
}

/* The first few of a round are a group. */
static void make_group(struct scenario *scenario, int round)
{
    int count = 2 + below(&scenario->check, scenario->tensors - 1);
    bool is_refused = false;

    for (int i = 0; i < count; i++) {
        struct tensor *tensor = &scenario->tensor[round][i];

        tensor->request.kind = RUEDA_ALLREDUCE;
        tensor->request.root = -1;
        tensor->request.group = 77;
        tensor->request.group_count = (uint32_t)count;
        is_refused = is_refused || tensor->odd_rank >= 0;
    }
    for (int i = 0; i < count; i++)
        scenario->tensor[round][i].is_refused = is_refused;
}

static void set_tensors(struct scenario *scenario)
{
    scenario->rounds = 1 + below(&scenario->check, ROUNDS);
    scenario->tensors = 1 + below(&scenario->check, TENSORS);
    scenario->has_joins = below(&scenario->check, 3) == 0;
    for (int r = 0; r < scenario->rounds; r++) {
        for (int i = 0; i < scenario->tensors; i++) {
            struct tensor *tensor = &scenario->tensor[r][i];

            tensor->odd_rank = -1;
            if (r > 0 && below(&scenario->check, 3) > 0) {
                *tensor = scenario->tensor[r - 1][i]; /* as the last time */
                tensor->request.group = 0;
                tensor->request.group_count = 0;
                tensor->odd_rank = -1;
                tensor->is_refused = false;
                tensor->request.number += TENSORS;
                continue;
            }
            tensor->request = random_request(scenario);
            name_it(scenario, tensor, r, i);
        }
        for (int i = 0; i < scenario->tensors; i++) {
            struct tensor *tensor = &scenario->tensor[r][i];

            if (scenario->size > 1 && !scenario->has_joins &&
                below(&scenario->check, 8) == 0) {
                tensor->odd_rank = below(&scenario->check, scenario->size);
                tensor->is_refused = true;
            }
        }
        if (scenario->tensors > 1 && below(&scenario->check, 3) == 0)
            make_group(scenario, r);
    }
}

/* What this rank says of a tensor. */
static void fill_in(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];

    for (int r = 0; r < scenario->rounds; r++) {
        for (int i = 0; i < scenario->tensors; i++) {
            struct tensor *tensor = &scenario->tensor[r][i];
            struct rueda_request *said = &rank->said[r][i];

            *said = tensor->request;
            said->name = tensor->name[0] != '\0' ? tensor->name : NULL;
            if (said->kind == RUEDA_ALLGATHER)
                said->shape[0] += (uint64_t)index; /* rows may differ */
            if (tensor->odd_rank != index)
                continue;
            if (below(&scenario->check, 2) == 0)
                said->dtype = RUEDA_UINT8;
            else
                said->shape[1]++;
            if (said->kind == RUEDA_BARRIER)
                said->dtype = RUEDA_UINT8; /* has no shape */
        }
    }
    rank->rounds = scenario->rounds;
    if (scenario->has_joins)
        rank->rounds = below(&scenario->check, scenario->rounds + 1);
}

static void set_scenario(struct scenario *scenario, uint64_t seed)
{
    memset(scenario, 0, sizeof(*scenario));
    scenario->seed = seed;
    scenario->check.dice = (struct rueda_dice){seed};
    set_network(scenario);
    set_negotiation(scenario);
    set_tensors(scenario);
    for (int i = 0; i < scenario->size; i++)
        fill_in(scenario, i);
    scenario->is_deadly = scenario->size > 1 && below(&scenario->check, 5) == 0;
}

/* ---- A rank ------------------------------------------------------------- */

static void shuffle(struct scenario *scenario, struct rank *rank)
{
    for (int i = 0; i < scenario->tensors; i++)
        rank->order[i] = i;
    for (int i = scenario->tensors - 1; i > 0; i--) {
        int other = below(&scenario->check, i + 1);
        int kept = rank->order[i];

        rank->order[i] = rank->order[other];
        rank->order[other] = kept;
    }
}

static void note(struct rank *rank, uint64_t value)
{
    if (rank->log_len == rank->log_room) {
        rank->log_room = rank->log_room > 0 ? rank->log_room * 2 : 64;
        rank->log = realloc(rank->log, rank->log_room * sizeof(uint64_t));
        assert_non_null(rank->log);
    }
    rank->log[rank->log_len++] = value;
}

/* Some more of this round, or a join. */
static rueda_status submit_some(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    static const struct rueda_request join = {.kind = RUEDA_JOIN};
    int count = 1 + below(&scenario->check, 5);

    if (rank->round == rank->rounds) {
        if (!scenario->has_joins || rank->has_joined)
            return RUEDA_OK;
        rank->has_joined = true;
        return rueda_negotiator_submit(rank->negotiator, &join, rank);
    }
    while (count-- > 0 && rank->submitted < scenario->tensors) {
        const struct rueda_request *said =
            &rank->said[rank->round][rank->order[rank->submitted++]];
        rueda_status status =
            rueda_negotiator_submit(rank->negotiator, said, (void *)said);

        if (status != RUEDA_OK)
            return status;
    }
    return RUEDA_OK;
}

/* Which tensor of this round is it? */
static int find(struct rank *rank, const void *mine)
{
    for (int i = 0; i < TENSORS; i++)
        if (mine == &rank->said[rank->round][i])
            return i;
    return -1;
}

static bool end_tensor(struct scenario *scenario, int index,
                       const struct rueda_decision *decision, int item)
{
    struct rank *rank = &scenario->rank[index];
    int tensor = find(rank, decision->items[item].mine);
    bool is_error = decision->kind == RUEDA_DECIDED_ERROR;

    if (tensor < 0)
        return complain(&scenario->check,
                        "rank %d was given what it does not wait for", index);
    if (is_error != scenario->tensor[rank->round][tensor].is_refused)
        return complain(&scenario->check, "rank %d: %s of round %d was %s: %s",
                        index, scenario->tensor[rank->round][tensor].name,
                        rank->round, is_error ? "refused" : "run",
                        is_error ? decision->words : "");
    if (is_error && strstr(decision->words, "Mismatched") == NULL)
        return complain(&scenario->check, "rank %d: odd words: %.150s", index,
                        decision->words);
    rank->ended++;
    return true;
}

static bool carry_out(struct scenario *scenario, int index,
                      const struct rueda_decision *decision)
{
    struct rank *rank = &scenario->rank[index];

    if (decision->kind == RUEDA_DECIDED_JOINED) {
        rank->is_done = true;
        note(rank, (uint64_t)decision->last_rank);
        return true;
    }
    if (decision->kind == RUEDA_DECIDED_RUN) {
        note(rank, decision->index);
        note(rank, (uint64_t)decision->count);
        note(rank, (uint64_t)decision->live);
    }
    for (int i = 0; i < decision->count; i++) {
        const struct rueda_decision_item *item = &decision->items[i];

        if (decision->kind == RUEDA_DECIDED_RUN)
            note(rank,
                 (uint64_t)item->request->kind << 32 | item->request->shape[1]);
        if (item->mine == NULL) {
            if (!rank->has_joined)
                return complain(&scenario->check,
                                "rank %d has to do what it has not", index);
            continue;
        }
        if (!end_tensor(scenario, index, decision, i))
            return false;
    }
    return true;
}

static void next_round(struct scenario *scenario, struct rank *rank)
{
    if (rank->round == rank->rounds || rank->ended < scenario->tensors)
        return;
    rank->round++;
    rank->ended = 0;
    rank->submitted = 0;
    shuffle(scenario, rank);
    if (rank->round == rank->rounds && !scenario->has_joins)
        rank->is_done = true;
}

static rueda_status turn(void *arg, int index)
{
    struct scenario *scenario = arg;
    struct rank *rank = &scenario->rank[index];
    const struct rueda_decision *decision;
    struct rueda_text error = {""};
    rueda_status status;

    for (;;) {
        bool has_more;

        status = submit_some(scenario, index);
        if (status == RUEDA_OK)
            status = rueda_negotiator_turn(rank->negotiator, &error);
        if (status < 0)
            return status;
        while ((decision = rueda_negotiator_next(rank->negotiator)) != NULL) {
            if (!carry_out(scenario, index, decision))
                return RUEDA_ERR_INVALID;
            rueda_negotiator_done(rank->negotiator);
            next_round(scenario, rank);
            status = RUEDA_OK;
        }
        has_more = rank->round < rank->rounds
                       ? rank->submitted < scenario->tensors
                       : scenario->has_joins && !rank->has_joined;
        if (status == RUEDA_IN_PROGRESS && !has_more)
            break;
    }
    if (rank->is_done && !rueda_negotiator_is_sending(rank->negotiator))
        return RUEDA_OK;
    return rueda_sim_lost_peer(scenario->sim, index) >= 0 && scenario->is_deadly
               ? RUEDA_ERR_PEER_LOST
               : RUEDA_IN_PROGRESS;
}

static rueda_status start(void *arg, int index)
{
    struct scenario *scenario = arg;
    struct rank *rank = &scenario->rank[index];

    shuffle(scenario, rank);
    return turn(arg, index);
}

static void leave(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];

    if (rank->negotiator == NULL)
        return;
    rueda_mesh_cancel(&rank->mesh, RUEDA_ERR_CANCELLED);
    rueda_negotiator_free(rank->negotiator);
    rank->negotiator = NULL;
    rueda_mesh_fini(&rank->mesh);
    rueda_sim_leave(scenario->sim, index);
}

static void finish(void *arg, int index, rueda_status status)
{
    struct scenario *scenario = arg;

    scenario->rank[index].status = status;
    if (status < 0)
        leave(scenario, index);
}

/* ---- The verdict ------------------------------------------------------ */

static bool check(struct scenario *scenario)
{
    struct rank *first = &scenario->rank[0];

    for (int i = 0; i < scenario->size; i++) {
        struct rank *rank = &scenario->rank[i];

        if (rank->status != RUEDA_OK)
            return scenario->is_deadly && rank->status != RUEDA_ERR_TIMEOUT
                       ? true
                       : complain(&scenario->check,
                                  "rank %d ended with %s in round %d", i,
                                  rueda_status_str(rank->status), rank->round);
    }
    for (int i = 1; i < scenario->size; i++)
        if (scenario->rank[i].log_len != first->log_len ||
            (first->log_len > 0 &&
             memcmp(scenario->rank[i].log, first->log,
                    first->log_len * sizeof(uint64_t)) != 0))
            return complain(&scenario->check,
                            "ranks 0 and %d followed different logs", i);
    return true;
}

static const char *program_path;

static bool run_seed(struct scenario *scenario, uint64_t seed)
{
    const struct rueda_sim_program program = {
        .arg = scenario, .start = start, .turn = turn, .finish = finish};
    struct rueda_text why = {""};
    bool is_good;

    seed_begin(program_path, seed);
    set_scenario(scenario, seed);
    assert_int_equal(rueda_sim_open(&scenario->settings, &scenario->sim, &why),
                     RUEDA_OK);
    for (int i = 0; i < scenario->size; i++) {
        assert_int_equal(rueda_mesh_init(&scenario->rank[i].mesh, i,
                                         scenario->size, rueda_sim_connect,
                                         scenario->sim),
                         RUEDA_OK);
        scenario->args.mesh = &scenario->rank[i].mesh;
        assert_int_equal(rueda_negotiator_new(&scenario->args,
                                              &scenario->rank[i].negotiator),
                         RUEDA_OK);
    }
    if (scenario->is_deadly) {
        struct rueda_sim_fault fault = {.kind = RUEDA_SIM_KILL,
                                        .until_ns = RUEDA_SIM_NEVER};

        fault.rank = below(&scenario->check, scenario->size);
        fault.from_ns = (uint64_t)below(&scenario->check, 2000000);
        assert_int_equal(rueda_sim_add_fault(scenario->sim, &fault), RUEDA_OK);
    }
    is_good = rueda_sim_run(scenario->sim, &program, &why) == RUEDA_OK
                  ? check(scenario)
                  : complain(&scenario->check, "%.200s", why.chars);
    is_good = is_good && scenario->check.why[0] == '\0';
    for (int i = 0; i < scenario->size; i++) {
        leave(scenario, i);
        free(scenario->rank[i].log);
    }
    rueda_sim_close(scenario->sim);
    seed_end();
    return is_good;
}

static uint64_t first_seed = 1;
static uint64_t seed_count = 1500;

static void test_seeds(void **state)
{
    struct scenario *scenario = malloc(sizeof(*scenario));
    int failures = 0;

    (void)state;
    assert_non_null(scenario);
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        if (run_seed(scenario, seed))
            continue;
        failures++;
        print_message("seed %llu: %s\n    repeat it with: %s %llu\n",
                      (unsigned long long)seed, scenario->check.why,
                      program_path, (unsigned long long)seed);
        if (failures == 5)
            break;
    }
    free(scenario);
    assert_int_equal(failures, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_seeds, seed_tear_down),
    };

    program_path = argv[0];
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
