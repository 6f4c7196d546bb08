/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doorbells, deaths and pollers: thin skins over eventfd, pidfd and epoll.
 *
 * All three are descriptors, so one epoll_wait() sleeps on everything that can
 * wake a rank: other ranks of the host, deaths, sockets. None of them blocks
 * but rueda_poller_wait().
 */
#include "os/event.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_EVENTS 32

rueda_status rueda_doorbell_open(int *out_fd)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return RUEDA_ERR_IO;
    *out_fd = fd;
    return RUEDA_OK;
}

void rueda_doorbell_ring(int fd)
{
    uint64_t one = 1;

    /* A full counter is a bell that rings already. */
    if (write(fd, &one, sizeof(one)) < 0)
        return;
}

/* Before looking for what there is to do, not after: a ring that comes in
 * between is then still there at the next sleep. */
void rueda_doorbell_clear(int fd)
{
    uint64_t rings;

    if (read(fd, &rings, sizeof(rings)) < 0)
        return;
}

/* By the number of the call: older C libraries have no function for it. */
rueda_status rueda_death_open_self(int *out_fd)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0)
        return RUEDA_ERR_IO;
    *out_fd = fd;
    return RUEDA_OK;
}

rueda_status rueda_death_open_pipe(int *out_fd, int *out_life)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return RUEDA_ERR_IO;
    *out_fd = ends[0];
    *out_life = ends[1];
    return RUEDA_OK;
}

rueda_status rueda_poller_open(int *out_poller)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        return RUEDA_ERR_IO;
    *out_poller = fd;
    return RUEDA_OK;
}

rueda_status rueda_poller_add(int poller, int fd, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0)
        return RUEDA_ERR_IO;
    return RUEDA_OK;
}

rueda_status rueda_poller_add_edges(int poller, int fd, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
                                .data.u32 = number};

    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST)
        return RUEDA_ERR_IO;
    return RUEDA_OK;
}

void rueda_poller_remove(int poller, int fd)
{
    epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL);
}

void rueda_poller_write(int poller, int fd, uint32_t number, bool is_wanted)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    if (is_wanted)
        event.events |= EPOLLOUT;
    epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}

/* The time is rounded up: a wait of less than a millisecond would else be none,
 * and its caller would spin until the time has come. */
int rueda_poller_wait(int poller, int64_t timeout_ns, uint32_t *out_numbers,
                      int room)
{
    struct epoll_event events[MOST_EVENTS];
    int timeout_ms = -1;
    int found;

    if (timeout_ns >= 0) {
        int64_t ms = (timeout_ns + 999999) / 1000000;

        timeout_ms = ms > INT32_MAX ? INT32_MAX : (int)ms;
    }
    found = epoll_wait(poller, events, room < MOST_EVENTS ? room : MOST_EVENTS,
                       timeout_ms);
    for (int i = 0; i < found; i++)
        out_numbers[i] = events[i].data.u32;
    return found < 0 ? 0 : found;
}

rueda_status rueda_fd_copy(int fd, int *out_fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy < 0)
        return RUEDA_ERR_IO;
    *out_fd = copy;
    return RUEDA_OK;
}

void rueda_fd_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
