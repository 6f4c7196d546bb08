/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exceptions that many ranks print, shown once. A traceback of Python is kept
 * until its last line has come; if another rank has printed the same before, it
 * is not shown again, and a report names the ranks. What is not such a block
 * passes at once. Pure; one thread at a time.
 */
#ifndef RUEDA_LAUNCH_REPEATS_H
#define RUEDA_LAUNCH_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rueda_repeats;

typedef void (*rueda_repeats_show)(void *arg, int rank, const char *bytes,
                                   size_t len, bool is_begin);
typedef void (*rueda_repeats_say)(void *arg, const char *words);

struct rueda_repeats *rueda_repeats_new(rueda_repeats_show show, void *arg);
void rueda_repeats_free(struct rueda_repeats *repeats);

/* A line of a rank's standard error, or a piece of one; show() is called with
 * it, with what was kept before, or not at all. */
void rueda_repeats_line(struct rueda_repeats *repeats, int rank,
                        const char *bytes, size_t len, bool is_begin,
                        int64_t now_ns);

/* Show what a rank's unfinished block has: the rank has ended. Not if another
 * rank's that was shown begins so. */
void rueda_repeats_end(struct rueda_repeats *repeats, int rank);

/* Show blocks that are not finished for long, and report the ranks that were
 * left out some time before now; INT64_MAX: all. */
void rueda_repeats_check(struct rueda_repeats *repeats, int64_t now_ns,
                         rueda_repeats_say say, void *arg);

#endif /* RUEDA_LAUNCH_REPEATS_H */
