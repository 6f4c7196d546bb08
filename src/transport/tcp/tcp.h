/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport between hosts: several TCP streams towards each peer.
 *
 * A hub is what a rank has towards all peers: it listens, and makes endpoints.
 * Of two ranks the lower one dials, when its endpoint is made; the higher one
 * waits for that. Every connection proves the job's key before anything else
 * of it is read. Streams are spread over all addresses of the peer that answer;
 * an endpoint works as soon as one of them is up. frame.h has what travels,
 * ep.h how, and pulse.h how a rank knows that a host is still there.
 *
 * Calls base/, os/ and auth/. One thread at a time, the holder of the engine's
 * token.
 */
#ifndef RUEDA_TRANSPORT_TCP_TCP_H
#define RUEDA_TRANSPORT_TCP_TCP_H

#include "auth/key.h"
#include "base/config.h"
#include "base/text.h"
#include "os/tcp.h"
#include "transport/transport.h"

#define RUEDA_TCP_MOST_STREAMS   8
#define RUEDA_TCP_MOST_ADDRESSES 8

struct rueda_tcp_args {
    int rank;
    int size;
    const struct rueda_key *key; /* present; copied */

    /* Where to listen; port 0: any that is free. */
    const struct rueda_address *addresses;
    int address_count;

    int streams; /* towards each peer, 1 to RUEDA_TCP_MOST_STREAMS */
    rueda_config_encrypt encrypt;

    /* How long to look for a way to a peer, and how long its host may be silent
     * until it counts as lost (pulse.h). 0: 30 s and 10 s. */
    int64_t give_up_ms;
    int64_t silence_ms;
};

struct rueda_tcp_hub;

/* TCP's table; a struct rueda_tcp_hub begins with a struct rueda_hub. */
extern const struct rueda_hub_ops rueda_tcp_hub_ops;

/* The hub as others see it, and back. NULL stays NULL. */
struct rueda_hub *rueda_tcp_hub_super(struct rueda_tcp_hub *hub);
struct rueda_tcp_hub *rueda_tcp_hub_of(struct rueda_hub *hub);

/* Listen. On failure error has the words and nothing is left. */
rueda_status rueda_tcp_hub_open(const struct rueda_tcp_args *args,
                                struct rueda_tcp_hub **out,
                                struct rueda_text *error);

/* Where this rank can be reached. */
const struct rueda_address *
rueda_tcp_hub_addresses(const struct rueda_tcp_hub *hub, int *out_count);

/* Where a peer can be reached, and on which host it is: hosts are numbers
 * below that of ranks. To be said of all ranks, oneself included, before
 * endpoints are made. Copied. RUEDA_ERR_NOMEM. */
rueda_status rueda_tcp_hub_locate(struct rueda_tcp_hub *hub, int peer, int host,
                                  const struct rueda_address *addresses,
                                  int count);

/* The peer's host is a network namespace of this very system, as of a
 * container: what passes between the two crosses no network. To be said before
 * endpoints are made. */
void rueda_tcp_hub_set_inside(struct rueda_tcp_hub *hub, int peer);

/* A number that only the ranks of this job have; the key may be that of others
 * too. To be said before endpoints are made; 0 if it is not. */
void rueda_tcp_hub_set_job(struct rueda_tcp_hub *hub, uint64_t job);

/* How streams are protected, where that is known only after all ranks have
 * reported their setting. Before endpoints are made. */
void rueda_tcp_hub_set_encrypt(struct rueda_tcp_hub *hub,
                               rueda_config_encrypt encrypt);

/* Call watch with every socket that there is and that will be, so that it wakes
 * a sleeping thread. */
void rueda_tcp_hub_watch(struct rueda_tcp_hub *hub,
                         void (*watch)(void *arg, int fd), void *arg);

/* Make an endpoint; connections come about while it makes progress. */
rueda_status rueda_tcp_ep_open(struct rueda_tcp_hub *hub, int peer,
                               struct rueda_ep **out);

/* Fail all endpoints, and end what is in the making. Hosts with which there is
 * a pulse get the words, if these are not empty. */
void rueda_tcp_hub_hang_up(struct rueda_tcp_hub *hub, const char *words);

/* The first words that a peer has sent so; NULL: none. Borrowed from the hub.
 */
const char *rueda_tcp_hub_last_words(const struct rueda_tcp_hub *hub);

/* For a caller that is about to sleep: handle new connections, hosts that may
 * be silent, and bytes that do not get through. Endpoints may fail by it. */
void rueda_tcp_hub_tend(struct rueda_tcp_hub *hub);

/* The same for a caller that never sleeps: does nothing if it was called a
 * short while ago. */
void rueda_tcp_hub_glance(struct rueda_tcp_hub *hub);

/* To be called before the thread that drives the endpoints goes to sleep: the
 * next progress reads every stream, so that bytes which come later wake it. */
void rueda_tcp_hub_check_all(struct rueda_tcp_hub *hub);

/* How long to sleep at most: deadlines come, and slow streams become ready,
 * although no socket becomes readable. */
int64_t rueda_tcp_hub_patience_ns(const struct rueda_tcp_hub *hub);

/* Find out whether a peer and its host are there, whether or not there is an
 * endpoint with it, until the next term begins. */
void rueda_tcp_hub_await(struct rueda_tcp_hub *hub, int peer);

/* Has the process of a peer that is awaited ended, as its system says? */
bool rueda_tcp_hub_is_gone(const struct rueda_tcp_hub *hub, int peer);

/* Fail all endpoints, and drop what is in the making. From here on connect only
 * with ranks that have begun the same term, and with all of them: forget why
 * they were lost. Terms count from 1. */
void rueda_tcp_hub_begin_term(struct rueda_tcp_hub *hub, uint32_t term);

/* Is the peer lost because its host is silent? */
bool rueda_tcp_hub_is_silent(const struct rueda_tcp_hub *hub, int peer);

/* A peer that is lost because its host is silent, the lowest; -1: none. */
int rueda_tcp_hub_first_silent(const struct rueda_tcp_hub *hub);

/* Why the endpoint with a peer has failed, as far as that is known here: words
 * such as "no way there"; else NULL. Borrowed from the hub. */
const char *rueda_tcp_hub_why(const struct rueda_tcp_hub *hub, int peer);

/* After all its endpoints are closed. NULL is allowed. */
void rueda_tcp_hub_close(struct rueda_tcp_hub *hub);

/* In the child of a fork: close descriptors and touch nothing else. */
void rueda_tcp_hub_forked(struct rueda_tcp_hub *hub);

#endif /* RUEDA_TRANSPORT_TCP_TCP_H */
