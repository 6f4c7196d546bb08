/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of a meeting. A caller is whoever has connected and not yet proven
 * who it is; a guest is a rank that has. Callers are many and may be hostile:
 * there are at most MOST_CALLERS of them, each has HANDSHAKE_NS, and nothing of
 * theirs is read but the handshake.
 */
#define RUEDA_LOG_TAG "segment"

#include "segment/door.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/process.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "segment/wire.h"

/* All ranks may call at once, and strangers beside them. */
#define MOST_CALLERS   (RUEDA_SEGMENT_MAX + 128)
#define HANDSHAKE_NS   ((int64_t)5000000000)
#define SLICE_NS       ((int64_t)100000000)
#define LISTENER_EVENT UINT32_MAX

struct caller {
    int fd; /* -1: a free place */
    int64_t deadline_ns;
    bool is_proven;
    struct rueda_handshake shake;
};

struct door {
    const struct rueda_meeting *meeting;
    int listener;
    int poller;
    int come;     /* guests, myself included */
    int *sockets; /* [size], -1: not come */
    int *fds;     /* [2 * size + 1]: doorbells, pidfds, memfd */
    struct rueda_fork_hook fork_hook;
    struct caller callers[MOST_CALLERS];
};

static void turn_away(struct door *door, struct caller *caller)
{
    rueda_poller_remove(door->poller, caller->fd);
    rueda_fd_close(caller->fd);
    rueda_handshake_fini(&caller->shake);
    caller->fd = -1;
}

/* A caller has proven who it is: does that fit? */
static bool fits(struct door *door, struct caller *caller, int *out_rank)
{
    const struct rueda_meeting *meeting = door->meeting;
    struct rueda_text why = {{0}};
    const void *about;
    size_t bytes;
    int size;

    about = rueda_handshake_peer_about(&caller->shake, &bytes);
    if (!rueda_meet_about_read(about, bytes, out_rank, &size))
        rueda_text_set(&why, "rank %d does not understand who is calling",
                       rueda_meeting_rank(meeting, 0));
    else if (size != meeting->size)
        rueda_text_set(&why,
                       "rank %d says that job \"%s\" has %d ranks, rank 0 says "
                       "%d; start all with the same number, or set another "
                       "RUEDA_JOB for another job",
                       *out_rank, rueda_meeting_title(meeting), size,
                       meeting->size);
    else if (*out_rank < 1 || *out_rank >= size)
        rueda_text_set(&why, "there is no rank %d in a job of %d", *out_rank,
                       size);
    else if (door->sockets[*out_rank] >= 0)
        rueda_text_set(&why,
                       "rank %d of job \"%s\" came twice; set another "
                       "RUEDA_JOB for another job",
                       rueda_meeting_rank(meeting, *out_rank),
                       rueda_meeting_title(meeting));
    if (rueda_text_is_empty(&why))
        return true;
    log_warn("%s", why.chars);
    rueda_meet_fail(caller->fd, RUEDA_ERR_MISMATCH, &why);
    return false;
}

static const struct rueda_text no_room = {
    "the first rank of this host could not take the descriptors of another; "
    "raise `ulimit -n`"};

/* One step with a caller; it may become a guest or be turned away. */
static void hear(struct door *door, struct caller *caller)
{
    rueda_status status;
    int pair[2];
    int rank;

    if (!caller->is_proven) {
        status = rueda_shake_step(caller->fd, &caller->shake);
        if (status == RUEDA_IN_PROGRESS)
            return;
        if (status != RUEDA_OK) {
            log_warn("somebody was refused at the start: %s",
                     rueda_handshake_error(&caller->shake));
            turn_away(door, caller);
            return;
        }
        caller->is_proven = true;
    }
    status = rueda_unix_recv_fds(caller->fd, pair, 2);
    if (status == RUEDA_IN_PROGRESS)
        return;
    if (status == RUEDA_ERR_INVALID)
        rueda_meet_fail(caller->fd, RUEDA_ERR_LIMIT, &no_room);
    if (status != RUEDA_OK || !fits(door, caller, &rank)) {
        if (status == RUEDA_OK) {
            rueda_fd_close(pair[0]);
            rueda_fd_close(pair[1]);
        }
        turn_away(door, caller);
        return;
    }
    rueda_poller_remove(door->poller, caller->fd);
    door->sockets[rank] = caller->fd;
    door->fds[rank] = pair[0];
    door->fds[door->meeting->size + rank] = pair[1];
    door->come++;
    rueda_handshake_fini(&caller->shake);
    caller->fd = -1;
}

static bool is_welcome(const struct door *door, int fd)
{
    unsigned user;

    return door->meeting->key->present ||
           (rueda_unix_peer_user(fd, &user) == RUEDA_OK &&
            user == rueda_process_user());
}

/* Let in who has connected; fails if there is no room for anybody. */
static rueda_status answer(struct door *door, struct rueda_text *error)
{
    rueda_status status;
    int fd;

    while ((status = rueda_stream_accept(door->listener, &fd)) == RUEDA_OK) {
        struct caller *caller = NULL;

        for (int i = 0; i < MOST_CALLERS && caller == NULL; i++)
            if (door->callers[i].fd < 0)
                caller = &door->callers[i];
        if (caller == NULL || !is_welcome(door, fd) ||
            rueda_handshake_init(&caller->shake, RUEDA_ACCEPTOR,
                                 door->meeting->key, NULL, 0) != RUEDA_OK ||
            rueda_poller_add(door->poller, fd,
                             (uint32_t)(caller - door->callers)) != RUEDA_OK) {
            log_warn("somebody was turned away at the start: %s",
                     caller == NULL          ? "too many callers"
                     : !is_welcome(door, fd) ? "not our user"
                                             : strerror(errno));
            rueda_fd_close(fd);
            if (caller != NULL)
                rueda_handshake_fini(&caller->shake);
            continue;
        }
        caller->fd = fd;
        caller->is_proven = false;
        caller->deadline_ns = rueda_clock_ns() + HANDSHAKE_NS;
        hear(door, caller);
    }
    if (status == RUEDA_IN_PROGRESS)
        return RUEDA_OK;
    rueda_text_set(error,
                   "rank 0 cannot take a connection of another rank: %s; a job "
                   "of %d ranks needs some %d descriptors in each, see "
                   "`ulimit -n`",
                   strerror(errno), door->meeting->size,
                   3 * door->meeting->size + 16);
    return RUEDA_ERR_LIMIT;
}

/* Who has not come, in words. */
static void name_missing(const struct door *door, struct rueda_text *error)
{
    int missing = door->meeting->size - door->come;
    int named = 0;

    rueda_text_set(error,
                   "%d of %d ranks of job \"%s\" did not come in time: "
                   "rank",
                   missing, door->meeting->size,
                   rueda_meeting_title(door->meeting));
    for (int i = 1; i < door->meeting->size && named < 8; i++)
        if (door->sockets[i] < 0)
            rueda_text_add(error, "%s%d", named++ > 0 ? ", " : " ",
                           rueda_meeting_rank(door->meeting, i));
    if (missing > named)
        rueda_text_add(error, " and others");
    rueda_text_add(error, "; they must run as the same user on this host, or "
                          "raise RUEDA_START_TIMEOUT");
}

static rueda_status await_all(struct door *door, struct rueda_text *error)
{
    uint32_t numbers[32];

    while (door->come < door->meeting->size) {
        int64_t now = rueda_clock_ns();
        rueda_status status = RUEDA_OK;
        int found;

        if (now >= door->meeting->deadline_ns) {
            name_missing(door, error);
            return RUEDA_ERR_TIMEOUT;
        }
        found = rueda_poller_wait(door->poller, SLICE_NS, numbers, 32);
        for (int i = 0; i < found; i++) {
            if (numbers[i] == LISTENER_EVENT)
                status = answer(door, error);
            else if (door->callers[numbers[i]].fd >= 0)
                hear(door, &door->callers[numbers[i]]);
        }
        if (status != RUEDA_OK)
            return status;
        for (int i = 0; i < MOST_CALLERS; i++)
            if (door->callers[i].fd >= 0 && door->callers[i].deadline_ns < now)
                turn_away(door, &door->callers[i]);
    }
    return RUEDA_OK;
}

/* Hand out the segment, wait until all have entered, let them go. */
static rueda_status let_in(struct door *door, struct rueda_text *error)
{
    int64_t deadline = door->meeting->deadline_ns;
    int size = door->meeting->size;
    rueda_status status = RUEDA_OK;
    char start = RUEDA_MEET_START;
    char go = RUEDA_MEET_GO;
    int rank = 0;

    for (rank = 1; rank < size && status == RUEDA_OK; rank++) {
        status =
            rueda_stream_send_all(door->sockets[rank], &start, 1, deadline);
        if (status == RUEDA_OK)
            status = rueda_meet_send_fds(door->sockets[rank], door->fds,
                                         2 * size + 1, deadline);
    }
    if (status == RUEDA_OK)
        for (rank = 1; rank < size && status == RUEDA_OK; rank++)
            status = rueda_meet_recv_kind(door->sockets[rank], RUEDA_MEET_READY,
                                          deadline, error);
    if (status != RUEDA_OK) {
        rueda_text_set(error, "rank %d went away while the job started",
                       rueda_meeting_rank(door->meeting, rank - 1));
        return RUEDA_ERR_PEER_LOST;
    }
    /* Whoever is let go may start the next job of this name at once. */
    rueda_fd_close(door->listener);
    door->listener = -1;
    for (rank = 1; rank < size && status == RUEDA_OK; rank++)
        status = rueda_stream_send_all(door->sockets[rank], &go, 1, deadline);
    if (status != RUEDA_OK)
        rueda_text_set(error, "rank %d went away while the job started",
                       rueda_meeting_rank(door->meeting, rank - 1));
    return status;
}

static rueda_status open_door(struct door *door, struct rueda_text *error)
{
    char name[128];
    rueda_status status;

    rueda_meet_name(name, sizeof(name), door->meeting->job);
    for (;;) {
        status = rueda_unix_listen(name, &door->listener);
        if (status == RUEDA_OK || errno != EADDRINUSE ||
            rueda_clock_ns() >= door->meeting->deadline_ns)
            break;
        rueda_sleep_ns(1000000);
    }
    if (status != RUEDA_OK) {
        rueda_text_set(error,
                       "cannot listen for job \"%s\": %s; if another job of "
                       "that name is starting, set RUEDA_JOB",
                       rueda_meeting_title(door->meeting), strerror(errno));
        return status;
    }
    if (rueda_poller_open(&door->poller) != RUEDA_OK ||
        rueda_poller_add(door->poller, door->listener, LISTENER_EVENT) !=
            RUEDA_OK) {
        rueda_text_set(error, "cannot wait for the other ranks: %s",
                       strerror(errno));
        return RUEDA_ERR_IO;
    }
    return RUEDA_OK;
}

/* In the child of a fork: what is open here must not outlive the start. */
static void close_in_child(struct rueda_fork_hook *hook)
{
    struct door *door =
        (struct door *)((char *)hook - offsetof(struct door, fork_hook));

    rueda_fd_close(door->listener);
    rueda_fd_close(door->poller);
    for (int i = 0; i < MOST_CALLERS; i++)
        rueda_fd_close(door->callers[i].fd);
    for (int i = 0; i < door->meeting->size; i++)
        rueda_fd_close(door->sockets[i]);
    for (int i = 0; i < 2 * door->meeting->size; i++)
        rueda_fd_close(door->fds[i]);
}

static struct door *door_new(const struct rueda_meeting *meeting,
                             struct rueda_segment *segment, const int own[2])
{
    int size = meeting->size;
    struct door *door = calloc(1, sizeof(*door));

    if (door == NULL)
        return NULL;
    door->meeting = meeting;
    door->listener = -1;
    door->poller = -1;
    door->come = 1;
    for (int i = 0; i < MOST_CALLERS; i++)
        door->callers[i].fd = -1;
    door->sockets = malloc((size_t)size * sizeof(int));
    door->fds = malloc((2 * (size_t)size + 1) * sizeof(int));
    if (door->sockets == NULL || door->fds == NULL) {
        free(door->sockets);
        free(door->fds);
        free(door);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        door->sockets[i] = -1;
        door->fds[i] = -1;
        door->fds[size + i] = -1;
    }
    door->fds[0] = own[0];
    door->fds[size] = own[1];
    door->fds[size + size] = rueda_segment_fd(segment);
    door->fork_hook.in_child = close_in_child;
    rueda_fork_hook_add(&door->fork_hook);
    return door;
}

/* The descriptors in fds are the segment's by now if it was entered. */
static void door_free(struct door *door, bool has_entered)
{
    int size = door->meeting->size;

    rueda_fork_hook_remove(&door->fork_hook);
    for (int i = 0; i < MOST_CALLERS; i++)
        if (door->callers[i].fd >= 0)
            turn_away(door, &door->callers[i]);
    for (int i = 0; i < size; i++)
        rueda_fd_close(door->sockets[i]);
    for (int i = 0; i < 2 * size && !has_entered; i++)
        rueda_fd_close(door->fds[i]);
    rueda_fd_close(door->listener);
    rueda_fd_close(door->poller);
    free(door->sockets);
    free(door->fds);
    free(door);
}

rueda_status rueda_segment_receive(const struct rueda_meeting *meeting,
                                   struct rueda_segment *segment,
                                   const int own[2], struct rueda_text *error)
{
    struct door *door = door_new(meeting, segment, own);
    rueda_status status = RUEDA_OK;
    bool has_entered = false;

    if (door == NULL) {
        rueda_fd_close(own[0]);
        rueda_fd_close(own[1]);
        return RUEDA_ERR_NOMEM;
    }
    if (meeting->size > 1)
        status = open_door(door, error);
    if (status == RUEDA_OK && meeting->size > 1)
        status = await_all(door, error);
    if (status == RUEDA_OK) {
        status = rueda_segment_enter(segment, door->fds,
                                     door->fds + meeting->size, error);
        has_entered = true;
    }
    if (status == RUEDA_OK && meeting->size > 1)
        status = let_in(door, error);
    for (int i = 1; i < meeting->size && status != RUEDA_OK; i++)
        if (door->sockets[i] >= 0)
            rueda_meet_fail(door->sockets[i], status, error);
    door_free(door, has_entered);
    return status;
}
