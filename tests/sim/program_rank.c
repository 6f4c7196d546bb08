/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_rank.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/program_judge.h"

static const struct script_round *round_of(const struct scenario *scenario,
                                           int index)
{
    return &scenario->script.round[scenario->rank[index].round];
}

static bool has_failed(const struct scenario *scenario)
{
    return scenario->check.why[0] != '\0';
}

/* ---- What ends ----------------------------------------------------------- */

/* Look at the result, and end the handle; a rank that has failed may end
 * anything. */
static void end_op(struct scenario *scenario, struct program_op *op)
{
    struct rank *rank = &scenario->rank[op->rank];

    op->outcome = rueda_poll(&rank->ctx, op->handle);
    if (rank->is_open || op->outcome == RUEDA_OK)
        program_judge(scenario, op->rank, op);
    if (rueda_wait(&rank->ctx, op->handle, 0) != op->outcome ||
        rueda_poll(&rank->ctx, op->handle) != RUEDA_ERR_INVALID)
        complain(&scenario->check,
                 "rank %d: a handle does not end as it should", op->rank);
    op->ticket = NULL;
    op->has_ended = true;
    rank->moves++;
}

static struct program_op *owner_of(const struct rank *rank,
                                   const struct rueda_ticket *ticket)
{
    for (int i = 0; i < SCRIPT_OPS; i++)
        if (rank->ops[i] != NULL && rank->ops[i]->ticket == ticket)
            return rank->ops[i];
    return NULL;
}

static void look_after(struct scenario *scenario, int index, int thread,
                       bool is_sure);

/* Tell those who wait for what has ended, as the engine does. A thread may be
 * quicker than the callbacks that are due. */
static void deliver(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    struct rueda_then_list due = {0};
    struct rueda_ticket *ticket;

    while ((ticket = rueda_lanes_pop_ended(&rank->ctx.engine.lanes)) != NULL) {
        struct program_op *op = owner_of(rank, ticket);

        if (op == NULL || op->is_delivered) {
            complain(&scenario->check, "rank %d: an operation ends twice",
                     index);
            return;
        }
        op->is_delivered = true;
        scenario->trace =
            rueda_hash_mix(scenario->trace ^ rueda_sim_now(scenario->sim) ^
                           (uint64_t)(uint32_t)ticket->op.outcome << 32 ^
                           (uint64_t)index << 56);
        rueda_op_deliver(&ticket->op, ticket->op.outcome, &due);
    }
    if (rank->is_open && below(&scenario->check, 4) == 0)
        look_after(scenario, index, below(&scenario->check, rank->thread_count),
                   true);
    rueda_then_run(&due);
}

static rueda_status turn_lanes(struct scenario *scenario, int index)
{
    struct rueda_lanes *lanes = &scenario->rank[index].ctx.engine.lanes;
    struct rueda_text error = {""};
    rueda_status status = rueda_lanes_turn(lanes, true, &error);

    if (status < 0 && status != RUEDA_ERR_PEER_LOST)
        complain(&scenario->check, "rank %d fails: %s: %s", index,
                 rueda_status_str(status), error.chars);
    return status;
}

/* ---- Submitting ---------------------------------------------------------- */

static void submit(struct scenario *scenario, int index, int which, int thread);

/* The callback of an operation: what waits for this one is submitted here. */
static void called(void *arg, rueda_status status)
{
    struct program_op *op = arg;
    struct scenario *scenario = op->scenario;
    struct rank *rank = &scenario->rank[op->rank];
    const struct script_round *round = round_of(scenario, op->rank);

    const rueda_status outcome =
        op->has_ended ? op->outcome : rueda_poll(&rank->ctx, op->handle);

    if (op->was_called || status != outcome)
        complain(&scenario->check, "rank %d: a wrong call", op->rank);
    op->was_called = true;
    if (op->is_ended_by && !op->has_ended)
        end_op(scenario, op);
    for (int i = 0; i < round->count && rank->is_open; i++)
        if (round->ops[i].after == op->which && rank->is_called[i])
            submit(scenario, op->rank, i, op->thread);
}

static void ask_to_be_called(struct scenario *scenario, struct program_op *op)
{
    rueda_ctx *ctx = &scenario->rank[op->rank].ctx;

    op->has_then = true;
    scenario->rank[op->rank].moves++;
    if (rueda_handle_then(ctx, op->handle, called, op) != RUEDA_OK)
        complain(&scenario->check, "rank %d: there is no callback to call",
                 op->rank);
}

/* Does a callback have to submit anything? */
static bool has_followers(const struct rank *rank,
                          const struct script_round *round, int which)
{
    for (int i = which + 1; i < round->count; i++)
        if (round->ops[i].after == which && rank->is_called[i])
            return true;
    return false;
}

static void submit(struct scenario *scenario, int index, int which, int thread)
{
    struct rank *rank = &scenario->rank[index];
    struct script_op *script = &scenario->script.round[rank->round].ops[which];
    struct program_op *op =
        program_op_new(&scenario->script, script, &rank->ctx);

    op->scenario = scenario;
    op->which = which;
    op->thread = thread;
    op->wants_then = has_followers(rank, round_of(scenario, index), which) ||
                     below(&scenario->check, 8) == 0;
    op->is_ended_by = below(&scenario->check, 2) == 0;
    rank->ops[which] = op;
    rank->moves++;
    rueda_op_push(&rank->ctx.engine.lanes.arrived, &op->ticket->op);
    program_drive_submit(scenario, index,
                         rueda_request_bytes(&op->ticket->request));
    if (op->wants_then && below(&scenario->check, 2) == 0)
        ask_to_be_called(scenario, op);
}

/* Changes of sets come one after another, what has no name in the order of the
 * program; who joins has submitted all else. */
static bool may_submit(const struct scenario *scenario, int index, int which)
{
    const struct rank *rank = &scenario->rank[index];
    const struct script_round *round = round_of(scenario, index);
    const struct script_op *op = &round->ops[which];

    for (int i = 0; i < round->count; i++) {
        const struct script_op *other = &round->ops[i];
        const struct program_op *submitted = rank->ops[i];
        const bool has_ended = submitted != NULL && submitted->has_ended;

        if (script_level(round, i) == script_level(round, which) ||
            !script_takes(other, index))
            continue;
        if (op->after == i && !has_ended)
            return false;
        if (script_is_change(op) && script_is_change(other) && i < which &&
            !has_ended)
            return false;
        if (script_is_numbered(op) && script_is_numbered(other) &&
            other->set == op->set && i < which && submitted == NULL)
            return false;
        if (op->request.kind == RUEDA_JOIN && other->set == op->set &&
            (submitted == NULL || (round->is_polite && !has_ended)))
            return false;
    }
    return true;
}

/* Those of a group come at once. */
static bool may_submit_all(const struct scenario *scenario, int index,
                           int which)
{
    const struct script_round *round = round_of(scenario, index);

    for (int i = which; i < round->count && script_level(round, i) == which;
         i++)
        if (script_takes(&round->ops[i], index) &&
            !may_submit(scenario, index, i))
            return false;
    return true;
}

/* ---- Threads ------------------------------------------------------------- */

/* What must not be submitted is refused at once, in these words. */
static void submit_in_vain(struct scenario *scenario, int index,
                           const struct script_op *script, const char *words)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_ctx *ctx = &scenario->rank[index].ctx;
    rueda_handle handle = 0;

    args.kind = RUEDA_BARRIER;
    args.name = script->name[0] != '\0' ? script->name : NULL;
    args.set = scenario->script.sets[script->set].id;
    args.flags = RUEDA_MORE;
    if (rueda_submit(ctx, &args, &handle) != RUEDA_ERR_INVALID ||
        strstr(rueda_last_error(), words) == NULL)
        complain(&scenario->check, "rank %d: \"%s\" is taken though %s", index,
                 script->name, words);
    scenario->tally.in_vain++;
}

/* A second operation of a name, as long as the first one's owner does not know
 * how that ended; or one without a name by a rank that has joined. */
static void intrude(struct scenario *scenario, int index)
{
    const struct program_op *op =
        scenario->rank[index].ops[below(&scenario->check, SCRIPT_OPS)];
    const struct script_op *script = op != NULL ? op->script : NULL;

    if (op == NULL || op->has_ended || script_is_change(script) ||
        script->may_end_early)
        return;
    if (script->request.kind == RUEDA_JOIN && !op->is_delivered)
        submit_in_vain(scenario, index, script, "this rank has joined already");
    else if (script->name[0] != '\0' && !(op->wants_then && op->is_delivered))
        submit_in_vain(scenario, index, script, "requested with the same name");
}

/* Look after what this thread has submitted; not at all at once, unless it is
 * to be sure. */
static void look_after(struct scenario *scenario, int index, int thread,
                       bool is_sure)
{
    struct rank *rank = &scenario->rank[index];

    for (int i = 0; i < SCRIPT_OPS; i++) {
        struct program_op *op = rank->ops[i];

        if (op == NULL || op->thread != thread || op->has_ended ||
            (!is_sure && below(&scenario->check, 2) == 0))
            continue;
        if (op->wants_then && !op->has_then)
            ask_to_be_called(scenario, op);
        else if (rueda_poll(&rank->ctx, op->handle) != RUEDA_IN_PROGRESS)
            end_op(scenario, op);
    }
}

static bool is_waiting(const struct rank *rank, const struct thread *thread)
{
    return thread->awaited >= 0 && !rank->ops[thread->awaited]->has_ended;
}

/* Does a thread wait? It drives the engine then. */
static bool is_awaited(const struct rank *rank)
{
    for (int i = 0; i < rank->thread_count; i++) {
        const int awaited = rank->threads[i].awaited;

        if (awaited >= 0 && rank->ops[awaited] != NULL &&
            !rank->ops[awaited]->has_ended)
            return true;
    }
    return false;
}

/* With all of its group. */
static void submit_all(struct scenario *scenario, int index, int which,
                       int thread)
{
    const struct script_round *round = round_of(scenario, index);

    for (int i = which; i < round->count && script_level(round, i) == which;
         i++)
        if (script_takes(&round->ops[i], index))
            submit(scenario, index, i, thread);
}

static void submit_some(struct scenario *scenario, int index, int number)
{
    struct rank *rank = &scenario->rank[index];
    struct thread *thread = &rank->threads[number];
    int most = 1 + below(&scenario->check, 5);

    for (int i = 0; i < thread->left && most > 0;) {
        const int which = thread->order[i];

        if (is_waiting(rank, thread))
            return;
        if (!may_submit_all(scenario, index, which)) {
            if (thread->is_patient)
                return;
            i++;
            continue;
        }
        memmove(&thread->order[i], &thread->order[i + 1],
                (size_t)(thread->left - i - 1) * sizeof(int));
        thread->left--;
        most--;
        submit_all(scenario, index, which, number);
        if (thread->is_patient && below(&scenario->check, 2) == 0)
            thread->awaited = which;
    }
}

static void run_thread(struct scenario *scenario, int index, int number,
                       bool is_sure)
{
    look_after(scenario, index, number, is_sure);
    submit_some(scenario, index, number);
    if (below(&scenario->check, 32) == 0)
        intrude(scenario, index);
}

/* One of them, or all if that one has nothing to do. */
static void run_threads(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    const uint64_t before = rank->moves;

    run_thread(scenario, index, below(&scenario->check, rank->thread_count),
               false);
    for (int i = 0; i < rank->thread_count && rank->moves == before; i++)
        run_thread(scenario, index, i, true);
}

/* ---- Rounds -------------------------------------------------------------- */

static void shuffle(struct scenario *scenario, struct thread *thread)
{
    for (int i = thread->left - 1; i > 0; i--) {
        int other = below(&scenario->check, i + 1);
        int kept = thread->order[i];

        thread->order[i] = thread->order[other];
        thread->order[other] = kept;
    }
}

/* What there is to submit in this round, and by whom. */
static void begin_round(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    const struct script_round *round = round_of(scenario, index);

    rank->thread_count = 1 + below(&scenario->check, SCRIPT_THREADS);
    for (int i = 0; i < rank->thread_count; i++) {
        rank->threads[i].left = 0;
        rank->threads[i].awaited = -1;
        rank->threads[i].is_patient = below(&scenario->check, 2) == 0;
    }
    for (int i = 0; i < round->count; i++) {
        const struct script_op *op = &round->ops[i];
        struct thread *thread =
            &rank->threads[below(&scenario->check, rank->thread_count)];

        rank->is_called[i] = op->after >= 0 && script_takes(op, index) &&
                             script_takes(&round->ops[op->after], index) &&
                             below(&scenario->check, 2) == 0;
        if (script_takes(op, index) && !rank->is_called[i] &&
            script_level(round, i) == i)
            thread->order[thread->left++] = i;
        /* Others wait for who joins, whatever comes later. */
        if (op->request.kind == RUEDA_JOIN)
            thread->is_patient = false;
    }
    for (int i = 0; i < rank->thread_count; i++)
        if (!rank->threads[i].is_patient)
            shuffle(scenario, &rank->threads[i]);
}

static bool has_ended_round(const struct scenario *scenario, int index)
{
    const struct rank *rank = &scenario->rank[index];
    const struct script_round *round = round_of(scenario, index);

    for (int i = 0; i < round->count; i++)
        if (script_takes(&round->ops[i], index) &&
            (rank->ops[i] == NULL || !rank->ops[i]->has_ended))
            return false;
    return true;
}

static void free_round(struct rank *rank)
{
    for (int i = 0; i < SCRIPT_OPS; i++) {
        if (rank->ops[i] != NULL)
            program_op_free(rank->ops[i]);
        rank->ops[i] = NULL;
    }
}

/* Rounds that are over, also those in which there is nothing to do; is there
 * another one? */
static bool next_rounds(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    const int before = rank->round;

    while (rank->round < scenario->script.rounds &&
           has_ended_round(scenario, index)) {
        free_round(rank);
        if (++rank->round < scenario->script.rounds)
            begin_round(scenario, index);
    }
    return rank->round > before && rank->round < scenario->script.rounds;
}

/* ---- Turns --------------------------------------------------------------- */

/* A rank that says that nothing can move is believed, and may be left to sleep.
 */
static void check_word(struct scenario *scenario, int index)
{
    struct rueda_lanes *lanes = &scenario->rank[index].ctx.engine.lanes;
    struct rueda_text error = {""};

    if (rueda_lanes_turn(lanes, true, &error) == RUEDA_OK)
        complain(&scenario->check,
                 "rank %d moves after it said that nothing does", index);
}

rueda_status program_rank_turn(void *arg, int index)
{
    struct scenario *scenario = arg;
    struct rank *rank = &scenario->rank[index];
    rueda_status status;
    uint64_t before;
    bool has_more;

    do {
        before = rank->moves;
        if (rank->round < scenario->script.rounds)
            run_threads(scenario, index);
        if (!program_drive_begin(scenario, index, is_awaited(rank)))
            return has_failed(scenario) ? RUEDA_ERR_INVALID : RUEDA_IN_PROGRESS;
        status = turn_lanes(scenario, index);
        if (status < 0)
            return status;
        deliver(scenario, index);
        program_drive_end(scenario, index,
                          !rueda_lanes_are_busy(&rank->ctx.engine.lanes));
        if (has_failed(scenario))
            return RUEDA_ERR_INVALID;
        has_more = next_rounds(scenario, index);
        if (rank->moves > before && scenario->has_delays &&
            below(&scenario->check, 6) == 0) {
            rueda_sim_spend(scenario->sim, index,
                            (uint64_t)below(&scenario->check, 300) * US);
            return RUEDA_IN_PROGRESS;
        }
    } while (status == RUEDA_OK || rank->moves > before || has_more);
    check_word(scenario, index);
    if (rank->round == scenario->script.rounds &&
        !rueda_lanes_are_busy(&rank->ctx.engine.lanes))
        return RUEDA_OK;
    return rueda_sim_lost_peer(scenario->sim, index) >= 0 ? RUEDA_ERR_PEER_LOST
                                                          : RUEDA_IN_PROGRESS;
}

rueda_status program_rank_start(void *arg, int index)
{
    begin_round(arg, index);
    return program_rank_turn(arg, index);
}

/* ---- Life ---------------------------------------------------------------- */

/* As a rank's formation is, but for the simulator's messages. */
static struct rueda_formation *form(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    struct rueda_formation *formation =
        rueda_formation_new(&rank->job, index, scenario->size);
    const struct rueda_topology_row *rows = scenario->topology.rows;

    assert_non_null(formation);
    formation->segment = rank->job.segment;
    if (scenario->has_topology)
        formation->topology = &scenario->topology;
    for (int peer = 0; peer < scenario->size; peer++) {
        int *member = &formation->members[peer];

        *member = !scenario->has_topology               ? peer
                  : rows[peer].host == rows[index].host ? rows[peer].index
                                                        : -1;
    }
    assert_int_equal(rueda_mesh_init(&formation->mesh, index, scenario->size,
                                     rueda_sim_connect, scenario->sim),
                     RUEDA_OK);
    return formation;
}

void program_rank_open(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];
    struct rueda_engine *engine = &rank->ctx.engine;
    struct rueda_job *job = &rank->job;
    struct rueda_text error = {""};

    job->config = scenario->config;
    assert_int_equal(rueda_segment_threads(1, &job->segment, &error), RUEDA_OK);
    job->segment->common->fusion_bytes = scenario->fusion_bytes;
    job->segment->common->cache_capacity =
        (uint32_t)scenario->config.cache_capacity;
    job->formation = form(scenario, index);
    assert_int_equal(rueda_lanes_init(&engine->lanes, job, &scenario->select,
                                      rueda_sim_device(scenario->sim, index)),
                     RUEDA_OK);
    engine->job = job;
    engine->formation = job->formation;
    rueda_terms_init(engine);
    engine->lanes.numbers = &engine->numbers;
    rank->ctx.job = job;
    engine->policy.has_room = true; /* turns are taken here, not by who polls */
    rueda_op_pool_init(&rank->ctx.ops);
    rueda_names_init(&rank->ctx.names);
    program_drive_open(scenario, index);
    rank->is_open = true;
}

void program_rank_tell(const struct scenario *scenario, int index,
                       struct rueda_text *words)
{
    const struct rank *rank = &scenario->rank[index];
    const struct script_round *round = round_of(scenario, index);

    if (rank->round == scenario->script.rounds)
        return;
    rueda_text_add(words, "; rank %d, round %d:", index, rank->round);
    for (int i = 0; i < round->count; i++) {
        const struct script_op *op = &round->ops[i];

        if (script_takes(op, index) &&
            (rank->ops[i] == NULL || !rank->ops[i]->has_ended))
            rueda_text_add(words, " %s%s \"%s\"%s",
                           rank->ops[i] == NULL ? "no " : "",
                           rueda_kind_str((rueda_kind)op->request.kind),
                           op->name, op->request.group != 0 ? " (group)" : "");
    }
}

/* All operations have to end now, and so do their handles. */
static void end_handles(struct scenario *scenario, int index)
{
    struct rank *rank = &scenario->rank[index];

    for (int i = 0; i < SCRIPT_OPS; i++) {
        struct program_op *op = rank->ops[i];

        if (op == NULL || op->has_ended)
            continue;
        if (rueda_poll(&rank->ctx, op->handle) == RUEDA_IN_PROGRESS)
            complain(&scenario->check, "rank %d: an operation never ends",
                     index);
        else
            end_op(scenario, op);
    }
    free_round(rank);
}

void program_rank_leave(struct scenario *scenario, int index,
                        rueda_status status)
{
    struct rank *rank = &scenario->rank[index];
    struct rueda_engine *engine = &rank->ctx.engine;

    if (!rank->is_open)
        return;
    rank->is_open = false;
    rueda_mesh_cancel(&rank->job.formation->mesh, status);
    rueda_lanes_end(&engine->lanes, status);
    deliver(scenario, index);
    end_handles(scenario, index);
    rueda_lanes_fini(&engine->lanes);
    rank->job.formation->topology = NULL; /* the scenario's */
    rueda_formation_release(rank->job.formation);
    rueda_numbers_fini(&engine->numbers);
    rueda_names_fini(&rank->ctx.names);
    rueda_op_pool_fini(&rank->ctx.ops);
    rueda_segment_close(rank->job.segment);
    rueda_sim_leave(scenario->sim, index);
}
