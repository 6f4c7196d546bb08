/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/conformance.h"
#include "transport/loop/loop.h"

static void open_loop(struct pair *pair)
{
    assert_int_equal(rueda_loop_pair(0, 1, &pair->a, &pair->b), RUEDA_OK);
    assert_int_equal(pair->a->peer, 1);
    assert_int_equal(pair->b->peer, 0);
}

static void close_loop(struct pair *pair)
{
    if (pair->a != NULL)
        rueda_ep_close(pair->a);
    if (pair->b != NULL)
        rueda_ep_close(pair->b);
}

static const struct fixture loop = {
    .name = "loop",
    .open = open_loop,
    .close = close_loop,
};

/* ---- Hub ------------------------------------------------------------- */

struct job {
    struct rueda_loop_hub *hub;
    struct rueda_mesh meshes[3];
};

static void open_job(struct job *job)
{
    *job = (struct job){.hub = NULL};
    assert_int_equal(rueda_loop_hub_open(3, &job->hub), RUEDA_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rueda_mesh_init(&job->meshes[i], i, 3,
                                         rueda_loop_connect, job->hub),
                         RUEDA_OK);
}

static void close_job(struct job *job)
{
    for (int i = 0; i < 3; i++) {
        rueda_mesh_fini(&job->meshes[i]);
        rueda_loop_hub_release(job->hub);
    }
}

static void the_ranks_of_a_hub_find_each_other(void **state)
{
    struct job job;
    struct rueda_req sent[3];
    struct rueda_req received[3];
    int out[3] = {10, 11, 12};
    int in[3];
    int peer;

    (void)state;
    open_job(&job);
    for (int i = 0; i < 3; i++) {
        rueda_mesh_send(&job.meshes[i], (i + 1) % 3, tag_of(1), &out[i],
                        sizeof(int), &sent[i]);
        rueda_mesh_recv(&job.meshes[i], (i + 2) % 3, tag_of(1), &in[i],
                        sizeof(int), &received[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_true(rueda_mesh_progress(&job.meshes[i], &peer) >= 0);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(sent[i].status, RUEDA_OK);
        assert_int_equal(received[i].status, RUEDA_OK);
        assert_int_equal(in[i], out[(i + 2) % 3]);
    }
    close_job(&job);
}

static void who_connects_to_a_rank_that_left_finds_it_lost(void **state)
{
    struct job job;
    struct rueda_req received[2];
    char byte;
    int peer = -1;

    (void)state;
    open_job(&job);
    rueda_mesh_recv(&job.meshes[0], 2, tag_of(1), &byte, 1, &received[0]);
    rueda_loop_hub_leave(job.hub, 2);
    rueda_mesh_recv(&job.meshes[1], 2, tag_of(1), &byte, 1, &received[1]);

    assert_int_equal(rueda_mesh_progress(&job.meshes[0], &peer),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(peer, 2);
    assert_int_equal(received[0].status, RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_mesh_progress(&job.meshes[1], &peer),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(received[1].status, RUEDA_ERR_PEER_LOST);
    close_job(&job);
}

/* Rank 1 is a term ahead of rank 0 for a while. */
static void a_mesh_writes_its_term_into_every_message(void **state)
{
    static const int both[] = {0, 1};
    struct rueda_mesh view;
    struct rueda_req sent[2];
    struct rueda_req received;
    struct job job;
    int out[2] = {10, 11};
    int in = 0;
    int peer;

    (void)state;
    open_job(&job);
    assert_int_equal(rueda_mesh_init_view(&view, &job.meshes[0], both, 2),
                     RUEDA_OK);
    rueda_mesh_begin_term(&job.meshes[0], 4);
    rueda_mesh_begin_term(&job.meshes[1], 5);
    rueda_mesh_recv(&job.meshes[1], 0, tag_of(1), &in, sizeof(in), &received);
    rueda_mesh_send(&job.meshes[0], 1, tag_of(1), &out[0], sizeof(int),
                    &sent[0]);
    rueda_mesh_progress(&job.meshes[1], &peer);
    assert_int_equal(received.status, RUEDA_IN_PROGRESS);
    assert_int_equal(rueda_mesh_dropped(&job.meshes[1]), 1);

    rueda_mesh_begin_term(&job.meshes[0], 5);
    rueda_mesh_send(&view, 1, tag_of(1), &out[1], sizeof(int), &sent[1]);
    rueda_mesh_progress(&job.meshes[1], &peer);
    assert_int_equal(received.status, RUEDA_OK);
    assert_int_equal(in, out[1]);
    assert_int_equal(rueda_mesh_dropped(&job.meshes[1]), 1);
    rueda_mesh_progress(&job.meshes[0], &peer);
    assert_int_equal(sent[0].status, RUEDA_OK);
    rueda_mesh_fini(&view);
    close_job(&job);
}

int main(void)
{
    const struct CMUnitTest hub[] = {
        cmocka_unit_test(a_mesh_writes_its_term_into_every_message),
        cmocka_unit_test(the_ranks_of_a_hub_find_each_other),
        cmocka_unit_test(who_connects_to_a_rank_that_left_finds_it_lost),
    };
    int failed = conformance_run(&loop);

    return failed + cmocka_run_group_tests_name("hub", hub, NULL, NULL);
}
