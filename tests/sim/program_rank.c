/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_rank.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- Life ---------------------------------------------------------------- */

void program_rank_open(struct scene *scene, int index)
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

rueda_status program_rank_turn(void *arg, int index)
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

rueda_status program_rank_start(void *arg, int index)
{
    begin_round(arg, index);
    return program_rank_turn(arg, index);
}

void program_rank_leave(struct scene *scene, int index, rueda_status status)
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
