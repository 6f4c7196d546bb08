/* SPDX-License-Identifier: Apache-2.0 */
/* What things cost, against what one can work out on paper. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "sim/collective.h"

#define MIB ((size_t)1 << 20)

static const struct rueda_sim_wire wire = {.latency_ns = 1000,
                                           .bytes_per_s = 10e9};

static void assert_near(uint64_t got_ns, double wanted_ns, double tolerance)
{
    if ((double)got_ns < wanted_ns * (1.0 - tolerance) ||
        (double)got_ns > wanted_ns * (1.0 + tolerance))
        fail_msg("%.3f us instead of %.3f us", (double)got_ns / 1e3,
                 wanted_ns / 1e3);
}

/* ---- Messages --------------------------------------------------------- */

/* Each rank sends bytes to the rank `to` says, if that is not negative, and
 * receives from all that send to it. */
struct traffic {
    const int *to;
    size_t bytes;
    struct rueda_sim *sim;
    struct rueda_mesh mesh[8];
    struct rueda_req sent[8];
    struct rueda_req received[8]; /* [sender] */
    uint64_t ended_ns[8];
};

static const struct rueda_tag tag = {1, 2, 3};

static rueda_status traffic_turn(void *arg, int rank)
{
    struct traffic *traffic = arg;

    for (int i = 0; i < rueda_sim_size(traffic->sim); i++)
        if (traffic->to[i] == rank &&
            traffic->received[i].status == RUEDA_IN_PROGRESS)
            return RUEDA_IN_PROGRESS;
    return traffic->to[rank] < 0 ? RUEDA_OK : traffic->sent[rank].status;
}

static rueda_status traffic_start(void *arg, int rank)
{
    struct traffic *traffic = arg;
    struct rueda_mesh *mesh = &traffic->mesh[rank];

    for (int i = 0; i < rueda_sim_size(traffic->sim); i++)
        if (traffic->to[i] == rank)
            rueda_mesh_recv(mesh, i, tag, NULL, traffic->bytes,
                            &traffic->received[i]);
    if (traffic->to[rank] >= 0)
        rueda_mesh_send(mesh, traffic->to[rank], tag, NULL, traffic->bytes,
                        &traffic->sent[rank]);
    return traffic_turn(arg, rank);
}

static void traffic_finish(void *arg, int rank, rueda_status status)
{
    struct traffic *traffic = arg;

    assert_int_equal(status, RUEDA_OK);
    traffic->ended_ns[rank] = rueda_sim_now(traffic->sim);
}

/* Virtual time until all have what they wait for. */
static uint64_t traffic_time(const struct rueda_sim_net *net, const int *to,
                             size_t bytes)
{
    struct rueda_sim_settings settings = rueda_sim_settings_default(net);
    struct traffic *traffic = calloc(1, sizeof(*traffic));
    const struct rueda_sim_program program = {
        .arg = traffic,
        .start = traffic_start,
        .turn = traffic_turn,
        .finish = traffic_finish,
    };
    const int size = rueda_sim_net_ranks(net);
    struct rueda_text why = {""};
    uint64_t took;

    assert_non_null(traffic);
    settings.is_phantom = true;
    traffic->to = to;
    traffic->bytes = bytes;
    assert_int_equal(rueda_sim_open(&settings, &traffic->sim, &why), RUEDA_OK);
    for (int i = 0; i < size; i++)
        assert_int_equal(rueda_mesh_init(&traffic->mesh[i], i, size,
                                         rueda_sim_connect, traffic->sim),
                         RUEDA_OK);
    if (rueda_sim_run(traffic->sim, &program, &why) != RUEDA_OK)
        fail_msg("%s", why.chars);
    took = rueda_sim_took(traffic->sim);
    for (int i = 0; i < size; i++)
        rueda_mesh_fini(&traffic->mesh[i]);
    rueda_sim_close(traffic->sim);
    free(traffic);
    return took;
}

static void a_message_takes_latency_and_bandwidth(void **state)
{
    const struct rueda_sim_net net = rueda_sim_net_flat(2, wire);

    (void)state;
    assert_near(traffic_time(&net, (int[]){1, -1}, 0), 1000, 0);
    assert_near(traffic_time(&net, (int[]){1, -1}, 100000), 1000 + 10000, 0);
    /* The two directions do not disturb each other. */
    assert_near(traffic_time(&net, (int[]){1, 0}, 100000), 1000 + 10000, 0);
}

static void senders_to_one_rank_share_its_link(void **state)
{
    const struct rueda_sim_net net = rueda_sim_net_flat(4, wire);

    (void)state;
    assert_near(traffic_time(&net, (int[]){3, 3, 3, -1}, 100000), 1000 + 30000,
                0);
    assert_near(traffic_time(&net, (int[]){1, 0, 3, 2}, 100000), 1000 + 10000,
                0);
}

static void ranks_of_a_host_share_its_uplink(void **state)
{
    struct rueda_sim_net net = rueda_sim_net_flat(2, wire);

    (void)state;
    net.ranks_per_host = 2;
    net.port.latency_ns = 100;
    net.port.bytes_per_s = 20e9;
    assert_near(traffic_time(&net, (int[]){2, 3, -1, -1}, 100000), 1000 + 20000,
                0);
    /* Inside a host they have their ports. */
    assert_near(traffic_time(&net, (int[]){1, 0, 3, 2}, 100000), 100 + 5000, 0);
}

static void racks_share_what_oversubscription_leaves(void **state)
{
    struct rueda_sim_net net = rueda_sim_net_flat(8, wire);
    const int across[8] = {4, 5, 6, 7, -1, -1, -1, -1};

    (void)state;
    net.hosts_per_rack = 4;
    net.spine.latency_ns = 500;
    assert_near(traffic_time(&net, across, 100000), 1500 + 10000, 0);
    net.oversubscription = 4.0;
    assert_near(traffic_time(&net, across, 100000), 1500 + 40000, 0);
    assert_near(traffic_time(&net, (int[]){1, 0, 3, 2, 5, 4, 7, 6}, 100000),
                1000 + 10000, 0);
}

/* ---- Collectives ------------------------------------------------------ */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double alpha_beta_ring(int size, size_t bytes)
{
    return 2.0 * (size - 1) *
           ((double)wire.latency_ns +
            (double)bytes / size / wire.bytes_per_s * 1e9);
}

static struct rueda_sim_settings phantoms(int size)
{
    const struct rueda_sim_net net = rueda_sim_net_flat(size, wire);
    struct rueda_sim_settings settings = rueda_sim_settings_default(&net);

    settings.is_phantom = true;
    return settings;
}

/* Short chunks travel as one message each, as in the formula. Longer ones in
 * pieces, which hide part of the latency. */
static void a_ring_of_1024_ranks_takes_what_the_formula_says(void **state)
{
    static const struct {
        size_t bytes;
        double tolerance;
    } cases[] = {{4 * MIB, 0.005}, {128 * MIB, 0.05}};
    const struct rueda_sim_settings settings = phantoms(1024);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct collective *all = collective_open(&settings);
        const double wanted = alpha_beta_ring(1024, cases[i].bytes);
        const double began = seconds();
        const uint64_t took =
            collective_time(all, &rueda_algo_ring, cases[i].bytes);

        print_message("%zu MiB: %.3f ms, formula %.3f ms; %llu events in "
                      "%.2f s\n",
                      cases[i].bytes / MIB, (double)took / 1e6, wanted / 1e6,
                      (unsigned long long)rueda_sim_events(all->sim),
                      seconds() - began);
        assert_near(took, wanted, cases[i].tolerance);
        collective_close(all);
    }
}

/* ---- Hosts of several ranks ------------------------------------------- */

static const struct rueda_sim_wire port = {.latency_ns = 300,
                                           .bytes_per_s = 40e9};

static struct rueda_sim_settings phantom_hosts(int hosts, int ranks)
{
    struct rueda_sim_settings settings = phantoms(hosts);

    settings.net.ranks_per_host = ranks;
    settings.net.port = port;
    return settings;
}

/* Steps of a ring, in each of which a rank passes on a piece of this size. As
 * many rings share each link: one waits for its latency while others send, so
 * either that shows or the link is always busy. */
static double alpha_beta(const struct rueda_sim_wire *link, int rings,
                         int steps, double bytes)
{
    const double alone = (double)link->latency_ns;
    const double beta = bytes / link->bytes_per_s * 1e9;

    return steps * fmax(alone + beta, rings * beta);
}

/*
 * Half a ring inside the host, a whole one between hosts, the other half
 * inside. But for the first block and the last, what goes on inside a host is
 * hidden behind what goes on between them.
 */
static double alpha_beta_hier(int hosts, int ranks, size_t bytes, int blocks)
{
    const double slice = (double)bytes / blocks / ranks;

    return 2 * alpha_beta(&port, 1, ranks - 1, slice) +
           blocks * alpha_beta(&wire, ranks, 2 * (hosts - 1), slice / hosts);
}

static void hier_on_1024_ranks_takes_what_the_formula_says(void **state)
{
    static const struct {
        size_t bytes;
        int blocks;
        double tolerance;
    } cases[] = {{4 * MIB, 1, 0.05}, {64 * MIB, 2, 0.05}};
    const struct rueda_sim_settings settings = phantom_hosts(128, 8);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct collective *all = collective_open(&settings);
        const double wanted =
            alpha_beta_hier(128, 8, cases[i].bytes, cases[i].blocks);
        const double began = seconds();
        const uint64_t took =
            collective_time(all, &rueda_algo_hier, cases[i].bytes);

        print_message("%zu MiB: %.3f ms, formula %.3f ms; %llu events in "
                      "%.2f s\n",
                      cases[i].bytes / MIB, (double)took / 1e6, wanted / 1e6,
                      (unsigned long long)rueda_sim_events(all->sim),
                      seconds() - began);
        assert_near(took, wanted, cases[i].tolerance);
        collective_close(all);
    }
}

/* 2 log2(n) latencies, and 2(n-1)/n of the vector. */
static void halving_takes_few_latencies(void **state)
{
    const struct rueda_sim_settings settings = phantoms(256);
    struct collective *all = collective_open(&settings);

    (void)state;
    assert_near(collective_time(all, &rueda_algo_halving_doubling, 1024),
                16 * 1000 + 2 * 255.0 / 256 * 102.4, 0.01);
    assert_near(collective_time(all, &rueda_algo_halving_doubling, 64 * MIB),
                16 * 1000 + 2 * 255.0 / 256 * 64 * (double)MIB / 10, 0.05);
    collective_close(all);
}

/* log2(n) latencies, each with the whole vector. */
static void doubling_takes_fewest_latencies(void **state)
{
    const struct rueda_sim_settings settings = phantoms(256);
    struct collective *all = collective_open(&settings);

    (void)state;
    assert_near(collective_time(all, &rueda_algo_doubling, 1024),
                8 * (1000 + 102.4), 0.01);
    collective_close(all);
}

static void arithmetic_takes_its_time(void **state)
{
    struct rueda_sim_settings settings = phantoms(2);
    struct collective *all = collective_open(&settings);
    const uint64_t free_of_charge =
        collective_time(all, &rueda_algo_halving_doubling, 32768);

    (void)state;
    collective_close(all);
    settings.work_bytes_per_s = 1e9;
    all = collective_open(&settings);
    /* Each rank adds half of the vector. */
    assert_near(collective_time(all, &rueda_algo_halving_doubling, 32768),
                (double)free_of_charge + 16384.0, 0.001);
    collective_close(all);
}

static void a_slow_rank_holds_up_the_others(void **state)
{
    struct rueda_sim_settings settings = phantoms(16);
    const struct rueda_sim_fault slow = {.kind = RUEDA_SIM_SLOW,
                                         .rank = 5,
                                         .factor = 100.0,
                                         .until_ns = RUEDA_SIM_NEVER};
    struct collective *all;
    uint64_t as_usual;

    (void)state;
    settings.overhead_ns = 100;
    all = collective_open(&settings);
    as_usual = collective_time(all, &rueda_algo_ring, 4096);
    assert_int_equal(rueda_sim_add_fault(all->sim, &slow), RUEDA_OK);
    assert_true(collective_time(all, &rueda_algo_ring, 4096) > 3 * as_usual);
    collective_close(all);
}

/* ---- Alarms ------------------------------------------------------------ */

struct sleeper {
    struct rueda_sim *sim;
    uint64_t at_ns[3];
    int turns[3];
};

/* Rank r sleeps until r milliseconds have passed; rank 2 is at work until 3 ms
 * meanwhile. */
static rueda_status fall_asleep(void *arg, int rank)
{
    struct sleeper *all = arg;

    rueda_sim_alarm(all->sim, rank, (uint64_t)rank * 1000000);
    if (rank == 2)
        rueda_sim_spend(all->sim, rank, 3000000);
    return RUEDA_IN_PROGRESS;
}

static rueda_status awake(void *arg, int rank)
{
    struct sleeper *all = arg;

    all->turns[rank]++;
    all->at_ns[rank] = rueda_sim_now(all->sim);
    return RUEDA_OK;
}

static void wake_up(void *arg, int rank, rueda_status status)
{
    (void)arg;
    (void)rank;
    assert_int_equal(status, RUEDA_OK);
}

static void an_alarm_gives_a_turn_in_time(void **state)
{
    const struct rueda_sim_settings settings = phantoms(3);
    struct rueda_text why = {""};
    struct sleeper all = {.at_ns = {1, 1, 1}};
    const struct rueda_sim_program program = {
        .arg = &all, .start = fall_asleep, .turn = awake, .finish = wake_up};

    (void)state;
    assert_int_equal(rueda_sim_open(&settings, &all.sim, &why), RUEDA_OK);
    assert_int_equal(rueda_sim_run(all.sim, &program, &why), RUEDA_OK);
    assert_int_equal(all.at_ns[0], 0);
    assert_int_equal(all.at_ns[1], 1000000);
    assert_int_equal(all.at_ns[2], 3000000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(all.turns[i], 1);
    rueda_sim_close(all.sim);
}

/* ---- Again and again -------------------------------------------------- */

static uint64_t digest_of(uint64_t seed, uint64_t jitter_ns)
{
    struct rueda_sim_settings settings = phantoms(24);
    struct collective *all;
    uint64_t digest;

    settings.net.uplink.jitter_ns = jitter_ns;
    settings.seed = seed;
    all = collective_open(&settings);
    collective_time(all, &rueda_algo_ring, 100000);
    collective_time(all, &rueda_algo_tree, 70000);
    digest = rueda_sim_digest(all->sim);
    collective_close(all);
    return digest;
}

static void the_same_seed_is_the_same_run(void **state)
{
    (void)state;
    assert_true(digest_of(7, 500) == digest_of(7, 500));
    assert_true(digest_of(7, 500) != digest_of(8, 500));
    assert_true(digest_of(7, 500) != digest_of(7, 501));
    /* Nothing is left to chance. */
    assert_true(digest_of(7, 0) == digest_of(8, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_takes_latency_and_bandwidth),
        cmocka_unit_test(senders_to_one_rank_share_its_link),
        cmocka_unit_test(ranks_of_a_host_share_its_uplink),
        cmocka_unit_test(racks_share_what_oversubscription_leaves),
        cmocka_unit_test(a_ring_of_1024_ranks_takes_what_the_formula_says),
        cmocka_unit_test(hier_on_1024_ranks_takes_what_the_formula_says),
        cmocka_unit_test(halving_takes_few_latencies),
        cmocka_unit_test(doubling_takes_fewest_latencies),
        cmocka_unit_test(arithmetic_takes_its_time),
        cmocka_unit_test(a_slow_rank_holds_up_the_others),
        cmocka_unit_test(an_alarm_gives_a_turn_in_time),
        cmocka_unit_test(the_same_seed_is_the_same_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
