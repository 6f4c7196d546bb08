/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "conformance/conformance.h"
#include "transport/sim/sim.h"

struct job {
    struct rueda_sim *sim;
    struct rueda_mesh meshes[3];
};

/* Slow enough that a long message is in flight for a while. */
static void open_job(struct job *job, int size, uint64_t jitter_ns)
{
    const struct rueda_sim_wire wire = {
        .latency_ns = 2000, .jitter_ns = jitter_ns, .bytes_per_s = 1e9};
    const struct rueda_sim_net net = rueda_sim_net_flat(size, wire);
    const struct rueda_sim_settings settings = rueda_sim_settings_default(&net);
    struct rueda_text error = {""};

    assert_int_equal(rueda_sim_open(&settings, &job->sim, &error), RUEDA_OK);
    for (int i = 0; i < size; i++)
        assert_int_equal(rueda_mesh_init(&job->meshes[i], i, size,
                                         rueda_sim_connect, job->sim),
                         RUEDA_OK);
}

static void close_job(struct job *job)
{
    for (int i = 0; i < rueda_sim_size(job->sim); i++)
        rueda_mesh_fini(&job->meshes[i]);
    rueda_sim_close(job->sim);
}

/* The ends belong to the case, so the meshes are not told of them. */
static void open_pair(struct pair *pair, uint64_t jitter_ns)
{
    struct job *job = calloc(1, sizeof(*job));

    assert_non_null(job);
    open_job(job, 2, jitter_ns);
    assert_int_equal(rueda_sim_connect(&job->meshes[0], 1, &pair->a), RUEDA_OK);
    assert_int_equal(rueda_sim_connect(&job->meshes[1], 0, &pair->b), RUEDA_OK);
    assert_int_equal(pair->a->peer, 1);
    assert_int_equal(pair->b->peer, 0);
    pair->owner = job;
}

static void open_steady(struct pair *pair)
{
    open_pair(pair, 0);
}

/* Messages overtake each other. */
static void open_jittery(struct pair *pair)
{
    open_pair(pair, 100000);
}

static void close_pair(struct pair *pair)
{
    if (pair->a != NULL)
        rueda_ep_close(pair->a);
    if (pair->b != NULL)
        rueda_ep_close(pair->b);
    close_job(pair->owner);
    free(pair->owner);
}

static void vanish(struct pair *pair)
{
    struct job *job = pair->owner;
    const struct rueda_sim_fault death = {.kind = RUEDA_SIM_KILL, .rank = 1};

    assert_int_equal(rueda_sim_add_fault(job->sim, &death), RUEDA_OK);
}

static const struct fixture steady = {
    .name = "sim",
    .open = open_steady,
    .close = close_pair,
    .vanish = vanish,
};

static const struct fixture jittery = {
    .name = "sim with jitter",
    .open = open_jittery,
    .close = close_pair,
    .vanish = vanish,
};

/* ---- Meshes ----------------------------------------------------------- */

/* Lets time pass until the request has ended. */
static rueda_status wait_for(struct job *job, const struct rueda_req *req)
{
    int peer;

    for (int t = 0; t < 1000 && req->status == RUEDA_IN_PROGRESS; t++)
        for (int i = 0; i < 3; i++)
            rueda_mesh_progress(&job->meshes[i], &peer);
    return req->status;
}

static void ranks_find_each_other(void **state)
{
    struct job job;
    struct rueda_req sent[3];
    struct rueda_req received[3];
    int out[3] = {10, 11, 12};
    int in[3];

    (void)state;
    open_job(&job, 3, 0);
    for (int i = 0; i < 3; i++) {
        rueda_mesh_send(&job.meshes[i], (i + 1) % 3, tag_of(1), &out[i],
                        sizeof(int), &sent[i]);
        rueda_mesh_recv(&job.meshes[i], (i + 2) % 3, tag_of(1), &in[i],
                        sizeof(int), &received[i]);
    }

    for (int i = 0; i < 3; i++) {
        assert_int_equal(wait_for(&job, &sent[i]), RUEDA_OK);
        assert_int_equal(wait_for(&job, &received[i]), RUEDA_OK);
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
    open_job(&job, 3, 0);
    rueda_mesh_recv(&job.meshes[0], 2, tag_of(1), &byte, 1, &received[0]);
    rueda_sim_leave(job.sim, 2);
    rueda_mesh_recv(&job.meshes[1], 2, tag_of(1), &byte, 1, &received[1]);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(wait_for(&job, &received[i]), RUEDA_ERR_PEER_LOST);
        assert_int_equal(rueda_mesh_progress(&job.meshes[i], &peer),
                         RUEDA_ERR_PEER_LOST);
        assert_int_equal(peer, 2);
        assert_int_equal(rueda_sim_lost_peer(job.sim, i), 2);
    }
    assert_int_equal(rueda_sim_lost_peer(job.sim, 2), -1);
    close_job(&job);
}

static void a_mesh_that_was_closed_can_be_made_again(void **state)
{
    struct job job;
    struct rueda_req sent;
    struct rueda_req received;
    int out = 7;
    int in = 0;

    (void)state;
    open_job(&job, 3, 0);
    rueda_mesh_recv(&job.meshes[0], 1, tag_of(1), &in, sizeof(in), &received);
    for (int i = 0; i < 2; i++) {
        rueda_mesh_fini(&job.meshes[i]);
        assert_int_equal(
            rueda_mesh_init(&job.meshes[i], i, 3, rueda_sim_connect, job.sim),
            RUEDA_OK);
    }
    rueda_mesh_recv(&job.meshes[0], 1, tag_of(1), &in, sizeof(in), &received);
    rueda_mesh_send(&job.meshes[1], 0, tag_of(1), &out, sizeof(out), &sent);

    assert_int_equal(wait_for(&job, &received), RUEDA_OK);
    assert_int_equal(in, 7);
    close_job(&job);
}

int main(void)
{
    const struct CMUnitTest meshes[] = {
        cmocka_unit_test(ranks_find_each_other),
        cmocka_unit_test(who_connects_to_a_rank_that_left_finds_it_lost),
        cmocka_unit_test(a_mesh_that_was_closed_can_be_made_again),
    };

    return conformance_run(&steady) + conformance_run(&jittery) +
           cmocka_run_group_tests_name("sim meshes", meshes, NULL, NULL);
}
