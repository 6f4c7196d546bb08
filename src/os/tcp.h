/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP sockets over IPv4 and IPv6, non-blocking; what goes through them is in
 * os/stream.h. Functions that return RUEDA_ERR_IO leave the cause in errno.
 * Any thread.
 */
#ifndef RUEDA_OS_TCP_H
#define RUEDA_OS_TCP_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "os/address.h"

/* "10.1.2.3:4000" or "[fe80::1%eth0]:4000". */
#define RUEDA_ADDRESS_TEXT 80
void rueda_address_text(const struct rueda_address *address, char *out,
                        size_t bytes);

int rueda_address_port(const struct rueda_address *address);
void rueda_address_set_port(struct rueda_address *address, int port);

/*
 * The addresses of "host:port", "[::1]:port" or a numeric address, `room` at
 * most. Asks the system's resolver, and blocks as long as that does. Returns
 * how many; 0 with a message in error.
 */
int rueda_address_find(const char *text, struct rueda_address *out, int room,
                       struct rueda_text *error);

/* Does it have such a form? No name is resolved. False with a message
 * in error. */
bool rueda_address_is_wellformed(const char *text, struct rueda_text *error);

/* The address if it is numeric: no name is resolved, nothing blocks. */
bool rueda_address_read(const char *text, struct rueda_address *out);

/* Listen there; port 0 takes one that is free. Writes the address with its
 * port. */
rueda_status rueda_socket_listen(const struct rueda_address *at, int *out_fd,
                                 struct rueda_address *out_bound);

/* Begin to connect. When fd can be written, ask how that ended: RUEDA_OK,
 * RUEDA_ERR_IO, or RUEDA_IN_PROGRESS if it has not. */
rueda_status rueda_socket_connect(const struct rueda_address *to, int *out_fd);
rueda_status rueda_socket_connected(int fd);

/* The address of the other end. */
rueda_status rueda_socket_peer(int fd, struct rueda_address *out);

/* Small messages leave at once. For accepted sockets; others are so. */
void rueda_socket_hurry(int fd);

/*
 * Ask the peer's system each second, while nothing passes, whether it is there;
 * after this many probes without an answer, the first a second after the last
 * sign of life, fd fails a second later with ETIMEDOUT or with the reason why
 * there is no route. A stopped process does not cause silence: its system
 * answers.
 */
void rueda_socket_keep_alive(int fd, int questions);

/* Ask from time to time, while nothing passes, so that no firewall on the way
 * forgets the connection. One whose peer's system does not answer any more
 * fails after minutes. */
void rueda_socket_keep_open(int fd);

/* The same limit as of rueda_socket_keep_alive() for bytes that the peer's
 * system does not take. Only where a peer that does not read cannot be what
 * holds them up. */
void rueda_socket_limit_silence(int fd, int limit_ms);

/* How long ago the peer's system was last heard, in milliseconds; -1: not
 * known. */
int64_t rueda_socket_heard_ms(int fd);

/* How far the peer's system has taken what was sent: a count that grows, and
 * whether anything is on its way that it has not confirmed. What waits because
 * the peer does not read is not on its way. False: not known. */
bool rueda_socket_flow(int fd, uint64_t *out_taken, bool *out_is_waiting);

/* How many bytes a full packet to the peer carries; 0: not known. */
size_t rueda_socket_packet_bytes(int fd);

/* Is it between two sockets of one network namespace? */
bool rueda_socket_is_inside(int fd);

/* A connection inside this system, even between two namespaces, loses nothing,
 * so it needs no congestion control such as bbr, which underestimates the speed
 * of memory. Other connections keep the system's choice. */
void rueda_socket_hurry_inside(int fd);

#endif /* RUEDA_OS_TCP_H */
