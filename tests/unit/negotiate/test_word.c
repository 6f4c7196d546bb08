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

struct fixture {
    struct rueda_loop_hub *hub;
    struct rueda_mesh meshes[RANKS];
    struct rueda_negotiator *members[RANKS];

    /* The words that each has heard, and what it had to carry out then. */
    uint64_t words[RANKS][4];
    uint64_t latest[RANKS][4];
    int counts[RANKS];
    struct hearer {
        struct fixture *fixture;
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
    struct fixture *fixture = hearer->fixture;
    const int rank = hearer->rank;

    assert_in_range(fixture->counts[rank], 0, 3);
    fixture->latest[rank][fixture->counts[rank]] =
        rueda_negotiator_latest(fixture->members[rank]);
    fixture->words[rank][fixture->counts[rank]++] = word;
}

static int open_fixture(void **state)
{
    static const int ranks[RANKS] = {0, 1, 2};
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    assert_int_equal(rueda_loop_hub_open(RANKS, &fixture->hub), RUEDA_OK);
    for (int i = 0; i < RANKS; i++) {
        const struct rueda_negotiator_args args = {
            .mesh = &fixture->meshes[i],
            .tag = {1, 1, 0},
            .ranks = ranks,
            .cache_capacity = 4,
            .now_ns = no_time,
            .heard_word = hear,
            .cargo_arg = &fixture->hearers[i],
        };

        fixture->hearers[i] = (struct hearer){fixture, i};
        assert_int_equal(rueda_mesh_init(&fixture->meshes[i], i, RANKS,
                                         rueda_loop_connect, fixture->hub),
                         RUEDA_OK);
        assert_int_equal(rueda_negotiator_new(&args, &fixture->members[i]),
                         RUEDA_OK);
    }
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < RANKS; i++) {
        rueda_mesh_cancel(&fixture->meshes[i], RUEDA_ERR_CANCELLED);
        rueda_negotiator_free(fixture->members[i]);
        rueda_mesh_fini(&fixture->meshes[i]);
        rueda_loop_hub_leave(fixture->hub, i);
        rueda_loop_hub_release(fixture->hub);
    }
    free(fixture);
    return 0;
}

/* Until nothing moves any more. */
static void drive(struct fixture *fixture)
{
    int still = 0;

    for (int i = 0; still < 2 * RANKS; i = (i + 1) % RANKS) {
        struct rueda_text error = {{0}};
        int peer;

        rueda_mesh_progress(&fixture->meshes[i], &peer);
        still = rueda_negotiator_turn(fixture->members[i], &error) == RUEDA_OK
                    ? 0
                    : still + 1;
    }
}

static const struct rueda_request tensor = {
    .device = RUEDA_DEVICE_HOST, .dims = 1, .shape = {2}, .name = "grad"};

static void submit(struct fixture *fixture, int rank)
{
    assert_int_equal(rueda_negotiator_submit(fixture->members[rank], &tensor,
                                             (void *)&tensor),
                     RUEDA_OK);
}

/* ---- Tests --------------------------------------------------------------- */

static void all_members_hear_words_in_the_order_of_the_log(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(rueda_negotiator_tell(fixture->members[0], 7), RUEDA_OK);
    for (int i = 0; i < RANKS; i++)
        submit(fixture, i);
    drive(fixture);
    assert_int_equal(rueda_negotiator_tell(fixture->members[0], UINT64_MAX),
                     RUEDA_OK);
    drive(fixture);

    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(fixture->counts[i], 2);
        assert_true(fixture->words[i][0] == 7);
        assert_true(fixture->words[i][1] == UINT64_MAX);
        /* The first came before the decision, the second after it. */
        assert_true(fixture->latest[i][0] == 0);
        assert_true(fixture->latest[i][1] ==
                    rueda_negotiator_next(fixture->members[i])->index);
        rueda_negotiator_done(fixture->members[i]);
        assert_true(rueda_negotiator_latest(fixture->members[i]) == 0);
    }
}

static void follow(struct fixture *fixture, const unsigned char *bytes,
                   size_t len, rueda_status wanted)
{
    struct rueda_in in = {.at = bytes, .end = bytes + len};

    assert_int_equal(rueda_negotiator_log_follow(fixture->members[1], &in),
                     wanted);
}

static void a_word_that_is_cut_or_not_wanted_makes_no_sense(void **state)
{
    static const unsigned char word[9] = {RUEDA_DOWN_WORD, 1};
    struct fixture *fixture = *state;

    for (size_t len = 1; len < sizeof(word); len++)
        follow(fixture, word, len, RUEDA_ERR_IO);
    assert_int_equal(fixture->counts[1], 0);
    follow(fixture, word, sizeof(word), RUEDA_OK);
    assert_int_equal(fixture->counts[1], 1);
    fixture->members[1]->args.heard_word = NULL;
    follow(fixture, word, sizeof(word), RUEDA_ERR_IO);
}

/* It was handed over before, and is not decided yet. */
static void what_waits_begins_with_the_timeline(void **state)
{
    struct fixture *fixture = *state;
    char path[64];
    struct rueda_timeline_args args = {.ranks = RANKS, .path = path};
    struct rueda_timeline *timeline;
    struct rueda_text error = {{0}};
    char text[4096] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/rueda_word_%d.json", (int)getpid());
    submit(fixture, 0);
    assert_int_equal(rueda_timeline_open(&args, &timeline, &error), RUEDA_OK);
    rueda_negotiator_trace(fixture->members[0], timeline);
    submit(fixture, 1);
    submit(fixture, 2);
    drive(fixture);
    rueda_negotiator_trace(fixture->members[0], NULL);
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
    cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_members_hear_words_in_the_order_of_the_log),
        TEST(a_word_that_is_cut_or_not_wanted_makes_no_sense),
        TEST(what_waits_begins_with_the_timeline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
