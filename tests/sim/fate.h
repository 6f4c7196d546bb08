/* SPDX-License-Identifier: Apache-2.0 */
/* What tests with random scenes have in common: dice, and the first thing that
 * went wrong, in words. */
#ifndef RUEDA_TESTS_SIM_FATE_H
#define RUEDA_TESTS_SIM_FATE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "transport/sim/dice.h"

struct fate {
    struct rueda_dice dice;
    char why[512]; /* empty: all is well */
};

/* From 0 up to n - 1. */
static inline int below(struct fate *fate, int n)
{
    return (int)rueda_dice_below(&fate->dice, (uint64_t)n);
}

/* Only the first words stay; false in any case. */
__attribute__((format(printf, 2, 3))) static inline bool
complain(struct fate *fate, const char *format, ...)
{
    va_list args;

    if (fate->why[0] != '\0')
        return false;
    va_start(args, format);
    vsnprintf(fate->why, sizeof(fate->why), format, args);
    va_end(args);
    return false;
}

#endif /* RUEDA_TESTS_SIM_FATE_H */
