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
#include "sim/fate.h"
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
    int odd_rank; /* says something else; -1: nobody */
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

struct scene {
    struct fate fate;
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

/* ---- The scene ----------------------------------------------------------- */

static void set_network(struct scene *scene)
{
    const struct rueda_sim_wire wire = {
        .latency_ns = 20000, .jitter_ns = 30000, .bytes_per_s = 1e9};
    struct rueda_sim_net net =
        rueda_sim_net_flat(1 + below(&scene->fate, 7), wire);

    net.ranks_per_host = 1 + below(&scene->fate, 6);
    if (net.hosts == 1)
        net.ranks_per_host = 1 + below(&scene->fate, MOST); /* two levels */
    net.hosts_per_rack = net.hosts;
    scene->settings = rueda_sim_settings_default(&net);
    scene->settings.seed = rueda_dice_roll(&scene->fate.dice);
    scene->settings.skew_ns = (uint64_t)below(&scene->fate, 3) * MS;
    scene->settings.run_limit_events = 5000000;
    scene->size = rueda_sim_net_ranks(&net);
    for (int i = 0; i < scene->size; i++) {
        scene->rank_list[i] = 10 + 3 * i; /* of a job that has more */
        scene->host_list[i] = rueda_sim_net_host(&net, i);
    }
}

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static void set_negotiation(struct scene *scene)
{
    static const int capacities[] = {0, 1, 2, 3, 8, 1024};
    static const size_t fusions[] = {0, 256, 1000, 1 << 20};

    scene->args = (struct rueda_negotiator_args){
        .tag = {1, 7, 0},
        .ranks = scene->rank_list,
        .hosts = scene->host_list,
        .now_ns = no_time,
    };
    scene->args.cache_capacity = capacities[below(&scene->fate, 6)];
    scene->args.fusion_bytes = fusions[below(&scene->fate, 4)];
    scene->args.groups_alone = below(&scene->fate, 2) == 0;
}

static struct rueda_request random_request(struct scene *scene)
{
    static const int kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,
                                RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                RUEDA_BROADCAST, RUEDA_BARRIER};
    struct rueda_request request = {
        .dtype = below(&scene->fate, 3) == 0 ? RUEDA_FLOAT64 : RUEDA_FLOAT32,
        .root = -1,
        .device = RUEDA_DEVICE_HOST,
        .prescale = 1,
        .postscale = 1,
        .dims = 2,
    };

    request.kind = kinds[below(&scene->fate, scene->has_joins ? 3 : 6)];
    request.priority = below(&scene->fate, 4) == 0 ? below(&scene->fate, 3) : 0;
    request.shape[0] = (uint64_t)below(&scene->fate, 20);
    request.shape[1] = 3;
    if (request.kind == RUEDA_BROADCAST)
        request.root = scene->rank_list[0];
    return request;
}

/* Names that stay, names of one round, and none. */
static void name_it(struct scene *scene, struct tensor *tensor, int round,
                    int index)
{
    int how = below(&scene->fate, 6);

    if (how > 1)
        snprintf(tensor->name, sizeof(tensor->name), "t%d", index);
    else if (how == 1)
        snprintf(tensor->name, sizeof(tensor->name), "r%d.t%d", round, index);
    tensor->request.number = (uint64_t)round * TENSORS + (uint64_t)index;
}

/* The first few of a round are a group. */
static void make_group(struct scene *scene, int round)
{
    int count = 2 + below(&scene->fate, scene->tensors - 1);
    bool is_refused = false;

    for (int i = 0; i < count; i++) {
        struct tensor *tensor = &scene->tensor[round][i];

        tensor->request.kind = RUEDA_ALLREDUCE;
        tensor->request.root = -1;
        tensor->request.group = 77;
        tensor->request.group_count = (uint32_t)count;
        is_refused = is_refused || tensor->odd_rank >= 0;
    }
    for (int i = 0; i < count; i++)
        scene->tensor[round][i].is_refused = is_refused;
}

static void set_tensors(struct scene *scene)
{
    scene->rounds = 1 + below(&scene->fate, ROUNDS);
    scene->tensors = 1 + below(&scene->fate, TENSORS);
    scene->has_joins = below(&scene->fate, 3) == 0;
    for (int r = 0; r < scene->rounds; r++) {
        for (int i = 0; i < scene->tensors; i++) {
            struct tensor *tensor = &scene->tensor[r][i];

            tensor->odd_rank = -1;
            if (r > 0 && below(&scene->fate, 3) > 0) {
                *tensor = scene->tensor[r - 1][i]; /* as the last time */
                tensor->request.group = 0;
                tensor->request.group_count = 0;
                tensor->odd_rank = -1;
                tensor->is_refused = false;
                tensor->request.number += TENSORS;
                continue;
            }
            tensor->request = random_request(scene);
            name_it(scene, tensor, r, i);
        }
        for (int i = 0; i < scene->tensors; i++) {
            struct tensor *tensor = &scene->tensor[r][i];

            if (scene->size > 1 && !scene->has_joins &&
                below(&scene->fate, 8) == 0) {
                tensor->odd_rank = below(&scene->fate, scene->size);
                tensor->is_refused = true;
            }
        }
        if (scene->tensors > 1 && below(&scene->fate, 3) == 0)
            make_group(scene, r);
    }
}

/* What this rank says of a tensor. */
static void fill_in(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];

    for (int r = 0; r < scene->rounds; r++) {
        for (int i = 0; i < scene->tensors; i++) {
            struct tensor *tensor = &scene->tensor[r][i];
            struct rueda_request *said = &rank->said[r][i];

            *said = tensor->request;
            said->name = tensor->name[0] != '\0' ? tensor->name : NULL;
            if (said->kind == RUEDA_ALLGATHER)
                said->shape[0] += (uint64_t)index; /* rows may differ */
            if (tensor->odd_rank != index)
                continue;
            if (below(&scene->fate, 2) == 0)
                said->dtype = RUEDA_UINT8;
            else
                said->shape[1]++;
            if (said->kind == RUEDA_BARRIER)
                said->dtype = RUEDA_UINT8; /* has no shape */
        }
    }
    rank->rounds = scene->rounds;
    if (scene->has_joins)
        rank->rounds = below(&scene->fate, scene->rounds + 1);
}

static void set_scene(struct scene *scene, uint64_t seed)
{
    memset(scene, 0, sizeof(*scene));
    scene->seed = seed;
    scene->fate.dice = (struct rueda_dice){seed};
    set_network(scene);
    set_negotiation(scene);
    set_tensors(scene);
    for (int i = 0; i < scene->size; i++)
        fill_in(scene, i);
    scene->is_deadly = scene->size > 1 && below(&scene->fate, 5) == 0;
}

/* ---- A rank ------------------------------------------------------------- */

static void shuffle(struct scene *scene, struct rank *rank)
{
    for (int i = 0; i < scene->tensors; i++)
        rank->order[i] = i;
    for (int i = scene->tensors - 1; i > 0; i--) {
        int other = below(&scene->fate, i + 1);
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
static rueda_status submit_some(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];
    static const struct rueda_request join = {.kind = RUEDA_JOIN};
    int count = 1 + below(&scene->fate, 5);

    if (rank->round == rank->rounds) {
        if (!scene->has_joins || rank->has_joined)
            return RUEDA_OK;
        rank->has_joined = true;
        return rueda_negotiator_submit(rank->negotiator, &join, rank);
    }
    while (count-- > 0 && rank->submitted < scene->tensors) {
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

static bool end_tensor(struct scene *scene, int index,
                       const struct rueda_decision *decision, int item)
{
    struct rank *rank = &scene->rank[index];
    int tensor = find(rank, decision->items[item].mine);
    bool is_error = decision->kind == RUEDA_DECIDED_ERROR;

    if (tensor < 0)
        return complain(&scene->fate,
                        "rank %d was given what it does not wait for", index);
    if (is_error != scene->tensor[rank->round][tensor].is_refused)
        return complain(&scene->fate, "rank %d: %s of round %d was %s: %s",
                        index, scene->tensor[rank->round][tensor].name,
                        rank->round, is_error ? "refused" : "run",
                        is_error ? decision->words : "");
    if (is_error && strstr(decision->words, "Mismatched") == NULL)
        return complain(&scene->fate, "rank %d: odd words: %.150s", index,
                        decision->words);
    rank->ended++;
    return true;
}

static bool carry_out(struct scene *scene, int index,
                      const struct rueda_decision *decision)
{
    struct rank *rank = &scene->rank[index];

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
                return complain(&scene->fate,
                                "rank %d has to do what it has not", index);
            continue;
        }
        if (!end_tensor(scene, index, decision, i))
            return false;
    }
    return true;
}

static void next_round(struct scene *scene, struct rank *rank)
{
    if (rank->round == rank->rounds || rank->ended < scene->tensors)
        return;
    rank->round++;
    rank->ended = 0;
    rank->submitted = 0;
    shuffle(scene, rank);
    if (rank->round == rank->rounds && !scene->has_joins)
        rank->is_done = true;
}

static rueda_status turn(void *arg, int index)
{
    struct scene *scene = arg;
    struct rank *rank = &scene->rank[index];
    const struct rueda_decision *decision;
    struct rueda_text error = {""};
    rueda_status status;

    for (;;) {
        bool has_more;

        status = submit_some(scene, index);
        if (status == RUEDA_OK)
            status = rueda_negotiator_turn(rank->negotiator, &error);
        if (status < 0)
            return status;
        while ((decision = rueda_negotiator_next(rank->negotiator)) != NULL) {
            if (!carry_out(scene, index, decision))
                return RUEDA_ERR_INVALID;
            rueda_negotiator_done(rank->negotiator);
            next_round(scene, rank);
            status = RUEDA_OK;
        }
        has_more = rank->round < rank->rounds
                       ? rank->submitted < scene->tensors
                       : scene->has_joins && !rank->has_joined;
        if (status == RUEDA_IN_PROGRESS && !has_more)
            break;
    }
    if (rank->is_done && !rueda_negotiator_is_sending(rank->negotiator))
        return RUEDA_OK;
    return rueda_sim_lost_peer(scene->sim, index) >= 0 && scene->is_deadly
               ? RUEDA_ERR_PEER_LOST
               : RUEDA_IN_PROGRESS;
}

static rueda_status start(void *arg, int index)
{
    struct scene *scene = arg;
    struct rank *rank = &scene->rank[index];

    shuffle(scene, rank);
    return turn(arg, index);
}

static void leave(struct scene *scene, int index)
{
    struct rank *rank = &scene->rank[index];

    if (rank->negotiator == NULL)
        return;
    rueda_mesh_cancel(&rank->mesh, RUEDA_ERR_CANCELLED);
    rueda_negotiator_free(rank->negotiator);
    rank->negotiator = NULL;
    rueda_mesh_fini(&rank->mesh);
    rueda_sim_leave(scene->sim, index);
}

static void finish(void *arg, int index, rueda_status status)
{
    struct scene *scene = arg;

    scene->rank[index].status = status;
    if (status < 0)
        leave(scene, index);
}

/* ---- The verdict ----------------------------------------------------------
 */

static bool check(struct scene *scene)
{
    struct rank *first = &scene->rank[0];

    for (int i = 0; i < scene->size; i++) {
        struct rank *rank = &scene->rank[i];

        if (rank->status != RUEDA_OK)
            return scene->is_deadly && rank->status != RUEDA_ERR_TIMEOUT
                       ? true
                       : complain(&scene->fate,
                                  "rank %d ended with %s in round %d", i,
                                  rueda_status_str(rank->status), rank->round);
    }
    for (int i = 1; i < scene->size; i++)
        if (scene->rank[i].log_len != first->log_len ||
            (first->log_len > 0 &&
             memcmp(scene->rank[i].log, first->log,
                    first->log_len * sizeof(uint64_t)) != 0))
            return complain(&scene->fate,
                            "ranks 0 and %d followed different logs", i);
    return true;
}

static const char *program_path;

static bool run_seed(struct scene *scene, uint64_t seed)
{
    const struct rueda_sim_program program = {
        .arg = scene, .start = start, .turn = turn, .finish = finish};
    struct rueda_text why = {""};
    bool is_good;

    seed_begin(program_path, seed);
    set_scene(scene, seed);
    assert_int_equal(rueda_sim_open(&scene->settings, &scene->sim, &why),
                     RUEDA_OK);
    for (int i = 0; i < scene->size; i++) {
        assert_int_equal(rueda_mesh_init(&scene->rank[i].mesh, i, scene->size,
                                         rueda_sim_connect, scene->sim),
                         RUEDA_OK);
        scene->args.mesh = &scene->rank[i].mesh;
        assert_int_equal(
            rueda_negotiator_new(&scene->args, &scene->rank[i].negotiator),
            RUEDA_OK);
    }
    if (scene->is_deadly) {
        struct rueda_sim_fault fault = {.kind = RUEDA_SIM_KILL,
                                        .until_ns = RUEDA_SIM_NEVER};

        fault.rank = below(&scene->fate, scene->size);
        fault.from_ns = (uint64_t)below(&scene->fate, 2000000);
        assert_int_equal(rueda_sim_add_fault(scene->sim, &fault), RUEDA_OK);
    }
    is_good = rueda_sim_run(scene->sim, &program, &why) == RUEDA_OK
                  ? check(scene)
                  : complain(&scene->fate, "%.200s", why.chars);
    is_good = is_good && scene->fate.why[0] == '\0';
    for (int i = 0; i < scene->size; i++) {
        leave(scene, i);
        free(scene->rank[i].log);
    }
    rueda_sim_close(scene->sim);
    seed_end();
    return is_good;
}

static uint64_t first_seed = 1;
static uint64_t seed_count = 1500;

static void test_seeds(void **state)
{
    struct scene *scene = malloc(sizeof(*scene));
    int failures = 0;

    (void)state;
    assert_non_null(scene);
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        if (run_seed(scene, seed))
            continue;
        failures++;
        print_message("seed %llu: %s\n    repeat it with: %s %llu\n",
                      (unsigned long long)seed, scene->fate.why, program_path,
                      (unsigned long long)seed);
        if (failures == 5)
            break;
    }
    free(scene);
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
