/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/window.h"

static struct rueda_req *start(struct rueda_window *window,
                               struct rueda_task *task)
{
    struct rueda_req *req = &window->reqs[window->started % RUEDA_WINDOW_REQS];

    window->started++;
    task->moves++;
    req->status = RUEDA_OK;
    return req;
}

void rueda_window_send(struct rueda_window *window, struct rueda_task *task,
                       int peer, const void *buf, size_t bytes)
{
    struct rueda_req *req = start(window, task);

    if (bytes > 0)
        rueda_mesh_send(task->place->mesh, peer, task->tag, buf, bytes, req);
}

void rueda_window_recv(struct rueda_window *window, struct rueda_task *task,
                       int peer, void *buf, size_t bytes)
{
    struct rueda_req *req = start(window, task);

    if (bytes > 0)
        rueda_mesh_recv(task->place->mesh, peer, task->tag, buf, bytes, req);
}

rueda_status rueda_window_next(struct rueda_window *window)
{
    rueda_status status;

    if (window->ended == window->started)
        return RUEDA_IN_PROGRESS;
    status = window->reqs[window->ended % RUEDA_WINDOW_REQS].status;
    if (status == RUEDA_OK)
        window->ended++;
    return status;
}

rueda_status rueda_window_drain(struct rueda_window *window)
{
    while (window->ended < window->started) {
        const rueda_status status = rueda_window_next(window);

        if (status != RUEDA_OK)
            return status;
    }
    return RUEDA_OK;
}
