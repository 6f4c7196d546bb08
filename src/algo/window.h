/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window of requests: a few of a long row of messages are in flight at a
 * time.
 *
 * The messages of a row are numbered 0, 1, 2, ... and are started and ended in
 * that order. An empty message is not sent at all; it takes its number and has
 * ended at once, which works because both ranks know the lengths.
 *
 *      0   1   2   3   4   5   6   7   8   9  ...
 *          ^ ended                 ^ started
 *          |---- in flight, <= 8 --|
 */
#ifndef RUEDA_ALGO_WINDOW_H
#define RUEDA_ALGO_WINDOW_H

#include "algo/algo.h"

#define RUEDA_WINDOW_REQS 8

/*
 * The most bytes of one message of a row that passes through the scratch
 * memory: one for each request. All ranks have to cut alike, so it does not
 * depend on how much scratch memory a rank has. It holds whole elements of
 * every dtype. Behind these there is room for one more, which algorithms use as
 * they like.
 */
#define RUEDA_PIECE_BYTES (RUEDA_SCRATCH_BYTES / (RUEDA_WINDOW_REQS + 1))
#define RUEDA_WINDOW_SPARE(place)                                              \
    ((place)->scratch + RUEDA_WINDOW_REQS * RUEDA_PIECE_BYTES)

struct rueda_window {
    size_t started;
    size_t ended;
    struct rueda_req reqs[RUEDA_WINDOW_REQS];
};

static inline void rueda_window_reset(struct rueda_window *window)
{
    window->started = 0;
    window->ended = 0;
}

static inline bool rueda_window_is_full(const struct rueda_window *window)
{
    return window->started - window->ended == RUEDA_WINDOW_REQS;
}

/* Start the next message of the row, towards or from peer; the window is not
 * full. A failure shows when the message is asked for. */
void rueda_window_send(struct rueda_window *window, struct rueda_task *task,
                       int peer, const void *buf, size_t bytes);
void rueda_window_recv(struct rueda_window *window, struct rueda_task *task,
                       int peer, void *buf, size_t bytes);

/*
 * How the oldest message in flight stands: RUEDA_OK means that it has ended
 * well, is counted in window->ended and no longer in flight. Without any in
 * flight: RUEDA_IN_PROGRESS.
 */
rueda_status rueda_window_next(struct rueda_window *window);

/* End all that can be: RUEDA_OK if none is in flight afterwards. */
rueda_status rueda_window_drain(struct rueda_window *window);

#endif /* RUEDA_ALGO_WINDOW_H */
