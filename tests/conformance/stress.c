/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both sides send and receive windows of four messages. Two of the four have
 * the same tag, and the receiver asks for the tags in an order of its own. What
 * message i of a side looks like is a function of side and i, so that the other
 * side knows what to expect.
 */
#include <sched.h>
#include <stdlib.h>

#include "conformance/conformance.h"

#define WINDOW      4
#define FLIGHT      16 /* messages in flight each way, a few windows */
#define MOST_BYTES  ((size_t)300 << 10)
#define DEADLINE_NS ((int64_t)40 * 1000 * 1000 * 1000)
/* A thread that is woken never sleeps this long. */
#define NAP_NS ((int64_t)5 * 1000 * 1000 * 1000)

struct message {
    struct rueda_req req;
    uint64_t seed;
    unsigned char *buf;
};

struct end {
    const struct stress *stress;
    uint64_t random; /* the order of receives */
    struct message sends[FLIGHT];
    struct message recvs[FLIGHT];
    int sends_begun;
    int sends_ended;
    int recvs_begun;
    int recvs_ended;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* Most are short, some longer than any buffer on the way, some of a length that
 * fills it exactly. */
static size_t length_of(uint64_t seed)
{
    uint64_t bits = mix(seed);

    switch (bits % 16) {
    case 0:
        return (bits >> 8) % MOST_BYTES;
    case 1:
        return (bits >> 8) % (MOST_BYTES >> 14) << 14;
    case 2:
    case 3:
        return (bits >> 8) % 20000;
    default:
        return (bits >> 8) % 120;
    }
}

static uint64_t seed_of(int side, int index)
{
    return (uint64_t)index * 2 + (uint64_t)side;
}

/* Tags of a window: t, t, t + 1, t + 2. */
static struct rueda_tag tag_at(int index)
{
    int place = index % WINDOW;

    return tag_of((uint64_t)(index / WINDOW) * 3 +
                  (uint64_t)(place > 0 ? place - 1 : 0));
}

static void begin_send(struct end *end)
{
    int index = end->sends_begun++;
    struct message *message = &end->sends[index % FLIGHT];

    message->seed = seed_of(end->stress->side, index);
    fill(message->buf, length_of(message->seed), message->seed);
    rueda_ep_send(end->stress->ep, tag_at(index), message->buf,
                  length_of(message->seed), &message->req);
}

static void begin_recv(struct end *end, int index)
{
    struct message *message = &end->recvs[index % FLIGHT];

    message->seed = seed_of(!end->stress->side, index);
    rueda_ep_recv(end->stress->ep, tag_at(index), message->buf,
                  length_of(message->seed), &message->req);
}

/* The four receives of a window, in any order that keeps equal tags in
 * theirs. */
static void begin_recvs(struct end *end)
{
    static const int orders[][WINDOW] = {
        {0, 1, 2, 3}, {3, 2, 0, 1}, {2, 0, 3, 1}, {0, 3, 1, 2}, {3, 0, 1, 2},
    };
    const int *order;

    end->random = mix(end->random + 1);
    order = orders[end->random % 5];
    for (int i = 0; i < WINDOW; i++)
        begin_recv(end, end->recvs_begun + order[i]);
    end->recvs_begun += WINDOW;
}

/* Begins what there is place for. Returns whether there was any. */
static bool begin(struct end *end)
{
    int count = end->stress->windows * WINDOW;
    bool any = false;

    while (end->sends_begun < count &&
           end->sends_begun - end->sends_ended < FLIGHT) {
        begin_send(end);
        any = true;
    }
    while (end->recvs_begun < count &&
           end->recvs_begun - end->recvs_ended <= FLIGHT - WINDOW) {
        begin_recvs(end);
        any = true;
    }
    return any;
}

/* Checks what has ended. */
static rueda_status check(struct end *end)
{
    while (end->sends_ended < end->sends_begun) {
        struct message *message = &end->sends[end->sends_ended % FLIGHT];

        if (message->req.status == RUEDA_IN_PROGRESS)
            break;
        if (message->req.status != RUEDA_OK)
            return message->req.status;
        end->sends_ended++;
    }
    while (end->recvs_ended < end->recvs_begun) {
        struct message *message = &end->recvs[end->recvs_ended % FLIGHT];

        if (message->req.status == RUEDA_IN_PROGRESS)
            break;
        if (message->req.status != RUEDA_OK)
            return message->req.status;
        if (!is_filled(message->buf, length_of(message->seed), message->seed))
            return RUEDA_ERR_MISMATCH;
        end->recvs_ended++;
    }
    return RUEDA_OK;
}

/* Waits for news, in the way of an engine that has nothing to do. */
static rueda_status idle(const struct stress *stress)
{
    rueda_status status;
    int64_t start;

    if (stress->segment == NULL) {
        sched_yield();
        return RUEDA_OK;
    }
    rueda_segment_arm(stress->segment);
    status = rueda_ep_progress(stress->ep);
    if (status != RUEDA_IN_PROGRESS) {
        rueda_segment_disarm(stress->segment);
        return status;
    }
    start = now_ns();
    rueda_segment_wait(stress->segment, NAP_NS);
    return now_ns() - start < NAP_NS * 9 / 10 ? RUEDA_OK : RUEDA_ERR_TIMEOUT;
}

static rueda_status talk(struct end *end)
{
    const struct stress *stress = end->stress;
    int64_t deadline = now_ns() + DEADLINE_NS;
    int count = stress->windows * WINDOW;

    while (end->sends_ended < count || end->recvs_ended < count) {
        bool has_moved = begin(end);
        rueda_status status = rueda_ep_progress(stress->ep);

        if (status == RUEDA_OK)
            has_moved = true;
        if (status >= 0)
            status = check(end);
        if (status == RUEDA_OK && !has_moved)
            status = idle(stress);
        if (status < 0)
            return status;
        if (now_ns() > deadline)
            return RUEDA_ERR_TIMEOUT;
    }
    return RUEDA_OK;
}

rueda_status stress_run(const struct stress *stress)
{
    struct end *end = calloc(1, sizeof(*end));
    unsigned char *bytes = malloc(MOST_BYTES * 2 * FLIGHT);
    rueda_status status = RUEDA_ERR_NOMEM;

    if (end != NULL && bytes != NULL) {
        end->stress = stress;
        end->random = (uint64_t)stress->side;
        for (size_t i = 0; i < FLIGHT; i++) {
            end->sends[i].buf = bytes + 2 * i * MOST_BYTES;
            end->recvs[i].buf = bytes + (2 * i + 1) * MOST_BYTES;
        }
        status = talk(end);
        rueda_ep_cancel(stress->ep, RUEDA_ERR_CANCELLED);
    }
    free(bytes);
    free(end);
    return status;
}
