/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abstract Unix sockets: names without files, private to a network namespace.
 * All non-blocking. Functions that return RUEDA_ERR_IO leave the cause in
 * errno.
 */
#ifndef RUEDA_OS_UNIX_SOCKET_H
#define RUEDA_OS_UNIX_SOCKET_H

#include <rueda/rueda.h>

/* Most descriptors in one message: what the kernel allows, rounded down. */
#define RUEDA_UNIX_MOST_FDS 250

/* Listen under a name of at most 100 characters. */
rueda_status rueda_unix_listen(const char *name, int *out_fd);

/* RUEDA_IN_PROGRESS: nobody listens there (yet), or the queue is full. */
rueda_status rueda_unix_connect(const char *name, int *out_fd);

/* RUEDA_IN_PROGRESS: nobody waits. */
rueda_status rueda_unix_accept(int listener, int *out_fd);

/* The user at the other end, as the kernel says, not as it says. */
rueda_status rueda_unix_peer_user(int fd, unsigned *out_user);

/*
 * Send or receive some of len bytes, len > 0. *out_bytes is how many; 0 with
 * RUEDA_IN_PROGRESS if none can move now. The end of the stream is
 * RUEDA_ERR_PEER_LOST.
 */
rueda_status rueda_unix_send(int fd, const void *buf, size_t len,
                             size_t *out_bytes);
rueda_status rueda_unix_recv(int fd, void *buf, size_t len, size_t *out_bytes);

/*
 * One byte that carries count descriptors. The receiver gets exactly count, or
 * RUEDA_ERR_INVALID and none; RUEDA_IN_PROGRESS if the byte is not there yet.
 * The receiver owns what it gets. The sender's RUEDA_IN_PROGRESS means that
 * the socket is full, or that the user has as many descriptors under way as a
 * process may hold.
 */
rueda_status rueda_unix_send_fds(int fd, const int *fds, int count);
rueda_status rueda_unix_recv_fds(int fd, int *out_fds, int count);

/* Wait until fd can be read (or written), or the time is over; a negative time
 * is over. */
void rueda_fd_wait(int fd, bool for_writing, int64_t timeout_ns);

#endif /* RUEDA_OS_UNIX_SOCKET_H */
