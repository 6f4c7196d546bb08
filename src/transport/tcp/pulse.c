/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pulses: made, kept, and judged (pulse.h). A pulse that breaks puts its host
 * in doubt; then all its addresses are dialled at the same time, and the first
 * answer of its system clears it. A pulse also carries the last words of a rank
 * that hangs up.
 */
#define RUEDA_LOG_TAG "tcp"

#include "transport/tcp/pulse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "base/duration.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "transport/tcp/hub.h"

/* One question without an answer makes a system doubt, which is two seconds
 * after the last sign of life. */
#define QUESTIONS 1
#define KERNEL_NS RUEDA_S(2)

/* Between two knocks, and the least time for them however low the limit. */
#define KNOCK_NS RUEDA_MS(100)
#define LEAST_NS RUEDA_MS(300)

/* A host that is there, but has no rank that would hold a pulse. */
#define AGAIN_NS RUEDA_S(1)

/* How a pulse is. */
typedef enum state {
    BEATS,
    ENDED,  /* by its process */
    SILENT, /* there is no answer any more */
} state;

void rueda_tcp_pulse_init(struct rueda_tcp_pulse *pulse)
{
    *pulse = (struct rueda_tcp_pulse){.fd = -1, .peer = -1};
    for (int i = 0; i < RUEDA_TCP_KNOCKS; i++)
        pulse->knocks[i] = (struct rueda_tcp_knock){.fd = -1, .peer = -1};
}

static void stop_knocking(struct rueda_tcp_pulse *pulse)
{
    for (int i = 0; i < RUEDA_TCP_KNOCKS; i++) {
        rueda_fd_close(pulse->knocks[i].fd);
        pulse->knocks[i].fd = -1;
    }
    pulse->deadline_ns = 0;
}

/* Close ours. */
static void drop(struct rueda_tcp_pulse *pulse)
{
    rueda_fd_close(pulse->fd);
    pulse->fd = -1;
    if (pulse->shake != NULL)
        rueda_handshake_fini(pulse->shake);
    free(pulse->shake);
    pulse->shake = NULL;
}

void rueda_tcp_pulse_fini(struct rueda_tcp_pulse *pulse)
{
    stop_knocking(pulse);
    drop(pulse);
}

static bool has_pulse(const struct rueda_tcp_pulse *pulse)
{
    return pulse->fd >= 0 || pulse->theirs > 0;
}

/* ---- Knocking ----------------------------------------------------------- */

/* The next rank of the host, from `after` on, that we have something to do
 * with; -1: none. */
static int next_peer(const struct rueda_tcp_hub *hub, int host, int after)
{
    for (int i = 1; i <= hub->size; i++) {
        int rank = (after + i) % hub->size;
        const struct rueda_tcp_peer *peer = &hub->peers[rank];

        const bool has_ep = peer->ep != NULL && !peer->ep->has_failed;

        if (peer->host == host && (has_ep || peer->is_awaited) &&
            peer->address_count > 0)
            return rank;
    }
    return -1;
}

/* One more knock: the addresses of a rank one after another, then the next
 * rank. The oldest knock makes room. */
static void knock(struct rueda_tcp_hub *hub, int host, int64_t now)
{
    struct rueda_tcp_pulse *pulse = &hub->pulses[host];
    struct rueda_tcp_knock *at =
        &pulse->knocks[pulse->count % RUEDA_TCP_KNOCKS];
    int peer = next_peer(hub, host, pulse->peer);
    int address;

    if (peer < 0) {
        pulse->is_wanted = false;
        stop_knocking(pulse);
        return;
    }
    address = pulse->count % hub->peers[peer].address_count;
    if (address == hub->peers[peer].address_count - 1)
        pulse->peer = peer;
    pulse->count++;
    pulse->knock_ns = now + KNOCK_NS;
    rueda_fd_close(at->fd);
    at->fd = -1;
    at->peer = peer;
    if (rueda_socket_connect(&hub->peers[peer].addresses[address], &at->fd) ==
        RUEDA_OK) {
        if (rueda_stream_is_short(pulse->cause))
            pulse->cause = 0;
        rueda_tcp_hub_show(hub, at->fd);
        return;
    }
    at->fd = -1;
    pulse->cause = errno;
}

static bool adopt(struct rueda_tcp_hub *hub, struct rueda_tcp_pulse *pulse,
                  struct rueda_tcp_knock *from)
{
    pulse->shake = calloc(1, sizeof(*pulse->shake));
    if (pulse->shake == NULL)
        return false;
    pulse->fd = from->fd;
    pulse->peer = from->peer;
    from->fd = -1;
    rueda_socket_keep_alive(pulse->fd, QUESTIONS);
    rueda_socket_limit_silence(pulse->fd, KERNEL_NS / 1000000);
    rueda_tcp_begin_proof(hub, pulse->fd, pulse->shake, RUEDA_TCP_FOR_PULSE);
    return true;
}

/* Has any address answered? */
static void listen_to_knocks(struct rueda_tcp_hub *hub,
                             struct rueda_tcp_pulse *pulse, int64_t now)
{
    for (int i = 0; i < RUEDA_TCP_KNOCKS; i++) {
        struct rueda_tcp_knock *at = &pulse->knocks[i];
        rueda_status status;

        if (at->fd < 0)
            continue;
        status = rueda_socket_connected(at->fd);
        if (status == RUEDA_IN_PROGRESS)
            continue;
        if (status == RUEDA_OK && adopt(hub, pulse, at)) {
            pulse->was_heard = true;
            stop_knocking(pulse);
            return;
        }
        pulse->cause = errno;
        rueda_fd_close(at->fd);
        at->fd = -1;
        if (pulse->cause != ECONNREFUSED && pulse->cause != ECONNRESET)
            continue;
        /* Its system says that the process is gone; so that is there. */
        pulse->was_heard = true;
        stop_knocking(pulse);
        pulse->knock_ns = now + AGAIN_NS;
        return;
    }
}

/* When a host was last heard, on any connection with it; 0: not known. A rank
 * that was busy may see only now that a pulse broke long ago. */
static int64_t last_heard(const struct rueda_tcp_hub *hub, int host,
                          int64_t now)
{
    int64_t latest = 0;

    for (int rank = 0; rank < hub->size; rank++) {
        const struct rueda_tcp_ep *ep = hub->peers[rank].ep;

        if (hub->peers[rank].host != host || ep == NULL)
            continue;
        for (int i = 0; i < ep->stream_count; i++) {
            int64_t ago = ep->streams[i].fd >= 0
                              ? rueda_socket_heard_ms(ep->streams[i].fd)
                              : -1;

            if (ago >= 0 && now - ago * 1000000 > latest)
                latest = now - ago * 1000000;
        }
    }
    return latest;
}

/* ---- Is it silent? ----------------------------------------------------- */

static void lose_host(struct rueda_tcp_hub *hub, int host)
{
    struct rueda_tcp_pulse *pulse = &hub->pulses[host];
    struct rueda_text words = {{0}};

    if (rueda_stream_is_short(pulse->cause)) {
        rueda_text_set(&words,
                       "this rank cannot ask its host whether it is there: "
                       "%s%s",
                       strerror(pulse->cause),
                       rueda_stream_remedy(pulse->cause));
    } else if (pulse->was_heard) {
        pulse->is_silent = true;
        rueda_text_set(&words, "its host has been silent for %.1f s",
                       (double)hub->silence_ns / 1e9);
    } else {
        rueda_text_set(&words, "its host has not answered for %lld s: %s",
                       (long long)(hub->give_up_ns / 1000000000),
                       strerror(pulse->cause != 0 ? pulse->cause : ETIMEDOUT));
    }
    stop_knocking(pulse);
    drop(pulse);
    pulse->is_wanted = false;
    for (int rank = 0; rank < hub->size; rank++)
        if (hub->peers[rank].host == host)
            rueda_tcp_hub_lose(hub, rank, words.chars);
}

static void look_for(struct rueda_tcp_hub *hub, int host, int64_t now)
{
    struct rueda_tcp_pulse *pulse = &hub->pulses[host];

    listen_to_knocks(hub, pulse, now);
    if (has_pulse(pulse) || now < pulse->knock_ns)
        return;
    if (pulse->deadline_ns == 0)
        pulse->deadline_ns =
            now + (pulse->was_heard ? hub->silence_ns : hub->give_up_ns);
    if (now >= pulse->deadline_ns) {
        int64_t limit = last_heard(hub, host, now) + hub->silence_ns;

        if (now >= limit) {
            lose_host(hub, host);
            return;
        }
        pulse->deadline_ns = limit;
    }
    knock(hub, host, now);
}

/* ---- Beating ------------------------------------------------------------ */

/* Take the last words of a peer. What an attacker on the way has written is not
 * shown. */
static void hear_words(struct rueda_tcp_hub *hub, struct rueda_seal *seal,
                       const unsigned char *message, size_t len)
{
    char words[RUEDA_TEXT_BYTES];

    if (len <= RUEDA_SEAL_TAG_BYTES ||
        rueda_seal_open(seal, message + RUEDA_SEAL_TAG_BYTES,
                        len - RUEDA_SEAL_TAG_BYTES, message,
                        words) != RUEDA_OK) {
        log_warn("words came on a connection that tells whether a host is "
                 "there, and they are not what its rank has sealed: they were "
                 "changed on the way");
        return;
    }
    len -= RUEDA_SEAL_TAG_BYTES;
    for (size_t i = 0; i < len; i++)
        if (words[i] < ' ' || words[i] > '~')
            words[i] = '?';
    words[len] = '\0';
    rueda_text_set(&hub->words, "%s", words);
}

/* Nothing is to come; so what comes is the end, and perhaps why. */
static state feel(struct rueda_tcp_hub *hub, int fd, struct rueda_seal *seal)
{
    unsigned char message[RUEDA_SEAL_TAG_BYTES + RUEDA_TEXT_BYTES - 1];
    size_t moved;
    rueda_status status =
        rueda_stream_recv(fd, message, sizeof(message), &moved);

    if (status == RUEDA_IN_PROGRESS)
        return BEATS;
    if (moved > 0)
        hear_words(hub, seal, message, moved);
    return status == RUEDA_ERR_IO ? SILENT : ENDED;
}

static void tell(int fd, struct rueda_seal *seal, const char *words)
{
    unsigned char message[RUEDA_SEAL_TAG_BYTES + RUEDA_TEXT_BYTES];
    size_t len = strlen(words);
    size_t moved;

    if (fd < 0)
        return;
    if (len >= RUEDA_TEXT_BYTES)
        len = RUEDA_TEXT_BYTES - 1;
    if (rueda_seal_close(seal, words, len, message + RUEDA_SEAL_TAG_BYTES,
                         message) == RUEDA_OK)
        rueda_stream_send(fd, message, RUEDA_SEAL_TAG_BYTES + len, &moved);
}

void rueda_tcp_pulses_tell(const struct rueda_tcp_hub *hub, const char *words)
{
    if (words[0] == '\0')
        return;
    for (int i = 0; i < hub->size; i++) {
        if (hub->pulses[i].shake == NULL)
            tell(hub->pulses[i].fd, &hub->pulses[i].seals.out, words);
        tell(hub->peers[i].pulse, &hub->peers[i].pulse_seals.out, words);
    }
}

/* The same while the other end proves itself, for which it has time: it may be
 * at work, and its system answers already. */
static state feel_ours(struct rueda_tcp_hub *hub, struct rueda_tcp_pulse *pulse)
{
    struct rueda_tcp_about them;
    rueda_status status;

    if (pulse->shake == NULL)
        return feel(hub, pulse->fd, &pulse->seals.in);
    status = rueda_shake_step(pulse->fd, pulse->shake);
    if (status == RUEDA_IN_PROGRESS)
        return BEATS;
    if (status != RUEDA_OK)
        return status == RUEDA_ERR_IO ? SILENT : ENDED;
    if (!rueda_tcp_peer_about(hub, pulse->shake, &them) ||
        them.rank != pulse->peer)
        return ENDED; /* another process has that address, too */
    rueda_seal_pair(rueda_handshake_session_key(pulse->shake), RUEDA_INITIATOR,
                    &pulse->seals.out, &pulse->seals.in);
    rueda_handshake_fini(pulse->shake);
    free(pulse->shake);
    pulse->shake = NULL;
    return BEATS;
}

/* The host is there without a pulse, or it is doubted. */
static void lost_pulse(struct rueda_tcp_hub *hub, int host, state how,
                       int64_t now)
{
    struct rueda_tcp_pulse *pulse = &hub->pulses[host];
    int64_t left = hub->silence_ns - KERNEL_NS;

    if (how == ENDED) {
        pulse->knock_ns = now + KNOCK_NS;
        return;
    }
    log_info("host %d does not answer; knocking", host);
    pulse->was_heard = true;
    pulse->deadline_ns = now + (left > LEAST_NS ? left : LEAST_NS);
    pulse->knock_ns = now;
}

static void feel_theirs(struct rueda_tcp_hub *hub, int64_t now)
{
    for (int rank = 0; rank < hub->size; rank++) {
        struct rueda_tcp_peer *peer = &hub->peers[rank];
        state how;

        if (peer->pulse < 0)
            continue;
        how = feel(hub, peer->pulse, &peer->pulse_seals.in);
        if (how == BEATS)
            continue;
        rueda_fd_close(peer->pulse);
        peer->pulse = -1;
        hub->pulses[peer->host].theirs--;
        lost_pulse(hub, peer->host, how, now);
    }
}

void rueda_tcp_pulses_check(struct rueda_tcp_hub *hub, int64_t now_ns)
{
    feel_theirs(hub, now_ns);
    for (int host = 0; host < hub->host_count; host++) {
        struct rueda_tcp_pulse *pulse = &hub->pulses[host];
        state how = pulse->fd >= 0 ? feel_ours(hub, pulse) : BEATS;

        if (how != BEATS) {
            drop(pulse);
            lost_pulse(hub, host, how, now_ns);
        }
        /* Also if there is one of theirs by now: a peer may answer. */
        if (pulse->is_wanted && pulse->fd < 0)
            look_for(hub, host, now_ns);
    }
}

int64_t rueda_tcp_pulses_next_ns(const struct rueda_tcp_hub *hub)
{
    int64_t next = INT64_MAX;

    for (int host = 0; host < hub->host_count; host++) {
        const struct rueda_tcp_pulse *pulse = &hub->pulses[host];

        if (pulse->is_wanted && !has_pulse(pulse) && pulse->knock_ns < next)
            next = pulse->knock_ns;
    }
    return next;
}

/* ---- Beginning and end -------------------------------------------------- */

void rueda_tcp_pulse_want(struct rueda_tcp_hub *hub, int host)
{
    struct rueda_tcp_pulse *pulse = &hub->pulses[host];

    if (host == hub->peers[hub->rank].host || pulse->is_wanted)
        return;
    pulse->is_wanted = true;
    if (!has_pulse(pulse))
        look_for(hub, host, rueda_clock_ns());
}

void rueda_tcp_pulse_take(struct rueda_tcp_hub *hub, int peer, int fd,
                          const struct rueda_key *session)
{
    struct rueda_tcp_pulse *pulse = &hub->pulses[hub->peers[peer].host];
    struct rueda_tcp_pulse_seals *seals = &hub->peers[peer].pulse_seals;

    rueda_socket_keep_alive(fd, QUESTIONS);
    rueda_socket_limit_silence(fd, KERNEL_NS / 1000000);
    if (hub->peers[peer].pulse >= 0)
        rueda_fd_close(hub->peers[peer].pulse);
    else
        pulse->theirs++;
    hub->peers[peer].pulse = fd;
    rueda_seal_pair(session, RUEDA_ACCEPTOR, &seals->out, &seals->in);
    pulse->was_heard = true;
    pulse->deadline_ns = 0;
}

void rueda_tcp_pulses_show(const struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < hub->size; i++) {
        if (hub->pulses[i].fd >= 0)
            rueda_tcp_hub_show(hub, hub->pulses[i].fd);
        if (hub->peers[i].pulse >= 0)
            rueda_tcp_hub_show(hub, hub->peers[i].pulse);
    }
}

void rueda_tcp_pulses_forked(const struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < hub->size; i++) {
        rueda_fd_close(hub->pulses[i].fd);
        rueda_fd_close(hub->peers[i].pulse);
        for (int k = 0; k < RUEDA_TCP_KNOCKS; k++)
            rueda_fd_close(hub->pulses[i].knocks[k].fd);
    }
}

void rueda_tcp_pulses_end(struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < hub->size; i++) {
        rueda_tcp_pulse_fini(&hub->pulses[i]);
        hub->pulses[i].is_wanted = false;
        hub->pulses[i].theirs = 0;
        rueda_fd_close(hub->peers[i].pulse);
        hub->peers[i].pulse = -1;
    }
}
