/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a random program, one by one; only for the plan. */
#ifndef RUEDA_TESTS_SIM_PROGRAM_PLAN_OP_H
#define RUEDA_TESTS_SIM_PROGRAM_PLAN_OP_H

#include "sim/program_plan.h"

/* Bits of the members. */
unsigned plan_bits(const struct plan_set *set);

/* May it be compressed on the network? */
bool plan_may_compress(const struct plan_op *op);

/* One that members of a set do together; its kind is there. */
void plan_begin(struct plan *plan, struct plan_op *op, int kind, int set,
                struct rueda_dice *dice);

void plan_make_collective(struct plan *plan, struct plan_op *op, int set,
                          struct rueda_dice *dice);

/* One of a group. */
void plan_make_member(struct plan *plan, struct plan_op *op, int kind, int set,
                      struct rueda_dice *dice);

/* From one member to another; the index in its round is its tag. */
void plan_make_message(struct plan *plan, struct plan_op *op, int set,
                       int index, struct rueda_dice *dice);

/* Names that stay, names of one round, and none. */
void plan_name(struct plan_op *op, int round, int index,
               struct rueda_dice *dice);

/* One rank says something else than the others. */
void plan_make_odd(struct plan *plan, struct plan_op *op,
                   struct rueda_dice *dice);

/* How it ends, for all that is rolled of it. */
rueda_status plan_expects(const struct plan *plan, const struct plan_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_PLAN_OP_H */
