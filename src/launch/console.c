/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the job's output from a thread of its own, and giving up a reader
 * that takes nothing for long.
 */
#include "launch/console.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "os/clock.h"
#include "os/thread.h"

/* Small, so that also a slow reader is seen to read. */
#define WRITE_BYTES ((size_t)4096)

/* At the end, how long to wait for a reader that was stuck. */
#define LAST_NS RUEDA_S(1)

/* How often to check for a reader that is stuck. */
#define CHECK_NS RUEDA_MS(200)

struct rueda_console {
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;       /* of all below */
    void (*changed)(void *arg); /* NULL: there is no reader any more */
    void *arg;
    pthread_cond_t news; /* for the thread */
    pthread_cond_t done; /* for the thread that waits for it */
    char *queue;         /* from at on */
    size_t at;
    size_t len;
    size_t room;
    int64_t moved_ns; /* when the reader took something, or had all */
    bool is_given_up;
    uint64_t left_out; /* bytes, since then */
    bool is_closing;
    int error;
};

static size_t waiting(const struct rueda_console *console)
{
    return console->len - console->at;
}

/* ---- The thread --------------------------------------------------------- */

/* The lock is held, but not while writing: the piece is a copy. */
static void write_some(struct rueda_console *console, char *piece)
{
    size_t len = waiting(console);
    ssize_t written;
    int error;

    if (len > WRITE_BYTES)
        len = WRITE_BYTES;
    memcpy(piece, console->queue + console->at, len);
    pthread_mutex_unlock(&console->lock);
    written = write(console->fd, piece, len);
    error = errno;
    pthread_mutex_lock(&console->lock);
    if (written >= 0) {
        console->at += (size_t)written;
        console->moved_ns = rueda_clock_ns();
    } else if (error == EAGAIN) {
        /* Another process that shares it has made it non-blocking. */
        pthread_mutex_unlock(&console->lock);
        rueda_sleep_ns(RUEDA_MS(1));
        pthread_mutex_lock(&console->lock);
    } else if (error != EINTR) {
        console->error = error;
        console->at = console->len;
    }
    if (console->at == console->len) {
        console->at = 0;
        console->len = 0;
    }
}

/* The thread that writes. It alone may block in write(): a reader that stops
 * reading holds up nothing but this thread. */
static void *write_all(void *arg)
{
    struct rueda_console *console = arg;
    char *piece = malloc(WRITE_BYTES);

    pthread_mutex_lock(&console->lock);
    while (piece != NULL) {
        while (waiting(console) == 0 && !console->is_closing)
            pthread_cond_wait(&console->news, &console->lock);
        if (waiting(console) == 0)
            break;
        write_some(console, piece);
        pthread_cond_broadcast(&console->done);
        if (console->changed != NULL)
            console->changed(console->arg);
    }
    pthread_mutex_unlock(&console->lock);
    free(piece);
    return NULL;
}

/* ---- The loop's side ---------------------------------------------------- */

/* The lock is held. False: no memory. */
static bool append(struct rueda_console *console, const char *bytes, size_t len)
{
    size_t room = console->room;
    char *bigger;

    if (console->at > 0 && console->room - console->len < len) {
        memmove(console->queue, console->queue + console->at, waiting(console));
        console->len -= console->at;
        console->at = 0;
    }
    while (room - console->len < len)
        room = room == 0 ? WRITE_BYTES : room * 2;
    if (room > console->room) {
        bigger = realloc(console->queue, room);
        if (bigger == NULL)
            return false;
        console->queue = bigger;
        console->room = room;
    }
    memcpy(console->queue + console->len, bytes, len);
    console->len += len;
    return true;
}

/* Add bytes to what waits. Once the reader has been given up, what exceeds the
 * room is counted and left out. */
bool rueda_console_put(struct rueda_console *console, const char *bytes,
                       size_t len)
{
    bool is_taken = true;

    pthread_mutex_lock(&console->lock);
    if (waiting(console) == 0)
        console->moved_ns = rueda_clock_ns();
    if (console->error != 0)
        is_taken = false;
    else if ((console->is_given_up && waiting(console) >= RUEDA_CONSOLE_FULL) ||
             !append(console, bytes, len)) {
        console->left_out += len;
        is_taken = false;
    }
    pthread_cond_signal(&console->news);
    pthread_mutex_unlock(&console->lock);
    return is_taken;
}

bool rueda_console_is_full(struct rueda_console *console)
{
    bool is_full;

    pthread_mutex_lock(&console->lock);
    is_full = !console->is_given_up && waiting(console) >= RUEDA_CONSOLE_FULL;
    pthread_mutex_unlock(&console->lock);
    return is_full;
}

/* The lock is held. */
static bool is_stuck(const struct rueda_console *console)
{
    return waiting(console) > 0 &&
           rueda_clock_ns() - console->moved_ns > RUEDA_CONSOLE_PATIENCE_NS;
}

/* Called every now and then: gives up a reader that has taken nothing for a
 * while, and forgives one that reads again. Returns how many bytes were left
 * out in between. */
uint64_t rueda_console_check(struct rueda_console *console)
{
    uint64_t left_out = 0;

    pthread_mutex_lock(&console->lock);
    if (is_stuck(console)) {
        console->is_given_up = true;
    } else if (console->is_given_up &&
               waiting(console) < RUEDA_CONSOLE_FULL / 2) {
        console->is_given_up = false;
        left_out = console->left_out;
        console->left_out = 0;
    }
    pthread_mutex_unlock(&console->lock);
    return left_out;
}

uint64_t rueda_console_last_check(struct rueda_console *console)
{
    uint64_t left_out;

    pthread_mutex_lock(&console->lock);
    left_out = console->left_out;
    console->left_out = 0;
    console->is_given_up = false;
    pthread_mutex_unlock(&console->lock);
    return left_out;
}

int rueda_console_error(struct rueda_console *console)
{
    int error;

    pthread_mutex_lock(&console->lock);
    error = console->error;
    pthread_mutex_unlock(&console->lock);
    return error;
}

/* ---- Life --------------------------------------------------------------- */

/* Start the thread that writes to fd. changed() is called on that thread. */
rueda_status rueda_console_open(int fd, void (*changed)(void *arg), void *arg,
                                struct rueda_console **out)
{
    struct rueda_console *console = calloc(1, sizeof(*console));

    if (console == NULL)
        return RUEDA_ERR_NOMEM;
    console->fd = fd;
    console->changed = changed;
    console->arg = arg;
    pthread_mutex_init(&console->lock, NULL);
    pthread_cond_init(&console->news, NULL);
    rueda_condition_init(&console->done);
    if (rueda_thread_start(&console->thread, write_all, console) != RUEDA_OK) {
        free(console);
        return RUEDA_ERR_LIMIT;
    }
    *out = console;
    return RUEDA_OK;
}

/* Do not wait for a thread that is stuck in write(): it is abandoned together
 * with the memory that it uses. */
int rueda_console_close(struct rueda_console *console)
{
    const int64_t least_ns =
        rueda_clock_ns() - RUEDA_CONSOLE_PATIENCE_NS + LAST_NS;
    bool is_left;
    int error;

    if (console == NULL)
        return 0;
    pthread_mutex_lock(&console->lock);
    console->is_closing = true;
    if (console->moved_ns < least_ns)
        console->moved_ns = least_ns;
    pthread_cond_signal(&console->news);
    while (waiting(console) > 0 && !is_stuck(console))
        rueda_condition_wait(&console->done, &console->lock,
                             rueda_clock_ns() + CHECK_NS);
    is_left = waiting(console) > 0;
    if (is_left)
        console->changed = NULL;
    error = console->error;
    pthread_mutex_unlock(&console->lock);
    if (is_left)
        return error;
    rueda_thread_join(console->thread);
    pthread_mutex_destroy(&console->lock);
    pthread_cond_destroy(&console->news);
    pthread_cond_destroy(&console->done);
    free(console->queue);
    free(console);
    return error;
}
