/* SPDX-License-Identifier: Apache-2.0 */
/* Votes about the next term, of ranks that are threads; the test's own thread
 * writes for all of them. */
#include "job/job.h"
#include "job/vote.h"
#include "unit/unit.h"

#define RANKS 4

struct scene {
    struct rueda_job *jobs[RANKS];
};

static struct rueda_formation *of(struct scene *scene, int rank)
{
    return scene->jobs[rank]->formation;
}

static int open_scene(void **state)
{
    static struct scene scene;
    struct rueda_text error = {{0}};
    struct rueda_config config;

    assert_int_equal(rueda_config_load(&config, &error), RUEDA_OK);
    assert_int_equal(rueda_job_open_threads(&config, RANKS, scene.jobs, &error),
                     RUEDA_OK);
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;

    for (int i = 0; i < RANKS; i++)
        rueda_job_close(scene->jobs[i]);
    return 0;
}

/* As each of the others sees it. */
static void kill_rank(struct scene *scene, int victim)
{
    for (int i = 0; i < RANKS; i++)
        scene->jobs[i]->segment->dead[victim] = i != victim;
}

static void freeze(struct scene *scene, int rank, uint64_t boundaries)
{
    rueda_vote_freeze(scene->jobs[rank]->segment, of(scene, rank)->term + 1,
                      boundaries);
}

static void a_step_is_carried_when_all_members_have_it(void **state)
{
    struct scene *scene = *state;

    for (int i = 0; i < RANKS; i++) {
        assert_false(rueda_vote_is_carried(of(scene, 0), 1, 1));
        rueda_vote_publish(of(scene, i), 1, 1);
    }
    assert_true(rueda_vote_is_carried(of(scene, 0), 1, 1));
    assert_false(rueda_vote_is_carried(of(scene, 0), 0, 1));
    /* What was in an old term says nothing about a later one. */
    of(scene, 0)->term++;
    assert_false(rueda_vote_is_carried(of(scene, 0), 1, 1));
    of(scene, 0)->term--;
}

static void all_read_the_first_proposal(void **state)
{
    struct scene *scene = *state;
    struct rueda_verdict verdict;
    int awaited = -1;

    for (int i = 0; i < RANKS; i++)
        rueda_vote_publish(of(scene, i), 0, 10 + (uint64_t)i);
    kill_rank(scene, 0);
    freeze(scene, 1, 5);
    freeze(scene, 2, 6);
    assert_true(rueda_vote_is_called(of(scene, 3)));
    assert_int_equal(rueda_vote_decide(of(scene, 1), &verdict, &awaited),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(awaited, 3);
    freeze(scene, 3, 5);
    assert_int_equal(rueda_vote_decide(of(scene, 1), &verdict, &awaited),
                     RUEDA_OK);
    /* One more goes, too late to be left out. */
    kill_rank(scene, 2);
    assert_int_equal(rueda_vote_decide(of(scene, 3), &verdict, &awaited),
                     RUEDA_OK);
    assert_int_equal(verdict.count, 3);
    for (int i = 0; i < verdict.count; i++)
        assert_int_equal(verdict.survivors[i], i + 1);
    assert_int_equal(verdict.limits[0], 11);
    assert_int_equal(verdict.limits[1], 0);
    assert_int_equal(verdict.last_boundary, 6);
}

static void a_member_that_has_failed_ends_the_vote(void **state)
{
    struct scene *scene = *state;
    struct rueda_verdict verdict;
    int awaited = -1;

    kill_rank(scene, 0);
    freeze(scene, 1, 1);
    rueda_segment_fail(scene->jobs[2]->segment, "the disk is full");
    assert_int_equal(rueda_vote_decide(of(scene, 1), &verdict, &awaited),
                     RUEDA_ERR_PEER_LOST);
}

#define TEST(test)                                                             \
    cmocka_unit_test_setup_teardown(test, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_carried_when_all_members_have_it),
        TEST(all_read_the_first_proposal),
        TEST(a_member_that_has_failed_ends_the_vote),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
