/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/client.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "job/store/inbox.h"
#include "job/store/wire.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/process.h"
#include "os/random.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "segment/wire.h"

/* Between two rounds over all ways to the store. */
#define FIRST_PAUSE_NS ((int64_t)200000)
#define MOST_PAUSE_NS  ((int64_t)50000000)

/* For one way, if it is not known sooner that it leads nowhere; and where it is
 * the only one at whose end somebody listens, who may be stopped. */
#define WAY_NS      ((int64_t)3000000000)
#define ONLY_WAY_NS ((int64_t)60000000000)

/* For a store that was there. */
#define LOST_NS ((int64_t)3000000000)

#define QUESTIONS 4

/* A store that closes just now, because the job before this one has started,
 * looks like one that refuses us: it is asked again for so long. */
#define DOUBT_NS ((int64_t)1000000000)

/* The store allows as many. */
struct watch {
    uint64_t number; /* 0: a free place */
    uint64_t revision;
    size_t prefix_bytes;
    unsigned char prefix[RUEDA_STORE_KEY_BYTES];
};

/* How far we have come on the way to the store. */
typedef enum stage {
    AWAY,
    DIALLING,
    PROVING,
    ATTACHING,
    THERE,
} stage;

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
    bool is_over;      /* it has said that it closes */
    bool is_lost;      /* look() has not found it again */
    stage stage;
    int fd;                       /* -1: AWAY */
    struct rueda_handshake shake; /* while PROVING */
    int way;                      /* that look() has taken or takes next */
    int dead_ends;                /* of its ways in a row: nobody is there */
    int64_t way_ns;     /* when it has taken the way or, if AWAY, takes it */
    int64_t give_up_ns; /* when it does; 0: it does not look for the store */
    int cause;          /* errno of the last address that led nowhere */
    struct rueda_fork_hook fork_hook;
    uint64_t number; /* of the last request */
    struct rueda_inbox inbox;
    size_t wanted;   /* bytes of the frame that is coming */
    size_t consumed; /* of the inbox, by the reply that is lent out */
    struct watch watches[RUEDA_STORE_MOST_WATCHES];
    struct post post;
};

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- The way there ------------------------------------------------------ */

static void hang_up(struct rueda_client *client)
{
    rueda_fd_close(client->fd);
    rueda_handshake_fini(&client->shake);
    client->fd = -1;
    client->stage = AWAY;
    client->inbox.len = 0;
    client->consumed = 0;
    client->wanted = RUEDA_STORE_HEAD_BYTES;
    client->post.is_sent = false;
}

/* Prove myself, and let the store prove itself. */
static rueda_status begin_proof(struct rueda_client *client)
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];

    client->stage = PROVING;
    rueda_meet_about_write(about, client->args.rank, client->args.size);
    return rueda_handshake_init(&client->shake, RUEDA_INITIATOR, &client->key,
                                about, sizeof(about));
}

/* Way 0 is the Unix socket, the others are addresses. RUEDA_ERR_IO, with errno:
 * this one leads nowhere now. */
static rueda_status set_out(struct rueda_client *client, int way)
{
    rueda_status status = RUEDA_ERR_IO;

    errno = ECONNREFUSED; /* by who is not there, if there is no such way */
    if (way > 0)
        status =
            rueda_tcp_connect(&client->args.addresses[way - 1], &client->fd);
    else if (client->args.socket != NULL)
        status = rueda_unix_connect(client->args.socket, &client->fd);
    if (status != RUEDA_OK) {
        client->fd = -1;
        return RUEDA_ERR_IO;
    }
    if (client->args.on_socket != NULL)
        client->args.on_socket(client->args.arg, client->fd);
    client->stage = DIALLING;
    return way > 0 ? RUEDA_OK : begin_proof(client);
}

/* ---- Frames ------------------------------------------------------------- */

static rueda_status send_request(struct rueda_client *client,
                                 const struct rueda_store_request *request,
                                 int64_t deadline_ns)
{
    unsigned char start[RUEDA_STORE_START_BYTES];
    size_t bytes = rueda_store_request_encode(request, start);
    rueda_status status =
        rueda_stream_send_all(client->fd, start, bytes, deadline_ns);

    if (status == RUEDA_OK && request->value_bytes > 0)
        status = rueda_stream_send_all(client->fd, request->value,
                                       request->value_bytes, deadline_ns);
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
    /* What is no reply is no store. */
    return status == RUEDA_ERR_INVALID ? RUEDA_ERR_PEER_LOST : status;
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
        client->give_up_ns = 0;
    }
    return status;
}

/* Go as far as we can without waiting. RUEDA_OK: we are there.
 * RUEDA_IN_PROGRESS: fd has to be waited for. Else this way leads nowhere. */
static rueda_status go_on(struct rueda_client *client, struct rueda_text *error)
{
    const int questions = client->args.questions;
    rueda_status status = RUEDA_OK;

    if (client->stage == DIALLING) {
        status = rueda_tcp_connected(client->fd);
        if (status != RUEDA_OK)
            return status;
        rueda_tcp_keep_alive(client->fd, questions > 0 ? questions : QUESTIONS);
        status = begin_proof(client);
    }
    if (status == RUEDA_OK && client->stage == PROVING) {
        status = rueda_shake_step(client->fd, &client->shake);
        if (status == RUEDA_ERR_AUTH || status == RUEDA_ERR_VERSION)
            rueda_text_set(error, "rank %d and the store do not agree: %s",
                           client->args.rank,
                           rueda_handshake_error(&client->shake));
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

/* To the end of the way that we have taken, until then. */
static rueda_status walk(struct rueda_client *client, int64_t deadline_ns,
                         struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK) {
        status = go_on(client, error);
        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (status == RUEDA_IN_PROGRESS)
            status = rueda_stream_await(client->fd, client->stage == DIALLING,
                                        deadline_ns);
    }
    return status;
}

/* Try all ways once: one of them may lead to somebody else. One that look() has
 * taken comes first. A refusal, with its words, if there was one and no way led
 * to the store; RUEDA_IN_PROGRESS: none leads anywhere now. */
static rueda_status try_ways(struct rueda_client *client, int64_t deadline_ns,
                             struct rueda_text *error)
{
    rueda_status worst = RUEDA_IN_PROGRESS;

    error->chars[0] = '\0';
    for (int way = client->stage != AWAY ? -1 : 0;
         way <= client->args.address_count; way++) {
        int64_t until = sooner(deadline_ns, rueda_clock_ns() + WAY_NS);
        rueda_status status = way < 0 ? RUEDA_OK : set_out(client, way);

        if (status == RUEDA_OK)
            status = walk(client, until, error);
        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (way > 0)
            client->cause = status == RUEDA_ERR_IO ? errno : ETIMEDOUT;
        hang_up(client);
        if (is_refusal(status))
            worst = status;
    }
    return worst;
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
    int64_t pause = FIRST_PAUSE_NS;
    int64_t doubt_ns = INT64_MAX; /* until then a refusal is not believed */

    for (;;) {
        rueda_status status = try_ways(client, deadline_ns, error);
        int64_t now = rueda_clock_ns();

        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (is_refusal(status)) {
            doubt_ns = sooner(doubt_ns, now + DOUBT_NS);
            if (now >= doubt_ns || now + pause >= deadline_ns)
                return status;
        }
        if (now + pause >= deadline_ns)
            return RUEDA_ERR_TIMEOUT;
        rueda_sleep_ns(pause);
        pause = sooner(2 * pause, MOST_PAUSE_NS);
    }
}

static void close_in_child(struct rueda_fork_hook *hook)
{
    struct rueda_client *client =
        (struct rueda_client *)((char *)hook -
                                offsetof(struct rueda_client, fork_hook));

    rueda_fd_close(client->fd);
    client->fd = -1;
    client->stage = AWAY;
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
        if (client->cause != 0)
            rueda_text_add(error, " (%s)", strerror(client->cause));
        rueda_text_add(error, "; is rank 0 running, and can this host reach "
                              "it?");
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
        if (client->stage != THERE)
            status = connect_by(client, sooner(deadline_ns, give_up_ns), error);
        if (status != RUEDA_OK && give_up_ns != INT64_MAX)
            return lost(client, status, error);
        if (status == RUEDA_OK && client->is_forgotten) {
            client->is_forgotten = false;
            rueda_text_set(error, "the store has been started anew");
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
        hang_up(client);
        if (give_up_ns == INT64_MAX)
            give_up_ns = rueda_clock_ns() + LOST_NS;
    }
}

/* ---- Coming back -------------------------------------------------------- */

/* How long the host of the store may be silent. */
static int64_t patience_ns(const struct rueda_client *client)
{
    const int questions = client->args.questions;

    return (questions > 0 ? questions : QUESTIONS) * (int64_t)1000000000;
}

/* Is this the only way at whose end anybody is? */
static bool is_only_way(const struct rueda_client *client)
{
    return client->stage > DIALLING &&
           client->dead_ends == client->args.address_count;
}

/* The way that look() has taken, or takes now, one step further. As go_on(). */
static rueda_status step(struct rueda_client *client, int64_t now)
{
    struct rueda_text ignored = {{0}};
    rueda_status status = RUEDA_OK;

    if (client->stage == AWAY) {
        if (now < client->way_ns)
            return RUEDA_IN_PROGRESS;
        client->way_ns = now;
        status = set_out(client, client->way);
    }
    if (status == RUEDA_OK)
        status = go_on(client, &ignored);
    if (status != RUEDA_IN_PROGRESS ||
        now - client->way_ns < (is_only_way(client) ? ONLY_WAY_NS : WAY_NS))
        return status;
    /* Somebody listens, be it a store that is stopped: it is not gone. */
    if (client->stage > DIALLING)
        client->give_up_ns = now + patience_ns(client);
    return RUEDA_ERR_TIMEOUT;
}

/* The way led nowhere, with errno. False: nor will any other. */
static bool turn_back(struct rueda_client *client, rueda_status status,
                      int64_t now)
{
    const int ways = client->args.address_count + 1;
    const bool is_nobody = status == RUEDA_ERR_IO && errno == ECONNREFUSED;
    const bool is_stranger = status == RUEDA_ERR_AUTH ||
                             status == RUEDA_ERR_VERSION ||
                             status == RUEDA_ERR_MISMATCH;

    hang_up(client);
    client->dead_ends = is_nobody || is_stranger ? client->dead_ends + 1 : 0;
    client->way = (client->way + 1) % ways;
    if (client->way == 0)
        client->way_ns = now + MOST_PAUSE_NS;
    return client->dead_ends < ways && now < client->give_up_ns;
}

/* RUEDA_IN_PROGRESS: it takes longer. RUEDA_ERR_PEER_LOST: there is no way. */
static rueda_status come_back(struct rueda_client *client)
{
    const int64_t now = rueda_clock_ns();

    if (client->give_up_ns == 0) {
        client->give_up_ns = now + patience_ns(client);
        client->way_ns = now;
        client->way = 0;
        client->dead_ends = 0;
    }
    for (;;) {
        rueda_status status = step(client, now);

        if (status == RUEDA_OK)
            return client->is_forgotten ? RUEDA_ERR_PEER_LOST : RUEDA_OK;
        if (status == RUEDA_IN_PROGRESS)
            return status;
        if (!turn_back(client, status, now))
            return RUEDA_ERR_PEER_LOST;
    }
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

rueda_status rueda_client_poll(struct rueda_client *client,
                               struct rueda_text *error)
{
    struct rueda_store_reply reply;
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK && client->stage == THERE) {
        status = next_reply(client, &reply);
        if (status == RUEDA_OK)
            take_event(client, &reply);
    }
    if (status == RUEDA_IN_PROGRESS)
        return RUEDA_OK;
    hang_up(client);
    status = connect_by(client, rueda_clock_ns() + LOST_NS, error);
    return status == RUEDA_OK ? RUEDA_OK : lost(client, status, error);
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
#define FAREWELL_NS ((int64_t)200000000)

/* One that was cut is made again, or the store would take us for dead. */
static rueda_status be_there(struct rueda_client *client, int64_t deadline_ns)
{
    struct rueda_text ignored = {{0}};
    rueda_status status = RUEDA_ERR_PEER_LOST;

    if (client->stage != AWAY || client->give_up_ns != 0)
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
    bye.number = client->number + 1;
    if (be_there(client, deadline) == RUEDA_OK &&
        send_request(client, &bye, deadline) == RUEDA_OK)
        await_reply(client, bye.number, deadline, &reply);
    client_free(client);
}
