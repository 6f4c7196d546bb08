/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors of all types, and those that are many, long, empty or submitted
 * twice; sets that come and go; children of fork(). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test_rank.h"

#define WAIT_MS RANK_DEADLINE_MS

static struct rueda_submit_args of(const char *name, void *buf,
                                   const size_t *count)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.send = buf;
    args.recv = buf;
    args.dims = 1;
    args.shape = count;
    return args;
}

static int run(struct test_rank *me, const struct rueda_submit_args *args)
{
    rueda_handle handle;

    return rank_expect(me, rueda_submit(me->ctx, args, &handle), RUEDA_OK,
                       args->name) ||
           rank_expect(me, rueda_wait(me->ctx, handle, WAIT_MS), RUEDA_OK,
                       args->name);
}

/* One float of each rank, added up under this name. */
static int add(struct test_rank *me, const char *name, int set, int wanted)
{
    static const size_t one = 1;
    float x = (float)(me->rank + 1);
    struct rueda_submit_args args = of(name, &x, &one);

    args.set = set;
    if (run(me, &args) != 0)
        return 1;
    return x == (float)wanted ? 0
                              : rank_says(me, "%.40s is %f instead of %d", name,
                                          (double)x, wanted);
}

static int total(const struct test_rank *me)
{
    return me->size * (me->size + 1) / 2;
}

/* ---- Types ------------------------------------------------------------ */

#define COUNT 70

static void put(void *at, rueda_dtype dtype, size_t i, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    switch (dtype) {
    case RUEDA_INT16:
    case RUEDA_UINT16:
        ((int16_t *)at)[i] = (int16_t)value;
        break;
    case RUEDA_INT32:
        ((int32_t *)at)[i] = (int32_t)value;
        break;
    case RUEDA_INT64:
        ((int64_t *)at)[i] = (int64_t)value;
        break;
    case RUEDA_FLOAT16: /* of numbers that it can hold */
        ((uint16_t *)at)[i] = value == 0
                                  ? 0
                                  : (uint16_t)(((bits >> 23) - 127 + 15) << 10 |
                                               (bits >> 13 & 0x3ff));
        break;
    case RUEDA_BFLOAT16:
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
        break;
    case RUEDA_FLOAT32:
        ((float *)at)[i] = value;
        break;
    case RUEDA_FLOAT64:
        ((double *)at)[i] = (double)value;
        break;
    default:
        ((uint8_t *)at)[i] = (uint8_t)value;
        break;
    }
}

struct numbers {
    const char *name;
    rueda_reduction reduction;
    unsigned flags;
    double prescale;
    double postscale;
    float gives[2]; /* of rank 0 and rank 1 */
    float wanted;
    bool of_floats; /* only */
};

static const struct numbers numbers[] = {
    {"sum", RUEDA_SUM, 0, 1, 1, {3, 5}, 8, false},
    {"average", RUEDA_AVERAGE, 0, 1, 1, {3, 5}, 4, false},
    {"live", RUEDA_AVERAGE, RUEDA_LIVE_AVERAGE, 1, 1, {3, 5}, 4, false},
    {"unpacked", RUEDA_AVERAGE, RUEDA_UNPACKED, 1, 1, {3, 5}, 4, false},
    {"min", RUEDA_MIN, 0, 1, 1, {3, 5}, 3, false},
    {"max", RUEDA_MAX, 0, 1, 1, {3, 5}, 5, false},
    {"product", RUEDA_PRODUCT, 0, 1, 1, {3, 5}, 15, false},
    {"scaled", RUEDA_SUM, 0, 2, 0.25, {6, 10}, 8, true},
    {"adasum", RUEDA_ADASUM, 0, 1, 1, {4, 4}, 4, true},
};

static bool is_float(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16 ||
           dtype == RUEDA_FLOAT32 || dtype == RUEDA_FLOAT64;
}

static int one_type(struct test_rank *me, const struct numbers *what,
                    rueda_dtype dtype)
{
    static const size_t count = COUNT;
    unsigned char buf[COUNT * 8] = {0};
    unsigned char wanted[COUNT * 8] = {0};
    struct rueda_submit_args args;
    char name[64];

    for (size_t i = 0; i < COUNT; i++) {
        put(buf, dtype, i, what->gives[me->rank]);
        put(wanted, dtype, i, what->wanted);
    }
    snprintf(name, sizeof(name), "%s.%s", what->name, rueda_dtype_str(dtype));
    args = of(name, buf, &count);
    args.dtype = dtype;
    args.reduction = what->reduction;
    args.flags = what->flags;
    args.prescale = what->prescale;
    args.postscale = what->postscale;
    if (run(me, &args) != 0)
        return 1;
    return memcmp(buf, wanted, sizeof(buf)) == 0
               ? 0
               : rank_says(me, "%s is wrong", name);
}

static int all_types(struct test_rank *me)
{
    int failed = 0;

    for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
        for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT && failed == 0; dtype++)
            if (dtype != RUEDA_BOOL &&
                (is_float((rueda_dtype)dtype) || !numbers[n].of_floats))
                failed = one_type(me, &numbers[n], (rueda_dtype)dtype);
    return failed;
}

/* Sum is "or", product is "and". */
static int truths(struct test_rank *me)
{
    static const size_t count = 2;
    unsigned char sum[2] = {me->rank == 0, 0};
    unsigned char product[2] = {me->rank == 0, 1};
    struct rueda_submit_args args = of("or", sum, &count);

    args.dtype = RUEDA_BOOL;
    if (run(me, &args) != 0)
        return 1;
    args = of("and", product, &count);
    args.dtype = RUEDA_BOOL;
    args.reduction = RUEDA_PRODUCT;
    if (run(me, &args) != 0)
        return 1;
    return sum[0] == 1 && sum[1] == 0 && product[0] == 0 && product[1] == 1
               ? 0
               : rank_says(me, "truth is %d%d %d%d", sum[0], sum[1], product[0],
                           product[1]);
}

static void every_type_and_reduction_comes_out_right(void **state)
{
    rank_run(*state, 2, all_types, NULL);
    rank_run(*state, 2, truths, NULL);
}

/* ---- Many, long and empty ------------------------------------------------ */

#define MANY (RANK_IS_SLOW ? 2000 : 100000)

static int at_once(struct test_rank *me)
{
    static const size_t one = 1;
    float *x = calloc(MANY, sizeof(float));
    rueda_handle *handles = calloc(MANY, sizeof(rueda_handle));
    int failed = 0;

    for (int i = 0; i < MANY && failed == 0; i++) {
        struct rueda_submit_args args;
        char name[32];

        snprintf(name, sizeof(name), "many.%d", i);
        x[i] = (float)(me->rank + i % 100);
        args = of(name, &x[i], &one);
        failed = rank_expect(me, rueda_submit(me->ctx, &args, &handles[i]),
                             RUEDA_OK, "submit");
    }
    for (int i = 0; i < MANY && failed == 0; i++) {
        failed = rank_expect(me, rueda_wait(me->ctx, handles[i], WAIT_MS),
                             RUEDA_OK, "wait");
        if (failed == 0 && x[i] != (float)(1 + 2 * (i % 100)))
            failed = rank_says(me, "many.%d is %f", i, (double)x[i]);
    }
    free(x);
    free(handles);
    return failed;
}

static int in_turn(struct test_rank *me)
{
    int failed = 0;

    for (int i = 0; i < MANY && failed == 0; i++) {
        char name[32];

        snprintf(name, sizeof(name), "turn.%d", i);
        failed = add(me, name, RUEDA_ALL_RANKS, total(me));
    }
    return failed;
}

static void a_hundred_thousand_names_work(void **state)
{
    rank_run(*state, 2, at_once, NULL);
    rank_run(*state, 2, in_turn, NULL);
}

/* Names of 10 KB, which differ in their last character. */
static int long_names(struct test_rank *me)
{
    static const size_t none = 0;
    struct rueda_submit_args args;
    char name[10240];
    int failed = 0;

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    for (int step = 0; step < 3 && failed == 0; step++) {
        for (char last = 'a'; last < 'e' && failed == 0; last++) {
            name[sizeof(name) - 2] = last;
            failed = add(me, name, RUEDA_ALL_RANKS, total(me));
        }
        args = of("nothing", NULL, &none);
        if (failed == 0)
            failed = run(me, &args);
    }
    return failed;
}

static void long_names_and_empty_tensors_work(void **state)
{
    rank_run(*state, 3, long_names, NULL);
}

/* ---- Twice ------------------------------------------------------------ */

struct twin {
    struct test_rank *me;
    pthread_barrier_t *together;
    float x;
    rueda_status status;
    rueda_handle handle;
    bool has_words;
};

static void *submit_same(void *arg)
{
    static const size_t one = 1;
    struct twin *twin = arg;
    struct rueda_submit_args args = of("same", &twin->x, &one);

    pthread_barrier_wait(twin->together);
    twin->status = rueda_submit(twin->me->ctx, &args, &twin->handle);
    twin->has_words =
        strstr(rueda_last_error(), "currently being processed") != NULL &&
        strstr(rueda_last_error(), "same") != NULL;
    return NULL;
}

static int both(struct test_rank *me)
{
    pthread_barrier_t together;
    struct twin twins[2] = {{me, &together, 1, RUEDA_OK, 0, false},
                            {me, &together, 1, RUEDA_OK, 0, false}};
    const struct twin *loser;
    pthread_t threads[2];

    pthread_barrier_init(&together, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, submit_same, &twins[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
    atomic_fetch_add((atomic_int *)(void *)me->board->room, 1);
    loser = twins[0].status == RUEDA_OK ? &twins[1] : &twins[0];
    if (loser->status != RUEDA_ERR_INVALID || !loser->has_words)
        return rank_says(me, "the second got \"%s\"",
                         rueda_status_str(loser->status));
    loser = &twins[twins[0].status == RUEDA_OK ? 0 : 1];
    return rank_expect(me, loser->status, RUEDA_OK, "the first") ||
           rank_expect(me, rueda_wait(me->ctx, loser->handle, WAIT_MS),
                       RUEDA_OK, "the first");
}

/* The other rank brings it only when both threads have tried. */
static int twice(struct test_rank *me)
{
    const atomic_int *tried = (atomic_int *)(void *)me->board->room;
    static const size_t one = 1;
    int failed = 0;

    for (int round = 0; round < 50 && failed == 0; round++) {
        float x = 1;
        struct rueda_submit_args args = of("same", &x, &one);

        if (me->rank == 0) {
            failed = both(me);
            continue;
        }
        for (int ms = 0; atomic_load(tried) <= round; ms++) {
            if (ms > WAIT_MS)
                return rank_says(me, "rank 0 does not come");
            rank_sleep_ms(1);
        }
        failed = run(me, &args);
    }
    return failed;
}

static void of_two_threads_with_one_name_one_is_refused(void **state)
{
    rank_run(*state, 2, twice, NULL);
}

/* ---- Priority --------------------------------------------------------- */

#define RANKED 8

struct order {
    atomic_int next;
    atomic_int place[RANKED]; /* 0: not yet */
};

struct arrival {
    struct order *order;
    int i;
};

static void arrives(void *arg, rueda_status status)
{
    struct arrival *arrival = arg;
    struct order *order = arrival->order;

    if (status == RUEDA_OK)
        atomic_store(&order->place[arrival->i],
                     atomic_fetch_add(&order->next, 1) + 1);
}

/* Callbacks may run a little later than who waits. */
static int await_all(struct test_rank *me, struct order *order)
{
    for (int i = 0; i < RANKED; i++) {
        for (int ms = 0; atomic_load(&order->place[i]) == 0; ms++) {
            if (ms > WAIT_MS)
                return rank_says(me, "tensor %d never came", i);
            rank_sleep_ms(1);
        }
    }
    return 0;
}

static bool is_ordered(struct order *order, const int *priorities)
{
    for (int i = 0; i < RANKED; i++)
        for (int k = 0; k < RANKED; k++)
            if (priorities[i] > priorities[k] &&
                atomic_load(&order->place[i]) > atomic_load(&order->place[k]))
                return false;
    return true;
}

/* They become ready together, and run one by one. */
static int by_priority(struct test_rank *me, bool *is_right)
{
    static const int priorities[RANKED] = {3, 9, -4, 0, 12, 5, 1, 7};
    static const size_t count = 1000;
    float(*x)[1000] = calloc(RANKED, sizeof(*x));
    struct rueda_submit_args args[RANKED];
    struct arrival arrivals[RANKED];
    rueda_handle handles[RANKED];
    struct order order;
    char names[RANKED][16];
    int failed = 0;

    memset(&order, 0, sizeof(order));
    for (int i = 0; i < RANKED; i++) {
        snprintf(names[i], sizeof(names[i]), "prio.%d", i);
        args[i] = of(names[i], x[i], &count);
        args[i].priority = priorities[i];
        arrivals[i] = (struct arrival){&order, i};
    }
    /* The other rank comes when callbacks are in place here. */
    if (me->rank != 0)
        failed = rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
    if (failed == 0)
        failed =
            rank_expect(me, rueda_submit_group(me->ctx, args, RANKED, handles),
                        RUEDA_OK, "submit");
    for (int i = 0; i < RANKED && failed == 0 && me->rank == 0; i++)
        failed = rank_expect(
            me, rueda_handle_then(me->ctx, handles[i], arrives, &arrivals[i]),
            RUEDA_OK, "then");
    if (me->rank == 0 && failed == 0)
        failed = rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
    for (int i = 0; i < RANKED && failed == 0; i++)
        failed = rank_expect(me, rueda_wait(me->ctx, handles[i], WAIT_MS),
                             RUEDA_OK, "wait");
    if (failed == 0 && me->rank == 0)
        failed = await_all(me, &order);
    *is_right = failed == 0 && is_ordered(&order, priorities);
    free(x);
    return failed;
}

/* Two threads call back, and one that loses its core in between is overtaken.
 * If priorities did not count, the order would be wrong each time. */
static int by_priority_once(struct test_rank *me)
{
    bool is_right = false;
    bool was_right = false;
    int failed = 0;

    for (int i = 0; i < 10 && failed == 0; i++) {
        failed = by_priority(me, &is_right);
        was_right = was_right || is_right;
    }
    if (failed == 0 && me->rank == 0 && !was_right)
        return rank_says(me, "the highest priority never came first");
    return failed;
}

static void the_highest_priority_comes_first(void **state)
{
    setenv("RUEDA_FUSION_BYTES", "0", 1);
    rank_run(*state, 2, by_priority_once, NULL);
    unsetenv("RUEDA_FUSION_BYTES");
}

/* ---- Sets that come and go -------------------------------------------- */

#define SETS    (RANK_IS_SLOW ? 20 : 100)
#define PENDING 10

/* Some run, and then both members hand over others, one of them one less, and
 * do not wait: decisions about these are on their way while it is dropped. */
static int use_set(struct test_rank *me, int n, int set, rueda_handle *pending,
                   float *x)
{
    static const size_t one = 1;
    const int count = me->rank == 2 ? PENDING : PENDING - 1;
    int failed = 0;

    for (int i = 0; i < 3 && failed == 0; i++)
        failed = add(me, "pair", set, n % 2 + 1 + 3);
    for (int i = 0; i < count && failed == 0; i++) {
        char name[128];
        struct rueda_submit_args args = of(name, &x[i], &one);

        snprintf(name, sizeof(name), "%0100d", i); /* more than a head holds */
        args.set = set;
        failed = rank_expect(me, rueda_submit(me->ctx, &args, &pending[i]),
                             RUEDA_OK, "submit");
    }
    return failed;
}

static int check_pending(struct test_rank *me, const rueda_handle *pending)
{
    const int count = me->rank == 2 ? PENDING : PENDING - 1;

    for (int i = 0; i < count; i++) {
        rueda_status status = rueda_wait(me->ctx, pending[i], WAIT_MS);

        if (status != RUEDA_ERR_CANCELLED &&
            (status != RUEDA_OK || i == PENDING - 1))
            return rank_says(me, "tensor %d of a dropped set: %s", i,
                             rueda_status_str(status));
    }
    return 0;
}

static int hundred_sets(struct test_rank *me)
{
    int failed = 0;

    for (int n = 0; n < SETS && failed == 0; n++) {
        const int ranks[2] = {n % 2, 2};
        const bool is_member = me->rank == 2 || me->rank == n % 2;
        rueda_handle pending[PENDING];
        float x[PENDING] = {0};
        int set = -1;

        failed = rank_expect(me, rueda_set_create(me->ctx, ranks, 2, &set),
                             RUEDA_OK, "create");
        if (failed == 0 && is_member)
            failed = use_set(me, n, set, pending, x);
        if (failed == 0)
            failed = rank_expect(me, rueda_set_destroy(me->ctx, set), RUEDA_OK,
                                 "destroy");
        if (failed == 0 && is_member)
            failed = check_pending(me, pending);
    }
    for (int i = 0; i < 20 && failed == 0; i++)
        failed = add(me, "afterwards", RUEDA_ALL_RANKS, total(me));
    return failed;
}

static void a_hundred_sets_come_and_go(void **state)
{
    rank_run(*state, 3, hundred_sets, NULL);
}

/* ---- fork() ----------------------------------------------------------- */

static int refused_in_child(struct test_rank *me)
{
    static const size_t one = 1;
    float x = 1;
    struct rueda_submit_args args = of("child", &x, &one);
    rueda_handle handle;
    int set;

    if (rueda_submit(me->ctx, &args, &handle) != RUEDA_ERR_FORKED ||
        strstr(rueda_last_error(), "fork()") == NULL)
        return 1;
    if (rueda_submit_group(me->ctx, &args, 1, &handle) != RUEDA_ERR_FORKED)
        return 2;
    if (rueda_set_create(me->ctx, &me->rank, 1, &set) != RUEDA_ERR_FORKED)
        return 3;
    if (rueda_timeline_start(me->ctx, "/dev/null", 0) != RUEDA_ERR_FORKED)
        return 4;
    rueda_shutdown(me->ctx);
    return 0;
}

/* Workers, as data loaders start them, while tensors are in flight. */
static int has_workers(struct test_rank *me)
{
    static const size_t one = 1;
    pid_t children[4];
    int started = 0;
    int failed = 0;

    for (int i = 0; i < 4 && failed == 0; i++) {
        float x = (float)(me->rank + 1);
        struct rueda_submit_args args = of("meanwhile", &x, &one);
        rueda_handle handle;

        failed = rank_expect(me, rueda_submit(me->ctx, &args, &handle),
                             RUEDA_OK, "submit");
        children[i] = fork();
        if (children[i] == 0) {
            int code = refused_in_child(me);

            rank_sleep_ms(100 * i);
            _exit(code);
        }
        started++;
        failed = failed ||
                 rank_expect(me, rueda_wait(me->ctx, handle, WAIT_MS), RUEDA_OK,
                             "wait") ||
                 (x != (float)total(me) && rank_says(me, "wrong"));
    }
    for (int step = 0; step < 200 && failed == 0; step++)
        failed = add(me, "step", RUEDA_ALL_RANKS, total(me));
    for (int i = 0; i < started; i++) {
        int how = -1;

        waitpid(children[i], &how, 0);
        if (how != 0)
            failed = rank_says(me, "a worker ended with %d", how);
    }
    return failed != 0 ? failed : add(me, "end", RUEDA_ALL_RANKS, total(me));
}

static void workers_of_a_fork_do_no_harm(void **state)
{
    rank_skip_without_fork();
    rank_run(*state, 2, has_workers, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(every_type_and_reduction_comes_out_right),
        RANK_TEST(a_hundred_thousand_names_work, processes),
        RANK_TEST(a_hundred_thousand_names_work, threads),
        RANK_EVERYWHERE(long_names_and_empty_tensors_work),
        RANK_EVERYWHERE(of_two_threads_with_one_name_one_is_refused),
        RANK_EVERYWHERE(the_highest_priority_comes_first),
        RANK_EVERYWHERE(a_hundred_sets_come_and_go),
        RANK_IN_PROCESSES(workers_of_a_fork_do_no_harm),
    };

    setenv("RUEDA_DYNAMIC_SETS", "1", 1);
    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
