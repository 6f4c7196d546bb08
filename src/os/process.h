/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of this process and its host. Any thread. */
#ifndef RUEDA_OS_PROCESS_H
#define RUEDA_OS_PROCESS_H

#include <pthread.h>
#include <stdint.h>

#include <rueda/rueda.h>

int rueda_process_id(void);

/* What distinguishes this process from all others of the host, those in other
 * containers included. */
void rueda_process_identity(uint64_t out[2]);

int rueda_process_parent(void);

/* The nearest process above us whose name begins so; 0: there is none, or none
 * that can be seen. */
int rueda_process_ancestor(const char *beginning);

/*
 * What this process runs, and in which folder, as text: the same for all ranks
 * that a user starts by the same command in the same folder. That is the
 * executable and, for Python, its script or module. Other arguments are left
 * out, since they may say the rank.
 */
void rueda_process_program(char *out, size_t bytes);

/*
 * What a process of this host does, as the letters of proc(5) say of its first
 * thread: R runs, S sleeps, D waits in the kernel, T is stopped, t is stopped
 * by a debugger, Z has ended; 0: that cannot be seen.
 */
char rueda_process_state(int pid);

unsigned rueda_process_user(void);
void rueda_process_host(char *out, size_t bytes);

/*
 * What distinguishes this host from others: the same for processes that can
 * meet at an abstract Unix socket, that is, in one boot of one machine and one
 * network namespace. The host's name stands in for a boot id that cannot be
 * read. The first bytes tell the boot. Machines that were started from one
 * snapshot of memory have the same id (job/clones.h).
 */
#define RUEDA_PROCESS_HOST_ID 32
#define RUEDA_PROCESS_BOOT_ID 16
void rueda_process_host_id(unsigned char out[RUEDA_PROCESS_HOST_ID]);

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

/* False: it is not in the list. Only the address is compared. */
bool rueda_fork_hook_remove(struct rueda_fork_hook *hook);

/*
 * A lock that may be held while another thread forks. The child finds it free:
 * the thread that held it does not exist there. What the lock guards must make
 * sense half changed, or in_child (optional; a hook, see above) puts it right.
 * Static storage only.
 */
struct rueda_fork_lock {
    pthread_mutex_t mutex; /* for condition variables, too */
    void (*in_child)(void);
    struct rueda_fork_hook hook;
    bool is_hooked; /* under the lock of the list of hooks */
};
#define RUEDA_FORK_LOCK_INIT                                                   \
    {                                                                          \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                     \
    }
void rueda_fork_lock_take(struct rueda_fork_lock *lock);
void rueda_fork_lock_release(struct rueda_fork_lock *lock);

#endif /* RUEDA_OS_PROCESS_H */
