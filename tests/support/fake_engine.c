/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_engine.h"

/* ---- In place of the engine ---------------------------------------------- */

const int fake_set_ranks[3][3] = {{0, 1, 2}, {1, 2}, {0, 2}};
static const struct rueda_set sets[3] = {{0, 3, 1, fake_set_ranks[0]},
                                         {1, 2, 0, fake_set_ranks[1]},
                                         {2, 2, -1, fake_set_ranks[2]}};
atomic_int fake_wakes;

/* What a waiting caller's turn does; NULL: nothing. */
void (*fake_turn)(struct rueda_engine *engine);

/* The linker's names for what stands in place of these functions. */
const struct rueda_set *
__wrap_rueda_engine_hold_set(struct rueda_engine *engine, int id);
void __wrap_rueda_engine_release_set(struct rueda_engine *engine,
                                     const struct rueda_set *set);
void __wrap_rueda_engine_submit(struct rueda_engine *engine,
                                struct rueda_op *op);
void __wrap_rueda_engine_submit_chain(struct rueda_engine *engine,
                                      struct rueda_op *first);
void __wrap_rueda_engine_leave(struct rueda_engine *engine);
rueda_status __wrap_rueda_engine_wait(struct rueda_engine *engine,
                                      struct rueda_op *op, int64_t deadline_ns);
rueda_status __wrap_rueda_engine_run(struct rueda_engine *engine,
                                     struct rueda_op *op);

const struct rueda_set *
__wrap_rueda_engine_hold_set(struct rueda_engine *engine, int id)
{
    (void)engine;
    return id >= 0 && id < 3 ? &sets[id] : NULL;
}

void __wrap_rueda_engine_release_set(struct rueda_engine *engine,
                                     const struct rueda_set *set)
{
    (void)engine;
    (void)set;
}

void __wrap_rueda_engine_submit(struct rueda_engine *engine,
                                struct rueda_op *op)
{
    atomic_fetch_add(&fake_wakes, 1);
    rueda_op_push(&engine->lanes.arrived, op);
}

void __wrap_rueda_engine_submit_chain(struct rueda_engine *engine,
                                      struct rueda_op *first)
{
    atomic_fetch_add(&fake_wakes, 1);
    rueda_op_push_chain(&engine->lanes.arrived, first);
}

/* No background thread takes over: what arrives is the test's. */
void __wrap_rueda_engine_leave(struct rueda_engine *engine)
{
    (void)engine;
}

rueda_status __wrap_rueda_engine_wait(struct rueda_engine *engine,
                                      struct rueda_op *op, int64_t deadline_ns)
{
    (void)deadline_ns;
    if (fake_turn != NULL)
        fake_turn(engine);
    return rueda_op_status(op) == RUEDA_IN_PROGRESS ? RUEDA_ERR_TIMEOUT
                                                    : rueda_op_status(op);
}

rueda_status __wrap_rueda_engine_run(struct rueda_engine *engine,
                                     struct rueda_op *op)
{
    rueda_op_push(&engine->lanes.arrived, op);
    return __wrap_rueda_engine_wait(engine, op, -1);
}

/* The oldest that has arrived, taken out; NULL: none. */
struct rueda_ticket *fake_arrived(rueda_ctx *ctx)
{
    struct rueda_op *op = rueda_op_peek(&ctx->engine.lanes.arrived);

    if (op == NULL)
        return NULL;
    rueda_op_pop(&ctx->engine.lanes.arrived);
    return rueda_ticket_of(op);
}

void fake_deliver(struct rueda_ticket *ticket, rueda_status status)
{
    struct rueda_then_list due = {NULL, NULL};

    rueda_op_deliver(&ticket->op, status, &due);
    rueda_then_run(&due);
}

/* ---- Contexts --------------------------------------------------------- */

rueda_ctx *fake_contexts[3];

int fake_engine_open(void **state)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    fake_turn = NULL;
    atomic_store(&fake_wakes, 0);
    args.process_sets = "dynamic";
    if (rueda_init_threads(3, &args, fake_contexts) != RUEDA_OK)
        return -1;
    *state = fake_contexts[1];
    return 0;
}

/* What arrived and was not delivered ends here, as in a shutdown. */
int fake_engine_close(void **state)
{
    struct rueda_ticket *ticket;

    (void)state;
    while ((ticket = fake_arrived(fake_contexts[1])) != NULL)
        fake_deliver(ticket, RUEDA_ERR_CLOSED);
    for (int i = 0; i < 3; i++)
        rueda_shutdown(fake_contexts[i]);
    return 0;
}

float fake_room[4096];
const size_t fake_shape[] = {6, 2};

struct rueda_submit_args fake_args(rueda_kind kind, const char *name)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = kind;
    args.name = name;
    args.send = fake_room;
    args.recv = fake_room + 1000;
    args.dims = 2;
    args.shape = fake_shape;
    return args;
}

rueda_handle fake_submit(rueda_ctx *ctx, const struct rueda_submit_args *args)
{
    rueda_handle handle = 0;

    assert_int_equal(rueda_submit(ctx, args, &handle), RUEDA_OK);
    assert_int_not_equal(handle, 0);
    return handle;
}

void fake_refused(rueda_ctx *ctx, const struct rueda_submit_args *args,
                  rueda_status status, const char *words)
{
    rueda_handle handle = 77;

    assert_int_equal(rueda_submit(ctx, args, &handle), status);
    assert_int_equal(handle, 77);
    assert_non_null(strstr(rueda_last_error(), words));
}
