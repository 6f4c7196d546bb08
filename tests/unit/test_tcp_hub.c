/* SPDX-License-Identifier: Apache-2.0 */
/* Pulses between hubs of one process, which stand for hosts; and credit. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "os/clock.h"
#include "transport/tcp/hub.h"
#include "unit/unit.h"

#define RANKS   3
#define WAIT_NS ((int64_t)10000000000)

struct net {
    struct rueda_key key;
    struct rueda_tcp_hub *hubs[RANKS];
    struct rueda_ep *eps[RANKS][RANKS];
};

static void hush(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void locate(struct net *net, int of, int rank, const int *hosts)
{
    const struct rueda_address *at;
    int count;

    at = rueda_tcp_hub_addresses(net->hubs[rank], &count);
    assert_int_equal(
        rueda_tcp_hub_locate(net->hubs[of], rank, hosts[rank], at, count),
        RUEDA_OK);
}

static void open_net(struct net *net, const int *hosts)
{
    struct rueda_text error = {{0}};
    struct rueda_address any;

    assert_int_equal(rueda_key_create(&net->key), RUEDA_OK);
    assert_int_equal(rueda_address_find("127.0.0.1:0", &any, 1, &error), 1);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rueda_tcp_args args = {.rank = rank,
                                            .size = RANKS,
                                            .key = &net->key,
                                            .addresses = &any,
                                            .address_count = 1,
                                            .streams = 1};

        assert_int_equal(rueda_tcp_hub_open(&args, &net->hubs[rank], &error),
                         RUEDA_OK);
    }
    for (int of = 0; of < RANKS; of++)
        for (int rank = 0; rank < RANKS; rank++)
            locate(net, of, rank, hosts);
}

static void join(struct net *net, int a, int b)
{
    assert_int_equal(rueda_tcp_ep_open(net->hubs[a], b, &net->eps[a][b]),
                     RUEDA_OK);
    assert_int_equal(rueda_tcp_ep_open(net->hubs[b], a, &net->eps[b][a]),
                     RUEDA_OK);
}

/* One turn of everybody who is there. */
static void turn(struct net *net)
{
    for (int a = 0; a < RANKS; a++) {
        if (net->hubs[a] != NULL)
            rueda_tcp_hub_tend(net->hubs[a]);
        for (int b = 0; b < RANKS; b++)
            if (net->eps[a][b] != NULL)
                rueda_ep_progress(net->eps[a][b]);
    }
}

static bool is_proven(const struct rueda_tcp_hub *hub, int host)
{
    const struct rueda_tcp_pulse *pulse = &hub->pulses[host];

    return pulse->theirs > 0 || (pulse->fd >= 0 && pulse->shake == NULL);
}

/* Until a has a pulse for that host, in good order. */
static void await_pulse(struct net *net, int a, int host)
{
    int64_t until = rueda_clock_ns() + WAIT_NS;

    while (!is_proven(net->hubs[a], host)) {
        assert_true(rueda_clock_ns() < until);
        turn(net);
    }
}

static void drop_rank(struct net *net, int rank)
{
    for (int b = 0; b < RANKS; b++)
        if (net->eps[rank][b] != NULL)
            rueda_ep_close(net->eps[rank][b]);
    memset(net->eps[rank], 0, sizeof(net->eps[rank]));
    rueda_tcp_hub_close(net->hubs[rank]);
    net->hubs[rank] = NULL;
}

static void close_net(struct net *net)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (net->hubs[rank] != NULL)
            drop_rank(net, rank);
}

static void an_endpoint_brings_a_pulse_with_the_host(void **state)
{
    static const int hosts[RANKS] = {0, 1, 1};
    struct net net = {.hubs = {NULL}};

    (void)state;
    open_net(&net, hosts);
    assert_false(is_proven(net.hubs[0], 1));
    join(&net, 0, 1);
    await_pulse(&net, 0, 1);
    await_pulse(&net, 1, 0);
    /* Ranks 1 and 2 are on one host. */
    join(&net, 1, 2);
    for (int i = 0; i < 100; i++)
        turn(&net);
    assert_false(is_proven(net.hubs[1], 1));
    assert_false(is_proven(net.hubs[2], 1));
    close_net(&net);
}

/* Only that process has ended. */
static void another_rank_of_the_host_holds_the_next_pulse(void **state)
{
    static const int hosts[RANKS] = {0, 1, 1};
    struct net net = {.hubs = {NULL}};
    int64_t until = rueda_clock_ns() + WAIT_NS;

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    join(&net, 0, 2);
    await_pulse(&net, 0, 1);
    drop_rank(&net, 1);
    while (net.hubs[0]->peers[2].pulse < 0 &&
           !(net.hubs[0]->pulses[1].fd >= 0 &&
             net.hubs[0]->pulses[1].peer == 2 &&
             net.hubs[0]->pulses[1].shake == NULL)) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    assert_false(rueda_tcp_hub_is_silent(net.hubs[0], 2));
    assert_null(rueda_tcp_hub_why(net.hubs[0], 2));
    close_net(&net);
}

static void last_words_come_with_the_end_of_a_pulse(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    struct net net = {.hubs = {NULL}};
    int64_t until = rueda_clock_ns() + WAIT_NS;

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    await_pulse(&net, 0, 1);
    await_pulse(&net, 1, 0);
    rueda_tcp_hub_hang_up(net.hubs[0], "host c is silent\n");
    while (rueda_tcp_hub_last_words(net.hubs[1]) == NULL) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    assert_string_equal(rueda_tcp_hub_last_words(net.hubs[1]),
                        "host c is silent?");
    close_net(&net);
}

/* Whatever the system would choose. */
static void streams_inside_a_host_are_not_paced(void **state)
{
    static const int hosts[RANKS] = {0, 1, 1};
    int64_t until = rueda_clock_ns() + WAIT_NS;
    struct net net = {.hubs = {NULL}};
    const struct rueda_tcp_ep *ep;
    char choice[16] = "";
    socklen_t len = sizeof(choice);

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    ep = (const struct rueda_tcp_ep *)net.eps[0][1];
    while (ep->stream_count == 0) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    assert_int_equal(getsockopt(ep->streams[0].fd, IPPROTO_TCP, TCP_CONGESTION,
                                choice, &len),
                     0);
    assert_string_equal(choice, "reno");
    close_net(&net);
}

/* Streams overtake each other; then an older credit comes after a newer. */
static void an_older_credit_is_no_error(void **state)
{
    struct rueda_tcp_ep *ep = calloc(1, sizeof(*ep));
    struct rueda_tcp_frame credit = {.kind = RUEDA_TCP_CREDIT, .total = 300};

    (void)state;
    assert_non_null(ep);
    ep->spent = 400;
    assert_true(rueda_tcp_sender_told(ep, &credit));
    credit.total = 200;
    assert_true(rueda_tcp_sender_told(ep, &credit));
    assert_int_equal(ep->credited, 300);
    credit.total = 401;
    assert_false(rueda_tcp_sender_told(ep, &credit));
    free(ep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_brings_a_pulse_with_the_host),
        cmocka_unit_test(another_rank_of_the_host_holds_the_next_pulse),
        cmocka_unit_test(last_words_come_with_the_end_of_a_pulse),
        cmocka_unit_test(streams_inside_a_host_are_not_paced),
        cmocka_unit_test(an_older_credit_is_no_error),
    };

    rueda_log_set_sink(hush, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
