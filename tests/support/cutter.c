/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cutter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_PIECE 512

static uint64_t draw(struct cutter *cutter, uint64_t below)
{
    cutter->seed = cutter->seed * 6364136223846793005u + 1442695040888963407u;
    return (cutter->seed >> 33) % below;
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Close both; a hard end is a reset. */
static void end(struct cutter_pair *pair, bool is_hard, bool is_hard_other)
{
    const struct linger at_once = {.l_onoff = 1};
    const bool hard[] = {is_hard, is_hard_other};

    for (int i = 0; i < 2; i++) {
        if (hard[i])
            setsockopt(pair->fds[i], SOL_SOCKET, SO_LINGER, &at_once,
                       sizeof(at_once));
        close(pair->fds[i]);
        pair->fds[i] = -1;
    }
}

static void take(struct cutter *cutter)
{
    const struct sockaddr_in to = loopback(cutter->to);
    struct cutter_pair pair = {.fds = {accept(cutter->listener, NULL, NULL),
                                       socket(AF_INET, SOCK_STREAM, 0)}};

    for (int i = 0; i < CUTTER_MOST; i++)
        if (cutter->pairs[i].fds[0] < 0 && pair.fds[0] >= 0 &&
            pair.fds[1] >= 0 &&
            connect(pair.fds[1], (const struct sockaddr *)&to, sizeof(to)) ==
                0) {
            cutter->pairs[i] = pair;
            return;
        }
    end(&pair, true, true);
}

/* Pass on a part of the piece, and end the connection. */
static void cut(struct cutter *cutter, struct cutter_pair *pair, int from,
                const unsigned char *bytes, size_t len)
{
    send(pair->fds[1 - from], bytes, draw(cutter, len + 1), MSG_NOSIGNAL);
    end(pair, draw(cutter, 2) == 0, draw(cutter, 2) == 0);
    atomic_fetch_add(&cutter->cuts, 1);
}

/* A piece has come from one side, or its end has. What the other side does not
 * take any more is lost. */
static void forward(struct cutter *cutter, struct cutter_pair *pair, int from)
{
    const int one_in = atomic_load(&cutter->one_in);
    const int to = pair->fds[1 - from];
    unsigned char bytes[MOST_PIECE];
    ssize_t len = recv(pair->fds[from], bytes, 1 + draw(cutter, MOST_PIECE),
                       MSG_DONTWAIT);

    if (len <= 0) {
        pair->is_over[from] = true;
        shutdown(to, SHUT_WR);
        if (pair->is_over[1 - from])
            end(pair, false, false);
        return;
    }
    if (one_in == 0 || draw(cutter, (uint64_t)one_in) > 0) {
        send(to, bytes, (size_t)len, MSG_NOSIGNAL);
        return;
    }
    switch (draw(cutter, 4)) {
    case 0:
        bytes[draw(cutter, (uint64_t)len)] ^=
            (unsigned char)(1 << draw(cutter, 8));
        break;
    case 1:
        send(to, bytes, (size_t)len, MSG_NOSIGNAL); /* and once more */
        break;
    default:
        cut(cutter, pair, from, bytes, (size_t)len);
        return;
    }
    send(to, bytes, (size_t)len, MSG_NOSIGNAL);
    atomic_fetch_add(&cutter->changes, 1);
}

/* Waits for whatever comes. False: cutter_close() has been called. */
static bool step(struct cutter *cutter)
{
    struct pollfd fds[2 + 2 * CUTTER_MOST] = {
        {.fd = cutter->wake[0], .events = POLLIN},
        {.fd = cutter->listener, .events = POLLIN}};

    for (int i = 0; i < 2 * CUTTER_MOST; i++) {
        const struct cutter_pair *pair = &cutter->pairs[i / 2];

        fds[2 + i] =
            (struct pollfd){.fd = pair->is_over[i % 2] ? -1 : pair->fds[i % 2],
                            .events = POLLIN};
    }
    poll(fds, 2 + 2 * CUTTER_MOST, -1);
    for (int i = 0; i < 2 * CUTTER_MOST; i++)
        /* The other end may just have been closed. */
        if (fds[2 + i].revents != 0 && cutter->pairs[i / 2].fds[0] >= 0)
            forward(cutter, &cutter->pairs[i / 2], i % 2);
    if (fds[1].revents != 0)
        take(cutter);
    return fds[0].revents == 0;
}

static void *run(void *arg)
{
    while (step(arg))
        continue;
    return NULL;
}

bool cutter_open(struct cutter *cutter, int to, uint64_t seed)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof(address);

    memset(cutter, 0, sizeof(*cutter));
    for (int i = 0; i < CUTTER_MOST; i++)
        cutter->pairs[i].fds[0] = cutter->pairs[i].fds[1] = -1;
    cutter->to = to;
    cutter->seed = seed;
    cutter->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (cutter->listener < 0 || pipe(cutter->wake) != 0 ||
        bind(cutter->listener, (struct sockaddr *)&address, len) != 0 ||
        listen(cutter->listener, CUTTER_MOST) != 0 ||
        getsockname(cutter->listener, (struct sockaddr *)&address, &len) != 0)
        return false;
    cutter->port = ntohs(address.sin_port);
    return pthread_create(&cutter->thread, NULL, run, cutter) == 0;
}

void cutter_close(struct cutter *cutter)
{
    /* At the end of the pipe it is told. */
    close(cutter->wake[1]);
    pthread_join(cutter->thread, NULL);
    for (int i = 0; i < CUTTER_MOST; i++)
        if (cutter->pairs[i].fds[0] >= 0)
            end(&cutter->pairs[i], false, false);
    close(cutter->wake[0]);
    close(cutter->listener);
}
