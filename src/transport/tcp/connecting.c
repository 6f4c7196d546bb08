/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that are being made. The lower one of two ranks dials the streams
 * of their endpoint; the higher one admits them (auth/admission.h):
 *
 *      dialling     one for each stream that an endpoint should have
 *      arrival      a stream that the peer has dialled before this rank has
 *                   made the endpoint; it waits for that
 *      probe        from time to time the higher rank connects to the lower one
 *                   and hangs up, to learn whether that is still there to dial
 *
 * Anything that connects as a pulse goes to pulse.c.
 */
#define RUEDA_LOG_TAG "tcp"

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

#define PAUSE_NS RUEDA_MS(20)

/* How often to probe a rank, and how long that may be refused: a rank that
 * opens a listener at all has done so before others learn of it. */
#define PROBE_NS   RUEDA_S(1)
#define REFUSED_NS RUEDA_MS(500)
#define NEVER      INT64_MAX

struct rueda_tcp_dialling {
    struct rueda_tcp_dialling *next;
    struct rueda_tcp_ep *ep;
    bool is_probe;
    bool has_ended; /* to be freed */
    int64_t start_ns;
    struct rueda_dial dial;
    struct rueda_handshake shake;
};

struct rueda_tcp_arrival {
    struct rueda_tcp_arrival *next;
    int fd; /* -1: to be freed */
    int peer;
    struct rueda_tcp_protection protection;
    struct rueda_key session;
};

/* ---- What ranks say about themselves ------------------------------------ */

static size_t about_us(struct rueda_tcp_hub *hub, int fd,
                       rueda_tcp_purpose purpose, struct rueda_tcp_about *out,
                       unsigned char bytes[RUEDA_TCP_ABOUT_BYTES])
{
    struct rueda_address peer;
    bool is_near = rueda_socket_peer(fd, &peer) == RUEDA_OK &&
                   rueda_address_is_near(&peer);

    *out = (struct rueda_tcp_about){
        .rank = hub->rank,
        .size = hub->size,
        .job = rueda_tcp_hub_job(hub),
        .purpose = purpose,
        .wish = rueda_tcp_wish_of(hub->encrypt, is_near)};
    rueda_tcp_hub_measure_ciphers(hub);
    memcpy(out->costs, hub->ciphers.cost, sizeof(out->costs));
    rueda_tcp_about_encode(out, bytes);
    return RUEDA_TCP_ABOUT_BYTES;
}

void rueda_tcp_begin_proof(struct rueda_tcp_hub *hub, int fd,
                           struct rueda_handshake *shake,
                           rueda_tcp_purpose purpose)
{
    unsigned char bytes[RUEDA_TCP_ABOUT_BYTES];
    struct rueda_tcp_about about;
    size_t len = about_us(hub, fd, purpose, &about, bytes);

    rueda_handshake_init(shake, RUEDA_INITIATOR,
                         rueda_tcp_purpose_of(RUEDA_INITIATOR, purpose),
                         &hub->key, bytes, len);
}

bool rueda_tcp_peer_about(const struct rueda_tcp_hub *hub,
                          const struct rueda_handshake *shake,
                          struct rueda_tcp_about *out)
{
    const struct rueda_tcp_about ours = {
        .rank = hub->rank, .size = hub->size, .job = rueda_tcp_hub_job(hub)};
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
static rueda_status agree(struct rueda_tcp_hub *hub, int fd,
                          const struct rueda_tcp_about *theirs,
                          struct rueda_tcp_protection *out,
                          struct rueda_text *error)
{
    unsigned char bytes[RUEDA_TCP_ABOUT_BYTES];
    struct rueda_tcp_about ours;

    about_us(hub, fd, RUEDA_TCP_FOR_STREAM, &ours, bytes);
    return rueda_tcp_agree(&ours, theirs, out, error);
}

/* Make fd, which is taken, a stream of the endpoint, protected under the
 * session's key. */
static void attach(struct rueda_tcp_ep *ep, int fd, rueda_handshake_role role,
                   struct rueda_tcp_protection protection,
                   const struct rueda_key *session)
{
    struct rueda_tcp_sealing *sealing = NULL;
    rueda_status status = RUEDA_OK;

    if (ep->has_failed || ep->stream_count == RUEDA_TCP_MOST_STREAMS)
        status = RUEDA_ERR_CLOSED;
    if (status == RUEDA_OK)
        status = rueda_tcp_sealing_new(&ep->hub->ciphers, protection, session,
                                       role, &sealing);
    if (status == RUEDA_OK)
        status =
            rueda_tcp_stream_open(&ep->streams[ep->stream_count], fd, sealing);
    if (status == RUEDA_OK) {
        log_debug("rank %d: a stream is %s, by %s", ep->super.peer,
                  rueda_tcp_shield_str(protection.shield),
                  sealing->out.cipher->name);
        ep->stream_count++;
        rueda_socket_keep_open(fd);
        if (ep->hub->peers[ep->super.peer].is_inside ||
            rueda_socket_is_inside(fd))
            rueda_socket_hurry_inside(fd);
        return;
    }
    rueda_tcp_sealing_free(sealing);
    rueda_fd_close(fd);
    if (status == RUEDA_ERR_NOMEM)
        rueda_tcp_hub_lose(ep->hub, ep->super.peer,
                           "this rank is out of memory for a connection");
}

/* ---- Dialling ----------------------------------------------------------- */

static void end_dialling(struct rueda_tcp_dialling *dialling)
{
    rueda_dial_fini(&dialling->dial);
    rueda_handshake_fini(&dialling->shake);
    dialling->has_ended = true;
}

/* Free those that have ended. */
static void sweep(struct rueda_tcp_hub *hub)
{
    struct rueda_tcp_dialling **at = &hub->diallings;

    while (*at != NULL) {
        struct rueda_tcp_dialling *dialling = *at;

        if (dialling->has_ended) {
            *at = dialling->next;
            free(dialling);
        } else {
            at = &dialling->next;
        }
    }
}

static void show(void *arg, int fd)
{
    rueda_tcp_hub_show(arg, fd);
}

static rueda_status begin(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep,
                          bool is_probe, int address)
{
    const struct rueda_tcp_peer *peer = &hub->peers[ep->super.peer];
    const struct rueda_dial_args args = {.addresses = peer->addresses,
                                         .address_count = peer->address_count,
                                         .first_pause_ns = PAUSE_NS,
                                         .most_pause_ns = PAUSE_NS,
                                         .limit_ns =
                                             is_probe ? NEVER : hub->give_up_ns,
                                         .watch = show,
                                         .arg = hub};
    struct rueda_tcp_dialling *dialling = calloc(1, sizeof(*dialling));

    if (dialling == NULL)
        return RUEDA_ERR_NOMEM;
    dialling->ep = ep;
    dialling->is_probe = is_probe;
    dialling->start_ns = rueda_clock_ns();
    rueda_dial_init(&dialling->dial, &args, address,
                    dialling->start_ns + (is_probe ? PROBE_NS : 0));
    dialling->next = hub->diallings;
    hub->diallings = dialling;
    return RUEDA_OK;
}

rueda_status rueda_tcp_dial(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep,
                            int address)
{
    rueda_status status = begin(hub, ep, false, address);

    if (status == RUEDA_OK)
        rueda_tcp_connecting_progress(hub, rueda_clock_ns());
    return status;
}

rueda_status rueda_tcp_probe(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep)
{
    if (hub->peers[ep->super.peer].address_count == 0)
        return RUEDA_OK;
    return begin(hub, ep, true, 0);
}

/* The endpoint fails, unless it works with fewer streams. */
static void give_up(struct rueda_tcp_hub *hub,
                    struct rueda_tcp_dialling *dialling)
{
    const struct rueda_dial *dial = &dialling->dial;
    struct rueda_text words = {{0}};

    end_dialling(dialling);
    if (dialling->ep->stream_count > 0)
        return;
    if (dialling->is_probe && !rueda_stream_is_short(dial->cause))
        rueda_text_set(&words, "it has left, or is gone; %s", dial->why.chars);
    else
        rueda_text_set(&words, "it could not be reached for %lld s; last: %s",
                       (long long)(hub->give_up_ns / 1000000000),
                       dial->why.chars);
    rueda_tcp_hub_lose(hub, dialling->ep->super.peer, words.chars);
}

/* The handshake has failed. An address may lead to another process, such as
 * that of a bridge which every host has. */
static void fail(struct rueda_tcp_dialling *dialling, rueda_status status,
                 int64_t now_ns)
{
    const char *error = rueda_handshake_error(&dialling->shake);
    const char *why = error[0] != '\0' ? error : strerror(errno);
    int cause = EACCES;

    if (status == RUEDA_OK) {
        why = "another rank is there";
    } else if (status == RUEDA_ERR_PEER_LOST) {
        cause = ECONNRESET;
        why = "it hung up in the handshake; is it out of descriptors "
              "(`ulimit -n`)?";
    }
    log_debug("rank %d: %s", dialling->ep->super.peer, why);
    rueda_dial_fail(&dialling->dial, cause, why, now_ns);
}

static void prove(struct rueda_tcp_hub *hub,
                  struct rueda_tcp_dialling *dialling, int64_t now_ns)
{
    const int fd = dialling->dial.fd;
    const int peer = dialling->ep->super.peer;
    rueda_status status = rueda_shake_step(fd, &dialling->shake);
    struct rueda_text error = {{0}};
    struct rueda_tcp_protection protection;
    struct rueda_tcp_about them;

    if (status == RUEDA_IN_PROGRESS)
        return;
    if (status != RUEDA_OK ||
        !rueda_tcp_peer_about(hub, &dialling->shake, &them) ||
        them.rank != peer) {
        fail(dialling, status, now_ns);
        return;
    }
    if (agree(hub, fd, &them, &protection, &error) == RUEDA_OK)
        attach(dialling->ep, rueda_dial_take(&dialling->dial), RUEDA_INITIATOR,
               protection, rueda_handshake_session_key(&dialling->shake));
    else
        rueda_tcp_hub_lose(hub, peer, error.chars);
    end_dialling(dialling);
}

/*
 * A rank that waits to be dialled may wait for long, but not for a rank that is
 * gone, nor without descriptors: of its own for the probe, or for the streams
 * that it should admit.
 */
static void probe(struct rueda_tcp_hub *hub,
                  struct rueda_tcp_dialling *dialling, bool is_connected,
                  int64_t now_ns)
{
    struct rueda_dial *dial = &dialling->dial;
    int64_t short_ns = rueda_admission_short_ns(&hub->admission);

    if (short_ns != 0 && short_ns < dialling->start_ns)
        short_ns = dialling->start_ns;
    if (short_ns != 0 && now_ns - short_ns >= hub->give_up_ns) {
        end_dialling(dialling);
        rueda_tcp_hub_lose(hub, dialling->ep->super.peer,
                           "this rank has no descriptor for its "
                           "connections" RUEDA_STREAM_REMEDY);
    } else if (is_connected) {
        rueda_dial_rest(dial, now_ns + PROBE_NS);
    } else if (dial->give_up_ns == NEVER && dial->cause == ECONNREFUSED) {
        dial->give_up_ns = now_ns + REFUSED_NS;
    } else if (dial->give_up_ns == NEVER &&
               rueda_stream_is_short(dial->cause)) {
        dial->give_up_ns = now_ns + hub->give_up_ns;
    }
}

static void step(struct rueda_tcp_hub *hub, struct rueda_tcp_dialling *dialling,
                 int64_t now_ns)
{
    const struct rueda_tcp_ep *ep = dialling->ep;
    rueda_status status;
    bool is_new;

    if (dialling->has_ended)
        return;
    if (ep->has_failed || (dialling->is_probe && ep->stream_count > 0)) {
        end_dialling(dialling);
        return;
    }
    /* The answer may be there already, and this rank have been away so long
     * that its patience has ended. The peer has taken the connection then, and
     * would take its end for ours. */
    if (!dialling->is_probe && dialling->dial.stage == RUEDA_DIAL_CONNECTED)
        prove(hub, dialling, now_ns);
    if (dialling->has_ended)
        return;
    status = rueda_dial_step(&dialling->dial, now_ns, &is_new);
    if (status < 0) {
        give_up(hub, dialling);
    } else if (dialling->is_probe) {
        probe(hub, dialling, status == RUEDA_OK, now_ns);
    } else if (status == RUEDA_OK) {
        if (is_new) {
            rueda_handshake_fini(&dialling->shake);
            rueda_tcp_begin_proof(hub, dialling->dial.fd, &dialling->shake,
                                  RUEDA_TCP_FOR_STREAM);
        }
        prove(hub, dialling, now_ns);
    }
}

/* ---- Admitting ---------------------------------------------------------- */

static size_t about_for_peer(void *arg, int fd,
                             unsigned char out[RUEDA_HANDSHAKE_ABOUT_MAX])
{
    struct rueda_tcp_about about;

    return about_us(arg, fd, RUEDA_TCP_FOR_STREAM, &about, out);
}

/* Is it from the host of a rank? */
static bool is_of_peers(void *arg, const struct rueda_address *from)
{
    const struct rueda_tcp_hub *hub = arg;

    for (int rank = 0; rank < hub->size; rank++)
        for (int i = 0; i < hub->peers[rank].address_count; i++)
            if (rueda_address_is_same_host(from,
                                           &hub->peers[rank].addresses[i]))
                return true;
    return false;
}

static rueda_status arrive(struct rueda_tcp_hub *hub, int peer, int fd,
                           struct rueda_tcp_protection protection,
                           const struct rueda_key *session)
{
    struct rueda_tcp_arrival *arrival = calloc(1, sizeof(*arrival));

    if (arrival == NULL)
        return RUEDA_ERR_NOMEM;
    arrival->fd = fd;
    arrival->peer = peer;
    arrival->protection = protection;
    arrival->session = *session;
    arrival->next = hub->arrivals;
    hub->arrivals = arrival;
    return RUEDA_OK;
}

/* The admission's callback. Lower ranks dial streams, any rank a pulse. */
static rueda_status admit(void *arg, int fd,
                          const struct rueda_handshake *shake,
                          const struct rueda_address *from,
                          struct rueda_text *why)
{
    struct rueda_tcp_hub *hub = arg;
    const struct rueda_key *session = rueda_handshake_session_key(shake);
    struct rueda_tcp_protection protection;
    struct rueda_tcp_about them;

    (void)from;
    if (!rueda_tcp_peer_about(hub, shake, &them)) {
        rueda_text_set(why, "not a rank of this job");
        return RUEDA_ERR_MISMATCH;
    }
    if (them.purpose == RUEDA_TCP_FOR_PULSE) {
        rueda_tcp_pulse_take(hub, them.rank, fd, session);
        rueda_tcp_hub_show(hub, fd);
        return RUEDA_OK;
    }
    if (them.rank >= hub->rank) {
        rueda_text_set(why, "not a rank that dials us");
        return RUEDA_ERR_MISMATCH;
    }
    if (agree(hub, fd, &them, &protection, why) != RUEDA_OK)
        return RUEDA_ERR_MISMATCH;
    rueda_tcp_hub_show(hub, fd);
    if (hub->peers[them.rank].ep == NULL)
        return arrive(hub, them.rank, fd, protection, session);
    attach(hub->peers[them.rank].ep, fd, RUEDA_ACCEPTOR, protection, session);
    return RUEDA_OK;
}

/* Free the arrival, and its connection if that has not been attached. */
static void forget(struct rueda_tcp_arrival *arrival)
{
    rueda_fd_close(arrival->fd);
    rueda_key_wipe(&arrival->session);
    free(arrival);
}

void rueda_tcp_attach_arrivals(struct rueda_tcp_hub *hub,
                               struct rueda_tcp_ep *ep)
{
    struct rueda_tcp_arrival **at = &hub->arrivals;

    while (*at != NULL) {
        struct rueda_tcp_arrival *arrival = *at;

        if (arrival->peer != ep->super.peer) {
            at = &arrival->next;
            continue;
        }
        *at = arrival->next;
        attach(ep, arrival->fd, RUEDA_ACCEPTOR, arrival->protection,
               &arrival->session);
        arrival->fd = -1;
        forget(arrival);
    }
}

rueda_status rueda_tcp_admit(struct rueda_tcp_hub *hub)
{
    static const struct rueda_admission_ops ops = {
        .about = about_for_peer, .proven = admit, .is_expected = is_of_peers};
    struct rueda_text who = {{0}};
    const struct rueda_admission_args args = {
        .who = who.chars,
        .purpose = rueda_tcp_purpose_of(RUEDA_ACCEPTOR, RUEDA_TCP_FOR_STREAM),
        .key = &hub->key,
        .ops = &ops,
        .arg = hub};
    rueda_status status;

    rueda_text_set(&who, "rank %d", hub->rank);
    status = rueda_admission_init(&hub->admission, &args);
    for (int i = 0; i < hub->address_count && status == RUEDA_OK; i++)
        status =
            rueda_admission_listen(&hub->admission, hub->listeners[i], false);
    return status;
}

/* ---- All of them -------------------------------------------------------- */

void rueda_tcp_connecting_progress(struct rueda_tcp_hub *hub, int64_t now_ns)
{
    rueda_admission_progress(&hub->admission, now_ns);
    for (struct rueda_tcp_dialling *at = hub->diallings; at != NULL;
         at = at->next)
        step(hub, at, now_ns);
    sweep(hub);
}

int64_t rueda_tcp_connecting_next_ns(const struct rueda_tcp_hub *hub)
{
    int64_t next = rueda_admission_next_ns(&hub->admission);

    for (const struct rueda_tcp_dialling *at = hub->diallings; at != NULL;
         at = at->next)
        if (rueda_dial_next_ns(&at->dial) < next)
            next = rueda_dial_next_ns(&at->dial);
    return next;
}

void rueda_tcp_connecting_end(struct rueda_tcp_hub *hub,
                              const struct rueda_tcp_ep *ep)
{
    for (struct rueda_tcp_dialling *at = hub->diallings; at != NULL;
         at = at->next)
        if (ep == NULL || at->ep == ep)
            end_dialling(at);
    sweep(hub);
    while (ep == NULL && hub->arrivals != NULL) {
        struct rueda_tcp_arrival *arrival = hub->arrivals;

        hub->arrivals = arrival->next;
        forget(arrival);
    }
}

void rueda_tcp_connecting_show(const struct rueda_tcp_hub *hub)
{
    rueda_tcp_hub_show(hub, rueda_admission_fd(&hub->admission));
    for (const struct rueda_tcp_dialling *at = hub->diallings; at != NULL;
         at = at->next)
        if (at->dial.fd >= 0)
            rueda_tcp_hub_show(hub, at->dial.fd);
    for (const struct rueda_tcp_arrival *at = hub->arrivals; at != NULL;
         at = at->next)
        rueda_tcp_hub_show(hub, at->fd);
}

void rueda_tcp_connecting_forked(const struct rueda_tcp_hub *hub)
{
    rueda_admission_forked(&hub->admission);
    for (const struct rueda_tcp_dialling *at = hub->diallings; at != NULL;
         at = at->next)
        rueda_fd_close(at->dial.fd);
    for (const struct rueda_tcp_arrival *at = hub->arrivals; at != NULL;
         at = at->next)
        rueda_fd_close(at->fd);
}
