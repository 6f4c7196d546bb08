/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formations of ranks that are threads: from one term to the next. The test's
 * own thread takes the turns of all ranks.
 */
#include <string.h>

#include "engine/track.h"
#include "job/job.h"
#include "support/formation_slab.h"
#include "unit/unit.h"

#define RANKS  4
#define COUNT  1000
#define TURNS  100000
#define LETTER 0x5a

/* One rank: its job, and what runs on its formation. */
struct rank {
    struct rueda_job *job;
    struct rueda_track track;
    struct rueda_formation *next;
    char *memory; /* in the segment, from the first term on */
    float *values;
    struct rueda_slab slab;
};

struct scene {
    int size;
    struct rank rank[RANKS];
    struct rueda_select select;
};

static void open_track(struct scene *scene, struct rank *rank)
{
    struct rueda_formation *formation = rank->job->formation;
    const struct rueda_track_args args = {
        .job = rank->job,
        .select = &scene->select,
        .device = rueda_device_default("auto"),
        .mesh = &formation->mesh,
        .slab = formation_slab(formation, &rank->slab),
    };

    assert_int_equal(rueda_track_open(&rank->track, &args), RUEDA_OK);
}

static struct scene *scene_open(int size, rueda_config_transport transport)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct rueda_job *jobs[RANKS];
    struct rueda_text error = {{0}};
    struct rueda_config config;

    assert_non_null(scene);
    assert_int_equal(rueda_config_load(&config, &error), RUEDA_OK);
    config.transport = transport;
    assert_int_equal(rueda_job_open_threads(&config, size, jobs, &error),
                     RUEDA_OK);
    rueda_select_init(&scene->select);
    scene->size = size;
    for (int i = 0; i < size; i++) {
        struct rank *rank = &scene->rank[i];
        void *memory;

        rank->job = jobs[i];
        open_track(scene, rank);
        assert_int_equal(
            rueda_segment_alloc(rank->job->segment, 4096, &memory, &error),
            RUEDA_OK);
        rank->memory = memset(memory, LETTER + i, 4096);
        assert_int_equal(rueda_segment_alloc(rank->job->segment,
                                             COUNT * sizeof(float), &memory,
                                             &error),
                         RUEDA_OK);
        rank->values = memory;
    }
    return scene;
}

/* This rank is gone. */
static void leave(struct rank *rank)
{
    rueda_track_close(&rank->track);
    rueda_formation_release(rank->next);
    rueda_job_close(rank->job);
    memset(rank, 0, sizeof(*rank));
}

static void scene_close(struct scene *scene)
{
    for (int i = 0; i < scene->size; i++)
        if (scene->rank[i].job != NULL)
            leave(&scene->rank[i]);
    free(scene);
}

/* ---- Allreduces ---------------------------------------------------------- */

/* Each rank gives 1 for the first element, 2 for the second, ..., times one
 * more than its number. */
static rueda_status begin_sum(struct rank *rank)
{
    for (int i = 0; i < COUNT; i++)
        rank->values[i] = (float)((i + 1) * (rank->job->formation->rank + 1));
    rank->track.task.coll = (struct rueda_coll){
        .kind = RUEDA_ALLREDUCE,
        .arith = {.dtype = RUEDA_FLOAT32,
                  .reduction = RUEDA_SUM,
                  .prescale = 1,
                  .postscale = 1},
        .elem_bytes = sizeof(float),
        .send = rank->values,
        .recv = rank->values,
        .count = COUNT,
    };
    return rueda_track_start(&rank->track);
}

static rueda_status turn(struct rank *rank)
{
    int peer = -1;

    rueda_mesh_progress(&rank->job->formation->mesh, &peer);
    return rueda_track_progress(&rank->track);
}

/* They begin one after another; none can end before the last has begun. */
static void begin_all(struct scene *scene, int members,
                      rueda_status status[RANKS])
{
    int begun = 0;

    for (int i = 0; i < scene->size; i++) {
        struct rank *rank = &scene->rank[i];

        if (rank->job == NULL)
            continue;
        status[i] = begin_sum(rank);
        begun++;
        for (int turns = 0; turns < 20 && begun < members; turns++) {
            assert_int_equal(status[i], RUEDA_IN_PROGRESS);
            status[i] = turn(rank);
        }
    }
    assert_int_equal(begun, members);
}

/* All ranks that are left sum up in the term that is in force. */
static void expect_sum(struct scene *scene, int members)
{
    const int all = members * (members + 1) / 2;
    rueda_status status[RANKS];
    int running = members;

    begin_all(scene, members, status);
    for (int turns = 0; running > 0; turns++) {
        running = 0;
        assert_true(turns < TURNS);
        for (int i = 0; i < scene->size; i++) {
            if (scene->rank[i].job == NULL || status[i] != RUEDA_IN_PROGRESS)
                continue;
            status[i] = turn(&scene->rank[i]);
            running++;
        }
    }
    for (int i = 0; i < scene->size; i++) {
        const struct rank *rank = &scene->rank[i];

        if (rank->job == NULL)
            continue;
        assert_int_equal(status[i], RUEDA_OK);
        rueda_track_finish(&scene->rank[i].track, RUEDA_OK);
        for (int k = 0; k < COUNT; k++)
            assert_true(rank->values[k] == (float)((k + 1) * all));
        assert_int_equal((unsigned char)rank->memory[4095],
                         (unsigned char)(LETTER + i));
    }
}

/* One that cannot end, since a rank is gone. */
static void fail_sum(struct scene *scene)
{
    for (int i = 0; i < scene->size; i++)
        if (scene->rank[i].job != NULL)
            begin_sum(&scene->rank[i]);
    for (int turns = 0; turns < 20; turns++)
        for (int i = 0; i < scene->size; i++)
            if (scene->rank[i].job != NULL)
                assert_int_not_equal(turn(&scene->rank[i]), RUEDA_OK);
    for (int i = 0; i < scene->size; i++) {
        if (scene->rank[i].job == NULL)
            continue;
        rueda_mesh_cancel(&scene->rank[i].job->formation->mesh,
                          RUEDA_ERR_PEER_LOST);
        rueda_track_finish(&scene->rank[i].track, RUEDA_ERR_PEER_LOST);
    }
}

/* ---- Terms --------------------------------------------------------------- */

static void begin_next(struct rank *rank, const int *survivors, int count)
{
    struct rueda_formation *old =
        rank->next != NULL ? rank->next : rank->job->formation;
    struct rueda_formation *next = NULL;
    struct rueda_text error = {{0}};

    assert_int_equal(
        rueda_formation_begin_next(old, survivors, count, &next, &error),
        RUEDA_OK);
    rueda_formation_release(rank->next);
    rank->next = next;
}

static rueda_status meet(struct rank *rank)
{
    struct rueda_text error = {{0}};
    const rueda_status status = rueda_formation_meet(rank->next, &error);

    assert_int_equal(rueda_text_is_empty(&error), status >= 0);
    return status;
}

/* The next formation is in force. */
static void follow(struct scene *scene, struct rank *rank)
{
    rueda_track_close(&rank->track);
    rueda_job_follow(rank->job, rank->next);
    rank->next = NULL;
    open_track(scene, rank);
}

/* No rank is missed in it. */
static void expect_complete(const struct rank *rank, uint32_t term, int size)
{
    const struct rueda_formation *formation = rank->job->formation;
    struct rueda_text words = {{0}};

    assert_int_equal(formation->term, term);
    assert_int_equal(formation->mesh.term, term);
    assert_int_equal(formation->size, size);
    assert_int_equal(formation->row.local_size, size);
    assert_ptr_equal(formation->segment, rank->job->segment);
    assert_false(rueda_segment_has_gone(formation->segment, true));
    assert_int_equal(rueda_segment_first_gone(formation->segment, &words), -1);
}

/* All that are left go on without the one that has gone, as the survivors. */
static void go_on(struct scene *scene, const int *survivors, int count)
{
    struct rank *last = NULL;

    for (int i = 0; i < scene->size; i++) {
        struct rank *rank = &scene->rank[i];

        if (rank->job == NULL)
            continue;
        if (last != NULL)
            assert_int_equal(meet(last), RUEDA_IN_PROGRESS);
        begin_next(rank, survivors, count);
        last = rank;
    }
    for (int i = 0; i < scene->size; i++) {
        if (scene->rank[i].job == NULL)
            continue;
        assert_int_equal(meet(&scene->rank[i]), RUEDA_OK);
        follow(scene, &scene->rank[i]);
    }
}

static void two_of_three(rueda_config_transport transport, int victim)
{
    struct scene *scene = scene_open(3, transport);
    int survivors[2];
    int count = 0;

    for (int i = 0; i < 3; i++)
        if (i != victim)
            survivors[count++] = i;
    expect_sum(scene, 3);
    leave(&scene->rank[victim]);
    fail_sum(scene);
    go_on(scene, survivors, 2);
    for (int i = 0; i < 3; i++)
        if (i != victim)
            expect_complete(&scene->rank[i], 2, 2);
    for (int i = 0; i < 3; i++)
        expect_sum(scene, 2);
    scene_close(scene);
}

static void two_of_three_go_on(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim++) {
        two_of_three(RUEDA_TRANSPORT_AUTO, victim);
        two_of_three(RUEDA_TRANSPORT_LOOP, victim);
        two_of_three(RUEDA_TRANSPORT_SHM, victim);
    }
}

static void ranks_go_one_after_another(void **state)
{
    static const int first[] = {1, 2, 3};
    static const int second[] = {0, 2};
    struct scene *scene = scene_open(4, RUEDA_TRANSPORT_AUTO);

    (void)state;
    leave(&scene->rank[0]);
    go_on(scene, first, 3); /* rank 3 is number 0 now */
    assert_int_equal(scene->rank[3].job->formation->rank, 0);
    expect_sum(scene, 3);
    leave(&scene->rank[1]);
    fail_sum(scene);
    go_on(scene, second, 2);
    assert_int_equal(scene->rank[3].job->formation->rank, 0);
    assert_int_equal(scene->rank[2].job->formation->rank, 1);
    expect_complete(&scene->rank[2], 3, 2);
    expect_sum(scene, 2);
    scene_close(scene);
}

/* A message of term 1 that was not received there. */
static void old_messages_stay_behind(rueda_config_transport transport)
{
    static const int both[] = {0, 1};
    const struct rueda_tag tag = {.set = 7, .sequence = 3};
    struct scene *scene = scene_open(3, transport);
    struct rueda_mesh *from = &scene->rank[1].job->formation->mesh;
    const int old = 1;
    const int new = 2;
    struct rueda_req sent;
    struct rueda_req received;
    int peer = -1;
    int got = 0;

    rueda_mesh_send(from, 0, tag, &old, sizeof(old), &sent);
    rueda_mesh_progress(from, &peer);
    leave(&scene->rank[2]);
    rueda_mesh_cancel(from, RUEDA_ERR_PEER_LOST);
    go_on(scene, both, 2);
    rueda_mesh_recv(&scene->rank[0].job->formation->mesh, 1, tag, &got,
                    sizeof(got), &received);
    rueda_mesh_progress(&scene->rank[0].job->formation->mesh, &peer);
    assert_int_equal(received.status, RUEDA_IN_PROGRESS);
    rueda_mesh_send(&scene->rank[1].job->formation->mesh, 0, tag, &new,
                    sizeof(new), &sent);
    rueda_mesh_progress(&scene->rank[0].job->formation->mesh, &peer);
    assert_int_equal(received.status, RUEDA_OK);
    assert_int_equal(got, new);
    expect_sum(scene, 2);
    scene_close(scene);
}

static void messages_of_an_old_term_stay_behind(void **state)
{
    (void)state;
    old_messages_stay_behind(RUEDA_TRANSPORT_LOOP);
    old_messages_stay_behind(RUEDA_TRANSPORT_SHM);
}

static void a_formation_lives_as_long_as_it_is_held(void **state)
{
    static const int both[] = {0, 1};
    struct scene *scene = scene_open(3, RUEDA_TRANSPORT_AUTO);
    struct rueda_formation *old = scene->rank[0].job->formation;
    struct rueda_req req;
    char byte = 0;

    (void)state;
    rueda_formation_hold(old);
    leave(&scene->rank[2]);
    go_on(scene, both, 2);
    assert_ptr_not_equal(scene->rank[0].job->formation, old);
    assert_int_equal(old->term, 1);
    assert_int_equal(old->size, 3);
    /* Results that it still has can be read. */
    assert_true(rueda_segment_holds(
        old->segment, rueda_segment_at(old->segment, old->slab_offset), 1));
    /* It sends nothing. */
    rueda_mesh_send(&old->mesh, 1, (struct rueda_tag){1, 0, 0}, &byte, 1, &req);
    assert_int_equal(req.status, RUEDA_ERR_CLOSED);
    rueda_formation_release(old);
    expect_sum(scene, 2);
    scene_close(scene);
}

/* ---- What goes wrong ----------------------------------------------------- */

static void a_rank_lost_before_the_term_begins_fails_it(void **state)
{
    static const int three[] = {0, 1, 2};
    static const int two[] = {0, 2};
    struct scene *scene = scene_open(4, RUEDA_TRANSPORT_AUTO);

    (void)state;
    leave(&scene->rank[3]);
    begin_next(&scene->rank[0], three, 3);
    begin_next(&scene->rank[2], three, 3);
    assert_int_equal(meet(&scene->rank[0]), RUEDA_IN_PROGRESS);
    leave(&scene->rank[1]);
    assert_int_equal(meet(&scene->rank[0]), RUEDA_ERR_PEER_LOST);
    begin_next(&scene->rank[0], two, 2);
    /* It has missed that. */
    assert_int_equal(meet(&scene->rank[2]), RUEDA_ERR_CANCELLED);
    begin_next(&scene->rank[2], two, 2);
    assert_int_equal(meet(&scene->rank[0]), RUEDA_OK);
    assert_int_equal(meet(&scene->rank[2]), RUEDA_OK);
    follow(scene, &scene->rank[0]);
    follow(scene, &scene->rank[2]);
    expect_complete(&scene->rank[2], 3, 2);
    assert_int_equal(scene->rank[2].job->formation->rank, 1);
    expect_sum(scene, 2);
    scene_close(scene);
}

static void members_must_be_the_same_on_all_ranks(void **state)
{
    static const int some[] = {0, 1};
    static const int others[] = {0, 1, 2};
    struct scene *scene = scene_open(3, RUEDA_TRANSPORT_AUTO);

    (void)state;
    begin_next(&scene->rank[0], some, 2);
    begin_next(&scene->rank[1], others, 3);
    assert_int_equal(meet(&scene->rank[0]), RUEDA_ERR_MISMATCH);
    assert_int_equal(meet(&scene->rank[1]), RUEDA_ERR_MISMATCH);
    scene_close(scene);
}

static void expect_refusal(struct rank *rank, const int *survivors, int count,
                           rueda_status wanted)
{
    struct rueda_formation *next = NULL;
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_formation_begin_next(rank->job->formation, survivors,
                                                count, &next, &error),
                     wanted);
    assert_null(next);
    assert_false(rueda_text_is_empty(&error));
}

static void who_cannot_survive_is_refused(void **state)
{
    struct scene *scene = scene_open(3, RUEDA_TRANSPORT_AUTO);

    (void)state;
    expect_refusal(&scene->rank[2], (int[]){0, 1}, 2, RUEDA_ERR_INVALID);
    expect_refusal(&scene->rank[0], (int[]){1, 0}, 2, RUEDA_ERR_INVALID);
    expect_refusal(&scene->rank[0], (int[]){0, 3}, 2, RUEDA_ERR_INVALID);
    expect_refusal(&scene->rank[0], (int[]){0, 0}, 2, RUEDA_ERR_INVALID);
    /* The term that is in force goes on. */
    expect_sum(scene, 3);
    scene_close(scene);
}

static void ranks_by_tcp_are_refused(void **state)
{
    struct scene *scene = scene_open(2, RUEDA_TRANSPORT_AUTO);
    struct rueda_job *job = scene->rank[0].job;
    struct rueda_hub network;

    (void)state;
    job->network = &network;
    expect_refusal(&scene->rank[0], (int[]){0}, 1, RUEDA_ERR_UNSUPPORTED);
    job->network = NULL;
    scene_close(scene);
}

/* ---- Numbers ------------------------------------------------------------- */

static void expect_numbers(const int *survivors, const int *wanted, int count)
{
    int out[8];

    rueda_formation_number(survivors, count, out);
    assert_memory_equal(out, wanted, (size_t)count * sizeof(int));
}

static void survivors_keep_their_numbers_if_they_can(void **state)
{
    (void)state;
    expect_numbers((int[]){0, 1}, (int[]){0, 1}, 2);
    expect_numbers((int[]){1, 2}, (int[]){2, 1}, 2);
    expect_numbers((int[]){5}, (int[]){5}, 1);
    expect_numbers((int[]){0, 2, 3, 6, 7}, (int[]){0, 6, 2, 3, 7}, 5);
    expect_numbers((int[]){4, 5, 6}, (int[]){4, 5, 6}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_of_three_go_on),
        cmocka_unit_test(ranks_go_one_after_another),
        cmocka_unit_test(messages_of_an_old_term_stay_behind),
        cmocka_unit_test(a_formation_lives_as_long_as_it_is_held),
        cmocka_unit_test(a_rank_lost_before_the_term_begins_fails_it),
        cmocka_unit_test(members_must_be_the_same_on_all_ranks),
        cmocka_unit_test(who_cannot_survive_is_refused),
        cmocka_unit_test(ranks_by_tcp_are_refused),
        cmocka_unit_test(survivors_keep_their_numbers_if_they_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
