/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the benchmarks, the same in all processes of a host. */
#ifndef RUEDA_TOOL_CLOCK_H
#define RUEDA_TOOL_CLOCK_H

#include "os/clock.h"

/* Seconds since some moment. */
static inline double rueda_tool_clock(void)
{
    return (double)rueda_clock_ns() * 1e-9;
}

#endif /* RUEDA_TOOL_CLOCK_H */
