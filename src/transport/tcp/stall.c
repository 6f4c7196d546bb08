/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that do not get through although the host is there: frames too large
 * for the way, an address that went, a firewall that forgets connections which
 * carry nothing for a while. A peer that does not read is another thing (its
 * system says that it has no room), and may take as long as it likes.
 */
#define RUEDA_LOG_TAG "tcp"

#include <errno.h>

#include "auth/handshake.h"
#include "base/duration.h"
#include "base/log.h"
#include "transport/tcp/hub.h"

#define CHECK_NS RUEDA_S(1)
#define TELL_NS  RUEDA_S(5)

/* A system whose wait was not answered waits twice as long the next time, so
 * after a silence bytes move again within about as long as it lasted. */
#define LIMITS 4

/* A connection that was silent for less has not been forgotten. */
#define IDLE_NS RUEDA_S(2)

/* What the system counts before the first frame: the beginning of the
 * connection, and the handshake. */
#define FIRST_BYTES (1 + RUEDA_HANDSHAKE_BYTES)

static int64_t give_up_ns(const struct rueda_tcp_hub *hub)
{
    int64_t limit = LIMITS * hub->silence_ns;

    return limit > 2 * TELL_NS ? limit : 2 * TELL_NS;
}

/* ---- Why ---------------------------------------------------------------- */

/* The bytes that are stuck have been so since then; what was before? */
static void look_back(struct rueda_tcp_stall *stall, int fd, int64_t now)
{
    uint64_t frames =
        stall->taken > FIRST_BYTES ? stall->taken - FIRST_BYTES : 0;
    size_t packet = rueda_socket_packet_bytes(fd);
    int64_t silent_ns = RUEDA_MS(rueda_socket_heard_ms(fd));

    stall->has_carried = frames > 0;
    stall->has_carried_much = packet > 0 && frames > 2 * packet;
    stall->idle_ns = silent_ns - (now - stall->since_ns);
}

static void add_hint(const struct rueda_tcp_stall *stall,
                     struct rueda_text *words)
{
    bool was_idle = stall->has_carried && stall->idle_ns >= IDLE_NS;

    if (was_idle)
        rueda_text_add(words,
                       "; idle for %lld s; a firewall may have forgotten the "
                       "connection, and should keep idle ones for a minute",
                       (long long)(stall->idle_ns / 1000000000));
    if (!was_idle || !stall->has_carried_much)
        rueda_text_add(words, "; is the MTU of an interface too large for the "
                              "way?");
}

/* The system has asked on the stream that was silent the longest, and has ended
 * it for lack of an answer, while it carried nothing. */
static struct rueda_tcp_stall unanswered(const struct rueda_tcp_ep *ep)
{
    struct rueda_tcp_stall stall = {.has_carried = true,
                                    .has_carried_much = true};

    for (int i = 0; i < ep->stream_count; i++) {
        int64_t silent_ms = ep->streams[i].fd >= 0
                                ? rueda_socket_heard_ms(ep->streams[i].fd)
                                : 0;

        if (RUEDA_MS(silent_ms) > stall.idle_ns)
            stall.idle_ns = RUEDA_MS(silent_ms);
    }
    return stall;
}

void rueda_tcp_stalls_add_hint(const struct rueda_tcp_peer *peer, int cause,
                               struct rueda_text *words)
{
    struct rueda_tcp_stall stall;

    for (int i = 0; peer->stalls != NULL && i < RUEDA_TCP_MOST_STREAMS; i++) {
        if (!peer->stalls[i].is_told)
            continue;
        add_hint(&peer->stalls[i], words);
        return;
    }
    if (cause != ETIMEDOUT)
        return;
    stall = unanswered(peer->ep);
    if (stall.idle_ns >= IDLE_NS)
        add_hint(&stall, words);
}

/* ---- Looking ------------------------------------------------------------ */

static void tell(struct rueda_tcp_stall *stall, int rank, int fd, int64_t now)
{
    char text[RUEDA_ADDRESS_TEXT] = "?";
    struct rueda_text words = {{0}};
    struct rueda_address peer;

    stall->is_told = true;
    look_back(stall, fd, now);
    add_hint(stall, &words);
    if (rueda_socket_peer(fd, &peer) == RUEDA_OK)
        rueda_address_text(&peer, text, sizeof(text));
    log_warn("connected with rank %d at %s, but no bytes have got through "
             "for %d s%s",
             rank, text, (int)((now - stall->since_ns) / 1000000000),
             words.chars);
}

/* True: it is hopeless. */
static bool judge(struct rueda_tcp_hub *hub, int rank, int fd,
                  struct rueda_tcp_stall *stall, int64_t now)
{
    uint64_t taken;
    bool is_waiting;

    if (!rueda_socket_flow(fd, &taken, &is_waiting) || !is_waiting ||
        taken != stall->taken) {
        *stall = (struct rueda_tcp_stall){.taken = taken, .since_ns = now};
        return false;
    }
    if (now - stall->since_ns >= TELL_NS && !stall->is_told)
        tell(stall, rank, fd, now);
    return now - stall->since_ns >= give_up_ns(hub);
}

static void look_at(struct rueda_tcp_hub *hub, int rank, int64_t now)
{
    struct rueda_tcp_peer *peer = &hub->peers[rank];
    struct rueda_text words = {{0}};

    for (int i = 0; i < peer->ep->stream_count; i++) {
        if (peer->ep->streams[i].fd < 0 ||
            !judge(hub, rank, peer->ep->streams[i].fd, &peer->stalls[i], now))
            continue;
        rueda_text_set(&words, "connected, but no bytes got through for %d s",
                       (int)(give_up_ns(hub) / 1000000000));
        add_hint(&peer->stalls[i], &words);
        rueda_tcp_hub_lose(hub, rank, words.chars);
        return;
    }
}

/* After a long pause between checks the old times mean nothing: restart. */
static void restart(struct rueda_tcp_peer *peer, int64_t now)
{
    for (int i = 0; i < RUEDA_TCP_MOST_STREAMS; i++)
        peer->stalls[i].since_ns = now;
}

void rueda_tcp_stalls_check(struct rueda_tcp_hub *hub, int64_t now_ns)
{
    bool was_away = now_ns - hub->stall_ns > 3 * CHECK_NS;

    if (now_ns - hub->stall_ns < CHECK_NS)
        return;
    hub->stall_ns = now_ns;
    for (int rank = 0; rank < hub->size; rank++) {
        struct rueda_tcp_peer *peer = &hub->peers[rank];

        if (peer->ep == NULL || peer->ep->has_failed || peer->stalls == NULL)
            continue;
        if (was_away)
            restart(peer, now_ns);
        look_at(hub, rank, now_ns);
    }
}
