/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "os/random.h"

/* More than a target has open at a time. */
#define DESCRIPTORS 24

/* ---- In place of what a failure could not be replayed with -------------- */

/* The linker puts these where the others are called (CMakeLists.txt). */
rueda_status __wrap_rueda_random_fill(void *buf, size_t len);
int __wrap_getaddrinfo(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out);
int __real_getaddrinfo(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out);

static unsigned char last_random;

void fuzz_random_restart(void)
{
    last_random = 0;
}

/* The bytes of the n-th call are n. */
rueda_status __wrap_rueda_random_fill(void *buf, size_t len)
{
    last_random++;
    memset(buf, last_random, len);
    return RUEDA_OK;
}

/* Numbers only: no name server gets to see what we made up. */
int __wrap_getaddrinfo(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out)
{
    struct addrinfo numeric = *hints;

    numeric.ai_flags |= AI_NUMERICHOST;
    return __real_getaddrinfo(host, port, &numeric, out);
}

/* ---- Streams ------------------------------------------------------------ */

void fuzz_stream_open(struct fuzz_stream *stream, const void *data, size_t size)
{
    int fds[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                    fds) == 0);
    /* The socket takes all of it: inputs are short. */
    must(size == 0 || send(fds[1], data, size, 0) == (ssize_t)size);
    must(shutdown(fds[1], SHUT_WR) == 0);
    stream->ours = fds[0];
    stream->theirs = fds[1];
}

void fuzz_stream_close(struct fuzz_stream *stream)
{
    close(stream->ours);
    close(stream->theirs);
}

int fuzz_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < DESCRIPTORS; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}
