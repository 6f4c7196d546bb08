/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of strangers: connections that were accepted and have not proven
 * themselves (admission.h). One poller watches the listeners and the strangers,
 * so that an owner with any kind of loop has one descriptor to watch.
 */
#define RUEDA_LOG_TAG "auth"

#include "auth/admission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/unix_socket.h"

/* How many connections one call of progress accepts at a listener. */
#define TURN 64

/* How long listeners are left alone when not even the spare descriptor
 * helps. */
#define REST_NS RUEDA_MS(100)

/* Numbers of the poller: strangers from 0, listeners from here. */
#define FIRST_LISTENER (UINT32_MAX - RUEDA_ADMISSION_LISTENERS)

struct rueda_stranger {
    int fd; /* -1: not in use */
    bool is_proven;
    int64_t deadline_ns;
    uint64_t number; /* the lowest is the oldest */
    struct rueda_address from;
    struct rueda_handshake shake;
};

/* ---- Strangers ---------------------------------------------------------- */

static uint32_t number_of(const struct rueda_admission *admission,
                          const struct rueda_stranger *stranger)
{
    return (uint32_t)(stranger - admission->strangers);
}

/* Forget it, without closing its descriptor. */
static void forget(struct rueda_stranger *stranger)
{
    rueda_handshake_fini(&stranger->shake);
    stranger->fd = -1;
}

static void hang_up(struct rueda_admission *admission,
                    struct rueda_stranger *stranger)
{
    rueda_poller_remove(admission->poller, stranger->fd);
    rueda_fd_close(stranger->fd);
    forget(stranger);
}

void rueda_admission_refuse(struct rueda_admission *admission,
                            rueda_refusal kind,
                            const struct rueda_address *from, const char *why)
{
    rueda_refuse(&admission->refusals, kind, admission->who, from, why,
                 rueda_clock_ns());
}

/* Log it, and close the connection. A rank may have found another way to us
 * and hung up on this one, or be stopped in the middle of the handshake: that
 * is not worth a warning. */
static void refuse(struct rueda_admission *admission,
                   struct rueda_stranger *stranger, rueda_refusal kind,
                   const char *why)
{
    const struct rueda_admission_args *args = &admission->args;

    if ((kind == RUEDA_REFUSED_LEFT || kind == RUEDA_REFUSED_SLOW) &&
        args->ops->is_expected != NULL &&
        args->ops->is_expected(args->arg, &stranger->from))
        log_info("a connection from the host of a rank ended: %s", why);
    else
        rueda_admission_refuse(admission, kind, &stranger->from, why);
    hang_up(admission, stranger);
}

/* Ask the owner, which may take the descriptor. */
static void hand_over(struct rueda_admission *admission,
                      struct rueda_stranger *stranger)
{
    const struct rueda_admission_args *args = &admission->args;
    struct rueda_text why = {{0}};
    rueda_status status;

    rueda_poller_remove(admission->poller, stranger->fd);
    status = args->ops->proven(args->arg, stranger->fd, &stranger->shake,
                               &stranger->from, &why);
    if (status == RUEDA_OK) {
        forget(stranger);
        return;
    }
    if (status == RUEDA_IN_PROGRESS &&
        rueda_poller_add(admission->poller, stranger->fd,
                         number_of(admission, stranger)) == RUEDA_OK)
        return;
    if (!rueda_text_is_empty(&why))
        rueda_admission_refuse(admission, RUEDA_REFUSED_MISFIT, &stranger->from,
                               why.chars);
    hang_up(admission, stranger);
}

static void step(struct rueda_admission *admission,
                 struct rueda_stranger *stranger)
{
    rueda_status status = RUEDA_OK;

    if (!stranger->is_proven)
        status = rueda_shake_step(stranger->fd, &stranger->shake);
    if (status == RUEDA_IN_PROGRESS)
        return;
    if (status != RUEDA_OK) {
        int cause = errno;
        const char *why = rueda_handshake_error(&stranger->shake);

        refuse(admission, stranger, rueda_refusal_of(status),
               why[0] != '\0' ? why : strerror(cause));
        return;
    }
    stranger->is_proven = true;
    hand_over(admission, stranger);
}

/* A free entry of the table, the oldest stranger's if there is no other. */
static struct rueda_stranger *make_room(struct rueda_admission *admission)
{
    struct rueda_stranger *oldest = &admission->strangers[0];

    for (int i = 0; i < admission->args.most; i++) {
        struct rueda_stranger *stranger = &admission->strangers[i];

        if (stranger->fd < 0)
            return stranger;
        if (stranger->number < oldest->number)
            oldest = stranger;
    }
    refuse(admission, oldest, RUEDA_REFUSED_CROWD,
           "it had not proven itself, and many others connect");
    return oldest;
}

static void begin(struct rueda_admission *admission, int fd, bool is_local,
                  int64_t now_ns)
{
    const struct rueda_admission_args *args = &admission->args;
    unsigned char about[RUEDA_HANDSHAKE_ABOUT_MAX];
    struct rueda_stranger *stranger;
    struct rueda_address from = {.len = 0};
    size_t bytes = 0;

    if (is_local && !args->key->present && !rueda_unix_peer_is_us(fd)) {
        rueda_admission_refuse(admission, RUEDA_REFUSED_UNPROVEN, NULL,
                               "not our user, or in another user namespace, "
                               "and there is no key");
        rueda_fd_close(fd);
        return;
    }
    if (!is_local) {
        rueda_socket_peer(fd, &from);
        rueda_socket_hurry(fd);
    }
    if (!is_local && args->keep_alive > 0)
        rueda_socket_keep_alive(fd, args->keep_alive);
    stranger = make_room(admission);
    if (rueda_poller_add(admission->poller, fd,
                         number_of(admission, stranger)) != RUEDA_OK) {
        rueda_fd_close(fd);
        return;
    }
    *stranger =
        (struct rueda_stranger){.fd = fd,
                                .deadline_ns = now_ns + RUEDA_ADMISSION_NS,
                                .number = admission->count++,
                                .from = from};
    if (args->ops->about != NULL)
        bytes = args->ops->about(args->arg, fd, about);
    /* A failure shows at the first step. */
    rueda_handshake_init(&stranger->shake, RUEDA_ACCEPTOR, args->purpose,
                         args->key, about, bytes);
    step(admission, stranger);
}

/* ---- Listeners ---------------------------------------------------------- */

static void watch_listeners(struct rueda_admission *admission, bool is_wanted)
{
    for (int i = 0; i < admission->listener_count; i++) {
        if (is_wanted)
            rueda_poller_add(admission->poller, admission->listeners[i],
                             FIRST_LISTENER + (uint32_t)i);
        else
            rueda_poller_remove(admission->poller, admission->listeners[i]);
    }
}

/* There is no descriptor for a connection: close it by means of the spare one,
 * so that the other end does not wait for an answer. False: nothing helps. */
static bool turn_away(struct rueda_admission *admission, int listener,
                      int64_t now_ns)
{
    rueda_status status = RUEDA_ERR_LIMIT;
    int cause = errno;
    int fd;

    if (!admission->is_short)
        log_warn("%s cannot take another connection: %s; raise `ulimit -n`",
                 admission->who, strerror(cause));
    admission->is_short = true;
    if (admission->short_ns == 0)
        admission->short_ns = now_ns;
    if (admission->spare >= 0) {
        rueda_fd_close(admission->spare);
        status = rueda_stream_accept(listener, &fd);
        if (status == RUEDA_OK)
            rueda_fd_close(fd);
        if (rueda_fd_copy(admission->poller, &admission->spare) != RUEDA_OK)
            admission->spare = -1;
    }
    return status >= 0;
}

static void accept_turn(struct rueda_admission *admission, uint32_t which,
                        int64_t now_ns)
{
    int listener = admission->listeners[which];
    int fd;

    for (int i = 0; i < TURN; i++) {
        rueda_status status = rueda_stream_accept(listener, &fd);

        if (status == RUEDA_OK) {
            admission->short_ns = 0;
            begin(admission, fd, admission->is_local[which], now_ns);
            continue;
        }
        if (status == RUEDA_IN_PROGRESS)
            return;
        if (rueda_stream_is_short(errno) &&
            !turn_away(admission, listener, now_ns)) {
            watch_listeners(admission, false);
            admission->rest_ns = now_ns + REST_NS;
            return;
        }
    }
    admission->has_more = true;
}

/* ---- From outside ------------------------------------------------------- */

rueda_status rueda_admission_init(struct rueda_admission *admission,
                                  const struct rueda_admission_args *args)
{
    rueda_status status;

    *admission = (struct rueda_admission){.args = *args, .spare = -1};
    if (args->most == 0)
        admission->args.most = RUEDA_ADMISSION_MOST;
    snprintf(admission->who, sizeof(admission->who), "%s", args->who);
    status = rueda_poller_open(&admission->poller);
    if (status != RUEDA_OK) {
        admission->poller = 0;
        return status;
    }
    status = rueda_fd_copy(admission->poller, &admission->spare);
    if (status != RUEDA_OK)
        return status;
    admission->strangers =
        calloc((size_t)admission->args.most, sizeof(*admission->strangers));
    if (admission->strangers == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < admission->args.most; i++)
        admission->strangers[i].fd = -1;
    return RUEDA_OK;
}

rueda_status rueda_admission_listen(struct rueda_admission *admission,
                                    int listener, bool is_local)
{
    uint32_t number = FIRST_LISTENER + (uint32_t)admission->listener_count;
    rueda_status status;

    if (admission->listener_count == RUEDA_ADMISSION_LISTENERS)
        return RUEDA_ERR_LIMIT;
    status = rueda_poller_add(admission->poller, listener, number);
    if (status != RUEDA_OK)
        return status;
    admission->is_local[admission->listener_count] = is_local;
    admission->listeners[admission->listener_count++] = listener;
    return RUEDA_OK;
}

int rueda_admission_fd(const struct rueda_admission *admission)
{
    return admission->poller;
}

void rueda_admission_progress(struct rueda_admission *admission, int64_t now_ns)
{
    uint32_t numbers[TURN];
    int found;

    if (admission->rest_ns != 0 && now_ns >= admission->rest_ns) {
        admission->rest_ns = 0;
        watch_listeners(admission, true);
    }
    found = rueda_poller_wait(admission->poller, 0, numbers, TURN);
    admission->has_more = found == TURN;
    for (int i = 0; i < found; i++) {
        if (numbers[i] >= FIRST_LISTENER)
            accept_turn(admission, numbers[i] - FIRST_LISTENER, now_ns);
        else if (admission->strangers[numbers[i]].fd >= 0)
            step(admission, &admission->strangers[numbers[i]]);
    }
    for (int i = 0; i < admission->args.most; i++)
        if (admission->strangers[i].fd >= 0 &&
            now_ns >= admission->strangers[i].deadline_ns)
            refuse(admission, &admission->strangers[i], RUEDA_REFUSED_SLOW,
                   "it did not prove itself in time");
    rueda_refusals_sum(&admission->refusals, admission->who, now_ns);
}

int64_t rueda_admission_next_ns(const struct rueda_admission *admission)
{
    int64_t next = admission->rest_ns != 0 ? admission->rest_ns : INT64_MAX;

    if (admission->has_more)
        return 0;
    for (int i = 0; i < admission->args.most; i++)
        if (admission->strangers[i].fd >= 0 &&
            admission->strangers[i].deadline_ns < next)
            next = admission->strangers[i].deadline_ns;
    return next;
}

bool rueda_admission_is_short(const struct rueda_admission *admission)
{
    return admission->is_short;
}

int64_t rueda_admission_short_ns(const struct rueda_admission *admission)
{
    return admission->short_ns;
}

void rueda_admission_forked(const struct rueda_admission *admission)
{
    if (admission->strangers == NULL)
        return;
    rueda_fd_close(admission->poller);
    rueda_fd_close(admission->spare);
    for (int i = 0; i < admission->args.most; i++)
        rueda_fd_close(admission->strangers[i].fd);
}

void rueda_admission_fini(struct rueda_admission *admission)
{
    for (int i = 0; i < admission->args.most && admission->strangers != NULL;
         i++)
        if (admission->strangers[i].fd >= 0)
            hang_up(admission, &admission->strangers[i]);
    rueda_refusals_sum(&admission->refusals, admission->who, INT64_MAX);
    if (admission->poller > 0) {
        rueda_fd_close(admission->poller);
        rueda_fd_close(admission->spare);
    }
    free(admission->strangers);
    *admission = (struct rueda_admission){.spare = -1};
}
