/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for the engine, for tests of operations by name: they look at what
 * arrives and deliver it. Rank 1 of 3; beside the global set there is set 1 of
 * the ranks 1 and 2, and set 2 of the ranks 0 and 2. For programs linked with
 * --wrap of the functions of the engine (unit/CMakeLists.txt).
 */
#ifndef RUEDA_TESTS_SUPPORT_FAKE_ENGINE_H
#define RUEDA_TESTS_SUPPORT_FAKE_ENGINE_H

#include "api/ctx.h"
#include "op/ticket.h"
#include "unit/unit.h"

extern const int fake_set_ranks[3][3];
extern rueda_ctx *fake_contexts[3];

/* How often operations were submitted: one by one, or in a chain. */
extern atomic_int fake_wakes;

/* What a waiting caller's turn does; NULL: nothing. */
extern void (*fake_turn)(struct rueda_engine *engine);

/* Buffers and shape of the operations that fake_args() makes. */
extern float fake_room[4096];
extern const size_t fake_shape[2];

int fake_engine_open(void **state);

/* What arrived and was not delivered ends here, as in a shutdown. */
int fake_engine_close(void **state);

/* The oldest that has arrived, taken out; NULL: none. */
struct rueda_ticket *fake_arrived(rueda_ctx *ctx);
void fake_deliver(struct rueda_ticket *ticket, rueda_status status);

struct rueda_submit_args fake_args(rueda_kind kind, const char *name);

/* Submit, which must succeed, or be refused with these words. */
rueda_handle fake_submit(rueda_ctx *ctx, const struct rueda_submit_args *args);
void fake_refused(rueda_ctx *ctx, const struct rueda_submit_args *args,
                  rueda_status status, const char *words);

#define OPEN(test)                                                             \
    cmocka_unit_test_setup_teardown(test, fake_engine_open, fake_engine_close)

#endif /* RUEDA_TESTS_SUPPORT_FAKE_ENGINE_H */
