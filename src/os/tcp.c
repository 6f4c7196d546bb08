/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, connecting and accepting TCP sockets, and their options. */
#include "os/tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/number.h"
#include "os/close.h"

/* The system refuses to ask more often. */
#define MOST_QUESTIONS 127

/* Firewalls forget idle connections after minutes, some after one. */
#define KEEP_OPEN_S         45
#define KEEP_OPEN_QUESTIONS 9

/* A name of a host, with its zero. */
#define HOST_BYTES 256

_Static_assert(sizeof(struct sockaddr_in6) <=
                   sizeof(((struct rueda_address *)0)->bytes),
               "an address is too long");

static const struct sockaddr *sockaddr_of(const struct rueda_address *address)
{
    return (const struct sockaddr *)address->bytes;
}

static void address_set(struct rueda_address *address,
                        const struct sockaddr *from, size_t len)
{
    memset(address, 0, sizeof(*address));
    memcpy(address->bytes, from, len);
    address->len = (unsigned)len;
}

void rueda_address_text(const struct rueda_address *address, char *out,
                        size_t bytes)
{
    char host[RUEDA_ADDRESS_TEXT];
    char port[16];

    if (getnameinfo(sockaddr_of(address), address->len, host, sizeof(host),
                    port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(out, bytes, "?");
    else if (sockaddr_of(address)->sa_family == AF_INET6)
        snprintf(out, bytes, "[%s]:%s", host, port);
    else
        snprintf(out, bytes, "%s:%s", host, port);
}

int rueda_address_port(const struct rueda_address *address)
{
    struct sockaddr_in6 copy; /* the port is at the same place in both kinds */

    memcpy(&copy, address->bytes, sizeof(copy));
    return ntohs(copy.sin6_port);
}

void rueda_address_set_port(struct rueda_address *address, int port)
{
    struct sockaddr_in6 copy;

    memcpy(&copy, address->bytes, sizeof(copy));
    copy.sin6_port = htons((uint16_t)port);
    memcpy(address->bytes, &copy, sizeof(copy));
}

/* Cut "host:port" or "[host]:port" in two. */
static bool split(const char *text, char *host, size_t bytes,
                  const char **out_port)
{
    const char *colon = strrchr(text, ':');
    const char *begin = text;
    const char *end = colon;
    uint64_t port;

    /* The resolver would take 70000 for 4464. */
    if (colon == NULL || !rueda_parse_whole(colon + 1, UINT16_MAX, &port))
        return false;
    if (text[0] == '[') {
        begin = text + 1;
        end = colon - 1;
        if (end < begin || *end != ']')
            return false;
    }
    if (end == begin || (size_t)(end - begin) >= bytes)
        return false;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *out_port = colon + 1;
    return true;
}

static bool split_or_say(const char *text, char *host, size_t bytes,
                         const char **out_port, struct rueda_text *error)
{
    if (split(text, host, bytes, out_port))
        return true;
    rueda_text_set(error,
                   "\"%.100s\" is not an address; it should look like "
                   "host:4000, 10.1.2.3:4000 or [fe80::1]:4000",
                   text);
    return false;
}

bool rueda_address_is_wellformed(const char *text, struct rueda_text *error)
{
    const char *port;
    char host[HOST_BYTES];

    return split_or_say(text, host, sizeof(host), &port, error);
}

/* flags: of getaddrinfo(). */
static int find(const char *text, int flags, struct rueda_address *out,
                int room, struct rueda_text *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *list;
    const char *port;
    char host[HOST_BYTES];
    int count = 0;
    int code;

    if (!split_or_say(text, host, sizeof(host), &port, error))
        return 0;
    code = getaddrinfo(host, port, &hints, &list);
    if (code != 0) {
        rueda_text_set(error, "cannot find the address of \"%.100s\": %s", text,
                       code == EAI_SYSTEM ? strerror(errno)
                                          : gai_strerror(code));
        return 0;
    }
    for (const struct addrinfo *at = list; at != NULL && count < room;
         at = at->ai_next)
        if (at->ai_addrlen <= sizeof(out->bytes))
            address_set(&out[count++], at->ai_addr, at->ai_addrlen);
    freeaddrinfo(list);
    if (count == 0)
        rueda_text_set(error, "\"%.100s\" has no address", text);
    return count;
}

int rueda_address_find(const char *text, struct rueda_address *out, int room,
                       struct rueda_text *error)
{
    return find(text, 0, out, room, error);
}

bool rueda_address_read(const char *text, struct rueda_address *out)
{
    struct rueda_text ignored = {{0}};

    return find(text, AI_NUMERICHOST, out, 1, &ignored) == 1;
}

static int open_socket(const struct rueda_address *address)
{
    return socket(sockaddr_of(address)->sa_family,
                  SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void rueda_socket_hurry(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* The first question after this many seconds without a byte, and each further
 * one as long after it. */
static void ask_each(int fd, int seconds, int questions)
{
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &questions, sizeof(questions));
}

void rueda_socket_keep_alive(int fd, int questions)
{
    if (questions > MOST_QUESTIONS)
        questions = MOST_QUESTIONS;
    ask_each(fd, 1, questions);
}

void rueda_socket_keep_open(int fd)
{
    ask_each(fd, KEEP_OPEN_S, KEEP_OPEN_QUESTIONS);
}

void rueda_socket_limit_silence(int fd, int limit_ms)
{
    unsigned limit = (unsigned)limit_ms;

    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
}

/* What Linux tells of a connection (tcp(7)); fields that an older kernel does
 * not have stay 0. */
static bool inspect(int fd, struct tcp_info *out)
{
    socklen_t len = sizeof(*out);

    memset(out, 0, sizeof(*out));
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, out, &len) == 0;
}

int64_t rueda_socket_heard_ms(int fd)
{
    struct tcp_info info;

    if (!inspect(fd, &info))
        return -1;
    return info.tcpi_last_ack_recv < info.tcpi_last_data_recv
               ? info.tcpi_last_ack_recv
               : info.tcpi_last_data_recv;
}

bool rueda_socket_flow(int fd, uint64_t *out_taken, bool *out_is_waiting)
{
    struct tcp_info info;

    if (!inspect(fd, &info))
        return false;
    *out_taken = info.tcpi_bytes_acked;
    /* On its way, or held back although the peer has room. */
    *out_is_waiting =
        info.tcpi_unacked > 0 || (info.tcpi_notsent_bytes > 0 &&
                                  info.tcpi_snd_wnd > 2 * info.tcpi_snd_mss);
    return true;
}

size_t rueda_socket_packet_bytes(int fd)
{
    struct tcp_info info;

    return inspect(fd, &info) ? info.tcpi_snd_mss : 0;
}

rueda_status rueda_socket_listen(const struct rueda_address *at, int *out_fd,
                                 struct rueda_address *out_bound)
{
    struct rueda_address bound = {.len = sizeof(bound.bytes)};
    socklen_t len = sizeof(bound.bytes);
    int fd = open_socket(at);
    int on = 1;

    if (fd < 0)
        return RUEDA_ERR_IO;
    /* The last job's connections may linger on this port. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (sockaddr_of(at)->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, sockaddr_of(at), at->len) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)bound.bytes, &len) < 0) {
        rueda_close_keeping_errno(fd);
        return RUEDA_ERR_IO;
    }
    bound.len = len;
    *out_bound = bound;
    *out_fd = fd;
    return RUEDA_OK;
}

/* What the failure of connect() means. It has the same errno where no port is
 * free, and where this host has no address from which to reach one of IPv6. */
static int cause_of(const struct rueda_address *to, int cause)
{
    int fd;

    if (cause != EADDRNOTAVAIL || sockaddr_of(to)->sa_family != AF_INET6)
        return cause;
    fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return cause;
    /* This sends nothing, and needs an address first and then a port. */
    if (connect(fd, sockaddr_of(to), to->len) < 0 && errno == EADDRNOTAVAIL)
        cause = ENETUNREACH;
    rueda_close_keeping_errno(fd);
    return cause;
}

rueda_status rueda_socket_connect(const struct rueda_address *to, int *out_fd)
{
    int fd = open_socket(to);
    int on = 1;

    if (fd < 0)
        return RUEDA_ERR_IO;
    rueda_socket_hurry(fd);
    /* Its port may be wanted by a listener when it is closed. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (connect(fd, sockaddr_of(to), to->len) < 0 && errno != EINPROGRESS) {
        errno = cause_of(to, errno);
        rueda_close_keeping_errno(fd);
        return RUEDA_ERR_IO;
    }
    *out_fd = fd;
    return RUEDA_OK;
}

/* A socket that connects to a port of its own host without a listener may get
 * that very port, and then connects to itself. */
static bool has_met_itself(int fd, const struct rueda_address *peer)
{
    struct rueda_address own = {.len = sizeof(own.bytes)};
    socklen_t len = sizeof(own.bytes);

    return getsockname(fd, (struct sockaddr *)own.bytes, &len) == 0 &&
           len == peer->len && memcmp(own.bytes, peer->bytes, len) == 0;
}

/* SO_ERROR is also 0 while the connection is still being made; only the address
 * of the other end shows that there is one. */
rueda_status rueda_socket_connected(int fd)
{
    struct rueda_address peer = {.len = sizeof(peer.bytes)};
    socklen_t len = sizeof(int);
    int cause = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &len) < 0)
        return RUEDA_ERR_IO;
    errno = cause;
    if (cause != 0)
        return RUEDA_ERR_IO;
    len = sizeof(peer.bytes);
    if (getpeername(fd, (struct sockaddr *)peer.bytes, &len) < 0)
        return RUEDA_IN_PROGRESS;
    peer.len = len;
    if (has_met_itself(fd, &peer)) {
        errno = ECONNREFUSED;
        return RUEDA_ERR_IO;
    }
    return RUEDA_OK;
}

rueda_status rueda_socket_peer(int fd, struct rueda_address *out)
{
    struct rueda_address peer = {.len = 0};
    socklen_t len = sizeof(peer.bytes);

    if (getpeername(fd, (struct sockaddr *)peer.bytes, &len) < 0)
        return RUEDA_ERR_IO;
    peer.len = len;
    *out = peer;
    return RUEDA_OK;
}

bool rueda_socket_is_inside(int fd)
{
    struct rueda_address own = {.len = sizeof(own.bytes)};
    socklen_t len = sizeof(own.bytes);
    struct rueda_address peer;

    if (getsockname(fd, (struct sockaddr *)own.bytes, &len) < 0 ||
        rueda_socket_peer(fd, &peer) != RUEDA_OK)
        return false;
    own.len = len;
    return rueda_address_is_same_host(&own, &peer);
}

void rueda_socket_hurry_inside(int fd)
{
    static const char plain[] = "reno"; /* part of every system */

    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof(plain) - 1);
}
