/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, and what the system knows of them.
 *
 * Our threads block all signals, so that the system delivers each signal to a
 * thread of the program, as its handlers expect.
 */
#include "os/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/file.h"

rueda_status rueda_thread_start(pthread_t *out_thread, void *(*run)(void *),
                                void *arg)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(out_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return RUEDA_OK;
    errno = failed;
    return RUEDA_ERR_LIMIT;
}

/* The second number of schedstat, see proc(5) of Linux. */
int64_t rueda_thread_delay_ns(void)
{
    char line[96];
    char *end;

    if (rueda_file_read("/proc/thread-self/schedstat", line, sizeof(line)) !=
        RUEDA_OK)
        return -1;
    strtoull(line, &end, 10);
    return *end == ' ' ? strtoll(end, NULL, 10) : -1;
}

int rueda_thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* Signal 0 is not sent, only checked. */
bool rueda_thread_is_alive(int id)
{
    return syscall(SYS_tgkill, getpid(), id, 0) == 0 || errno != ESRCH;
}

void rueda_thread_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

void rueda_thread_leave(pthread_t thread)
{
    pthread_detach(thread);
}

void rueda_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void rueda_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                          int64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = deadline_ns / 1000000000,
                                .tv_nsec = deadline_ns % 1000000000};

    if (deadline_ns < 0)
        pthread_cond_wait(condition, lock);
    else
        pthread_cond_timedwait(condition, lock, &deadline);
}
