/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between launcher and agent over libuv streams: read, check, decrypt
 * and deliver them one by one, and write with a queue.
 */
#include "launch/link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "os/tcp.h"

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
    const bool has_queue = rueda_link_queued(link) > 0 && !link->is_lost;
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
    link->ops->end(link, why);
}

/* ---- Sending ------------------------------------------------------------ */

/* Write what waits, as far as the connection takes it. */
static void flush(struct rueda_link *link)
{
    const size_t before = rueda_link_queued(link);
    size_t after;

    while (!link->is_lost && rueda_link_queued(link) > 0) {
        ssize_t sent = write(link->out, rueda_buffer_front(&link->queue),
                             rueda_link_queued(link));

        if (sent >= 0)
            rueda_buffer_drop(&link->queue, (size_t)sent);
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            link->is_lost = true;
    }
    if (link->is_lost)
        rueda_buffer_drop(&link->queue, rueda_link_queued(link));
    after = rueda_link_queued(link);
    if (link->ops->drained != NULL && before > 0 &&
        (after == 0 ||
         (before >= RUEDA_LINK_FULL / 2 && after < RUEDA_LINK_FULL / 2)))
        link->ops->drained(link);
}

static bool enqueue(struct rueda_link *link, const unsigned char *bytes,
                    size_t len)
{
    if (link->is_sealed)
        return rueda_sealed_stream_close(&link->sealed_stream, bytes, len,
                                         &link->queue);
    return rueda_buffer_add(&link->queue, bytes, len);
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
    return rueda_buffer_len(&link->queue);
}

/* ---- Receiving ---------------------------------------------------------- */

/* Has the stream begun? */
static bool is_past_mark(struct rueda_link *link)
{
    const unsigned char *front = rueda_buffer_front(&link->got);
    const unsigned char *found;
    size_t len;

    if (link->mark == NULL)
        return true;
    len = strlen(link->mark);
    found = memmem(front, rueda_buffer_len(&link->got), link->mark, len);
    if (found == NULL)
        return false;
    rueda_buffer_drop(&link->got, (size_t)(found - front) + len);
    link->mark = NULL;
    return true;
}

/* Deliver what is whole, unless the link ends meanwhile. */
static void deliver(struct rueda_link *link)
{
    rueda_status status = RUEDA_OK;

    if (!is_past_mark(link)) {
        if (rueda_buffer_len(&link->got) >= MOST_NOISE)
            end(link, "it does not speak like an agent");
        return;
    }
    while (link->in >= 0 && status == RUEDA_OK) {
        struct rueda_frame frame;
        size_t bytes;

        status = rueda_frame_next(rueda_buffer_front(&link->got),
                                  rueda_buffer_len(&link->got), &frame, &bytes);
        if (status == RUEDA_OK) {
            link->ops->frame(link, &frame);
            rueda_buffer_drop(&link->got, bytes);
        }
    }
    if (status < 0)
        end(link, "it does not speak like an agent");
}

/* Read once, open what is sealed, and hand over the frames that are complete.
 */
static void receive(struct rueda_link *link)
{
    struct rueda_buffer *into = link->is_sealed ? &link->sealed : &link->got;
    unsigned char *place = rueda_buffer_reserve(into, READ_BYTES);
    ssize_t got;

    if (place == NULL) {
        end(link, "no memory");
        return;
    }
    got = read(link->in, place, READ_BYTES);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        end(link, got == 0 ? "the connection was closed" : strerror(errno));
        return;
    }
    rueda_buffer_added(into, (size_t)got);
    if (link->is_sealed && !rueda_sealed_stream_open(&link->sealed_stream,
                                                     &link->sealed, &link->got))
        end(link, "its data were changed on the way");
    else
        deliver(link);
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

/* Take over a connection; in and out may be the same descriptor. The ops are
 * made by the loop. */
rueda_status rueda_link_open(struct rueda_link *link, uv_loop_t *loop, int in,
                             int out, const char *mark,
                             const struct rueda_link_ops *ops, void *owner)
{
    *link = (struct rueda_link){
        .ops = ops, .owner = owner, .in = in, .out = out, .mark = mark};
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

rueda_status rueda_link_seal(struct rueda_link *link,
                             const struct rueda_key *session,
                             rueda_handshake_role role)
{
    link->is_sealed = true;
    return rueda_sealed_stream_init(&link->sealed_stream, session, role);
}

void rueda_link_pause(struct rueda_link *link, bool is_paused)
{
    if (link->in < 0 || link->is_paused == is_paused)
        return;
    link->is_paused = is_paused;
    watch(link);
}

void rueda_link_check(struct rueda_link *link)
{
    uint64_t taken;
    bool is_waiting;

    if (link->in >= 0 && rueda_socket_flow(link->out, &taken, &is_waiting) &&
        is_waiting && rueda_socket_heard_ms(link->out) > RUEDA_AGENT_SILENCE_MS)
        end(link, "its host does not answer any more");
}

const char *rueda_link_noise(const struct rueda_link *link, size_t *out_len)
{
    *out_len = link->mark != NULL ? rueda_buffer_len(&link->got) : 0;
    return (const char *)link->got.bytes + link->got.at;
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
    rueda_buffer_drop(&link->queue, rueda_link_queued(link));
}

void rueda_link_fini(struct rueda_link *link)
{
    rueda_buffer_fini(&link->got);
    rueda_buffer_fini(&link->queue);
    rueda_buffer_fini(&link->sealed);
    rueda_sealed_stream_fini(&link->sealed_stream);
}
