/* SPDX-License-Identifier: Apache-2.0 */
/* What the coordinator's caller says to those of all members, at one place of
 * the log, and what a timeline that begins there finds. */
#include <stdio.h>
#include <unistd.h>

#include "negotiate/state.h"
#include "support/json.h"
#include "transport/loop/loop.h"
#include "unit/unit.h"

#define RANKS 3

struct scene {
    struct rueda_loop_hub *hub;
    struct rueda_mesh meshes[RANKS];
    struct rueda_negotiator *members[RANKS];

    /* The words that each has heard, and what it had to carry out then. */
    uint64_t words[RANKS][4];
    uint64_t latest[RANKS][4];
    int counts[RANKS];
    struct hearer {
        struct scene *scene;
        int rank;
    } hearers[RANKS];
};

static int64_t no_time(void *arg)
{
    (void)arg;
    return 1;
}

static void hear(void *arg, uint64_t word)
{
    const struct hearer *hearer = arg;
    struct scene *scene = hearer->scene;
    const int rank = hearer->rank;

    assert_in_range(scene->counts[rank], 0, 3);
    scene->latest[rank][scene->counts[rank]] =
        rueda_negotiator_latest(scene->members[rank]);
    scene->words[rank][scene->counts[rank]++] = word;
}

static int open_scene(void **state)
{
    static const int ranks[RANKS] = {0, 1, 2};
    struct scene *scene = calloc(1, sizeof(*scene));

    assert_non_null(scene);
    assert_int_equal(rueda_loop_hub_open(RANKS, &scene->hub), RUEDA_OK);
    for (int i = 0; i < RANKS; i++) {
        const struct rueda_negotiator_args args = {
            .mesh = &scene->meshes[i],
            .tag = {1, 1, 0},
            .ranks = ranks,
            .cache_capacity = 4,
            .now_ns = no_time,
            .heard_word = hear,
            .cargo_arg = &scene->hearers[i],
        };

        scene->hearers[i] = (struct hearer){scene, i};
        assert_int_equal(rueda_mesh_init(&scene->meshes[i], i, RANKS,
                                         rueda_loop_connect, scene->hub),
                         RUEDA_OK);
        assert_int_equal(rueda_negotiator_new(&args, &scene->members[i]),
                         RUEDA_OK);
    }
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;

    for (int i = 0; i < RANKS; i++) {
        rueda_mesh_cancel(&scene->meshes[i], RUEDA_ERR_CANCELLED);
        rueda_negotiator_free(scene->members[i]);
        rueda_mesh_fini(&scene->meshes[i]);
        rueda_loop_hub_leave(scene->hub, i);
        rueda_loop_hub_release(scene->hub);
    }
    free(scene);
    return 0;
}

/* Until nobody gets on any more. */
static void drive(struct scene *scene)
{
    int still = 0;

    for (int i = 0; still < 2 * RANKS; i = (i + 1) % RANKS) {
        struct rueda_text error = {{0}};
        int peer;

        rueda_mesh_progress(&scene->meshes[i], &peer);
        still = rueda_negotiator_turn(scene->members[i], &error) == RUEDA_OK
                    ? 0
                    : still + 1;
    }
}

static const struct rueda_request tensor = {
    .device = RUEDA_DEVICE_HOST, .dims = 1, .shape = {2}, .name = "grad"};

static void submit(struct scene *scene, int rank)
{
    assert_int_equal(
        rueda_negotiator_submit(scene->members[rank], &tensor, (void *)&tensor),
        RUEDA_OK);
}

/* ---- Tests --------------------------------------------------------------- */

static void all_members_hear_words_in_the_order_of_the_log(void **state)
{
    struct scene *scene = *state;

    assert_int_equal(rueda_negotiator_tell(scene->members[0], 7), RUEDA_OK);
    for (int i = 0; i < RANKS; i++)
        submit(scene, i);
    drive(scene);
    assert_int_equal(rueda_negotiator_tell(scene->members[0], UINT64_MAX),
                     RUEDA_OK);
    drive(scene);

    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(scene->counts[i], 2);
        assert_true(scene->words[i][0] == 7);
        assert_true(scene->words[i][1] == UINT64_MAX);
        /* The first came before the decision, the second after it. */
        assert_true(scene->latest[i][0] == 0);
        assert_true(scene->latest[i][1] ==
                    rueda_negotiator_next(scene->members[i])->index);
        rueda_negotiator_done(scene->members[i]);
        assert_true(rueda_negotiator_latest(scene->members[i]) == 0);
    }
}

static void follow(struct scene *scene, const unsigned char *bytes, size_t len,
                   rueda_status wanted)
{
    struct rueda_in in = {.at = bytes, .end = bytes + len};

    assert_int_equal(rueda_log_follow(scene->members[1], &in), wanted);
}

static void a_word_that_is_cut_or_not_wanted_makes_no_sense(void **state)
{
    static const unsigned char word[9] = {RUEDA_DOWN_WORD, 1};
    struct scene *scene = *state;

    for (size_t len = 1; len < sizeof(word); len++)
        follow(scene, word, len, RUEDA_ERR_IO);
    assert_int_equal(scene->counts[1], 0);
    follow(scene, word, sizeof(word), RUEDA_OK);
    assert_int_equal(scene->counts[1], 1);
    scene->members[1]->args.heard_word = NULL;
    follow(scene, word, sizeof(word), RUEDA_ERR_IO);
}

/* It was handed over before, and is not decided yet. */
static void what_waits_begins_with_the_timeline(void **state)
{
    struct scene *scene = *state;
    char path[64];
    struct rueda_timeline_args args = {.ranks = RANKS, .path = path};
    struct rueda_timeline *timeline;
    struct rueda_text error = {{0}};
    char text[4096] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/rueda_word_%d.json", (int)getpid());
    submit(scene, 0);
    assert_int_equal(rueda_timeline_open(&args, &timeline, &error), RUEDA_OK);
    rueda_negotiator_trace(scene->members[0], timeline);
    submit(scene, 1);
    submit(scene, 2);
    drive(scene);
    rueda_negotiator_trace(scene->members[0], NULL);
    rueda_timeline_close(timeline);

    file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    unlink(path);
    assert_true(json_is_valid(text));
    assert_non_null(strstr(text, "\"B\", \"name\": \"NEGOTIATE_ALLREDUCE\""));
    assert_non_null(strstr(text, "\"B\", \"name\": \"QUEUE\""));
}

#define TEST(test)                                                             \
    cmocka_unit_test_setup_teardown(test, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_members_hear_words_in_the_order_of_the_log),
        TEST(a_word_that_is_cut_or_not_wanted_makes_no_sense),
        TEST(what_waits_begins_with_the_timeline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
