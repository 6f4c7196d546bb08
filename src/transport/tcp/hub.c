/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections in the making are calls: those that we have dialled, one for each
 * stream that an endpoint should have, and those that others have. A call that
 * is through becomes a stream of its endpoint, or waits for that to be made.
 */
#define RUEDA_LOG_TAG "tcp"

#include "transport/tcp/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "base/bytes.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"

/* For one address, and for all of them together. */
#define DIAL_NS     ((int64_t)3000000000)
#define GIVE_UP_NS  ((int64_t)20000000000)
#define PAUSE_NS    ((int64_t)20000000)
#define STRANGER_NS ((int64_t)5000000000)

/* How long to sleep while calls are in the making, and while a slow stream is
 * given nothing. */
#define CALL_NAP_NS      ((int64_t)10000000)
#define HELD_BACK_NAP_NS ((int64_t)1000000)

/* Who may be at the door at a time. */
#define MOST_CALLS 256

/* Who is calling: its rank, the number of ranks. Inside the handshake. */
#define ABOUT_BYTES 8

typedef enum call_state {
    CALL_NONE,    /* a free place */
    CALL_PAUSED,  /* dials again at `due_ns` */
    CALL_DIALLED, /* connecting */
    CALL_PROVING, /* shaking hands */
    CALL_WAITING, /* through; its endpoint is not made yet */
} call_state;

struct call {
    call_state state;
    int fd;
    int peer;                /* -1: somebody who has called us */
    struct rueda_tcp_ep *ep; /* that dials; NULL: called by others */
    int address;             /* which of the peer's is tried */
    int64_t due_ns;
    int64_t give_up_ns;
    struct rueda_handshake shake;
};

struct rueda_tcp_hub {
    int rank;
    int size;
    int streams;
    unsigned looks;
    struct rueda_key key;
    void (*watch)(void *arg, int fd);
    void *arg;
    int listeners[RUEDA_TCP_MOST_ADDRESSES];
    struct rueda_address addresses[RUEDA_TCP_MOST_ADDRESSES];
    int address_count;
    struct rueda_address **peers; /* [size], or NULL: not located */
    int *peer_counts;             /* [size] */
    struct rueda_tcp_ep **eps;    /* [size] */
    struct call calls[MOST_CALLS];
};

static void show(const struct rueda_tcp_hub *hub, int fd)
{
    if (hub->watch != NULL)
        hub->watch(hub->arg, fd);
}

static struct call *free_call(struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].state == CALL_NONE)
            return &hub->calls[i];
    return NULL;
}

static void end_call(struct call *call)
{
    rueda_fd_close(call->fd);
    rueda_handshake_fini(&call->shake);
    call->state = CALL_NONE;
    call->fd = -1;
}

/* ---- Streams ------------------------------------------------------------ */

/* The call is through. */
static void attach(struct rueda_tcp_ep *ep, struct call *call)
{
    if (!ep->has_failed && ep->stream_count < RUEDA_TCP_MOST_STREAMS &&
        rueda_tcp_stream_open(&ep->streams[ep->stream_count], call->fd, NULL) ==
            RUEDA_OK) {
        ep->stream_count++;
        call->fd = -1;
    }
    end_call(call);
}

/* ---- Dialling ----------------------------------------------------------- */

/* Another address, or the same after a pause; in the end none. */
static void dial_again(struct rueda_tcp_hub *hub, struct call *call)
{
    struct rueda_tcp_ep *ep = call->ep;
    int64_t now = rueda_clock_ns();

    rueda_fd_close(call->fd);
    rueda_handshake_fini(&call->shake);
    call->fd = -1;
    call->address = (call->address + 1) % hub->peer_counts[call->peer];
    call->state = CALL_PAUSED;
    call->due_ns = now + PAUSE_NS;
    if (now < call->give_up_ns)
        return;
    call->state = CALL_NONE;
    if (ep->stream_count == 0 && !ep->has_failed) {
        log_error("rank %d cannot be reached at any of its %d addresses: %s",
                  call->peer, hub->peer_counts[call->peer], strerror(errno));
        rueda_tcp_ep_fail(ep);
    }
}

static void dial(struct rueda_tcp_hub *hub, struct call *call)
{
    const struct rueda_address *to = &hub->peers[call->peer][call->address];

    if (rueda_tcp_connect(to, &call->fd) != RUEDA_OK) {
        call->fd = -1;
        dial_again(hub, call);
        return;
    }
    call->state = CALL_DIALLED;
    call->due_ns = rueda_clock_ns() + DIAL_NS;
    show(hub, call->fd);
}

/* Both ends say who they are. A failure shows at the first step. */
static void begin_proof(struct rueda_tcp_hub *hub, struct call *call,
                        rueda_handshake_role role)
{
    unsigned char about[ABOUT_BYTES];

    rueda_put_u32(about, (uint32_t)hub->rank);
    rueda_put_u32(about + 4, (uint32_t)hub->size);
    rueda_handshake_init(&call->shake, role, &hub->key, about, sizeof(about));
    call->state = CALL_PROVING;
}

/* ---- Being called ------------------------------------------------------- */

static void answer(struct rueda_tcp_hub *hub, int listener)
{
    int fd;

    while (rueda_stream_accept(listener, &fd) == RUEDA_OK) {
        struct call *call = free_call(hub);

        if (call == NULL) {
            log_warn("somebody was turned away: too many connections");
            rueda_fd_close(fd);
            continue;
        }
        rueda_tcp_hurry(fd);
        *call = (struct call){
            .fd = fd, .peer = -1, .due_ns = rueda_clock_ns() + STRANGER_NS};
        begin_proof(hub, call, RUEDA_ACCEPTOR);
        show(hub, fd);
    }
}

/* The rank at the other end, or -1 if that is none of this job. */
static int rank_at(const struct rueda_tcp_hub *hub, const struct call *call)
{
    const unsigned char *about;
    size_t bytes;

    about = rueda_handshake_peer_about(&call->shake, &bytes);
    if (about == NULL || bytes != ABOUT_BYTES ||
        rueda_get_u32(about + 4) != (uint32_t)hub->size ||
        rueda_get_u32(about) >= (uint32_t)hub->size)
        return -1;
    return (int)rueda_get_u32(about);
}

/* ---- Calls, step by step ------------------------------------------------ */

/* We have dialled. An address may lead to somebody else, such as that of a
 * bridge which every host has. */
static void end_dialling(struct rueda_tcp_hub *hub, struct call *call,
                         rueda_status status)
{
    if (status == RUEDA_OK && rank_at(hub, call) == call->peer) {
        attach(call->ep, call);
        return;
    }
    if (status == RUEDA_ERR_AUTH || status == RUEDA_ERR_VERSION)
        log_warn("rank %d: %s", call->peer,
                 rueda_handshake_error(&call->shake));
    dial_again(hub, call);
}

/* Somebody has called. Lower ranks dial, so it is one of these. */
static void end_answering(struct rueda_tcp_hub *hub, struct call *call,
                          rueda_status status)
{
    int rank = status == RUEDA_OK ? rank_at(hub, call) : -1;

    if (rank < 0 || rank >= hub->rank) {
        log_warn("somebody was refused: %s",
                 status != RUEDA_OK ? rueda_handshake_error(&call->shake)
                                    : "not a rank that dials us");
        end_call(call);
        return;
    }
    call->peer = rank;
    call->state = CALL_WAITING;
    if (hub->eps[rank] != NULL)
        attach(hub->eps[rank], call);
}

static void prove(struct rueda_tcp_hub *hub, struct call *call)
{
    rueda_status status = rueda_shake_step(call->fd, &call->shake);

    if (status == RUEDA_IN_PROGRESS)
        return;
    if (call->ep != NULL)
        end_dialling(hub, call, status);
    else
        end_answering(hub, call, status);
}

static void step(struct rueda_tcp_hub *hub, struct call *call, int64_t now)
{
    rueda_status status;

    switch (call->state) {
    case CALL_PAUSED:
        if (now >= call->due_ns)
            dial(hub, call);
        break;
    case CALL_DIALLED:
        status = rueda_tcp_connected(call->fd);
        if (status == RUEDA_OK)
            begin_proof(hub, call, RUEDA_INITIATOR);
        else if (status < 0 || now >= call->due_ns)
            dial_again(hub, call);
        break;
    case CALL_PROVING:
        prove(hub, call);
        break;
    case CALL_NONE:
    case CALL_WAITING:
        return;
    }
    if (call->state == CALL_PROVING && now >= call->due_ns) {
        if (call->ep != NULL)
            dial_again(hub, call);
        else
            end_call(call);
    }
}

void rueda_tcp_hub_progress(struct rueda_tcp_hub *hub)
{
    int64_t now = rueda_clock_ns();

    for (int i = 0; i < hub->address_count; i++)
        answer(hub, hub->listeners[i]);
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].state != CALL_NONE)
            step(hub, &hub->calls[i], now);
}

void rueda_tcp_hub_join(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep)
{
    int peer = ep->super.peer;
    int64_t now = rueda_clock_ns();

    hub->eps[peer] = ep;
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].state == CALL_WAITING && hub->calls[i].peer == peer)
            attach(ep, &hub->calls[i]);
    if (peer < hub->rank)
        return;
    for (int i = 0; i < hub->streams; i++) {
        struct call *call = free_call(hub);

        if (call == NULL || hub->peer_counts[peer] == 0)
            break;
        *call = (struct call){.state = CALL_PAUSED,
                              .fd = -1,
                              .peer = peer,
                              .ep = ep,
                              .address = i % hub->peer_counts[peer],
                              .give_up_ns = now + GIVE_UP_NS};
        dial(hub, call);
    }
}

void rueda_tcp_hub_leave(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep)
{
    hub->eps[ep->super.peer] = NULL;
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].state != CALL_NONE && hub->calls[i].ep == ep)
            end_call(&hub->calls[i]);
}

void rueda_tcp_hub_hang_up(struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].state != CALL_NONE)
            end_call(&hub->calls[i]);
    for (int i = 0; i < hub->size; i++)
        if (hub->eps[i] != NULL)
            rueda_tcp_ep_fail(hub->eps[i]);
}

int64_t rueda_tcp_hub_patience_ns(const struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < hub->size; i++)
        if (hub->eps[i] != NULL && hub->eps[i]->is_held_back)
            return HELD_BACK_NAP_NS;
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].state != CALL_NONE &&
            hub->calls[i].state != CALL_WAITING)
            return CALL_NAP_NS;
    return -1;
}

int rueda_tcp_hub_streams(const struct rueda_tcp_hub *hub)
{
    return hub->streams;
}

void rueda_tcp_hub_look_at_all(struct rueda_tcp_hub *hub)
{
    hub->looks++;
}

unsigned rueda_tcp_hub_looks(const struct rueda_tcp_hub *hub)
{
    return hub->looks;
}

/* ---- Life --------------------------------------------------------------- */

static struct rueda_tcp_hub *hub_new(const struct rueda_tcp_args *args)
{
    size_t size = (size_t)args->size;
    struct rueda_tcp_hub *hub = calloc(1, sizeof(*hub));

    if (hub == NULL)
        return NULL;
    hub->rank = args->rank;
    hub->size = args->size;
    hub->streams = args->streams;
    hub->key = *args->key;
    for (int i = 0; i < MOST_CALLS; i++)
        hub->calls[i].fd = -1;
    for (int i = 0; i < RUEDA_TCP_MOST_ADDRESSES; i++)
        hub->listeners[i] = -1;
    hub->peers = calloc(size, sizeof(struct rueda_address *));
    hub->peer_counts = calloc(size, sizeof(int));
    hub->eps = calloc(size, sizeof(struct rueda_tcp_ep *));
    if (hub->peers == NULL || hub->peer_counts == NULL || hub->eps == NULL) {
        hub->size = 0;
        rueda_tcp_hub_close(hub);
        return NULL;
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

        if (rueda_tcp_listen(&args->addresses[i],
                             &hub->listeners[hub->address_count],
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
    *out = hub;
    return RUEDA_OK;
}

void rueda_tcp_hub_watch(struct rueda_tcp_hub *hub,
                         void (*watch)(void *arg, int fd), void *arg)
{
    hub->watch = watch;
    hub->arg = arg;
    for (int i = 0; i < hub->address_count; i++)
        watch(arg, hub->listeners[i]);
    for (int i = 0; i < MOST_CALLS; i++)
        if (hub->calls[i].fd >= 0)
            watch(arg, hub->calls[i].fd);
}

const struct rueda_address *
rueda_tcp_hub_addresses(const struct rueda_tcp_hub *hub, int *out_count)
{
    *out_count = hub->address_count;
    return hub->addresses;
}

rueda_status rueda_tcp_hub_locate(struct rueda_tcp_hub *hub, int peer,
                                  const struct rueda_address *addresses,
                                  int count)
{
    struct rueda_address *copy =
        malloc((size_t)(count > 0 ? count : 1) * sizeof(*copy));

    if (copy == NULL)
        return RUEDA_ERR_NOMEM;
    memcpy(copy, addresses, (size_t)count * sizeof(*copy));
    free(hub->peers[peer]);
    hub->peers[peer] = copy;
    hub->peer_counts[peer] = count;
    return RUEDA_OK;
}

static void close_sockets(struct rueda_tcp_hub *hub)
{
    for (int i = 0; i < RUEDA_TCP_MOST_ADDRESSES; i++)
        rueda_fd_close(hub->listeners[i]);
    for (int i = 0; i < MOST_CALLS; i++)
        rueda_fd_close(hub->calls[i].fd);
}

void rueda_tcp_hub_close(struct rueda_tcp_hub *hub)
{
    if (hub == NULL)
        return;
    close_sockets(hub);
    for (int i = 0; i < MOST_CALLS; i++)
        rueda_handshake_fini(&hub->calls[i].shake);
    for (int i = 0; i < hub->size; i++)
        free(hub->peers[i]);
    rueda_key_wipe(&hub->key);
    free(hub->peers);
    free(hub->peer_counts);
    free(hub->eps);
    free(hub);
}

void rueda_tcp_hub_forked(struct rueda_tcp_hub *hub)
{
    close_sockets(hub);
    for (int i = 0; i < hub->size; i++)
        for (int k = 0; hub->eps[i] != NULL && k < hub->eps[i]->stream_count;
             k++)
            rueda_fd_close(hub->eps[i]->streams[k].fd);
}
