/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a program's tensors, what comes of them where they are
 * reduced, and how each type has them in memory.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_NUMBERS_H
#define RUEDA_TESTS_SIM_PROGRAM_NUMBERS_H

#include "sim/program_plan.h"

/* What this rank gives at place i. */
double program_number(const struct plan_op *op, int rank, size_t i);

/* All that it gives, as the type has it. */
void program_fill(const struct plan_op *op, int rank, void *to, size_t count);

double program_load(rueda_dtype dtype, const void *from, size_t i);

/* Are these `count` numbers of the reduction, from `first` on? */
bool program_is_reduced(const struct plan *plan, const struct plan_op *op,
                        const void *at, size_t first, size_t count);

#endif /* RUEDA_TESTS_SIM_PROGRAM_NUMBERS_H */
