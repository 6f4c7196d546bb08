/* SPDX-License-Identifier: Apache-2.0 */
/* Is what came of an operation what has to come of it? */
#ifndef RUEDA_TESTS_SIM_PROGRAM_JUDGE_H
#define RUEDA_TESTS_SIM_PROGRAM_JUDGE_H

#include "sim/program_rank.h"

/* Of one that has ended, before its handle does: as the script has it, as on
 * the other ranks, and with the right numbers. False: the scenario says what is
 * wrong.
 */
bool program_judge(struct scenario *scenario, int index, struct program_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_JUDGE_H */
