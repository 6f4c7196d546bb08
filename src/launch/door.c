/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where agents come in that were not started by ssh. A caller proves the key
 * and says which host it is, all inside the handshake, in HANDSHAKE_MS; until
 * then nothing else of it is read. What follows is sealed.
 *
 * Anybody can call. CALLERS are there at a time, and who comes then takes the
 * place of the oldest; an agent that lost its place so calls again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/refusals.h"
#include "auth/shake.h"
#include "base/number.h"
#include "launch/launch_state.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/interface.h"
#include "os/stream.h"

#define HANDSHAKE_MS 5000
#define CALLERS      64
#define PLACES       (2 * CALLERS) /* some wait for libuv to let go of them */
#define WHO          "the launcher"

struct caller {
    struct rueda_door *door;
    int fd; /* -1: a free place */
    uv_poll_t poll;
    uv_timer_t timer;
    int closing; /* handles that libuv still holds */
    uint64_t number;
    struct rueda_address from;
    struct rueda_handshake shake;
};

struct listener {
    struct rueda_door *door;
    int fd;
    uv_poll_t poll;
};

struct rueda_door {
    struct rueda_launch *launch;
    struct listener listeners[RUEDA_KEEPER_MOST_ADDRESSES];
    int listener_count;
    struct caller callers[PLACES];
    uint64_t count; /* of callers so far */
    struct rueda_refusals refusals;
};

/* ---- Callers ------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
    struct caller *caller = handle->data;

    caller->closing--;
}

/* Returns its descriptor, which is the caller's now. */
static int release(struct caller *caller)
{
    const int fd = caller->fd;

    uv_close((uv_handle_t *)&caller->poll, on_closed);
    uv_close((uv_handle_t *)&caller->timer, on_closed);
    caller->closing = 2;
    rueda_handshake_fini(&caller->shake);
    caller->fd = -1;
    return fd;
}

static void refuse(struct caller *caller, rueda_refusal kind, const char *why)
{
    rueda_refuse(&caller->door->refusals, kind, WHO, &caller->from, why,
                 rueda_clock_ns());
    rueda_fd_close(release(caller));
}

static void on_late(uv_timer_t *timer)
{
    refuse(timer->data, RUEDA_REFUSED_SLOW, "it did not say in time who it is");
}

/* Tell an agent why it cannot stay; best effort. */
static void turn_away(int fd, const struct rueda_key *session,
                      const char *words)
{
    struct rueda_buffer sealed = {.bytes = NULL};
    struct rueda_sealed_stream stream;
    struct rueda_packer packer;
    size_t sent;

    rueda_packer_begin(&packer, RUEDA_FRAME_NOTE);
    rueda_frame_pack_text(&packer, words);
    rueda_packer_end(&packer);
    if (!packer.is_short && rueda_sealed_stream_init(
                                &stream, session, RUEDA_ACCEPTOR) == RUEDA_OK) {
        if (rueda_sealed_stream_close(&stream, packer.bytes, packer.len,
                                      &sealed))
            rueda_stream_send(fd, sealed.bytes, sealed.end, &sent);
        rueda_sealed_stream_fini(&stream);
    }
    rueda_buffer_fini(&sealed);
    rueda_packer_fini(&packer);
    rueda_stream_end(fd);
    rueda_fd_close(fd);
}

/* The host that waits for an agent of this name. */
static struct rueda_node *find_node(struct rueda_launch *launch,
                                    const char *name)
{
    const size_t len = strcspn(name, ".");

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < launch->node_count; i++) {
            struct rueda_node *node = &launch->nodes[i];
            const bool is_same = round == 0
                                     ? strcmp(node->name, name) == 0
                                     : strlen(node->name) == len &&
                                           strncmp(node->name, name, len) == 0;

            if (is_same && !node->is_local && !node->is_linked)
                return node;
        }
    }
    return NULL;
}

static void admit(struct caller *caller)
{
    struct rueda_launch *launch = caller->door->launch;
    char name[RUEDA_HANDSHAKE_ABOUT_MAX + 1];
    char words[256];
    struct rueda_key session;
    struct rueda_node *node;
    const char *about;
    size_t len;
    int fd;

    about = rueda_handshake_peer_about(&caller->shake, &len);
    snprintf(name, sizeof(name), "%.*s", (int)len, about);
    session = *rueda_handshake_session_key(&caller->shake);
    fd = release(caller);
    node = launch->is_started || launch->is_ending ? NULL
                                                   : find_node(launch, name);
    if (node != NULL && rueda_node_link(node, fd, NULL) == RUEDA_OK) {
        if (rueda_link_seal(&node->link, &session, RUEDA_ACCEPTOR) != RUEDA_OK)
            rueda_link_close(&node->link);
        rueda_key_wipe(&session);
        return;
    }
    snprintf(words, sizeof(words),
             "the launcher waits for no host '%s'; --host says which of its "
             "hosts this is",
             name);
    turn_away(fd, &session, words);
    rueda_key_wipe(&session);
}

static void on_caller(uv_poll_t *poll, int status, int events)
{
    struct caller *caller = poll->data;
    rueda_status result;
    const char *why;

    (void)status;
    (void)events;
    if (caller->fd < 0)
        return;
    result = rueda_shake_step(caller->fd, &caller->shake);
    if (result == RUEDA_IN_PROGRESS)
        return;
    if (result == RUEDA_OK) {
        admit(caller);
        return;
    }
    why = rueda_handshake_error(&caller->shake);
    refuse(caller, rueda_refusal_of(result),
           why[0] != '\0' ? why : strerror(errno));
}

static struct caller *find_vacant(struct rueda_door *door)
{
    for (int i = 0; i < PLACES; i++)
        if (door->callers[i].fd < 0 && door->callers[i].closing == 0)
            return &door->callers[i];
    return NULL;
}

static void make_room(struct rueda_door *door)
{
    struct caller *oldest = NULL;
    int count = 0;

    for (int i = 0; i < PLACES; i++) {
        struct caller *caller = &door->callers[i];

        if (caller->fd < 0)
            continue;
        count++;
        if (oldest == NULL || caller->number < oldest->number)
            oldest = caller;
    }
    if (count >= CALLERS)
        refuse(oldest, RUEDA_REFUSED_CROWD,
               "it had not said who it is, and many others call");
}

static void welcome(struct rueda_door *door, struct caller *caller, int fd)
{
    make_room(door);
    if (uv_poll_init(&door->launch->loop, &caller->poll, fd) != 0) {
        rueda_fd_close(fd);
        return;
    }
    caller->number = door->count++;
    caller->from = (struct rueda_address){.len = 0};
    rueda_tcp_peer(fd, &caller->from);
    rueda_tcp_hurry(fd);
    rueda_tcp_keep_alive(fd, RUEDA_AGENT_QUESTIONS);
    caller->fd = fd;
    caller->poll.data = caller;
    uv_timer_init(&door->launch->loop, &caller->timer);
    caller->timer.data = caller;
    uv_timer_start(&caller->timer, on_late, HANDSHAKE_MS, 0);
    /* A failure shows at the first step. */
    rueda_handshake_init(&caller->shake, RUEDA_ACCEPTOR, RUEDA_FOR_LAUNCHER,
                         &door->launch->key, NULL, 0);
    uv_poll_start(&caller->poll, UV_READABLE, on_caller);
    on_caller(&caller->poll, 0, UV_READABLE);
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    int fd;

    (void)status;
    (void)events;
    /* The others are still there in the next turn of the loop. */
    for (;;) {
        struct caller *caller = find_vacant(listener->door);

        if (caller == NULL ||
            rueda_stream_accept(listener->fd, &fd) != RUEDA_OK)
            return;
        welcome(listener->door, caller, fd);
    }
}

/* ---- Listening ---------------------------------------------------------- */

/* "4000", "10.0.0.1:4000" or "[fd00::1]:4000". Returns how many addresses. */
static int addresses_of(const struct rueda_launch *launch, const char *at,
                        struct rueda_address *out, struct rueda_text *words)
{
    uint64_t port;
    int count;

    if (!rueda_parse_whole(at, UINT16_MAX, &port))
        return rueda_address_find(at, out, RUEDA_KEEPER_MOST_ADDRESSES, words);
    count = rueda_address_own(launch->options->values[RUEDA_OPTION_NETWORK],
                              out, RUEDA_KEEPER_MOST_ADDRESSES);
    for (int i = 0; i < count; i++)
        rueda_address_set_port(&out[i], (int)port);
    if (count == 0)
        rueda_text_set(words,
                       "--listen %s: this host has no address that "
                       "others could reach",
                       at);
    return count;
}

static bool listen_at(struct rueda_door *door, const struct rueda_address *at,
                      struct rueda_text *words)
{
    struct listener *listener = &door->listeners[door->listener_count];
    struct rueda_address bound;
    char text[RUEDA_ADDRESS_TEXT];

    listener->door = door;
    if (rueda_tcp_listen(at, &listener->fd, &bound) != RUEDA_OK) {
        rueda_address_text(at, text, sizeof(text));
        rueda_text_set(words, "cannot listen at %s: %s", text, strerror(errno));
        return false;
    }
    if (uv_poll_init(&door->launch->loop, &listener->poll, listener->fd) != 0) {
        rueda_text_set(words, "cannot listen: no descriptor");
        rueda_fd_close(listener->fd);
        return false;
    }
    listener->poll.data = listener;
    uv_poll_start(&listener->poll, UV_READABLE, on_knock);
    door->listener_count++;
    return true;
}

static void say_where(const struct rueda_door *door, const char *at)
{
    struct rueda_text names = {{0}};

    for (int i = 0; i < door->launch->node_count; i++)
        if (!door->launch->nodes[i].is_local)
            rueda_text_add(&names, "%s%s",
                           rueda_text_is_empty(&names) ? "" : ", ",
                           door->launch->nodes[i].name);
    if (rueda_text_is_empty(&names))
        return;
    rueda_output_say(door->launch->output,
                     "waiting at %s for \"ruedarun agent --join\" of %s", at,
                     names.chars);
}

rueda_status rueda_door_open(struct rueda_launch *launch, const char *at,
                             struct rueda_text *words)
{
    struct rueda_address addresses[RUEDA_KEEPER_MOST_ADDRESSES];
    struct rueda_door *door = calloc(1, sizeof(*door));
    int count;

    if (door == NULL) {
        rueda_text_set(words, "no memory");
        return RUEDA_ERR_NOMEM;
    }
    door->launch = launch;
    launch->door = door;
    for (int i = 0; i < PLACES; i++)
        door->callers[i] = (struct caller){.door = door, .fd = -1};
    count = addresses_of(launch, at, addresses, words);
    for (int i = 0; i < count; i++)
        if (!listen_at(door, &addresses[i], words))
            return RUEDA_ERR_IO;
    if (count == 0)
        return RUEDA_ERR_INVALID;
    say_where(door, at);
    return RUEDA_OK;
}

void rueda_door_close(struct rueda_door *door)
{
    if (door == NULL)
        return;
    for (int i = 0; i < door->listener_count; i++) {
        uv_close((uv_handle_t *)&door->listeners[i].poll, NULL);
        rueda_fd_close(door->listeners[i].fd);
    }
    for (int i = 0; i < PLACES; i++)
        if (door->callers[i].fd >= 0)
            rueda_fd_close(release(&door->callers[i]));
    rueda_refusals_sum(&door->refusals, WHO, INT64_MAX);
    door->listener_count = 0;
}

void rueda_door_free(struct rueda_door *door)
{
    free(door);
}
