/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that were made by others: MSG_DONTWAIT in each call, instead of
 * O_NONBLOCK, which would also hold for the other processes that have the
 * socket.
 */
#include "os/inherited.h"

#include <sys/socket.h>

#include "os/stream.h"

/* After a call that failed: RUEDA_OK if it is worth another try. */
static rueda_status wait_for_news(int fd, bool for_writing, int64_t deadline_ns)
{
    rueda_status status = rueda_stream_status();

    if (status == RUEDA_IN_PROGRESS)
        status = rueda_stream_await(fd, for_writing, deadline_ns);
    return status;
}

rueda_status rueda_inherited_send(int fd, const void *buf, size_t len,
                                  int64_t deadline_ns)
{
    const char *next = buf;

    while (len > 0) {
        ssize_t sent = send(fd, next, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0) {
            rueda_status status = wait_for_news(fd, true, deadline_ns);

            if (status != RUEDA_OK)
                return status;
            continue;
        }
        next += sent;
        len -= (size_t)sent;
    }
    return RUEDA_OK;
}

rueda_status rueda_inherited_recv(int fd, void *buf, size_t len,
                                  int64_t deadline_ns, size_t *out_bytes)
{
    for (;;) {
        ssize_t got = recv(fd, buf, len, MSG_DONTWAIT);
        rueda_status status;

        if (got > 0) {
            *out_bytes = (size_t)got;
            return RUEDA_OK;
        }
        if (got == 0)
            return RUEDA_ERR_PEER_LOST;
        status = wait_for_news(fd, false, deadline_ns);
        if (status != RUEDA_OK)
            return status;
    }
}
