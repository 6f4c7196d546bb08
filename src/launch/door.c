/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where agents come in that were not started by ssh (auth/admission.h). An
 * agent says the name of its host inside the handshake. What follows is sealed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/admission.h"
#include "base/number.h"
#include "launch/elastic_run.h"
#include "launch/launch_state.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/interface.h"
#include "os/stream.h"

struct rueda_door {
    struct rueda_launch *launch;
    int listeners[RUEDA_KEEPER_MOST_ADDRESSES];
    int listener_count;
    bool is_watched; /* poll and timer are libuv's */
    uv_poll_t poll;
    uv_timer_t timer;
    struct rueda_admission admission;
};

/* ---- Agents ------------------------------------------------------------- */

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
            const bool is_awaited = node->state == RUEDA_NODE_WAITING &&
                                    !node->is_local && !node->is_linked;
            const bool is_same = round == 0
                                     ? strcmp(node->name, name) == 0
                                     : strlen(node->name) == len &&
                                           strncmp(node->name, name, len) == 0;

            if (is_same && is_awaited)
                return node;
        }
    }
    return NULL;
}

/* The admission's callback: fd is taken in each case. */
static rueda_status admit(void *arg, int fd,
                          const struct rueda_handshake *shake,
                          const struct rueda_address *from,
                          struct rueda_text *why)
{
    const struct rueda_key *session = rueda_handshake_session_key(shake);
    struct rueda_launch *launch = ((struct rueda_door *)arg)->launch;
    char name[RUEDA_HANDSHAKE_ABOUT_MAX + 1];
    struct rueda_node *node = NULL;
    struct rueda_text words = {{0}};
    const char *about;
    size_t len;

    (void)from;
    (void)why;
    about = rueda_handshake_peer_about(shake, &len);
    snprintf(name, sizeof(name), "%.*s", (int)len, about);
    if ((!launch->is_started || launch->elastic != NULL) && !launch->is_ending)
        node = find_node(launch, name);
    if (node == NULL && launch->elastic != NULL && !launch->is_ending)
        node = rueda_elastic_admit(launch, name);
    if (node != NULL && rueda_node_link(node, fd, NULL) == RUEDA_OK) {
        if (rueda_link_seal(&node->link, session, RUEDA_ACCEPTOR) != RUEDA_OK)
            rueda_link_close(&node->link);
        return RUEDA_OK;
    }
    rueda_text_set(&words,
                   launch->elastic != NULL
                       ? "host '%s' has an agent already; --host gives this "
                         "one another name"
                       : "the launcher waits for no host '%s'; --host says "
                         "which of its hosts this is",
                   name);
    turn_away(fd, session, words.chars);
    return RUEDA_OK;
}

/* ---- Waiting ------------------------------------------------------------ */

static void on_time(uv_timer_t *timer);

/* Take strangers further, and set the timer for the next moment at which one is
 * late. */
static void progress(struct rueda_door *door)
{
    const int64_t now_ns = rueda_clock_ns();
    int64_t next_ns;

    rueda_admission_progress(&door->admission, now_ns);
    next_ns = rueda_admission_next_ns(&door->admission);
    if (next_ns == INT64_MAX)
        uv_timer_stop(&door->timer);
    else
        uv_timer_start(
            &door->timer, on_time,
            next_ns > now_ns ? (uint64_t)(next_ns - now_ns) / 1000000 + 1 : 0,
            0);
}

static void on_time(uv_timer_t *timer)
{
    progress(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    progress(poll->data);
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

/* Listen at one address. The message names it, since there may be several. */
static bool listen_at(struct rueda_door *door, const struct rueda_address *at,
                      struct rueda_text *words)
{
    int *listener = &door->listeners[door->listener_count];
    struct rueda_address bound;
    char text[RUEDA_ADDRESS_TEXT];

    if (rueda_socket_listen(at, listener, &bound) == RUEDA_OK) {
        door->listener_count++;
        if (rueda_admission_listen(&door->admission, *listener, false) ==
            RUEDA_OK)
            return true;
    }
    rueda_address_text(at, text, sizeof(text));
    rueda_text_set(words, "cannot listen at %s: %s", text, strerror(errno));
    return false;
}

/* Admit agents from the launcher's loop. */
static bool watch(struct rueda_door *door, struct rueda_text *words)
{
    static const struct rueda_admission_ops ops = {.proven = admit};
    const struct rueda_admission_args args = {.who = "the launcher",
                                              .purpose = RUEDA_FOR_LAUNCHER,
                                              .key = &door->launch->key,
                                              .keep_alive =
                                                  RUEDA_AGENT_QUESTIONS,
                                              .ops = &ops,
                                              .arg = door};

    if (rueda_admission_init(&door->admission, &args) != RUEDA_OK ||
        uv_poll_init(&door->launch->loop, &door->poll,
                     rueda_admission_fd(&door->admission)) != 0) {
        rueda_text_set(words, "cannot listen: no memory or descriptor");
        return false;
    }
    uv_timer_init(&door->launch->loop, &door->timer);
    door->poll.data = door;
    door->timer.data = door;
    door->is_watched = true;
    uv_poll_start(&door->poll, UV_READABLE, on_ready);
    return true;
}

/* Tell the user at which address we wait, and for which hosts. */
static void say_where(const struct rueda_door *door, const char *at)
{
    struct rueda_text names = {{0}};

    for (int i = 0; i < door->launch->node_count; i++)
        if (!door->launch->nodes[i].is_local)
            rueda_text_add(&names, "%s%s",
                           rueda_text_is_empty(&names) ? "" : ", ",
                           door->launch->nodes[i].name);
    if (door->launch->elastic != NULL)
        rueda_text_set(&names, "any host");
    if (rueda_text_is_empty(&names))
        return;
    rueda_output_say(door->launch->output,
                     "waiting at %s for \"ruedarun agent --join\" of %s", at,
                     names.chars);
}

/* Listen where agents of other hosts can come. Those that prove the key are
 * handed to their nodes. */
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
    if (!watch(door, words))
        return RUEDA_ERR_IO;
    count = addresses_of(launch, at, addresses, words);
    for (int i = 0; i < count; i++)
        if (!listen_at(door, &addresses[i], words))
            return RUEDA_ERR_IO;
    if (count == 0)
        return RUEDA_ERR_INVALID;
    say_where(door, at);
    return RUEDA_OK;
}

/* Stop listening. Handles of the loop are closed here and freed later, when the
 * loop has seen that. */
void rueda_door_close(struct rueda_door *door)
{
    if (door == NULL)
        return;
    if (door->is_watched) {
        uv_close((uv_handle_t *)&door->poll, NULL);
        uv_close((uv_handle_t *)&door->timer, NULL);
    }
    door->is_watched = false;
    rueda_admission_fini(&door->admission);
    for (int i = 0; i < door->listener_count; i++)
        rueda_fd_close(door->listeners[i]);
    door->listener_count = 0;
}

void rueda_door_free(struct rueda_door *door)
{
    free(door);
}
