/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seed that runs. If the test ends in its midst, by an assertion, a signal,
 * a sanitizer or because it never ends, the command that repeats it is printed.
 */
#ifndef RUEDA_TESTS_SIM_SEED_H
#define RUEDA_TESTS_SIM_SEED_H

#include <stdint.h>

/* From here on to seed_end(), which has to come within minutes. */
void seed_begin(const char *program, uint64_t seed);
void seed_end(void);

/* For a test's teardown: an assertion may have left seed_end() out. */
int seed_tear_down(void **state);

#endif /* RUEDA_TESTS_SIM_SEED_H */
