/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/conformance.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEADLINE_NS ((int64_t)20 * 1000 * 1000 * 1000)
#define MIB         ((size_t)1 << 20)

struct rueda_tag tag_of(uint64_t sequence)
{
    return (struct rueda_tag){.term = 1, .set = 2, .sequence = sequence};
}

int64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

rueda_status drive(struct pair *pair, const struct rueda_req *req)
{
    int64_t deadline = now_ns() + DEADLINE_NS;

    while (req->status == RUEDA_IN_PROGRESS && now_ns() < deadline) {
        if (pair->a != NULL)
            rueda_ep_progress(pair->a);
        if (pair->b != NULL)
            rueda_ep_progress(pair->b);
    }
    return req->status;
}

rueda_status drive_to_end(struct rueda_ep *ep)
{
    int64_t deadline = now_ns() + DEADLINE_NS;
    rueda_status status = rueda_ep_progress(ep);

    while (status >= 0 && now_ns() < deadline)
        status = rueda_ep_progress(ep);
    return status;
}

static unsigned char byte_at(size_t i, uint64_t seed)
{
    uint64_t mixed = (i / 8 + 1 + seed * 7919) * 0x9e3779b97f4a7c15u;

    return (unsigned char)(mixed >> (56 - i % 8 * 3));
}

void fill(unsigned char *buf, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = byte_at(i, seed);
}

bool is_filled(const unsigned char *buf, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        if (buf[i] != byte_at(i, seed))
            return false;
    return true;
}

/* Never NULL, also for no bytes: the last byte is the end of the block, so that
 * a sanitizer sees a step too far. */
static unsigned char *bytes_new(size_t len)
{
    unsigned char *buf = malloc(len > 0 ? len : 1);

    assert_non_null(buf);
    return buf;
}

/* ---- Messages -------------------------------------------------------- */

static void a_message_of_any_length_arrives(void **state)
{
    static const size_t lengths[] = {
        0,     1,     7,     8,      24,     63,     64,      65,    87,
        88,    89,    4095,  4097,   8191,   8192,   8193,    16384, 16385,
        65535, 65536, 65537, 131071, 131072, 131073, 1000003,
    };
    struct pair *pair = *state;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i];
        unsigned char *out = bytes_new(len);
        unsigned char *in = bytes_new(len);
        struct rueda_req sent;
        struct rueda_req received;

        fill(out, len, i);
        rueda_ep_recv(pair->b, tag_of(i), in, len, &received);
        rueda_ep_send(pair->a, tag_of(i), out, len, &sent);

        assert_int_equal(drive(pair, &sent), RUEDA_OK);
        assert_int_equal(drive(pair, &received), RUEDA_OK);
        assert_int_equal(sent.done, len);
        assert_int_equal(received.done, len);
        assert_true(is_filled(in, len, i));
        free(in);
        free(out);
    }
}

/* ---- Terms ----------------------------------------------------------- */

static const size_t term_lengths[] = {0, 5, 88, 5000, 200000, MIB};

static struct rueda_tag in_term(uint32_t term)
{
    return (struct rueda_tag){.term = term, .set = 2, .sequence = 7};
}

/* How many b has dropped, once they are as many, or after seconds. */
static uint64_t drive_to_dropped(struct pair *pair, uint64_t count)
{
    int64_t deadline = now_ns() + DEADLINE_NS;

    while (pair->b->term.dropped < count && now_ns() < deadline) {
        rueda_ep_progress(pair->a);
        rueda_ep_progress(pair->b);
    }
    return pair->b->term.dropped;
}

/* One of term 2 passes, from a to b. */
static void pass_one(struct pair *pair, struct rueda_req *received,
                     const unsigned char *in, size_t len)
{
    unsigned char *out = bytes_new(len);
    struct rueda_req sent;

    fill(out, len, 2);
    rueda_ep_send(pair->a, in_term(2), out, len, &sent);
    assert_int_equal(drive(pair, &sent), RUEDA_OK);
    assert_int_equal(drive(pair, received), RUEDA_OK);
    assert_true(is_filled(in, len, 2));
    free(out);
}

static void a_message_of_a_past_term_is_dropped(void **state)
{
    struct pair *pair = *state;

    rueda_ep_begin_term(pair->b, 2);
    rueda_ep_begin_term(pair->b, 1); /* which is past */
    for (size_t i = 0; i < sizeof(term_lengths) / sizeof(size_t); i++) {
        size_t len = term_lengths[i];
        unsigned char *old = bytes_new(len);
        unsigned char *in = bytes_new(len);
        struct rueda_req sent;
        struct rueda_req received;

        fill(old, len, 1);
        rueda_ep_recv(pair->b, in_term(2), in, len, &received);
        rueda_ep_send(pair->a, in_term(1), old, len, &sent);
        assert_int_equal(drive(pair, &sent), RUEDA_OK);
        assert_int_equal(received.status, RUEDA_IN_PROGRESS);
        pass_one(pair, &received, in, len);
        assert_int_equal(drive_to_dropped(pair, i + 1), i + 1);
        free(in);
        free(old);
    }
    assert_int_equal(pair->a->term.dropped, 0);
}

static void a_message_that_waits_is_dropped_when_a_term_begins(void **state)
{
    struct pair *pair = *state;

    for (size_t i = 0; i < sizeof(term_lengths) / sizeof(size_t); i++) {
        size_t len = term_lengths[i];
        uint32_t term = 10 * (uint32_t)(i + 1);
        unsigned char *out = bytes_new(len);
        unsigned char *in = bytes_new(len);
        struct rueda_req sent[2];
        struct rueda_req received;

        fill(out, len, i);
        rueda_ep_begin_term(pair->b, term);
        rueda_ep_send(pair->a, in_term(term), out, len, &sent[0]);
        /* One of a term that is still to come waits. */
        rueda_ep_send(pair->a, in_term(term + 1), out, len, &sent[1]);
        for (int turn = 0; turn < 1000; turn++) {
            rueda_ep_progress(pair->a);
            rueda_ep_progress(pair->b);
        }
        assert_int_equal(pair->b->term.dropped, i);
        rueda_ep_begin_term(pair->b, term + 1);
        assert_int_equal(drive(pair, &sent[0]), RUEDA_OK);
        rueda_ep_recv(pair->b, in_term(term + 1), in, len, &received);
        assert_int_equal(drive(pair, &received), RUEDA_OK);
        assert_int_equal(drive(pair, &sent[1]), RUEDA_OK);
        assert_true(is_filled(in, len, i));
        assert_int_equal(drive_to_dropped(pair, i + 1), i + 1);
        free(in);
        free(out);
    }
}

/* ---- Order ----------------------------------------------------------- */

static void a_receive_may_come_after_its_send(void **state)
{
    static const size_t lengths[] = {0, 5, 88, 5000, 70000, MIB};
    struct pair *pair = *state;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i];
        unsigned char *out = bytes_new(len);
        unsigned char *in = bytes_new(len);
        struct rueda_req sent;
        struct rueda_req received;

        fill(out, len, i);
        rueda_ep_send(pair->b, tag_of(1), out, len, &sent);
        for (int turn = 0; turn < 20; turn++) {
            rueda_ep_progress(pair->a);
            rueda_ep_progress(pair->b);
        }
        rueda_ep_recv(pair->a, tag_of(1), in, len, &received);

        assert_int_equal(drive(pair, &received), RUEDA_OK);
        assert_int_equal(drive(pair, &sent), RUEDA_OK);
        assert_true(is_filled(in, len, i));
        free(in);
        free(out);
    }
}

static void five_mebibytes_go_both_ways_at_once(void **state)
{
    struct pair *pair = *state;
    struct rueda_ep *ends[2] = {pair->a, pair->b};
    size_t len = 5 * MIB;
    unsigned char *out[2];
    unsigned char *in[2];
    struct rueda_req sent[2];
    struct rueda_req received[2];

    for (int i = 0; i < 2; i++) {
        out[i] = bytes_new(len);
        in[i] = bytes_new(len);
        fill(out[i], len, (uint64_t)i);
        rueda_ep_send(ends[i], tag_of(9), out[i], len, &sent[i]);
    }
    for (int i = 0; i < 2; i++)
        rueda_ep_recv(ends[i], tag_of(9), in[i], len, &received[i]);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(drive(pair, &sent[i]), RUEDA_OK);
        assert_int_equal(drive(pair, &received[i]), RUEDA_OK);
        assert_true(is_filled(in[i], len, (uint64_t)!i));
    }
    for (int i = 0; i < 2; i++) {
        free(in[i]);
        free(out[i]);
    }
}

/* Within groups of four, the promise of the contract, the order of receives is
 * turned round. */
static void a_hundred_tags_are_received_in_another_order(void **state)
{
    enum {
        COUNT = 100,
        LEN = 3000
    };
    struct pair *pair = *state;
    struct rueda_req sent[COUNT];
    struct rueda_req received[COUNT];
    unsigned char *out = bytes_new((size_t)COUNT * LEN);
    unsigned char *in = bytes_new((size_t)COUNT * LEN);

    fill(out, (size_t)COUNT * LEN, 3);
    for (int i = 0; i < COUNT; i++)
        rueda_ep_send(pair->a, tag_of((uint64_t)i), out + (size_t)i * LEN,
                      (size_t)(LEN - i), &sent[i]);
    for (int i = 0; i < COUNT; i++) {
        int turned = i / 4 * 4 + 3 - i % 4;

        rueda_ep_recv(pair->b, tag_of((uint64_t)turned),
                      in + (size_t)turned * LEN, (size_t)(LEN - turned),
                      &received[turned]);
    }

    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(drive(pair, &received[i]), RUEDA_OK);
        assert_int_equal(drive(pair, &sent[i]), RUEDA_OK);
        assert_memory_equal(in + (size_t)i * LEN, out + (size_t)i * LEN,
                            (size_t)(LEN - i));
    }
    free(in);
    free(out);
}

static void four_long_messages_do_not_hold_up_each_other(void **state)
{
    struct pair *pair = *state;
    struct rueda_req sent[4];
    struct rueda_req received;
    unsigned char *out = bytes_new(MIB);
    unsigned char *in = bytes_new(MIB);

    fill(out, MIB, 4);
    for (uint64_t i = 0; i < 4; i++)
        rueda_ep_send(pair->a, tag_of(i), out, MIB - i, &sent[i]);
    for (uint64_t i = 4; i-- > 0;) {
        rueda_ep_recv(pair->b, tag_of(i), in, MIB - i, &received);
        assert_int_equal(drive(pair, &received), RUEDA_OK);
        assert_int_equal(drive(pair, &sent[i]), RUEDA_OK);
        assert_memory_equal(in, out, MIB - i);
    }
    free(in);
    free(out);
}

static void messages_of_one_tag_come_in_order(void **state)
{
    enum {
        COUNT = 60
    };
    struct pair *pair = *state;
    struct rueda_req sent[COUNT];
    struct rueda_req received[COUNT];
    int out[COUNT];
    int in[COUNT];

    for (int i = 0; i < COUNT / 2; i++)
        rueda_ep_recv(pair->b, tag_of(5), &in[i], sizeof(int), &received[i]);
    for (int i = 0; i < COUNT; i++) {
        out[i] = 1000 + i;
        rueda_ep_send(pair->a, tag_of(5), &out[i], sizeof(int), &sent[i]);
    }
    for (int i = COUNT / 2; i < COUNT; i++)
        rueda_ep_recv(pair->b, tag_of(5), &in[i], sizeof(int), &received[i]);

    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(drive(pair, &received[i]), RUEDA_OK);
        assert_int_equal(drive(pair, &sent[i]), RUEDA_OK);
        assert_int_equal(in[i], 1000 + i);
    }
}

static void done_counts_bytes_that_are_there_and_never_falls(void **state)
{
    struct pair *pair = *state;
    unsigned char *out = bytes_new(MIB);
    unsigned char *in = bytes_new(MIB);
    struct rueda_req sent;
    struct rueda_req received;
    size_t sent_before = 0;
    size_t before = 0;

    fill(out, MIB, 6);
    rueda_ep_recv(pair->b, tag_of(6), in, MIB, &received);
    rueda_ep_send(pair->a, tag_of(6), out, MIB, &sent);
    while (received.status == RUEDA_IN_PROGRESS ||
           sent.status == RUEDA_IN_PROGRESS) {
        assert_true(rueda_ep_progress(pair->a) >= 0);
        assert_true(rueda_ep_progress(pair->b) >= 0);
        assert_true(received.done >= before && received.done <= MIB);
        assert_true(sent.done >= sent_before && sent.done <= MIB);
        assert_memory_equal(in + before, out + before, received.done - before);
        before = received.done;
        sent_before = sent.done;
    }

    assert_int_equal(received.done, MIB);
    assert_int_equal(sent.done, MIB);
    free(in);
    free(out);
}

static void a_length_that_differs_ends_the_receive_and_no_more(void **state)
{
    static const size_t lengths[][2] = {
        {8, 4}, {0, 1}, {1, 0}, {300, 200}, {200, 300}, {MIB, 10}, {10, MIB},
    };
    struct pair *pair = *state;
    unsigned char *out = bytes_new(MIB);
    unsigned char *in = bytes_new(MIB);
    struct rueda_req sent;
    struct rueda_req received;
    int next;

    fill(out, MIB, 7);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        rueda_ep_recv(pair->b, tag_of(7), in, lengths[i][1], &received);
        rueda_ep_send(pair->a, tag_of(7), out, lengths[i][0], &sent);
        assert_int_equal(drive(pair, &received), RUEDA_ERR_MISMATCH);
        assert_int_equal(drive(pair, &sent), RUEDA_OK);

        rueda_ep_send(pair->a, tag_of(7), &(int){42}, sizeof(int), &sent);
        rueda_ep_recv(pair->b, tag_of(7), &next, sizeof(int), &received);
        assert_int_equal(drive(pair, &received), RUEDA_OK);
        assert_int_equal(drive(pair, &sent), RUEDA_OK);
        assert_int_equal(next, 42);
    }
    free(in);
    free(out);
}

static void an_idle_endpoint_is_in_progress(void **state)
{
    struct pair *pair = *state;
    struct rueda_req received;
    char byte;

    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(rueda_ep_progress(pair->a), RUEDA_IN_PROGRESS);
        assert_int_equal(rueda_ep_progress(pair->b), RUEDA_IN_PROGRESS);
    }
    rueda_ep_recv(pair->a, tag_of(1), &byte, 1, &received);

    assert_int_equal(rueda_ep_progress(pair->a), RUEDA_IN_PROGRESS);
    assert_int_equal(received.status, RUEDA_IN_PROGRESS);
    rueda_ep_cancel(pair->a, RUEDA_ERR_CANCELLED);
}

/* ---- Ends ------------------------------------------------------------ */

static void cancel_ends_everything_and_keeps_no_pointer(void **state)
{
    enum {
        COUNT = 20,
        LEN = 200
    };
    struct pair *pair = *state;
    struct rueda_req *reqs = calloc((size_t)2 * COUNT, sizeof(*reqs));
    unsigned char *buf = bytes_new(LEN);
    struct rueda_req sent;
    struct rueda_req received;
    int out = 5;
    int in = 0;

    assert_non_null(reqs);
    memset(buf, 1, LEN);
    for (uint64_t i = 0; i < COUNT; i++) {
        rueda_ep_recv(pair->b, tag_of(i), buf, LEN, &reqs[i]);
        rueda_ep_send(pair->b, tag_of(i), buf, LEN, &reqs[COUNT + i]);
    }
    rueda_ep_cancel(pair->b, RUEDA_ERR_CANCELLED);

    for (int i = 0; i < COUNT; i++)
        assert_int_equal(reqs[i].status, RUEDA_ERR_CANCELLED);
    for (int i = COUNT; i < 2 * COUNT; i++)
        assert_int_not_equal(reqs[i].status, RUEDA_IN_PROGRESS);
    /* Who still holds a pointer is seen by the sanitizer. */
    free(reqs);
    free(buf);
    rueda_ep_send(pair->a, tag_of(COUNT), &out, sizeof(out), &sent);
    rueda_ep_recv(pair->b, tag_of(COUNT), &in, sizeof(in), &received);
    assert_int_equal(drive(pair, &received), RUEDA_OK);
    assert_int_equal(drive(pair, &sent), RUEDA_OK);
    assert_int_equal(in, 5);
}

/* A transport that moves a message whole has none that is half received. */
static void cancel_half_way_fails_both_ends(void **state)
{
    struct pair *pair = *state;
    size_t len = 5 * MIB;
    unsigned char *out = bytes_new(len);
    unsigned char *in = bytes_new(len);
    struct rueda_req sent;
    struct rueda_req received;

    fill(out, len, 1);
    rueda_ep_recv(pair->b, tag_of(1), in, len, &received);
    rueda_ep_send(pair->a, tag_of(1), out, len, &sent);
    while (received.done == 0) {
        assert_true(rueda_ep_progress(pair->a) >= 0);
        assert_true(rueda_ep_progress(pair->b) >= 0);
    }
    if (received.status == RUEDA_IN_PROGRESS) {
        rueda_ep_cancel(pair->b, RUEDA_ERR_CANCELLED);
        free(in);
        in = NULL;
        assert_int_equal(received.status, RUEDA_ERR_CANCELLED);
        assert_int_equal(rueda_ep_progress(pair->b), RUEDA_ERR_PEER_LOST);
        assert_int_equal(drive_to_end(pair->a), RUEDA_ERR_PEER_LOST);
        assert_int_equal(sent.status, RUEDA_ERR_PEER_LOST);
    }
    free(in);
    free(out);
}

static void closing_fails_the_peer(void **state)
{
    struct pair *pair = *state;
    unsigned char *buf = bytes_new(5 * MIB);
    struct rueda_req received;
    struct rueda_req sent;
    struct rueda_req late;

    memset(buf, 1, 5 * MIB);
    rueda_ep_recv(pair->b, tag_of(1), buf, 1, &received);
    rueda_ep_send(pair->b, tag_of(2), buf, 5 * MIB, &sent);
    rueda_ep_close(pair->a);
    pair->a = NULL;

    assert_int_equal(drive_to_end(pair->b), RUEDA_ERR_PEER_LOST);
    assert_int_equal(received.status, RUEDA_ERR_PEER_LOST);
    assert_int_equal(sent.status, RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_ep_progress(pair->b), RUEDA_ERR_PEER_LOST);
    rueda_ep_recv(pair->b, tag_of(3), buf, 1, &late);
    assert_int_equal(late.status, RUEDA_ERR_PEER_LOST);
    rueda_ep_send(pair->b, tag_of(3), buf, 1, &late);
    assert_int_equal(late.status, RUEDA_ERR_PEER_LOST);
    free(buf);
}

/* Only sends that ended well count as sent. */
static void what_was_sent_before_closing_arrives(void **state)
{
    static const size_t lengths[] = {0, 10, 1000, 60000, MIB};
    enum {
        COUNT = 5
    };
    struct pair *pair = *state;
    unsigned char *out = bytes_new(MIB);
    unsigned char *in = bytes_new(MIB);
    struct rueda_req sent[COUNT];
    rueda_status status[COUNT];
    struct rueda_req received;

    fill(out, MIB, 2);
    for (uint64_t i = 0; i < COUNT; i++)
        rueda_ep_send(pair->a, tag_of(i), out, lengths[i], &sent[i]);
    for (int turn = 0; turn < 20; turn++)
        rueda_ep_progress(pair->a);
    for (int i = 0; i < COUNT; i++)
        status[i] = sent[i].status;
    rueda_ep_close(pair->a);
    pair->a = NULL;

    for (uint64_t i = COUNT; i-- > 0;) {
        rueda_ep_recv(pair->b, tag_of(i), in, lengths[i], &received);
        assert_int_equal(drive(pair, &received), status[i] == RUEDA_OK
                                                     ? RUEDA_OK
                                                     : RUEDA_ERR_PEER_LOST);
        if (status[i] == RUEDA_OK)
            assert_true(is_filled(in, lengths[i], 2));
    }
    assert_int_equal(drive_to_end(pair->b), RUEDA_ERR_PEER_LOST);
    free(in);
    free(out);
}

static void a_rank_that_dies_fails_its_peer(void **state)
{
    struct pair *pair = *state;
    struct rueda_req received;
    struct rueda_req sent;
    int out = 3;
    int in = 0;

    if (pair->fixture->vanish == NULL) {
        skip();
        return;
    }
    rueda_ep_send(pair->b, tag_of(1), &out, sizeof(out), &sent);
    pair->fixture->vanish(pair);
    if (sent.status == RUEDA_OK) {
        rueda_ep_recv(pair->a, tag_of(1), &in, sizeof(in), &received);
        assert_int_equal(drive(pair, &received), RUEDA_OK);
        assert_int_equal(in, 3);
    }
    rueda_ep_recv(pair->a, tag_of(2), &in, sizeof(in), &received);

    assert_int_equal(drive_to_end(pair->a), RUEDA_ERR_PEER_LOST);
    assert_int_equal(received.status, RUEDA_ERR_PEER_LOST);
}

/* ---- Threads --------------------------------------------------------- */

struct worker {
    struct stress stress;
    rueda_status result;
};

static void *work(void *arg)
{
    struct worker *worker = arg;

    worker->result = stress_run(&worker->stress);
    return NULL;
}

static void two_threads_talk_at_random(void **state)
{
    struct pair *pair = *state;
    struct worker workers[2] = {
        {.stress = {.ep = pair->a, .side = 0, .windows = 300}},
        {.stress = {.ep = pair->b, .side = 1, .windows = 300}},
    };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, work, &workers[1]), 0);
    work(&workers[0]);
    pthread_join(thread, NULL);

    assert_int_equal(workers[0].result, RUEDA_OK);
    assert_int_equal(workers[1].result, RUEDA_OK);
}

/* ---- Running --------------------------------------------------------- */

static int open_pair(void **state)
{
    const struct fixture *fixture = *state;
    struct pair *pair = calloc(1, sizeof(*pair));

    if (pair == NULL)
        return -1;
    pair->fixture = fixture;
    fixture->open(pair);
    *state = pair;
    return 0;
}

static int close_pair(void **state)
{
    struct pair *pair = *state;

    pair->fixture->close(pair);
    free(pair);
    return 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

int conformance_run(const struct fixture *fixture)
{
    struct CMUnitTest tests[] = {
        CASE(an_idle_endpoint_is_in_progress),
        CASE(a_message_of_any_length_arrives),
        CASE(a_message_of_a_past_term_is_dropped),
        CASE(a_message_that_waits_is_dropped_when_a_term_begins),
        CASE(a_receive_may_come_after_its_send),
        CASE(five_mebibytes_go_both_ways_at_once),
        CASE(a_hundred_tags_are_received_in_another_order),
        CASE(four_long_messages_do_not_hold_up_each_other),
        CASE(messages_of_one_tag_come_in_order),
        CASE(done_counts_bytes_that_are_there_and_never_falls),
        CASE(a_length_that_differs_ends_the_receive_and_no_more),
        CASE(cancel_ends_everything_and_keeps_no_pointer),
        CASE(cancel_half_way_fails_both_ends),
        CASE(closing_fails_the_peer),
        CASE(what_was_sent_before_closing_arrives),
        CASE(a_rank_that_dies_fails_its_peer),
        CASE(two_threads_talk_at_random),
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tests[i].initial_state = (void *)fixture;
    return cmocka_run_group_tests_name(fixture->name, tests, NULL, NULL) +
           conformance_run_any(fixture);
}
