/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections in the making are calls: those that we have dialled, one for each
 * stream that an endpoint should have, and those that others have. A call that
 * is through becomes a stream of its endpoint, or waits for that to be made, or
 * is a pulse.
 *
 * Anybody can call. Until a caller has proven itself it is a stranger: there
 * are MOST_STRANGERS of them at a time, and who comes then takes the place of
 * the oldest. A rank that lost its place so dials again.
 */
#define RUEDA_LOG_TAG "tcp"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "transport/tcp/hub.h"

/* For one address; for the answer of a process that may be at work for long,
 * twice as much each time. */
#define DIAL_NS     ((int64_t)3000000000)
#define PATIENCE_NS ((int64_t)60000000000)
#define PAUSE_NS    ((int64_t)20000000)
#define STRANGER_NS ((int64_t)5000000000)

/* How often to knock at who should call us, and how long that may be refused:
 * who opens a listener at all has done so before others learnt of it. */
#define KNOCK_NS   ((int64_t)1000000000)
#define REFUSED_NS ((int64_t)500000000)
#define NEVER      INT64_MAX

/* Who may be at the door at a time, and how many are let in in one turn. */
#define MOST_STRANGERS 64
#define MOST_ANSWERS   256

typedef enum call_state {
    CALL_ENDED,   /* to be freed */
    CALL_PAUSED,  /* dials again at `due_ns` */
    CALL_DIALLED, /* connecting */
    CALL_PROVING, /* shaking hands */
    CALL_WAITING, /* through; its endpoint is not made yet */
} call_state;

struct rueda_tcp_call {
    struct rueda_tcp_call *next;
    call_state state;
    int fd;
    int peer;                /* -1: somebody who has called us */
    struct rueda_tcp_ep *ep; /* that dials; NULL: called by others */
    int address;             /* which of the peer's is tried */
    int64_t due_ns;
    int64_t give_up_ns;
    int64_t patience_ns;
    struct rueda_address from; /* of who has called us */
    struct rueda_text why;     /* the last address led nowhere */
    bool is_sealed;            /* as both ends have agreed */
    bool is_knock;             /* of who waits to be called: are they there? */
    struct rueda_handshake shake;
};

static void end_call(struct rueda_tcp_call *call)
{
    rueda_fd_close(call->fd);
    rueda_handshake_fini(&call->shake);
    call->state = CALL_ENDED;
    call->fd = -1;
}

/* Free those that have ended. */
static void sweep(struct rueda_tcp_hub *hub)
{
    struct rueda_tcp_call **at = &hub->calls;

    while (*at != NULL) {
        struct rueda_tcp_call *call = *at;

        if (call->state == CALL_ENDED) {
            *at = call->next;
            free(call);
        } else {
            at = &call->next;
        }
    }
}

static struct rueda_tcp_call *call_new(struct rueda_tcp_hub *hub)
{
    struct rueda_tcp_call *call = calloc(1, sizeof(*call));

    if (call == NULL)
        return NULL;
    call->fd = -1;
    call->peer = -1;
    call->next = hub->calls;
    hub->calls = call;
    return call;
}

/* ---- Who is who --------------------------------------------------------- */

static struct rueda_tcp_about about_us(const struct rueda_tcp_hub *hub, int fd,
                                       rueda_tcp_purpose purpose)
{
    struct rueda_address peer;
    bool is_near =
        rueda_tcp_peer(fd, &peer) == RUEDA_OK && rueda_address_is_near(&peer);

    return (struct rueda_tcp_about){
        .rank = hub->rank,
        .size = hub->size,
        .job = hub->job,
        .purpose = purpose,
        .wish = rueda_tcp_wish_of(hub->encrypt, is_near)};
}

void rueda_tcp_calls_begin_proof(const struct rueda_tcp_hub *hub, int fd,
                                 struct rueda_handshake *shake,
                                 rueda_handshake_role role,
                                 rueda_tcp_purpose purpose)
{
    const struct rueda_tcp_about about = about_us(hub, fd, purpose);
    unsigned char bytes[RUEDA_TCP_ABOUT_BYTES];

    rueda_tcp_about_encode(&about, bytes);
    rueda_handshake_init(shake, role, rueda_tcp_purpose_of(role, purpose),
                         &hub->key, bytes, sizeof(bytes));
}

bool rueda_tcp_calls_who(const struct rueda_tcp_hub *hub,
                         const struct rueda_handshake *shake,
                         struct rueda_tcp_about *out)
{
    const struct rueda_tcp_about ours = {
        .rank = hub->rank, .size = hub->size, .job = hub->job};
    const void *bytes;
    size_t len = 0;

    bytes = rueda_handshake_peer_about(shake, &len);
    return rueda_tcp_about_decode(bytes, len, out) &&
           rueda_tcp_about_fits(&ours, out) &&
           (shake->role == RUEDA_INITIATOR ||
            rueda_handshake_purpose(shake) ==
                rueda_tcp_purpose_of(RUEDA_INITIATOR, out->purpose));
}

/* ---- Streams ------------------------------------------------------------ */

/* Do both ends want the same? The peer comes to the same result. */
static rueda_status agree(const struct rueda_tcp_hub *hub,
                          struct rueda_tcp_call *call,
                          const struct rueda_tcp_about *theirs,
                          struct rueda_text *error)
{
    const struct rueda_tcp_about ours =
        about_us(hub, call->fd, RUEDA_TCP_FOR_STREAM);

    return rueda_tcp_agree(&ours, theirs, &call->is_sealed, error);
}

static rueda_status make_stream(struct rueda_tcp_ep *ep,
                                const struct rueda_tcp_call *call)
{
    rueda_handshake_role role =
        call->ep != NULL ? RUEDA_INITIATOR : RUEDA_ACCEPTOR;
    struct rueda_tcp_cover *cover = NULL;
    rueda_status status = RUEDA_OK;

    if (ep->has_failed || ep->stream_count == RUEDA_TCP_MOST_STREAMS)
        return RUEDA_ERR_CLOSED;
    if (call->is_sealed)
        status = rueda_tcp_cover_new(
            rueda_handshake_session_key(&call->shake), role,
            ep->hub->encrypt == RUEDA_ENCRYPT_AUTHENTICATE, &cover);
    if (status == RUEDA_OK)
        status = rueda_tcp_stream_open(&ep->streams[ep->stream_count], call->fd,
                                       cover);
    if (status != RUEDA_OK)
        rueda_tcp_cover_free(cover);
    else if (ep->hub->peers[ep->super.peer].is_inside ||
             rueda_tcp_is_inside(call->fd))
        rueda_tcp_hurry_inside(call->fd);
    return status;
}

/* The call is through. */
static void attach(struct rueda_tcp_ep *ep, struct rueda_tcp_call *call)
{
    rueda_status status = make_stream(ep, call);

    if (status == RUEDA_OK) {
        ep->stream_count++;
        call->fd = -1;
    }
    end_call(call);
    if (status == RUEDA_ERR_NOMEM)
        rueda_tcp_hub_lose(ep->hub, ep->super.peer,
                           "this rank is out of memory for a connection");
}

void rueda_tcp_calls_find(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep)
{
    for (struct rueda_tcp_call *at = hub->calls; at != NULL; at = at->next)
        if (at->state == CALL_WAITING && at->peer == ep->super.peer)
            attach(ep, at);
    sweep(hub);
}

/* ---- Dialling ----------------------------------------------------------- */

/* No address leads there. */
static void give_up(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call)
{
    struct rueda_text words = {{0}};

    end_call(call);
    if (call->ep->stream_count > 0)
        return; /* it works with fewer streams */
    if (call->is_knock)
        rueda_text_set(&words, "it has left, or is gone; %s", call->why.chars);
    else
        rueda_text_set(
            &words, "there is no way to it, tried for %lld s; last: %s",
            (long long)(hub->give_up_ns / 1000000000), call->why.chars);
    rueda_tcp_hub_lose(hub, call->peer, words.chars);
}

/* Another address, or the same after a pause; in the end none. */
static void dial_again(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                       const char *why)
{
    const struct rueda_tcp_peer *peer = &hub->peers[call->peer];
    int64_t now = rueda_clock_ns();
    int cause = errno;
    char text[RUEDA_ADDRESS_TEXT];

    rueda_address_text(&peer->addresses[call->address], text, sizeof(text));
    call->why.chars[0] = '\0';
    rueda_text_set(&call->why, "%s: %s", text, why);
    rueda_fd_close(call->fd);
    rueda_handshake_fini(&call->shake);
    call->fd = -1;
    call->address = (call->address + 1) % peer->address_count;
    call->state = CALL_PAUSED;
    call->due_ns = now + PAUSE_NS;
    if (call->is_knock && cause == ECONNREFUSED && call->give_up_ns == NEVER)
        call->give_up_ns = now + REFUSED_NS;
    if (now >= call->give_up_ns)
        give_up(hub, call);
}

static void dial(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call)
{
    const struct rueda_address *to =
        &hub->peers[call->peer].addresses[call->address];

    if (rueda_tcp_connect(to, &call->fd) != RUEDA_OK) {
        call->fd = -1;
        dial_again(hub, call, strerror(errno));
        return;
    }
    call->state = CALL_DIALLED;
    call->due_ns = rueda_clock_ns() + DIAL_NS;
    rueda_tcp_hub_show(hub, call->fd);
}

rueda_status rueda_tcp_calls_dial(struct rueda_tcp_hub *hub,
                                  struct rueda_tcp_ep *ep, int address)
{
    struct rueda_tcp_call *call = call_new(hub);

    if (call == NULL)
        return RUEDA_ERR_NOMEM;
    call->peer = ep->super.peer;
    call->ep = ep;
    call->address = address;
    call->give_up_ns = rueda_clock_ns() + hub->give_up_ns;
    call->patience_ns = DIAL_NS;
    dial(hub, call);
    return RUEDA_OK;
}

/* Somebody listens there: it is a matter of time. */
static void knock_again(struct rueda_tcp_call *call, int64_t now)
{
    rueda_fd_close(call->fd);
    call->fd = -1;
    call->state = CALL_PAUSED;
    call->due_ns = now + KNOCK_NS;
    call->give_up_ns = NEVER;
}

rueda_status rueda_tcp_calls_await(struct rueda_tcp_hub *hub,
                                   struct rueda_tcp_ep *ep)
{
    struct rueda_tcp_call *call;

    if (hub->peers[ep->super.peer].address_count == 0)
        return RUEDA_OK;
    call = call_new(hub);
    if (call == NULL)
        return RUEDA_ERR_NOMEM;
    call->peer = ep->super.peer;
    call->ep = ep;
    call->is_knock = true;
    knock_again(call, rueda_clock_ns());
    return RUEDA_OK;
}

/* A system has answered; now its process has to. */
static void begin_proving(struct rueda_tcp_hub *hub,
                          struct rueda_tcp_call *call, int64_t now)
{
    rueda_tcp_calls_begin_proof(hub, call->fd, &call->shake, RUEDA_INITIATOR,
                                RUEDA_TCP_FOR_STREAM);
    call->state = CALL_PROVING;
    call->due_ns = now + call->patience_ns;
}

/* The process may be at work, or stopped, which is no reason to give up; but
 * another address may lead to it, and this one to somebody else. */
static void lose_patience(struct rueda_tcp_hub *hub,
                          struct rueda_tcp_call *call, int64_t now)
{
    if (call->patience_ns < PATIENCE_NS)
        call->patience_ns *= 2;
    call->give_up_ns = now + hub->give_up_ns;
    dial_again(hub, call, "connected, and nobody answers");
}

/* We have dialled. An address may lead to somebody else, such as that of a
 * bridge which every host has. */
static void end_dialling(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                         rueda_status status)
{
    struct rueda_text error = {{0}};
    const char *why = strerror(errno);
    struct rueda_tcp_about them;

    if (status == RUEDA_OK && rueda_tcp_calls_who(hub, &call->shake, &them) &&
        them.rank == call->peer) {
        if (agree(hub, call, &them, &error) == RUEDA_OK) {
            attach(call->ep, call);
        } else {
            end_call(call);
            rueda_tcp_hub_lose(hub, call->peer, error.chars);
        }
        return;
    }
    if (status == RUEDA_OK)
        why = "another rank is there";
    else if (rueda_handshake_error(&call->shake)[0] != '\0')
        why = rueda_handshake_error(&call->shake);
    log_debug("rank %d: %s", call->peer, why);
    dial_again(hub, call, why);
}

/* ---- Being called ------------------------------------------------------- */

static void refuse(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                   rueda_refusal kind, const char *why)
{
    char who[32];

    snprintf(who, sizeof(who), "rank %d", hub->rank);
    rueda_refuse(&hub->refusals, kind, who, &call->from, why, rueda_clock_ns());
    end_call(call);
}

/* From the host of a rank? */
static bool is_of_peers(const struct rueda_tcp_hub *hub,
                        const struct rueda_tcp_call *call)
{
    for (int rank = 0; rank < hub->size; rank++)
        for (int i = 0; i < hub->peers[rank].address_count; i++)
            if (rueda_address_is_same_host(&call->from,
                                           &hub->peers[rank].addresses[i]))
                return true;
    return false;
}

/* A rank may have found another way to us first and hung up on this one, or be
 * stopped in the middle of a word: that is not worth a warning. */
static void miss(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                 rueda_refusal kind, const char *why)
{
    if (!is_of_peers(hub, call)) {
        refuse(hub, call, kind, why);
        return;
    }
    log_info("a caller from the host of a rank is gone: %s", why);
    end_call(call);
}

static bool is_stranger(const struct rueda_tcp_call *call)
{
    return call->state == CALL_PROVING && call->ep == NULL;
}

/* The list has the newest first. */
static void make_room(struct rueda_tcp_hub *hub)
{
    struct rueda_tcp_call *oldest = NULL;
    int count = 0;

    for (struct rueda_tcp_call *at = hub->calls; at != NULL; at = at->next) {
        if (is_stranger(at)) {
            oldest = at;
            count++;
        }
    }
    if (count < MOST_STRANGERS)
        return;
    refuse(hub, oldest, RUEDA_REFUSED_CROWD,
           "it had not said who it is, and many others call");
}

/* True: more may wait, and no socket will tell. */
static bool answer(struct rueda_tcp_hub *hub, int listener)
{
    int fd;

    for (int i = 0; i < MOST_ANSWERS; i++) {
        struct rueda_tcp_call *call;

        if (rueda_stream_accept(listener, &fd) != RUEDA_OK)
            return false;
        make_room(hub);
        call = call_new(hub);
        if (call == NULL) {
            rueda_fd_close(fd);
            return true;
        }
        rueda_tcp_hurry(fd);
        call->fd = fd;
        call->due_ns = rueda_clock_ns() + STRANGER_NS;
        rueda_tcp_peer(fd, &call->from);
        rueda_tcp_calls_begin_proof(hub, fd, &call->shake, RUEDA_ACCEPTOR,
                                    RUEDA_TCP_FOR_STREAM);
        call->state = CALL_PROVING;
        rueda_tcp_hub_show(hub, fd);
    }
    return true;
}

/* It is of this job. Lower ranks dial streams, anybody a pulse. */
static void let_in(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                   const struct rueda_tcp_about *them)
{
    struct rueda_tcp_ep *ep = hub->peers[them->rank].ep;
    struct rueda_text error = {{0}};

    if (them->purpose == RUEDA_TCP_FOR_PULSE) {
        rueda_tcp_pulse_take(hub, them->rank, call->fd,
                             rueda_handshake_session_key(&call->shake));
        call->fd = -1;
        end_call(call);
        return;
    }
    if (them->rank >= hub->rank) {
        refuse(hub, call, RUEDA_REFUSED_MISFIT, "not a rank that dials us");
        return;
    }
    if (agree(hub, call, them, &error) != RUEDA_OK) {
        refuse(hub, call, RUEDA_REFUSED_MISFIT, error.chars);
        return;
    }
    call->peer = them->rank;
    call->state = CALL_WAITING;
    if (ep != NULL)
        attach(ep, call);
}

/* Somebody has called. */
static void end_answering(struct rueda_tcp_hub *hub,
                          struct rueda_tcp_call *call, rueda_status status)
{
    const char *why = rueda_handshake_error(&call->shake);
    struct rueda_tcp_about them;

    if (status == RUEDA_ERR_PEER_LOST)
        miss(hub, call, RUEDA_REFUSED_LEFT, why);
    else if (status != RUEDA_OK)
        refuse(hub, call, rueda_refusal_of(status),
               why[0] != '\0' ? why : strerror(errno));
    else if (!rueda_tcp_calls_who(hub, &call->shake, &them))
        refuse(hub, call, RUEDA_REFUSED_MISFIT, "not a rank of this job");
    else
        let_in(hub, call, &them);
}

/* ---- Step by step ------------------------------------------------------- */

static void prove(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                  int64_t now)
{
    rueda_status status = rueda_shake_step(call->fd, &call->shake);

    if (status != RUEDA_IN_PROGRESS) {
        if (call->ep != NULL)
            end_dialling(hub, call, status);
        else
            end_answering(hub, call, status);
    } else if (now >= call->due_ns) {
        if (call->ep != NULL)
            lose_patience(hub, call, now);
        else
            miss(hub, call, RUEDA_REFUSED_SLOW,
                 "it did not say in time who it is");
    }
}

static void step(struct rueda_tcp_hub *hub, struct rueda_tcp_call *call,
                 int64_t now)
{
    rueda_status status;

    if (call->ep != NULL && (call->ep->has_failed ||
                             (call->is_knock && call->ep->stream_count > 0)))
        end_call(call);
    switch (call->state) {
    case CALL_PAUSED:
        if (now >= call->due_ns)
            dial(hub, call);
        break;
    case CALL_DIALLED:
        status = rueda_tcp_connected(call->fd);
        if (status == RUEDA_OK && call->is_knock)
            knock_again(call, now);
        else if (status == RUEDA_OK)
            begin_proving(hub, call, now);
        else if (status < 0)
            dial_again(hub, call, strerror(errno));
        else if (now >= call->due_ns) {
            errno = ETIMEDOUT;
            dial_again(hub, call, strerror(errno));
        }
        if (call->state != CALL_PROVING)
            break;
        /* fall through */
    case CALL_PROVING:
        prove(hub, call, now);
        break;
    case CALL_ENDED:
    case CALL_WAITING:
        break;
    }
}

void rueda_tcp_calls_progress(struct rueda_tcp_hub *hub, int64_t now_ns)
{
    hub->has_callers = false;
    for (int i = 0; i < hub->address_count; i++)
        if (answer(hub, hub->listeners[i]))
            hub->has_callers = true;
    for (struct rueda_tcp_call *at = hub->calls; at != NULL; at = at->next)
        step(hub, at, now_ns);
    sweep(hub);
}

int64_t rueda_tcp_calls_next_ns(const struct rueda_tcp_hub *hub)
{
    int64_t next = hub->has_callers ? 0 : INT64_MAX;

    for (const struct rueda_tcp_call *at = hub->calls; at != NULL;
         at = at->next)
        if (at->state != CALL_WAITING && at->due_ns < next)
            next = at->due_ns;
    return next;
}

void rueda_tcp_calls_end(struct rueda_tcp_hub *hub,
                         const struct rueda_tcp_ep *ep)
{
    for (struct rueda_tcp_call *at = hub->calls; at != NULL; at = at->next)
        if (ep == NULL || at->ep == ep)
            end_call(at);
    sweep(hub);
}

void rueda_tcp_calls_show(const struct rueda_tcp_hub *hub)
{
    for (const struct rueda_tcp_call *at = hub->calls; at != NULL;
         at = at->next)
        if (at->fd >= 0)
            rueda_tcp_hub_show(hub, at->fd);
}

void rueda_tcp_calls_forked(const struct rueda_tcp_hub *hub)
{
    for (const struct rueda_tcp_call *at = hub->calls; at != NULL;
         at = at->next)
        rueda_fd_close(at->fd);
}
