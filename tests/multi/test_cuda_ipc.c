/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that map each other's memory of a GPU, over the stand-in for the CUDA
 * driver: the memory of one process is really mapped by the others. Results are
 * compared with those of the same numbers on the host, bit by bit.
 *
 * A test also looks at how many allocations are mapped, as results would be
 * right by way of the host, too.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "support/gpu_rank.h"
#include "support/processes.h"

/* All too long to go by way of the host, and some to be packed. */
static const size_t lengths[] = {262147, 300001, 400009};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
#define LARGE   ((size_t)5 << 20)

/* ---- Against the host ------------------------------------------------- */

/* Small numbers of any type, of which no sum or product of four is too large.
 */
static void fill(rueda_dtype dtype, void *out, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++) {
        const int number = (int)((i * 7 + (size_t)rank * 3) % 5);

        switch (dtype) {
        case RUEDA_FLOAT16: /* 1.0, 2.0, 3.0 */
            ((uint16_t *)out)[i] = (uint16_t)(0x3c00 + 0x200 * (number % 3));
            break;
        case RUEDA_BFLOAT16:
            ((uint16_t *)out)[i] = (uint16_t)(0x3f80 + 0x40 * (number % 3));
            break;
        case RUEDA_FLOAT32:
            ((float *)out)[i] = (float)number * 0.37f;
            break;
        case RUEDA_FLOAT64:
            ((double *)out)[i] = (double)number * 0.37;
            break;
        case RUEDA_BOOL:
            ((uint8_t *)out)[i] = number == 0;
            break;
        case RUEDA_INT64:
            ((int64_t *)out)[i] = number;
            break;
        case RUEDA_INT32:
            ((int32_t *)out)[i] = number;
            break;
        case RUEDA_UINT16:
        case RUEDA_INT16:
            ((int16_t *)out)[i] = (int16_t)number;
            break;
        default:
            ((uint8_t *)out)[i] = (uint8_t)number;
            break;
        }
    }
}

struct room {
    char *near; /* of the host, for `most` bytes */
    char *back;
    char *far; /* of the GPU, with a byte more in front than a number has */
    char *other;
};

/* One allreduce on the GPU, and the same on the host. */
static int compare(struct test_rank *me, struct gpu *gpu,
                   const struct room *room, struct rueda_submit_args *args,
                   bool is_in_place)
{
    const size_t bytes = args->shape[0] * rueda_dtype_size(args->dtype);
    /* Not where vectors of 16 bytes begin. */
    char *send = room->far + rueda_dtype_size(args->dtype) * (me->rank == 1);

    fill(args->dtype, room->near, args->shape[0], me->rank);
    if (!fake_cuda_copy(gpu->device, send, room->near, bytes))
        return rank_says(me, "no copy");
    args->name = "far";
    args->device = 0;
    args->stream = gpu->stream;
    args->send = send;
    args->recv = is_in_place ? send : room->other;
    if (gpu_run(me, args) != 0)
        return 1;
    if (!fake_cuda_copy(gpu->device, room->back, args->recv, bytes))
        return rank_says(me, "no copy back");
    args->name = "near";
    args->device = RUEDA_DEVICE_HOST;
    args->send = room->near;
    args->recv = room->near;
    if (gpu_run(me, args) != 0)
        return 1;
    if (memcmp(room->near, room->back, bytes) == 0)
        return 0;
    return rank_says(me, "allreduce of %zu of %s, reduction %d, differs",
                     args->shape[0], rueda_dtype_str(args->dtype),
                     (int)args->reduction);
}

static int room_open(const struct gpu *gpu, struct room *room, size_t most)
{
    room->near = malloc(most);
    room->back = malloc(most);
    room->far = gpu_put(gpu, NULL, most + 64);
    room->other = gpu_put(gpu, NULL, most + 64);
    return room->near == NULL || room->back == NULL || room->far == NULL ||
           room->other == NULL;
}

static void room_close(const struct gpu *gpu, const struct room *room)
{
    free(room->near);
    free(room->back);
    gpu->device->ops->free(gpu->device, room->far);
    gpu->device->ops->free(gpu->device, room->other);
}

/* Ranks that are threads share the driver, which maps nothing then. */
static int expect_mapped(struct test_rank *me, const struct gpu *gpu, bool any)
{
    const int mapped = gpu->fake.mapped();

    if (me->job == NULL)
        any = false;
    return (mapped > 0) == any
               ? 0
               : rank_says(me, "%d allocations are mapped", mapped);
}

/* Flags: packed into the slab, alone, or without negotiation. */
static int every_type(struct test_rank *me, struct gpu *gpu)
{
    static const unsigned flags[] = {0, RUEDA_UNPACKED};
    static const rueda_reduction reductions[] = {
        RUEDA_SUM, RUEDA_AVERAGE, RUEDA_MIN, RUEDA_MAX, RUEDA_PRODUCT};
    struct room room;
    int failed = room_open(gpu, &room, (lengths[LENGTHS - 1] + 8) * 8);

    for (int dtype = 0; dtype <= RUEDA_BFLOAT16 && failed == 0; dtype++)
        for (size_t r = 0; r < 5 && failed == 0; r++)
            for (size_t f = 0; f < 2 && failed == 0; f++) {
                struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
                const size_t i = ((size_t)dtype + r + f) % LENGTHS;

                if (dtype == RUEDA_BOOL && reductions[r] == RUEDA_AVERAGE)
                    continue;
                args.kind = RUEDA_ALLREDUCE;
                args.dtype = (rueda_dtype)dtype;
                args.reduction = reductions[r];
                args.dims = 1;
                args.shape = &lengths[i];
                args.flags = flags[f];
                failed = compare(me, gpu, &room, &args, r % 2 == 0);
            }
    room_close(gpu, &room);
    return failed != 0 ? failed : expect_mapped(me, gpu, true);
}

static int all_types(struct test_rank *me)
{
    return gpu_with(me, every_type);
}

static void every_type_has_the_result_of_the_host(void **state)
{
    rank_run(*state, 2, all_types, NULL);
    rank_run(*state, 3, all_types, NULL);
}

/* As if each process had a GPU of its own: every rank works on its slice. */
static int own_gpus(struct test_rank *me)
{
    char identity[9];
    int failed;

    snprintf(identity, sizeof(identity), "rank %03d", me->rank);
    setenv("FAKE_CUDA_UUID", identity, 1);
    failed = gpu_with(me, every_type);
    unsetenv("FAKE_CUDA_UUID");
    return failed;
}

static void ranks_with_gpus_of_their_own_share_the_work(void **state)
{
    rank_run(*state, 3, own_gpus, NULL);
}

/* ---- Larger than the slab, in order, many at once --------------------- */

/* Values that show where they came from. */
static int large_ones(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = LARGE / 4 + 1;
    int *numbers = malloc(shape * sizeof(int));
    struct rueda_submit_args args;
    void *there;
    int failed = numbers == NULL;

    for (int turn = 0; turn < 4 && failed == 0; turn++) {
        for (size_t i = 0; i < shape; i++)
            numbers[i] = (int)i * (me->rank + 1) + turn;
        there = gpu_put(gpu, numbers, shape * sizeof(int));
        args = gpu_args(gpu, RUEDA_ALLREDUCE, "large", there, &shape);
        if (turn >= 2) {
            args.flags = RUEDA_ORDERED;
            args.name = NULL;
        }
        failed = gpu_run(me, &args);
        if (failed == 0)
            failed = gpu_get(me, gpu, numbers, there, shape * sizeof(int));
        for (size_t i = 0; i < shape && failed == 0; i++)
            failed = gpu_expect(me, "large", i, numbers[i],
                                (int)i * me->size * (me->size + 1) / 2 +
                                    me->size * turn);
    }
    free(numbers);
    return failed != 0 ? failed : expect_mapped(me, gpu, true);
}

static int large(struct test_rank *me)
{
    return gpu_with(me, large_ones);
}

static void
vectors_larger_than_the_slab_are_reduced_where_they_are(void **state)
{
    rank_run(*state, 2, large, NULL);
    rank_run(*state, 4, large, NULL);
}

enum {
    MANY = 60
};

/* More at once than one task may add to what is mapped, so the first are packed
 * by each rank itself. */
static int many_at_once(struct test_rank *me, struct gpu *gpu)
{
    struct rueda_submit_args args[MANY];
    rueda_handle handles[MANY];
    void *there[MANY];
    size_t shapes[MANY];
    char names[MANY][16];
    int numbers[MANY];
    int failed = 0;

    for (int i = 0; i < MANY; i++)
        there[i] = gpu_put(gpu, NULL, sizeof(numbers));
    for (int step = 0; step < 20 && failed == 0; step++) {
        for (int i = 0; i < MANY; i++) {
            shapes[i] = (size_t)i % 7 + 1;
            for (int k = 0; k < 7; k++)
                numbers[k] = step + i * k + me->rank;
            failed |= !fake_cuda_copy(gpu->device, there[i], numbers,
                                      shapes[i] * sizeof(int));
            snprintf(names[i], sizeof(names[i]), "grad.%d", i);
            args[i] =
                gpu_args(gpu, RUEDA_ALLREDUCE, names[i], there[i], &shapes[i]);
            failed |= rueda_submit(me->ctx, &args[i], &handles[i]) != RUEDA_OK;
        }
        for (int i = 0; i < MANY && failed == 0; i++) {
            if (rueda_wait(me->ctx, handles[i], 15000) != RUEDA_OK)
                return rank_says(me, "wait: %s", rueda_last_error());
            if (!fake_cuda_copy(gpu->device, numbers, there[i],
                                shapes[i] * sizeof(int)))
                return rank_says(me, "no copy");
            for (size_t k = 0; k < shapes[i] && failed == 0; k++)
                failed = gpu_expect(me, names[i], k, numbers[k],
                                    me->size * (step + i * (int)k) +
                                        me->size * (me->size - 1) / 2);
        }
    }
    for (int i = 0; i < MANY; i++)
        gpu->device->ops->free(gpu->device, there[i]);
    return failed != 0 ? failed : expect_mapped(me, gpu, true);
}

static int many(struct test_rank *me)
{
    return gpu_with(me, many_at_once);
}

static void many_tensors_are_read_where_they_are(void **state)
{
    rank_run(*state, 2, many, NULL);
}

/* ---- Memory that comes and goes --------------------------------------- */

/* Each tensor is in an allocation of its own, freed behind it, often at an
 * address that was used before. Others let go of what is freed. */
static int come_and_go(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = 70001;
    static int numbers[70001];
    int failed = 0;

    for (int turn = 0; turn < 100 && failed == 0; turn++) {
        void *gap = gpu_put(gpu, NULL, (size_t)(turn % 5 + 1) * 4096);
        void *there;
        struct rueda_submit_args args;

        for (int i = 0; i < 70001; i++)
            numbers[i] = turn * me->rank + i;
        there = gpu_put(gpu, numbers, sizeof(numbers));
        args = gpu_args(gpu, RUEDA_ALLREDUCE, "t", there, &shape);
        failed = gpu_run(me, &args);
        if (failed == 0)
            failed = gpu_get(me, gpu, numbers, there, sizeof(numbers));
        for (size_t i = 0; i < 1000 && failed == 0; i++)
            failed = gpu_expect(me, "t", i, numbers[i],
                                turn * me->size * (me->size - 1) / 2 +
                                    me->size * (int)i);
        gpu->device->ops->free(gpu->device, gap);
    }
    if (failed == 0 && gpu->fake.mapped() > 3 * me->size)
        failed = rank_says(me,
                           "%d allocations are mapped, most of which are "
                           "no more",
                           gpu->fake.mapped());
    return failed;
}

static int changing(struct test_rank *me)
{
    return gpu_with(me, come_and_go);
}

static void memory_that_is_freed_is_let_go_of(void **state)
{
    rank_run(*state, 2, changing, NULL);
}

/* ---- Process sets ----------------------------------------------------- */

static int sum_in(struct test_rank *me, struct gpu *gpu, int set, int wanted)
{
    static const size_t shape = 70001;
    static int numbers[70001];
    struct rueda_submit_args args;
    void *there;
    int failed;

    for (int i = 0; i < 70001; i++)
        numbers[i] = me->rank + 1;
    there = gpu_put(gpu, numbers, sizeof(numbers));
    args = gpu_args(gpu, RUEDA_ALLREDUCE, "in.set", there, &shape);
    args.set = set;
    failed = gpu_run(me, &args);
    if (failed == 0)
        failed = gpu_get(me, gpu, numbers, there, sizeof(numbers));
    for (size_t i = 0; i < 300 && failed == 0; i++)
        failed = gpu_expect(me, "in.set", i, numbers[i], wanted);
    return failed;
}

/* Two sets that overlap, in turns with all ranks. */
static int run_in_sets(struct test_rank *me, struct gpu *gpu)
{
    static const int pairs[2][2] = {{0, 1}, {1, 2}};
    int sets[2];
    int failed = 0;

    for (int i = 0; i < 2; i++)
        if (rueda_set_create(me->ctx, pairs[i], 2, &sets[i]) != RUEDA_OK)
            return rank_says(me, "no set: %s", rueda_last_error());
    for (int turn = 0; turn < 3 && failed == 0; turn++) {
        if (me->rank < 2)
            failed = sum_in(me, gpu, sets[0], 3);
        if (failed == 0 && me->rank > 0)
            failed = sum_in(me, gpu, sets[1], 5);
        if (failed == 0)
            failed = sum_in(me, gpu, 0, 6);
    }
    return failed != 0 ? failed : expect_mapped(me, gpu, true);
}

static int sets(struct test_rank *me)
{
    return gpu_with(me, run_in_sets);
}

static void process_sets_have_mappings_of_their_own(void **state)
{
    setenv("RUEDA_DYNAMIC_SETS", "1", 1);
    rank_run(*state, 3, sets, NULL);
    unsetenv("RUEDA_DYNAMIC_SETS");
}

/* ---- By way of the host instead --------------------------------------- */

/* On rank 1 only. */
struct hindrance {
    const char *name;
    const char *value;
};

static int hinder(struct test_rank *me, struct gpu *gpu)
{
    const struct hindrance *hindrance = me->arg;
    int failed = 0;

    if (me->rank == 1)
        setenv(hindrance->name, hindrance->value, 1);
    for (int turn = 0; turn < 3 && failed == 0; turn++)
        failed = sum_in(me, gpu, 0, 3);
    unsetenv(hindrance->name);
    if (failed == 0)
        failed = sum_in(me, gpu, 0, 3);
    return failed != 0 ? failed : expect_mapped(me, gpu, false);
}

static int hindered(struct test_rank *me)
{
    return gpu_with(me, hinder);
}

static void ranks_that_cannot_map_go_by_way_of_the_host(void **state)
{
    struct hindrance cannot_open = {"FAKE_CUDA_FAIL",
                                    "cuIpcOpenMemHandle_v2=201"};
    struct hindrance is_off = {"RUEDA_CUDA_IPC", "0"};

    rank_run(*state, 2, hindered, &cannot_open);
    setenv(is_off.name, is_off.value, 1);
    rank_run(*state, 2, hindered, &is_off);
    unsetenv(is_off.name);
}

/* Memory without a handle, for some time. Later tensors are mapped. */
static int share_later(struct test_rank *me, struct gpu *gpu)
{
    int failed = 0;

    if (me->rank == 1)
        setenv("FAKE_CUDA_FAIL", "cuIpcGetMemHandle=1", 1);
    for (int turn = 0; turn < 3 && failed == 0; turn++)
        failed = sum_in(me, gpu, 0, 3);
    unsetenv("FAKE_CUDA_FAIL");
    if (failed == 0)
        failed = expect_mapped(me, gpu, false);
    for (int turn = 0; turn < 3 && failed == 0; turn++)
        failed = sum_in(me, gpu, 0, 3);
    return failed != 0 ? failed : expect_mapped(me, gpu, true);
}

static int sharing_later(struct test_rank *me)
{
    return gpu_with(me, share_later);
}

static void memory_that_cannot_be_shared_goes_by_way_of_the_host(void **state)
{
    rank_run(*state, 2, sharing_later, NULL);
}

/* The slab can be mapped, and some tensors cannot. */
static int share_some(struct test_rank *me, struct gpu *gpu)
{
    int failed = 0;

    for (int turn = 0; turn < 2 && failed == 0; turn++)
        failed = sum_in(me, gpu, 0, 3);
    if (me->rank == 1)
        setenv("FAKE_CUDA_FAIL", "cuIpcGetMemHandle=1", 1);
    for (int turn = 0; turn < 3 && failed == 0; turn++)
        failed = sum_in(me, gpu, 0, 3);
    unsetenv("FAKE_CUDA_FAIL");
    return failed != 0 ? failed : expect_mapped(me, gpu, true);
}

static int sharing_some(struct test_rank *me)
{
    return gpu_with(me, share_some);
}

static void tensors_that_cannot_be_shared_are_packed_by_their_rank(void **state)
{
    rank_run(*state, 2, sharing_some, NULL);
}

/* ---- Failures --------------------------------------------------------- */

/* Rank 1 dies before the operation reaches it, or while its kernel runs, as it
 * is ready last and so works for all. The others end it, and hold nothing that
 * is mapped when they have shut down. */
static int lose_rank_1(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = LARGE / 4;
    const bool *is_at_work = me->arg;
    void *there = gpu_put(gpu, NULL, LARGE);
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, NULL, there, &shape);
    rueda_handle handle;

    args.flags = RUEDA_ORDERED;
    if (gpu_run(me, &args) != 0 || expect_mapped(me, gpu, true) != 0)
        return 1;
    if (me->rank == 1) {
        rank_sleep_ms(100);
        setenv("FAKE_CUDA_DELAY_US", "5000000", 1);
        if (*is_at_work && rueda_submit(me->ctx, &args, &handle) != RUEDA_OK)
            return rank_says(me, "submit: %s", rueda_last_error());
        rank_sleep_ms(200);
        kill(getpid(), SIGKILL);
    }
    if (rueda_submit(me->ctx, &args, &handle) != RUEDA_OK)
        return rank_says(me, "submit: %s", rueda_last_error());
    if (rank_expect(me, rueda_wait(me->ctx, handle, 15000), RUEDA_ERR_PEER_LOST,
                    "with a dead rank") != 0)
        return 1;
    gpu->device->ops->free(gpu->device, there);
    rueda_shutdown(me->ctx);
    me->ctx = NULL;
    return expect_mapped(me, gpu, false);
}

static int losing(struct test_rank *me)
{
    rank_hush();
    return gpu_with(me, lose_rank_1);
}

static void a_killed_rank_leaves_nothing_mapped(void **state)
{
    bool is_at_work[] = {false, true};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct processes processes;

        processes_start(&processes, 3, processes_join, losing, &is_at_work[i]);
        processes.expected[1] = PROCESS_SIGNAL - SIGKILL;
        assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
    }
}

/* A kernel fails on the rank that works, or on the other. */
static int fail_in_kernel(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = LARGE / 4;
    void *there = gpu_put(gpu, NULL, LARGE);
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, "broken", there, &shape);
    rueda_handle handle;
    rueda_status status;

    if (gpu_run(me, &args) != 0)
        return 1;
    setenv("FAKE_CUDA_FAIL", "kernel=700", 1);
    status = rueda_submit(me->ctx, &args, &handle);
    if (status == RUEDA_OK)
        status = rueda_wait(me->ctx, handle, 15000);
    unsetenv("FAKE_CUDA_FAIL");
    if (status >= 0 || status == RUEDA_ERR_TIMEOUT)
        return rank_says(me, "ended with %s", rueda_status_str(status));
    return strstr(rueda_last_error(), "illegal memory access") != NULL
               ? 0
               : rank_says(me, "\"%s\"", rueda_last_error());
}

static int broken(struct test_rank *me)
{
    struct gpu gpu;

    rank_hush();
    return gpu_open(me, &gpu) != 0 || fail_in_kernel(me, &gpu) != 0;
}

static void a_kernel_that_fails_is_told_to_all(void **state)
{
    rank_run(*state, 2, broken, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_TEST(every_type_has_the_result_of_the_host, processes),
        RANK_TEST(every_type_has_the_result_of_the_host, threads),
        RANK_TEST(ranks_with_gpus_of_their_own_share_the_work, processes),
        RANK_TEST(vectors_larger_than_the_slab_are_reduced_where_they_are,
                  processes),
        RANK_TEST(many_tensors_are_read_where_they_are, processes),
        RANK_TEST(memory_that_is_freed_is_let_go_of, processes),
        RANK_TEST(process_sets_have_mappings_of_their_own, processes),
        RANK_TEST(ranks_that_cannot_map_go_by_way_of_the_host, processes),
        RANK_TEST(memory_that_cannot_be_shared_goes_by_way_of_the_host,
                  processes),
        RANK_TEST(tensors_that_cannot_be_shared_are_packed_by_their_rank,
                  processes),
        RANK_TEST(a_killed_rank_leaves_nothing_mapped, processes),
        RANK_TEST(a_kernel_that_fails_is_told_to_all, processes),
    };

    setenv("RUEDA_CUDA_LIB", FAKE_CUDA_FOLDER "libcuda.so.1", 1);
    setenv("RUEDA_FUSION_BYTES", "1m", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
