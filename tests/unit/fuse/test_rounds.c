/* SPDX-License-Identifier: Apache-2.0 */
/* What runs together: which requests fit one another, and how many of them fit
 * the slab at a time. */
#include "fuse/rounds.h"
#include "unit/unit.h"

/* Of a row: 2 numbers. */
#define ROW ((size_t)8)

enum {
    MOST = 6,
    MEMBERS = 3
};

struct scene {
    struct rueda_part parts[MOST];
    struct rueda_tensor tensors[MOST];
    struct rueda_round round;
};

static struct rueda_round *begin(struct scene *scene, rueda_kind kind,
                                 size_t room)
{
    memset(scene, 0, sizeof(*scene));
    scene->round = (struct rueda_round){
        .kind = kind,
        .members = MEMBERS,
        .most = MOST,
        .room = room,
        .parts = scene->parts,
        .tensors = scene->tensors,
    };
    return &scene->round;
}

static struct rueda_request request_of(int kind, size_t rows)
{
    struct rueda_request request;

    rueda_request_init(&request, kind);
    request.dtype = RUEDA_FLOAT32;
    request.dims = 2;
    request.shape[0] = rows;
    request.shape[1] = 2;
    return request;
}

static bool add(struct rueda_round *round, size_t rows)
{
    const struct rueda_request request = request_of((int)round->kind, rows);

    return rueda_round_add(round, &request);
}

/* ---- What fits together ------------------------------------------------ */

static void kinds_that_are_packed_may_share(void **state)
{
    static const int kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                RUEDA_REDUCE_SCATTER, RUEDA_BROADCAST};
    struct rueda_request request;

    (void)state;
    for (int i = 0; i < 4; i++) {
        request = request_of(kinds[i], 8);
        assert_true(rueda_round_may_share(&request));
        assert_true(rueda_round_fits(&request, &request));
    }
    request = request_of(RUEDA_ALLTOALL, 8);
    assert_false(rueda_round_may_share(&request));
    assert_false(rueda_round_fits(&request, &request));
    request = request_of(RUEDA_BARRIER, 8);
    assert_false(rueda_round_may_share(&request));
    request = request_of(RUEDA_ALLREDUCE, 8);
    request.reduction = RUEDA_ADASUM;
    assert_false(rueda_round_may_share(&request));
}

static void what_is_left_where_it_is_runs_alone(void **state)
{
    struct rueda_request request = request_of(RUEDA_ALLREDUCE, 8);
    struct scene scene;
    struct rueda_round *round = begin(&scene, RUEDA_ALLREDUCE, 1 << 20);

    (void)state;
    request.flags = RUEDA_UNPACKED;
    assert_false(rueda_round_may_share(&request));
    assert_false(rueda_round_add(round, &request));
    assert_int_equal(round->count, 0);
    assert_true(add(round, 8));
    assert_false(rueda_round_add(round, &request));
}

static void large_broadcasts_run_alone(void **state)
{
    struct rueda_request small =
        request_of(RUEDA_BROADCAST, RUEDA_ROUND_BROADCAST_MOST / 8);
    struct rueda_request large =
        request_of(RUEDA_BROADCAST, RUEDA_ROUND_BROADCAST_MOST / 8 + 1);

    (void)state;
    assert_true(rueda_round_may_share(&small));
    assert_false(rueda_round_may_share(&large));
    assert_false(rueda_round_fits(&small, &large));
    assert_false(rueda_round_fits(&large, &small));
}

static void broadcasts_from_different_roots_do_not_fit(void **state)
{
    struct rueda_request a = request_of(RUEDA_BROADCAST, 1);
    struct rueda_request b = a;

    (void)state;
    a.root = 1;
    b.root = 1;
    assert_true(rueda_round_fits(&a, &b));
    b.root = 2;
    assert_false(rueda_round_fits(&a, &b));
}

/* What fits by the sum of spans fits one round. Rows of 8 bytes: odd sizes. */
static void what_the_coordinator_joins_is_one_round(void **state)
{
    static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_BROADCAST,
                                       RUEDA_ALLGATHER, RUEDA_REDUCE_SCATTER};
    struct scene scene;

    (void)state;
    for (int k = 0; k < 4; k++)
        for (size_t first = 0; first < 30; first++) {
            uint64_t rows[MEMBERS * MOST];
            struct rueda_round *round;
            size_t room = 0;

            for (size_t i = 0; i < MOST; i++) {
                const struct rueda_request request =
                    request_of((int)kinds[k], first * i % 29);

                room += rueda_round_span(&request, MEMBERS);
                for (size_t m = 0; m < MEMBERS; m++)
                    rows[m * MOST + i] = first * i % 29;
            }
            round = begin(&scene, kinds[k], room);
            round->rows = rows;
            round->stride = MOST;
            for (size_t i = 0; i < MOST; i++)
                assert_true(add(round, first * i % 29));
            assert_true(rueda_round_bytes(round) <= room);
        }
}

/* ---- Rounds ------------------------------------------------------------ */

static void whole_tensors_lie_one_behind_another(void **state)
{
    struct scene scene;
    struct rueda_round *round = begin(&scene, RUEDA_ALLREDUCE, 200);

    (void)state;
    assert_true(add(round, 1));
    assert_true(add(round, 9));
    assert_int_equal(scene.parts[0].at, 0);
    assert_int_equal(scene.parts[0].bytes, 8);
    assert_int_equal(scene.parts[1].at, 64);
    assert_int_equal(scene.parts[1].bytes, 72);
    assert_int_equal(rueda_round_bytes(round), 136);
    assert_false(add(round, 2));
    assert_int_equal(round->count, 2);
    assert_true(add(round, 1));
    assert_int_equal(rueda_round_bytes(round), 200);
}

static void a_large_broadcast_is_in_no_round(void **state)
{
    struct scene scene;
    struct rueda_round *round =
        begin(&scene, RUEDA_BROADCAST, 4 * RUEDA_ROUND_BROADCAST_MOST);

    (void)state;
    assert_true(add(round, 1));
    assert_false(add(round, RUEDA_ROUND_BROADCAST_MOST / 8 + 1));
    assert_true(add(round, RUEDA_ROUND_BROADCAST_MOST / 8));
    assert_int_equal(round->count, 2);
}

static void rows_of_an_allgather_lie_by_members(void **state)
{
    const uint64_t rows[] = {1, 0, 7, /* of member 0 */
                             2, 5, 7, 3, 0, 7};
    struct scene scene;
    struct rueda_round *round = begin(&scene, RUEDA_ALLGATHER, ROW * 11);

    (void)state;
    round->rows = rows;
    round->stride = 3;
    assert_true(add(round, 1));
    assert_true(add(round, 1));
    assert_false(add(round, 1));
    assert_int_equal(round->count, 2);
    assert_int_equal(scene.tensors[0].rows, 6);
    assert_int_equal(scene.tensors[1].rows, 5);
    assert_int_equal(rueda_round_bytes(round), ROW * 11);
    for (int i = 0; i < MEMBERS; i++) {
        static const size_t blocks[] = {ROW * 1, ROW * 7, ROW * 3};
        static const size_t begins[] = {0, ROW * 1, ROW * 8};

        assert_int_equal(rueda_round_block(round, i), blocks[i]);
        assert_int_equal(rueda_round_begin(round, i), begins[i]);
    }
}

static void rows_beyond_any_memory_are_in_no_round(void **state)
{
    const uint64_t rows[] = {UINT64_MAX / 8, UINT64_MAX / 8, 2};
    struct scene scene;
    struct rueda_round *round = begin(&scene, RUEDA_ALLGATHER, SIZE_MAX / 2);

    (void)state;
    round->rows = rows;
    round->stride = 1;
    assert_false(add(round, 1));
    assert_int_equal(round->count, 0);
}

static void the_result_of_a_reduce_scatter_is_behind_its_input(void **state)
{
    struct scene scene;
    struct rueda_round *round =
        begin(&scene, RUEDA_REDUCE_SCATTER, 128 + ROW * 5);

    (void)state;
    assert_true(add(round, 10)); /* 4, 3, 3 */
    assert_true(add(round, 1));
    assert_false(add(round, 1));
    assert_int_equal(round->end, 88);
    assert_int_equal(rueda_round_bytes(round), 128 + ROW * 5);
    assert_int_equal(rueda_round_block(round, 0), ROW * 5);
    assert_int_equal(rueda_round_block(round, 1), ROW * 3);
    assert_int_equal(rueda_round_begin(round, 2), ROW * 8);
}

static void a_round_has_a_limit_of_tensors(void **state)
{
    struct scene scene;
    struct rueda_round *round = begin(&scene, RUEDA_ALLREDUCE, 1 << 20);

    (void)state;
    for (int i = 0; i < MOST; i++)
        assert_true(add(round, 0));
    assert_false(add(round, 0));
    round->most = 0;
    round->count = 0;
    assert_false(add(round, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_that_are_packed_may_share),
        cmocka_unit_test(what_is_left_where_it_is_runs_alone),
        cmocka_unit_test(large_broadcasts_run_alone),
        cmocka_unit_test(broadcasts_from_different_roots_do_not_fit),
        cmocka_unit_test(what_the_coordinator_joins_is_one_round),
        cmocka_unit_test(whole_tensors_lie_one_behind_another),
        cmocka_unit_test(a_large_broadcast_is_in_no_round),
        cmocka_unit_test(rows_of_an_allgather_lie_by_members),
        cmocka_unit_test(rows_beyond_any_memory_are_in_no_round),
        cmocka_unit_test(the_result_of_a_reduce_scatter_is_behind_its_input),
        cmocka_unit_test(a_round_has_a_limit_of_tensors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
