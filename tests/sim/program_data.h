/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of a program: small whole numbers that differ at every place,
 * rank and operation, so that each rank knows what all others bring and what
 * every result has to be.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_DATA_H
#define RUEDA_TESTS_SIM_PROGRAM_DATA_H

#include "op/named.h"
#include "sim/program_plan.h"

/* An operation of one rank, with its memory. */
struct program_op {
    struct rueda_named named; /* first */
    struct plan_op *plan;
    char *send;
    char *recv; /* send too, if it is in place */
    size_t recv_bytes;
    bool has_ended;
};

/* As this rank submits it. */
struct program_op *program_op_new(const struct plan *plan, struct plan_op *op,
                                  int rank);
void program_op_free(struct program_op *op);

/* Is the result of one that ended well what it has to be? NULL, or what is
 * wrong. */
const char *program_op_fault(const struct plan *plan,
                             const struct program_op *op, int rank);

/* Do the words of one that was refused say why, and who is the odd one? */
bool program_op_is_explained(const struct program_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_DATA_H */
