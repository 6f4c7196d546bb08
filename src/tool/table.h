/* SPDX-License-Identifier: Apache-2.0 */
/* What people read of a benchmark, on standard output. */
#ifndef RUEDA_TOOL_TABLE_H
#define RUEDA_TOOL_TABLE_H

#include "tool/bench.h"

/* Machine and settings, then the names of the columns. */
void rueda_table_head(struct rueda_bench *bench);
void rueda_table_row(const struct rueda_bench *bench,
                     const struct rueda_row *row);

/* The latency once more, and what the columns mean. */
void rueda_table_foot(struct rueda_bench *bench);

#endif /* RUEDA_TOOL_TABLE_H */
