/* SPDX-License-Identifier: Apache-2.0 */
/* Abstract Unix sockets: listen, connect, and the user of the peer. */
#include "os/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/close.h"
#include "os/stream.h"

/* An abstract name begins with a zero byte and ends where its length says: a
 * zero at its end would be part of it. */
static socklen_t abstract_address(const char *name, struct sockaddr_un *out)
{
    size_t len = strnlen(name, sizeof(out->sun_path) - 1);

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    memcpy(out->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

rueda_status rueda_unix_listen(const char *name, int *out_fd)
{
    struct sockaddr_un address;
    socklen_t len = abstract_address(name, &address);
    int fd = open_socket();

    if (fd < 0)
        return RUEDA_ERR_IO;
    if (bind(fd, (struct sockaddr *)&address, len) < 0 ||
        listen(fd, SOMAXCONN) < 0) {
        rueda_close_keeping_errno(fd);
        return RUEDA_ERR_IO;
    }
    *out_fd = fd;
    return RUEDA_OK;
}

rueda_status rueda_unix_connect(const char *name, int *out_fd)
{
    struct sockaddr_un address;
    socklen_t len = abstract_address(name, &address);
    int fd = open_socket();

    if (fd < 0)
        return RUEDA_ERR_IO;
    if (connect(fd, (struct sockaddr *)&address, len) < 0) {
        rueda_close_keeping_errno(fd);
        return errno == ECONNREFUSED || errno == EAGAIN ? RUEDA_IN_PROGRESS
                                                        : RUEDA_ERR_IO;
    }
    *out_fd = fd;
    return RUEDA_OK;
}

/* The user as which the kernel shows all that have no number here. */
static unsigned overflow_user(void)
{
    unsigned user = 65534;
    char text[16] = "";
    int fd = open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return user;
    if (read(fd, text, sizeof(text) - 1) > 0)
        user = (unsigned)strtoul(text, NULL, 10);
    close(fd);
    return user;
}

/* Is the process in our user namespace? False also if that cannot be seen. */
static bool is_in_our_namespace(pid_t pid)
{
    struct stat ours;
    struct stat theirs;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    return pid > 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

bool rueda_unix_peer_is_us(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           peer.uid == geteuid() && peer.uid != overflow_user() &&
           is_in_our_namespace(peer.pid);
}

/* Room for the control message of the most descriptors we ever pass. */
union control {
    char bytes[CMSG_SPACE(RUEDA_UNIX_MOST_FDS * sizeof(int))];
    struct cmsghdr align;
};

rueda_status rueda_unix_send_fds(int fd, const int *fds, int count)
{
    size_t bytes = (size_t)count * sizeof(int);
    char byte = 'f';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union control control = {{0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), fds, bytes);
    if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
        return rueda_stream_status();
    return RUEDA_OK;
}

/* Descriptors arrive with the byte and are ours from then on, wanted or not:
 * those that are not expected are closed, or a stranger could use up all that
 * we may have. */
rueda_status rueda_unix_recv_fds(int fd, int *out_fds, int count)
{
    size_t bytes = (size_t)count * sizeof(int);
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union control control = {{0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header;
    size_t have = 0;

    if (got < 0)
        return rueda_stream_status();
    if (got == 0)
        return RUEDA_ERR_PEER_LOST;
    header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS)
        have = header->cmsg_len - CMSG_LEN(0);
    if (header != NULL && have == bytes &&
        (message.msg_flags & MSG_CTRUNC) == 0) {
        memcpy(out_fds, CMSG_DATA(header), bytes);
        return RUEDA_OK;
    }
    for (size_t i = 0; header != NULL && i < have / sizeof(int); i++) {
        int unwanted;

        memcpy(&unwanted, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        close(unwanted);
    }
    return RUEDA_ERR_INVALID;
}
