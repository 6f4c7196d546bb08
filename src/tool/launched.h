/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda bench` as one rank of a job that another launcher has started: rank 0
 * coordinates and prints, and commands travel through the library itself.
 */
#ifndef RUEDA_TOOL_LAUNCHED_H
#define RUEDA_TOOL_LAUNCHED_H

#include "tool/bench.h"

/* Where RUEDA_RANK and RUEDA_SIZE are set. Returns the exit code. */
int rueda_launched_main(struct rueda_bench *bench);

/* All but the starting: head, sizes, foot, JSON. bench has its first side. */
bool rueda_bench_report(struct rueda_bench *bench);

#endif /* RUEDA_TOOL_LAUNCHED_H */
