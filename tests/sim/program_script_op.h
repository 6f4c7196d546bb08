/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a random program, one by one; only for the script. */
#ifndef RUEDA_TESTS_SIM_PROGRAM_SCRIPT_OP_H
#define RUEDA_TESTS_SIM_PROGRAM_SCRIPT_OP_H

#include "sim/program_script.h"

/* Bits of the members. */
unsigned script_bits(const struct script_set *set);

/* May it be compressed on the network? */
bool script_may_compress(const struct script_op *op);

/* One that members of a set do together; its kind is there. */
void script_begin(struct script *script, struct script_op *op, int kind,
                  int set, struct rueda_dice *dice);

void script_make_collective(struct script *script, struct script_op *op,
                            int set, struct rueda_dice *dice);

/* One of a group. */
void script_make_member(struct script *script, struct script_op *op, int kind,
                        int set, struct rueda_dice *dice);

/* From one member to another; the index in its round is its tag. */
void script_make_message(struct script *script, struct script_op *op, int set,
                         int index, struct rueda_dice *dice);

/* Names that stay, names of one round, and none. */
void script_name(struct script_op *op, int round, int index,
                 struct rueda_dice *dice);

/* One rank says something else than the others. */
void script_make_odd(struct script *script, struct script_op *op,
                     struct rueda_dice *dice);

/* How it ends, for all that is rolled of it. */
rueda_status script_expects(const struct script *script,
                            const struct script_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_SCRIPT_OP_H */
