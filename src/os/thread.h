/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that hide signals from the program's own handlers. */
#ifndef RUEDA_OS_THREAD_H
#define RUEDA_OS_THREAD_H

#include <rueda/rueda.h>

#include <pthread.h>

/* As pthread_create(), with all signals blocked in the new thread. */
rueda_status rueda_thread_start(pthread_t *out_thread, void *(*run)(void *),
                                void *arg);

/* How long this thread has been ready while others of this system ran on its
 * core. Time that a hypervisor took does not count. Negative: not known. */
int64_t rueda_thread_delay_ns(void);

/* The number by which the system knows the calling thread; and does a thread of
 * this process with such a number live? (True where that is not known.) */
int rueda_thread_id(void);
bool rueda_thread_is_alive(int id);

/* Wait until it has ended. */
void rueda_thread_join(pthread_t thread);

/* No thread will join it: it ends by itself. */
void rueda_thread_leave(pthread_t thread);

/* As pthread_cond_timedwait() on a condition made by rueda_condition_init(),
 * until the clock of os/clock.h says deadline_ns (negative: for ever). */
void rueda_condition_init(pthread_cond_t *condition);
void rueda_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock,
                          int64_t deadline_ns);

#endif /* RUEDA_OS_THREAD_H */
