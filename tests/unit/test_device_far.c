/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second kind of memory, for which every call answers "in progress" and takes
 * effect only some polls later: tensors are packed, reduced by ranks over the
 * loop transport, and unpacked.
 */
#include <stdlib.h>

#include "algo/registry.h"
#include "device/device.h"
#include "fuse/pack.h"
#include "support/ranks.h"
#include "unit/unit.h"

enum {
    RANKS = 5,
    PARTS = 3,
    CALLS = 64,   /* in one row */
    PATIENCE = 3, /* polls before a call takes effect */
    MEMORY = 1 << 7,
    MOST = 1 << 20, /* numbers of a tensor */
};

/* A call that has been accepted. */
struct call {
    enum {
        COPY,
        GATHER,
        SCATTER,
        REDUCE,
        SCALE
    } what;
    void *dst;
    const void *src[2];
    int n;
    size_t count;
    double factor;
    struct rueda_arith arith;
    struct rueda_part parts[PARTS];
};

/* What a row has yet to do. */
struct row {
    struct call calls[CALLS];
    int first;
    int end;
    int polls;
};

static int accepted;
static const struct rueda_device *near; /* does the work in the end */

static struct call *accept_call(struct rueda_work *work)
{
    struct row *row = work->state[0];

    if (row == NULL) {
        row = calloc(1, sizeof(*row));
        assert_non_null(row);
        work->state[0] = row;
    }
    assert_true(row->end < CALLS);
    accepted++;
    return &row->calls[row->end++];
}

static void *far_alloc(const struct rueda_device *device, size_t bytes)
{
    (void)device;
    return malloc(bytes + 1);
}

static void far_free(const struct rueda_device *device, void *at)
{
    (void)device;
    free(at);
}

static rueda_status far_copy(const struct rueda_device *device,
                             struct rueda_work *work, void *dst,
                             const void *src, size_t bytes)
{
    (void)device;
    *accept_call(work) =
        (struct call){.what = COPY, .dst = dst, .src = {src}, .count = bytes};
    return RUEDA_IN_PROGRESS;
}

static rueda_status accept_parts(struct rueda_work *work, int what, void *dst,
                                 const void *src,
                                 const struct rueda_part *parts, int count)
{
    struct call *call = accept_call(work);

    assert_true(count <= PARTS);
    *call = (struct call){.what = what, .dst = dst, .src = {src}, .n = count};
    memcpy(call->parts, parts, (size_t)count * sizeof(*parts));
    return RUEDA_IN_PROGRESS;
}

static rueda_status far_gather(const struct rueda_device *device,
                               struct rueda_work *work, char *slab,
                               const struct rueda_part *parts, int count)
{
    (void)device;
    return accept_parts(work, GATHER, slab, NULL, parts, count);
}

static rueda_status far_scatter(const struct rueda_device *device,
                                struct rueda_work *work, const char *slab,
                                const struct rueda_part *parts, int count)
{
    (void)device;
    return accept_parts(work, SCATTER, NULL, slab, parts, count);
}

static rueda_status far_reduce(const struct rueda_device *device,
                               struct rueda_work *work,
                               const struct rueda_arith *arith, void *dst,
                               const void *const *src, int n, size_t count)
{
    (void)device;
    assert_int_equal(n, 2);
    *accept_call(work) = (struct call){.what = REDUCE,
                                       .dst = dst,
                                       .src = {src[0], src[1]},
                                       .n = n,
                                       .count = count,
                                       .arith = *arith};
    return RUEDA_IN_PROGRESS;
}

static rueda_status far_scale(const struct rueda_device *device,
                              struct rueda_work *work, rueda_dtype dtype,
                              void *dst, const void *src, size_t count,
                              double factor)
{
    (void)device;
    *accept_call(work) = (struct call){.what = SCALE,
                                       .dst = dst,
                                       .src = {src},
                                       .count = count,
                                       .factor = factor,
                                       .arith = {.dtype = dtype}};
    return RUEDA_IN_PROGRESS;
}

static void take_effect(const struct call *call)
{
    struct rueda_work done = {RUEDA_OK, {NULL}};

    switch (call->what) {
    case COPY:
        rueda_device_copy(near, &done, call->dst, call->src[0], call->count);
        break;
    case GATHER:
        rueda_device_gather(near, &done, call->dst, call->parts, call->n);
        break;
    case SCATTER:
        rueda_device_scatter(near, &done, call->src[0], call->parts, call->n);
        break;
    case REDUCE:
        rueda_device_reduce(near, &done, &call->arith, call->dst, call->src,
                            call->n, call->count);
        break;
    case SCALE:
        rueda_device_scale(near, &done, call->arith.dtype, call->dst,
                           call->src[0], call->count, call->factor);
        break;
    }
}

static rueda_status far_poll(const struct rueda_device *device,
                             struct rueda_work *work)
{
    struct row *row = work->state[0];

    (void)device;
    if (++row->polls % PATIENCE != 0)
        return RUEDA_IN_PROGRESS;
    take_effect(&row->calls[row->first++]);
    if (row->first < row->end)
        return RUEDA_IN_PROGRESS;
    free(row);
    work->state[0] = NULL;
    return RUEDA_OK;
}

static const struct rueda_device_ops far_ops = {
    .name = "far",
    .memory = MEMORY,
    .alloc = far_alloc,
    .free = far_free,
    .copy = far_copy,
    .gather = far_gather,
    .scatter = far_scatter,
    .reduce = far_reduce,
    .scale = far_scale,
    .poll = far_poll,
};
static const struct rueda_device far_device = {.ops = &far_ops};

/* ---- Tensors of each rank ---------------------------------------------- */

struct tensors {
    size_t counts[PARTS];
    float *in[RANKS][PARTS];
    float *out[RANKS][PARTS];
    struct rueda_part parts[RANKS][PARTS];
    struct rueda_layout layout;
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

        assert_true(rueda_layout_add(&all->layout, SIZE_MAX, bytes, &at));
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
        all->slab[rank] = numbers(all->layout.end / sizeof(float));
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
    assert_true(polls >= PATIENCE - 1);
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
            .count = all->layout.end / sizeof(float),
        };
    }
    accepted = 0;
    assert_int_equal(ranks_run(ranks, algo, coll), RUEDA_OK);
    assert_true(accepted >= RANKS);
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
    near = rueda_device_default("auto");
    for (size_t i = 0; i < sizeof(algos) / sizeof(algos[0]); i++) {
        struct tensors few = {.counts = {3, 100, 17}};
        struct tensors many = {.counts = {70000, 5, 300000}};

        run(algos[i], &few);
        run(algos[i], &many);
    }
}

static void an_algorithm_for_the_host_is_not_chosen(void **state)
{
    struct rueda_mesh mesh = {.rank = 0, .size = 2};
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
        .name = "own", .kinds = 1u << RUEDA_ALLREDUCE, .memory = MEMORY};
    static const struct rueda_algo *const list[] = {&own, NULL};
    const struct rueda_device device = {.ops = &far_ops, .algos = list};
    struct rueda_mesh mesh = {.rank = 0, .size = 2};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_reduced_by_every_algorithm),
        cmocka_unit_test(an_algorithm_for_the_host_is_not_chosen),
        cmocka_unit_test(a_device_brings_its_own_algorithm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
