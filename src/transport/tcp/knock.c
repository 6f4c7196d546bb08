/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the process of a peer still there, with which this rank has no connection
 * any more? Its listener is open as long as it lives, so its addresses are
 * dialled, one after the other and again: a system that refuses at all of them
 * says that the process has ended. One that takes a connection, or does not
 * answer, says nothing of the kind; a silent host is for pulses (pulse.h).
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "os/clock.h"
#include "os/event.h"
#include "transport/tcp/hub.h"

/* Between two rounds of all addresses, and where the last one did not refuse.
 */
#define AGAIN_NS RUEDA_MS(20)
#define CALM_NS  RUEDA_MS(500)

/* How long an address may take to answer. */
#define ANSWER_NS RUEDA_S(1)

/* How many rounds have to be refused: an address may be taken by a process that
 * has just ended, and by the peer again in the next moment. */
#define ROUNDS 2

static void stop(struct rueda_tcp_knocking *at)
{
    rueda_fd_close(at->fd);
    at->fd = -1;
}

/* One more address has been tried: with this errno, or 0. */
static void note(const struct rueda_tcp_peer *peer,
                 struct rueda_tcp_knocking *at, int cause, int64_t now_ns)
{
    stop(at);
    if (cause == 0 || cause == ETIMEDOUT)
        at->is_answered = true;
    if (cause == ECONNREFUSED)
        at->is_refused = true;
    if (++at->address < peer->address_count && !at->is_answered)
        return;
    at->rounds = !at->is_answered && at->is_refused ? at->rounds + 1 : 0;
    at->is_gone = at->rounds >= ROUNDS;
    at->next_ns = now_ns + (at->rounds > 0 ? AGAIN_NS : CALM_NS);
    at->address = 0;
    at->is_answered = false;
    at->is_refused = false;
}

static void step(struct rueda_tcp_hub *hub, struct rueda_tcp_peer *peer,
                 int64_t now_ns)
{
    struct rueda_tcp_knocking *at = &peer->knocking;
    rueda_status status = RUEDA_OK;

    if (at->fd < 0 && now_ns < at->next_ns)
        return;
    if (at->fd < 0) {
        at->next_ns = now_ns + ANSWER_NS;
        status = rueda_socket_connect(&peer->addresses[at->address], &at->fd);
        if (status != RUEDA_OK) {
            at->fd = -1;
            note(peer, at, errno, now_ns);
            return;
        }
        rueda_tcp_hub_show(hub, at->fd);
    }
    status = rueda_socket_connected(at->fd);
    if (status == RUEDA_OK)
        note(peer, at, 0, now_ns);
    else if (status != RUEDA_IN_PROGRESS)
        note(peer, at, errno, now_ns);
    else if (now_ns >= at->next_ns)
        note(peer, at, ETIMEDOUT, now_ns);
}

void rueda_tcp_knocking_check(struct rueda_tcp_hub *hub, int64_t now_ns)
{
    for (int i = 0; i < hub->size; i++) {
        struct rueda_tcp_peer *peer = &hub->peers[i];

        if (peer->is_awaited && !peer->knocking.is_gone &&
            peer->address_count > 0)
            step(hub, peer, now_ns);
    }
}

void rueda_tcp_knocking_end(struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < hub->size; i++) {
        stop(&hub->peers[i].knocking);
        hub->peers[i].knocking = (struct rueda_tcp_knocking){.fd = -1};
        hub->peers[i].is_awaited = false;
    }
}

void rueda_tcp_knocking_forked(const struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < hub->size; i++)
        rueda_fd_close(hub->peers[i].knocking.fd);
}
