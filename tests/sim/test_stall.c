/* SPDX-License-Identifier: Apache-2.0 */
/* Who is missing, found out through the tree, on a clock of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "negotiate/negotiator.h"
#include "transport/sim/sim.h"

#define SECOND  ((int64_t)1000000000)
#define HOSTS   3
#define LOCALS  4
#define RANKS   (HOSTS * LOCALS)
#define TENSORS 9

struct scene {
    struct rueda_sim *sim;
    struct rueda_mesh mesh[RANKS];
    struct rueda_negotiator *members[RANKS];
    int ranks[RANKS];
    int hosts[RANKS];
    struct rueda_request requests[TENSORS];
    char names[TENSORS][100];
    int64_t now_ns;
    rueda_status failure;
    struct rueda_text error;
    char warnings[16384];
    int warning_count;
};

/* Of the next scene. */
static int64_t repeat_ns;

static int64_t now(void *arg)
{
    return ((struct scene *)arg)->now_ns;
}

static void keep_warning(void *arg, rueda_log_level level, const char *line)
{
    struct scene *scene = arg;
    size_t used = strlen(scene->warnings);

    if (level != RUEDA_LOG_WARN)
        return;
    scene->warning_count++;
    snprintf(scene->warnings + used, sizeof(scene->warnings) - used, "%s\n",
             line);
}

static void open_scene(struct scene *scene, int64_t warn_ns, int64_t end_ns)
{
    const struct rueda_sim_wire wire = {.latency_ns = 1000, .bytes_per_s = 1e9};
    struct rueda_sim_net net = rueda_sim_net_flat(HOSTS, wire);
    struct rueda_sim_settings settings;
    struct rueda_negotiator_args args = {
        .tag = {1, 1, 0},
        .ranks = scene->ranks,
        .hosts = scene->hosts,
        .cache_capacity = 16,
        .fusion_bytes = 1000,
        .stall_warn_ns = warn_ns,
        .stall_end_ns = end_ns,
        .stall_repeat_ns = repeat_ns,
        .now_ns = now,
        .now_arg = scene,
    };

    memset(scene, 0, sizeof(*scene));
    net.ranks_per_host = LOCALS;
    settings = rueda_sim_settings_default(&net);
    assert_int_equal(rueda_sim_open(&settings, &scene->sim, &scene->error),
                     RUEDA_OK);
    for (int i = 0; i < RANKS; i++) {
        scene->ranks[i] = i;
        scene->hosts[i] = i / LOCALS;
    }
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(rueda_mesh_init(&scene->mesh[i], i, RANKS,
                                         rueda_sim_connect, scene->sim),
                         RUEDA_OK);
        args.mesh = &scene->mesh[i];
        assert_int_equal(rueda_negotiator_new(&args, &scene->members[i]),
                         RUEDA_OK);
    }
    for (int i = 0; i < TENSORS; i++) {
        snprintf(scene->names[i], sizeof(scene->names[i]), "grad.%d", i);
        scene->requests[i] = (struct rueda_request){
            .device = RUEDA_DEVICE_HOST, .dims = 1, .shape = {2}};
        scene->requests[i].name = scene->names[i];
    }
    rueda_log_set_sink(keep_warning, scene);
}

static void close_scene(struct scene *scene)
{
    rueda_log_set_sink(NULL, NULL);
    for (int i = 0; i < RANKS; i++) {
        rueda_mesh_cancel(&scene->mesh[i], RUEDA_ERR_CANCELLED);
        rueda_negotiator_free(scene->members[i]);
    }
    for (int i = 0; i < RANKS; i++)
        rueda_mesh_fini(&scene->mesh[i]);
    rueda_sim_close(scene->sim);
}

/* Let everything happen that can. */
static void settle(struct scene *scene)
{
    for (int quiet = 0; quiet < 50; quiet++) {
        for (int i = 0; i < RANKS; i++) {
            rueda_status status =
                rueda_negotiator_turn(scene->members[i], &scene->error);
            int peer;

            if (status < 0)
                scene->failure = status;
            if (status == RUEDA_OK ||
                rueda_mesh_progress(&scene->mesh[i], &peer) == RUEDA_OK)
                quiet = 0;
            while (rueda_negotiator_next(scene->members[i]) != NULL)
                rueda_negotiator_done(scene->members[i]);
        }
    }
}

static void wait_seconds(struct scene *scene, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        scene->now_ns += SECOND;
        settle(scene);
    }
}

static void submit(struct scene *scene, int rank, int tensor)
{
    struct rueda_request *request = &scene->requests[tensor];

    assert_int_equal(
        rueda_negotiator_submit(scene->members[rank], request, request),
        RUEDA_OK);
}

static void test_warning_names_ranks_and_tensors(void **state)
{
    static struct scene scene;

    (void)state;
    open_scene(&scene, 10 * SECOND, 0);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 6)
            submit(&scene, rank, 0); /* a rank behind another leader lacks */
    submit(&scene, 11, 1);           /* the last one has, and no other */
    wait_seconds(&scene, 9);
    assert_int_equal(scene.warning_count, 0);
    wait_seconds(&scene, 6);
    assert_int_equal(scene.warning_count, 1);
    assert_non_null(strstr(scene.warnings, "Missing ranks:\n0: [grad.1]"));
    assert_non_null(strstr(scene.warnings, "\n6: [grad.0, grad.1]"));
    assert_null(strstr(scene.warnings, "\n11: "));
    assert_non_null(strstr(scene.warnings, "\n10: [grad.1]"));

    /* It comes again as long as it is so, and ends when it is not. */
    wait_seconds(&scene, 13);
    assert_int_equal(scene.warning_count, 2);
    submit(&scene, 6, 0);
    for (int rank = 0; rank < RANKS - 1; rank++)
        submit(&scene, rank, 1);
    wait_seconds(&scene, 30);
    assert_int_equal(scene.warning_count, 2);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(rueda_negotiator_pending(scene.members[rank]), 0);
    close_scene(&scene);
}

static void test_long_lists_are_cut(void **state)
{
    static struct scene scene;

    (void)state;
    open_scene(&scene, 10 * SECOND, 0);
    for (int i = 0; i < TENSORS; i++)
        submit(&scene, 0, i);
    wait_seconds(&scene, 15);
    assert_int_equal(scene.warning_count, 1);
    assert_non_null(strstr(scene.warnings, "grad.5 ...]"));
    assert_null(strstr(scene.warnings, "grad.6"));
    close_scene(&scene);
}

/* Names as long as models have them, of all ranks but one. */
static void test_every_missing_rank_is_named(void **state)
{
    static struct scene scene;
    char words[16];

    (void)state;
    open_scene(&scene, 10 * SECOND, 20 * SECOND);
    for (int i = 0; i < TENSORS; i++) {
        memset(scene.names[i], 'a' + i, 90);
        submit(&scene, 0, i);
    }
    wait_seconds(&scene, 15);
    assert_int_equal(scene.warning_count, 1);
    for (int rank = 1; rank < RANKS; rank++) {
        snprintf(words, sizeof(words), "\n%d: [aaa", rank);
        assert_non_null(strstr(scene.warnings, words));
    }
    wait_seconds(&scene, 12);
    assert_int_equal(scene.failure, RUEDA_ERR_STALLED);
    assert_non_null(strstr(scene.error.chars, ": 1 2 3 4 5 6 7 8 9 10 11"));
    assert_non_null(strstr(scene.warnings, "\n11!: [aaa"));
    close_scene(&scene);
}

/* Rank 5 before anything was waited for, and its leader has nothing to tell;
 * rank 10 after its leader has told that it is missing. */
static void test_who_has_joined_is_not_missed(void **state)
{
    static struct rueda_request join = {.kind = RUEDA_JOIN};
    static struct scene scene;

    (void)state;
    open_scene(&scene, 10 * SECOND, 0);
    assert_int_equal(rueda_negotiator_submit(scene.members[5], &join, &join),
                     RUEDA_OK);
    settle(&scene);
    submit(&scene, 0, 0);
    submit(&scene, 9, 0);
    wait_seconds(&scene, 14);
    assert_int_equal(scene.warning_count, 0);
    assert_int_equal(rueda_negotiator_submit(scene.members[10], &join, &join),
                     RUEDA_OK);
    settle(&scene);
    wait_seconds(&scene, 1);
    assert_int_equal(scene.warning_count, 1);
    assert_non_null(strstr(scene.warnings, "\n4: [grad.0]\n6: [grad.0]"));
    assert_non_null(strstr(scene.warnings, "\n8: [grad.0]\n11: [grad.0]"));
    close_scene(&scene);
}

static void test_too_long_ends_the_job(void **state)
{
    static struct scene scene;

    (void)state;
    open_scene(&scene, 10 * SECOND, 20 * SECOND);
    for (int rank = 1; rank < RANKS; rank++)
        submit(&scene, rank, 3);
    wait_seconds(&scene, 15);
    assert_int_equal(scene.failure, RUEDA_OK);
    wait_seconds(&scene, 12);
    assert_int_equal(scene.failure, RUEDA_ERR_STALLED);
    assert_non_null(strstr(scene.error.chars, ": 0!: [grad.3]"));
    close_scene(&scene);
}

static void test_it_ends_without_a_warning_where_none_is_wanted(void **state)
{
    static struct scene scene;

    (void)state;
    open_scene(&scene, 0, 20 * SECOND);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 6)
            submit(&scene, rank, 3);
    wait_seconds(&scene, 19);
    assert_int_equal(scene.failure, RUEDA_OK);
    wait_seconds(&scene, 12);
    assert_int_equal(scene.failure, RUEDA_ERR_STALLED);
    assert_non_null(strstr(scene.error.chars, "Missing ranks: 6!: [grad.3]"));
    assert_int_equal(scene.warning_count, 0);
    close_scene(&scene);
}

/* Also where the coordinator has none, and hears of it through the tree. */
static void test_one_without_a_name_is_told_by_its_kind(void **state)
{
    static struct scene scene;

    (void)state;
    open_scene(&scene, 10 * SECOND, 0);
    scene.requests[2].name = NULL;
    scene.requests[2].kind = RUEDA_ALLGATHER;
    submit(&scene, 6, 2);
    wait_seconds(&scene, 15);
    assert_non_null(
        strstr(scene.warnings, "\n4: [allgather number 0 without a name]"));
    close_scene(&scene);
}

static void test_a_warning_comes_again_after_its_own_time(void **state)
{
    static struct scene scene;

    (void)state;
    repeat_ns = 100 * SECOND;
    open_scene(&scene, 10 * SECOND, 0);
    repeat_ns = 0;
    submit(&scene, 1, 0);
    wait_seconds(&scene, 60);
    assert_int_equal(scene.warning_count, 1);
    /* Another one is told of without delay. */
    submit(&scene, 1, 1);
    wait_seconds(&scene, 20);
    assert_int_equal(scene.warning_count, 2);
    wait_seconds(&scene, 130);
    assert_int_equal(scene.warning_count, 3);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_without_a_name_is_told_by_its_kind),
        cmocka_unit_test(test_a_warning_comes_again_after_its_own_time),
        cmocka_unit_test(test_warning_names_ranks_and_tensors),
        cmocka_unit_test(test_every_missing_rank_is_named),
        cmocka_unit_test(test_long_lists_are_cut),
        cmocka_unit_test(test_who_has_joined_is_not_missed),
        cmocka_unit_test(test_too_long_ends_the_job),
        cmocka_unit_test(test_it_ends_without_a_warning_where_none_is_wanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
