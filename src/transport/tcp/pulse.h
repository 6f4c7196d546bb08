/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a host still there? A pulse is a connection with some rank of the host on
 * which nothing is sent but, in the end, last words, as a tag and one sealed
 * record (auth/seal.h), whatever the settings; the two systems ask each other
 * each second whether they are there, and answer also while their processes
 * compute or are stopped. So silence means the host or the way to it, never a
 * slow process.
 *
 * A rank that makes an endpoint with a rank of a host for which it has no pulse
 * dials one to that rank, whichever of the two is the lower. The other end
 * keeps it, and needs no other one for the host that dialled.
 *
 *      the pulse ends (EOF, reset)   that process has ended; its host is there.
 *                                    Dial another rank of it.
 *      it breaks (no answer)         the host is doubted: knock at all its
 *                                    addresses, again and again. If any system
 *                                    accepts or refuses, it is there.
 *      no address answers in time    the host is silent: all endpoints with its
 *                                    ranks fail.
 *
 * A system doubts after KERNEL_NS, of which the wire was dead for one second at
 * least; what is left of the limit is for knocking. So a link that is away for
 * less than the limit by a second always does no harm, and a host that is gone
 * is known within the limit.
 */
#ifndef RUEDA_TRANSPORT_TCP_PULSE_H
#define RUEDA_TRANSPORT_TCP_PULSE_H

#include "auth/handshake.h"
#include "auth/seal.h"
#include "transport/tcp/tcp.h"

#define RUEDA_TCP_KNOCKS 8

/* For the last words on a pulse. */
struct rueda_tcp_pulse_seals {
    struct rueda_seal out;
    struct rueda_seal in;
};

struct rueda_tcp_knock {
    int fd; /* -1: none */
    int peer;
};

/* What we know of a host. */
struct rueda_tcp_pulse {
    bool is_wanted; /* there are endpoints with its ranks */
    bool was_heard; /* it has answered before */
    bool is_silent; /* what comes of it */
    int fd;         /* of the pulse that we have dialled; -1: none */
    int peer;       /* and the rank at its other end */
    struct rueda_handshake *shake; /* until that has proven itself, or NULL */
    struct rueda_tcp_pulse_seals seals; /* once it has */
    int theirs;                         /* how many its ranks have dialled */
    int64_t knock_ns;                   /* when to knock again */
    int64_t deadline_ns;                /* of knocking; 0: not begun */
    int count;                          /* of knocks so far */
    int cause;                          /* errno of the last one that failed */
    struct rueda_tcp_knock knocks[RUEDA_TCP_KNOCKS];
};

struct rueda_tcp_hub;

void rueda_tcp_pulse_init(struct rueda_tcp_pulse *pulse);
void rueda_tcp_pulse_fini(struct rueda_tcp_pulse *pulse);

/* An endpoint with a rank of this host is made. */
void rueda_tcp_pulse_want(struct rueda_tcp_hub *hub, int host);

/* The peer has dialled fd, which is ours from now on, as a pulse; session is
 * the handshake's. */
void rueda_tcp_pulse_take(struct rueda_tcp_hub *hub, int peer, int fd,
                          const struct rueda_key *session);

/* See how all hosts are. */
void rueda_tcp_pulses_check(struct rueda_tcp_hub *hub, int64_t now_ns);

/* When that has something to do that no socket tells; INT64_MAX: never. */
int64_t rueda_tcp_pulses_next_ns(const struct rueda_tcp_hub *hub);

/* Show all sockets to hub->watch, or close them in the child of a fork. */
void rueda_tcp_pulses_show(const struct rueda_tcp_hub *hub);
void rueda_tcp_pulses_forked(const struct rueda_tcp_hub *hub);

/* Say these words on all pulses. */
void rueda_tcp_pulses_tell(const struct rueda_tcp_hub *hub, const char *words);

/* Give up all pulses: no host is judged any more. */
void rueda_tcp_pulses_end(struct rueda_tcp_hub *hub);

#endif /* RUEDA_TRANSPORT_TCP_PULSE_H */
