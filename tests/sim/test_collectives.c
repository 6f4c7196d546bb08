/* SPDX-License-Identifier: Apache-2.0 */
/* Every algorithm that runs over messages, with real numbers. */
#include <stdlib.h>
#include <string.h>

#include "sim/collective.h"
#include "support/coll_case.h"

static const struct rueda_sim_wire wire = {.latency_ns = 1000,
                                           .bytes_per_s = 10e9};

/* Two ranks a host, two hosts a rack, where the number allows it. */
static struct rueda_sim_settings crowded(int size)
{
    struct rueda_sim_net net = rueda_sim_net_flat(size, wire);
    struct rueda_sim_settings settings;

    if (size % 2 == 0) {
        net.hosts = size / 2;
        net.ranks_per_host = 2;
    }
    net.hosts_per_rack = 2;
    net.oversubscription = 2.0;
    net.uplink.jitter_ns = 20000;
    net.spine.jitter_ns = 5000;
    settings = rueda_sim_settings_default(&net);
    settings.seed = (uint64_t)size;
    settings.skew_ns = 50000;
    settings.overhead_ns = 100;
    settings.work_bytes_per_s = 5e9;
    settings.credit_bytes = 0;
    return settings;
}

static struct rueda_sim_settings quiet(int size)
{
    const struct rueda_sim_net net = rueda_sim_net_flat(size, wire);

    return rueda_sim_settings_default(&net);
}

static void check(struct collective *all, const struct coll_case *c)
{
    struct coll_job *job = coll_job_open(c, all->size);
    struct rueda_text why = {""};

    if (collective_run(all, c->algo, coll_job_colls(job), &why) != RUEDA_OK)
        fail_msg("%s", why.chars);
    for (int i = 0; i < all->size; i++) {
        assert_int_equal(all->status[i], RUEDA_OK);
        assert_true(coll_job_is_right(job, i));
    }
    coll_job_close(job);
}

static void check_kind(struct collective *all, const struct rueda_algo *algo,
                       rueda_kind kind)
{
    static const size_t counts[] = {0, 1, 35, 5000};

    for (int k = 0; k < 4; k++)
        for (int flags = 0; flags < 4; flags++) {
            const struct coll_case c = {
                .algo = algo,
                .kind = kind,
                .dtype = flags % 2 == 0 ? RUEDA_FLOAT32 : RUEDA_INT16,
                .root = kind == RUEDA_BROADCAST ? all->size / 2 : 0,
                .count = kind == RUEDA_BARRIER ? 0 : counts[k],
                .is_in_place = (flags & 1) != 0,
                .is_uneven = (flags & 2) != 0 && kind != RUEDA_ALLREDUCE &&
                             kind != RUEDA_BROADCAST,
            };

            check(all, &c);
        }
}

static void check_all(struct rueda_sim_settings (*settings_of)(int size))
{
    for (int size = 2; size <= 17; size++) {
        const struct rueda_sim_settings settings = settings_of(size);
        struct collective *all = collective_open(&settings);

        for (int a = 0; rueda_algos[a] != NULL; a++) {
            const struct rueda_algo *algo = rueda_algos[a];

            if (algo->needs_slab || algo->does_adasum ||
                (algo->needs_hier && all->place[0].hier == NULL))
                continue;
            for (int kind = 0; kind < 32; kind++)
                if ((algo->kinds >> kind & 1) != 0)
                    check_kind(all, algo, (rueda_kind)kind);
        }
        collective_close(all);
    }
}

static void every_algorithm_is_right_on_a_quiet_network(void **state)
{
    (void)state;
    check_all(quiet);
}

static void every_algorithm_is_right_on_a_crowded_one(void **state)
{
    (void)state;
    check_all(crowded);
}

static void a_long_vector_is_right(void **state)
{
    const struct rueda_sim_settings settings = crowded(6);
    struct collective *all = collective_open(&settings);
    struct coll_case c = {.algo = &rueda_algo_ring,
                          .kind = RUEDA_ALLREDUCE,
                          .dtype = RUEDA_FLOAT64,
                          .count = 300007};

    (void)state;
    check(all, &c);
    c.algo = &rueda_algo_halving_doubling;
    check(all, &c);
    c.algo = &rueda_algo_doubling;
    check(all, &c);
    c.algo = &rueda_algo_tree;
    check(all, &c);
    c.algo = &rueda_algo_hier;
    check(all, &c);
    c.compression = RUEDA_COMPRESS_FP16;
    check(all, &c);
    c.compression = RUEDA_COMPRESS_NONE;
    c.kind = RUEDA_ALLGATHER;
    check(all, &c);
    collective_close(all);
}

/* ---- Adasum ----------------------------------------------------------- */

/* Its answer depends on the order, so it is compared with that of another
 * transport, to the last bit. */
static void adasum_is_the_same_as_over_loop(void **state)
{
    enum {
        COUNT = 3001,
        MOST = 9
    };
    float *input = malloc(sizeof(float) * COUNT * MOST);
    float *by_sim = malloc(sizeof(float) * COUNT * MOST);
    float *by_loop = malloc(sizeof(float) * COUNT * MOST);

    (void)state;
    for (int i = 0; i < COUNT * MOST; i++)
        input[i] = (float)((i * 37 + i / 11) % 101) / 7.0f - 6.0f;
    for (int size = 2; size <= MOST; size++) {
        const struct rueda_sim_settings settings = crowded(size);
        struct collective *all = collective_open(&settings);
        struct ranks *ranks = ranks_open(size);
        struct rueda_coll coll[MOST];
        struct rueda_text why = {""};

        for (int i = 0; i < size; i++)
            coll[i] = (struct rueda_coll){
                .kind = RUEDA_ALLREDUCE,
                .arith = {RUEDA_FLOAT32, RUEDA_ADASUM, 1.0, 1.0},
                .elem_bytes = sizeof(float),
                .send = input + (size_t)i * COUNT,
                .recv = by_loop + (size_t)i * COUNT,
                .count = COUNT,
            };
        assert_int_equal(ranks_run(ranks, &rueda_algo_adasum, coll), RUEDA_OK);
        for (int i = 0; i < size; i++)
            coll[i].recv = by_sim + (size_t)i * COUNT;
        assert_int_equal(collective_run(all, &rueda_algo_adasum, coll, &why),
                         RUEDA_OK);
        assert_memory_equal(by_sim, by_loop,
                            sizeof(float) * COUNT * (size_t)size);
        ranks_close(ranks);
        collective_close(all);
    }
    free(input);
    free(by_sim);
    free(by_loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_right_on_a_quiet_network),
        cmocka_unit_test(every_algorithm_is_right_on_a_crowded_one),
        cmocka_unit_test(a_long_vector_is_right),
        cmocka_unit_test(adasum_is_the_same_as_over_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
