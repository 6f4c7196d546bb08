/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets over a Unix socket of the kind that keeps packets apart: one arrives
 * whole or not at all, so no length goes with it, and a receiver sees by
 * MSG_TRUNC that one was longer than what it expects.
 */
#define _GNU_SOURCE
#include "tool/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
    const size_t len = strnlen(name, RUEDA_CONTROL_NAME - 1);

    memset(out, 0, sizeof(*out));
    out->sun_family = AF_UNIX;
    /* Where the first byte stays zero, the address is an abstract one. */
    memcpy(out->sun_path + (name[0] == '/' ? 0 : 1), name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* The socket at which workers come: abstract, or a file where workers of other
 * network namespaces have to find it. Its name cannot be guessed. */
int rueda_control_listen(bool is_file, char out_name[RUEDA_CONTROL_NAME])
{
    struct sockaddr_un address;
    unsigned long random = 0;
    socklen_t len;
    int fd;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -1;
    snprintf(out_name, RUEDA_CONTROL_NAME, "%srueda-bench-%d-%016lx",
             is_file ? "/tmp/" : "", (int)getpid(), random);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    len = address_of(out_name, &address);
    if (bind(fd, (struct sockaddr *)&address, len) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Take one worker in, if it belongs to our user. */
int rueda_control_accept(int listener, pid_t *out_pid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
        peer.uid != geteuid()) {
        close(fd);
        return -1;
    }
    *out_pid = peer.pid;
    return fd;
}

int rueda_control_connect(const char *name)
{
    struct sockaddr_un address;
    const socklen_t len = address_of(name, &address);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, len) == 0)
        return fd;
    close(fd);
    return -1;
}

bool rueda_control_send(int fd, const void *packet, size_t bytes)
{
    ssize_t sent;

    do
        sent = send(fd, packet, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)bytes;
}

bool rueda_control_recv(int fd, void *packet, size_t bytes)
{
    ssize_t got;

    do
        got = recv(fd, packet, bytes, MSG_TRUNC);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}
