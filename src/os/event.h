/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that wake: doorbells (eventfd), deaths (pidfd), and sleeping on
 * several of them (epoll). Functions that return RUEDA_ERR_IO leave the cause
 * in errno.
 */
#ifndef RUEDA_OS_EVENT_H
#define RUEDA_OS_EVENT_H

#include <rueda/rueda.h>

rueda_status rueda_doorbell_open(int *out_fd);

/* Any thread, any process that holds the descriptor. Never blocks. */
void rueda_doorbell_ring(int fd);

/* Forget the rings so far. */
void rueda_doorbell_clear(int fd);

/* A descriptor that becomes readable when the calling process ends, whichever
 * process holds it and whatever children live on. */
rueda_status rueda_death_open_self(int *out_fd);

/* The same where there are no pidfds: *out_fd becomes readable when the last
 * descriptor of *out_life is closed, in this process and in children that have
 * not closed theirs. */
rueda_status rueda_death_open_pipe(int *out_fd, int *out_life);

rueda_status rueda_poller_open(int *out_poller);

/* Watch fd; its events carry number. */
rueda_status rueda_poller_add(int poller, int fd, uint32_t number);
void rueda_poller_remove(int poller, int fd);

/* Watch fd for news only: each time when it becomes readable or writable, once.
 * One that is watched already stays as it is. Forgotten when fd is closed. */
rueda_status rueda_poller_add_edges(int poller, int fd, uint32_t number);

/* Also report when fd, which is watched, can be written; or stop doing so. */
void rueda_poller_write(int poller, int fd, uint32_t number, bool is_wanted);

/*
 * Sleep until something is readable or timeout_ns has passed (negative: for
 * ever; rounded up to a millisecond). Fills in up to room numbers and
 * returns how many; 0 after the time or a signal.
 */
int rueda_poller_wait(int poller, int64_t timeout_ns, uint32_t *out_numbers,
                      int room);

/* Another descriptor of the same file, closed on exec. */
rueda_status rueda_fd_copy(int fd, int *out_fd);

/* Negative descriptors are allowed. */
void rueda_fd_close(int fd);

#endif /* RUEDA_OS_EVENT_H */
