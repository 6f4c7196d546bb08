/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and descriptors over non-blocking sockets, Unix or TCP. */
#include "os/stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "os/clock.h"

/* EINTR counts as "try later", like EAGAIN: callers come back anyway. A
 * connection that was given up before accept() (ECONNABORTED) is not a failure
 * of the listener. */
rueda_status rueda_stream_status(void)
{
    switch (errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case ETOOMANYREFS: /* descriptors that the caller has not received yet */
        return RUEDA_IN_PROGRESS;
    case EPIPE:
    case ECONNRESET:
        return RUEDA_ERR_PEER_LOST;
    default:
        return RUEDA_ERR_IO;
    }
}

bool rueda_stream_is_short(int cause)
{
    return cause == EMFILE || cause == ENFILE || cause == ENOBUFS ||
           cause == ENOMEM || cause == EADDRNOTAVAIL;
}

const char *rueda_stream_remedy(int cause)
{
    if (cause == EADDRNOTAVAIL)
        return "; no port is free for it: widen the system's "
               "net.ipv4.ip_local_port_range";
    return rueda_stream_is_short(cause) ? RUEDA_STREAM_REMEDY : "";
}

rueda_status rueda_stream_accept(int listener, int *out_fd)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return rueda_stream_status();
    *out_fd = fd;
    return RUEDA_OK;
}

rueda_status rueda_stream_send(int fd, const void *buf, size_t len,
                               size_t *out_bytes)
{
    ssize_t sent = send(fd, buf, len, MSG_NOSIGNAL);

    *out_bytes = 0;
    if (sent < 0)
        return rueda_stream_status();
    *out_bytes = (size_t)sent;
    return RUEDA_OK;
}

rueda_status rueda_stream_recv(int fd, void *buf, size_t len, size_t *out_bytes)
{
    ssize_t got = recv(fd, buf, len, 0);

    *out_bytes = 0;
    if (got < 0)
        return rueda_stream_status();
    if (got == 0)
        return RUEDA_ERR_PEER_LOST;
    *out_bytes = (size_t)got;
    return RUEDA_OK;
}

rueda_status rueda_stream_send_both(int fd, const void *first, size_t first_len,
                                    const void *second, size_t second_len,
                                    size_t *out_bytes)
{
    struct iovec parts[2] = {{(void *)first, first_len},
                             {(void *)second, second_len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);

    *out_bytes = 0;
    if (sent < 0)
        return rueda_stream_status();
    *out_bytes = (size_t)sent;
    return RUEDA_OK;
}

rueda_status rueda_stream_recv_both(int fd, void *first, size_t first_len,
                                    void *second, size_t second_len,
                                    size_t *out_bytes)
{
    struct iovec parts[2] = {{first, first_len}, {second, second_len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t got = recvmsg(fd, &message, 0);

    *out_bytes = 0;
    if (got < 0)
        return rueda_stream_status();
    if (got == 0)
        return RUEDA_ERR_PEER_LOST;
    *out_bytes = (size_t)got;
    return RUEDA_OK;
}

size_t rueda_stream_unsent(int fd)
{
    int waiting = 0;

    return ioctl(fd, SIOCOUTQNSD, &waiting) < 0 || waiting < 0
               ? 0
               : (size_t)waiting;
}

bool rueda_stream_is_cut(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state == TCP_CLOSE;
}

/* A connection that the peer has reset counts what was in flight for ever. */
bool rueda_stream_is_sent(int fd)
{
    int waiting = 0;

    return ioctl(fd, SIOCOUTQ, &waiting) < 0 || waiting == 0 ||
           rueda_stream_is_cut(fd);
}

void rueda_stream_end(int fd)
{
    shutdown(fd, SHUT_WR);
}

void rueda_fd_wait(int fd, bool for_writing, int64_t timeout_ns)
{
    struct pollfd one = {.fd = fd, .events = for_writing ? POLLOUT : POLLIN};
    int64_t ms = timeout_ns > 0 ? (timeout_ns + 999999) / 1000000 : 0;

    poll(&one, 1, ms > INT32_MAX ? INT32_MAX : (int)ms);
}

rueda_status rueda_stream_await(int fd, bool for_writing, int64_t deadline_ns)
{
    int64_t left = deadline_ns - rueda_clock_ns();

    if (left <= 0)
        return RUEDA_ERR_TIMEOUT;
    rueda_fd_wait(fd, for_writing, left);
    return RUEDA_OK;
}

rueda_status rueda_stream_send_all(int fd, const void *buf, size_t len,
                                   int64_t deadline_ns)
{
    const char *at = buf;

    while (len > 0) {
        size_t moved;
        rueda_status status = rueda_stream_send(fd, at, len, &moved);

        at += moved;
        len -= moved;
        if (status == RUEDA_IN_PROGRESS)
            status = rueda_stream_await(fd, true, deadline_ns);
        if (status < 0)
            return status;
    }
    return RUEDA_OK;
}

rueda_status rueda_stream_recv_all(int fd, void *buf, size_t len,
                                   int64_t deadline_ns)
{
    char *at = buf;

    while (len > 0) {
        size_t moved;
        rueda_status status = rueda_stream_recv(fd, at, len, &moved);

        at += moved;
        len -= moved;
        if (status == RUEDA_IN_PROGRESS)
            status = rueda_stream_await(fd, false, deadline_ns);
        if (status < 0)
            return status;
    }
    return RUEDA_OK;
}
