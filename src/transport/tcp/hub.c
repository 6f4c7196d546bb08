/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's share of TCP: its listeners, what it knows of its peers (addresses,
 * hosts, failures), and the periodic duties. Connections are made in
 * connecting.c, silence is found in pulse.c and stall.c, and hub_ops.c offers
 * all of it as the table of transport.h.
 */
#define RUEDA_LOG_TAG "tcp"

#include "transport/tcp/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"

#define GIVE_UP_MS 30000
#define SILENCE_MS 10000

/* While operations wait: stalled streams are looked for. */
#define NAP_NS RUEDA_S(1)

/* While a slow stream is given nothing. */
#define HELD_BACK_NAP_NS RUEDA_MS(1)

/* While they do not. */
#define GLANCE_NS RUEDA_MS(100)

void rueda_tcp_hub_show(const struct rueda_tcp_hub *hub, int fd)
{
    if (hub->watch != NULL)
        hub->watch(hub->arg, fd);
}

/* ---- Endpoints ---------------------------------------------------------- */

static void lose(struct rueda_tcp_hub *hub, int peer, const char *why,
                 rueda_log_level level)
{
    struct rueda_tcp_peer *at = &hub->peers[peer];

    if (at->ep == NULL || at->ep->has_failed)
        return;
    rueda_log(level, RUEDA_LOG_TAG, "rank %d is lost: %s", peer, why);
    if (at->why == NULL)
        at->why = calloc(1, sizeof(*at->why));
    if (at->why != NULL)
        rueda_text_set(at->why, "%s", why);
    rueda_tcp_ep_fail(at->ep);
}

void rueda_tcp_hub_lose(struct rueda_tcp_hub *hub, int peer, const char *why)
{
    lose(hub, peer, why, RUEDA_LOG_INFO);
}

void rueda_tcp_hub_accuse(struct rueda_tcp_hub *hub, int peer, const char *what)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "its connection was closed because it sent %s",
                   what);
    lose(hub, peer, words.chars, RUEDA_LOG_ERROR);
}

/* Its system, or the way there, gives up; the process there did not. */
void rueda_tcp_hub_break(struct rueda_tcp_hub *hub, int peer,
                         rueda_status status)
{
    struct rueda_text words = {{0}};
    int cause = errno;

    if (status != RUEDA_ERR_IO) {
        log_debug("rank %d: a stream ended in the middle: %s", peer,
                  strerror(cause));
        rueda_tcp_ep_fail(hub->peers[peer].ep);
        return;
    }
    rueda_text_set(&words, "the connection broke: %s", strerror(cause));
    rueda_tcp_stalls_add_hint(&hub->peers[peer], cause, &words);
    rueda_tcp_hub_lose(hub, peer, words.chars);
}

const char *rueda_tcp_hub_why(const struct rueda_tcp_hub *hub, int peer)
{
    const struct rueda_text *why = hub->peers[peer].why;

    return why != NULL && !rueda_text_is_empty(why) ? why->chars : NULL;
}

bool rueda_tcp_hub_is_silent(const struct rueda_tcp_hub *hub, int peer)
{
    return hub->pulses[hub->peers[peer].host].is_silent;
}

int rueda_tcp_hub_first_silent(const struct rueda_tcp_hub *hub)
{
    for (int rank = 0; rank < hub->size; rank++)
        if (rueda_tcp_hub_is_silent(hub, rank) &&
            rueda_tcp_hub_why(hub, rank) != NULL)
            return rank;
    return -1;
}

void rueda_tcp_hub_progress(struct rueda_tcp_hub *hub)
{
    rueda_tcp_connecting_progress(hub, rueda_clock_ns());
}

void rueda_tcp_hub_tend(struct rueda_tcp_hub *hub)
{
    int64_t now = rueda_clock_ns();

    hub->tend_ns = now;
    rueda_tcp_connecting_progress(hub, now);
    rueda_tcp_pulses_check(hub, now);
    rueda_tcp_stalls_check(hub, now);
    rueda_tcp_knocking_check(hub, now);
}

int64_t rueda_tcp_hub_patience_ns(const struct rueda_tcp_hub *hub)
{
    int64_t now = rueda_clock_ns();
    int64_t next = now + NAP_NS;
    int64_t connecting = rueda_tcp_connecting_next_ns(hub);
    int64_t pulses = rueda_tcp_pulses_next_ns(hub);

    if (connecting < next)
        next = connecting;
    if (pulses < next)
        next = pulses;
    for (int i = 0; i < hub->size; i++)
        if (hub->peers[i].ep != NULL && hub->peers[i].ep->is_held_back &&
            next > now + HELD_BACK_NAP_NS)
            next = now + HELD_BACK_NAP_NS;
    return next > now ? next - now : 0;
}

void rueda_tcp_hub_check_all(struct rueda_tcp_hub *hub)
{
    hub->checks++;
}

unsigned rueda_tcp_hub_checks(const struct rueda_tcp_hub *hub)
{
    return hub->checks;
}

void rueda_tcp_hub_glance(struct rueda_tcp_hub *hub)
{
    if (rueda_clock_ns() - hub->tend_ns >= GLANCE_NS)
        rueda_tcp_hub_tend(hub);
}

/* Streams are spread over interfaces. One that has addresses of both families
 * would be used twice, so those of the second are used last. */
static int spread_of(const struct rueda_tcp_peer *peer)
{
    const struct rueda_address *at = peer->addresses;
    int count = 1;

    while (count < peer->address_count &&
           rueda_address_is_ipv4(&at[count]) == rueda_address_is_ipv4(&at[0]))
        count++;
    return count;
}

void rueda_tcp_hub_join(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep)
{
    int rank = ep->super.peer;
    struct rueda_tcp_peer *peer = &hub->peers[rank];

    peer->ep = ep;
    if (peer->stalls == NULL)
        peer->stalls =
            calloc(RUEDA_TCP_MOST_STREAMS, sizeof(struct rueda_tcp_stall));
    rueda_tcp_attach_arrivals(hub, ep);
    rueda_tcp_pulse_want(hub, peer->host);
    if (rank < hub->rank) {
        if (ep->stream_count == 0 && rueda_tcp_probe(hub, ep) != RUEDA_OK)
            rueda_tcp_hub_lose(hub, rank, "no memory for its connections");
        return;
    }
    if (peer->address_count == 0) {
        rueda_tcp_hub_lose(hub, rank, "it told no address to reach it at");
        return;
    }
    for (int i = 0; i < hub->streams; i++)
        if (rueda_tcp_dial(hub, ep, i % spread_of(peer)) != RUEDA_OK)
            rueda_tcp_hub_lose(hub, rank, "no memory for its connections");
}

void rueda_tcp_hub_leave(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep)
{
    hub->peers[ep->super.peer].ep = NULL;
    rueda_tcp_connecting_end(hub, ep);
}

/* Terms are few, and the numbers of jobs random. */
uint64_t rueda_tcp_hub_job(const struct rueda_tcp_hub *hub)
{
    return hub->job + hub->term;
}

void rueda_tcp_hub_await(struct rueda_tcp_hub *hub, int peer)
{
    hub->peers[peer].is_awaited = true;
    rueda_tcp_pulse_want(hub, hub->peers[peer].host);
}

bool rueda_tcp_hub_is_gone(const struct rueda_tcp_hub *hub, int peer)
{
    return hub->peers[peer].knocking.is_gone;
}

void rueda_tcp_hub_begin_term(struct rueda_tcp_hub *hub, uint32_t term)
{
    for (int i = 0; i < hub->size; i++) {
        struct rueda_tcp_peer *peer = &hub->peers[i];

        if (peer->ep != NULL)
            rueda_tcp_ep_fail(peer->ep);
        if (peer->stalls != NULL)
            memset(peer->stalls, 0,
                   RUEDA_TCP_MOST_STREAMS * sizeof(*peer->stalls));
        free(peer->why);
        peer->why = NULL;
        hub->pulses[i].is_silent = false;
    }
    rueda_tcp_connecting_end(hub, NULL);
    rueda_tcp_knocking_end(hub);
    hub->term = term - 1;
    hub->words = (struct rueda_text){{0}};
}

const char *rueda_tcp_hub_last_words(const struct rueda_tcp_hub *hub)
{
    return rueda_text_is_empty(&hub->words) ? NULL : hub->words.chars;
}

void rueda_tcp_hub_hang_up(struct rueda_tcp_hub *hub, const char *words)
{
    rueda_tcp_connecting_end(hub, NULL);
    rueda_tcp_pulses_tell(hub, words);
    rueda_tcp_pulses_end(hub);
    for (int i = 0; i < hub->size; i++)
        if (hub->peers[i].ep != NULL)
            rueda_tcp_ep_fail(hub->peers[i].ep);
}

int rueda_tcp_hub_streams(const struct rueda_tcp_hub *hub)
{
    return hub->streams;
}

/* ---- Life --------------------------------------------------------------- */

static struct rueda_tcp_hub *hub_new(const struct rueda_tcp_args *args)
{
    size_t size = (size_t)args->size;
    int64_t give_up = args->give_up_ms > 0 ? args->give_up_ms : GIVE_UP_MS;
    int64_t silence = args->silence_ms > 0 ? args->silence_ms : SILENCE_MS;
    struct rueda_tcp_hub *hub = calloc(1, sizeof(*hub));

    if (hub == NULL)
        return NULL;
    hub->super.ops = &rueda_tcp_hub_ops;
    hub->rank = args->rank;
    hub->streams = args->streams;
    hub->encrypt = args->encrypt;
    hub->give_up_ns = RUEDA_MS(give_up);
    hub->silence_ns = RUEDA_MS(silence);
    hub->key = *args->key;
    for (int i = 0; i < RUEDA_TCP_MOST_ADDRESSES; i++)
        hub->listeners[i] = -1;
    hub->peers = calloc(size, sizeof(struct rueda_tcp_peer));
    hub->pulses = calloc(size, sizeof(struct rueda_tcp_pulse));
    if (hub->peers == NULL || hub->pulses == NULL) {
        rueda_tcp_hub_close(hub);
        return NULL;
    }
    hub->size = args->size;
    for (int i = 0; i < args->size; i++) {
        hub->peers[i].pulse = -1;
        hub->peers[i].knocking.fd = -1;
        rueda_tcp_pulse_init(&hub->pulses[i]);
    }
    return hub;
}

rueda_status rueda_tcp_hub_open(const struct rueda_tcp_args *args,
                                struct rueda_tcp_hub **out,
                                struct rueda_text *error)
{
    struct rueda_tcp_hub *hub = hub_new(args);

    if (hub == NULL) {
        rueda_text_set(error, "no memory for connections with %d ranks",
                       args->size);
        return RUEDA_ERR_NOMEM;
    }
    for (int i = 0; i < args->address_count; i++) {
        char text[RUEDA_ADDRESS_TEXT];

        if (rueda_socket_listen(
                &args->addresses[i], &hub->listeners[hub->address_count],
                &hub->addresses[hub->address_count]) == RUEDA_OK) {
            hub->address_count++;
            continue;
        }
        rueda_address_text(&args->addresses[i], text, sizeof(text));
        rueda_text_set(error, "rank %d cannot listen at %s: %s", args->rank,
                       text, strerror(errno));
        rueda_tcp_hub_close(hub);
        return RUEDA_ERR_IO;
    }
    if (rueda_tcp_admit(hub) != RUEDA_OK) {
        rueda_text_set(error, "rank %d cannot accept connections: %s",
                       args->rank, strerror(errno));
        rueda_tcp_hub_close(hub);
        return RUEDA_ERR_IO;
    }
    *out = hub;
    return RUEDA_OK;
}

void rueda_tcp_hub_set_job(struct rueda_tcp_hub *hub, uint64_t job)
{
    hub->job = job;
}

void rueda_tcp_hub_set_encrypt(struct rueda_tcp_hub *hub,
                               rueda_config_encrypt encrypt)
{
    hub->encrypt = encrypt;
    rueda_tcp_hub_measure_ciphers(hub);
}

void rueda_tcp_hub_measure_ciphers(struct rueda_tcp_hub *hub)
{
    rueda_cipher_load load = RUEDA_LOAD_HEADS;

    if (hub->encrypt == RUEDA_ENCRYPT_ALWAYS)
        load = RUEDA_LOAD_SEALED;
    else if (hub->encrypt == RUEDA_ENCRYPT_AUTHENTICATE)
        load = RUEDA_LOAD_PROVEN;
    if (hub->ciphers.is_open && hub->ciphers.load == load)
        return;
    rueda_ciphers_close(&hub->ciphers);
    rueda_ciphers_open(&hub->ciphers, load);
}

void rueda_tcp_hub_watch(struct rueda_tcp_hub *hub,
                         void (*watch)(void *arg, int fd), void *arg)
{
    hub->watch = watch;
    hub->arg = arg;
    rueda_tcp_connecting_show(hub);
    rueda_tcp_pulses_show(hub);
}

const struct rueda_address *
rueda_tcp_hub_addresses(const struct rueda_tcp_hub *hub, int *out_count)
{
    *out_count = hub->address_count;
    return hub->addresses;
}

rueda_status rueda_tcp_hub_locate(struct rueda_tcp_hub *hub, int peer, int host,
                                  const struct rueda_address *addresses,
                                  int count)
{
    struct rueda_address *copy =
        malloc((size_t)(count > 0 ? count : 1) * sizeof(*copy));

    if (copy == NULL)
        return RUEDA_ERR_NOMEM;
    if (count > 0)
        memcpy(copy, addresses, (size_t)count * sizeof(*copy));
    free(hub->peers[peer].addresses);
    hub->peers[peer].addresses = copy;
    hub->peers[peer].address_count = count;
    hub->peers[peer].host = host;
    if (host >= hub->host_count)
        hub->host_count = host + 1;
    return RUEDA_OK;
}

void rueda_tcp_hub_set_inside(struct rueda_tcp_hub *hub, int peer)
{
    hub->peers[peer].is_inside = true;
}

void rueda_tcp_hub_close(struct rueda_tcp_hub *hub)
{
    if (hub == NULL)
        return;
    rueda_admission_fini(&hub->admission);
    for (int i = 0; i < RUEDA_TCP_MOST_ADDRESSES; i++)
        rueda_fd_close(hub->listeners[i]);
    rueda_tcp_connecting_end(hub, NULL);
    rueda_tcp_pulses_end(hub);
    rueda_tcp_knocking_end(hub);
    for (int i = 0; i < hub->size; i++) {
        free(hub->peers[i].addresses);
        free(hub->peers[i].why);
        free(hub->peers[i].stalls);
    }
    rueda_ciphers_close(&hub->ciphers);
    rueda_key_wipe(&hub->key);
    free(hub->peers);
    free(hub->pulses);
    free(hub);
}

void rueda_tcp_hub_forked(struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < RUEDA_TCP_MOST_ADDRESSES; i++)
        rueda_fd_close(hub->listeners[i]);
    rueda_tcp_connecting_forked(hub);
    rueda_tcp_pulses_forked(hub);
    rueda_tcp_knocking_forked(hub);
    for (int i = 0; i < hub->size; i++) {
        const struct rueda_tcp_ep *ep = hub->peers[i].ep;

        for (int k = 0; ep != NULL && k < ep->stream_count; k++)
            rueda_fd_close(ep->streams[k].fd);
    }
}
