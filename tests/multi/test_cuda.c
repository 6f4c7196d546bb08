/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors on GPUs, over the stand-in for the CUDA driver (support/fake/cuda.c):
 * ranks submit them with streams that are late, and every kind of collective
 * has the result that it has on the host. Memory of the stand-in cannot be
 * touched by the host, so a result that is right came by way of the driver.
 */
#include <stdio.h>
#include <string.h>

#include "os/library.h"
#include "support/gpu_rank.h"

enum {
    TENSORS = 20,
    LARGE = (9 << 20) / 4 + 3, /* more than two chunks */
};

/* ---- Many small tensors ----------------------------------------------- */

/* Each is written by the application's stream, which is late: the library
 * must not read before that. */
static int pack_many(struct test_rank *me, struct gpu *gpu)
{
    int *const host = gpu->device->ops->alloc_host(gpu->device, 4096);
    void *there[TENSORS];
    int numbers[1000];
    int failed = host == NULL;

    for (int step = 0; step < 3 && failed == 0; step++) {
        struct rueda_submit_args args[TENSORS];
        rueda_handle handles[TENSORS];
        size_t shapes[TENSORS];
        char names[TENSORS][16];

        for (int i = 0; i < TENSORS; i++) {
            shapes[i] = (size_t)i * 50 + 1;
            there[i] = gpu_put(gpu, NULL, sizeof(numbers));
            for (size_t k = 0; k < shapes[i]; k++)
                numbers[k] = (int)k * (me->rank + 1) + step + i;
            failed |= !fake_cuda_copy(gpu->device, there[i], numbers,
                                      shapes[i] * sizeof(int));
            snprintf(names[i], sizeof(names[i]), "grad.%d", i);
            args[i] =
                gpu_args(gpu, RUEDA_ALLREDUCE, names[i], there[i], &shapes[i]);
            failed |= rueda_submit(me->ctx, &args[i], &handles[i]) != RUEDA_OK;
        }
        for (int i = TENSORS - 1; i >= 0 && failed == 0; i--) {
            if (rueda_wait(me->ctx, handles[i], 15000) != RUEDA_OK)
                return rank_says(me, "wait: %s", rueda_last_error());
            failed =
                gpu_get(me, gpu, numbers, there[i], shapes[i] * sizeof(int));
            for (size_t k = 0; k < shapes[i] && failed == 0; k++)
                failed = gpu_expect(me, names[i], k, numbers[k],
                                    (int)k * me->size * (me->size + 1) / 2 +
                                        me->size * (step + i));
        }
    }
    gpu->device->ops->free_host(gpu->device, host);
    return failed;
}

static int many(struct test_rank *me)
{
    return gpu_with(me, pack_many);
}

static void many_tensors_are_reduced_together(void **state)
{
    rank_run(*state, 2, many, NULL);
}

/* ---- Streams ---------------------------------------------------------- */

/* The tensor is complete only when the application's stream gets there. */
static int submit_early(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = 100;
    int (*copy)(void *, const void *, size_t, void *) = NULL;
    int *const host = gpu->device->ops->alloc_host(gpu->device, 400);
    void *const there = gpu_put(gpu, NULL, 400);
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, "late", there, &shape);
    int failed;

    rueda_library_function(gpu->fake.library, "cuMemcpyAsync", &copy);
    for (int i = 0; i < 100; i++)
        host[i] = i + me->rank;
    setenv("FAKE_CUDA_DELAY_US", "30000", 1);
    failed = copy(there, host, 400, gpu->stream);
    failed |= gpu_run(me, &args);
    unsetenv("FAKE_CUDA_DELAY_US");
    gpu->device->ops->free_host(gpu->device, host);
    for (int i = 0; i < 100 && failed == 0; i++) {
        int numbers[100];

        if (i == 0)
            failed = gpu_get(me, gpu, numbers, there, 400);
        failed = failed != 0
                     ? failed
                     : gpu_expect(me, "late", (size_t)i, numbers[i], 2 * i + 1);
    }
    return failed;
}

static int early(struct test_rank *me)
{
    return gpu_with(me, submit_early);
}

static void a_tensor_is_not_read_before_its_stream_has_written_it(void **state)
{
    rank_run(*state, 2, early, NULL);
}

/* ---- Every kind ------------------------------------------------------- */

static int *numbers_of(size_t count, int from, int step)
{
    int *numbers = malloc(count * sizeof(int));

    for (size_t i = 0; numbers != NULL && i < count; i++)
        numbers[i] = from + step * (int)i;
    return numbers;
}

static int reduce_large(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = LARGE;
    int *numbers = numbers_of(LARGE, me->rank, 1);
    void *there = gpu_put(gpu, numbers, LARGE * sizeof(int));
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, "large", there, &shape);
    int failed;

    args.reduction = RUEDA_MAX;
    failed = gpu_run(me, &args);
    args.reduction = RUEDA_SUM;
    args.flags = RUEDA_ORDERED;
    args.name = NULL;
    failed = failed != 0 ? failed : gpu_run(me, &args);
    failed = failed != 0
                 ? failed
                 : gpu_get(me, gpu, numbers, there, LARGE * sizeof(int));
    for (size_t i = 0; i < LARGE && failed == 0; i++)
        failed = gpu_expect(me, "large", i, numbers[i],
                            me->size * ((int)i + me->size - 1));
    free(numbers);
    return failed;
}

static int broadcast(struct test_rank *me, struct gpu *gpu, size_t count)
{
    int *numbers = numbers_of(count, 1000 * me->rank, 1);
    void *there = gpu_put(gpu, numbers, count * sizeof(int));
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_BROADCAST, "cast", there, &count);
    int failed;

    args.root = 1;
    failed = gpu_run(me, &args);
    if (failed == 0)
        failed = gpu_get(me, gpu, numbers, there, count * sizeof(int));
    for (size_t i = 0; i < count && failed == 0; i++)
        failed = gpu_expect(me, "cast", i, numbers[i], 1000 + (int)i);
    free(numbers);
    return failed;
}

/* Rank r brings r + 1 rows of 2. */
static int gather(struct test_rank *me, struct gpu *gpu)
{
    const size_t shape[2] = {(size_t)me->rank + 1, 2};
    const size_t all = (size_t)me->size * ((size_t)me->size + 1);
    int mine[16];
    int numbers[64];
    void *send;
    void *recv = gpu_put(gpu, NULL, sizeof(numbers));
    struct rueda_submit_args args;
    size_t i = 0;
    int failed;

    for (int k = 0; k < 16; k++)
        mine[k] = 100 * me->rank + k;
    send = gpu_put(gpu, mine, sizeof(mine));
    args = gpu_args(gpu, RUEDA_ALLGATHER, "gather", send, shape);
    args.dims = 2;
    args.recv = recv;
    failed = gpu_run(me, &args);
    if (failed == 0)
        failed = gpu_get(me, gpu, numbers, recv, all * sizeof(int));
    for (int of = 0; of < me->size; of++)
        for (int k = 0; k < 2 * (of + 1) && failed == 0; k++, i++)
            failed = gpu_expect(me, "gather", i, numbers[i], 100 * of + k);
    gpu->device->ops->free(gpu->device, send);
    return failed;
}

/* Rank r sends t + 1 numbers to rank t. */
static int exchange(struct test_rank *me, struct gpu *gpu)
{
    const size_t shape = (size_t)me->size * ((size_t)me->size + 1) / 2;
    const size_t got = (size_t)me->size * ((size_t)me->rank + 1);
    size_t splits[RANK_MOST];
    int numbers[64];
    void *send;
    void *recv = gpu_put(gpu, NULL, sizeof(numbers));
    struct rueda_submit_args args;
    int failed;

    for (int i = 0; i < me->size; i++)
        splits[i] = (size_t)i + 1;
    for (int i = 0; i < 64; i++)
        numbers[i] = 100 * me->rank + i;
    send = gpu_put(gpu, numbers, sizeof(numbers));
    args = gpu_args(gpu, RUEDA_ALLTOALL, "exchange", send, &shape);
    args.recv = recv;
    args.splits = splits;
    failed = gpu_run(me, &args);
    if (failed == 0)
        failed = gpu_get(me, gpu, numbers, recv, got * sizeof(int));
    for (size_t i = 0; i < got && failed == 0; i++) {
        const int each = me->rank + 1;
        const int of = (int)i / each;
        const int first = each * (each - 1) / 2;

        failed = gpu_expect(me, "exchange", i, numbers[i],
                            100 * of + first + (int)i % each);
    }
    gpu->device->ops->free(gpu->device, send);
    return failed;
}

static int scatter(struct test_rank *me, struct gpu *gpu)
{
    const size_t shape = (size_t)me->size * 3;
    int numbers[64];
    void *send;
    void *recv = gpu_put(gpu, NULL, sizeof(numbers));
    struct rueda_submit_args args;
    int failed;

    for (int i = 0; i < 64; i++)
        numbers[i] = i + me->rank;
    send = gpu_put(gpu, numbers, sizeof(numbers));
    args = gpu_args(gpu, RUEDA_REDUCE_SCATTER, "scatter", send, &shape);
    args.recv = recv;
    failed = gpu_run(me, &args);
    if (failed == 0)
        failed = gpu_get(me, gpu, numbers, recv, 3 * sizeof(int));
    for (int i = 0; i < 3 && failed == 0; i++)
        failed = gpu_expect(me, "scatter", (size_t)i, numbers[i],
                            me->size * (3 * me->rank + i) +
                                me->size * (me->size - 1) / 2);
    gpu->device->ops->free(gpu->device, send);
    return failed;
}

/* As on the host, of the same numbers. */
static int adasum(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = 1000;
    float near[1000];
    float far[1000];
    void *there;
    struct rueda_submit_args args;
    int failed;

    for (int i = 0; i < 1000; i++)
        near[i] = (float)((i * 7 + me->rank * 13) % 101);
    there = gpu_put(gpu, near, sizeof(near));
    args = gpu_args(gpu, RUEDA_ALLREDUCE, "far", there, &shape);
    args.dtype = RUEDA_FLOAT32;
    args.reduction = RUEDA_ADASUM;
    failed = gpu_run(me, &args);
    args.name = "near";
    args.send = near;
    args.recv = near;
    args.device = RUEDA_DEVICE_HOST;
    failed = failed != 0 ? failed : gpu_run(me, &args);
    failed = failed != 0 ? failed : gpu_get(me, gpu, far, there, sizeof(far));
    for (int i = 0; i < 1000 && failed == 0; i++)
        if (near[i] != far[i])
            failed = rank_says(me, "adasum: number %d is %g, not %g", i,
                               (double)far[i], (double)near[i]);
    return failed;
}

static int do_every_kind(struct test_rank *me, struct gpu *gpu)
{
    int failed = reduce_large(me, gpu);

    failed = failed != 0 ? failed : broadcast(me, gpu, 100);
    failed = failed != 0 ? failed : broadcast(me, gpu, LARGE);
    failed = failed != 0 ? failed : gather(me, gpu);
    failed = failed != 0 ? failed : exchange(me, gpu);
    failed = failed != 0 ? failed : scatter(me, gpu);
    return failed != 0 ? failed : adasum(me, gpu);
}

static int every_kind(struct test_rank *me)
{
    return gpu_with(me, do_every_kind);
}

static void every_kind_of_collective_runs(void **state)
{
    rank_run(*state, 2, every_kind, NULL);
}

/* ---- Ranks that have joined ------------------------------------------- */

static int reduce_alone(struct test_rank *me, struct gpu *gpu)
{
    static const rueda_reduction reductions[] = {RUEDA_SUM, RUEDA_MIN};
    static const size_t shapes[] = {100, LARGE};
    int failed = 0;

    for (int i = 0; i < 4 && failed == 0; i++) {
        const size_t count = shapes[i % 2];
        int *numbers = numbers_of(count, 5, 1);
        void *there = gpu_put(gpu, numbers, count * sizeof(int));
        struct rueda_submit_args args =
            gpu_args(gpu, RUEDA_ALLREDUCE, "alone", there, &shapes[i % 2]);

        args.reduction = reductions[i / 2];
        failed = gpu_run(me, &args);
        failed = failed != 0
                     ? failed
                     : gpu_get(me, gpu, numbers, there, count * sizeof(int));
        for (size_t k = 0; k < count && failed == 0; k++)
            failed = gpu_expect(me, "alone", k, numbers[k], 5 + (int)k);
        free(numbers);
    }
    return failed;
}

/* Rank 0 never opens a GPU. */
static int go_on_without_rank_0(struct test_rank *me)
{
    struct rueda_submit_args join = RUEDA_SUBMIT_ARGS_INIT;
    const int failed = me->rank > 0 ? gpu_with(me, reduce_alone) : 0;

    join.kind = RUEDA_JOIN;
    return failed != 0 ? failed : gpu_run(me, &join);
}

static void a_rank_that_has_joined_needs_no_gpu(void **state)
{
    rank_run(*state, 2, go_on_without_rank_0, NULL);
}

/* ---- What is refused, and what fails ---------------------------------- */

static int refused(struct test_rank *me, const struct rueda_submit_args *args,
                   rueda_status wanted, const char *words)
{
    rueda_handle handle;
    const rueda_status status = rueda_submit(me->ctx, args, &handle);

    if (rank_expect(me, status, wanted, words) != 0)
        return 1;
    return strstr(rueda_last_error(), words) != NULL
               ? 0
               : rank_says(me, "\"%s\"", rueda_last_error());
}

static int try_wrong_ones(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = 10;
    int here[10] = {0};
    void *there = gpu_put(gpu, here, sizeof(here));
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, "wrong", there, &shape);
    int failed = 0;

    gpu->fake.capture(gpu->stream, 1);
    failed |= refused(me, &args, RUEDA_ERR_UNSUPPORTED, "outside the capture");
    gpu->fake.capture(gpu->stream, 0);
    args.send = here;
    args.recv = here;
    failed |= refused(me, &args, RUEDA_ERR_INVALID, "memory of the host");
    args.device = 1;
    failed |= refused(me, &args, RUEDA_ERR_UNSUPPORTED, "a rank uses one");
    /* The name is free, and all goes on. */
    args.device = 0;
    args.send = there;
    args.recv = there;
    failed = failed != 0 ? failed : gpu_run(me, &args);
    return failed != 0 ? failed : gpu_get(me, gpu, here, there, sizeof(here));
}

static int wrong_ones(struct test_rank *me)
{
    return gpu_with(me, try_wrong_ones);
}

static void what_cannot_run_is_refused_with_what_helps(void **state)
{
    rank_run(*state, 2, wrong_ones, NULL);
}

/* Rank 1 has its tensor in the memory of the host. */
static int differ_in_place(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = 10;
    int here[10] = {0};
    void *there = gpu_put(gpu, here, sizeof(here));
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, "odd", there, &shape);
    rueda_handle handle;
    int failed;

    if (me->rank == 1) {
        args.device = RUEDA_DEVICE_HOST;
        args.send = here;
        args.recv = here;
    }
    failed = rank_expect(me, rueda_submit(me->ctx, &args, &handle), RUEDA_OK,
                         "submit");
    if (failed == 0)
        failed = rank_expect(me, rueda_wait(me->ctx, handle, 15000),
                             RUEDA_ERR_MISMATCH, "odd");
    if (failed == 0 &&
        strstr(rueda_last_error(), "Mismatched ALLREDUCE CPU/GPU device "
                                   "selection:") == NULL)
        failed = rank_says(me, "\"%s\"", rueda_last_error());
    /* All goes on. */
    args.device = 0;
    args.send = there;
    args.recv = there;
    failed = failed != 0 ? failed : gpu_run(me, &args);
    return failed != 0 ? failed : gpu_get(me, gpu, here, there, sizeof(here));
}

static int one_in_host_memory(struct test_rank *me)
{
    return gpu_with(me, differ_in_place);
}

static void a_tensor_in_other_memory_than_the_others_is_told(void **state)
{
    rank_run(*state, 2, one_in_host_memory, NULL);
}

static int without_library(struct test_rank *me)
{
    static const size_t shape = 10;
    float here[10] = {0};
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.name = "far";
    args.send = here;
    args.recv = here;
    args.dims = 1;
    args.shape = &shape;
    args.device = 0;
    if (refused(me, &args, RUEDA_ERR_UNSUPPORTED, "RUEDA_CUDA_LIB") != 0)
        return 1;
    args.device = RUEDA_DEVICE_HOST;
    return gpu_run(me, &args);
}

static void without_a_driver_tensors_of_the_host_go_on(void **state)
{
    setenv("RUEDA_CUDA_LIB", "/there/is/no/libcuda.so.1", 1);
    rank_run(*state, 2, without_library, NULL);
    setenv("RUEDA_CUDA_LIB", GPU_LIBRARY, 1);
}

/* On rank 1 a kernel fails; both hear of it, and nothing hangs. */
static int fail_in_kernel(struct test_rank *me, struct gpu *gpu)
{
    static const size_t shape = 10;
    int here[10] = {0};
    void *there = gpu_put(gpu, here, sizeof(here));
    struct rueda_submit_args args =
        gpu_args(gpu, RUEDA_ALLREDUCE, "broken", there, &shape);
    rueda_handle handle;
    rueda_status status;

    if (gpu_run(me, &args) != 0)
        return 1;
    if (me->rank == 1)
        setenv("FAKE_CUDA_FAIL", "kernel=700", 1);
    status = rueda_submit(me->ctx, &args, &handle);
    if (status == RUEDA_OK)
        status = rueda_wait(me->ctx, handle, 15000);
    unsetenv("FAKE_CUDA_FAIL");
    if (status >= 0 || status == RUEDA_ERR_TIMEOUT)
        return rank_says(me, "ended with %s", rueda_status_str(status));
    if (strstr(rueda_last_error(), "illegal memory access") == NULL)
        return rank_says(me, "\"%s\"", rueda_last_error());
    return 0;
}

static int broken(struct test_rank *me)
{
    struct gpu gpu;

    rank_hush();
    return gpu_open(me, &gpu) != 0 || fail_in_kernel(me, &gpu) != 0;
}

static void a_kernel_that_fails_ends_the_job_with_its_cause(void **state)
{
    rank_run(*state, 2, broken, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(many_tensors_are_reduced_together),
        RANK_TEST(a_tensor_is_not_read_before_its_stream_has_written_it,
                  processes),
        RANK_EVERYWHERE(every_kind_of_collective_runs),
        RANK_IN_PROCESSES(a_rank_that_has_joined_needs_no_gpu),
        RANK_TEST(what_cannot_run_is_refused_with_what_helps, processes),
        RANK_TEST(a_tensor_in_other_memory_than_the_others_is_told, processes),
        RANK_TEST(without_a_driver_tensors_of_the_host_go_on, processes),
        RANK_TEST(a_kernel_that_fails_ends_the_job_with_its_cause, processes),
    };

    setenv("RUEDA_CUDA_LIB", GPU_LIBRARY, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
