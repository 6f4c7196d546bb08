/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second kind of memory (support/far.h): tensors are packed, reduced by ranks
 * over the loop transport, and unpacked.
 */
#include <stdlib.h>

#include "algo/registry.h"
#include "fuse/layout.h"
#include "support/far.h"
#include "support/ranks.h"
#include "unit/unit.h"

enum {
    RANKS = 5,
    PARTS = 3,
    MOST = 1 << 20, /* numbers of a tensor */
};

/* ---- Tensors of each rank ---------------------------------------------- */

struct tensors {
    size_t counts[PARTS];
    float *in[RANKS][PARTS];
    float *out[RANKS][PARTS];
    struct rueda_part parts[RANKS][PARTS];
    size_t end; /* of the last part */
    char *slab[RANKS];
};

static void *numbers(size_t count)
{
    void *memory = calloc(count + 1, sizeof(float));

    assert_non_null(memory);
    return memory;
}

static void make(struct tensors *all)
{
    for (int i = 0; i < PARTS; i++) {
        const size_t bytes = all->counts[i] * sizeof(float);
        size_t at = 0;

        assert_true(rueda_layout_add(&all->end, SIZE_MAX, bytes, &at));
        for (int rank = 0; rank < RANKS; rank++) {
            all->in[rank][i] = numbers(all->counts[i]);
            all->out[rank][i] = numbers(all->counts[i]);
            for (size_t k = 0; k < all->counts[i]; k++)
                all->in[rank][i][k] = (float)((k + (size_t)rank) % 97);
            all->parts[rank][i] = (struct rueda_part){.send = all->in[rank][i],
                                                      .recv = all->out[rank][i],
                                                      .at = at,
                                                      .bytes = bytes};
        }
    }
    for (int rank = 0; rank < RANKS; rank++)
        all->slab[rank] = numbers(all->end / sizeof(float));
}

static void check(const struct tensors *all)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < PARTS; i++)
            for (size_t k = 0; k < all->counts[i]; k++) {
                float sum = 0;

                for (int of = 0; of < RANKS; of++)
                    sum += 2 * (float)((k + (size_t)of) % 97);
                assert_float_equal(all->out[rank][i][k], sum / 4, 0);
            }
}

static void drop(struct tensors *all)
{
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < PARTS; i++) {
            free(all->in[rank][i]);
            free(all->out[rank][i]);
        }
        free(all->slab[rank]);
    }
}

static void await(struct rueda_work *work)
{
    int polls = 0;

    assert_int_equal(work->status, RUEDA_IN_PROGRESS);
    while (rueda_device_poll(&far_device, work) == RUEDA_IN_PROGRESS)
        polls++;
    assert_int_equal(work->status, RUEDA_OK);
    assert_true(polls >= FAR_PATIENCE - 1);
}

static void run(const struct rueda_algo *algo, struct tensors *all)
{
    struct ranks *ranks = ranks_open(RANKS);
    struct rueda_coll coll[RANKS];
    struct rueda_work work = {RUEDA_OK, {NULL}};

    make(all);
    for (int rank = 0; rank < RANKS; rank++) {
        ranks->place[rank].device = &far_device;
        rueda_device_gather(&far_device, &work, all->slab[rank],
                            all->parts[rank], PARTS);
        await(&work);
        coll[rank] = (struct rueda_coll){
            .kind = RUEDA_ALLREDUCE,
            .root = -1,
            .arith = {RUEDA_FLOAT32, RUEDA_SUM, 2, 0.25},
            .elem_bytes = sizeof(float),
            .send = all->slab[rank],
            .recv = all->slab[rank],
            .count = all->end / sizeof(float),
        };
    }
    far_reset();
    assert_int_equal(ranks_run(ranks, algo, coll), RUEDA_OK);
    assert_true(far_counts().calls >= RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        rueda_device_scatter(&far_device, &work, all->slab[rank],
                             all->parts[rank], PARTS);
        await(&work);
    }
    check(all);
    drop(all);
    ranks_close(ranks);
}

static void tensors_are_reduced_by_every_algorithm(void **state)
{
    static const struct rueda_algo *const algos[] = {
        &rueda_algo_ring, &rueda_algo_doubling, &rueda_algo_halving_doubling,
        &rueda_algo_tree};

    (void)state;
    for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
        struct tensors few = {.counts = {3, 100, 17}};
        struct tensors many = {.counts = {70000, 5, 300000}};

        run(algos[i], &few);
        run(algos[i], &many);
    }
}

static void an_algorithm_for_the_host_is_not_chosen(void **state)
{
    struct rueda_mesh mesh = {.rank = 0, .size = 2, .memory = FAR_MEMORY};
    struct rueda_place place = {
        .mesh = &mesh, .slab = (void *)&mesh, .device = &far_device};
    struct rueda_coll coll = {.kind = RUEDA_ALLREDUCE, .elem_bytes = 4};
    struct rueda_select select;

    (void)state;
    rueda_select_init(&select);
    for (coll.count = 1; coll.count < MOST; coll.count *= 8) {
        const struct rueda_algo *algo =
            rueda_select_choose(&select, &place, &coll);

        assert_true(algo != NULL && !algo->needs_slab);
    }
}

static void a_device_brings_its_own_algorithm(void **state)
{
    static const struct rueda_algo own = {
        .name = "own", .kinds = 1u << RUEDA_ALLREDUCE, .memory = FAR_MEMORY};
    static const struct rueda_algo *const list[] = {&own, NULL};
    const struct rueda_device device = {.ops = far_device.ops, .algos = list};
    struct rueda_mesh mesh = {.rank = 0, .size = 2, .memory = FAR_MEMORY};
    struct rueda_place place = {.mesh = &mesh, .device = &device};
    struct rueda_coll coll = {.kind = RUEDA_ALLREDUCE, .elem_bytes = 4};
    struct rueda_select select;

    (void)state;
    rueda_select_init(&select);
    assert_ptr_equal(rueda_select_choose(&select, &place, &coll), &own);
    coll.kind = RUEDA_BROADCAST;
    assert_ptr_equal(rueda_select_choose(&select, &place, &coll),
                     &rueda_algo_tree);
}

/* Ranks of several hosts whose network sends from the memory of the host: no
 * algorithm that sends messages is chosen, but one of the device's own that
 * shares a slab with the others is. */
static void messages_are_not_sent_from_memory_out_of_reach(void **state)
{
    static const struct rueda_algo own = {.name = "own",
                                          .kinds = 1u << RUEDA_ALLREDUCE,
                                          .memory = FAR_MEMORY,
                                          .needs_slab = true};
    static const struct rueda_algo *const list[] = {&own, NULL};
    const struct rueda_device device = {.ops = far_device.ops, .algos = list};
    struct rueda_mesh mesh = {
        .rank = 0, .size = 2, .memory = RUEDA_MEMKIND_HOST};
    struct rueda_place place = {.mesh = &mesh, .device = &far_device};
    struct rueda_coll coll = {.elem_bytes = 4, .count = 1000};
    struct rueda_select select;

    (void)state;
    rueda_select_init(&select);
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        coll.kind = (rueda_kind)kind;
        mesh.memory = RUEDA_MEMKIND_HOST;
        assert_null(rueda_select_choose(&select, &place, &coll));
        mesh.memory = RUEDA_MEMKIND_HOST | FAR_MEMORY;
        assert_non_null(rueda_select_choose(&select, &place, &coll));
    }
    mesh.memory = RUEDA_MEMKIND_HOST;
    coll.kind = RUEDA_ALLREDUCE;
    place.device = &device;
    assert_null(rueda_select_choose(&select, &place, &coll));
    place.slab = (void *)&mesh;
    assert_ptr_equal(rueda_select_choose(&select, &place, &coll), &own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_reduced_by_every_algorithm),
        cmocka_unit_test(an_algorithm_for_the_host_is_not_chosen),
        cmocka_unit_test(a_device_brings_its_own_algorithm),
        cmocka_unit_test(messages_are_not_sent_from_memory_out_of_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
