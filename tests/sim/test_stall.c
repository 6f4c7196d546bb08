/* SPDX-License-Identifier: Apache-2.0 */
/* Missing ranks are found through the tree, on a clock that the test sets. */
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

struct fixture {
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

/* Of the next fixture. */
static int64_t repeat_ns;

static int64_t now(void *arg)
{
    return ((struct fixture *)arg)->now_ns;
}

static void keep_warning(void *arg, rueda_log_level level, const char *line)
{
    struct fixture *fixture = arg;
    size_t used = strlen(fixture->warnings);

    if (level != RUEDA_LOG_WARN)
        return;
    fixture->warning_count++;
    snprintf(fixture->warnings + used, sizeof(fixture->warnings) - used, "%s\n",
             line);
}

static void open_fixture(struct fixture *fixture, int64_t warn_ns,
                         int64_t end_ns)
{
    const struct rueda_sim_wire wire = {.latency_ns = 1000, .bytes_per_s = 1e9};
    struct rueda_sim_net net = rueda_sim_net_flat(HOSTS, wire);
    struct rueda_sim_settings settings;
    struct rueda_negotiator_args args = {
        .tag = {1, 1, 0},
        .ranks = fixture->ranks,
        .hosts = fixture->hosts,
        .cache_capacity = 16,
        .fusion_bytes = 1000,
        .stall_warn_ns = warn_ns,
        .stall_end_ns = end_ns,
        .stall_repeat_ns = repeat_ns,
        .now_ns = now,
        .now_arg = fixture,
    };

    memset(fixture, 0, sizeof(*fixture));
    net.ranks_per_host = LOCALS;
    settings = rueda_sim_settings_default(&net);
    assert_int_equal(rueda_sim_open(&settings, &fixture->sim, &fixture->error),
                     RUEDA_OK);
    for (int i = 0; i < RANKS; i++) {
        fixture->ranks[i] = i;
        fixture->hosts[i] = i / LOCALS;
    }
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(rueda_mesh_init(&fixture->mesh[i], i, RANKS,
                                         rueda_sim_connect, fixture->sim),
                         RUEDA_OK);
        args.mesh = &fixture->mesh[i];
        assert_int_equal(rueda_negotiator_new(&args, &fixture->members[i]),
                         RUEDA_OK);
    }
    for (int i = 0; i < TENSORS; i++) {
        snprintf(fixture->names[i], sizeof(fixture->names[i]), "grad.%d", i);
        fixture->requests[i] = (struct rueda_request){
            .device = RUEDA_DEVICE_HOST, .dims = 1, .shape = {2}};
        fixture->requests[i].name = fixture->names[i];
    }
    rueda_log_set_sink(keep_warning, fixture);
}

static void close_fixture(struct fixture *fixture)
{
    rueda_log_set_sink(NULL, NULL);
    for (int i = 0; i < RANKS; i++) {
        rueda_mesh_cancel(&fixture->mesh[i], RUEDA_ERR_CANCELLED);
        rueda_negotiator_free(fixture->members[i]);
    }
    for (int i = 0; i < RANKS; i++)
        rueda_mesh_fini(&fixture->mesh[i]);
    rueda_sim_close(fixture->sim);
}

/* Let everything happen that can. */
static void settle(struct fixture *fixture)
{
    for (int quiet = 0; quiet < 50; quiet++) {
        for (int i = 0; i < RANKS; i++) {
            rueda_status status =
                rueda_negotiator_turn(fixture->members[i], &fixture->error);
            int peer;

            if (status < 0)
                fixture->failure = status;
            if (status == RUEDA_OK ||
                rueda_mesh_progress(&fixture->mesh[i], &peer) == RUEDA_OK)
                quiet = 0;
            while (rueda_negotiator_next(fixture->members[i]) != NULL)
                rueda_negotiator_done(fixture->members[i]);
        }
    }
}

static void wait_seconds(struct fixture *fixture, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        fixture->now_ns += SECOND;
        settle(fixture);
    }
}

static void submit(struct fixture *fixture, int rank, int tensor)
{
    struct rueda_request *request = &fixture->requests[tensor];

    assert_int_equal(
        rueda_negotiator_submit(fixture->members[rank], request, request),
        RUEDA_OK);
}

static void test_warning_names_ranks_and_tensors(void **state)
{
    static struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 10 * SECOND, 0);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 6)
            submit(&fixture, rank, 0); /* a rank behind another leader lacks */
    submit(&fixture, 11, 1);           /* the last one has, and no other */
    wait_seconds(&fixture, 9);
    assert_int_equal(fixture.warning_count, 0);
    wait_seconds(&fixture, 6);
    assert_int_equal(fixture.warning_count, 1);
    assert_non_null(strstr(fixture.warnings, "Missing ranks:\n0: [grad.1]"));
    assert_non_null(strstr(fixture.warnings, "\n6: [grad.0, grad.1]"));
    assert_null(strstr(fixture.warnings, "\n11: "));
    assert_non_null(strstr(fixture.warnings, "\n10: [grad.1]"));

    /* It comes again as long as it is so, and ends when it is not. */
    wait_seconds(&fixture, 13);
    assert_int_equal(fixture.warning_count, 2);
    submit(&fixture, 6, 0);
    for (int rank = 0; rank < RANKS - 1; rank++)
        submit(&fixture, rank, 1);
    wait_seconds(&fixture, 30);
    assert_int_equal(fixture.warning_count, 2);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(rueda_negotiator_pending(fixture.members[rank]), 0);
    close_fixture(&fixture);
}

static void test_long_lists_are_cut(void **state)
{
    static struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 10 * SECOND, 0);
    for (int i = 0; i < TENSORS; i++)
        submit(&fixture, 0, i);
    wait_seconds(&fixture, 15);
    assert_int_equal(fixture.warning_count, 1);
    assert_non_null(strstr(fixture.warnings, "grad.5 ...]"));
    assert_null(strstr(fixture.warnings, "grad.6"));
    close_fixture(&fixture);
}

/* Names as long as models have them, of all ranks but one. */
static void test_every_missing_rank_is_named(void **state)
{
    static struct fixture fixture;
    char words[16];

    (void)state;
    open_fixture(&fixture, 10 * SECOND, 20 * SECOND);
    for (int i = 0; i < TENSORS; i++) {
        memset(fixture.names[i], 'a' + i, 90);
        submit(&fixture, 0, i);
    }
    wait_seconds(&fixture, 15);
    assert_int_equal(fixture.warning_count, 1);
    for (int rank = 1; rank < RANKS; rank++) {
        snprintf(words, sizeof(words), "\n%d: [aaa", rank);
        assert_non_null(strstr(fixture.warnings, words));
    }
    wait_seconds(&fixture, 12);
    assert_int_equal(fixture.failure, RUEDA_ERR_STALLED);
    assert_non_null(strstr(fixture.error.chars, ": 1 2 3 4 5 6 7 8 9 10 11"));
    assert_non_null(strstr(fixture.warnings, "\n11!: [aaa"));
    close_fixture(&fixture);
}

/* Rank 5 before anything was waited for, and its leader has nothing to tell;
 * rank 10 after its leader has told that it is missing. */
static void test_who_has_joined_is_not_missed(void **state)
{
    static struct rueda_request join = {.kind = RUEDA_JOIN};
    static struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 10 * SECOND, 0);
    assert_int_equal(rueda_negotiator_submit(fixture.members[5], &join, &join),
                     RUEDA_OK);
    settle(&fixture);
    submit(&fixture, 0, 0);
    submit(&fixture, 9, 0);
    wait_seconds(&fixture, 14);
    assert_int_equal(fixture.warning_count, 0);
    assert_int_equal(rueda_negotiator_submit(fixture.members[10], &join, &join),
                     RUEDA_OK);
    settle(&fixture);
    wait_seconds(&fixture, 1);
    assert_int_equal(fixture.warning_count, 1);
    assert_non_null(strstr(fixture.warnings, "\n4: [grad.0]\n6: [grad.0]"));
    assert_non_null(strstr(fixture.warnings, "\n8: [grad.0]\n11: [grad.0]"));
    close_fixture(&fixture);
}

static void test_too_long_ends_the_job(void **state)
{
    static struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 10 * SECOND, 20 * SECOND);
    for (int rank = 1; rank < RANKS; rank++)
        submit(&fixture, rank, 3);
    wait_seconds(&fixture, 15);
    assert_int_equal(fixture.failure, RUEDA_OK);
    wait_seconds(&fixture, 12);
    assert_int_equal(fixture.failure, RUEDA_ERR_STALLED);
    assert_non_null(strstr(fixture.error.chars, ": 0!: [grad.3]"));
    close_fixture(&fixture);
}

static void test_it_ends_without_a_warning_where_none_is_wanted(void **state)
{
    static struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 0, 20 * SECOND);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 6)
            submit(&fixture, rank, 3);
    wait_seconds(&fixture, 19);
    assert_int_equal(fixture.failure, RUEDA_OK);
    wait_seconds(&fixture, 12);
    assert_int_equal(fixture.failure, RUEDA_ERR_STALLED);
    assert_non_null(strstr(fixture.error.chars, "Missing ranks: 6!: [grad.3]"));
    assert_int_equal(fixture.warning_count, 0);
    close_fixture(&fixture);
}

/* Also where the coordinator has none, and hears of it through the tree. */
static void test_one_without_a_name_is_told_by_its_kind(void **state)
{
    static struct fixture fixture;

    (void)state;
    open_fixture(&fixture, 10 * SECOND, 0);
    fixture.requests[2].name = NULL;
    fixture.requests[2].kind = RUEDA_ALLGATHER;
    submit(&fixture, 6, 2);
    wait_seconds(&fixture, 15);
    assert_non_null(
        strstr(fixture.warnings, "\n4: [allgather number 0 without a name]"));
    close_fixture(&fixture);
}

static void test_a_warning_comes_again_after_its_own_time(void **state)
{
    static struct fixture fixture;

    (void)state;
    repeat_ns = 100 * SECOND;
    open_fixture(&fixture, 10 * SECOND, 0);
    repeat_ns = 0;
    submit(&fixture, 1, 0);
    wait_seconds(&fixture, 60);
    assert_int_equal(fixture.warning_count, 1);
    /* Another one is told of without delay. */
    submit(&fixture, 1, 1);
    wait_seconds(&fixture, 20);
    assert_int_equal(fixture.warning_count, 2);
    wait_seconds(&fixture, 130);
    assert_int_equal(fixture.warning_count, 3);
    close_fixture(&fixture);
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
