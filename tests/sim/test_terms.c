/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole engines of 2 to 64 ranks of one host, of which some die
 * (RUEDA_REPAIR=1). One thread takes the turns of all of them; a seed decides
 * whose turn is next, what the program runs, which ranks die and when, and when
 * each of the others sees that:
 *
 *     test_sim_terms [FIRST [COUNT]]
 *
 * runs seeds FIRST (1) up to FIRST + COUNT - 1 (40 of them; 1 if FIRST is given
 * alone). Each rank gives a bit of its own to each sum, so that a result says
 * which ranks are in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ctx.h"
#include "sim/seed.h"
#include "transport/sim/dice.h"
#include "unit/unit.h"

#define MOST       64 /* ranks */
#define DEATHS     4  /* at most */
#define OPS        40
#define MOST_COUNT 300      /* elements of one */
#define AHEAD      4        /* operations that a rank has in flight */
#define EVENTS     20000000 /* no seed needs as many */

enum {
    BOUNDARY,
    NAMED,
    ORDERED,
    BARRIER,
    KINDS
};

struct item {
    int kind;
    size_t count;
};

struct rank {
    rueda_ctx *ctx;
    bool is_dead;
    int died_at; /* the event, or -1: it lives */
    bool sees[MOST];
    int submitted;
    struct rueda_ticket *ops; /* [OPS] */
    int64_t *in;              /* [MOST_COUNT] */
    int64_t *out;             /* [OPS * MOST_COUNT] */
};

struct world {
    struct rueda_dice dice;
    int size;
    int deaths;
    struct item script[OPS];
    struct rank ranks[MOST];
};

static int below(struct world *world, int n)
{
    return (int)rueda_dice_below(&world->dice, (uint64_t)n);
}

/* ---- The beginning ------------------------------------------------------ */

static void write_script(struct world *world)
{
    for (int i = 0; i < OPS; i++)
        world->script[i] = (struct item){
            .kind = i % 8 == 0 ? BOUNDARY : 1 + below(world, KINDS - 1),
            .count = 1 + (size_t)below(world, MOST_COUNT),
        };
}

static void settle_deaths(struct world *world)
{
    for (int i = 0; i < world->size; i++)
        world->ranks[i].died_at = -1;
    world->deaths = below(world, world->size < DEATHS ? world->size : DEATHS);
    for (int i = 0; i < world->deaths; i++) {
        struct rank *rank = &world->ranks[below(world, world->size)];

        if (rank->died_at >= 0)
            i--;
        else
            rank->died_at = world->size * (10 + below(world, 250));
    }
}

static void open_rank(struct world *world, int i)
{
    struct rank *rank = &world->ranks[i];

    rank->ops =
        aligned_alloc(RUEDA_CACHE_LINE, OPS * sizeof(struct rueda_ticket));
    rank->in = calloc(MOST_COUNT, sizeof(int64_t));
    rank->out = calloc((size_t)OPS * MOST_COUNT, sizeof(int64_t));
    assert_true(rank->ops != NULL && rank->in != NULL && rank->out != NULL);
    memset(rank->ops, 0, OPS * sizeof(struct rueda_ticket));
    for (int k = 0; k < MOST_COUNT; k++)
        rank->in[k] = (int64_t)((uint64_t)1 << i);
}

static struct world *world_open(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    rueda_ctx *contexts[MOST];

    assert_non_null(world);
    world->dice.state = seed;
    world->size = 2 + below(world, seed % 4 == 0 ? MOST - 1 : 15);
    setenv("RUEDA_TRANSPORT", below(world, 2) == 0 ? "auto" : "loop", 1);
    write_script(world);
    settle_deaths(world);
    assert_int_equal(rueda_init_threads(world->size, NULL, contexts), RUEDA_OK);
    for (int i = 0; i < world->size; i++) {
        world->ranks[i].ctx = contexts[i];
        open_rank(world, i);
    }
    return world;
}

/* ---- The program of a rank ----------------------------------------------- */

static bool has_ended(const struct rank *rank, int i)
{
    return rueda_op_status(&rank->ops[i].op) != RUEDA_IN_PROGRESS;
}

/* All before a boundary have ended, and the boundary before what follows. */
static bool may_submit(const struct world *world, const struct rank *rank)
{
    const int next = rank->submitted;
    int running = 0;

    if (next == OPS)
        return false;
    for (int i = 0; i < next; i++)
        running += !has_ended(rank, i);
    if (world->script[next].kind == BOUNDARY || running == 0)
        return running == 0;
    return running < AHEAD && has_ended(rank, next / 8 * 8);
}

static void submit(const struct world *world, struct rank *rank)
{
    static const int kinds[] = {RUEDA_STEP, RUEDA_ALLREDUCE, RUEDA_ALLREDUCE,
                                RUEDA_BARRIER};
    const int i = rank->submitted++;
    const struct item *item = &world->script[i];
    struct rueda_ticket *ticket = &rank->ops[i];

    rueda_op_init(&ticket->op);
    rueda_ticket_init(ticket, kinds[item->kind]);
    ticket->op.is_ordered = item->kind != NAMED;
    ticket->op.is_laid_out = item->kind != NAMED && item->kind != BOUNDARY;
    ticket->member_count = rueda_size(rank->ctx);
    ticket->send = rank->in;
    ticket->recv = rank->out + (size_t)i * MOST_COUNT;
    ticket->count = item->count;
    ticket->request.dtype = RUEDA_INT64;
    if (item->kind == NAMED) {
        snprintf(ticket->short_name, sizeof(ticket->short_name), "op.%d", i);
        ticket->request.name = ticket->short_name;
        ticket->request.dims = 1;
        ticket->request.shape[0] = item->count;
    }
    rueda_op_push(&rank->ctx->engine.lanes.arrived, &ticket->op);
}

/* ---- Turns ------------------------------------------------------------ */

/* A death is seen sooner or later, by each rank at a time of its own. */
static void see(struct world *world, struct rank *rank)
{
    for (int i = 0; i < world->size; i++) {
        if (!world->ranks[i].is_dead || rank->sees[i] || below(world, 8) != 0)
            continue;
        rank->sees[i] = true;
        rank->ctx->job->segment->dead[i] = true;
    }
}

static void act(struct world *world, struct rank *rank)
{
    struct rueda_engine *engine = &rank->ctx->engine;

    see(world, rank);
    if (below(world, 3) == 0 && may_submit(world, rank))
        submit(world, rank);
    else if (below(world, 4) == 0)
        rueda_engine_check(engine);
    else
        engine_turn(engine);
    if (!rueda_failing_is_on(engine) && below(world, 8) == 0 &&
        rueda_lanes_are_spoilt(&engine->lanes))
        rueda_failing_begin_by_peer(engine, -1);
}

static bool is_done(const struct world *world)
{
    for (int i = 0; i < world->size; i++) {
        const struct rank *rank = &world->ranks[i];

        if (!rank->is_dead &&
            (rank->submitted < OPS || !has_ended(rank, OPS - 1) ||
             !has_ended(rank, OPS - 2) || !has_ended(rank, OPS - 3) ||
             !has_ended(rank, OPS - 4) ||
             rueda_failing_is_on(&rank->ctx->engine)))
            return false;
    }
    return true;
}

static void live(struct world *world)
{
    for (int event = 0; event % 64 != 0 || !is_done(world); event++) {
        struct rank *rank = &world->ranks[below(world, world->size)];

        assert_true(event < EVENTS);
        if (rank->died_at >= 0 && event >= rank->died_at)
            rank->is_dead = true;
        if (!rank->is_dead)
            act(world, rank);
    }
}

/* ---- What must be true ------------------------------------------------ */

static void check_op(const struct world *world, int i, uint64_t survivors)
{
    uint64_t result = 0;

    for (int r = 0; r < world->size; r++) {
        const struct rank *rank = &world->ranks[r];
        const int64_t *out = rank->out + (size_t)i * MOST_COUNT;

        if (rank->is_dead && (i >= rank->submitted || !has_ended(rank, i)))
            continue;
        assert_int_equal(rueda_op_status(&rank->ops[i].op), RUEDA_OK);
        if (world->script[i].kind != NAMED && world->script[i].kind != ORDERED)
            continue;
        if (result == 0)
            result = (uint64_t)out[0];
        for (size_t k = 0; k < world->script[i].count; k++)
            assert_true((uint64_t)out[k] == result);
        assert_true((result & survivors) == survivors);
    }
}

/* A death that no operation has missed changes no term. */
static void check_numbers(const struct world *world, int dead)
{
    bool is_taken[MOST] = {false};
    int size = 0;

    for (int r = 0; r < world->size; r++) {
        const struct rueda_formation *formation =
            world->ranks[r].ctx->engine.formation;

        if (world->ranks[r].is_dead)
            continue;
        if (size == 0)
            size = formation->size;
        assert_int_equal(formation->size, size);
        assert_in_range(formation->rank, 0, size - 1);
        assert_false(is_taken[formation->rank]);
        is_taken[formation->rank] = true;
    }
    assert_in_range(size, world->size - dead, world->size);
}

static void check(const struct world *world)
{
    uint64_t survivors = 0;
    int dead = 0;

    for (int r = 0; r < world->size; r++) {
        if (world->ranks[r].is_dead)
            dead++;
        else
            survivors |= (uint64_t)1 << r;
    }
    for (int i = 0; i < OPS; i++)
        check_op(world, i, survivors);
    check_numbers(world, dead);
}

static bool has_changed(const struct world *world)
{
    for (int r = 0; r < world->size; r++)
        if (world->ranks[r].ctx->engine.formation->term > 1)
            return true;
    return false;
}

static void world_close(struct world *world)
{
    /* None waits for another. */
    for (int i = 0; i < world->size; i++)
        rueda_engine_end(&world->ranks[i].ctx->engine, RUEDA_ERR_CLOSED, "end");
    for (int i = 0; i < world->size; i++) {
        rueda_shutdown(world->ranks[i].ctx);
        free(world->ranks[i].ops);
        free(world->ranks[i].in);
        free(world->ranks[i].out);
    }
    free(world);
}

/* ---- Seeds ------------------------------------------------------------ */

static int changed; /* worlds in which a term was changed */

static uint64_t first_seed = 1;
static uint64_t seed_count = 40;

static void survivors_have_the_same_results(void **state)
{
    (void)state;
    setenv("RUEDA_REPAIR", "1", 1);
    setenv("RUEDA_STALL_CHECK", "0", 1);
    setenv("RUEDA_LOG_LEVEL", "error", 1);
    for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) {
        struct world *world;

        seed_begin("test_sim_terms", seed);
        world = world_open(seed);
        live(world);
        check(world);
        changed += has_changed(world);
        world_close(world);
        seed_end();
    }
    print_message("%d of %d seeds changed terms\n", changed, (int)seed_count);
    assert_true(changed > 0 || seed_count < 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(survivors_have_the_same_results,
                                  seed_tear_down),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 1)
        seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
