/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the processes of a crew: ranks by fork and exec of this program, or
 * an mpirun that starts them.
 */
#ifndef RUEDA_TOOL_SPAWN_H
#define RUEDA_TOOL_SPAWN_H

#include "tool/crew.h"

/* Fill in children, child_count and log_fd. On failure words says why, and
 * those that were started are in children. */
bool rueda_bench_spawn(struct rueda_crew *crew,
                       const struct rueda_crew_listener *listener);

/* How a child ended that waitpid() has reaped, in words. */
void rueda_bench_spawn_epitaph(int status, char *words, size_t room);

/* The last lines of what an mpirun printed, on one line. */
void rueda_bench_spawn_last_words(const struct rueda_crew *crew, char *words,
                                  size_t room);

#endif /* RUEDA_TOOL_SPAWN_H */
