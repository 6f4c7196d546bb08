/* SPDX-License-Identifier: Apache-2.0 */
/* Bad days, one at a time. */
#include <stdlib.h>
#include <string.h>

#include "sim/collective.h"
#include "support/coll_case.h"

#define MS ((uint64_t)1000000)

/* Four hosts of two ranks, two hosts a rack; a slow network, on which the case
 * below takes several milliseconds. */
static struct rueda_sim_settings settings_of_eight(void)
{
    const struct rueda_sim_wire wire = {.latency_ns = 10000,
                                        .bytes_per_s = 1e8};
    struct rueda_sim_net net = rueda_sim_net_flat(4, wire);
    struct rueda_sim_settings settings;

    net.ranks_per_host = 2;
    net.hosts_per_rack = 2;
    settings = rueda_sim_settings_default(&net);
    settings.limit_ns = 50 * MS;
    return settings;
}

struct day {
    struct collective *all;
    struct coll_job *job;
    struct rueda_text why;
};

static void day_open(struct day *day)
{
    const struct coll_case c = {.algo = &rueda_algo_ring,
                                .kind = RUEDA_ALLREDUCE,
                                .dtype = RUEDA_FLOAT32,
                                .count = 100000};
    const struct rueda_sim_settings settings = settings_of_eight();

    memset(day, 0, sizeof(*day));
    day->all = collective_open(&settings);
    day->job = coll_job_open(&c, 8);
}

static void day_close(struct day *day)
{
    collective_close(day->all);
    coll_job_close(day->job);
}

static rueda_status day_run(struct day *day,
                            const struct rueda_sim_fault *fault)
{
    if (fault != NULL)
        assert_int_equal(rueda_sim_add_fault(day->all->sim, fault), RUEDA_OK);
    return collective_run(day->all, &rueda_algo_ring, coll_job_colls(day->job),
                          &day->why);
}

static uint64_t usual_time(void)
{
    struct day day;
    uint64_t took;

    day_open(&day);
    assert_int_equal(day_run(&day, NULL), RUEDA_OK);
    took = rueda_sim_took(day.all->sim);
    day_close(&day);
    return took;
}

static void assert_all_right(const struct day *day)
{
    for (int i = 0; i < 8; i++) {
        assert_int_equal(day->all->status[i], RUEDA_OK);
        assert_true(coll_job_is_right(day->job, i));
    }
}

static void assert_all_lost_but(const struct day *day, int rank)
{
    for (int i = 0; i < 8; i++)
        assert_int_equal(day->all->status[i],
                         i == rank ? RUEDA_ERR_CLOSED : RUEDA_ERR_PEER_LOST);
}

/* ---- Faults ----------------------------------------------------------- */

static void a_death_ends_every_rank(void **state)
{
    const uint64_t usual = usual_time();

    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct rueda_sim_fault death = {
            .kind = RUEDA_SIM_KILL,
            .rank = i,
            .from_ns = usual * (uint64_t)i / 9,
        };
        struct day day;

        day_open(&day);
        assert_int_equal(day_run(&day, &death), RUEDA_OK);
        assert_all_lost_but(&day, i);
        /* A millisecond until it is seen, and the news goes round. */
        assert_true(rueda_sim_took(day.all->sim) < death.from_ns + 3 * MS);
        day_close(&day);
    }
}

static void the_dead_take_no_part_in_the_next_run(void **state)
{
    const struct rueda_sim_fault death = {.kind = RUEDA_SIM_KILL, .rank = 2};
    struct day day;

    (void)state;
    day_open(&day);
    assert_int_equal(day_run(&day, &death), RUEDA_OK);
    assert_int_equal(day_run(&day, NULL), RUEDA_OK);
    for (int i = 0; i < 8; i++)
        assert_int_equal(day.all->status[i], RUEDA_ERR_CLOSED);
    day_close(&day);
}

static void a_cut_that_heals_in_time_only_delays(void **state)
{
    const uint64_t usual = usual_time();
    const bool is_apart[4] = {false, true, true, false};
    const struct rueda_sim_fault faults[] = {
        {.kind = RUEDA_SIM_PARTITION, .is_apart = is_apart},
        {.kind = RUEDA_SIM_UNPLUG, .link = RUEDA_SIM_PORT, .index = 3},
        {.kind = RUEDA_SIM_UNPLUG, .link = RUEDA_SIM_UPLINK, .index = 1},
        {.kind = RUEDA_SIM_UNPLUG, .link = RUEDA_SIM_SPINE, .index = 0},
    };

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct rueda_sim_fault fault = faults[i];
        struct day day;

        fault.from_ns = usual / 3;
        fault.until_ns = usual / 3 + 40 * MS;
        day_open(&day);
        assert_int_equal(day_run(&day, &fault), RUEDA_OK);
        assert_all_right(&day);
        assert_true(rueda_sim_took(day.all->sim) > 40 * MS);
        assert_true(rueda_sim_took(day.all->sim) < usual + 45 * MS);
        day_close(&day);
    }
}

static void a_cut_beyond_the_limit_ends_every_rank(void **state)
{
    const uint64_t usual = usual_time();
    const bool is_apart[4] = {false, true, true, false};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct rueda_sim_fault fault = {
            .kind = RUEDA_SIM_PARTITION,
            .is_apart = is_apart,
            .from_ns = usual / 2,
            .until_ns = i == 0 ? RUEDA_SIM_NEVER : usual / 2 + 60 * MS,
        };
        struct day day;

        day_open(&day);
        assert_int_equal(day_run(&day, &fault), RUEDA_OK);
        assert_all_lost_but(&day, -1);
        day_close(&day);
    }
}

/* Ends that are made during the cut are judged by it as well. */
static void a_cut_before_the_start_counts(void **state)
{
    const struct rueda_sim_fault cut = {.kind = RUEDA_SIM_UNPLUG,
                                        .link = RUEDA_SIM_UPLINK,
                                        .index = 3,
                                        .until_ns = RUEDA_SIM_NEVER};
    struct day day;

    (void)state;
    day_open(&day);
    assert_int_equal(day_run(&day, &cut), RUEDA_OK);
    assert_all_lost_but(&day, -1);
    day_close(&day);
}

static void a_fault_that_cannot_be_is_refused(void **state)
{
    const struct rueda_sim_fault faults[] = {
        {.kind = RUEDA_SIM_KILL, .rank = 8},
        {.kind = RUEDA_SIM_KILL, .rank = -1},
        {.kind = RUEDA_SIM_SLOW, .rank = 1, .factor = 0.0},
        {.kind = RUEDA_SIM_SLOW, .factor = 2.0, .from_ns = 2, .until_ns = 1},
        {.kind = RUEDA_SIM_UNPLUG, .link = RUEDA_SIM_UPLINK, .index = 4},
        {.kind = RUEDA_SIM_UNPLUG, .link = RUEDA_SIM_SPINE, .index = 2},
        {.kind = RUEDA_SIM_PARTITION},
    };
    struct day day;

    (void)state;
    day_open(&day);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        assert_int_equal(rueda_sim_add_fault(day.all->sim, &faults[i]),
                         RUEDA_ERR_INVALID);
    day_close(&day);
}

/* ---- Runs that stand still -------------------------------------------- */

static rueda_status wait_for_ever(struct rueda_task *task)
{
    struct rueda_mesh *mesh = task->place->mesh;
    struct rueda_req *req = (struct rueda_req *)task->state;

    if (mesh->rank == 7)
        return RUEDA_OK;
    rueda_mesh_recv(mesh, mesh->rank + 1, task->tag, NULL, 0, req);
    return RUEDA_IN_PROGRESS;
}

static rueda_status go_on_waiting(struct rueda_task *task)
{
    return ((struct rueda_req *)task->state)->status;
}

static const struct rueda_algo hanger = {
    .name = "hanger",
    .post = wait_for_ever,
    .progress = go_on_waiting,
};

static void a_run_that_stands_still_names_who_waits_for_whom(void **state)
{
    struct day day;

    (void)state;
    day_open(&day);
    assert_int_equal(
        collective_run(day.all, &hanger, coll_job_colls(day.job), &day.why),
        RUEDA_ERR_TIMEOUT);
    assert_non_null(strstr(day.why.chars, "nothing is left to happen"));
    assert_non_null(strstr(day.why.chars, "7 of 8 ranks are not done"));
    assert_non_null(strstr(day.why.chars, "rank 0 waits for 1 (to receive)"));
    assert_non_null(
        strstr(day.why.chars, "rank 6 waits for 7 (to receive; it has ended)"));
    assert_int_equal(day.all->status[0], RUEDA_ERR_TIMEOUT);
    assert_int_equal(day.all->status[7], RUEDA_OK);
    day_close(&day);
}

static void a_run_has_limits(void **state)
{
    struct rueda_sim_settings settings = settings_of_eight();
    struct day day;

    (void)state;
    for (int i = 0; i < 2; i++) {
        day_open(&day);
        collective_close(day.all);
        settings.run_limit_events = i == 0 ? 100 : UINT64_MAX;
        settings.run_limit_ns = i == 0 ? RUEDA_SIM_NEVER : MS;
        day.all = collective_open(&settings);
        assert_int_equal(day_run(&day, NULL), RUEDA_ERR_TIMEOUT);
        assert_non_null(strstr(day.why.chars,
                               i == 0 ? "too many events" : "too much time"));
        assert_int_equal(day.all->status[0], RUEDA_ERR_TIMEOUT);
        day_close(&day);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_ends_every_rank),
        cmocka_unit_test(the_dead_take_no_part_in_the_next_run),
        cmocka_unit_test(a_cut_that_heals_in_time_only_delays),
        cmocka_unit_test(a_cut_beyond_the_limit_ends_every_rank),
        cmocka_unit_test(a_cut_before_the_start_counts),
        cmocka_unit_test(a_fault_that_cannot_be_is_refused),
        cmocka_unit_test(a_run_that_stands_still_names_who_waits_for_whom),
        cmocka_unit_test(a_run_has_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
