/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes through stream sockets of any kind, without blocking. Functions that
 * return RUEDA_ERR_IO leave the cause in errno.
 */
#ifndef RUEDA_OS_STREAM_H
#define RUEDA_OS_STREAM_H

#include <rueda/rueda.h>

/* RUEDA_IN_PROGRESS: no connection is waiting. */
rueda_status rueda_stream_accept(int listener, int *out_fd);

/*
 * Send or receive some of len bytes, len > 0. *out_bytes is how many; 0 with
 * RUEDA_IN_PROGRESS if none can move now. The end of the stream is
 * RUEDA_ERR_PEER_LOST.
 */
rueda_status rueda_stream_send(int fd, const void *buf, size_t len,
                               size_t *out_bytes);
rueda_status rueda_stream_recv(int fd, void *buf, size_t len,
                               size_t *out_bytes);

/* The same for two buffers, one after the other, in one call; either may be
 * empty. */
rueda_status rueda_stream_send_both(int fd, const void *first, size_t first_len,
                                    const void *second, size_t second_len,
                                    size_t *out_bytes);
rueda_status rueda_stream_recv_both(int fd, void *first, size_t first_len,
                                    void *second, size_t second_len,
                                    size_t *out_bytes);

/* How many bytes wait in fd to leave this host, in TCP. */
size_t rueda_stream_unsent(int fd);

/* Has the peer's system taken all that was sent, or is it over? It may lose
 * what it has not, if fd is closed while it still sends. */
bool rueda_stream_is_sent(int fd);

/* Has TCP ended without the peer's system closing its end: was the connection
 * reset, or given up because no answers came? When a process dies its system
 * closes the end, unless the process had not read all that had arrived. */
bool rueda_stream_is_cut(int fd);

/* Say that nothing more will be sent; what was sent still arrives. */
void rueda_stream_end(int fd);

/* Wait until fd can be read (or written), or the time is over; a negative time
 * is over. */
void rueda_fd_wait(int fd, bool for_writing, int64_t timeout_ns);

/* The same until the deadline; RUEDA_ERR_TIMEOUT once it has passed. */
rueda_status rueda_stream_await(int fd, bool for_writing, int64_t deadline_ns);

/* All of len bytes or an error, waiting until the deadline. */
rueda_status rueda_stream_send_all(int fd, const void *buf, size_t len,
                                   int64_t deadline_ns);
rueda_status rueda_stream_recv_all(int fd, void *buf, size_t len,
                                   int64_t deadline_ns);

/* What errno means after a call on a stream: RUEDA_IN_PROGRESS if it may work
 * later, RUEDA_ERR_PEER_LOST, or RUEDA_ERR_IO. */
rueda_status rueda_stream_status(void);

/* Is the cause, a value of errno, that this process or the system has no more
 * descriptors, or no memory for them, or no port from which to connect? */
bool rueda_stream_is_short(int cause);

/* What users can do about it, behind a semicolon, or "". */
#define RUEDA_STREAM_REMEDY "; raise `ulimit -n`"
const char *rueda_stream_remedy(int cause);

#endif /* RUEDA_OS_STREAM_H */
