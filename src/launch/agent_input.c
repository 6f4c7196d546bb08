/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's standard input, on its way to rank 0 of another host. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "launch/agent_state.h"
#include "os/event.h"

static void on_writable(uv_poll_t *poll, int status, int events);

/* Make the pipe that becomes the standard input of rank 0. Our end does not
 * block, so a rank that does not read holds up no other work. */
bool rueda_feed_open(struct rueda_agent *agent, int *out_theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    if (!rueda_feed_open_to(agent, ends[1])) {
        close(ends[0]);
        return false;
    }
    *out_theirs = ends[0];
    return true;
}

bool rueda_feed_open_to(struct rueda_agent *agent, int fd)
{
    struct rueda_feed *feed = &agent->feed;

    if (fd < 0 || uv_poll_init(&agent->loop, &feed->poll, fd) != 0) {
        rueda_fd_close(fd);
        return false;
    }
    feed->poll.data = agent;
    feed->fd = fd;
    return true;
}

void rueda_feed_close(struct rueda_agent *agent)
{
    struct rueda_feed *feed = &agent->feed;

    if (feed->fd >= 0) {
        uv_close((uv_handle_t *)&feed->poll, NULL);
        close(feed->fd);
        feed->fd = -1;
    }
    rueda_buffer_fini(&feed->bytes);
}

static void say_taken(struct rueda_agent *agent, size_t count)
{
    struct rueda_packer packer;

    if (count == 0)
        return;
    rueda_packer_begin(&packer, RUEDA_FRAME_TAKEN);
    rueda_frame_pack_number(&packer, (uint32_t)count);
    rueda_link_send(&agent->link, &packer);
}

/* Write what the pipe takes. A rank that has closed its end gets no more, and
 * the launcher is asked for no more. */
static void flush(struct rueda_agent *agent)
{
    struct rueda_feed *feed = &agent->feed;
    size_t taken = 0;

    while (rueda_buffer_len(&feed->bytes) > 0) {
        const ssize_t put = write(feed->fd, rueda_buffer_front(&feed->bytes),
                                  rueda_buffer_len(&feed->bytes));

        if (put >= 0) {
            rueda_buffer_drop(&feed->bytes, (size_t)put);
            taken += (size_t)put;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            rueda_feed_close(agent);
            return;
        }
    }
    if (rueda_buffer_len(&feed->bytes) > 0)
        uv_poll_start(&feed->poll, UV_WRITABLE, on_writable);
    else if (feed->is_ended)
        rueda_feed_close(agent);
    else
        uv_poll_stop(&feed->poll);
    say_taken(agent, taken);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    struct rueda_agent *agent = poll->data;

    (void)status;
    (void)events;
    if (agent->feed.fd >= 0)
        flush(agent);
}

/* Take input from the launcher; no bytes mean its end. The launcher never sends
 * more than fits the window, so more than that ends the feed. */
void rueda_feed_add(struct rueda_agent *agent, const void *bytes, size_t len)
{
    struct rueda_feed *feed = &agent->feed;

    if (feed->fd < 0)
        return;
    /* A launcher keeps to the window. */
    if (len > RUEDA_INPUT_WINDOW - rueda_buffer_len(&feed->bytes) ||
        !rueda_buffer_add(&feed->bytes, bytes, len)) {
        rueda_feed_close(agent);
        return;
    }
    feed->is_ended = feed->is_ended || len == 0;
    flush(agent);
}
