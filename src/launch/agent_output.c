/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks print, on its way from their pipes to the launcher. */
#include <errno.h>
#include <unistd.h>

#include "launch/agent_state.h"

#define READ_BYTES ((size_t)1 << 16)

typedef enum outlet_progress {
    MORE,    /* something was read */
    NOTHING, /* there is nothing now */
    CLOSED,
} outlet_progress;

static void close_outlet(struct rueda_outlet *outlet)
{
    if (outlet->fd < 0)
        return;
    uv_close((uv_handle_t *)&outlet->poll, NULL);
    close(outlet->fd);
    outlet->fd = -1;
}

/* Read what a rank has printed, once, and send it to the launcher as it is;
 * lines are put together there. */
static outlet_progress read_some(struct rueda_outlet *outlet)
{
    static unsigned char bytes[READ_BYTES]; /* the agent has one thread */
    struct rueda_agent *agent = outlet->worker->agent;
    struct rueda_packer packer;
    ssize_t got;

    do
        got = read(outlet->fd, bytes, sizeof(bytes));
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return NOTHING;
    if (got <= 0) {
        close_outlet(outlet);
        return CLOSED;
    }
    rueda_packer_begin(&packer, RUEDA_FRAME_OUTPUT);
    rueda_frame_pack_number(&packer, (uint32_t)outlet->worker->rank);
    rueda_frame_pack_number(&packer, (uint32_t)outlet->stream);
    rueda_frame_pack_bytes(&packer, bytes, (size_t)got);
    rueda_link_send(&agent->link, &packer);
    return MORE;
}

/* A launcher that is gone takes everything: what is printed then is lost. */
static bool is_full(struct rueda_agent *agent)
{
    return rueda_link_queued(&agent->link) >= RUEDA_LINK_FULL;
}

/* All workers wait for the launcher. */
static void pause_all(struct rueda_agent *agent)
{
    if (agent->is_full)
        return;
    agent->is_full = true;
    for (int i = 0; i < agent->worker_count; i++)
        rueda_outlets_watch(agent->workers[i], false);
}

/* Send what is left in the pipes of a rank that has ended. False: the link is
 * full; the rest comes when it has drained. */
bool rueda_outlets_drain(struct rueda_worker *worker)
{
    for (int i = 0; i < 2; i++) {
        struct rueda_outlet *outlet = &worker->outlets[i];

        while (outlet->fd >= 0 && read_some(outlet) == MORE) {
            if (!is_full(worker->agent))
                continue;
            pause_all(worker->agent);
            return false;
        }
    }
    return true;
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    struct rueda_outlet *outlet = poll->data;

    (void)status;
    (void)events;
    if (outlet->fd < 0)
        return;
    if (read_some(outlet) != MORE)
        rueda_agent_check(outlet->worker);
    else if (is_full(outlet->worker->agent))
        pause_all(outlet->worker->agent);
}

void rueda_outlets_watch(struct rueda_worker *worker, bool is_wanted)
{
    for (int i = 0; i < 2; i++) {
        struct rueda_outlet *outlet = &worker->outlets[i];

        if (outlet->fd < 0)
            continue;
        if (is_wanted)
            uv_poll_start(&outlet->poll, UV_READABLE, on_output);
        else
            uv_poll_stop(&outlet->poll);
    }
}

void rueda_outlets_close(struct rueda_worker *worker)
{
    for (int i = 0; i < 2; i++)
        close_outlet(&worker->outlets[i]);
}
