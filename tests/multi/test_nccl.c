/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors on GPUs by NCCL, over the stand-ins for NCCL and for the CUDA driver
 * (support/fake/): every kind of collective, what NCCL cannot do, libraries
 * that lack something, errors, ranks that die, and sets whose members launch in
 * different orders. The stand-in counts launches, so a test knows by which way
 * a result came.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/library.h"
#include "support/gpu_seat.h"
#include "support/processes.h"

#define CUDA FAKE_CUDA_FOLDER "libcuda.so.1"
#define NCCL FAKE_CUDA_FOLDER "libnccl.so.2"
#define OLD  FAKE_CUDA_FOLDER "libnccl_old.so.2"
#define BARE FAKE_CUDA_FOLDER "libnccl_bare.so.2"

enum {
    LARGE = (9 << 20) / 4 + 3,
    SETS = 3,
    ROUNDS = 10,
};

static int count_of(const char *function)
{
    const char *path = getenv("RUEDA_NCCL_LIB");
    void *library = rueda_library_open(path);
    int (*count)(void) = NULL;
    int result = 0;

    if (library != NULL &&
        rueda_library_function(library, function, &count) == RUEDA_OK)
        result = count();
    rueda_library_close(library);
    return result;
}

static int launches(void)
{
    return count_of("fake_nccl_launches");
}

static int expect_launches(struct test_rank *me, const char *what, int before,
                           int wanted)
{
    const int made = launches() - before;

    return made == wanted ? 0
                          : rank_says(me, "%s: %d launches of NCCL, not %d",
                                      what, made, wanted);
}

static int expect(struct test_rank *me, const char *what, size_t i, double is,
                  double wanted)
{
    return is == wanted ? 0
                        : rank_says(me, "%s: number %zu is %g, not %g", what, i,
                                    is, wanted);
}

/* Each rank has a host of its own, as NCCL sees it. */
static void claim_host(const struct test_rank *me)
{
    char host[16];

    snprintf(host, sizeof(host), "host%d", me->rank);
    setenv("NCCL_HOSTID", host, 1);
}

/* ---- Every kind ------------------------------------------------------- */

static int reduce(struct test_rank *me, struct gpu_seat *gpu, const char *name,
                  size_t count, struct rueda_submit_args how)
{
    struct rueda_submit_args args;
    int *numbers = malloc(count * sizeof(int));
    void *there;
    int failed;

    for (size_t i = 0; i < count; i++)
        numbers[i] = 2 * ((int)i % 1000) + 4 * me->rank;
    there = gpu_seat_put(gpu, numbers, count * sizeof(int));
    args = gpu_seat_args(gpu, RUEDA_ALLREDUCE, name, there, &count);
    args.reduction = how.reduction;
    args.prescale = how.prescale;
    args.postscale = how.postscale;
    failed = gpu_seat_run(me, &args);
    if (failed == 0)
        failed = gpu_seat_get(me, gpu, numbers, there, count * sizeof(int));
    for (size_t i = 0; i < count && failed == 0; i++) {
        const int first = 2 * ((int)i % 1000);
        const int both = how.reduction == RUEDA_MAX       ? first + 4
                         : how.reduction == RUEDA_AVERAGE ? first + 2
                                                          : 2 * first + 4;

        failed = expect(me, name, i, numbers[i],
                        both * how.prescale * how.postscale);
    }
    free(numbers);
    return failed;
}

static int reduce_in_all_ways(struct test_rank *me, struct gpu_seat *gpu)
{
    const struct rueda_submit_args init = RUEDA_SUBMIT_ARGS_INIT;
    struct rueda_submit_args how = init;
    int failed = reduce(me, gpu, "sum", 100, how);

    failed = failed != 0 ? failed : reduce(me, gpu, "large", LARGE, how);
    how.reduction = RUEDA_MAX;
    failed = failed != 0 ? failed : reduce(me, gpu, "max", 1000, how);
    how.reduction = RUEDA_AVERAGE;
    failed = failed != 0 ? failed : reduce(me, gpu, "average", 1000, how);
    how.reduction = RUEDA_SUM;
    how.prescale = 2;
    how.postscale = 3;
    return failed != 0 ? failed : reduce(me, gpu, "scaled", 1000, how);
}

static int broadcast(struct test_rank *me, struct gpu_seat *gpu, size_t count)
{
    int numbers[5000];
    void *there;
    struct rueda_submit_args args;
    int failed;

    for (size_t i = 0; i < count; i++)
        numbers[i] = (int)i + 1000 * me->rank;
    there = gpu_seat_put(gpu, numbers, count * sizeof(int));
    args = gpu_seat_args(gpu, RUEDA_BROADCAST, "cast", there, &count);
    args.root = 1;
    failed = gpu_seat_run(me, &args);
    if (failed == 0)
        failed = gpu_seat_get(me, gpu, numbers, there, count * sizeof(int));
    for (size_t i = 0; i < count && failed == 0; i++)
        failed = expect(me, "cast", i, numbers[i], 1000 + (int)i);
    return failed;
}

/* Rank r brings rows + r * more rows. */
static int gather(struct test_rank *me, struct gpu_seat *gpu, int rows,
                  int more)
{
    const int own = rows + me->rank * more;
    const size_t shape = (size_t)own;
    int numbers[64];
    void *recv = gpu_seat_put(gpu, NULL, sizeof(numbers));
    void *send;
    struct rueda_submit_args args;
    size_t i = 0;
    int failed;

    for (int k = 0; k < 64; k++)
        numbers[k] = 100 * me->rank + k;
    send = gpu_seat_put(gpu, numbers, sizeof(numbers));
    args = gpu_seat_args(gpu, RUEDA_ALLGATHER, "gather", send, &shape);
    args.recv = recv;
    failed = gpu_seat_run(me, &args);
    if (failed == 0)
        failed = gpu_seat_get(me, gpu, numbers, recv, sizeof(numbers));
    for (int of = 0; of < me->size; of++)
        for (int k = 0; k < rows + of * more && failed == 0; k++, i++)
            failed = expect(me, "gather", i, numbers[i], 100 * of + k);
    gpu->device->ops->free(gpu->device, send);
    return failed;
}

/* Rank r sends t + 1 numbers to rank t. */
static int exchange(struct test_rank *me, struct gpu_seat *gpu)
{
    static const size_t splits[] = {1, 2};
    static const size_t shape = 3;
    const int each = me->rank + 1;
    int numbers[8];
    void *recv = gpu_seat_put(gpu, NULL, sizeof(numbers));
    void *send;
    struct rueda_submit_args args;
    int failed;

    for (int i = 0; i < 8; i++)
        numbers[i] = 100 * me->rank + i;
    send = gpu_seat_put(gpu, numbers, sizeof(numbers));
    args = gpu_seat_args(gpu, RUEDA_ALLTOALL, "exchange", send, &shape);
    args.recv = recv;
    args.splits = splits;
    failed = gpu_seat_run(me, &args);
    if (failed == 0)
        failed = gpu_seat_get(me, gpu, numbers, recv, sizeof(numbers));
    for (int i = 0; i < 2 * each && failed == 0; i++) {
        const int wanted = 100 * (i / each) + me->rank + i % each;

        failed = expect(me, "exchange", (size_t)i, numbers[i], wanted);
    }
    gpu->device->ops->free(gpu->device, send);
    return failed;
}

/* Of `rows` rows the first members get one more, if they do not divide. */
static int scatter(struct test_rank *me, struct gpu_seat *gpu, size_t rows)
{
    const size_t mine = (rows + (me->rank == 0)) / 2;
    const size_t from = me->rank == 0 ? 0 : rows - mine;
    int numbers[64];
    void *recv = gpu_seat_put(gpu, NULL, sizeof(numbers));
    void *send;
    struct rueda_submit_args args;
    int failed;

    for (int i = 0; i < 64; i++)
        numbers[i] = 2 * i + 2 * me->rank;
    send = gpu_seat_put(gpu, numbers, sizeof(numbers));
    args = gpu_seat_args(gpu, RUEDA_REDUCE_SCATTER, "scatter", send, &rows);
    args.recv = recv;
    args.reduction = RUEDA_AVERAGE;
    failed = gpu_seat_run(me, &args);
    if (failed == 0)
        failed = gpu_seat_get(me, gpu, numbers, recv, sizeof(numbers));
    for (size_t i = 0; i < mine && failed == 0; i++)
        failed = expect(me, "scatter", i, numbers[i], 2 * (int)(from + i) + 1);
    gpu->device->ops->free(gpu->device, send);
    return failed;
}

static int do_every_kind(struct test_rank *me, struct gpu_seat *gpu)
{
    int failed = reduce_in_all_ways(me, gpu);

    failed = failed != 0 ? failed : broadcast(me, gpu, 5000);
    failed = failed != 0 ? failed : gather(me, gpu, 3, 0);
    failed = failed != 0 ? failed : gather(me, gpu, 0, 5);
    failed = failed != 0 ? failed : exchange(me, gpu);
    failed = failed != 0 ? failed : scatter(me, gpu, 10);
    return failed != 0 ? failed : scatter(me, gpu, 11);
}

static int count_every_kind(struct test_rank *me, struct gpu_seat *gpu)
{
    const int before = launches();
    const int failed = do_every_kind(me, gpu);

    return failed != 0 ? failed : expect_launches(me, "every kind", before, 11);
}

static int every_kind(struct test_rank *me)
{
    return gpu_seat_with(me, me->rank, count_every_kind);
}

static void every_kind_runs_in_one_launch(void **state)
{
    rank_run(*state, 2, every_kind, NULL);
}

static int every_kind_of_threads(struct test_rank *me)
{
    return gpu_seat_with(me, me->rank, do_every_kind);
}

static void ranks_that_are_threads_share_the_library(void **state)
{
    rank_run(*state, 2, every_kind_of_threads, NULL);
}

static void an_old_library_does_without_what_came_later(void **state)
{
    setenv("RUEDA_NCCL_LIB", OLD, 1);
    rank_run(*state, 2, every_kind, NULL);
    setenv("RUEDA_NCCL_LIB", NCCL, 1);
}

/* Many small tensors are packed, and are one launch. */
static int pack(struct test_rank *me, struct gpu_seat *gpu)
{
    struct rueda_submit_args args[20];
    rueda_handle handles[20];
    size_t shapes[20];
    char names[20][16];
    int numbers[20];
    int failed = 0;
    int kernels;
    int before;

    if (reduce(me, gpu, "first", 10,
               (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT) != 0)
        return 1;
    kernels = gpu->fake.launches();
    if (reduce(me, gpu, "second", 10,
               (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT) != 0)
        return 1;
    if (gpu->fake.launches() != kernels)
        return rank_says(me, "a tensor that is alone was packed");
    before = launches();
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 20; k++)
            numbers[k] = i * k + me->rank;
        shapes[i] = (size_t)i + 1;
        snprintf(names[i], sizeof(names[i]), "grad.%d", i);
        args[i] = gpu_seat_args(gpu, RUEDA_ALLREDUCE, names[i],
                                gpu_seat_put(gpu, numbers, sizeof(numbers)),
                                &shapes[i]);
    }
    if (rueda_submit_group(me->ctx, args, 20, handles) != RUEDA_OK)
        return rank_says(me, "%s", rueda_last_error());
    for (int i = 0; i < 20 && failed == 0; i++) {
        if (rueda_wait(me->ctx, handles[i], 60000) != RUEDA_OK)
            return rank_says(me, "%s", rueda_last_error());
        failed = gpu_seat_get(me, gpu, numbers, args[i].recv, sizeof(numbers));
        for (int k = 0; k <= i && failed == 0; k++)
            failed = expect(me, names[i], (size_t)k, numbers[k], 2 * i * k + 1);
    }
    return failed != 0 ? failed : expect_launches(me, "a group", before, 1);
}

static int packed(struct test_rank *me)
{
    return gpu_seat_with(me, me->rank, pack);
}

static void a_group_of_tensors_is_one_launch(void **state)
{
    rank_run(*state, 2, packed, NULL);
}

/* ---- What NCCL cannot do ---------------------------------------------- */

static int do_odd_ones(struct test_rank *me, struct gpu_seat *gpu)
{
    static const size_t shape = 100;
    const int before = launches();
    short numbers[100];
    struct rueda_submit_args args;
    void *there;
    int failed;

    for (int i = 0; i < 100; i++)
        numbers[i] = (short)(i + me->rank);
    there = gpu_seat_put(gpu, numbers, sizeof(numbers));
    args = gpu_seat_args(gpu, RUEDA_ALLREDUCE, "short", there, &shape);
    args.dtype = RUEDA_INT16;
    failed = gpu_seat_run(me, &args);
    failed = failed != 0 ? failed : expect_launches(me, "int16", before, 0);
    /* Moved, not added: any type will do. */
    args.kind = RUEDA_BROADCAST;
    args.name = "cast";
    args.root = 0;
    failed = failed != 0 ? failed : gpu_seat_run(me, &args);
    failed = failed != 0 ? failed : expect_launches(me, "cast", before, 1);
    failed = failed != 0
                 ? failed
                 : gpu_seat_get(me, gpu, numbers, there, sizeof(numbers));
    for (int i = 0; i < 100 && failed == 0; i++)
        failed = expect(me, "short", (size_t)i, numbers[i], 2 * i + 1);
    return failed;
}

static int odd_ones(struct test_rank *me)
{
    return gpu_seat_with(me, me->rank, do_odd_ones);
}

static void a_type_that_nccl_lacks_goes_another_way(void **state)
{
    rank_run(*state, 2, odd_ones, NULL);
}

static int do_alone(struct test_rank *me, struct gpu_seat *gpu)
{
    static const size_t shape = 10;
    int numbers[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    void *there = gpu_seat_put(gpu, numbers, sizeof(numbers));
    struct rueda_submit_args args =
        gpu_seat_args(gpu, RUEDA_ALLREDUCE, "alone", there, &shape);
    const int before = launches();
    int failed = gpu_seat_run(me, &args);

    failed = failed != 0
                 ? failed
                 : gpu_seat_get(me, gpu, numbers, there, sizeof(numbers));
    for (int i = 0; i < 10 && failed == 0; i++)
        failed = expect(me, "alone", (size_t)i, numbers[i], i + 1);
    return failed != 0 ? failed : expect_launches(me, "alone", before, 0);
}

/* Rank 0 has no GPU, and never tells what it has. */
static int join_early(struct test_rank *me)
{
    struct rueda_submit_args join = RUEDA_SUBMIT_ARGS_INIT;
    const int failed = me->rank > 0 ? gpu_seat_with(me, 1, do_alone) : 0;

    join.kind = RUEDA_JOIN;
    return failed != 0 ? failed : gpu_seat_run(me, &join);
}

static void while_a_rank_has_joined_nccl_waits(void **state)
{
    rank_run(*state, 2, join_early, NULL);
}

/* ---- Where it is used ------------------------------------------------- */

static int do_without(struct test_rank *me, struct gpu_seat *gpu)
{
    const int before = launches();
    const int failed = do_every_kind(me, gpu);

    return failed != 0 ? failed : expect_launches(me, "without", before, 0);
}

static int without_nccl(struct test_rank *me)
{
    return gpu_seat_with(me, me->rank, do_without);
}

static int share_a_gpu(struct test_rank *me)
{
    return gpu_seat_with(me, 0, do_without);
}

static int share_by_force(struct test_rank *me)
{
    claim_host(me);
    return gpu_seat_with(me, 0, count_every_kind);
}

static int differ(struct test_rank *me)
{
    if (me->rank == 1)
        setenv("FAKE_NCCL_VERSION", "22107", 1);
    return without_nccl(me);
}

static void nccl_is_used_where_each_rank_has_a_gpu_of_its_own(void **state)
{
    rank_run(*state, 2, share_a_gpu, NULL);
    setenv("RUEDA_NCCL", "always", 1);
    rank_run(*state, 2, share_by_force, NULL);
    setenv("RUEDA_NCCL", "never", 1);
    rank_run(*state, 2, without_nccl, NULL);
    unsetenv("RUEDA_NCCL");
}

static void without_nccl_on_all_ranks_tensors_go_another_way(void **state)
{
    rank_run(*state, 2, differ, NULL);
    setenv("RUEDA_NCCL_LIB", "/there/is/no/libnccl.so.2", 1);
    rank_run(*state, 2, without_nccl, NULL);
    setenv("RUEDA_NCCL_LIB", BARE, 1);
    rank_run(*state, 2, without_nccl, NULL);
    setenv("RUEDA_NCCL_LIB", NCCL, 1);
}

/* On rank 1 the communicator cannot be made; rank 0 hears of it. */
static int fail_to_join(struct test_rank *me)
{
    rank_hush();
    if (me->rank == 1)
        setenv("FAKE_NCCL_FAIL", me->arg, 1);
    return without_nccl(me);
}

static void
where_a_communicator_cannot_be_made_tensors_go_another_way(void **state)
{
    rank_run(*state, 2, fail_to_join, "join=3");
    rank_run(*state, 2, fail_to_join, "ncclCommInitRankConfig=1");
}

static int hang(struct test_rank *me)
{
    rank_hush();
    setenv("FAKE_NCCL_HANG", "join", 1);
    return without_nccl(me);
}

static void a_communicator_that_is_never_made_has_a_deadline(void **state)
{
    setenv("RUEDA_NCCL_TIMEOUT", "2s", 1);
    rank_run(*state, 2, hang, NULL);
    unsetenv("RUEDA_NCCL_TIMEOUT");
}

/* ---- Failures --------------------------------------------------------- */

/* The next operation fails, in these words. */
static int fail_with(struct test_rank *me, struct gpu_seat *gpu,
                     const char *words)
{
    static const size_t shape = 10;
    int numbers[10] = {0};
    void *there = gpu_seat_put(gpu, numbers, sizeof(numbers));
    struct rueda_submit_args args =
        gpu_seat_args(gpu, RUEDA_ALLREDUCE, "fails", there, &shape);
    rueda_handle handle;
    rueda_status status = rueda_submit(me->ctx, &args, &handle);

    if (status == RUEDA_OK)
        status = rueda_wait(me->ctx, handle, 60000);
    if (status >= 0 || status == RUEDA_ERR_TIMEOUT)
        return rank_says(me, "ended with %s", rueda_status_str(status));
    return strstr(rueda_last_error(), words) != NULL
               ? 0
               : rank_says(me, "\"%s\"", rueda_last_error());
}

static int be_forced(struct test_rank *me, struct gpu_seat *gpu)
{
    rank_hush();
    return fail_with(me, gpu, me->arg);
}

static int forced(struct test_rank *me)
{
    return gpu_seat_with(me, 0, be_forced);
}

static void what_is_asked_for_and_cannot_be_says_what_helps(void **state)
{
    setenv("RUEDA_NCCL", "always", 1);
    rank_run(*state, 2, forced, "own NCCL_HOSTID");
    setenv("RUEDA_NCCL_LIB", "/there/is/no/libnccl.so.2", 1);
    rank_run(*state, 2, forced, "RUEDA_NCCL_LIB");
    setenv("RUEDA_NCCL_LIB", BARE, 1);
    rank_run(*state, 2, forced, "ncclGroupEnd");
    setenv("RUEDA_NCCL_LIB", NCCL, 1);
    unsetenv("RUEDA_NCCL");
}

/* One that works, and one that does not: on rank 1 NCCL says so. */
static int fail_later(struct test_rank *me, struct gpu_seat *gpu)
{
    const struct rueda_submit_args how = RUEDA_SUBMIT_ARGS_INIT;

    rank_hush();
    if (reduce(me, gpu, "works", 100, how) != 0)
        return 1;
    if (me->rank == 1)
        setenv("FAKE_NCCL_FAIL", me->arg, 1);
    if (fail_with(me, gpu, "NCCL 2.28.3") != 0)
        return 1;
    rueda_shutdown(me->ctx);
    me->ctx = NULL;
    return count_of("fake_nccl_comms") == 0
               ? 0
               : rank_says(me, "a communicator is left");
}

static int failing(struct test_rank *me)
{
    return gpu_seat_with(me, me->rank, fail_later);
}

static void an_error_of_nccl_ends_the_job_with_its_words(void **state)
{
    rank_run(*state, 2, failing, "async=3");
    rank_run(*state, 2, failing, "async=6");
    rank_run(*state, 2, failing, "ncclAllReduce=5");
}

/* ---- Ranks that die --------------------------------------------------- */

#define VICTIM 1

static int open_context(struct test_rank *me, const char *job, int rank,
                        int size)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[RANK_WORDS] = "";

    args.rank = rank;
    args.size = size;
    args.job = job;
    args.timeout_ms = 30000;
    args.error = words;
    args.error_bytes = sizeof(words);
    if (rueda_init(&args, &me->ctx) != RUEDA_OK)
        return rank_says(me, "rueda_init: %s", words);
    return 0;
}

/* The survivors go on in a job of their own. */
static int go_on(struct test_rank *me, struct gpu_seat *gpu)
{
    static const size_t shape = 10;
    const int before = launches();
    char job[80];
    int numbers[10];
    void *there;
    struct rueda_submit_args args;
    int failed;

    snprintf(job, sizeof(job), "%s-again", me->job);
    if (open_context(me, job, me->rank / 2, 2) != 0)
        return 1;
    for (int i = 0; i < 10; i++)
        numbers[i] = i + me->rank;
    there = gpu_seat_put(gpu, numbers, sizeof(numbers));
    args = gpu_seat_args(gpu, RUEDA_ALLREDUCE, "again", there, &shape);
    failed = gpu_seat_run(me, &args);
    failed = failed != 0
                 ? failed
                 : gpu_seat_get(me, gpu, numbers, there, sizeof(numbers));
    for (int i = 0; i < 10 && failed == 0; i++)
        failed = expect(me, "again", (size_t)i, numbers[i], 2 * i + 2);
    failed = failed != 0 ? failed : expect_launches(me, "again", before, 1);
    rueda_shutdown(me->ctx);
    return failed;
}

static int survive(struct test_rank *me, struct gpu_seat *gpu)
{
    const char *where = me->arg;
    const struct rueda_submit_args how = RUEDA_SUBMIT_ARGS_INIT;
    const size_t shape = 10;
    int failed = 0;

    rank_hush();
    claim_host(me);
    if (open_context(me, me->job, me->rank, me->size) != 0)
        return 1;
    if (strcmp(where, "run") == 0 && reduce(me, gpu, "first", 10, how) != 0 &&
        me->size == 2)
        return 1;
    if (me->rank == VICTIM) {
        struct rueda_submit_args args = gpu_seat_args(
            gpu, RUEDA_ALLREDUCE, "fails", gpu_seat_put(gpu, NULL, 40), &shape);
        rueda_handle handle;

        setenv("FAKE_NCCL_HANG", where, 1);
        rueda_submit(me->ctx, &args, &handle);
        rueda_wait(me->ctx, handle, 300);
        raise(SIGKILL);
    }
    setenv("FAKE_NCCL_HANG", where, 1);
    failed = fail_with(me, gpu, "rank 1");
    unsetenv("FAKE_NCCL_HANG");
    rueda_shutdown(me->ctx);
    if (failed == 0 && count_of("fake_nccl_comms") != 0)
        failed = rank_says(me, "a communicator is left");
    return failed != 0 ? failed : go_on(me, gpu);
}

static int survivor(struct test_rank *me)
{
    return gpu_seat_with(me, 0, survive);
}

static void die(const char *where)
{
    struct processes ranks;

    processes_start(&ranks, 3, processes_by_self, survivor, (void *)where);
    ranks.expected[VICTIM] = PROCESS_SIGNAL - SIGKILL;
    assert_int_equal(processes_end(&ranks, 4 * RANK_DEADLINE_MS), 0);
}

static void survivors_of_a_rank_that_dies_use_nccl_again(void **state)
{
    (void)state;
    setenv("RUEDA_NCCL", "always", 1);
    die("join");
    die("run");
    unsetenv("RUEDA_NCCL");
}

/* ---- Sets that overlap ------------------------------------------------ */

/* Each rank has its own order of the sets that it is in. */
static int submit_in_own_order(struct test_rank *me, struct gpu_seat *gpu,
                               const int *sets)
{
    static const size_t shape = 10;
    rueda_handle handles[SETS + 1];
    struct rueda_submit_args args[SETS + 1];
    int numbers[10];
    int failed = 0;

    for (int i = 0; i <= SETS; i++) {
        const int k = (i + me->rank) % (SETS + 1);
        char name[16];

        handles[k] = 0;
        if (rueda_set_rank(me->ctx, sets[k]) < 0)
            continue;
        for (int n = 0; n < 10; n++)
            numbers[n] = n + me->rank;
        snprintf(name, sizeof(name), "set.%d", k);
        args[k] =
            gpu_seat_args(gpu, RUEDA_ALLREDUCE, name,
                          gpu_seat_put(gpu, numbers, sizeof(numbers)), &shape);
        args[k].set = sets[k];
        if (rueda_submit(me->ctx, &args[k], &handles[k]) != RUEDA_OK)
            return rank_says(me, "%s", rueda_last_error());
        usleep(1000u * (unsigned)((me->rank * 7 + i * 3) % 4));
    }
    for (int k = 0; k <= SETS && failed == 0; k++) {
        const int sum = k == SETS ? 3 : k == 0 ? 1 : k == 1 ? 3 : 2;

        if (rueda_set_rank(me->ctx, sets[k]) < 0)
            continue;
        if (rueda_wait(me->ctx, handles[k], 60000) != RUEDA_OK)
            return rank_says(me, "set %d: %s", k, rueda_last_error());
        failed = gpu_seat_get(me, gpu, numbers, args[k].recv, sizeof(numbers));
        for (int n = 0; n < 10 && failed == 0; n++)
            failed = expect(me, "set", (size_t)k, numbers[n],
                            n * rueda_set_size(me->ctx, sets[k]) + sum);
    }
    return failed;
}

static int do_sets(struct test_rank *me, struct gpu_seat *gpu)
{
    static const int members[SETS][2] = {{0, 1}, {1, 2}, {0, 2}};
    int sets[SETS + 1] = {0};
    const int before = launches();
    int failed = 0;

    for (int i = 0; i < SETS; i++)
        if (rueda_set_create(me->ctx, members[i], 2, &sets[i]) != RUEDA_OK)
            return rank_says(me, "%s", rueda_last_error());
    for (int round = 0; round < ROUNDS && failed == 0; round++)
        failed = submit_in_own_order(me, gpu, sets);
    return failed != 0 ? failed
                       : expect_launches(me, "sets", before, 3 * ROUNDS);
}

static int overlapping(struct test_rank *me)
{
    claim_host(me);
    return gpu_seat_with(me, 0, do_sets);
}

static void members_of_several_sets_launch_in_one_order(void **state)
{
    setenv("RUEDA_NCCL", "always", 1);
    setenv("RUEDA_DYNAMIC_SETS", "1", 1);
    setenv("FAKE_NCCL_LATE_US", "3000", 1);
    rank_run(*state, 3, overlapping, NULL);
    unsetenv("FAKE_NCCL_LATE_US");
    unsetenv("RUEDA_DYNAMIC_SETS");
    unsetenv("RUEDA_NCCL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(every_kind_runs_in_one_launch),
        RANK_TEST(ranks_that_are_threads_share_the_library, threads),
        RANK_TEST(an_old_library_does_without_what_came_later, processes),
        RANK_IN_PROCESSES(a_group_of_tensors_is_one_launch),
        RANK_TEST(a_type_that_nccl_lacks_goes_another_way, processes),
        RANK_TEST(while_a_rank_has_joined_nccl_waits, processes),
        RANK_TEST(nccl_is_used_where_each_rank_has_a_gpu_of_its_own, processes),
        RANK_TEST(without_nccl_on_all_ranks_tensors_go_another_way, processes),
        RANK_TEST(where_a_communicator_cannot_be_made_tensors_go_another_way,
                  processes),
        RANK_TEST(a_communicator_that_is_never_made_has_a_deadline, processes),
        RANK_TEST(what_is_asked_for_and_cannot_be_says_what_helps, processes),
        RANK_TEST(an_error_of_nccl_ends_the_job_with_its_words, processes),
        RANK_TEST(survivors_of_a_rank_that_dies_use_nccl_again, processes),
        RANK_IN_PROCESSES(members_of_several_sets_launch_in_one_order),
    };

    setenv("RUEDA_CUDA_LIB", CUDA, 1);
    setenv("RUEDA_NCCL_LIB", NCCL, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
