/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a dial. A step connects, or looks whether a connection was made
 * or refused, and sets out on the next way when one has failed. Time is passed
 * in, and no function but rueda_dial_wait() sleeps.
 */
#define RUEDA_LOG_TAG "os"

#include "os/dial.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/duration.h"
#include "base/least.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/unix_socket.h"

/* The most time for the answer of a process. */
#define PATIENCE_NS RUEDA_S(60)

/* How long a refusal is not believed. */
#define DOUBT_NS RUEDA_S(1)

/* Without overflow: INT64_MAX is "never". */
static int64_t later_by(int64_t now_ns, int64_t ns)
{
    return ns < INT64_MAX - now_ns ? now_ns + ns : INT64_MAX;
}

int rueda_dial_ways(const struct rueda_dial *dial)
{
    return (dial->args.socket != NULL) + dial->args.address_count;
}

bool rueda_dial_is_local(const struct rueda_dial *dial)
{
    return dial->args.socket != NULL && dial->way == 0;
}

/* The address of the way that is tried; NULL: the Unix socket. */
static const struct rueda_address *address_of(const struct rueda_dial *dial)
{
    int i = dial->way - (dial->args.socket != NULL);

    return i < 0 ? NULL : &dial->args.addresses[i];
}

void rueda_dial_rest(struct rueda_dial *dial, int64_t start_ns)
{
    rueda_fd_close(dial->fd);
    dial->fd = -1;
    dial->stage = RUEDA_DIAL_PAUSED;
    dial->tried = 0;
    dial->dead_ends = 0;
    dial->refused_for = 0;
    dial->refused_ns = 0;
    dial->due_ns = start_ns;
    dial->pause_ns = dial->args.first_pause_ns;
    dial->patience_ns = RUEDA_DIAL_NS;
    dial->give_up_ns = later_by(start_ns, dial->args.limit_ns);
    dial->cause = 0;
}

void rueda_dial_init(struct rueda_dial *dial,
                     const struct rueda_dial_args *args, int way,
                     int64_t start_ns)
{
    *dial = (struct rueda_dial){.args = *args, .fd = -1, .way = way};
    rueda_dial_rest(dial, start_ns);
}

/* Say once in this process that it is out of descriptors, and once that it is
 * out of ports. */
static void tell_short(int cause)
{
    static atomic_flag of_descriptors = ATOMIC_FLAG_INIT;
    static atomic_flag of_ports = ATOMIC_FLAG_INIT;
    atomic_flag *is_told = cause == EADDRNOTAVAIL ? &of_ports : &of_descriptors;

    if (!atomic_flag_test_and_set_explicit(is_told, memory_order_relaxed))
        log_warn("this process cannot open a connection: %s%s", strerror(cause),
                 rueda_stream_remedy(cause));
}

static void note_failure(struct rueda_dial *dial, int cause, const char *why)
{
    const struct rueda_address *address = address_of(dial);
    bool is_short = rueda_stream_is_short(cause);
    char text[RUEDA_ADDRESS_TEXT] = "this host";

    if (is_short)
        tell_short(cause);
    /* A Unix socket that is not there is not worth a word. */
    if (address == NULL && !is_short)
        return;
    if (address != NULL)
        rueda_address_text(address, text, sizeof(text));
    dial->cause = cause;
    dial->why.chars[0] = '\0';
    rueda_text_set(&dial->why, "%s: %s%s", text,
                   why != NULL ? why : strerror(cause),
                   rueda_stream_remedy(cause));
}

void rueda_dial_fail(struct rueda_dial *dial, int cause, const char *why,
                     int64_t now_ns)
{
    const int ways = rueda_dial_ways(dial);

    note_failure(dial, cause, why);
    rueda_fd_close(dial->fd);
    dial->fd = -1;
    dial->stage = RUEDA_DIAL_PAUSED;
    dial->due_ns = now_ns;
    dial->way = (dial->way + 1) % ways;
    if (cause == EACCES || cause == ECONNREFUSED)
        dial->dead_ends++;
    else
        dial->dead_ends = 0;
    if (cause == EACCES) {
        dial->refused_for = ways;
        if (dial->refused_ns == 0)
            dial->refused_ns = now_ns;
    } else if (dial->refused_for > 0) {
        dial->refused_for--;
    }
    if (++dial->tried == ways) {
        dial->tried = 0;
        dial->due_ns = now_ns + dial->pause_ns;
        dial->pause_ns =
            rueda_sooner(2 * dial->pause_ns, dial->args.most_pause_ns);
    }
    if (now_ns >= dial->give_up_ns)
        dial->stage = RUEDA_DIAL_GIVEN_UP;
}

/* The attempt has its own deadline, due_ns. Where even the socket cannot be
 * made, the way has failed at once. */
static void set_out(struct rueda_dial *dial, int64_t now_ns)
{
    const struct rueda_address *address = address_of(dial);
    rueda_status status;

    if (address != NULL)
        status = rueda_socket_connect(address, &dial->fd);
    else
        status = rueda_unix_connect(dial->args.socket, &dial->fd);
    if (status != RUEDA_OK) {
        dial->fd = -1;
        rueda_dial_fail(dial, errno, NULL, now_ns);
        return;
    }
    if (dial->args.watch != NULL)
        dial->args.watch(dial->args.arg, dial->fd);
    dial->stage = RUEDA_DIAL_CONNECTING;
    dial->due_ns = now_ns + RUEDA_DIAL_NS;
}

/* What became of an attempt. A Unix socket is connected when connect() returns.
 * False: it takes longer. */
static bool has_connected(struct rueda_dial *dial, int64_t now_ns)
{
    rueda_status status =
        address_of(dial) != NULL ? rueda_socket_connected(dial->fd) : RUEDA_OK;

    if (status == RUEDA_OK) {
        dial->stage = RUEDA_DIAL_CONNECTED;
        dial->due_ns = now_ns + dial->patience_ns;
    } else if (status < 0) {
        rueda_dial_fail(dial, errno, NULL, now_ns);
    } else if (now_ns >= dial->due_ns) {
        rueda_dial_fail(dial, ETIMEDOUT, NULL, now_ns);
    } else {
        return false;
    }
    return true;
}

/* Another address may lead to the process, and this one to another process. */
static void lose_patience(struct rueda_dial *dial, int64_t now_ns)
{
    dial->patience_ns = rueda_sooner(2 * dial->patience_ns, PATIENCE_NS);
    dial->give_up_ns = later_by(now_ns, dial->args.limit_ns);
    rueda_dial_fail(dial, ETIMEDOUT, "connected, but the process is silent",
                    now_ns);
}

rueda_status rueda_dial_step(struct rueda_dial *dial, int64_t now_ns,
                             bool *out_is_new)
{
    *out_is_new = false;
    for (;;) {
        switch (dial->stage) {
        case RUEDA_DIAL_PAUSED:
            if (now_ns < dial->due_ns)
                return RUEDA_IN_PROGRESS;
            set_out(dial, now_ns);
            break;
        case RUEDA_DIAL_CONNECTING:
            if (!has_connected(dial, now_ns))
                return RUEDA_IN_PROGRESS;
            *out_is_new = dial->stage == RUEDA_DIAL_CONNECTED;
            break;
        case RUEDA_DIAL_CONNECTED:
            if (now_ns < dial->due_ns)
                return RUEDA_OK;
            lose_patience(dial, now_ns);
            break;
        case RUEDA_DIAL_GIVEN_UP:
            return RUEDA_ERR_TIMEOUT;
        }
    }
}

bool rueda_dial_is_refused(const struct rueda_dial *dial, int64_t now_ns)
{
    return dial->refused_for > 0 && now_ns - dial->refused_ns >= DOUBT_NS;
}

int rueda_dial_take(struct rueda_dial *dial)
{
    int fd = dial->fd;

    dial->fd = -1;
    return fd;
}

int64_t rueda_dial_next_ns(const struct rueda_dial *dial)
{
    return dial->stage == RUEDA_DIAL_GIVEN_UP ? 0 : dial->due_ns;
}

void rueda_dial_wait(const struct rueda_dial *dial, int64_t deadline_ns)
{
    int64_t left = rueda_sooner(rueda_dial_next_ns(dial), deadline_ns);

    left -= rueda_clock_ns();
    if (dial->fd >= 0)
        rueda_fd_wait(dial->fd, dial->stage == RUEDA_DIAL_CONNECTING, left);
    else if (left > 0)
        rueda_sleep_ns(left);
}

void rueda_dial_fini(struct rueda_dial *dial)
{
    rueda_fd_close(dial->fd);
    dial->fd = -1;
}
