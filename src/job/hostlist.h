/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists as Slurm shortens them: hosts "node[01-03,7],login" and tasks on each
 * of them "4(x2),3". They come from the environment, so anything may be in
 * them. Pure, on any thread.
 */
#ifndef RUEDA_JOB_HOSTLIST_H
#define RUEDA_JOB_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The name of the first host, its zeros kept: "node01". False, with out as it
 * was, where the list does not begin with one or the name needs more than
 * bytes.
 */
bool rueda_hostlist_first(const char *list, char *out, size_t bytes);

/* How many tasks the node with this index has, or -1 where the list does not
 * say. */
int rueda_hostlist_tasks(const char *list, int node);

#endif /* RUEDA_JOB_HOSTLIST_H */
