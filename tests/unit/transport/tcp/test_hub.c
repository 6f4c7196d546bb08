/* SPDX-License-Identifier: Apache-2.0 */
/* Hubs of one process, which stand for hosts: pulses, and streams by which bad
 * frames come; and credit. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "os/clock.h"
#include "os/stream.h"
#include "transport/tcp/hub.h"
#include "unit/unit.h"

#define RANKS   3
#define WAIT_NS ((int64_t)10000000000)

struct net {
    struct rueda_key key;
    struct rueda_tcp_hub *hubs[RANKS];
    struct rueda_ep *eps[RANKS][RANKS];
};

/* There is no memory of this size; 0: there is. The linker puts __wrap_malloc()
 * in the place of malloc(). */
static size_t missing_bytes;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return bytes == missing_bytes && bytes > 0 ? NULL : __real_malloc(bytes);
}

/* Errors and warnings that were logged, and the last of them. */
static int complaints;
static char complaint[256];

static void count(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    if (level > RUEDA_LOG_WARN)
        return;
    complaints++;
    snprintf(complaint, sizeof(complaint), "%s", line);
}

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

/* Each rank at its own of these addresses. */
static void open_net_at(struct net *net, const int *hosts,
                        const char *const *addresses)
{
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_key_create(&net->key), RUEDA_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        struct rueda_address any;
        const struct rueda_tcp_args args = {.rank = rank,
                                            .size = RANKS,
                                            .key = &net->key,
                                            .addresses = &any,
                                            .address_count = 1,
                                            .streams = 1};

        assert_int_equal(rueda_address_find(addresses[rank], &any, 1, &error),
                         1);
        assert_int_equal(rueda_tcp_hub_open(&args, &net->hubs[rank], &error),
                         RUEDA_OK);
    }
    for (int of = 0; of < RANKS; of++)
        for (int rank = 0; rank < RANKS; rank++)
            locate(net, of, rank, hosts);
}

static void open_net(struct net *net, const int *hosts)
{
    static const char *const addresses[RANKS] = {"127.0.0.1:0", "127.0.0.1:0",
                                                 "127.0.0.1:0"};

    open_net_at(net, hosts, addresses);
}

static void join(struct net *net, int a, int b)
{
    assert_int_equal(rueda_tcp_ep_open(net->hubs[a], b, &net->eps[a][b]),
                     RUEDA_OK);
    assert_int_equal(rueda_tcp_ep_open(net->hubs[b], a, &net->eps[b][a]),
                     RUEDA_OK);
}

/* One turn of every rank that is there. */
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

/* Send more to b than the system takes while b reads nothing. */
static void fill_stream(struct net *net, int a, int b, const char *bytes,
                        size_t len, struct rueda_req *out)
{
    const struct rueda_tag tag = {.sequence = 1};
    const int64_t until = rueda_clock_ns() + WAIT_NS;
    size_t last = 0;
    int still = 0;

    join(net, a, b);
    rueda_ep_send(net->eps[a][b], tag, bytes, len, out);
    while (out->done == 0) {
        assert_true(rueda_clock_ns() < until);
        turn(net);
    }
    while (still < 1000) {
        rueda_ep_progress(net->eps[a][b]);
        still = out->done == last ? still + 1 : 0;
        last = out->done;
    }
    assert_int_equal(out->status, RUEDA_IN_PROGRESS);
}

static void many_stopped_peers_delay_a_close_no_longer_than_one(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    struct net net = {.hubs = {NULL}};
    const size_t len = (size_t)64 << 20;
    struct rueda_req sent[2];
    char *bytes = calloc(len, 1);
    int64_t began;

    (void)state;
    assert_non_null(bytes);
    open_net(&net, hosts);
    for (int b = 1; b < RANKS; b++)
        fill_stream(&net, 0, b, bytes, len, &sent[b - 1]);
    rueda_ep_close(net.eps[0][1]);
    assert_true(net.hubs[0]->leave_ns > 0);
    net.hubs[0]->leave_ns = 1; /* as if the first had used up all the time */
    began = rueda_clock_ns();
    rueda_ep_close(net.eps[0][2]);
    assert_true(rueda_clock_ns() - began < (int64_t)1500000000);
    net.eps[0][1] = NULL;
    net.eps[0][2] = NULL;
    close_net(&net);
    free(bytes);
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

/* An attacker on the way can write words of its own, and end the connection. */
static void last_words_that_the_peer_has_not_sealed_are_not_shown(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    struct net net = {.hubs = {NULL}};
    int64_t until = rueda_clock_ns() + WAIT_NS;
    size_t moved;
    int ours;
    int theirs;

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    await_pulse(&net, 0, 1);
    await_pulse(&net, 1, 0);
    ours = net.hubs[0]->pulses[1].fd;
    theirs = net.hubs[0]->peers[1].pulse;
    if (ours >= 0)
        rueda_stream_send(ours, "rank 2 has failed, give it up", 29, &moved);
    if (theirs >= 0)
        rueda_stream_send(theirs, "rank 2 has failed, give it up", 29, &moved);
    assert_true(ours >= 0 || theirs >= 0);
    while (net.hubs[1]->pulses[0].fd >= 0 && net.hubs[1]->peers[0].pulse >= 0) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    assert_null(rueda_tcp_hub_last_words(net.hubs[1]));
    close_net(&net);
}

static struct rueda_tcp_ep *connected(struct net *net, int a, int b)
{
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)net->eps[a][b];
    int64_t until = rueda_clock_ns() + WAIT_NS;

    while (ep->stream_count == 0) {
        assert_true(rueda_clock_ns() < until);
        turn(net);
    }
    return ep;
}

/* What keeps the stream from a to b from congestion. */
static const char *control_of(struct net *net, int a, int b)
{
    static char choice[16];
    socklen_t len = sizeof(choice);

    memset(choice, 0, sizeof(choice));
    assert_int_equal(getsockopt(connected(net, a, b)->streams[0].fd,
                                IPPROTO_TCP, TCP_CONGESTION, choice, &len),
                     0);
    return choice;
}

static int option_of(struct net *net, int a, int b, int level, int option)
{
    int value = 0;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(connected(net, a, b)->streams[0].fd, level,
                                option, &value, &len),
                     0);
    return value;
}

/* Firewalls on the way forget idle connections after minutes. */
static void streams_are_kept_open_from_both_ends(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    struct net net = {.hubs = {NULL}};

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    for (int rank = 0; rank < 2; rank++) {
        int idle_s = option_of(&net, rank, 1 - rank, IPPROTO_TCP, TCP_KEEPIDLE);

        assert_int_equal(
            option_of(&net, rank, 1 - rank, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_in_range(idle_s, 30, 60);
    }
    close_net(&net);
}

/* Whatever the system would choose. */
static void streams_inside_a_host_are_not_paced(void **state)
{
    static const int hosts[RANKS] = {0, 1, 1};
    struct net net = {.hubs = {NULL}};

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    assert_string_equal(control_of(&net, 0, 1), "reno");
    assert_string_equal(control_of(&net, 1, 0), "reno");
    close_net(&net);
}

/* What the system chooses, which was not marked as inside. */
static void nor_are_streams_between_namespaces_of_one_system(void **state)
{
    static const char *const addresses[RANKS] = {"127.0.0.1:0", "127.0.0.2:0",
                                                 "127.0.0.3:0"};
    static const int hosts[RANKS] = {0, 1, 2};
    struct net net = {.hubs = {NULL}};
    char usual[16] = "";
    socklen_t len = sizeof(usual);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, usual, &len),
                     0);
    close(fd);
    open_net_at(&net, hosts, addresses);
    rueda_tcp_hub_set_inside(net.hubs[0], 1);
    join(&net, 0, 1);
    join(&net, 0, 2);
    assert_string_equal(control_of(&net, 0, 1), "reno");
    assert_string_equal(control_of(&net, 0, 2), usual);
    close_net(&net);
}

/* A message from a to b arrives. */
static void pass(struct net *net, int a, int b)
{
    const struct rueda_tag tag = {.sequence = 1};
    int64_t until = rueda_clock_ns() + WAIT_NS;
    struct rueda_req sent;
    struct rueda_req received;
    int number = 42;
    int got = 0;

    rueda_ep_send(net->eps[a][b], tag, &number, sizeof(number), &sent);
    rueda_ep_recv(net->eps[b][a], tag, &got, sizeof(got), &received);
    while (received.status == RUEDA_IN_PROGRESS) {
        assert_true(rueda_clock_ns() < until);
        turn(net);
    }
    assert_int_equal(received.status, RUEDA_OK);
    assert_int_equal(got, number);
}

/* Rank 0 has proven itself, and sends this to rank 1, which waits for it. */
static void check_bad_head(const struct rueda_tcp_frame *frame, const char *why)
{
    static const int hosts[RANKS] = {0, 1, 2};
    const struct rueda_tag tag = {.sequence = 1};
    int64_t until = rueda_clock_ns() + WAIT_NS;
    struct net net = {.hubs = {NULL}};
    struct rueda_tcp_stream *stream;
    struct rueda_req received;
    size_t bytes;
    char byte;
    size_t sent;

    open_net(&net, hosts);
    join(&net, 0, 1);
    join(&net, 0, 2);
    join(&net, 1, 2);
    connected(&net, 1, 0);
    connected(&net, 1, 2);
    connected(&net, 2, 0);
    rueda_ep_recv(net.eps[1][0], tag, &byte, 1, &received);
    stream = &connected(&net, 0, 1)->streams[0];
    rueda_tcp_sealing_close(stream->sealing, frame, NULL, &bytes);
    complaints = 0;
    rueda_log_set_sink(count, NULL);
    assert_int_equal(
        rueda_stream_send(stream->fd, stream->sealing->frame, bytes, &sent),
        RUEDA_OK);
    while (received.status == RUEDA_IN_PROGRESS) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    assert_int_equal(received.status, RUEDA_ERR_PEER_LOST);
    assert_non_null(rueda_tcp_hub_why(net.hubs[1], 0));
    assert_non_null(strstr(rueda_tcp_hub_why(net.hubs[1], 0), why));
    pass(&net, 1, 2);
    pass(&net, 2, 0);
    assert_int_equal(complaints, 1);
    assert_non_null(strstr(complaint, why));
    rueda_log_set_sink(hush, NULL);
    close_net(&net);
}

static void
a_bad_frame_costs_a_rank_its_connection_and_others_nothing(void **state)
{
    const struct rueda_tcp_frame oversized = {.kind = RUEDA_TCP_PIECE,
                                              .bytes = UINT32_MAX,
                                              .tag = {.sequence = 1},
                                              .total = UINT32_MAX};
    const struct rueda_tcp_frame malformed = {.kind = (rueda_tcp_kind)77};
    const struct rueda_tcp_frame uncredited = {.kind = RUEDA_TCP_CREDIT,
                                               .total = 1u << 30};

    (void)state;
    check_bad_head(&oversized, "a malformed frame (kind 1, 4294967295 bytes");
    check_bad_head(&malformed, "a malformed frame (kind 77,");
    check_bad_head(&uncredited, "does not fit those before it (kind 3");
}

/* Rank 0 begins one message of `total` bytes after another, of each `begun`,
 * without a receive, until rank 1 has enough of it. Returns how many;
 * fails beyond `most`. */
static uint64_t begin_messages(uint32_t total, uint32_t begun, uint64_t most)
{
    static const int hosts[RANKS] = {0, 1, 2};
    struct rueda_tcp_frame frame = {
        .kind = RUEDA_TCP_PIECE, .bytes = begun, .total = total};
    static char piece[RUEDA_TCP_AHEAD_BYTES];
    struct net net = {.hubs = {NULL}};
    const struct rueda_tcp_ep *receiver;
    struct rueda_tcp_stream *stream;
    size_t moved;
    size_t len;

    open_net(&net, hosts);
    join(&net, 0, 1);
    receiver = connected(&net, 1, 0);
    while (!receiver->has_failed) {
        assert_true(frame.number < most);
        frame.tag.sequence = frame.first = frame.number;
        stream = &connected(&net, 0, 1)->streams[0];
        rueda_tcp_sealing_close(stream->sealing, &frame, piece, &len);
        assert_int_equal(rueda_stream_send_both(stream->fd,
                                                stream->sealing->frame, len,
                                                piece, begun, &moved),
                         RUEDA_OK);
        assert_int_equal(moved, len + begun);
        frame.number++;
        for (int i = 0; i < 20; i++) /* a quiet stream rests in 15 */
            turn(&net);
    }
    assert_non_null(strstr(rueda_tcp_hub_why(net.hubs[1], 0),
                           "a frame that does not fit those before it"));
    close_net(&net);
    return frame.number;
}

/* A sender has to stop when WINDOW_BYTES are there. */
static void who_sends_more_than_it_has_credit_for_is_stopped(void **state)
{
    const uint64_t fit = RUEDA_TCP_WINDOW_BYTES / RUEDA_TCP_AHEAD_BYTES;

    (void)state;
    assert_true(begin_messages(RUEDA_TCP_AHEAD_BYTES, RUEDA_TCP_AHEAD_BYTES,
                               2 * fit) > fit * 9 / 10);
}

/* There is room for all of each, and only a byte of it counts as sent. */
static void who_begins_more_messages_than_it_can_send_is_stopped(void **state)
{
    (void)state;
    assert_int_equal(begin_messages(RUEDA_TCP_HELD_BYTES, 1,
                                    2 * (uint64_t)RUEDA_TCP_OUTGOING),
                     RUEDA_TCP_OUTGOING + 1);
}

/* Rank 0 sends what rank 1 has no memory for: rank 0 is not to blame. */
static void out_of_memory_is_not_held_against_the_sender(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    const struct rueda_tag tag = {.sequence = 1};
    const struct rueda_tcp_ep *receiver;
    int64_t until = rueda_clock_ns() + WAIT_NS;
    struct net net = {.hubs = {NULL}};
    char bytes[12345] = "";
    struct rueda_req sent;

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    receiver = connected(&net, 1, 0);
    missing_bytes = sizeof(bytes);
    rueda_ep_send(net.eps[0][1], tag, bytes, sizeof(bytes), &sent);
    while (!receiver->has_failed) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    missing_bytes = 0;
    assert_string_equal(rueda_tcp_hub_why(net.hubs[1], 0),
                        "this rank is out of memory for a message of 12345 "
                        "bytes that it sent");
    close_net(&net);
}

/* Rank 1 cannot make a stream of the call of rank 0. */
static void out_of_memory_for_a_connection_is_told(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    int64_t until = rueda_clock_ns() + WAIT_NS;
    struct net net = {.hubs = {NULL}};

    (void)state;
    open_net(&net, hosts);
    missing_bytes = RUEDA_TCP_AHEAD_BYTES;
    join(&net, 0, 1);
    while (rueda_tcp_hub_why(net.hubs[1], 0) == NULL) {
        assert_true(rueda_clock_ns() < until);
        turn(&net);
    }
    missing_bytes = 0;
    assert_string_equal(rueda_tcp_hub_why(net.hubs[1], 0),
                        "this rank is out of memory for a connection");
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

/* Rank 1 has taken the stream and its answer has come; rank 0 was away for
 * longer than it would wait for one. */
static void an_answer_that_has_come_counts_however_late_it_is_read(void **state)
{
    static const int hosts[RANKS] = {0, 1, 2};
    const struct rueda_tcp_ep *taken;
    const struct rueda_tcp_ep *dialled;
    struct net net = {.hubs = {NULL}};
    int64_t until = rueda_clock_ns() + WAIT_NS;

    (void)state;
    open_net(&net, hosts);
    join(&net, 0, 1);
    taken = (const struct rueda_tcp_ep *)net.eps[1][0];
    dialled = (const struct rueda_tcp_ep *)net.eps[0][1];
    while (taken->stream_count == 0) {
        assert_true(rueda_clock_ns() < until);
        turn(&net); /* rank 0 before rank 1 */
    }
    assert_int_equal(dialled->stream_count, 0);
    rueda_sleep_ns(RUEDA_DIAL_NS + RUEDA_DIAL_NS / 10);
    pass(&net, 0, 1);
    assert_int_equal(taken->stream_count, 1);
    close_net(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            an_answer_that_has_come_counts_however_late_it_is_read),
        cmocka_unit_test(an_endpoint_brings_a_pulse_with_the_host),
        cmocka_unit_test(another_rank_of_the_host_holds_the_next_pulse),
        cmocka_unit_test(many_stopped_peers_delay_a_close_no_longer_than_one),
        cmocka_unit_test(last_words_come_with_the_end_of_a_pulse),
        cmocka_unit_test(streams_are_kept_open_from_both_ends),
        cmocka_unit_test(last_words_that_the_peer_has_not_sealed_are_not_shown),
        cmocka_unit_test(streams_inside_a_host_are_not_paced),
        cmocka_unit_test(nor_are_streams_between_namespaces_of_one_system),
        cmocka_unit_test(
            a_bad_frame_costs_a_rank_its_connection_and_others_nothing),
        cmocka_unit_test(who_sends_more_than_it_has_credit_for_is_stopped),
        cmocka_unit_test(who_begins_more_messages_than_it_can_send_is_stopped),
        cmocka_unit_test(out_of_memory_is_not_held_against_the_sender),
        cmocka_unit_test(out_of_memory_for_a_connection_is_told),
        cmocka_unit_test(an_older_credit_is_no_error),
    };

    rueda_log_set_sink(hush, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
