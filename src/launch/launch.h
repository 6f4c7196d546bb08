/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's main part: starts agents on all hosts, gives each its
 * assignment, shows what the ranks print, and ends everything when one of them
 * fails, when the user wants it, or when all are done. It keeps the job's
 * store.
 */
#ifndef RUEDA_LAUNCH_LAUNCH_H
#define RUEDA_LAUNCH_LAUNCH_H

#include "launch/options.h"

/* The options have been checked. Returns the exit code of the program: that of
 * the first rank that failed, 0 if all went well, 2 for a mistake of the
 * user's, 1 for other failures, 128 + n after signal n. */
int rueda_launch_run(struct rueda_options *options);

#endif /* RUEDA_LAUNCH_LAUNCH_H */
