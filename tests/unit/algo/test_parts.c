/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ranks that add a vector in parts by `direct`, both driven by one thread,
 * so that one of them can stop in the middle.
 */
#include "algo/registry.h"
#include "segment/slab.h"
#include "unit/unit.h"

#define RANKS  2
#define PARTS  5
#define BUFFER ((size_t)1 << 20)

/* Cells of rings that hold the whole vector, and of those that do not. */
#define LONG_CELL  ((size_t)4096)
#define SHORT_CELL ((size_t)512)

static const size_t counts[PARTS] = {1, 70000, 0, 16, 111111};

struct pair {
    struct rueda_segment *segments[RANKS];
    struct rueda_slab slabs[RANKS];
    struct rueda_mesh meshes[RANKS];
    struct rueda_place places[RANKS];
    struct rueda_task tasks[RANKS];
    struct rueda_part parts[RANKS][PARTS];
    int32_t *tensors[RANKS][PARTS];
    void *buffers[RANKS];
};

static int32_t number(int rank, int part, size_t i)
{
    return (int32_t)i * 3 + part * 1000 + rank * 7 + 1;
}

/* In place. Returns the bytes of the vector. */
static size_t list_parts(struct pair *pair, int rank)
{
    size_t at = 0;
    size_t end = 0;

    for (int k = 0; k < PARTS; k++) {
        int32_t *tensor = calloc(counts[k] + 1, sizeof(int32_t));

        for (size_t i = 0; i < counts[k]; i++)
            tensor[i] = number(rank, k, i);
        pair->tensors[rank][k] = tensor;
        pair->parts[rank][k] = (struct rueda_part){
            .send = tensor,
            .recv = tensor,
            .at = at,
            .bytes = counts[k] * sizeof(int32_t),
        };
        end = at + pair->parts[rank][k].bytes;
        at = (end + 63) / 64 * 64;
    }
    return end;
}

static void begin(struct pair *pair, int rank)
{
    struct rueda_task *task = &pair->tasks[rank];
    struct rueda_place *place = &pair->places[rank];

    pair->meshes[rank] = (struct rueda_mesh){.rank = rank, .size = RANKS};
    *place = (struct rueda_place){
        .mesh = &pair->meshes[rank],
        .slab = &pair->slabs[rank],
        .device = rueda_device_default("auto"),
    };
    memset(task, 0, sizeof(*task));
    task->algo = &rueda_algo_direct;
    task->place = place;
    task->coll = (struct rueda_coll){
        .kind = RUEDA_ALLREDUCE,
        .arith = {.dtype = RUEDA_INT32,
                  .reduction = RUEDA_SUM,
                  .prescale = 1,
                  .postscale = 1},
        .elem_bytes = sizeof(int32_t),
        .count = list_parts(pair, rank) / sizeof(int32_t),
        .send = pair->buffers[rank],
        .recv = pair->buffers[rank],
        .parts = pair->parts[rank],
        .part_count = PARTS,
    };
    assert_true(task->algo->takes_parts(place, &task->coll));
}

static int open_pair(void **state, size_t cell)
{
    static struct pair pair;
    struct rueda_text error = {{0}};
    void *at;

    *state = &pair;
    if (rueda_segment_threads(RANKS, pair.segments, &error) != RUEDA_OK ||
        rueda_segment_alloc(pair.segments[0], rueda_slab_bytes(RANKS, cell),
                            &at, &error) != RUEDA_OK)
        return -1;
    for (int rank = 0; rank < RANKS; rank++) {
        rueda_slab_init(&pair.slabs[rank], pair.segments[rank], at, cell);
        if (rueda_segment_alloc(pair.segments[rank], BUFFER,
                                &pair.buffers[rank], &error) != RUEDA_OK)
            return -1;
    }
    return 0;
}

static int pair_open(void **state)
{
    return open_pair(state, LONG_CELL);
}

static int pair_open_short(void **state)
{
    return open_pair(state, SHORT_CELL);
}

static int pair_close(void **state)
{
    struct pair *pair = *state;

    for (int rank = 0; rank < RANKS; rank++)
        rueda_segment_close(pair->segments[rank]);
    return 0;
}

static void free_tensors(struct pair *pair)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int k = 0; k < PARTS; k++)
            free(pair->tensors[rank][k]);
}

/* How many numbers of a rank are those that it brought, and are sums. */
static void count(const struct pair *pair, int rank, size_t *inputs,
                  size_t *sums)
{
    *inputs = 0;
    *sums = 0;
    for (int k = 0; k < PARTS; k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            int32_t is = pair->tensors[rank][k][i];

            *inputs += is == number(rank, k, i);
            *sums += is == number(0, k, i) + number(1, k, i);
        }
    }
}

static size_t all_numbers(void)
{
    size_t all = 0;

    for (int k = 0; k < PARTS; k++)
        all += counts[k];
    return all;
}

/* One operation, in turns of both. */
static void add_once(struct pair *pair)
{
    rueda_status status[RANKS];

    for (int rank = 0; rank < RANKS; rank++)
        begin(pair, rank);
    for (int rank = 0; rank < RANKS; rank++)
        status[rank] = rueda_algo_direct.post(&pair->tasks[rank]);
    for (int turn = 0; turn < 1000; turn++)
        for (int rank = 0; rank < RANKS; rank++)
            if (status[rank] == RUEDA_IN_PROGRESS)
                status[rank] = rueda_algo_direct.progress(&pair->tasks[rank]);
    for (int rank = 0; rank < RANKS; rank++) {
        size_t inputs;
        size_t sums;

        assert_int_equal(status[rank], RUEDA_OK);
        assert_int_equal(pair->tasks[rank].coll.part_count, 0);
        rueda_algo_direct.finish(&pair->tasks[rank]);
        count(pair, rank, &inputs, &sums);
        assert_int_equal(sums, all_numbers());
    }
    free_tensors(pair);
}

static void parts_are_added_where_they_are(void **state)
{
    add_once(*state);
}

/* A buffer is written again when the other has let go of it. */
static void buffers_are_used_again(void **state)
{
    struct pair *pair = *state;

    for (int i = 0; i < 3; i++) {
        add_once(pair);
        for (int rank = 0; rank < RANKS; rank++)
            assert_true(rueda_slab_is_back(&pair->slabs[rank]));
    }
}

/* Rank 0 publishes a few blocks and is heard of no more. */
static void inputs_come_back_when_it_ends_in_the_middle(void **state)
{
    struct pair *pair = *state;
    size_t inputs;
    size_t sums;

    for (int rank = 0; rank < RANKS; rank++)
        begin(pair, rank);
    assert_int_equal(rueda_algo_direct.post(&pair->tasks[0]),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(rueda_algo_direct.post(&pair->tasks[1]),
                     RUEDA_IN_PROGRESS);
    count(pair, 1, &inputs, &sums);
    assert_in_range(sums, 1000, all_numbers() - 1000);
    assert_int_equal(inputs + sums, all_numbers());
    rueda_algo_direct.finish(&pair->tasks[1]);
    count(pair, 1, &inputs, &sums);
    assert_int_equal(inputs, all_numbers());
    free_tensors(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_are_added_where_they_are,
                                        pair_open, pair_close),
        cmocka_unit_test_setup_teardown(
            inputs_come_back_when_it_ends_in_the_middle, pair_open, pair_close),
        cmocka_unit_test_setup_teardown(parts_are_added_where_they_are,
                                        pair_open_short, pair_close),
        cmocka_unit_test_setup_teardown(buffers_are_used_again, pair_open_short,
                                        pair_close),
        cmocka_unit_test_setup_teardown(
            inputs_come_back_when_it_ends_in_the_middle, pair_open_short,
            pair_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
