/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/speed.h"

#include "base/duration.h"
#include "transport/tcp/frame.h"

#define MOMENT_NS RUEDA_MS(1)
#define QUEUE     4 /* moments' worth may wait in a socket */

/* A shorter time shows bursts, not speed. After this long without a useful
 * sample the stream may have become faster. */
#define CHECK_NS  (4 * MOMENT_NS)
#define FORGET_NS (50 * MOMENT_NS)
#define FASTEST   ((size_t)1 << 30)

/* Slower than this in a moment makes no difference. */
#define SHORTEST_BYTES ((size_t)4 << 10)

size_t rueda_tcp_speed_piece(const struct rueda_tcp_speed *speed)
{
    if (speed->moment == 0 || speed->moment > RUEDA_TCP_PIECE_BYTES)
        return RUEDA_TCP_PIECE_BYTES;
    return speed->moment;
}

bool rueda_tcp_speed_has_room(const struct rueda_tcp_speed *speed,
                              size_t unsent)
{
    return unsent <=
           (speed->moment == 0 ? RUEDA_TCP_PIECE_BYTES : QUEUE * speed->moment);
}

static void forget(struct rueda_tcp_speed *speed, int64_t now_ns)
{
    if (now_ns - speed->seen_ns < FORGET_NS || speed->moment > FASTEST)
        return;
    speed->moment += speed->moment / 4;
    speed->seen_ns = now_ns;
}

/* Upwards at once: it can do that. Downwards slowly: it may have been empty
 * for a while between two looks. */
static void note(struct rueda_tcp_speed *speed, size_t seen)
{
    if (seen < speed->moment)
        seen = (3 * speed->moment + seen) / 4;
    speed->moment = seen > SHORTEST_BYTES ? seen : SHORTEST_BYTES;
}

void rueda_tcp_speed_sample(struct rueda_tcp_speed *speed, uint64_t written,
                            size_t unsent, int64_t now_ns)
{
    uint64_t left = written - unsent;
    int64_t took = now_ns - speed->busy_ns;

    forget(speed, now_ns);
    if (unsent == 0) {
        speed->busy_ns = 0;
        return;
    }
    if (speed->busy_ns != 0 && took < CHECK_NS)
        return;
    if (speed->busy_ns != 0) {
        note(speed,
             (size_t)((left - speed->left) * MOMENT_NS / (uint64_t)took));
        speed->seen_ns = now_ns;
    }
    speed->busy_ns = now_ns;
    speed->left = left;
}
