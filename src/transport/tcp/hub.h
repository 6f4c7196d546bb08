/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a hub: what its files share, and what endpoints ask of it.
 *
 *      hub.c          life, and endpoints
 *      connecting.c   connections that are being made
 *      pulse.c        is a host still there? (pulse.h)
 *      stall.c        do bytes get through?
 *      knock.c        is a process still there?
 */
#ifndef RUEDA_TRANSPORT_TCP_HUB_H
#define RUEDA_TRANSPORT_TCP_HUB_H

#include "auth/admission.h"
#include "os/dial.h"
#include "transport/tcp/about.h"
#include "transport/tcp/ep.h"
#include "transport/tcp/pulse.h"

struct rueda_tcp_dialling;
struct rueda_tcp_arrival;

/* When bytes on a stream were last taken by the peer's system (stall.c). */
struct rueda_tcp_stall {
    uint64_t taken;
    int64_t since_ns;
    bool is_told;
    bool has_carried;      /* frames, before they stopped */
    bool has_carried_much; /* full packets too */
    int64_t idle_ns;       /* nothing had been heard for so long before that */
};

/* What this rank does to find out whether the process of a peer is there
 * (knock.c). */
struct rueda_tcp_knocking {
    int fd; /* -1: none */
    int address;
    int64_t next_ns;  /* no connection before; or none any more */
    bool is_answered; /* by an address of this round */
    bool is_refused;
    int rounds; /* in a row that were refused */
    bool is_gone;
};

struct rueda_tcp_peer {
    struct rueda_address *addresses; /* NULL: not located */
    int address_count;
    int host;
    bool is_inside;  /* in this system */
    bool is_awaited; /* judged without an endpoint too */
    struct rueda_tcp_knocking knocking;
    struct rueda_tcp_ep *ep; /* or NULL */
    int pulse;               /* that it has dialled; -1: none */
    struct rueda_tcp_pulse_seals pulse_seals;
    struct rueda_text *why;         /* the endpoint has failed, or NULL */
    struct rueda_tcp_stall *stalls; /* [RUEDA_TCP_MOST_STREAMS], with ep */
};

struct rueda_tcp_hub {
    struct rueda_hub super;
    int rank;
    int size;
    int streams;
    rueda_config_encrypt encrypt;
    uint64_t job;  /* a number that only its ranks have */
    uint32_t term; /* of connections that are made now */
    unsigned checks;
    int64_t give_up_ns;
    int64_t silence_ns;
    struct rueda_key key;
    struct rueda_ciphers ciphers; /* see rueda_tcp_hub_measure_ciphers() */
    void (*watch)(void *arg, int fd);
    void *arg;
    int listeners[RUEDA_TCP_MOST_ADDRESSES];
    struct rueda_address addresses[RUEDA_TCP_MOST_ADDRESSES];
    int address_count;
    struct rueda_tcp_peer *peers;   /* [size] */
    struct rueda_tcp_pulse *pulses; /* [size], by host */
    int host_count;                 /* that were named */
    struct rueda_admission admission;
    struct rueda_tcp_dialling *diallings; /* newest first */
    struct rueda_tcp_arrival *arrivals;   /* whose endpoints are not made */
    struct rueda_text words; /* the last ones of a rank that hung up */
    int64_t tend_ns;         /* when all this was last seen to */
    int64_t stall_ns;        /* when streams were last looked at */
    int64_t leave_ns;        /* until when all endpoints that close may wait;
                                0: none has closed yet */
};

/* ---- hub.c -------------------------------------------------------------- */

/* Begin to dial, or look for connections that have come for it already. */
void rueda_tcp_hub_join(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep);

/* Take connections in the making further. An endpoint that cannot be reached
 * fails. */
void rueda_tcp_hub_progress(struct rueda_tcp_hub *hub);

/* The endpoint is being closed: forget it. */
void rueda_tcp_hub_leave(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep);

/* How often all streams were to be looked at so far. */
unsigned rueda_tcp_hub_checks(const struct rueda_tcp_hub *hub);

/* Find out how fast ciphers are for streams as hub->encrypt wants them, unless
 * that is known already. */
void rueda_tcp_hub_measure_ciphers(struct rueda_tcp_hub *hub);

/* What only ranks of this job have that are in the same term. */
uint64_t rueda_tcp_hub_job(const struct rueda_tcp_hub *hub);

/* How many streams an endpoint should have. */
int rueda_tcp_hub_streams(const struct rueda_tcp_hub *hub);

/* A sleeping thread is to be woken by this socket. */
void rueda_tcp_hub_show(const struct rueda_tcp_hub *hub, int fd);

/* Log these words, keep them as the reason, and fail the endpoint with a peer,
 * if there is one that has not failed. */
void rueda_tcp_hub_lose(struct rueda_tcp_hub *hub, int peer, const char *why);

/* The peer has sent what no rank sends: its endpoint fails, and no other does.
 * Its bytes cannot be told from good ones any more, and pieces on a stream that
 * is closed would be missing. Writes one line of the log, which is the reason,
 * too. */
void rueda_tcp_hub_accuse(struct rueda_tcp_hub *hub, int peer,
                          const char *what);

/* A stream of the endpoint with a peer ended with this status (and errno), in
 * the middle of something: the endpoint fails. */
void rueda_tcp_hub_break(struct rueda_tcp_hub *hub, int peer,
                         rueda_status status);

/* ---- connecting.c ------------------------------------------------------- */

/* Accept connections at the listeners from now on. RUEDA_ERR_NOMEM, or
 * RUEDA_ERR_IO with the cause in errno. */
rueda_status rueda_tcp_admit(struct rueda_tcp_hub *hub);

/* Dial one more stream for ep, at this address of its peer or a later one. */
rueda_status rueda_tcp_dial(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep,
                            int address);

/* The peer is to dial for ep: see from time to time whether it is there. */
rueda_status rueda_tcp_probe(struct rueda_tcp_hub *hub,
                             struct rueda_tcp_ep *ep);

/* Connections that have come for ep before it was made become its streams. */
void rueda_tcp_attach_arrivals(struct rueda_tcp_hub *hub,
                               struct rueda_tcp_ep *ep);

/* Admit, and take all connections that are being made further. */
void rueda_tcp_connecting_progress(struct rueda_tcp_hub *hub, int64_t now_ns);

/* When that is due although no socket tells; INT64_MAX: never. */
int64_t rueda_tcp_connecting_next_ns(const struct rueda_tcp_hub *hub);

/* Dial no more for ep; NULL: for no endpoint, and close what has come. */
void rueda_tcp_connecting_end(struct rueda_tcp_hub *hub,
                              const struct rueda_tcp_ep *ep);

/* Show the sockets of all of them to hub->watch. */
void rueda_tcp_connecting_show(const struct rueda_tcp_hub *hub);

/* In the child of a fork. */
void rueda_tcp_connecting_forked(const struct rueda_tcp_hub *hub);

/* Begin the handshake on fd, which this rank has dialled: both ends say which
 * rank they are, what fd is for, and how they wish it to be protected. A
 * failure shows at the first step. */
void rueda_tcp_begin_proof(struct rueda_tcp_hub *hub, int fd,
                           struct rueda_handshake *shake,
                           rueda_tcp_purpose purpose);

/* What the peer, which has proven itself, says; false: it is not of this
 * job. */
bool rueda_tcp_peer_about(const struct rueda_tcp_hub *hub,
                          const struct rueda_handshake *shake,
                          struct rueda_tcp_about *out);

/* ---- knock.c ------------------------------------------------------------ */

/* Ask after the processes of peers that are awaited; wait for none any more; in
 * the child of a fork. */
void rueda_tcp_knocking_check(struct rueda_tcp_hub *hub, int64_t now_ns);
void rueda_tcp_knocking_end(struct rueda_tcp_hub *hub);
void rueda_tcp_knocking_forked(const struct rueda_tcp_hub *hub);

/* ---- stall.c ------------------------------------------------------------ */

/* A stream to this peer broke because of cause, a value of errno. If that is
 * because bytes did not get through, add what users should check. */
void rueda_tcp_stalls_add_hint(const struct rueda_tcp_peer *peer, int cause,
                               struct rueda_text *words);

/* Look after the streams of all endpoints, about once a second. */
void rueda_tcp_stalls_check(struct rueda_tcp_hub *hub, int64_t now_ns);

#endif /* RUEDA_TRANSPORT_TCP_HUB_H */
