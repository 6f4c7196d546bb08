/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "conformance/conformance.h"
#include "os/clock.h"
#include "transport/tcp/ep.h"
#include "transport/tcp/tcp.h"

/* Two ranks of one process, over loopback. */
struct wire {
    struct rueda_key key;
    struct rueda_tcp_hub *hubs[2];
    int streams;
};

static int count_streams(struct rueda_ep *ep)
{
    return ((struct rueda_tcp_ep *)ep)->stream_count;
}

/* Progress on both ends until all streams are up. */
static void connect_all(struct pair *pair, int streams)
{
    int64_t until = rueda_clock_ns() + (int64_t)10 * 1000000000;

    while (count_streams(pair->a) < streams ||
           count_streams(pair->b) < streams) {
        assert_true(rueda_clock_ns() < until);
        assert_true(rueda_ep_progress(pair->a) >= 0);
        assert_true(rueda_ep_progress(pair->b) >= 0);
    }
}

static void open_wire(struct pair *pair, const char *host, int streams)
{
    struct wire *wire = calloc(1, sizeof(*wire));
    struct rueda_text error = {{0}};
    struct rueda_address any;

    assert_non_null(wire);
    assert_int_equal(rueda_key_create(&wire->key), RUEDA_OK);
    assert_int_equal(rueda_address_find(host, &any, 1, &error), 1);
    for (int rank = 0; rank < 2; rank++) {
        const struct rueda_tcp_args args = {.rank = rank,
                                            .size = 2,
                                            .key = &wire->key,
                                            .addresses = &any,
                                            .address_count = 1,
                                            .streams = streams};

        assert_int_equal(rueda_tcp_hub_open(&args, &wire->hubs[rank], &error),
                         RUEDA_OK);
    }
    for (int rank = 0; rank < 2; rank++) {
        int count;
        const struct rueda_address *at =
            rueda_tcp_hub_addresses(wire->hubs[1 - rank], &count);

        assert_int_equal(
            rueda_tcp_hub_locate(wire->hubs[rank], 1 - rank, at, count),
            RUEDA_OK);
    }
    assert_int_equal(rueda_tcp_ep_open(wire->hubs[0], 1, &pair->a), RUEDA_OK);
    assert_int_equal(rueda_tcp_ep_open(wire->hubs[1], 0, &pair->b), RUEDA_OK);
    wire->streams = streams;
    pair->owner = wire;
    connect_all(pair, streams);
}

static void open_one(struct pair *pair)
{
    open_wire(pair, "127.0.0.1:0", 1);
}

static void open_four(struct pair *pair)
{
    open_wire(pair, "[::1]:0", 4);
}

static void close_wire(struct pair *pair)
{
    struct wire *wire = pair->owner;

    if (pair->a != NULL)
        rueda_ep_close(pair->a);
    if (pair->b != NULL)
        rueda_ep_close(pair->b);
    for (int i = 0; i < 2; i++)
        rueda_tcp_hub_close(wire->hubs[i]);
    free(wire);
}

/* As the system does when a process dies. */
static void vanish_wire(struct pair *pair)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)pair->b;

    for (int i = 0; i < ep->stream_count; i++) {
        close(ep->streams[i].fd);
        ep->streams[i].fd = -1;
    }
    ep->stream_count = 0;
}

static const struct fixture one_stream = {
    .name = "tcp, one stream",
    .open = open_one,
    .close = close_wire,
    .vanish = vanish_wire,
};

static const struct fixture four_streams = {
    .name = "tcp, four streams",
    .open = open_four,
    .close = close_wire,
    .vanish = vanish_wire,
};

int main(void)
{
    return conformance_run(&one_stream) + conformance_run(&four_streams);
}
