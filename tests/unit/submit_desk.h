/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of operations by name share, which stand in place of the engine:
 * they look at what arrives and deliver it. Rank 1 of 3; beside the global set
 * there is set 1 of the ranks 1 and 2, and set 2 of the ranks 0 and 2.
 */
#ifndef RUEDA_TESTS_UNIT_SUBMIT_DESK_H
#define RUEDA_TESTS_UNIT_SUBMIT_DESK_H

#include "api/ctx.h"
#include "op/named.h"
#include "unit/unit.h"

/* ---- In place of the engine ---------------------------------------------- */

static const int set_ranks[3][3] = {{0, 1, 2}, {1, 2}, {0, 2}};
static const struct rueda_set sets[3] = {
    {0, 3, 1, set_ranks[0]}, {1, 2, 0, set_ranks[1]}, {2, 2, -1, set_ranks[2]}};
static atomic_int wakes;

/* What a waiting caller's turn does; NULL: nothing. */
static void (*turn)(struct rueda_engine *engine);

const struct rueda_set *__wrap_rueda_engine_set(struct rueda_engine *engine,
                                                int id);
void __wrap_rueda_engine_submit(struct rueda_engine *engine,
                                struct rueda_op *op);
void __wrap_rueda_engine_submit_chain(struct rueda_engine *engine,
                                      struct rueda_op *first);
rueda_status __wrap_rueda_engine_wait(struct rueda_engine *engine,
                                      struct rueda_op *op, int64_t deadline_ns);

const struct rueda_set *__wrap_rueda_engine_set(struct rueda_engine *engine,
                                                int id)
{
    (void)engine;
    return id >= 0 && id < 3 ? &sets[id] : NULL;
}

void __wrap_rueda_engine_submit(struct rueda_engine *engine,
                                struct rueda_op *op)
{
    atomic_fetch_add(&wakes, 1);
    rueda_op_push(&engine->lanes.arrived, op);
}

void __wrap_rueda_engine_submit_chain(struct rueda_engine *engine,
                                      struct rueda_op *first)
{
    atomic_fetch_add(&wakes, 1);
    rueda_op_push_chain(&engine->lanes.arrived, first);
}

rueda_status __wrap_rueda_engine_wait(struct rueda_engine *engine,
                                      struct rueda_op *op, int64_t deadline_ns)
{
    (void)deadline_ns;
    if (turn != NULL)
        turn(engine);
    return rueda_op_status(op) == RUEDA_IN_PROGRESS ? RUEDA_ERR_TIMEOUT
                                                    : rueda_op_status(op);
}

/* The oldest that has arrived, taken out; NULL: none. */
static inline struct rueda_named *arrived(rueda_ctx *ctx)
{
    struct rueda_op *op = rueda_op_peek(&ctx->engine.lanes.arrived);

    if (op == NULL)
        return NULL;
    rueda_op_pop(&ctx->engine.lanes.arrived);
    assert_true(op->is_named);
    return rueda_named_of(op);
}

static inline void deliver(struct rueda_named *named, rueda_status status)
{
    struct rueda_then_list due = {NULL, NULL};

    rueda_op_deliver(&named->op, status, &due);
    rueda_then_run(&due);
}

/* ---- Contexts --------------------------------------------------------------
 */

static rueda_ctx *all[3];

static inline int open_all(void **state)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    turn = NULL;
    atomic_store(&wakes, 0);
    args.process_sets = "dynamic";
    if (rueda_init_threads(3, &args, all) != RUEDA_OK)
        return -1;
    *state = all[1];
    return 0;
}

/* What arrived and was not delivered ends here, as in a shutdown. */
static inline int close_all(void **state)
{
    struct rueda_named *named;

    (void)state;
    while ((named = arrived(all[1])) != NULL)
        deliver(named, RUEDA_ERR_CLOSED);
    for (int i = 0; i < 3; i++)
        rueda_shutdown(all[i]);
    return 0;
}

static float room[4096];
static const size_t shape[] = {6, 2};

static inline struct rueda_submit_args args_of(rueda_kind kind,
                                               const char *name)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = kind;
    args.name = name;
    args.send = room;
    args.recv = room + 1000;
    args.dims = 2;
    args.shape = shape;
    return args;
}

static inline rueda_handle submit(rueda_ctx *ctx,
                                  const struct rueda_submit_args *args)
{
    rueda_handle handle = 0;

    assert_int_equal(rueda_submit(ctx, args, &handle), RUEDA_OK);
    assert_int_not_equal(handle, 0);
    return handle;
}

static inline void refused(rueda_ctx *ctx, const struct rueda_submit_args *args,
                           rueda_status status, const char *words)
{
    rueda_handle handle = 77;

    assert_int_equal(rueda_submit(ctx, args, &handle), status);
    assert_int_equal(handle, 77);
    assert_non_null(strstr(rueda_last_error(), words));
}

#define OPEN(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

#endif /* RUEDA_TESTS_UNIT_SUBMIT_DESK_H */
