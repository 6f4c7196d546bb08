/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving from any peer, over every transport: rank 0 of a mesh has an
 * endpoint with each of three peers, which are pairs of the fixture.
 */
#include <stdlib.h>
#include <string.h>

#include "conformance/conformance.h"

enum {
    PEERS = 3,
    LONG = 300000,
};

#define DEADLINE_NS ((int64_t)20 * 1000 * 1000 * 1000)

struct star {
    struct pair pairs[PEERS];
    struct rueda_mesh mesh; /* of rank 0; ranks 1, 2, ... have the other ends */
};

/* The mesh closes its ends. */
static rueda_status take_end(struct rueda_mesh *mesh, int peer,
                             struct rueda_ep **out_ep)
{
    struct star *star = mesh->owner;
    struct pair *pair = &star->pairs[peer - 1];

    *out_ep = pair->a;
    pair->a = NULL;
    return *out_ep != NULL ? RUEDA_OK : RUEDA_ERR_CLOSED;
}

static int open_star(void **state)
{
    const struct fixture *fixture = *state;
    struct star *star = calloc(1, sizeof(*star));

    if (star == NULL ||
        rueda_mesh_init(&star->mesh, 0, PEERS + 1, take_end, star) != RUEDA_OK)
        return -1;
    rueda_mesh_begin_term(&star->mesh, 1);
    for (int i = 0; i < PEERS; i++) {
        star->pairs[i].fixture = fixture;
        fixture->open(&star->pairs[i]);
    }
    *state = star;
    return 0;
}

static int close_star(void **state)
{
    struct star *star = *state;

    rueda_mesh_fini(&star->mesh);
    for (int i = 0; i < PEERS; i++)
        star->pairs[i].fixture->close(&star->pairs[i]);
    free(star);
    return 0;
}

static void progress_all(struct star *star)
{
    int peer = -1;

    rueda_mesh_progress(&star->mesh, &peer);
    for (int i = 0; i < PEERS; i++)
        if (star->pairs[i].b != NULL)
            rueda_ep_progress(star->pairs[i].b);
}

/* Until a message of this tag is found, or seconds have passed. */
static rueda_status find(struct star *star, struct rueda_tag tag, int *out_peer,
                         size_t *out_len)
{
    const int64_t deadline = now_ns() + DEADLINE_NS;
    rueda_status status = rueda_mesh_find(&star->mesh, tag, out_peer, out_len);

    while (status == RUEDA_IN_PROGRESS && now_ns() < deadline) {
        progress_all(star);
        status = rueda_mesh_find(&star->mesh, tag, out_peer, out_len);
    }
    return status;
}

static rueda_status drive_star(struct star *star, const struct rueda_req *req)
{
    const int64_t deadline = now_ns() + DEADLINE_NS;

    while (req->status == RUEDA_IN_PROGRESS && now_ns() < deadline)
        progress_all(star);
    return req->status;
}

/* Some turns, in which what has been sent comes. */
static void let_come(struct star *star)
{
    for (int turn = 0; turn < 300; turn++)
        progress_all(star);
}

/* Until each peer has a message of this tag here, or seconds have passed. */
static void await_all(struct star *star, struct rueda_tag tag)
{
    const int64_t deadline = now_ns() + DEADLINE_NS;

    for (int peer = 1; peer <= PEERS; peer++) {
        size_t len;

        while (rueda_ep_peek(star->mesh.eps[peer], tag, &len) != RUEDA_OK &&
               now_ns() < deadline)
            progress_all(star);
    }
}

static void send_from(struct star *star, int peer, struct rueda_tag tag,
                      const void *buf, size_t len, struct rueda_req *req)
{
    rueda_ep_send(star->pairs[peer - 1].b, tag, buf, len, req);
}

/* ---- Cases -------------------------------------------------------------- */

static void a_message_is_found_with_its_sender_and_length(void **state)
{
    static const size_t lengths[PEERS] = {0, 5000, LONG};
    struct star *star = *state;
    unsigned char *out = malloc(LONG);
    unsigned char *in = malloc(LONG);

    assert_true(out != NULL && in != NULL);
    for (int from = PEERS; from > 0; from--) {
        const size_t len = lengths[from - 1];
        struct rueda_req sent;
        struct rueda_req received;
        size_t found = LONG + 1;
        int peer = -1;

        fill(out, len, (uint64_t)from);
        send_from(star, from, tag_of(7), out, len, &sent);
        assert_int_equal(find(star, tag_of(7), &peer, &found), RUEDA_OK);
        assert_int_equal(peer, from);
        assert_int_equal(found, len);
        rueda_mesh_recv(&star->mesh, peer, tag_of(7), in, found, &received);
        assert_int_equal(drive_star(star, &received), RUEDA_OK);
        assert_int_equal(drive_star(star, &sent), RUEDA_OK);
        assert_true(is_filled(in, len, (uint64_t)from));
    }
    free(in);
    free(out);
}

static void only_messages_of_its_tag_and_term_are_found(void **state)
{
    struct star *star = *state;
    struct rueda_tag later = tag_of(7);
    struct rueda_req sent[3];
    struct rueda_req received;
    int number = 5;
    size_t len = 0;
    int peer = -1;
    int in = 0;

    later.term = 2;
    send_from(star, 1, tag_of(6), &number, sizeof(int), &sent[0]);
    send_from(star, 1, later, &number, sizeof(int), &sent[1]);
    assert_int_equal(rueda_mesh_find(&star->mesh, tag_of(7), &peer, &len),
                     RUEDA_IN_PROGRESS);
    let_come(star);
    assert_int_equal(rueda_mesh_find(&star->mesh, tag_of(7), &peer, &len),
                     RUEDA_IN_PROGRESS);
    send_from(star, 2, tag_of(7), &number, sizeof(int), &sent[2]);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    assert_int_equal(peer, 2);
    assert_int_equal(find(star, tag_of(6), &peer, &len), RUEDA_OK);
    assert_int_equal(peer, 1);
    rueda_mesh_recv(&star->mesh, 1, tag_of(6), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    assert_int_equal(in, 5);
    rueda_mesh_recv(&star->mesh, 2, tag_of(7), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    rueda_mesh_begin_term(&star->mesh, 2);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    assert_int_equal(peer, 1);
    rueda_mesh_recv(&star->mesh, 1, tag_of(7), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(drive_star(star, &sent[i]), RUEDA_OK);
}

static void a_receive_that_names_the_sender_goes_first(void **state)
{
    struct star *star = *state;
    const int out[2] = {21, 22};
    struct rueda_req sent[2];
    struct rueda_req named;
    struct rueda_req any;
    size_t len = 0;
    int peer = -1;
    int in[2] = {0};

    rueda_mesh_recv(&star->mesh, 1, tag_of(7), &in[0], sizeof(int), &named);
    for (int i = 0; i < 2; i++)
        send_from(star, 1, tag_of(7), &out[i], sizeof(int), &sent[i]);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    rueda_mesh_recv(&star->mesh, peer, tag_of(7), &in[1], len, &any);
    assert_int_equal(drive_star(star, &any), RUEDA_OK);
    assert_int_equal(drive_star(star, &named), RUEDA_OK);
    assert_int_equal(in[0], 21);
    assert_int_equal(in[1], 22);
    for (int i = 0; i < 2; i++)
        assert_int_equal(drive_star(star, &sent[i]), RUEDA_OK);
}

/* Peer 1 has four messages there at any time, the others one. */
static void a_peer_with_many_messages_does_not_keep_out_others(void **state)
{
    enum {
        MANY = 4
    };
    struct star *star = *state;
    struct rueda_req sent[MANY + PEERS];
    int from[MANY + PEERS - 1];
    int numbers[MANY + PEERS];
    size_t len = 0;
    int count = 0;
    int last = -1;

    /* Makes the endpoints. */
    rueda_mesh_find(&star->mesh, tag_of(6), &last, &len);
    for (int i = 0; i < MANY; i++) {
        numbers[i] = 100 + i;
        send_from(star, 1, tag_of(7), &numbers[i], sizeof(int), &sent[count++]);
    }
    for (int peer = 2; peer <= PEERS; peer++) {
        numbers[count] = 0;
        send_from(star, peer, tag_of(7), &numbers[count], sizeof(int),
                  &sent[count]);
        count++;
    }
    await_all(star, tag_of(7));
    for (int i = 0; i < count; i++) {
        struct rueda_req received;
        int in = 0;

        assert_int_equal(find(star, tag_of(7), &from[i], &len), RUEDA_OK);
        rueda_mesh_recv(&star->mesh, from[i], tag_of(7), &in, len, &received);
        assert_int_equal(drive_star(star, &received), RUEDA_OK);
        if (from[i] == 1)
            assert_true(in > last); /* those of one peer are in order */
        if (from[i] == 1)
            last = in;
    }
    /* All others had their turn before peer 1 had its third. */
    for (int i = 0, first = 0; i < count; i++) {
        first += from[i] == 1;
        if (first >= 3)
            assert_true(i >= 2 + PEERS - 1);
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(drive_star(star, &sent[i]), RUEDA_OK);
}

static void a_lost_peer_is_told_and_the_others_are_heard(void **state)
{
    struct star *star = *state;
    const int64_t deadline = now_ns() + DEADLINE_NS;
    struct rueda_req sent;
    struct rueda_req received;
    int number = 9;
    size_t len = 0;
    int peer = -1;
    int in = 0;

    assert_int_equal(rueda_mesh_find(&star->mesh, tag_of(7), &peer, &len),
                     RUEDA_IN_PROGRESS);
    assert_false(rueda_mesh_is_lost(&star->mesh, 2));
    rueda_ep_close(star->pairs[1].b);
    star->pairs[1].b = NULL;
    while (!rueda_mesh_is_lost(&star->mesh, 2) && now_ns() < deadline) {
        progress_all(star);
        assert_int_equal(rueda_mesh_find(&star->mesh, tag_of(7), &peer, &len),
                         RUEDA_IN_PROGRESS);
    }
    assert_true(rueda_mesh_is_lost(&star->mesh, 2));
    assert_false(rueda_mesh_is_lost(&star->mesh, 1));
    send_from(star, 3, tag_of(7), &number, sizeof(number), &sent);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    assert_int_equal(peer, 3);
    rueda_mesh_recv(&star->mesh, 3, tag_of(7), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    assert_int_equal(drive_star(star, &sent), RUEDA_OK);
}

static void only_the_loss_of_all_peers_ends_it(void **state)
{
    struct star *star = *state;
    struct rueda_req sent;
    struct rueda_req received;
    int number = 9;
    size_t len = 0;
    int peer = -1;
    int in = 0;

    send_from(star, 2, tag_of(7), &number, sizeof(number), &sent);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    rueda_mesh_recv(&star->mesh, 2, tag_of(7), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    assert_int_equal(drive_star(star, &sent), RUEDA_OK);
    for (int i = 0; i < PEERS; i++) {
        rueda_ep_close(star->pairs[i].b);
        star->pairs[i].b = NULL;
    }
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_ERR_PEER_LOST);
    assert_int_equal(in, 9);
}

static void what_a_lost_peer_sent_before_is_found(void **state)
{
    struct star *star = *state;
    const int64_t deadline = now_ns() + DEADLINE_NS;
    struct rueda_req sent;
    struct rueda_req received;
    int number = 9;
    size_t len = 0;
    int peer = -1;
    int in = 0;

    /* A send ends before its receive is posted, or there is no such message. */
    send_from(star, 2, tag_of(7), &number, sizeof(number), &sent);
    let_come(star);
    if (sent.status != RUEDA_OK) {
        rueda_ep_cancel(star->pairs[1].b, RUEDA_ERR_CANCELLED);
        return;
    }
    rueda_ep_close(star->pairs[1].b);
    star->pairs[1].b = NULL;
    while (rueda_mesh_find(&star->mesh, tag_of(7), &peer, &len) != RUEDA_OK &&
           now_ns() < deadline)
        progress_all(star);
    let_come(star);
    assert_int_equal(peer, 2);
    rueda_mesh_recv(&star->mesh, 2, tag_of(7), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    assert_int_equal(in, 9);
}

static void cancel_leaves_a_message_that_was_found(void **state)
{
    struct star *star = *state;
    struct rueda_req sent;
    struct rueda_req received;
    int number = 9;
    size_t len = 0;
    int peer = -1;
    int in = 0;

    send_from(star, 1, tag_of(7), &number, sizeof(number), &sent);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    rueda_mesh_cancel(&star->mesh, RUEDA_ERR_CANCELLED);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    rueda_mesh_recv(&star->mesh, peer, tag_of(7), &in, len, &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    assert_int_equal(drive_star(star, &sent), RUEDA_OK);
    assert_int_equal(in, 9);
}

static void a_view_asks_its_own_members(void **state)
{
    const int ranks[2] = {0, 3};
    struct star *star = *state;
    struct rueda_req sent[2];
    struct rueda_req received;
    struct rueda_mesh view;
    int number = 9;
    size_t len = 0;
    int peer = -1;
    int in = 0;

    assert_int_equal(rueda_mesh_init_view(&view, &star->mesh, ranks, 2),
                     RUEDA_OK);
    send_from(star, 1, tag_of(7), &number, sizeof(number), &sent[0]);
    assert_int_equal(find(star, tag_of(7), &peer, &len), RUEDA_OK);
    assert_int_equal(rueda_mesh_find(&view, tag_of(7), &peer, &len),
                     RUEDA_IN_PROGRESS);
    send_from(star, 3, tag_of(7), &number, sizeof(number), &sent[1]);
    for (int turn = 0; turn < 1000000; turn++) {
        if (rueda_mesh_find(&view, tag_of(7), &peer, &len) == RUEDA_OK)
            break;
        progress_all(star);
    }
    assert_int_equal(peer, 1);
    rueda_mesh_recv(&view, 1, tag_of(7), &in, len, &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    rueda_mesh_fini(&view);
    rueda_mesh_recv(&star->mesh, 1, tag_of(7), &in, sizeof(in), &received);
    assert_int_equal(drive_star(star, &received), RUEDA_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(drive_star(star, &sent[i]), RUEDA_OK);
}

/* ---- Running ------------------------------------------------------------ */

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_star, close_star)

int conformance_run_any(const struct fixture *fixture)
{
    struct CMUnitTest tests[] = {
        CASE(a_message_is_found_with_its_sender_and_length),
        CASE(only_messages_of_its_tag_and_term_are_found),
        CASE(a_receive_that_names_the_sender_goes_first),
        CASE(a_peer_with_many_messages_does_not_keep_out_others),
        CASE(a_lost_peer_is_told_and_the_others_are_heard),
        CASE(only_the_loss_of_all_peers_ends_it),
        CASE(what_a_lost_peer_sent_before_is_found),
        CASE(cancel_leaves_a_message_that_was_found),
        CASE(a_view_asks_its_own_members),
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tests[i].initial_state = (void *)fixture;
    return cmocka_run_group_tests_name(fixture->name, tests, NULL, NULL);
}
