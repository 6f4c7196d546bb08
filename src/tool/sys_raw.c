/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain sockets as a system under test: what two processes reach that pass the
 * same bytes both ways over one TCP connection and do nothing else.
 *
 * A thread writes while the rank itself reads, both in blocking calls. What
 * surely fits the socket's buffers is written by the rank before it reads: two
 * threads that wake each other would take longer than the bytes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool/system.h"

#define LIMIT_S    60
#define FITS_BYTES ((size_t)16 << 10)

struct raw_rank {
    struct rueda_system super;
    int fd;
    size_t bytes;
    const char *send;
    char *recv;

    /* The writer's: send and bytes are its own between go and gone, and so are
     * these two. */
    pthread_t writer;
    sem_t go;
    sem_t gone;
    bool is_over;
    int error; /* of its last write, 0: none */
};

static struct raw_rank *rank_of(struct rueda_system *system)
{
    return (struct raw_rank *)system;
}

/* Zero, or what errno was; a connection that ended is ECONNRESET. */
static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno;
        bytes += sent;
        len -= (size_t)sent;
    }
    return 0;
}

static int read_all(int fd, char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t got = recv(fd, bytes, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : ECONNRESET;
        bytes += got;
        len -= (size_t)got;
    }
    return 0;
}

static void await(sem_t *sem)
{
    while (sem_wait(sem) != 0 && errno == EINTR)
        continue;
}

/* Two semaphores are the whole protocol: `go` hands the buffer to the writer,
 * `gone` hands it back. */
static void *writer_main(void *arg)
{
    struct raw_rank *self = arg;

    for (;;) {
        await(&self->go);
        if (self->is_over)
            return NULL;
        self->error = write_all(self->fd, self->send, self->bytes);
        sem_post(&self->gone);
    }
}

static bool is_well(struct raw_rank *self, int error)
{
    if (error == 0)
        return true;
    rueda_text_set(
        &self->super.words, "rank %d: the raw connection: %s", self->super.rank,
        error == EAGAIN ? "nothing moved for long" : strerror(error));
    return false;
}

static bool prepare(struct rueda_system *system, const struct rueda_case *work,
                    const void *send, void *recv)
{
    struct raw_rank *self = rank_of(system);

    if (work->op != RUEDA_BENCH_EXCHANGE) {
        rueda_text_set(&system->words, "raw sockets cannot do %s",
                       rueda_bench_op_str(work->op));
        return false;
    }
    self->send = send;
    self->recv = recv;
    self->bytes = rueda_case_bytes(work);
    return true;
}

/* What plain sockets reach: the measure for everything over TCP. Long messages
 * need a thread, since both ends send before they receive. */
static bool run(struct rueda_system *system, unsigned iteration)
{
    struct raw_rank *self = rank_of(system);
    int error;

    (void)iteration;
    if (self->bytes <= FITS_BYTES) {
        error = write_all(self->fd, self->send, self->bytes);
        if (error == 0)
            error = read_all(self->fd, self->recv, self->bytes);
        return is_well(self, error);
    }
    sem_post(&self->go);
    error = read_all(self->fd, self->recv, self->bytes);
    await(&self->gone);
    return is_well(self, error != 0 ? error : self->error);
}

/* A byte each way. Nothing else may be on the connection: run() has read all
 * that the other end sent. */
static bool barrier(struct rueda_system *system)
{
    struct raw_rank *self = rank_of(system);
    char byte = 0;
    int error = write_all(self->fd, &byte, 1);

    if (error == 0)
        error = read_all(self->fd, &byte, 1);
    return is_well(self, error);
}

static void close_rank(struct rueda_system *system)
{
    struct raw_rank *self = rank_of(system);

    self->is_over = true;
    sem_post(&self->go);
    pthread_join(self->writer, NULL);
    sem_destroy(&self->go);
    sem_destroy(&self->gone);
    close(self->fd);
    free(self);
}

static const struct rueda_system_ops ops = {
    .alloc = rueda_system_alloc,
    .release = rueda_system_release,
    .prepare = prepare,
    .run = run,
    .barrier = barrier,
    .close = close_rank,
};

/* Small messages leave at once, and no call lasts for ever. */
static bool set_up(int fd)
{
    const struct timeval limit = {.tv_sec = LIMIT_S};
    const int yes = 1;

    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ==
               0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0;
}

/* The system of one of the two ranks, over its end of the connection. */
struct rueda_system *rueda_system_raw(int rank, int fd,
                                      struct rueda_text *words)
{
    struct raw_rank *self = calloc(1, sizeof(*self));

    if (self == NULL || !set_up(fd))
        goto err;
    self->super.ops = &ops;
    self->super.rank = rank;
    self->super.size = 2;
    snprintf(self->super.version, sizeof(self->super.version),
             "raw: blocking sockets, one TCP connection, no arithmetic");
    snprintf(self->super.transport, sizeof(self->super.transport), "tcp");
    self->fd = fd;
    sem_init(&self->go, 0, 0);
    sem_init(&self->gone, 0, 0);
    errno = pthread_create(&self->writer, NULL, writer_main, self);
    if (errno == 0)
        return &self->super;

err:
    rueda_text_set(words, "cannot use the raw connection: %s", strerror(errno));
    free(self);
    close(fd);
    return NULL;
}

/* The accepted end must be the one that we dialled: no other process uses this
 * port. */
static bool is_other_end(int accepted, int called)
{
    struct sockaddr_in came = {0};
    struct sockaddr_in mine = {0};
    socklen_t came_len = sizeof(came);
    socklen_t mine_len = sizeof(mine);

    return getpeername(accepted, (struct sockaddr *)&came, &came_len) == 0 &&
           getsockname(called, (struct sockaddr *)&mine, &mine_len) == 0 &&
           came.sin_port == mine.sin_port &&
           came.sin_addr.s_addr == mine.sin_addr.s_addr;
}

/* Two ends of a TCP connection over loopback. */
bool rueda_system_raw_pair(int out_ends[2])
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct sockaddr *any = (struct sockaddr *)&address;
    socklen_t len = sizeof(address);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int called = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted = -1;

    if (listener >= 0 && called >= 0 && bind(listener, any, len) == 0 &&
        listen(listener, 1) == 0 && getsockname(listener, any, &len) == 0 &&
        connect(called, any, len) == 0)
        accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (accepted >= 0 && !is_other_end(accepted, called)) {
        close(accepted);
        errno = ECONNREFUSED;
        accepted = -1;
    }
    if (listener >= 0)
        close(listener);
    if (accepted < 0) {
        const int error = errno;

        if (called >= 0)
            close(called);
        errno = error;
        return false;
    }
    out_ends[0] = called;
    out_ends[1] = accepted;
    return true;
}
