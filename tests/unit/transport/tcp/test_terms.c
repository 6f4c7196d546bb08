/* SPDX-License-Identifier: Apache-2.0 */
/* Two hubs from one term to the next: what connects, and what is known of a
 * peer with which there is no connection. */
#include "os/clock.h"
#include "os/event.h"
#include "transport/tcp/hub.h"
#include "unit/unit.h"

#define RANKS   2
#define WAIT_NS ((int64_t)20000000000)

struct net {
    struct rueda_key key;
    struct rueda_tcp_hub *hubs[RANKS];
    struct rueda_ep *eps[RANKS]; /* with the other one */
};

static void open_net(struct net *net)
{
    struct rueda_text error = {{0}};
    int count;

    assert_int_equal(rueda_key_create(&net->key), RUEDA_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        struct rueda_address any;
        const struct rueda_tcp_args args = {.rank = rank,
                                            .size = RANKS,
                                            .key = &net->key,
                                            .addresses = &any,
                                            .address_count = 1,
                                            .streams = 1,
                                            .give_up_ms = 1000};

        assert_int_equal(rueda_address_find("127.0.0.1:0", &any, 1, &error), 1);
        assert_int_equal(rueda_tcp_hub_open(&args, &net->hubs[rank], &error),
                         RUEDA_OK);
    }
    for (int of = 0; of < RANKS; of++)
        for (int rank = 0; rank < RANKS; rank++) {
            const struct rueda_address *at =
                rueda_tcp_hub_addresses(net->hubs[rank], &count);

            assert_int_equal(
                rueda_tcp_hub_locate(net->hubs[of], rank, rank, at, count),
                RUEDA_OK);
        }
}

static int set_up(void **state)
{
    static struct net net;

    net = (struct net){.hubs = {NULL}};
    open_net(&net);
    *state = &net;
    return 0;
}

static void close_rank(struct net *net, int rank)
{
    if (net->eps[rank] != NULL)
        rueda_ep_close(net->eps[rank]);
    rueda_tcp_hub_close(net->hubs[rank]);
    net->eps[rank] = NULL;
    net->hubs[rank] = NULL;
}

static int tear_down(void **state)
{
    for (int rank = 0; rank < RANKS; rank++)
        close_rank(*state, rank);
    return 0;
}

static void turn(struct net *net)
{
    for (int rank = 0; rank < RANKS; rank++) {
        if (net->hubs[rank] != NULL)
            rueda_tcp_hub_tend(net->hubs[rank]);
        if (net->eps[rank] != NULL)
            rueda_ep_progress(net->eps[rank]);
    }
    rueda_sleep_ns(100000);
}

/* A word from 0 to 1; how the send and the receive end. */
static void exchange(struct net *net, rueda_status out[RANKS])
{
    const int64_t until = rueda_clock_ns() + WAIT_NS;
    const struct rueda_tag tag = {.sequence = 3};
    struct rueda_req sent;
    struct rueda_req received;
    char word[4];

    for (int rank = 0; rank < RANKS; rank++)
        if (net->eps[rank] == NULL)
            assert_int_equal(
                rueda_tcp_ep_open(net->hubs[rank], 1 - rank, &net->eps[rank]),
                RUEDA_OK);
    rueda_ep_send(net->eps[0], tag, "word", 4, &sent);
    rueda_ep_recv(net->eps[1], tag, word, 4, &received);
    while (sent.status == RUEDA_IN_PROGRESS ||
           (sent.status == RUEDA_OK && received.status == RUEDA_IN_PROGRESS)) {
        assert_true(rueda_clock_ns() < until);
        turn(net);
    }
    rueda_ep_cancel(net->eps[1], RUEDA_ERR_CANCELLED);
    out[0] = sent.status;
    out[1] = received.status;
}

static void begin_term(struct net *net, int rank, uint32_t term)
{
    rueda_tcp_hub_begin_term(net->hubs[rank], term);
    rueda_ep_close(net->eps[rank]);
    net->eps[rank] = NULL;
}

static void ranks_of_the_same_term_connect_again(void **state)
{
    struct net *net = *state;
    rueda_status ended[RANKS];

    exchange(net, ended);
    assert_int_equal(ended[1], RUEDA_OK);
    for (int rank = 0; rank < RANKS; rank++)
        begin_term(net, rank, 2);
    exchange(net, ended);
    assert_int_equal(ended[0], RUEDA_OK);
    assert_int_equal(ended[1], RUEDA_OK);
}

static void a_rank_of_the_term_before_is_refused(void **state)
{
    struct net *net = *state;
    rueda_status ended[RANKS];

    exchange(net, ended);
    begin_term(net, 0, 2);
    rueda_ep_close(net->eps[1]);
    net->eps[1] = NULL;
    exchange(net, ended);
    assert_int_equal(ended[0], RUEDA_ERR_PEER_LOST);
    assert_int_not_equal(ended[1], RUEDA_OK);
}

static void an_endpoint_of_the_term_before_has_failed(void **state)
{
    struct net *net = *state;
    rueda_status ended[RANKS];
    struct rueda_req sent;

    exchange(net, ended);
    rueda_tcp_hub_lose(net->hubs[0], 1, "for a test");
    assert_non_null(rueda_tcp_hub_why(net->hubs[0], 1));
    rueda_tcp_hub_begin_term(net->hubs[0], 2);
    rueda_ep_send(net->eps[0], (struct rueda_tag){.sequence = 4}, "x", 1,
                  &sent);
    assert_int_equal(sent.status, RUEDA_ERR_PEER_LOST);
    assert_null(rueda_tcp_hub_why(net->hubs[0], 1));
}

static void the_end_of_a_process_is_found_out(void **state)
{
    struct net *net = *state;
    const int64_t until = rueda_clock_ns() + WAIT_NS;

    rueda_tcp_hub_await(net->hubs[0], 1);
    for (int i = 0; i < 2000; i++)
        turn(net);
    assert_false(rueda_tcp_hub_is_gone(net->hubs[0], 1));
    close_rank(net, 1);
    while (!rueda_tcp_hub_is_gone(net->hubs[0], 1)) {
        assert_true(rueda_clock_ns() < until);
        turn(net);
    }
    rueda_tcp_hub_begin_term(net->hubs[0], 2);
    assert_false(rueda_tcp_hub_is_gone(net->hubs[0], 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_of_the_same_term_connect_again,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rank_of_the_term_before_is_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_endpoint_of_the_term_before_has_failed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_a_process_is_found_out,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
