/* SPDX-License-Identifier: Apache-2.0 */
/* What tests with random scenarios have in common: dice, and the first thing
 * that went wrong, in words. */
#ifndef RUEDA_TESTS_SIM_RANDOM_CHECK_H
#define RUEDA_TESTS_SIM_RANDOM_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "transport/sim/dice.h"

struct random_check {
    struct rueda_dice dice;
    char why[512]; /* empty: all is well */
};

/* From 0 up to n - 1. */
static inline int below(struct random_check *check, int n)
{
    return (int)rueda_dice_below(&check->dice, (uint64_t)n);
}

/* Only the first words stay; false in any case. */
__attribute__((format(printf, 2, 3))) static inline bool
complain(struct random_check *check, const char *format, ...)
{
    va_list args;

    if (check->why[0] != '\0')
        return false;
    va_start(args, format);
    vsnprintf(check->why, sizeof(check->why), format, args);
    va_end(args);
    return false;
}

#endif /* RUEDA_TESTS_SIM_RANDOM_CHECK_H */
