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
struct scene {
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

static rueda_status open_keeper(struct scene *scene)
{
    const struct rueda_keeper_args args = {.size = SIZE,
                                           .socket = scene->socket,
                                           .key = &scene->key,
                                           .addresses = scene->addresses,
                                           .address_count =
                                               scene->address_count};
    const struct rueda_address *bound;
    rueda_status status =
        rueda_keeper_open(&args, &scene->keeper, &scene->error);

    if (status == RUEDA_OK) {
        bound = rueda_keeper_addresses(scene->keeper, &scene->address_count);
        memcpy(scene->addresses, bound,
               (size_t)scene->address_count * sizeof(*bound));
    }
    return status;
}

static int place_open(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    if (scene == NULL)
        return -1;
    rueda_log_set_sink(hush, NULL);
    scene->descriptors = count_descriptors();
    snprintf(scene->socket, sizeof(scene->socket), "rueda-test-keeper-%d",
             (int)getpid());
    scene->address_count =
        rueda_address_find("127.0.0.1:0", scene->addresses, 1, &scene->error);
    scene->address_count += rueda_address_find(
        "[::1]:0", scene->addresses + scene->address_count, 1, &scene->error);
    *state = scene;
    return rueda_key_create(&scene->key) == RUEDA_OK &&
                   open_keeper(scene) == RUEDA_OK
               ? 0
               : -1;
}

static int place_close(void **state)
{
    struct scene *scene = *state;
    bool is_clean;

    rueda_keeper_close(scene->keeper);
    is_clean = count_descriptors() == scene->descriptors;
    free(scene);
    return is_clean ? 0 : -1;
}

static void note_event(void *arg, const struct rueda_store_reply *event)
{
    struct scene *scene = arg;

    scene->events++;
    snprintf(scene->last_key, sizeof(scene->last_key), "%.*s",
             (int)event->key_bytes, (const char *)event->key);
}

static void note_socket(void *arg, int fd)
{
    struct scene *scene = arg;

    assert_true(fd >= 0);
    scene->sockets++;
}

/* By the Unix socket if way is 0, else by that address. */
static struct rueda_client_args args_for(struct scene *scene, int way)
{
    struct rueda_client_args args = {
        .rank = 1,
        .size = SIZE,
        .socket = way == 0 ? scene->socket : NULL,
        .addresses = way == 0 ? NULL : &scene->addresses[way - 1],
        .address_count = way == 0 ? 0 : 1,
        .key = &scene->key,
        .on_event = note_event,
        .on_socket = note_socket,
        .arg = scene,
    };

    return args;
}

static rueda_status try_open(struct scene *scene,
                             const struct rueda_client_args *args,
                             struct rueda_client **out)
{
    scene->error.chars[0] = '\0';
    return rueda_client_open(args, rueda_clock_ns() + 2000 * MS, out,
                             &scene->error);
}

static struct rueda_client *client_for(struct scene *scene, int way)
{
    struct rueda_client_args args = args_for(scene, way);
    struct rueda_client *client = NULL;

    assert_int_equal(try_open(scene, &args, &client), RUEDA_OK);
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
    struct scene *scene = *state;
    struct rueda_store_reply reply;

    for (int way = 0; way <= scene->address_count; way++) {
        struct rueda_client *writer = client_for(scene, way);
        struct rueda_client *reader = client_for(scene, 0);
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
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 1);
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
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 0);
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
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 1);
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
    struct scene *scene = *state;
    struct rueda_client *watcher = client_for(scene, 0);
    struct rueda_client *writer = client_for(scene, 0);
    struct rueda_store_reply reply;
    int64_t until = rueda_clock_ns() + 5000 * MS;

    assert_int_equal(ask(watcher, RUEDA_STORE_WATCH, "news/", "", &reply),
                     RUEDA_OK);
    assert_int_equal(ask(writer, RUEDA_STORE_SET, "news/1", "a", &reply),
                     RUEDA_OK);
    assert_int_equal(ask(watcher, RUEDA_STORE_GET, "news/1", "", &reply),
                     RUEDA_OK);
    assert_int_equal(scene->events, 1);

    shutdown(rueda_client_fd(watcher), SHUT_RDWR);
    assert_int_equal(ask(writer, RUEDA_STORE_SET, "news/2", "b", &reply),
                     RUEDA_OK);
    while (scene->events < 2 && rueda_clock_ns() < until)
        assert_true(rueda_client_reconnect(watcher) >= 0);
    assert_int_equal(scene->events, 2);
    assert_string_equal(scene->last_key, "news/2");
    rueda_client_close(watcher);
    rueda_client_close(writer);
}

static void a_lost_store_is_an_error_that_says_where_it_was(void **state)
{
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 1);
    struct rueda_text error = {{0}};
    struct rueda_store_reply reply;
    char where[RUEDA_ADDRESS_TEXT];

    rueda_keeper_close(scene->keeper);
    scene->keeper = NULL;
    assert_int_equal(
        rueda_client_ask(client,
                         &(struct rueda_store_request){.kind = RUEDA_STORE_GET,
                                                       .key = "k",
                                                       .key_bytes = 1},
                         rueda_clock_ns() + 200 * MS, &reply, &error),
        RUEDA_ERR_PEER_LOST);
    rueda_address_text(&scene->addresses[0], where, sizeof(where));
    assert_non_null(strstr(error.chars, where));
    rueda_client_close(client);
}

/* A rank that left in good order is not reported as dead. */
static void a_store_that_closes_says_so(void **state)
{
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 1);

    assert_int_equal(rueda_client_reconnect(client), RUEDA_OK);
    rueda_keeper_close(scene->keeper);
    scene->keeper = NULL;
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
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 1);
    struct rueda_store_reply reply;

    assert_int_equal(ask(client, RUEDA_STORE_WATCH, "way/", "", &reply),
                     RUEDA_OK);
    shutdown(rueda_client_fd(client), SHUT_RDWR);
    scene->sockets = 0;
    assert_int_equal(look_for(client, 5000), RUEDA_OK);
    assert_int_equal(scene->sockets, 1);
    assert_int_equal(ask(client, RUEDA_STORE_SET, "way/1", "", &reply),
                     RUEDA_OK);
    assert_int_equal(scene->events, 1);
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
static pid_t fork_keeper(struct scene *scene)
{
    int ends[2];
    pid_t child;

    assert_int_equal(rueda_key_create(&scene->key), RUEDA_OK);
    assert_int_equal(pipe(ends), 0);
    scene->address_count =
        rueda_address_find("127.0.0.1:0", scene->addresses, 1, &scene->error);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (open_keeper(scene) != RUEDA_OK ||
            write(ends[1], scene->addresses, sizeof(scene->addresses)) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], scene->addresses, sizeof(scene->addresses)),
                     (int)sizeof(scene->addresses));
    close(ends[0]);
    return child;
}

/* Its system says that a process listens there; then that none does. */
static void a_stopped_store_is_waited_for_and_a_dead_one_is_not(void **state)
{
    struct scene scene = {.keeper = NULL};
    const pid_t child = fork_keeper(&scene);
    struct rueda_client *client = client_for(&scene, 1);

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
    struct scene *scene = *state;
    struct rueda_client *busy = client_for(scene, 1);
    struct rueda_client *other = client_for(scene, 1);

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
    struct scene *scene = *state;
    struct rueda_client *gone = client_for(scene, 1);
    struct rueda_client *other = client_for(scene, 1);
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
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 1);
    struct rueda_store_reply reply;

    assert_int_equal(ask(client, RUEDA_STORE_SET, "mine", "x", &reply),
                     RUEDA_OK);
    rueda_keeper_close(scene->keeper);
    scene->keeper = NULL;
    assert_int_equal(open_keeper(scene), RUEDA_OK);
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
    struct scene *scene = arg;
    struct rueda_store_reply reply = {.kind = RUEDA_STORE_ATTACH, .number = 1};
    unsigned char bytes[RUEDA_STORE_START_BYTES];
    int64_t deadline = rueda_clock_ns() + 5000 * MS;
    struct rueda_handshake shake;
    int fd;

    rueda_fd_wait(scene->deaf, false, 5000 * MS);
    if (rueda_stream_accept(scene->deaf, &fd) != RUEDA_OK)
        return NULL;
    rueda_handshake_init(&shake, RUEDA_ACCEPTOR, RUEDA_FOR_STORE, &scene->key,
                         NULL, 0);
    while (rueda_shake_step(fd, &shake) == RUEDA_IN_PROGRESS)
        rueda_fd_wait(fd, false, 1000 * MS);
    rueda_handshake_fini(&shake);
    rueda_stream_recv_all(fd, bytes,
                          RUEDA_STORE_HEAD_BYTES + RUEDA_STORE_SESSION_BYTES,
                          deadline);
    rueda_stream_send_all(fd, bytes, rueda_store_reply_encode(&reply, bytes),
                          deadline);
    scene->deaf_fd = fd;
    return NULL;
}

/* What was sent of it must not become part of the next request. */
static void a_request_that_is_half_sent_ends_the_connection(void **state)
{
    struct scene *scene = *state;
    struct rueda_client_args args = args_for(scene, 0);
    struct rueda_store_reply reply;
    struct rueda_text error = {{0}};
    struct rueda_client *client;
    char *value = calloc(1, RUEDA_STORE_VALUE_BYTES);
    pthread_t thread;

    assert_non_null(value);
    args.socket = "rueda-test-deaf";
    assert_int_equal(rueda_unix_listen(args.socket, &scene->deaf), RUEDA_OK);
    assert_int_equal(pthread_create(&thread, NULL, be_deaf, scene), 0);
    assert_int_equal(try_open(scene, &args, &client), RUEDA_OK);
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
    rueda_fd_close(scene->deaf);
    rueda_fd_close(scene->deaf_fd);
    free(value);
}

static void who_comes_before_the_store_waits_for_it(void **state)
{
    struct scene *scene = *state;
    struct rueda_client_args args = args_for(scene, 1);
    struct rueda_client *client;

    rueda_keeper_close(scene->keeper);
    scene->keeper = NULL;
    assert_int_equal(rueda_client_open(&args, rueda_clock_ns() + 50 * MS,
                                       &client, &scene->error),
                     RUEDA_ERR_TIMEOUT);
    assert_non_null(strstr(scene->error.chars, "found no store"));
    assert_int_equal(open_keeper(scene), RUEDA_OK);
    assert_int_equal(try_open(scene, &args, &client), RUEDA_OK);
    rueda_client_close(client);
}

/* ---- Strangers ---------------------------------------------------------- */

static void a_wrong_key_is_refused_soon(void **state)
{
    struct scene *scene = *state;
    struct rueda_key other = {.present = false};

    for (int i = 0; i < 2; i++) {
        for (int way = 0; way < 2; way++) {
            struct rueda_client_args args = args_for(scene, way);
            struct rueda_client *client;

            args.key = &other;
            assert_int_equal(try_open(scene, &args, &client), RUEDA_ERR_AUTH);
            assert_non_null(strstr(scene->error.chars, "key"));
        }
        assert_int_equal(rueda_key_create(&other), RUEDA_OK);
    }
}

static void a_rank_of_another_size_is_told_so(void **state)
{
    struct scene *scene = *state;
    struct rueda_client_args args = args_for(scene, 1);
    struct rueda_client *client;

    args.size = SIZE + 1;
    assert_int_equal(try_open(scene, &args, &client), RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(scene->error.chars, "rank 1 of 4"));
    assert_non_null(strstr(scene->error.chars, "a job of 3 ranks"));
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
static void prove_over(const struct scene *scene, int fd)
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];
    struct rueda_handshake shake;

    rueda_meet_about_write(about, 2, SIZE);
    rueda_handshake_init(&shake, RUEDA_INITIATOR, RUEDA_FOR_STORE, &scene->key,
                         about, sizeof(about));
    while (rueda_shake_step(fd, &shake) == RUEDA_IN_PROGRESS)
        rueda_fd_wait(fd, false, 1000 * MS);
    assert_true(rueda_handshake_done(&shake));
    rueda_handshake_fini(&shake);
}

static int prove(const struct scene *scene)
{
    int fd;

    assert_int_equal(rueda_unix_connect(scene->socket, &fd), RUEDA_OK);
    prove_over(scene, fd);
    return fd;
}

static void over_tcp_a_request_that_is_not_sealed_is_refused(void **state)
{
    struct scene *scene = *state;
    const struct rueda_store_request attach = {.kind = RUEDA_STORE_ATTACH,
                                               .number = 1,
                                               .key = "sixteen letters.",
                                               .key_bytes = 16};
    unsigned char bytes[RUEDA_STORE_START_BYTES];
    size_t len = rueda_store_request_encode(&attach, bytes);
    int fd;

    assert_int_equal(rueda_socket_connect(&scene->addresses[0], &fd), RUEDA_OK);
    rueda_fd_wait(fd, true, 4000 * MS);
    prove_over(scene, fd);
    rueda_stream_send(fd, bytes, len, &len);
    rueda_fd_wait(fd, false, 4000 * MS);
    assert_true(rueda_stream_recv(fd, bytes, sizeof(bytes), &len) < 0);
    rueda_fd_close(fd);
}

static void garbage_ends_a_connection_and_harms_nobody(void **state)
{
    struct scene *scene = *state;
    struct rueda_client *client = client_for(scene, 0);
    struct rueda_store_reply reply;
    unsigned char bytes[64];
    size_t moved;

    for (int kind = 0; kind < 3; kind++) {
        int fd;

        memset(bytes, 0xff, sizeof(bytes));
        if (kind == 0)
            assert_int_equal(rueda_unix_connect(scene->socket, &fd), RUEDA_OK);
        else
            fd = prove(scene);
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
    struct scene *scene = *state;
    struct rueda_client *client;
    int fds[CROWD];

    for (int i = 0; i < CROWD; i++)
        assert_int_equal(rueda_unix_connect(scene->socket, &fds[i]), RUEDA_OK);
    client = client_for(scene, 0);
    rueda_client_close(client);
    for (int i = 0; i < CROWD; i++)
        rueda_fd_close(fds[i]);
}

static void tcp_without_a_key_is_not_opened(void **state)
{
    struct scene *scene = *state;
    struct rueda_keeper *other;
    const struct rueda_key none = {.present = false};
    struct rueda_keeper_args args = {.size = SIZE,
                                     .key = &none,
                                     .addresses = scene->addresses,
                                     .address_count = 1};

    scene->error.chars[0] = '\0';
    assert_int_equal(rueda_keeper_open(&args, &other, &scene->error),
                     RUEDA_ERR_AUTH);
    assert_non_null(strstr(scene->error.chars, "key"));
}

static void an_address_that_is_taken_or_not_ours_is_named(void **state)
{
    struct scene *scene = *state;
    struct rueda_keeper *other;
    struct rueda_address far;
    struct rueda_keeper_args args = {.size = SIZE,
                                     .key = &scene->key,
                                     .addresses = scene->addresses,
                                     .address_count = 1};
    char where[RUEDA_ADDRESS_TEXT];

    scene->error.chars[0] = '\0';
    assert_int_equal(rueda_keeper_open(&args, &other, &scene->error),
                     RUEDA_ERR_IO);
    rueda_address_text(&scene->addresses[0], where, sizeof(where));
    assert_non_null(strstr(scene->error.chars, where));

    /* 192.0.2.0/24 is for documentation, so no host has it. */
    scene->error.chars[0] = '\0';
    assert_int_equal(rueda_address_find("192.0.2.7:9", &far, 1, &scene->error),
                     1);
    args.addresses = &far;
    assert_int_equal(rueda_keeper_open(&args, &other, &scene->error),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(scene->error.chars, "not one of this host"));
}

#define SCENE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, place_open, place_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while there are no threads: it forks. */
        cmocka_unit_test(a_stopped_store_is_waited_for_and_a_dead_one_is_not),
        SCENE(what_one_sets_another_gets_whatever_the_way),
        SCENE(the_largest_value_passes),
        SCENE(a_wait_ends_at_the_deadline),
        SCENE(a_client_comes_back_and_nothing_is_done_twice),
        SCENE(a_watch_outlives_its_connection),
        SCENE(a_lost_store_is_an_error_that_says_where_it_was),
        SCENE(a_store_that_closes_says_so),
        SCENE(a_client_that_looks_comes_back),
        SCENE(a_client_that_computes_outlives_a_cut),
        SCENE(a_client_that_was_cut_takes_leave_all_the_same),
        SCENE(a_store_that_was_started_anew_is_noticed),
        SCENE(a_request_that_is_half_sent_ends_the_connection),
        SCENE(who_comes_before_the_store_waits_for_it),
        SCENE(a_wrong_key_is_refused_soon),
        SCENE(a_rank_of_another_size_is_told_so),
        SCENE(garbage_ends_a_connection_and_harms_nobody),
        SCENE(silent_strangers_do_not_keep_ranks_out),
        SCENE(over_tcp_a_request_that_is_not_sealed_is_refused),
        SCENE(tcp_without_a_key_is_not_opened),
        SCENE(an_address_that_is_taken_or_not_ours_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
