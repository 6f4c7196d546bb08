/* SPDX-License-Identifier: Apache-2.0 */
/* Views of a mesh of four ranks, all in this thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "transport/loop/loop.h"

#define SIZE 4

struct job {
    struct rueda_loop_hub *hub;
    struct rueda_mesh mesh[SIZE];
    struct rueda_mesh view[SIZE];
};

static const struct rueda_tag tag = {1, 0, 7};

static void open_job(struct job *job)
{
    memset(job, 0, sizeof(*job));
    assert_int_equal(rueda_loop_hub_open(SIZE, &job->hub), RUEDA_OK);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(rueda_mesh_init(&job->mesh[i], i, SIZE,
                                         rueda_loop_connect, job->hub),
                         RUEDA_OK);
}

static void open_view(struct job *job, const int *ranks, int size)
{
    for (int i = 0; i < size; i++)
        assert_int_equal(rueda_mesh_init_view(&job->view[ranks[i]],
                                              &job->mesh[ranks[i]], ranks,
                                              size),
                         RUEDA_OK);
}

static void close_job(struct job *job)
{
    for (int i = 0; i < SIZE; i++) {
        rueda_mesh_fini(&job->view[i]);
        rueda_mesh_fini(&job->mesh[i]);
        rueda_loop_hub_release(job->hub);
    }
}

/* A number from one member of a mesh to another. */
static int pass(struct rueda_mesh *from, struct rueda_mesh *to, int number)
{
    struct rueda_req sent;
    struct rueda_req received;
    int peer = -1;
    int got = -1;

    rueda_mesh_send(from, to->rank, tag, &number, sizeof(number), &sent);
    rueda_mesh_recv(to, from->rank, tag, &got, sizeof(got), &received);
    assert_true(rueda_mesh_progress(from->parent != NULL ? from->parent : from,
                                    &peer) >= 0);
    assert_int_equal(sent.status, RUEDA_OK);
    assert_int_equal(received.status, RUEDA_OK);
    return got;
}

static void members_of_a_view_have_their_own_numbers(void **state)
{
    const int ranks[3] = {3, 0, 2};
    struct job job;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(job.view[ranks[i]].rank, i);
        assert_int_equal(job.view[ranks[i]].size, 3);
    }
    assert_int_equal(pass(&job.view[3], &job.view[2], 41), 41);
    assert_int_equal(pass(&job.view[0], &job.view[3], 42), 42);
    close_job(&job);
}

static void endpoints_are_the_parents_and_outlive_the_view(void **state)
{
    const int ranks[2] = {1, 3};
    struct job job;
    struct rueda_ep *ep;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 2);
    assert_int_equal(job.mesh[1].open_count, 0);
    assert_int_equal(pass(&job.view[1], &job.view[3], 1), 1);
    ep = job.mesh[1].eps[3];
    assert_non_null(ep);
    assert_int_equal(job.mesh[1].open_count, 1);
    assert_int_equal(pass(&job.mesh[1], &job.mesh[3], 2), 2);
    assert_ptr_equal(job.mesh[1].eps[3], ep);
    rueda_mesh_fini(&job.view[1]);
    rueda_mesh_fini(&job.view[3]);
    memset(job.view, 0, sizeof(job.view));
    assert_int_equal(pass(&job.mesh[3], &job.mesh[1], 3), 3);
    close_job(&job);
}

static void a_view_of_a_view_leads_to_the_same_ranks(void **state)
{
    const int ranks[3] = {3, 0, 2};
    const int some[2] = {2, 0}; /* ranks 2 and 3 */
    struct rueda_mesh inner[2];
    struct job job;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 3);
    assert_int_equal(rueda_mesh_init_view(&inner[0], &job.view[2], some, 2),
                     RUEDA_OK);
    assert_int_equal(rueda_mesh_init_view(&inner[1], &job.view[3], some, 2),
                     RUEDA_OK);
    assert_int_equal(inner[0].rank, 0);
    assert_int_equal(inner[1].rank, 1);
    assert_int_equal(pass(&inner[0], &inner[1], 5), 5);
    assert_int_equal(job.mesh[2].open_count, 1);
    assert_non_null(job.mesh[2].eps[3]);
    rueda_mesh_fini(&inner[0]);
    rueda_mesh_fini(&inner[1]);
    close_job(&job);
}

/* What is sent by way of the view first is received first, whichever way. */
static void under_one_tag_messages_keep_their_order(void **state)
{
    const int ranks[2] = {0, 1};
    const int out[2] = {10, 11};
    struct rueda_req sent[2];
    struct rueda_req received[2];
    int in[2] = {0, 0};
    struct job job;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 2);
    rueda_mesh_send(&job.view[0], 1, tag, &out[0], sizeof(int), &sent[0]);
    rueda_mesh_send(&job.mesh[0], 1, tag, &out[1], sizeof(int), &sent[1]);
    rueda_mesh_recv(&job.mesh[1], 0, tag, &in[0], sizeof(int), &received[0]);
    rueda_mesh_recv(&job.view[1], 0, tag, &in[1], sizeof(int), &received[1]);
    assert_memory_equal(in, out, sizeof(in));
    close_job(&job);
}

static void a_set_of_its_own_keeps_a_view_apart(void **state)
{
    const struct rueda_tag other = {1, 5, 7};
    const int ranks[2] = {0, 1};
    const int out[2] = {10, 11};
    struct rueda_req sent[2];
    struct rueda_req received[2];
    int in[2] = {0, 0};
    struct job job;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 2);
    rueda_mesh_send(&job.view[0], 1, other, &out[0], sizeof(int), &sent[0]);
    rueda_mesh_send(&job.mesh[0], 1, tag, &out[1], sizeof(int), &sent[1]);
    rueda_mesh_recv(&job.mesh[1], 0, tag, &in[1], sizeof(int), &received[1]);
    rueda_mesh_recv(&job.view[1], 0, other, &in[0], sizeof(int), &received[0]);
    assert_memory_equal(in, out, sizeof(in));
    close_job(&job);
}

static void cancelling_a_view_ends_what_its_members_have(void **state)
{
    const int ranks[2] = {2, 0};
    struct rueda_req near;
    struct rueda_req far;
    char byte;
    struct job job;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 2);
    rueda_mesh_recv(&job.view[0], 0, tag, &byte, 1, &near);
    rueda_mesh_recv(&job.mesh[0], 1, tag, &byte, 1, &far);
    rueda_mesh_cancel(&job.view[0], RUEDA_ERR_CANCELLED);
    assert_int_equal(near.status, RUEDA_ERR_CANCELLED);
    assert_int_equal(far.status, RUEDA_IN_PROGRESS);
    rueda_mesh_cancel(&job.mesh[0], RUEDA_ERR_CLOSED);
    assert_int_equal(far.status, RUEDA_ERR_CLOSED);
    close_job(&job);
}

/* A lost peer is seen by the parent, in its numbers. */
static void progress_is_the_parents(void **state)
{
    const int ranks[2] = {0, 3};
    struct rueda_req received;
    struct job job;
    char byte;
    int peer = -1;

    (void)state;
    open_job(&job);
    open_view(&job, ranks, 2);
    rueda_mesh_recv(&job.view[0], 1, tag, &byte, 1, &received);
    rueda_loop_hub_leave(job.hub, 3);
    assert_int_equal(rueda_mesh_progress(&job.view[0], &peer),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(peer, -1);
    assert_int_equal(rueda_mesh_progress(&job.mesh[0], &peer),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(peer, 3);
    assert_int_equal(received.status, RUEDA_ERR_PEER_LOST);
    close_job(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_a_view_have_their_own_numbers),
        cmocka_unit_test(endpoints_are_the_parents_and_outlive_the_view),
        cmocka_unit_test(a_view_of_a_view_leads_to_the_same_ranks),
        cmocka_unit_test(under_one_tag_messages_keep_their_order),
        cmocka_unit_test(a_set_of_its_own_keeps_a_view_apart),
        cmocka_unit_test(cancelling_a_view_ends_what_its_members_have),
        cmocka_unit_test(progress_is_the_parents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
