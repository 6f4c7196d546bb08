/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda bench --tune`: every algorithm that can do the operation is a side,
 * and what is best at each size becomes rows in the form that RUEDA_ALGO takes
 * and RUEDA_TUNE_FILE reads:
 *
 *     allreduce:0-4k@2:direct;
 *     allreduce:4k-inf@2:ring;
 */
#ifndef RUEDA_TOOL_TUNE_H
#define RUEDA_TOOL_TUNE_H

#include "tool/bench.h"

/* The first side is the library's own choice, the others the algorithms. */
bool rueda_tune_start(struct rueda_bench *bench);

/* Print the line of one size and keep what was best. */
void rueda_tune_row(struct rueda_bench *bench, const struct rueda_row *row);

/* Write the rows to where the options say. False with a message in bench. */
bool rueda_tune_finish(struct rueda_bench *bench);

/*
 * Rows for these points, which are in ascending order: the border between two
 * algorithms is the power of two halfway between the sizes. Cut, never overrun;
 * returns the length that was needed. Pure.
 */
size_t rueda_tune_format(rueda_kind kind, int ranks,
                         const struct rueda_tune_point *points, int count,
                         char *out, size_t room);

#endif /* RUEDA_TOOL_TUNE_H */
