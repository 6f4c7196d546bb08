/* SPDX-License-Identifier: Apache-2.0 */
/* Durations in nanoseconds, written in the unit that a reader thinks in. */
#ifndef RUEDA_BASE_DURATION_H
#define RUEDA_BASE_DURATION_H

#include <stdint.h>

#define RUEDA_US(n) ((int64_t)(n)*1000)
#define RUEDA_MS(n) ((int64_t)(n)*1000000)
#define RUEDA_S(n)  ((int64_t)(n)*1000000000)

#endif /* RUEDA_BASE_DURATION_H */
