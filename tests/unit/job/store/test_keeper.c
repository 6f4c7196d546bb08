/* SPDX-License-Identifier: Apache-2.0 */
/* The store over real sockets: a keeper and its clients in one process. */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "auth/shake.h"
#include "base/log.h"
#include "job/store/client.h"
#include "job/store/keeper.h"
#include "job/store/wire.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "segment/wire.h"
#include "unit/unit.h"

#define MS   ((int64_t)1000000)
#define SIZE 3

/* A keeper at a Unix socket and at a port of each loopback. */
struct place {
    char socket[64];
    struct rueda_key key;
    struct rueda_address addresses[2];
    int address_count;
    struct rueda_keeper *keeper;
    struct rueda_text error;
    int deaf; /* a listener that is no store */
    int deaf_fd;
    int events;
    int sockets; /* that were shown to who sleeps */
    char last_key[64];
    int descriptors;
};

static void hush(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static rueda_status open_keeper(struct place *place)
{
    const struct rueda_keeper_args args = {.size = SIZE,
                                           .socket = place->socket,
                                           .key = &place->key,
                                           .addresses = place->addresses,
                                           .address_count =
                                               place->address_count};
    const struct rueda_address *bound;
    rueda_status status =
        rueda_keeper_open(&args, &place->keeper, &place->error);

    if (status == RUEDA_OK) {
        bound = rueda_keeper_addresses(place->keeper, &place->address_count);
        memcpy(place->addresses, bound,
               (size_t)place->address_count * sizeof(*bound));
    }
    return status;
}

static int place_open(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    if (place == NULL)
        return -1;
    rueda_log_set_sink(hush, NULL);
    place->descriptors = count_descriptors();
    snprintf(place->socket, sizeof(place->socket), "rueda-test-keeper-%d",
             (int)getpid());
    place->address_count =
        rueda_address_find("127.0.0.1:0", place->addresses, 1, &place->error);
    place->address_count += rueda_address_find(
        "[::1]:0", place->addresses + place->address_count, 1, &place->error);
    *state = place;
    return rueda_key_create(&place->key) == RUEDA_OK &&
                   open_keeper(place) == RUEDA_OK
               ? 0
               : -1;
}

static int place_close(void **state)
{
    struct place *place = *state;
    bool is_clean;

    rueda_keeper_close(place->keeper);
    is_clean = count_descriptors() == place->descriptors;
    free(place);
    return is_clean ? 0 : -1;
}

static void note_event(void *arg, const struct rueda_store_reply *event)
{
    struct place *place = arg;

    place->events++;
    snprintf(place->last_key, sizeof(place->last_key), "%.*s",
             (int)event->key_bytes, (const char *)event->key);
}

static void note_socket(void *arg, int fd)
{
    struct place *place = arg;

    assert_true(fd >= 0);
    place->sockets++;
}

/* By the Unix socket if way is 0, else by that address. */
static struct rueda_client_args args_for(struct place *place, int way)
{
    struct rueda_client_args args = {
        .rank = 1,
        .size = SIZE,
        .socket = way == 0 ? place->socket : NULL,
        .addresses = way == 0 ? NULL : &place->addresses[way - 1],
        .address_count = way == 0 ? 0 : 1,
        .key = &place->key,
        .on_event = note_event,
        .on_socket = note_socket,
        .arg = place,
    };

    return args;
}

static rueda_status try_open(struct place *place,
                             const struct rueda_client_args *args,
                             struct rueda_client **out)
{
    place->error.chars[0] = '\0';
    return rueda_client_open(args, rueda_clock_ns() + 2000 * MS, out,
                             &place->error);
}

static struct rueda_client *client_for(struct place *place, int way)
{
    struct rueda_client_args args = args_for(place, way);
    struct rueda_client *client = NULL;

    assert_int_equal(try_open(place, &args, &client), RUEDA_OK);
    return client;
}

static rueda_status ask(struct rueda_client *client, rueda_store_kind kind,
                        const char *key, const char *value,
                        struct rueda_store_reply *reply)
{
    struct rueda_text error = {{0}};

    return rueda_client_ask(
        client,
        &(struct rueda_store_request){.kind = kind,
                                      .key = key,
                                      .key_bytes = strlen(key),
                                      .value = value,
                                      .value_bytes = strlen(value),
                                      .count = 1},
        rueda_clock_ns() + 5000 * MS, reply, &error);
}

/* ---- Good days ---------------------------------------------------------- */

static void what_one_sets_another_gets_whatever_the_way(void **state)
{
    struct place *place = *state;
    struct rueda_store_reply reply;

    for (int way = 0; way <= place->address_count; way++) {
        struct rueda_client *writer = client_for(place, way);
        struct rueda_client *reader = client_for(place, 0);
        char key[16];

        snprintf(key, sizeof(key), "way/%d", way);
        assert_int_equal(ask(writer, RUEDA_STORE_SET, key, "here", &reply),
                         RUEDA_OK);
        assert_int_equal(ask(reader, RUEDA_STORE_WAIT, key, "", &reply),
                         RUEDA_OK);
        assert_int_equal(reply.value_bytes, 4);
        assert_memory_equal(reply.value, "here", 4);
        rueda_client_close(writer);
        rueda_client_close(reader);
    }
}

static void the_largest_value_passes(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 1);
    struct rueda_text error = {{0}};
    struct rueda_store_reply reply;
    char *value = malloc(RUEDA_STORE_VALUE_BYTES);

    assert_non_null(value);
    memset(value, 'v', RUEDA_STORE_VALUE_BYTES);
    assert_int_equal(
        rueda_client_ask(client,
                         &(struct rueda_store_request){
                             .kind = RUEDA_STORE_SET,
                             .key = "large",
                             .key_bytes = 5,
                             .value = value,
                             .value_bytes = RUEDA_STORE_VALUE_BYTES},
                         rueda_clock_ns() + 20000 * MS, &reply, &error),
        RUEDA_OK);
    assert_int_equal(ask(client, RUEDA_STORE_GET, "large", "", &reply),
                     RUEDA_OK);
    assert_int_equal(reply.value_bytes, RUEDA_STORE_VALUE_BYTES);
    assert_memory_equal(reply.value, value, RUEDA_STORE_VALUE_BYTES);
    free(value);
    rueda_client_close(client);
}

static void a_wait_ends_at_the_deadline(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 0);
    struct rueda_text error = {{0}};
    struct rueda_store_reply reply;

    assert_int_equal(
        rueda_client_ask(client,
                         &(struct rueda_store_request){.kind = RUEDA_STORE_WAIT,
                                                       .key = "never",
                                                       .key_bytes = 5},
                         rueda_clock_ns() + 30 * MS, &reply, &error),
        RUEDA_ERR_TIMEOUT);
    /* The answer that may still come is not taken for another's. */
    assert_int_equal(ask(client, RUEDA_STORE_SET, "never", "now", &reply),
                     RUEDA_OK);
    assert_int_equal(ask(client, RUEDA_STORE_ADD, "count", "", &reply),
                     RUEDA_OK);
    assert_int_equal(reply.count, 1);
    rueda_client_close(client);
}

/* ---- Broken connections ------------------------------------------------- */

static void a_client_comes_back_and_nothing_is_done_twice(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 1);
    struct rueda_store_reply reply;

    for (int i = 1; i <= 20; i++) {
        if (i % 2 == 0)
            shutdown(rueda_client_fd(client), SHUT_RD);
        if (i % 5 == 0)
            shutdown(rueda_client_fd(client), SHUT_RDWR);
        assert_int_equal(ask(client, RUEDA_STORE_ADD, "steps", "", &reply),
                         RUEDA_OK);
        assert_int_equal(reply.count, i);
    }
    rueda_client_close(client);
}

static void a_watch_outlives_its_connection(void **state)
{
    struct place *place = *state;
    struct rueda_client *watcher = client_for(place, 0);
    struct rueda_client *writer = client_for(place, 0);
    struct rueda_store_reply reply;
    int64_t until = rueda_clock_ns() + 5000 * MS;

    assert_int_equal(ask(watcher, RUEDA_STORE_WATCH, "news/", "", &reply),
                     RUEDA_OK);
    assert_int_equal(ask(writer, RUEDA_STORE_SET, "news/1", "a", &reply),
                     RUEDA_OK);
    assert_int_equal(ask(watcher, RUEDA_STORE_GET, "news/1", "", &reply),
                     RUEDA_OK);
    assert_int_equal(place->events, 1);

    shutdown(rueda_client_fd(watcher), SHUT_RDWR);
    assert_int_equal(ask(writer, RUEDA_STORE_SET, "news/2", "b", &reply),
                     RUEDA_OK);
    while (place->events < 2 && rueda_clock_ns() < until)
        assert_true(rueda_client_reconnect(watcher) >= 0);
    assert_int_equal(place->events, 2);
    assert_string_equal(place->last_key, "news/2");
    rueda_client_close(watcher);
    rueda_client_close(writer);
}

static void a_lost_store_is_an_error_that_says_where_it_was(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 1);
    struct rueda_text error = {{0}};
    struct rueda_store_reply reply;
    char where[RUEDA_ADDRESS_TEXT];

    rueda_keeper_close(place->keeper);
    place->keeper = NULL;
    assert_int_equal(
        rueda_client_ask(client,
                         &(struct rueda_store_request){.kind = RUEDA_STORE_GET,
                                                       .key = "k",
                                                       .key_bytes = 1},
                         rueda_clock_ns() + 200 * MS, &reply, &error),
        RUEDA_ERR_PEER_LOST);
    rueda_address_text(&place->addresses[0], where, sizeof(where));
    assert_non_null(strstr(error.chars, where));
    rueda_client_close(client);
}

/* A rank that left in good order is not reported as dead. */
static void a_store_that_closes_says_so(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 1);

    assert_int_equal(rueda_client_reconnect(client), RUEDA_OK);
    rueda_keeper_close(place->keeper);
    place->keeper = NULL;
    assert_int_equal(rueda_client_reconnect(client), RUEDA_ERR_CLOSED);
    assert_int_equal(rueda_client_reconnect(client), RUEDA_ERR_CLOSED);
    rueda_client_close(client);
}

/* Until it is there, or the time is over. */
static rueda_status look_for(struct rueda_client *client, int64_t limit_ms)
{
    int64_t until = rueda_clock_ns() + limit_ms * MS;
    rueda_status status = rueda_client_reconnect(client);

    while (status == RUEDA_IN_PROGRESS && rueda_clock_ns() < until) {
        rueda_sleep_ns(MS);
        status = rueda_client_reconnect(client);
    }
    return status;
}

static void a_client_that_looks_comes_back(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 1);
    struct rueda_store_reply reply;

    assert_int_equal(ask(client, RUEDA_STORE_WATCH, "way/", "", &reply),
                     RUEDA_OK);
    shutdown(rueda_client_fd(client), SHUT_RDWR);
    place->sockets = 0;
    assert_int_equal(look_for(client, 5000), RUEDA_OK);
    assert_int_equal(place->sockets, 1);
    assert_int_equal(ask(client, RUEDA_STORE_SET, "way/1", "", &reply),
                     RUEDA_OK);
    assert_int_equal(place->events, 1);
    rueda_client_close(client);
}

/* As if something between the two ends had reset it. */
static void cut(struct rueda_client *client)
{
    const struct sockaddr unspecified = {.sa_family = AF_UNSPEC};

    assert_int_equal(
        connect(rueda_client_fd(client), &unspecified, sizeof(unspecified)), 0);
}

/* A keeper in a process of its own, at an address that is written. */
static pid_t fork_keeper(struct place *place)
{
    int ends[2];
    pid_t child;

    assert_int_equal(rueda_key_create(&place->key), RUEDA_OK);
    assert_int_equal(pipe(ends), 0);
    place->address_count =
        rueda_address_find("127.0.0.1:0", place->addresses, 1, &place->error);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (open_keeper(place) != RUEDA_OK ||
            write(ends[1], place->addresses, sizeof(place->addresses)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], place->addresses, sizeof(place->addresses)),
                     (int)sizeof(place->addresses));
    close(ends[0]);
    return child;
}

/* Its system says that a process listens there; then that none does. */
static void a_stopped_store_is_waited_for_and_a_dead_one_is_not(void **state)
{
    struct place place = {.keeper = NULL};
    const pid_t child = fork_keeper(&place);
    struct rueda_client *client = client_for(&place, 1);

    (void)state;
    kill(child, SIGSTOP);
    cut(client);
    assert_int_equal(look_for(client, 700), RUEDA_IN_PROGRESS);
    kill(child, SIGCONT);
    assert_int_equal(look_for(client, 5000), RUEDA_OK);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(look_for(client, 2000), RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_client_reconnect(client), RUEDA_ERR_PEER_LOST);
    rueda_client_close(client);
}

static void leave_will(struct rueda_client *client)
{
    struct rueda_store_request will = {.kind = RUEDA_STORE_WILL,
                                       .key = "failed",
                                       .key_bytes = 6,
                                       .time_ms = 1};
    struct rueda_store_reply reply;
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_client_ask(client, &will,
                                      rueda_clock_ns() + 2000 * MS, &reply,
                                      &error),
                     RUEDA_OK);
}

/* Is the will carried out by then? */
static bool has_failed(struct rueda_client *client, int64_t limit_ms)
{
    struct rueda_store_request wait = {
        .kind = RUEDA_STORE_WAIT, .key = "failed", .key_bytes = 6};
    struct rueda_store_reply reply;
    struct rueda_text error = {{0}};

    return rueda_client_ask(client, &wait, rueda_clock_ns() + limit_ms * MS,
                            &reply, &error) == RUEDA_OK;
}

static void a_client_that_computes_outlives_a_cut(void **state)
{
    struct place *place = *state;
    struct rueda_client *busy = client_for(place, 1);
    struct rueda_client *other = client_for(place, 1);

    leave_will(busy);
    cut(busy);
    assert_false(has_failed(other, 2500)); /* more than a keeper's grace */
    assert_int_equal(look_for(busy, 5000), RUEDA_OK);
    shutdown(rueda_client_fd(busy), SHUT_RDWR);
    assert_true(has_failed(other, 2000));
    rueda_client_close(busy);
    rueda_client_close(other);
}

/* It is there as long as the session is. */
static void leave_key(struct rueda_client *client, const char *key)
{
    struct rueda_store_request lease = {.kind = RUEDA_STORE_LEASE_OPEN,
                                        .time_ms = 3600000};
    struct rueda_store_request set = {
        .kind = RUEDA_STORE_SET, .key = key, .key_bytes = strlen(key)};
    int64_t until = rueda_clock_ns() + 2000 * MS;
    struct rueda_store_reply reply;
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_client_ask(client, &lease, until, &reply, &error),
                     RUEDA_OK);
    set.id = reply.id;
    assert_int_equal(rueda_client_ask(client, &set, until, &reply, &error),
                     RUEDA_OK);
}

static void a_client_that_was_cut_takes_leave_all_the_same(void **state)
{
    struct place *place = *state;
    struct rueda_client *gone = client_for(place, 1);
    struct rueda_client *other = client_for(place, 1);
    struct rueda_store_reply reply;

    leave_will(gone);
    leave_key(gone, "here");
    cut(gone);
    rueda_client_close(gone);
    assert_int_equal(ask(other, RUEDA_STORE_GET, "here", "", &reply), RUEDA_OK);
    assert_int_equal(reply.revision, 0);
    rueda_client_close(other);
}

static void a_store_that_was_started_anew_is_noticed(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 1);
    struct rueda_store_reply reply;

    assert_int_equal(ask(client, RUEDA_STORE_SET, "mine", "x", &reply),
                     RUEDA_OK);
    rueda_keeper_close(place->keeper);
    place->keeper = NULL;
    assert_int_equal(open_keeper(place), RUEDA_OK);
    assert_int_equal(ask(client, RUEDA_STORE_GET, "mine", "", &reply),
                     RUEDA_ERR_CLOSED);
    assert_int_equal(ask(client, RUEDA_STORE_GET, "mine", "", &reply),
                     RUEDA_OK);
    assert_int_equal(reply.revision, 0);
    rueda_client_close(client);
}

/* A store that takes a session and then reads nothing more. */
static void *be_deaf(void *arg)
{
    struct place *place = arg;
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_ATTACH, .number = 1};
    unsigned char bytes[RUEDA_STORE_START_BYTES];
    int64_t deadline = rueda_clock_ns() + 5000 * MS;
    struct rueda_handshake shake;
    int fd;

    rueda_fd_wait(place->deaf, false, 5000 * MS);
    if (rueda_stream_accept(place->deaf, &fd) != RUEDA_OK)
        return NULL;
    rueda_handshake_init(&shake, RUEDA_ACCEPTOR, RUEDA_FOR_STORE, &place->key,
                         NULL, 0);
    while (rueda_shake_step(fd, &shake) == RUEDA_IN_PROGRESS)
        rueda_fd_wait(fd, false, 1000 * MS);
    rueda_handshake_fini(&shake);
    rueda_stream_recv_all(fd, bytes,
                          RUEDA_STORE_HEAD_BYTES + RUEDA_STORE_SESSION_BYTES,
                          deadline);
    rueda_stream_send_all(fd, bytes, rueda_store_reply_encode(&reply, bytes),
                          deadline);
    place->deaf_fd = fd;
    return NULL;
}

/* What was sent of it must not become part of the next request. */
static void a_request_that_is_half_sent_ends_the_connection(void **state)
{
    struct place *place = *state;
    struct rueda_client_args args = args_for(place, 0);
    struct rueda_store_reply reply;
    struct rueda_text error = {{0}};
    struct rueda_client *client;
    char *value = calloc(1, RUEDA_STORE_VALUE_BYTES);
    pthread_t thread;

    assert_non_null(value);
    args.socket = "rueda-test-deaf";
    assert_int_equal(rueda_unix_listen(args.socket, &place->deaf), RUEDA_OK);
    assert_int_equal(pthread_create(&thread, NULL, be_deaf, place), 0);
    assert_int_equal(try_open(place, &args, &client), RUEDA_OK);
    pthread_join(thread, NULL);
    assert_int_equal(
        rueda_client_ask(client,
                         &(struct rueda_store_request){
                             .kind = RUEDA_STORE_SET,
                             .key = "k",
                             .key_bytes = 1,
                             .value = value,
                             .value_bytes = RUEDA_STORE_VALUE_BYTES},
                         rueda_clock_ns() + 100 * MS, &reply, &error),
        RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_client_fd(client), -1);
    rueda_client_close(client);
    rueda_fd_close(place->deaf);
    rueda_fd_close(place->deaf_fd);
    free(value);
}

static void who_comes_before_the_store_waits_for_it(void **state)
{
    struct place *place = *state;
    struct rueda_client_args args = args_for(place, 1);
    struct rueda_client *client;

    rueda_keeper_close(place->keeper);
    place->keeper = NULL;
    assert_int_equal(rueda_client_open(&args, rueda_clock_ns() + 50 * MS,
                                       &client, &place->error),
                     RUEDA_ERR_TIMEOUT);
    assert_non_null(strstr(place->error.chars, "found no store"));
    assert_int_equal(open_keeper(place), RUEDA_OK);
    assert_int_equal(try_open(place, &args, &client), RUEDA_OK);
    rueda_client_close(client);
}

/* ---- Strangers ---------------------------------------------------------- */

static void a_wrong_key_is_refused_soon(void **state)
{
    struct place *place = *state;
    struct rueda_key other = {.present = false};

    for (int i = 0; i < 2; i++) {
        for (int way = 0; way < 2; way++) {
            struct rueda_client_args args = args_for(place, way);
            struct rueda_client *client;

            args.key = &other;
            assert_int_equal(try_open(place, &args, &client), RUEDA_ERR_AUTH);
            assert_non_null(strstr(place->error.chars, "key"));
        }
        assert_int_equal(rueda_key_create(&other), RUEDA_OK);
    }
}

static void a_rank_of_another_size_is_told_so(void **state)
{
    struct place *place = *state;
    struct rueda_client_args args = args_for(place, 1);
    struct rueda_client *client;

    args.size = SIZE + 1;
    assert_int_equal(try_open(place, &args, &client), RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(place->error.chars, "rank 1 of 4"));
    assert_non_null(strstr(place->error.chars, "a job of 3 ranks"));
}

/* Until it hangs up, or the time is over. */
static bool hangs_up(int fd, int64_t timeout_ns)
{
    int64_t until = rueda_clock_ns() + timeout_ns;
    char bytes[256];
    size_t moved;

    while (rueda_clock_ns() < until) {
        rueda_status status =
            rueda_stream_recv(fd, bytes, sizeof(bytes), &moved);

        if (status < 0)
            return true;
        rueda_fd_wait(fd, false, 10 * MS);
    }
    return false;
}

/* As rank 2. */
static void prove_over(const struct place *place, int fd)
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];
    struct rueda_handshake shake;

    rueda_meet_about_write(about, 2, SIZE);
    rueda_handshake_init(&shake, RUEDA_INITIATOR, RUEDA_FOR_STORE, &place->key,
                         about, sizeof(about));
    while (rueda_shake_step(fd, &shake) == RUEDA_IN_PROGRESS)
        rueda_fd_wait(fd, false, 1000 * MS);
    assert_true(rueda_handshake_done(&shake));
    rueda_handshake_fini(&shake);
}

static int prove(const struct place *place)
{
    int fd;

    assert_int_equal(rueda_unix_connect(place->socket, &fd), RUEDA_OK);
    prove_over(place, fd);
    return fd;
}

static void over_tcp_a_request_that_is_not_sealed_is_refused(void **state)
{
    struct place *place = *state;
    const struct rueda_store_request attach = {.kind = RUEDA_STORE_ATTACH,
                                               .number = 1,
                                               .key = "sixteen letters.",
                                               .key_bytes = 16};
    unsigned char bytes[RUEDA_STORE_START_BYTES];
    size_t len = rueda_store_request_encode(&attach, bytes);
    int fd;

    assert_int_equal(rueda_socket_connect(&place->addresses[0], &fd), RUEDA_OK);
    rueda_fd_wait(fd, true, 4000 * MS);
    prove_over(place, fd);
    rueda_stream_send(fd, bytes, len, &len);
    rueda_fd_wait(fd, false, 4000 * MS);
    assert_true(rueda_stream_recv(fd, bytes, sizeof(bytes), &len) < 0);
    rueda_fd_close(fd);
}

static void garbage_ends_a_connection_and_harms_nobody(void **state)
{
    struct place *place = *state;
    struct rueda_client *client = client_for(place, 0);
    struct rueda_store_reply reply;
    unsigned char bytes[64];
    size_t moved;

    for (int kind = 0; kind < 3; kind++) {
        int fd;

        memset(bytes, 0xff, sizeof(bytes));
        if (kind == 0)
            assert_int_equal(rueda_unix_connect(place->socket, &fd), RUEDA_OK);
        else
            fd = prove(place);
        if (kind == 2) /* a frame of four gigabytes */
            bytes[4] = RUEDA_STORE_SET;
        for (int i = 0; i < 4; i++)
            rueda_stream_send(fd, bytes, sizeof(bytes), &moved);
        assert_true(hangs_up(fd, 4000 * MS));
        rueda_fd_close(fd);
    }
    assert_int_equal(ask(client, RUEDA_STORE_SET, "still", "here", &reply),
                     RUEDA_OK);
    rueda_client_close(client);
}

static void silent_strangers_do_not_keep_ranks_out(void **state)
{
    enum {
        CROWD = 200
    };
    struct place *place = *state;
    struct rueda_client *client;
    int fds[CROWD];

    for (int i = 0; i < CROWD; i++)
        assert_int_equal(rueda_unix_connect(place->socket, &fds[i]), RUEDA_OK);
    client = client_for(place, 0);
    rueda_client_close(client);
    for (int i = 0; i < CROWD; i++)
        rueda_fd_close(fds[i]);
}

static void tcp_without_a_key_is_not_opened(void **state)
{
    struct place *place = *state;
    struct rueda_keeper *other;
    const struct rueda_key none = {.present = false};
    struct rueda_keeper_args args = {.size = SIZE,
                                     .key = &none,
                                     .addresses = place->addresses,
                                     .address_count = 1};

    place->error.chars[0] = '\0';
    assert_int_equal(rueda_keeper_open(&args, &other, &place->error),
                     RUEDA_ERR_AUTH);
    assert_non_null(strstr(place->error.chars, "key"));
}

static void an_address_that_is_taken_or_not_ours_is_named(void **state)
{
    struct place *place = *state;
    struct rueda_keeper *other;
    struct rueda_address far;
    struct rueda_keeper_args args = {.size = SIZE,
                                     .key = &place->key,
                                     .addresses = place->addresses,
                                     .address_count = 1};
    char where[RUEDA_ADDRESS_TEXT];

    place->error.chars[0] = '\0';
    assert_int_equal(rueda_keeper_open(&args, &other, &place->error),
                     RUEDA_ERR_IO);
    rueda_address_text(&place->addresses[0], where, sizeof(where));
    assert_non_null(strstr(place->error.chars, where));

    /* 192.0.2.0/24 is for documentation, so no host has it. */
    place->error.chars[0] = '\0';
    assert_int_equal(rueda_address_find("192.0.2.7:9", &far, 1, &place->error),
                     1);
    args.addresses = &far;
    assert_int_equal(rueda_keeper_open(&args, &other, &place->error),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(place->error.chars, "not one of this host"));
}

#define PLACE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, place_open, place_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while there are no threads: it forks. */
        cmocka_unit_test(a_stopped_store_is_waited_for_and_a_dead_one_is_not),
        PLACE(what_one_sets_another_gets_whatever_the_way),
        PLACE(the_largest_value_passes),
        PLACE(a_wait_ends_at_the_deadline),
        PLACE(a_client_comes_back_and_nothing_is_done_twice),
        PLACE(a_watch_outlives_its_connection),
        PLACE(a_lost_store_is_an_error_that_says_where_it_was),
        PLACE(a_store_that_closes_says_so),
        PLACE(a_client_that_looks_comes_back),
        PLACE(a_client_that_computes_outlives_a_cut),
        PLACE(a_client_that_was_cut_takes_leave_all_the_same),
        PLACE(a_store_that_was_started_anew_is_noticed),
        PLACE(a_request_that_is_half_sent_ends_the_connection),
        PLACE(who_comes_before_the_store_waits_for_it),
        PLACE(a_wrong_key_is_refused_soon),
        PLACE(a_rank_of_another_size_is_told_so),
        PLACE(garbage_ends_a_connection_and_harms_nobody),
        PLACE(silent_strangers_do_not_keep_ranks_out),
        PLACE(over_tcp_a_request_that_is_not_sealed_is_refused),
        PLACE(tcp_without_a_key_is_not_opened),
        PLACE(an_address_that_is_taken_or_not_ours_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
