/* SPDX-License-Identifier: Apache-2.0 */
/* Who and where this process is. Any thread. */
#ifndef RUEDA_OS_PROCESS_H
#define RUEDA_OS_PROCESS_H

#include <rueda/rueda.h>

int rueda_process_id(void);
unsigned rueda_process_user(void);
void rueda_process_host(char *out, size_t bytes);

/*
 * fork() happens, in data loaders for instance. A hook runs in the child, on
 * its only thread, right after the fork; it may close descriptors and set
 * flags and nothing else (no lock, no malloc). The list belongs to the process
 * because fork() does.
 */
struct rueda_fork_hook {
    void (*in_child)(struct rueda_fork_hook *hook);
    struct rueda_fork_hook *next;
};
void rueda_fork_hook_add(struct rueda_fork_hook *hook);
void rueda_fork_hook_remove(struct rueda_fork_hook *hook);

#endif /* RUEDA_OS_PROCESS_H */
