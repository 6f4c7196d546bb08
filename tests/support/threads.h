/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of the test: rueda_init_threads(), and a thread for each. */
#ifndef RUEDA_TESTS_SUPPORT_THREADS_H
#define RUEDA_TESTS_SUPPORT_THREADS_H

#include "support/test_rank.h"

/*
 * Run body on each rank, then shut all down. Returns how many did not return 0,
 * after printing what they said. Threads cannot be killed: if one is late, the
 * whole test program ends here.
 */
int threads_run(int size, rank_fn body, void *arg, int timeout_ms);

#endif /* RUEDA_TESTS_SUPPORT_THREADS_H */
