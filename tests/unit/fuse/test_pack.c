/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that share a slab, of every kind: they come out as they went in. The
 * list of parts is shorter than what is packed, so that it is packed in
 * several calls. Numbers are bytes, and a tensor has rows of 3 of them. */
#include "fuse/pack.h"
#include "unit/unit.h"

enum {
    MEMBERS = 3,
    TENSORS = 4,
    ROW = 3,
    LONGEST = 90,
    ROOM = 4096,
};

static const uint64_t rows[MEMBERS][TENSORS] = {
    {1, 0, 9, 2}, {0, 3, 4, 30}, {5, 5, 0, 1}};

struct scene {
    struct rueda_part parts[TENSORS];
    struct rueda_tensor tensors[TENSORS];
    struct rueda_round round;
    struct rueda_work work;
    unsigned char in[TENSORS][LONGEST * ROW];
    unsigned char out[TENSORS][LONGEST * ROW];
    char slab[ROOM];
};

static const struct rueda_device *host(void)
{
    return rueda_device_default("auto");
}

static void begin(struct scene *scene, rueda_kind kind, int me)
{
    memset(scene, 0, sizeof(*scene));
    memset(scene->slab, 0x55, sizeof(scene->slab));
    memset(scene->out, 0x55, sizeof(scene->out));
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < LONGEST * ROW; k++)
            scene->in[i][k] = (unsigned char)(i * 50 + k + 1);
    scene->round = (struct rueda_round){
        .kind = kind,
        .members = MEMBERS,
        .me = me,
        .most = TENSORS,
        .room = ROOM,
        .slab = scene->slab,
        .parts = scene->parts,
        .tensors = scene->tensors,
        .rows = rows[0],
        .stride = TENSORS,
    };
}

/* With so many rows, where that matters. */
static void add(struct scene *scene, size_t count)
{
    struct rueda_round *round = &scene->round;
    const int i = round->count;
    struct rueda_request request;

    rueda_request_init(&request, (int)round->kind);
    request.dims = 2;
    request.shape[0] = count;
    request.shape[1] = ROW;
    assert_true(rueda_round_add(round, &request));
    scene->parts[i].send = scene->in[i];
    scene->parts[i].recv = scene->out[i];
    scene->tensors[i].send = (const char *)scene->in[i];
    scene->tensors[i].recv = (char *)scene->out[i];
}

static void pack_in(struct scene *scene)
{
    rueda_pack_in(&scene->round, host(), &scene->work);
    assert_int_equal(scene->work.status, RUEDA_OK);
}

static void pack_out(struct scene *scene)
{
    rueda_pack_out(&scene->round, host(), &scene->work);
    assert_int_equal(scene->work.status, RUEDA_OK);
}

static void whole_tensors_come_out_as_they_went_in(void **state)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_BROADCAST};
    struct scene scene;

    (void)state;
    for (int k = 0; k < 2; k++) {
        begin(&scene, kinds[k], 1);
        scene.round.root = 1;
        for (size_t i = 0; i < TENSORS; i++)
            add(&scene, i * 10);
        scene.parts[2].recv = NULL;
        pack_in(&scene);
        assert_int_equal(scene.slab[scene.round.end], 0x55);
        pack_out(&scene);
        for (size_t i = 0; i < TENSORS; i++)
            if (i != 2)
                assert_memory_equal(scene.out[i], scene.in[i], i * 10 * ROW);
        assert_int_equal(scene.out[2][0], 0x55);
    }
}

static void gaps_and_tensors_that_are_not_there_become_zeros(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, RUEDA_ALLREDUCE, 0);
    add(&scene, 1);
    add(&scene, 30);
    scene.parts[1].send = NULL;
    pack_in(&scene);
    assert_memory_equal(scene.slab, scene.in[0], ROW);
    for (size_t i = ROW; i < scene.round.end; i++)
        assert_int_equal(scene.slab[i], 0);
    assert_int_equal(scene.slab[scene.round.end], 0x55);
}

static void only_the_root_of_a_broadcast_packs(void **state)
{
    struct scene scene;

    (void)state;
    begin(&scene, RUEDA_BROADCAST, 1);
    scene.round.root = 0;
    add(&scene, 5);
    add(&scene, 5);
    pack_in(&scene);
    for (size_t i = 0; i < ROOM; i++)
        assert_int_equal(scene.slab[i], 0x55);
}

/* Each member packs its block, into one slab here. */
static void rows_of_all_members_are_gathered(void **state)
{
    struct scene scene;
    unsigned char all[TENSORS][LONGEST * ROW];
    size_t done[TENSORS] = {0};
    char slab[ROOM];

    (void)state;
    memset(slab, 0x55, sizeof(slab));
    for (int me = 0; me < MEMBERS; me++) {
        begin(&scene, RUEDA_ALLGATHER, me);
        for (int i = 0; i < TENSORS; i++) {
            const size_t bytes = rows[me][i] * ROW;

            add(&scene, 1);
            memset(scene.in[i], me * 10 + i + 1, bytes);
            memcpy(all[i] + done[i], scene.in[i], bytes);
            done[i] += bytes;
        }
        memcpy(scene.slab, slab, sizeof(slab));
        pack_in(&scene);
        memcpy(slab, scene.slab, sizeof(slab));
    }
    assert_int_equal(slab[scene.round.end], 0x55);
    scene.tensors[3].recv = NULL;
    pack_out(&scene);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(scene.out[i], all[i], done[i]);
        assert_int_equal(scene.out[i][done[i]], 0x55);
    }
    assert_int_equal(scene.out[3][0], 0x55);
}

/* What each member gets is copied to where its result would be. */
static void shares_of_all_members_are_scattered(void **state)
{
    size_t done[TENSORS] = {0};
    struct scene scene;

    (void)state;
    for (int me = 0; me < MEMBERS; me++) {
        begin(&scene, RUEDA_REDUCE_SCATTER, me);
        for (size_t i = 0; i < TENSORS; i++)
            add(&scene, i * 5 + 1);
        pack_in(&scene);
        memcpy(scene.slab + rueda_layout_span(scene.round.end),
               scene.slab + rueda_round_begin(&scene.round, me),
               rueda_round_block(&scene.round, me));
        pack_out(&scene);
        for (int i = 0; i < TENSORS; i++) {
            const size_t bytes = rueda_round_rows(&scene.round, i, me) * ROW;

            assert_memory_equal(scene.out[i], scene.in[i] + done[i], bytes);
            assert_int_equal(scene.out[i][bytes], 0x55);
            done[i] += bytes;
        }
    }
    for (size_t i = 0; i < TENSORS; i++)
        assert_int_equal(done[i], (i * 5 + 1) * ROW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_tensors_come_out_as_they_went_in),
        cmocka_unit_test(gaps_and_tensors_that_are_not_there_become_zeros),
        cmocka_unit_test(only_the_root_of_a_broadcast_packs),
        cmocka_unit_test(rows_of_all_members_are_gathered),
        cmocka_unit_test(shares_of_all_members_are_scattered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
