/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a program's tensors (support/numbers.h), the rows that each
 * member brings and gets, and how exact a reduction has to be.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_NUMBERS_H
#define RUEDA_TESTS_SIM_PROGRAM_NUMBERS_H

#include "sim/program_script.h"
#include "support/numbers.h"

/* The numbers of one operation, which borrow the script. */
struct program_numbers {
    struct numbers all;
    const struct script_set *set;
    const struct script_op *op;
    size_t row; /* elements */
};

void program_numbers_init(struct program_numbers *self,
                          const struct script *script,
                          const struct script_op *op);

/* Rows that a member brings, that it gets, and that one sends to another. */
size_t program_rows_sent(const struct program_numbers *self, int member);
size_t program_rows_received(const struct program_numbers *self, int member);
size_t program_split(const struct program_numbers *self, int from, int to);

/* Is this the reduction that a member has to get? */
bool program_is_reduced(const struct program_numbers *self, int member,
                        const void *at);

#endif /* RUEDA_TESTS_SIM_PROGRAM_NUMBERS_H */
