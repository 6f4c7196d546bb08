/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank's connection with the store. The first part finds the way and proves
 * the key; then come frames, sessions and requests. A connection that breaks is
 * made again, in steps that do not block, and the session goes on: the store
 * answers a repeated request as before. Replies that answer no request are
 * events, which go to the watch they belong to.
 */
#define RUEDA_LOG_TAG "job"

#include "job/store/client.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "base/duration.h"
#include "base/least.h"
#include "base/log.h"
#include "job/store/inbox.h"
#include "job/store/wire.h"
#include "os/clock.h"
#include "os/dial.h"
#include "os/process.h"
#include "os/random.h"
#include "os/stream.h"
#include "segment/wire.h"

/* Between two rounds over all ways to the store (os/dial.h). */
#define FIRST_PAUSE_NS RUEDA_US(200)
#define MOST_PAUSE_NS  RUEDA_MS(50)

/* For a store that was there. */
#define LOST_NS RUEDA_S(3)

#define QUESTIONS 4

/* The store allows as many. */
struct watch {
    uint64_t number; /* 0: a free place */
    uint64_t revision;
    size_t prefix_bytes;
    unsigned char prefix[RUEDA_STORE_KEY_BYTES];
};

/* How far we have come on the way to the store. */
typedef enum client_stage {
    AWAY, /* not connected; dialling, or not */
    PROVING,
    ATTACHING,
    THERE,
} client_stage;

/* A request for whose answer no caller waits. */
struct post {
    struct rueda_store_request request;
    bool is_sent;        /* over the connection that we have */
    rueda_status status; /* RUEDA_IN_PROGRESS: it has no answer yet */
};

struct rueda_client {
    struct rueda_client_args args;
    struct rueda_key key;
    unsigned char session[RUEDA_STORE_SESSION_BYTES];
    bool is_attached;  /* the store knows the session */
    bool is_forgotten; /* it did, and does not any more */
    bool is_abandoned; /* by its owner, in these words */
    struct rueda_text why;
    bool is_over;     /* it has said that it closes */
    bool is_lost;     /* look() has not found it again */
    bool is_dialling; /* on the way back or for the first time */
    client_stage stage;
    int fd;                       /* the dialler's; -1: none */
    struct rueda_dial dial;       /* has the connection, also when THERE */
    struct rueda_handshake shake; /* while PROVING */
    rueda_status refusal;         /* the last one of a process that we found */
    struct rueda_fork_hook fork_hook;
    uint64_t number;                 /* of the last request */
    struct rueda_sealed_stream seal; /* of a connection by TCP */
    bool is_sealed;                  /* this connection has to be */
    struct rueda_buffer sealed;      /* a request on its way */
    struct rueda_inbox inbox;
    size_t wanted;   /* bytes of the frame that is coming */
    size_t consumed; /* of the inbox, by the reply that is lent out */
    struct watch watches[RUEDA_STORE_MOST_WATCHES];
    struct post post;
    bool is_hurried;
};

/* ---- The way there ------------------------------------------------------ */

/* Forget what was said on a connection that is not there any more. */
static void forget_connection(struct rueda_client *client)
{
    rueda_handshake_fini(&client->shake);
    client->fd = -1;
    client->stage = AWAY;
    rueda_sealed_stream_fini(&client->seal);
    rueda_buffer_fini(&client->sealed);
    rueda_buffer_fini(&client->inbox.sealed);
    client->inbox.seal = NULL;
    client->inbox.len = 0;
    client->consumed = 0;
    client->wanted = RUEDA_STORE_HEAD_BYTES;
    client->post.is_sent = false;
}

static void hang_up(struct rueda_client *client)
{
    rueda_dial_fini(&client->dial);
    client->is_dialling = false;
    forget_connection(client);
}

/* Begin to dial the store, or stay with that; give up after limit_ns. */
static void set_out(struct rueda_client *client, int64_t limit_ns)
{
    const struct rueda_dial_args args = {.socket = client->args.socket,
                                         .addresses = client->args.addresses,
                                         .address_count =
                                             client->args.address_count,
                                         .first_pause_ns = FIRST_PAUSE_NS,
                                         .most_pause_ns = MOST_PAUSE_NS,
                                         .limit_ns = limit_ns,
                                         .watch = client->args.on_socket,
                                         .arg = client->args.arg};

    if (!client->is_dialling)
        rueda_dial_init(&client->dial, &args, 0, rueda_clock_ns());
    client->is_dialling = true;
}

/* Prove myself, and let the store prove itself. */
static rueda_status begin_proof(struct rueda_client *client)
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];

    client->stage = PROVING;
    rueda_meet_about_write(about, client->args.rank, client->args.size);
    return rueda_handshake_init(&client->shake, RUEDA_INITIATOR,
                                RUEDA_FOR_STORE, &client->key, about,
                                sizeof(about));
}

/* ---- Frames ------------------------------------------------------------- */

/* Send all of it, sealed where the connection is. */
static rueda_status send_bytes(struct rueda_client *client, const void *bytes,
                               size_t len, int64_t deadline_ns)
{
    struct rueda_buffer *sealed = &client->sealed;
    rueda_status status;

    if (!client->is_sealed)
        return rueda_stream_send_all(client->fd, bytes, len, deadline_ns);
    if (!rueda_sealed_stream_close(&client->seal, bytes, len, sealed))
        return RUEDA_ERR_NOMEM;
    status = rueda_stream_send_all(client->fd, rueda_buffer_front(sealed),
                                   rueda_buffer_len(sealed), deadline_ns);
    rueda_buffer_drop(sealed, rueda_buffer_len(sealed));
    return status;
}

static rueda_status send_request(struct rueda_client *client,
                                 const struct rueda_store_request *request,
                                 int64_t deadline_ns)
{
    unsigned char start[RUEDA_STORE_START_BYTES];
    size_t bytes = rueda_store_request_encode(request, start);
    rueda_status status = send_bytes(client, start, bytes, deadline_ns);

    if (status == RUEDA_OK && request->value_bytes > 0)
        status = send_bytes(client, request->value, request->value_bytes,
                            deadline_ns);
    return status;
}

/* The next frame, if it is there; the one before it is done with. */
static rueda_status next_reply(struct rueda_client *client,
                               struct rueda_store_reply *out)
{
    rueda_status status;
    size_t bytes;

    rueda_inbox_drop(&client->inbox, client->consumed);
    client->consumed = 0;
    for (;;) {
        status = rueda_store_reply_decode(client->inbox.bytes,
                                          client->inbox.len, out, &bytes);
        if (status == RUEDA_OK)
            client->consumed = bytes;
        if (status != RUEDA_IN_PROGRESS)
            break;
        client->wanted = bytes;
        status = rueda_inbox_fill(&client->inbox, client->fd, client->wanted);
        if (status != RUEDA_OK)
            break;
    }
    if (status == RUEDA_ERR_AUTH)
        log_warn("what came from the store is not what it has sealed: it was "
                 "changed on the way; rank %d connects again",
                 client->args.rank);
    /* What is no reply is no store, nor is what the store has not sealed. */
    return status == RUEDA_ERR_INVALID || status == RUEDA_ERR_AUTH
               ? RUEDA_ERR_PEER_LOST
               : status;
}

static struct watch *watch_of(struct rueda_client *client, uint64_t number)
{
    for (size_t i = 0; i < RUEDA_STORE_MOST_WATCHES; i++)
        if (client->watches[i].number == number)
            return &client->watches[i];
    return NULL;
}

/* Is it an event, or the answer to what was posted? Then it is delivered. */
static bool take_event(struct rueda_client *client,
                       const struct rueda_store_reply *reply)
{
    struct watch *watch;

    if (client->post.is_sent && reply->kind != RUEDA_STORE_EVENT_SET &&
        reply->kind != RUEDA_STORE_EVENT_DELETE &&
        reply->number == client->post.request.number) {
        client->post.status = RUEDA_OK;
        return true;
    }
    if (reply->kind == RUEDA_STORE_BYE && reply->number == 0) {
        client->is_over = reply->status == RUEDA_OK;
        return true;
    }
    if (reply->kind != RUEDA_STORE_EVENT_SET &&
        reply->kind != RUEDA_STORE_EVENT_DELETE)
        return false;
    watch = watch_of(client, reply->number);
    if (watch == NULL || reply->revision <= watch->revision)
        return true;
    watch->revision = reply->revision;
    if (client->args.on_event != NULL)
        client->args.on_event(client->args.arg, reply);
    return true;
}

/* Wait for the reply of that number. */
static rueda_status await_reply(struct rueda_client *client, uint64_t number,
                                int64_t deadline_ns,
                                struct rueda_store_reply *out)
{
    rueda_status status;

    for (;;) {
        status = next_reply(client, out);
        if (status == RUEDA_IN_PROGRESS)
            status = rueda_stream_await(client->fd, false, deadline_ns);
        else if (status == RUEDA_OK && !take_event(client, out) &&
                 out->number == number)
            return RUEDA_OK;
        if (status >= 0 && client->is_abandoned)
            status = RUEDA_ERR_CANCELLED;
        if (status < 0)
            return status;
    }
}

/* ---- Sessions ----------------------------------------------------------- */

/* The first request of a connection. */
static rueda_status ask_to_attach(struct rueda_client *client)
{
    const struct rueda_store_request request = {.kind = RUEDA_STORE_ATTACH,
                                                .number = 1,
                                                .key = client->session,
                                                .key_bytes =
                                                    sizeof(client->session)};

    client->stage = ATTACHING;
    return send_request(client, &request, rueda_clock_ns());
}

/* The watches that there were. */
static rueda_status watch_again(struct rueda_client *client)
{
    rueda_status status = RUEDA_OK;

    for (size_t i = 0; i < RUEDA_STORE_MOST_WATCHES && status == RUEDA_OK;
         i++) {
        const struct watch *watch = &client->watches[i];
        const struct rueda_store_request request = {
            .kind = RUEDA_STORE_WATCH,
            .number = watch->number,
            .key = watch->prefix,
            .key_bytes = watch->prefix_bytes,
            .revision = watch->revision,
        };

        if (watch->number > 0)
            status = send_request(client, &request, rueda_clock_ns());
    }
    return status;
}

/* The answer to that first request, if it is there. */
static rueda_status hear_attached(struct rueda_client *client,
                                  struct rueda_text *error)
{
    struct rueda_store_reply reply;
    rueda_status status;

    do
        status = next_reply(client, &reply);
    while (status == RUEDA_OK &&
           (take_event(client, &reply) || reply.number != 1));
    if (status != RUEDA_OK)
        return status;
    if (reply.status == RUEDA_ERR_MISMATCH)
        rueda_text_set(error, "%.*s", (int)reply.value_bytes,
                       (const char *)reply.value);
    if (reply.status != RUEDA_OK)
        return reply.status;
    client->is_forgotten = client->is_attached && reply.count == 0;
    client->is_attached = true;
    client->is_over = false;
    client->is_lost = false;
    status = watch_again(client);
    if (status == RUEDA_OK) {
        client->stage = THERE;
        client->is_dialling = false;
    }
    return status;
}

/* What follows the handshake over TCP is sealed, whatever the settings: the
 * store says where the ranks are and what they agree on. */
static rueda_status begin_sealing(struct rueda_client *client,
                                  struct rueda_text *error)
{
    rueda_status status = rueda_sealed_stream_init(
        &client->seal, rueda_handshake_session_key(&client->shake),
        RUEDA_INITIATOR);

    if (status != RUEDA_OK) {
        rueda_text_set(error,
                       "rank %d has no key, and a store that is reached by TCP "
                       "needs one; set RUEDA_KEY_FILE",
                       client->args.rank);
        return status;
    }
    client->inbox.seal = &client->seal;
    return RUEDA_OK;
}

/* Go on over a connection, without waiting. RUEDA_OK: we are there.
 * RUEDA_IN_PROGRESS: fd has to be waited for. Else it leads nowhere. */
static rueda_status go_on(struct rueda_client *client, struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    if (client->stage == PROVING) {
        status = rueda_shake_step(client->fd, &client->shake);
        if (status == RUEDA_ERR_AUTH || status == RUEDA_ERR_VERSION)
            rueda_text_set(error, "rank %d and the store do not agree: %s",
                           client->args.rank,
                           rueda_handshake_error(&client->shake));
        if (status == RUEDA_OK && client->is_sealed)
            status = begin_sealing(client, error);
        if (status == RUEDA_OK)
            status = ask_to_attach(client);
    }
    return status == RUEDA_OK ? hear_attached(client, error) : status;
}

/* Does the store not want us, or we not it? */
static bool is_refusal(rueda_status status)
{
    return status == RUEDA_ERR_AUTH || status == RUEDA_ERR_VERSION ||
           status == RUEDA_ERR_MISMATCH || status == RUEDA_ERR_NOMEM ||
           status == RUEDA_ERR_LIMIT;
}

static int questions_of(const struct rueda_client *client)
{
    return client->args.questions > 0 ? client->args.questions : QUESTIONS;
}

void rueda_client_hurry(struct rueda_client *client)
{
    client->is_hurried = true;
    if (client->fd >= 0)
        rueda_socket_limit_silence(client->fd, 1000 * questions_of(client));
}

/* A new connection. */
static rueda_status begin(struct rueda_client *client)
{
    forget_connection(client);
    client->fd = client->dial.fd;
    client->is_sealed = !rueda_dial_is_local(&client->dial);
    rueda_socket_keep_alive(client->fd, questions_of(client));
    if (client->is_hurried)
        rueda_client_hurry(client);
    return begin_proof(client);
}

/* Go on towards the store, without waiting: one way may lead to another
 * process. RUEDA_OK: we are there. RUEDA_ERR_TIMEOUT: the dialler has given up.
 * A refusal is noted with its words. */
static rueda_status approach(struct rueda_client *client,
                             struct rueda_text *error)
{
    const int64_t now = rueda_clock_ns();

    for (;;) {
        bool is_new;
        rueda_status status = rueda_dial_step(&client->dial, now, &is_new);
        int cause = ECONNRESET;

        if (status != RUEDA_OK && client->stage != AWAY)
            forget_connection(client); /* it took too long */
        if (status != RUEDA_OK)
            return status;
        if (is_new)
            status = begin(client);
        if (status == RUEDA_OK)
            status = go_on(client, error);
        if (status == RUEDA_OK || status == RUEDA_IN_PROGRESS)
            return status;
        if (status == RUEDA_ERR_IO)
            cause = errno;
        if (is_refusal(status)) {
            client->refusal = status;
            cause = EACCES;
        }
        rueda_dial_fail(&client->dial, cause,
                        cause == EACCES ? "it refuses this rank" : NULL, now);
        forget_connection(client);
    }
}

/* Where the store was looked for. */
static void name_ways(const struct rueda_client *client,
                      struct rueda_text *words)
{
    char text[RUEDA_ADDRESS_TEXT];

    if (client->args.address_count == 0)
        rueda_text_add(words, "on this host");
    for (int i = 0; i < client->args.address_count; i++) {
        rueda_address_text(&client->args.addresses[i], text, sizeof(text));
        rueda_text_add(words, "%s%s", i > 0 ? ", " : "at ", text);
    }
}

static rueda_status connect_by(struct rueda_client *client, int64_t deadline_ns,
                               struct rueda_text *error)
{
    struct rueda_dial *dial = &client->dial;

    error->chars[0] = '\0';
    set_out(client, INT64_MAX);
    dial->args.limit_ns = INT64_MAX;
    dial->give_up_ns = INT64_MAX;
    for (;;) {
        struct rueda_text words = {{0}};
        rueda_status status = approach(client, &words);
        int64_t now = rueda_clock_ns();

        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (!rueda_text_is_empty(&words))
            *error = words;
        if (now >= deadline_ns || rueda_dial_is_refused(dial, now))
            break;
        rueda_dial_wait(dial, deadline_ns);
    }
    hang_up(client);
    if (dial->refused_for > 0)
        return client->refusal;
    error->chars[0] = '\0';
    return RUEDA_ERR_TIMEOUT;
}

static void close_in_child(struct rueda_fork_hook *hook)
{
    struct rueda_client *client =
        (struct rueda_client *)((char *)hook -
                                offsetof(struct rueda_client, fork_hook));

    rueda_dial_fini(&client->dial);
    client->fd = -1;
    client->stage = AWAY;
    client->is_dialling = false;
}

static void client_free(struct rueda_client *client)
{
    rueda_fork_hook_remove(&client->fork_hook);
    hang_up(client);
    rueda_inbox_fini(&client->inbox);
    rueda_key_wipe(&client->key);
    free(client);
}

rueda_status rueda_client_open(const struct rueda_client_args *args,
                               int64_t deadline_ns, struct rueda_client **out,
                               struct rueda_text *error)
{
    struct rueda_client *client = calloc(1, sizeof(*client));
    rueda_status status;

    if (client == NULL)
        return RUEDA_ERR_NOMEM;
    client->args = *args;
    client->key = *args->key;
    client->fd = -1;
    client->dial.fd = -1;
    client->number = 1; /* that of ATTACH */
    client->wanted = RUEDA_STORE_HEAD_BYTES;
    client->fork_hook.in_child = close_in_child;
    rueda_fork_hook_add(&client->fork_hook);
    status = rueda_random_fill(client->session, sizeof(client->session));
    if (status == RUEDA_OK)
        status = connect_by(client, deadline_ns, error);
    if (status == RUEDA_OK) {
        *out = client;
        return RUEDA_OK;
    }
    if (status == RUEDA_ERR_TIMEOUT && rueda_text_is_empty(error)) {
        rueda_text_set(error, "rank %d found no store of the job ", args->rank);
        name_ways(client, error);
        rueda_text_add(
            error, " (%s); is rank 0 running, and can this host reach it?",
            strerror(client->dial.cause != 0 ? client->dial.cause : ETIMEDOUT));
    }
    client_free(client);
    return status;
}

/* ---- Requests ----------------------------------------------------------- */

/* Note what has to be said again over the next connection. */
static void note_watch(struct rueda_client *client,
                       const struct rueda_store_request *request)
{
    struct watch *watch;

    if (request->kind == RUEDA_STORE_UNWATCH) {
        watch = watch_of(client, request->id);
        if (watch != NULL)
            watch->number = 0;
    }
    if (request->kind != RUEDA_STORE_WATCH)
        return;
    watch = watch_of(client, 0);
    if (watch == NULL)
        return; /* the store refuses it too */
    watch->number = request->number;
    watch->revision = request->revision;
    watch->prefix_bytes = request->key_bytes;
    memcpy(watch->prefix, request->key, request->key_bytes);
}

/* The store was there and is gone. */
static rueda_status lost(const struct rueda_client *client, rueda_status status,
                         struct rueda_text *error)
{
    if (is_refusal(status))
        return status;
    rueda_text_set(error, "rank %d lost the store of the job ",
                   client->args.rank);
    name_ways(client, error);
    rueda_text_add(error, "; rank 0, which keeps it, has ended or cannot be "
                          "reached");
    return RUEDA_ERR_PEER_LOST;
}

rueda_status rueda_client_ask(struct rueda_client *client,
                              struct rueda_store_request *request,
                              int64_t deadline_ns,
                              struct rueda_store_reply *out_reply,
                              struct rueda_text *error)
{
    int64_t give_up_ns = INT64_MAX;
    rueda_status status;

    request->number = ++client->number;
    status = rueda_store_request_check(request);
    if (status != RUEDA_OK) {
        rueda_text_set(error,
                       "rank %d asks the store for something of kind %d with a "
                       "key of %zu and a value of %zu bytes, which cannot be",
                       client->args.rank, (int)request->kind,
                       request->key_bytes, request->value_bytes);
        return status;
    }
    note_watch(client, request);
    for (;;) {
        status = RUEDA_OK;
        if (client->is_abandoned) {
            *error = client->why;
            return RUEDA_ERR_CANCELLED;
        }
        if (client->stage != THERE)
            status = connect_by(client, rueda_sooner(deadline_ns, give_up_ns),
                                error);
        if (status != RUEDA_OK && give_up_ns != INT64_MAX)
            return lost(client, status, error);
        if (status == RUEDA_OK && client->is_forgotten) {
            client->is_forgotten = false;
            rueda_text_set(error, "the store has been restarted");
            return RUEDA_ERR_CLOSED;
        }
        if (status == RUEDA_OK) {
            status = send_request(client, request, deadline_ns);
            if (status != RUEDA_OK)
                hang_up(client); /* a part of it may be sent */
        }
        if (status == RUEDA_OK)
            status =
                await_reply(client, request->number, deadline_ns, out_reply);
        if (status == RUEDA_OK)
            return out_reply->status;
        if (status == RUEDA_ERR_TIMEOUT) {
            rueda_text_set(error, "the store did not answer rank %d in time",
                           client->args.rank);
            return status;
        }
        if (status == RUEDA_ERR_CANCELLED)
            continue;
        hang_up(client);
        if (give_up_ns == INT64_MAX)
            give_up_ns = rueda_clock_ns() + LOST_NS;
    }
}

void rueda_client_abandon(struct rueda_client *client, const char *words)
{
    rueda_text_set(&client->why, "%s", words);
    client->is_abandoned = true;
}

/* ---- Coming back -------------------------------------------------------- */

/* How long the host of the store may be silent. */
static int64_t patience_ns(const struct rueda_client *client)
{
    return RUEDA_S(questions_of(client));
}

/* RUEDA_IN_PROGRESS: it takes longer. RUEDA_ERR_PEER_LOST: there is no way: at
 * none is there a process of the job, or none could be reached in time. */
static rueda_status come_back(struct rueda_client *client)
{
    struct rueda_text ignored = {{0}};
    rueda_status status;

    set_out(client, patience_ns(client));
    status = approach(client, &ignored);
    if (status == RUEDA_OK && client->is_forgotten)
        return RUEDA_ERR_PEER_LOST;
    if (status == RUEDA_ERR_TIMEOUT ||
        client->dial.dead_ends >= rueda_dial_ways(&client->dial)) {
        hang_up(client);
        return RUEDA_ERR_PEER_LOST;
    }
    return status;
}

/* Take what has come, or go on with making the connection. */
static rueda_status reconnect(struct rueda_client *client)
{
    rueda_status status = RUEDA_OK;
    struct rueda_store_reply reply;

    while (status == RUEDA_OK && client->stage == THERE) {
        status = next_reply(client, &reply);
        if (status == RUEDA_OK)
            take_event(client, &reply);
    }
    if (status == RUEDA_IN_PROGRESS)
        return RUEDA_OK;
    if (client->stage == THERE)
        hang_up(client);
    if (client->is_over)
        return RUEDA_ERR_CLOSED;
    if (client->is_lost)
        return RUEDA_ERR_PEER_LOST;
    status = come_back(client);
    client->is_lost = status == RUEDA_ERR_PEER_LOST;
    return status;
}

/* Send what was posted, if it has to be sent. A part of it that does not fit
 * into the socket costs the connection, as the next one repeats it whole. */
static void send_post(struct rueda_client *client)
{
    struct post *post = &client->post;

    if (post->status != RUEDA_IN_PROGRESS || post->is_sent ||
        client->stage != THERE)
        return;
    if (send_request(client, &post->request, rueda_clock_ns()) == RUEDA_OK)
        post->is_sent = true;
    else
        hang_up(client);
}

rueda_status rueda_client_reconnect(struct rueda_client *client)
{
    rueda_status status = reconnect(client);

    if (status < 0 && client->post.status == RUEDA_IN_PROGRESS)
        client->post.status = status;
    send_post(client);
    return status;
}

void rueda_client_post(struct rueda_client *client,
                       const struct rueda_store_request *request)
{
    struct post *post = &client->post;

    post->request = *request;
    post->request.number = ++client->number;
    post->is_sent = false;
    post->status = rueda_store_request_check(&post->request);
    if (post->status == RUEDA_OK)
        post->status = RUEDA_IN_PROGRESS;
    send_post(client);
}

rueda_status rueda_client_posted(const struct rueda_client *client)
{
    return client->post.status;
}

int rueda_client_fd(const struct rueda_client *client)
{
    return client->fd;
}

rueda_status rueda_client_renew(struct rueda_client *client)
{
    hang_up(client);
    client->is_attached = false;
    client->is_forgotten = false;
    memset(client->watches, 0, sizeof(client->watches));
    client->post = (struct post){.status = RUEDA_OK};
    return rueda_random_fill(client->session, sizeof(client->session));
}

/* How long to wait for the store's farewell. */
#define FAREWELL_NS RUEDA_MS(200)

/* One that was cut is made again, or the store would take us for dead. */
static rueda_status be_there(struct rueda_client *client, int64_t deadline_ns)
{
    struct rueda_text ignored = {{0}};
    rueda_status status = RUEDA_ERR_PEER_LOST;

    if (client->stage == THERE || client->is_dialling)
        status = rueda_client_reconnect(client);
    return status == RUEDA_IN_PROGRESS
               ? connect_by(client, deadline_ns, &ignored)
               : status;
}

void rueda_client_close(struct rueda_client *client)
{
    struct rueda_store_request bye = {.kind = RUEDA_STORE_BYE};
    struct rueda_store_reply reply;
    int64_t deadline = rueda_clock_ns() + FAREWELL_NS;

    if (client == NULL)
        return;
    client->args.on_socket = NULL;
    client->dial.args.watch = NULL;
    bye.number = client->number + 1;
    if (be_there(client, deadline) == RUEDA_OK &&
        send_request(client, &bye, deadline) == RUEDA_OK)
        await_reply(client, bye.number, deadline, &reply);
    client_free(client);
}
