/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abstract Unix sockets: names without files, private to a network namespace.
 * All non-blocking; what goes through them is in os/stream.h. Functions that
 * return RUEDA_ERR_IO leave the cause in errno.
 */
#ifndef RUEDA_OS_UNIX_SOCKET_H
#define RUEDA_OS_UNIX_SOCKET_H

#include <rueda/rueda.h>

/* Most descriptors in one message: what the kernel allows, rounded down. */
#define RUEDA_UNIX_MOST_FDS 250

/* Listen under a name of at most 100 characters. */
rueda_status rueda_unix_listen(const char *name, int *out_fd);

/* RUEDA_IN_PROGRESS: there is no listener (yet), or its queue is full. */
rueda_status rueda_unix_connect(const char *name, int *out_fd);

/*
 * Is the process at the other end of our own user, for certain? The kernel
 * shows users that our user namespace does not map as the overflow user, so
 * being that user proves nothing, and nor does a process whose user namespace
 * is another one, or cannot be seen.
 */
bool rueda_unix_peer_is_us(int fd);

/*
 * One byte that carries count descriptors. The receiver gets exactly count, or
 * RUEDA_ERR_INVALID and none; RUEDA_IN_PROGRESS if the byte is not there yet.
 * The receiver owns what it gets. The sender's RUEDA_IN_PROGRESS means that
 * the socket is full, or that the user has as many descriptors in flight as a
 * process may hold.
 */
rueda_status rueda_unix_send_fds(int fd, const int *fds, int count);
rueda_status rueda_unix_recv_fds(int fd, int *out_fds, int count);

#endif /* RUEDA_OS_UNIX_SOCKET_H */
