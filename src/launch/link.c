/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1 << 16)

/* What a shell may say before the mark. */
#define MOST_NOISE ((size_t)1 << 18)

static void on_poll(uv_poll_t *poll, int status, int events);

/* ---- Interest ----------------------------------------------------------- */

static bool is_one(const struct rueda_link *link)
{
    return link->in == link->out;
}

/* Poll for what we want to know. */
static void watch(struct rueda_link *link)
{
    const bool has_queue = link->queue_len > link->queue_at && !link->is_lost;
    int events = link->is_paused ? 0 : UV_READABLE;

    if (link->in < 0)
        return;
    if (is_one(link) && has_queue)
        events |= UV_WRITABLE;
    uv_poll_start(&link->in_poll, events, on_poll);
    if (is_one(link))
        return;
    if (has_queue)
        uv_poll_start(&link->out_poll, UV_WRITABLE, on_poll);
    else
        uv_poll_stop(&link->out_poll);
}

static void end(struct rueda_link *link, const char *why)
{
    if (link->in < 0)
        return;
    rueda_link_close(link);
    link->calls->end(link, why);
}

/* ---- Sending ------------------------------------------------------------ */

static void flush(struct rueda_link *link)
{
    const size_t before = rueda_link_queued(link);
    size_t after;

    while (!link->is_lost && link->queue_at < link->queue_len) {
        ssize_t sent = write(link->out, link->queue + link->queue_at,
                             link->queue_len - link->queue_at);

        if (sent >= 0)
            link->queue_at += (size_t)sent;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            link->is_lost = true;
    }
    if (link->is_lost || link->queue_at == link->queue_len) {
        link->queue_at = 0;
        link->queue_len = 0;
    }
    after = rueda_link_queued(link);
    if (link->calls->drained != NULL && before > 0 &&
        (after == 0 ||
         (before >= RUEDA_LINK_FULL / 2 && after < RUEDA_LINK_FULL / 2)))
        link->calls->drained(link);
}

static bool enqueue(struct rueda_link *link, const void *bytes, size_t len)
{
    size_t room = link->queue_room;
    unsigned char *bigger;

    if (link->queue_at > 0) {
        memmove(link->queue, link->queue + link->queue_at,
                link->queue_len - link->queue_at);
        link->queue_len -= link->queue_at;
        link->queue_at = 0;
    }
    while (room - link->queue_len < len)
        room = room == 0 ? READ_BYTES : room * 2;
    if (room > link->queue_room) {
        bigger = realloc(link->queue, room);
        if (bigger == NULL)
            return false;
        link->queue = bigger;
        link->queue_room = room;
    }
    memcpy(link->queue + link->queue_len, bytes, len);
    link->queue_len += len;
    return true;
}

void rueda_link_send(struct rueda_link *link, struct rueda_packer *packer)
{
    rueda_packer_end(packer);
    if (link->in >= 0 && !link->is_lost &&
        (packer->is_short || !enqueue(link, packer->bytes, packer->len)))
        link->is_lost = true; /* half a conversation is none */
    rueda_packer_fini(packer);
    if (link->in < 0)
        return;
    flush(link);
    watch(link);
}

size_t rueda_link_queued(const struct rueda_link *link)
{
    return link->queue_len - link->queue_at;
}

/* ---- Receiving ---------------------------------------------------------- */

static void drop(struct rueda_link *link, size_t bytes)
{
    memmove(link->got, link->got + bytes, link->got_len - bytes);
    link->got_len -= bytes;
}

/* Has the stream begun? */
static bool is_past_mark(struct rueda_link *link)
{
    const unsigned char *found;
    size_t len;

    if (link->mark == NULL)
        return true;
    len = strlen(link->mark);
    found = memmem(link->got, link->got_len, link->mark, len);
    if (found == NULL)
        return false;
    drop(link, (size_t)(found - link->got) + len);
    link->mark = NULL;
    return true;
}

/* Deliver what is whole. False: the link has ended meanwhile. */
static bool deliver(struct rueda_link *link)
{
    size_t at = 0;

    if (!is_past_mark(link)) {
        if (link->got_len < MOST_NOISE)
            return true;
        end(link, "it does not speak like an agent");
        return false;
    }
    for (;;) {
        struct rueda_frame frame;
        size_t bytes;
        rueda_status status = rueda_frame_next(
            link->got + at, link->got_len - at, &frame, &bytes);

        if (status == RUEDA_IN_PROGRESS)
            break;
        if (status != RUEDA_OK) {
            end(link, "it does not speak like an agent");
            return false;
        }
        link->calls->frame(link, &frame);
        if (link->in < 0)
            return false;
        at += bytes;
    }
    drop(link, at);
    return true;
}

static bool make_room(struct rueda_link *link)
{
    size_t room = link->got_room;
    unsigned char *bigger;

    while (room - link->got_len < READ_BYTES)
        room = room == 0 ? 2 * READ_BYTES : room * 2;
    if (room == link->got_room)
        return true;
    bigger = realloc(link->got, room);
    if (bigger == NULL)
        return false;
    link->got = bigger;
    link->got_room = room;
    return true;
}

static void receive(struct rueda_link *link)
{
    ssize_t got;

    if (!make_room(link)) {
        end(link, "no memory");
        return;
    }
    got = read(link->in, link->got + link->got_len, READ_BYTES);
    if (got > 0) {
        link->got_len += (size_t)got;
        deliver(link);
        return;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    end(link, got == 0 ? "the connection was closed" : strerror(errno));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct rueda_link *link = poll->data;

    if (link->in < 0)
        return;
    if (status == 0 && (events & UV_WRITABLE) != 0)
        flush(link);
    if (status != 0 || (events & UV_READABLE) != 0)
        receive(link);
    watch(link);
}

/* ---- Life --------------------------------------------------------------- */

static void be_non_blocking(int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

rueda_status rueda_link_open(struct rueda_link *link, uv_loop_t *loop, int in,
                             int out, const char *mark,
                             const struct rueda_link_calls *calls, void *owner)
{
    *link = (struct rueda_link){
        .calls = calls, .owner = owner, .in = in, .out = out, .mark = mark};
    be_non_blocking(in);
    be_non_blocking(out);
    if (uv_poll_init(loop, &link->in_poll, in) != 0) {
        link->in = -1;
        return RUEDA_ERR_IO;
    }
    link->in_poll.data = link;
    if (in != out) {
        if (uv_poll_init(loop, &link->out_poll, out) != 0) {
            link->in = -1;
            uv_close((uv_handle_t *)&link->in_poll, NULL);
            return RUEDA_ERR_IO;
        }
        link->out_poll.data = link;
    }
    watch(link);
    return RUEDA_OK;
}

void rueda_link_pause(struct rueda_link *link, bool is_paused)
{
    if (link->in < 0 || link->is_paused == is_paused)
        return;
    link->is_paused = is_paused;
    watch(link);
}

const char *rueda_link_noise(const struct rueda_link *link, size_t *out_len)
{
    *out_len = link->mark != NULL ? link->got_len : 0;
    return (const char *)link->got;
}

void rueda_link_close(struct rueda_link *link)
{
    if (link->in < 0)
        return;
    uv_close((uv_handle_t *)&link->in_poll, NULL);
    if (!is_one(link)) {
        uv_close((uv_handle_t *)&link->out_poll, NULL);
        close(link->out);
    }
    close(link->in);
    link->in = -1;
    link->queue_at = 0;
    link->queue_len = 0;
}

void rueda_link_fini(struct rueda_link *link)
{
    free(link->got);
    free(link->queue);
    link->got = NULL;
    link->queue = NULL;
}
