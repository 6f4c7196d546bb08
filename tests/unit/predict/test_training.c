/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings in virtual time, against what one computes by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "predict/training.h"

#define MS 1e6

static const struct rueda_sim_wire wire = {.latency_ns = 10000,
                                           .bytes_per_s = 1e9};

static struct rueda_model parsed(const char *text)
{
    struct rueda_text error = {""};
    struct rueda_model model;

    if (rueda_model_parse(text, &model, &error) != RUEDA_OK)
        fail_msg("%s", error.chars);
    return model;
}

/* One gradient, at the end of 10 ms. */
static struct rueda_model single(void)
{
    return parsed("compute 10ms\nforward 0\ntensor w 4000000\n");
}

static struct rueda_training on(const struct rueda_model *model, int hosts,
                                int ranks_per_host)
{
    struct rueda_sim_net net = rueda_sim_net_flat(hosts, wire);
    struct rueda_training training;

    net.ranks_per_host = ranks_per_host;
    net.port = (struct rueda_sim_wire){.latency_ns = 500, .bytes_per_s = 10e9};
    rueda_training_default(&training, model, &net);
    training.overhead_ns = 0;
    training.work_bytes_per_s = 0;
    return training;
}

static void use(struct rueda_training *training, const char *rows)
{
    struct rueda_text error = {""};

    if (rueda_select_parse(&training->select, rows, &error) != RUEDA_OK)
        fail_msg("%s", error.chars);
}

static struct rueda_training_result run(const struct rueda_training *training)
{
    struct rueda_text error = {""};
    struct rueda_training_result result;

    if (rueda_training_run(training, &result, &error) != RUEDA_OK)
        fail_msg("%s", error.chars);
    return result;
}

static void assert_near(double value, double wanted, double tolerance)
{
    if (fabs(value - wanted) > tolerance * wanted)
        fail_msg("%.6g instead of %.6g", value, wanted);
}

static void one_rank_takes_its_computation(void **state)
{
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 1, 1);
    const struct rueda_training_result result = run(&training);

    (void)state;
    assert_int_equal(result.status, RUEDA_OK);
    assert_near(result.step_ns, 10 * MS, 0);
    assert_near(result.bound_ns, 10 * MS, 0);
    rueda_model_fini(&model);
}

/* 2 (n - 1) / n of 16 MB at 1 GB/s, which nothing hides. */
static void a_ring_takes_what_the_formula_says(void **state)
{
    struct rueda_model model = single();

    (void)state;
    for (int n = 2; n <= 32; n *= 2) {
        struct rueda_training training = on(&model, n, 1);
        const double ring = 2.0 * (n - 1) * (16.0 / n * MS + 10000);
        struct rueda_training_result result;

        use(&training, "allreduce:ring");
        result = run(&training);
        assert_int_equal(result.status, RUEDA_OK);
        assert_near(result.step_ns, 10 * MS + ring, 0.03);
        assert_true(result.step_ns >= result.bound_ns);
        assert_near(result.bound_ns,
                    10 * MS + 2.0 * (n - 1) / n * 16 * MS + log2(n) * 10000,
                    1e-9);
    }
    rueda_model_fini(&model);
}

/* Half a ring inside the hosts, one between hosts of a slice for each rank, and
 * the other half; a single tensor above the slab runs in blocks. */
static void hosts_of_several_ranks_take_what_their_uplinks_do(void **state)
{
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 8, 4);
    struct rueda_training_result result;

    (void)state;
    result = run(&training);
    assert_int_equal(result.status, RUEDA_OK);
    assert_true(result.step_ns >= result.bound_ns);
    /* The uplinks, and what the first and the last block do inside a host. */
    assert_near(result.step_ns, result.bound_ns, 0.12);
    rueda_model_fini(&model);
}

/* The second tensor's travel hides behind the computation; the first is not
 * ready sooner than the computation makes it. */
static void computation_hides_communication(void **state)
{
    struct rueda_model model =
        parsed("compute 40ms\nforward 0.5\n"
               "tensor big 2000000 0\ntensor late 1000 100\n");
    struct rueda_training training = on(&model, 4, 1);
    struct rueda_training_result result;

    (void)state;
    use(&training, "allreduce:ring");
    result = run(&training);
    /* 1.5 x 8 MB at 1 GB/s takes 12 ms of the 20 ms of the backward pass. */
    assert_true(result.step_ns < 40.5 * MS);
    assert_true(result.step_ns > 40 * MS);
    training.compute_ns = 10 * MS;
    result = run(&training);
    assert_near(result.step_ns, 5 * MS + 12 * MS, 0.03);
    rueda_model_fini(&model);
}

static void halves_on_the_wire_take_half_the_time(void **state)
{
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 8, 2);
    struct rueda_training_result full;
    struct rueda_training_result half;

    (void)state;
    full = run(&training);
    training.compression = RUEDA_COMPRESS_FP16;
    half = run(&training);
    assert_near(half.bound_ns - 10 * MS, (full.bound_ns - 10 * MS) / 2, 0.01);
    assert_near(half.step_ns - 10 * MS, (full.step_ns - 10 * MS) / 2, 0.15);
    rueda_model_fini(&model);
}

static void a_straggler_sets_the_pace(void **state)
{
    const struct rueda_straggler slow = {.rank = 3, .factor = 1.5};
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 4, 2);
    double usual;

    (void)state;
    usual = run(&training).step_ns;
    training.stragglers = &slow;
    training.straggler_count = 1;
    assert_near(run(&training).step_ns, usual + 5 * MS, 0.01);
    rueda_model_fini(&model);
}

static void chance_comes_from_the_seed(void **state)
{
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 4, 2);
    struct rueda_training_result first;
    struct rueda_training_result again;

    (void)state;
    training.jitter = 0.2;
    first = run(&training);
    again = run(&training);
    assert_true(first.digest == again.digest);
    assert_true(first.step_ns == again.step_ns);
    /* The slowest of eight ranks takes longer than the mean. */
    assert_true(first.step_ns > first.bound_ns);
    training.seed = 2;
    again = run(&training);
    assert_true(first.digest != again.digest);
    rueda_model_fini(&model);
}

static void a_death_ends_all_ranks(void **state)
{
    const struct rueda_sim_fault death = {.kind = RUEDA_SIM_KILL,
                                          .rank = 5,
                                          .from_ns = 12 * UINT64_C(1000000),
                                          .until_ns = RUEDA_SIM_NEVER};
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 8, 1);
    struct rueda_training_result result;

    (void)state;
    training.faults = &death;
    training.fault_count = 1;
    result = run(&training);
    assert_int_equal(result.status, RUEDA_ERR_PEER_LOST);
    assert_int_equal(result.failed, 7);
    assert_true(result.over_ns >= 12 * MS && result.over_ns < 60 * MS);
    /* A rank that is not there does not die. */
    training.net.hosts = 4;
    training.net.hosts_per_rack = 4;
    assert_int_equal(run(&training).status, RUEDA_OK);
    rueda_model_fini(&model);
}

static void an_unplugged_host_holds_up_the_others(void **state)
{
    const struct rueda_sim_fault outage = {.kind = RUEDA_SIM_UNPLUG,
                                           .link = RUEDA_SIM_UPLINK,
                                           .index = 1,
                                           .from_ns = 45 * UINT64_C(1000000),
                                           .until_ns = 65 * UINT64_C(1000000)};
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 4, 1);
    double usual;
    double longer;

    (void)state;
    usual = run(&training).step_ns;
    training.faults = &outage;
    training.fault_count = 1;
    longer = run(&training).step_ns;
    assert_true(longer > usual + 10 * MS && longer < usual + 25 * MS);
    rueda_model_fini(&model);
}

static void settings_that_cannot_be_are_refused(void **state)
{
    struct rueda_model model = single();
    struct rueda_training training = on(&model, 2, 1);
    struct rueda_training_result result = {.failed = -7};
    struct rueda_text error = {""};

    (void)state;
    training.steps = 1;
    assert_int_equal(rueda_training_run(&training, &result, &error),
                     RUEDA_ERR_INVALID);
    assert_int_equal(result.failed, -7);
    assert_false(rueda_text_is_empty(&error));
    rueda_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_takes_its_computation),
        cmocka_unit_test(a_ring_takes_what_the_formula_says),
        cmocka_unit_test(hosts_of_several_ranks_take_what_their_uplinks_do),
        cmocka_unit_test(computation_hides_communication),
        cmocka_unit_test(halves_on_the_wire_take_half_the_time),
        cmocka_unit_test(a_straggler_sets_the_pace),
        cmocka_unit_test(chance_comes_from_the_seed),
        cmocka_unit_test(a_death_ends_all_ranks),
        cmocka_unit_test(an_unplugged_host_holds_up_the_others),
        cmocka_unit_test(settings_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
