/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that do not get through although the host is there: frames too large
 * for the way, an address that went. A peer that does not read is another thing
 * (its system says that it has no room), and may take as long as it likes.
 */
#define RUEDA_LOG_TAG "tcp"

#include "base/duration.h"
#include "base/log.h"
#include "transport/tcp/hub.h"

#define CHECK_NS RUEDA_S(1)
#define TELL_NS  RUEDA_S(5)

/* A system whose wait was not answered waits twice as long the next time, so
 * after a silence bytes move again within about as long as it lasted. */
#define LIMITS 4

static int64_t give_up_ns(const struct rueda_tcp_hub *hub)
{
    int64_t limit = LIMITS * hub->silence_ns;

    return limit > 2 * TELL_NS ? limit : 2 * TELL_NS;
}

/* True: it is hopeless. */
static bool judge(struct rueda_tcp_hub *hub, int rank, int fd,
                  struct rueda_tcp_stall *stall, int64_t now)
{
    char text[RUEDA_ADDRESS_TEXT] = "?";
    struct rueda_address peer;
    uint64_t taken;
    bool is_waiting;

    if (!rueda_socket_flow(fd, &taken, &is_waiting) || !is_waiting ||
        taken != stall->taken) {
        *stall = (struct rueda_tcp_stall){.taken = taken, .since_ns = now};
        return false;
    }
    if (now - stall->since_ns >= TELL_NS && !stall->is_told) {
        stall->is_told = true;
        if (rueda_socket_peer(fd, &peer) == RUEDA_OK)
            rueda_address_text(&peer, text, sizeof(text));
        log_warn("connected with rank %d at %s, but no bytes have got through "
                 "for %d s; " RUEDA_TCP_STALL_HINT,
                 rank, text, (int)((now - stall->since_ns) / 1000000000));
    }
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
        rueda_text_set(&words,
                       "connected, but no bytes got through for %d "
                       "s; " RUEDA_TCP_STALL_HINT,
                       (int)(give_up_ns(hub) / 1000000000));
        rueda_tcp_hub_lose(hub, rank, words.chars);
        return;
    }
}

bool rueda_tcp_stalls_are_told(const struct rueda_tcp_peer *peer)
{
    for (int i = 0; peer->stalls != NULL && i < RUEDA_TCP_MOST_STREAMS; i++)
        if (peer->stalls[i].is_told)
            return true;
    return false;
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
