/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's server: a thread that owns a store, admits the ranks and passes
 * their requests to it. A guest is a connection that has proven itself
 * (auth/admission.h). It has a number for the store, made of its entry in the
 * table and of a count of guests, so that an answer to a guest that has left
 * does not reach the next one.
 */
#define RUEDA_LOG_TAG "job"

#include "job/store/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "auth/admission.h"
#include "base/log.h"
#include "job/store/inbox.h"
#include "job/store/outbox.h"
#include "job/store/wire.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/process.h"
#include "os/random.h"
#include "os/stream.h"
#include "os/thread.h"
#include "os/unix_socket.h"
#include "segment/wire.h"

/* Guests beyond the number of ranks: a rank that comes again may be here before
 * the end of its old connection is seen. */
#define SPARE_GUESTS 64

#define QUESTIONS 4

/* A rank that is away for longer has ended. */
#define GRACE_MS 2000

/* A rank whose connection was cut finds out when it has done its sums and looks
 * at it; if it has died as well, its host knows. */
#define PATIENCE_MS 600000

/* Numbers of the poller: guests from 0, then these. */
#define STOP_EVENT      UINT32_MAX
#define ADMISSION_EVENT (UINT32_MAX - 1)

/* The connection of the program itself, which is no guest. */
#define OWN_CONNECTION UINT64_MAX

struct guest {
    int fd; /* -1: not in use */
    uint64_t connection;
    bool is_lost; /* to be closed at the end of the turn */
    bool wants_write;
    struct rueda_address from;
    struct rueda_inbox inbox;
    size_t wanted; /* bytes of the frame that is coming */
    struct rueda_outbox outbox;
    struct rueda_sealed_stream seal; /* by TCP; else all zero */
};

/* A key that the program itself sets. */
struct letter {
    struct letter *next;
    size_t key_bytes;
    size_t bytes;
    unsigned char words[]; /* key, then value */
};

struct rueda_keeper {
    int size;
    struct rueda_key key;
    struct rueda_store *store;
    int poller;
    int stop; /* a doorbell, for letters too */
    atomic_bool is_stopping;
    atomic_bool has_met;                            /* a rank has come */
    int listeners[RUEDA_KEEPER_MOST_ADDRESSES + 1]; /* the last: Unix */
    struct rueda_address addresses[RUEDA_KEEPER_MOST_ADDRESSES];
    int address_count;
    struct rueda_admission admission;
    struct guest *guests; /* [guest_count] */
    size_t guest_count;
    uint64_t connections; /* so far */
    pthread_mutex_t letter_lock;
    struct letter *letters; /* under letter_lock: the newest first */
    uint64_t own_requests;
    void (*changed)(void *arg, const char *key, size_t key_bytes,
                    const void *value, size_t bytes);
    void *arg;
    pthread_t thread;
    struct rueda_fork_hook fork_hook;
};

#define UNIX_LISTENER RUEDA_KEEPER_MOST_ADDRESSES

static uint32_t place_of(const struct rueda_keeper *keeper,
                         const struct guest *guest)
{
    return (uint32_t)(guest - keeper->guests);
}

/* ---- Replies ------------------------------------------------------------ */

/* The store's callback. */
static void emit(void *arg, uint64_t connection,
                 const struct rueda_store_reply *reply)
{
    struct rueda_keeper *keeper = arg;
    struct guest *guest = &keeper->guests[connection % keeper->guest_count];

    if (connection == OWN_CONNECTION) {
        if (reply->kind == RUEDA_STORE_EVENT_SET)
            keeper->changed(keeper->arg, reply->key, reply->key_bytes,
                            reply->value, reply->value_bytes);
        return;
    }
    if (guest->fd < 0 || guest->connection != connection)
        return;
    /* It has come again over another connection; or it does not read, or there
     * is no memory for it. */
    if ((reply->kind == RUEDA_STORE_BYE && reply->number == 0) ||
        rueda_outbox_add(&guest->outbox, reply) != RUEDA_OK)
        guest->is_lost = true;
}

static void send_replies(struct rueda_keeper *keeper, struct guest *guest)
{
    bool is_empty;

    if (!guest->is_lost && rueda_outbox_send(&guest->outbox, guest->fd) < 0)
        guest->is_lost = true;
    is_empty = rueda_outbox_is_empty(&guest->outbox);
    if (guest->wants_write == is_empty) {
        guest->wants_write = !is_empty;
        rueda_poller_write(keeper->poller, guest->fd, place_of(keeper, guest),
                           guest->wants_write);
    }
}

/* ---- Guests ------------------------------------------------------------- */

static void dismiss(struct rueda_keeper *keeper, struct guest *guest)
{
    rueda_store_detach(keeper->store, guest->connection,
                       rueda_stream_is_cut(guest->fd), rueda_clock_ns());
    rueda_outbox_fini(&guest->outbox);
    rueda_poller_remove(keeper->poller, guest->fd);
    rueda_fd_close(guest->fd);
    rueda_inbox_fini(&guest->inbox);
    rueda_sealed_stream_fini(&guest->seal);
    guest->fd = -1;
}

/* What passes over TCP is sealed, from the handshake on. */
static struct rueda_sealed_stream *
make_seal(const struct rueda_handshake *shake, const struct rueda_address *from,
          struct rueda_sealed_stream *out)
{
    *out = (struct rueda_sealed_stream){.piece = 0};
    if (from->len == 0)
        return NULL;
    /* There is a key wherever there is TCP; without one all that follows
     * fails. */
    rueda_sealed_stream_init(out, rueda_handshake_session_key(shake),
                             RUEDA_ACCEPTOR);
    return out;
}

/* Tell it why, as the answer to its first request; best effort. */
static void refuse(int fd, const struct rueda_handshake *shake,
                   const struct rueda_address *from,
                   const struct rueda_text *why)
{
    const struct rueda_store_reply reply = {.kind = RUEDA_STORE_ATTACH,
                                            .number = 1,
                                            .status = RUEDA_ERR_MISMATCH,
                                            .value = why->chars,
                                            .value_bytes = strlen(why->chars)};
    struct rueda_sealed_stream seal;
    struct rueda_outbox outbox = {.seal = make_seal(shake, from, &seal)};

    if (rueda_outbox_add(&outbox, &reply) == RUEDA_OK)
        rueda_outbox_send(&outbox, fd);
    rueda_outbox_fini(&outbox);
    rueda_sealed_stream_fini(&seal);
}

/* A connection has proven that it is of the job; is it of the right one? */
static bool fits(const struct rueda_keeper *keeper,
                 const struct rueda_handshake *shake, struct rueda_text *why)
{
    const void *about;
    size_t bytes;
    int rank;
    int size;

    about = rueda_handshake_peer_about(shake, &bytes);
    if (!rueda_meet_about_read(about, bytes, &rank, &size))
        rueda_text_set(why,
                       "the store does not understand what the connection is");
    else if (keeper->size > 0 &&
             (size != keeper->size || rank < 0 || rank >= size))
        rueda_text_set(why,
                       "rank %d of %d came to the store of a job of %d ranks; "
                       "start all with the same number",
                       rank, size, keeper->size);
    return rueda_text_is_empty(why);
}

static struct guest *find_vacant(struct rueda_keeper *keeper)
{
    for (size_t i = 0; i < keeper->guest_count; i++)
        if (keeper->guests[i].fd < 0)
            return &keeper->guests[i];
    return NULL;
}

/* The admission's callback. */
static rueda_status admit(void *arg, int fd,
                          const struct rueda_handshake *shake,
                          const struct rueda_address *from,
                          struct rueda_text *why)
{
    struct rueda_keeper *keeper = arg;
    struct guest *guest = find_vacant(keeper);

    if (!fits(keeper, shake, why)) {
        refuse(fd, shake, from, why);
        return RUEDA_ERR_MISMATCH;
    }
    if (guest == NULL ||
        rueda_poller_add(keeper->poller, fd, place_of(keeper, guest)) !=
            RUEDA_OK) {
        rueda_text_set(why, "too many connections");
        return RUEDA_ERR_LIMIT;
    }
    *guest = (struct guest){
        .fd = fd,
        .connection = keeper->connections++ * keeper->guest_count +
                      place_of(keeper, guest),
        .from = *from,
        .wanted = RUEDA_STORE_HEAD_BYTES,
    };
    guest->inbox.seal = make_seal(shake, from, &guest->seal);
    guest->outbox.seal = guest->inbox.seal;
    atomic_store(&keeper->has_met, true);
    return RUEDA_OK;
}

static void hear(struct rueda_keeper *keeper, struct guest *guest)
{
    struct rueda_store_request request;
    rueda_status status;
    size_t bytes;

    status = rueda_inbox_fill(&guest->inbox, guest->fd, guest->wanted);
    if (status < 0)
        guest->is_lost = true;
    if (status == RUEDA_ERR_AUTH)
        rueda_admission_refuse(&keeper->admission, RUEDA_REFUSED_MISFIT,
                               &guest->from,
                               "what came is not what it has sealed: it was "
                               "changed on the way");
    while (!guest->is_lost) {
        status = rueda_store_request_decode(guest->inbox.bytes,
                                            guest->inbox.len, &request, &bytes);
        if (status == RUEDA_IN_PROGRESS) {
            guest->wanted = bytes;
            return;
        }
        if (status != RUEDA_OK) {
            rueda_admission_refuse(&keeper->admission, RUEDA_REFUSED_MISFIT,
                                   &guest->from, "what it sent is no request");
            guest->is_lost = true;
            return;
        }
        rueda_store_ask(keeper->store, guest->connection, &request,
                        rueda_clock_ns());
        rueda_inbox_drop(&guest->inbox, bytes);
    }
}

/* ---- The program itself ------------------------------------------------- */

static void ask_own(struct rueda_keeper *keeper,
                    struct rueda_store_request request)
{
    request.number = ++keeper->own_requests;
    rueda_store_ask(keeper->store, OWN_CONNECTION, &request, rueda_clock_ns());
}

/* Before the thread runs. */
static void watch(struct rueda_keeper *keeper,
                  const struct rueda_keeper_args *args)
{
    static const char session[RUEDA_STORE_SESSION_BYTES] = "the keeper's own";

    keeper->changed = args->changed;
    keeper->arg = args->arg;
    if (args->watched == NULL)
        return;
    ask_own(keeper, (struct rueda_store_request){.kind = RUEDA_STORE_ATTACH,
                                                 .key = session,
                                                 .key_bytes = sizeof(session)});
    ask_own(keeper,
            (struct rueda_store_request){.kind = RUEDA_STORE_WATCH,
                                         .key = args->watched,
                                         .key_bytes = strlen(args->watched)});
}

bool rueda_keeper_set(struct rueda_keeper *keeper, const char *key,
                      const void *value, size_t bytes)
{
    const size_t key_bytes = strlen(key);
    struct letter *letter = malloc(sizeof(*letter) + key_bytes + bytes);

    if (letter == NULL)
        return false;
    letter->key_bytes = key_bytes;
    letter->bytes = bytes;
    memcpy(letter->words, key, letter->key_bytes);
    memcpy(letter->words + key_bytes, value, bytes);
    pthread_mutex_lock(&keeper->letter_lock);
    letter->next = keeper->letters;
    keeper->letters = letter;
    pthread_mutex_unlock(&keeper->letter_lock);
    rueda_doorbell_ring(keeper->stop);
    return true;
}

/* All that have come, the oldest first. */
static struct letter *take_letters(struct rueda_keeper *keeper)
{
    struct letter *newest;
    struct letter *oldest = NULL;

    pthread_mutex_lock(&keeper->letter_lock);
    newest = keeper->letters;
    keeper->letters = NULL;
    pthread_mutex_unlock(&keeper->letter_lock);
    while (newest != NULL) {
        struct letter *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void free_letters(struct letter *letter)
{
    while (letter != NULL) {
        struct letter *next = letter->next;

        free(letter);
        letter = next;
    }
}

static void read_letters(struct rueda_keeper *keeper)
{
    struct letter *letters = take_letters(keeper);

    for (const struct letter *at = letters; at != NULL; at = at->next)
        ask_own(keeper,
                (struct rueda_store_request){.kind = RUEDA_STORE_SET,
                                             .key = at->words,
                                             .key_bytes = at->key_bytes,
                                             .value = at->words + at->key_bytes,
                                             .value_bytes = at->bytes});
    free_letters(letters);
}

/* ---- The thread --------------------------------------------------------- */

static void serve(struct rueda_keeper *keeper, uint32_t number)
{
    /* tidy() calls the admission in every turn. */
    if (number == STOP_EVENT) {
        rueda_doorbell_clear(keeper->stop);
        read_letters(keeper);
        return;
    }
    if (number == ADMISSION_EVENT)
        return;
    if (keeper->guests[number].fd >= 0)
        hear(keeper, &keeper->guests[number]);
}

/* Admit, send what there is to be sent, close the lost. Returns when there is
 * something to do again. */
static int64_t tidy(struct rueda_keeper *keeper)
{
    rueda_admission_progress(&keeper->admission, rueda_clock_ns());
    for (size_t i = 0; i < keeper->guest_count; i++) {
        struct guest *guest = &keeper->guests[i];

        if (guest->fd < 0)
            continue;
        send_replies(keeper, guest);
        if (guest->is_lost)
            dismiss(keeper, guest);
    }
    return rueda_admission_next_ns(&keeper->admission);
}

static void *keep(void *arg)
{
    struct rueda_keeper *keeper = arg;
    int64_t next = INT64_MAX;
    uint32_t numbers[64];

    while (!atomic_load(&keeper->is_stopping)) {
        int64_t due = rueda_store_next_ns(keeper->store);
        int64_t until = due < next ? due : next;
        int64_t left = until == INT64_MAX ? -1 : until - rueda_clock_ns();
        int found;

        if (until != INT64_MAX && left < 0)
            left = 0;
        found = rueda_poller_wait(keeper->poller, left, numbers, 64);
        for (int i = 0; i < found; i++)
            serve(keeper, numbers[i]);
        rueda_store_tick(keeper->store, rueda_clock_ns());
        next = tidy(keeper);
    }
    return NULL;
}

/* ---- Life --------------------------------------------------------------- */

/* A name may stand for addresses of which not all are of this host. */
static rueda_status listen_tcp(struct rueda_keeper *keeper,
                               const struct rueda_keeper_args *args,
                               struct rueda_text *error)
{
    for (int i = 0; i < args->address_count; i++) {
        int at = keeper->address_count;
        char text[RUEDA_ADDRESS_TEXT];

        if (rueda_socket_listen(&args->addresses[i], &keeper->listeners[at],
                                &keeper->addresses[at]) == RUEDA_OK &&
            rueda_admission_listen(&keeper->admission, keeper->listeners[at],
                                   false) == RUEDA_OK) {
            keeper->address_count++;
            continue;
        }
        if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)
            continue;
        rueda_address_text(&args->addresses[i], text, sizeof(text));
        rueda_text_set(error,
                       "the store cannot listen at %s: %s; is another job "
                       "there? Then choose another port",
                       text, strerror(errno));
        return RUEDA_ERR_IO;
    }
    if (keeper->address_count > 0 || args->address_count == 0)
        return RUEDA_OK;
    rueda_text_set(error, "the store's address is not one of this host, where "
                          "rank 0 is to hold it");
    return RUEDA_ERR_INVALID;
}

static rueda_status listen_all(struct rueda_keeper *keeper,
                               const struct rueda_keeper_args *args,
                               struct rueda_text *error)
{
    static const struct rueda_admission_ops ops = {.proven = admit};
    const struct rueda_admission_args admission = {
        .who = "the store",
        .purpose = RUEDA_FOR_STORE,
        .key = &keeper->key,
        .keep_alive = args->questions > 0 ? args->questions : QUESTIONS,
        .ops = &ops,
        .arg = keeper};
    int *local = &keeper->listeners[UNIX_LISTENER];

    if (rueda_poller_open(&keeper->poller) != RUEDA_OK ||
        rueda_doorbell_open(&keeper->stop) != RUEDA_OK ||
        rueda_poller_add(keeper->poller, keeper->stop, STOP_EVENT) !=
            RUEDA_OK ||
        rueda_admission_init(&keeper->admission, &admission) != RUEDA_OK ||
        rueda_poller_add(keeper->poller, rueda_admission_fd(&keeper->admission),
                         ADMISSION_EVENT) != RUEDA_OK) {
        rueda_text_set(error, "no descriptors for the store: %s",
                       strerror(errno));
        return RUEDA_ERR_IO;
    }
    if (args->socket != NULL &&
        (rueda_unix_listen(args->socket, local) != RUEDA_OK ||
         rueda_admission_listen(&keeper->admission, *local, true) !=
             RUEDA_OK)) {
        rueda_text_set(error, "the store cannot listen at \"%s\": %s",
                       args->socket, strerror(errno));
        return RUEDA_ERR_IO;
    }
    return listen_tcp(keeper, args, error);
}

/* In the child of a fork: its copies must not keep connections alive. */
static void close_in_child(struct rueda_fork_hook *hook)
{
    struct rueda_keeper *keeper =
        (struct rueda_keeper *)((char *)hook -
                                offsetof(struct rueda_keeper, fork_hook));

    rueda_admission_forked(&keeper->admission);
    rueda_fd_close(keeper->poller);
    rueda_fd_close(keeper->stop);
    for (int i = 0; i <= UNIX_LISTENER; i++)
        rueda_fd_close(keeper->listeners[i]);
    for (size_t i = 0; i < keeper->guest_count; i++)
        rueda_fd_close(keeper->guests[i].fd);
}

/* Tell a guest that the store ends in good order, so that it does not report
 * the store as lost. Best effort: a guest that has not read what was sent
 * before gets only a part of it. */
static void say_goodbye(struct guest *guest)
{
    const struct rueda_store_reply bye = {.kind = RUEDA_STORE_BYE};

    if (rueda_outbox_is_empty(&guest->outbox) &&
        rueda_outbox_add(&guest->outbox, &bye) == RUEDA_OK)
        rueda_outbox_send(&guest->outbox, guest->fd);
}

static void keeper_free(struct rueda_keeper *keeper)
{
    rueda_admission_fini(&keeper->admission);
    for (size_t i = 0; i < keeper->guest_count; i++)
        if (keeper->guests[i].fd >= 0) {
            say_goodbye(&keeper->guests[i]);
            dismiss(keeper, &keeper->guests[i]);
        }
    for (int i = 0; i <= UNIX_LISTENER; i++)
        rueda_fd_close(keeper->listeners[i]);
    rueda_fd_close(keeper->poller);
    rueda_fd_close(keeper->stop);
    rueda_store_close(keeper->store);
    free_letters(keeper->letters);
    pthread_mutex_destroy(&keeper->letter_lock);
    rueda_key_wipe(&keeper->key);
    free(keeper->guests);
    free(keeper);
}

static struct rueda_keeper *keeper_new(const struct rueda_keeper_args *args)
{
    struct rueda_keeper *keeper = calloc(1, sizeof(*keeper));
    struct rueda_store_options options = {.emit = emit,
                                          .arg = keeper,
                                          .grace_ms = GRACE_MS,
                                          .patience_ms = PATIENCE_MS};
    const size_t most =
        SPARE_GUESTS + (size_t)(args->most > 0 ? args->most : args->size);

    if (keeper == NULL)
        return NULL;
    pthread_mutex_init(&keeper->letter_lock, NULL);
    keeper->size = args->size;
    keeper->key = *args->key;
    keeper->poller = -1;
    keeper->stop = -1;
    for (int i = 0; i <= UNIX_LISTENER; i++)
        keeper->listeners[i] = -1;
    keeper->guests = calloc(most, sizeof(struct guest));
    if (keeper->guests != NULL)
        keeper->guest_count = most;
    for (size_t i = 0; i < keeper->guest_count; i++)
        keeper->guests[i].fd = -1;
    /* Any seed will do if there is no better one. */
    rueda_random_fill(&options.seed, sizeof(options.seed));
    if (keeper->guests == NULL ||
        rueda_store_open(&options, &keeper->store) != RUEDA_OK) {
        keeper_free(keeper);
        return NULL;
    }
    return keeper;
}

rueda_status rueda_keeper_open(const struct rueda_keeper_args *args,
                               struct rueda_keeper **out,
                               struct rueda_text *error)
{
    struct rueda_keeper *keeper;
    rueda_status status;

    if (args->address_count > 0 && !args->key->present) {
        rueda_text_set(error, "a store that others reach by TCP needs a key");
        return RUEDA_ERR_AUTH;
    }
    keeper = keeper_new(args);
    if (keeper == NULL) {
        rueda_text_set(error, "no memory for the store");
        return RUEDA_ERR_NOMEM;
    }
    watch(keeper, args);
    status = listen_all(keeper, args, error);
    if (status != RUEDA_OK)
        goto err;
    if (rueda_thread_start(&keeper->thread, keep, keeper) != RUEDA_OK) {
        rueda_text_set(error, "no thread for the store: %s; raise `ulimit -u`",
                       strerror(errno));
        status = RUEDA_ERR_LIMIT;
        goto err;
    }
    keeper->fork_hook.in_child = close_in_child;
    rueda_fork_hook_add(&keeper->fork_hook);
    *out = keeper;
    return RUEDA_OK;

err:
    keeper_free(keeper);
    return status;
}

const struct rueda_address *
rueda_keeper_addresses(const struct rueda_keeper *keeper, int *out_count)
{
    *out_count = keeper->address_count;
    return keeper->addresses;
}

bool rueda_keeper_has_met(const struct rueda_keeper *keeper)
{
    return atomic_load(&((struct rueda_keeper *)keeper)->has_met);
}

void rueda_keeper_close(struct rueda_keeper *keeper)
{
    if (keeper == NULL)
        return;
    rueda_fork_hook_remove(&keeper->fork_hook);
    atomic_store(&keeper->is_stopping, true);
    rueda_doorbell_ring(keeper->stop);
    rueda_thread_join(keeper->thread);
    keeper_free(keeper);
}
