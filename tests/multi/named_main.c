/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of tests/python/test_named_hosts.py and test_named_ends.py, a user of
 * the library, started like any program:
 *
 *     named_main WHAT [VICTIM]
 *
 * where WHAT is one of the bodies in the table below. Says what went wrong and
 * ends with 1, or says what the test is to look at and ends with 0.
 */
#include <rueda/rueda.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 30000
#define COUNT   60

static rueda_ctx *ctx;
static int rank;
static int size;
static int victim = -1;

__attribute__((format(printf, 1, 2))) static bool complain(const char *format,
                                                           ...)
{
    va_list args;

    va_start(args, format);
    printf("rank %d: ", rank);
    vprintf(format, args);
    printf(" (%s; %s)\n", rueda_last_error(), rueda_error(ctx));
    va_end(args);
    return false;
}

static void sleep_ms(int ms)
{
    struct timespec left = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) < 0)
        continue;
}

/* ---- Operations with known results -------------------------------------- */

struct one {
    char name[32];
    struct rueda_submit_args args;
    size_t shape[2];
    float *send;
    float *recv;
    rueda_handle handle;
};

static const rueda_kind kinds[] = {RUEDA_ALLREDUCE, RUEDA_ALLGATHER,
                                   RUEDA_BROADCAST, RUEDA_ALLTOALL,
                                   RUEDA_REDUCE_SCATTER};

static float number(int of, int salt, size_t i)
{
    return (float)((of * 5 + salt * 3 + (int)(i % 1009)) % 4);
}

/* The members of a set, and my place. */
struct members {
    int count;
    int me;
    int ranks[64];
};

static struct members members_of(int set)
{
    struct members members = {.me = rueda_set_rank(ctx, set)};

    members.count = rueda_set_ranks(ctx, set, members.ranks, 64);
    return members;
}

static void *allocate(void *arg, size_t rows, size_t bytes)
{
    struct one *one = arg;

    (void)rows;
    one->recv = malloc(bytes > 0 ? bytes : 1);
    return one->recv;
}

/* The nth of many different ones; rows are a multiple of the members. */
static void begin(struct one *one, int n, int set)
{
    static const size_t rows[] = {1, 0, 7, 300, 40};
    static const size_t row[] = {3, 1, 64};
    const struct members members = members_of(set);

    memset(one, 0, sizeof(*one));
    snprintf(one->name, sizeof(one->name), "op.%d.%d", set, n);
    one->args = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    one->args.name = one->name;
    one->args.set = set;
    one->args.kind = kinds[n % 5];
    one->args.root = members.ranks[n % members.count];
    one->args.dims = 2;
    one->args.shape = one->shape;
    one->shape[0] = rows[n / 5 % 5] * (size_t)members.count;
    one->shape[1] = row[n % 3];
    if (n % 20 == 0)
        one->shape[1] *= 20;
    one->send = malloc((one->shape[0] * one->shape[1] + 1) * sizeof(float));
    for (size_t i = 0; i < one->shape[0] * one->shape[1]; i++)
        one->send[i] = number(rank, n, i);
    one->args.send = one->send;
    one->args.alloc = allocate;
    one->args.alloc_arg = one;
}

static float wanted(const struct one *one, const struct members *members, int n,
                    size_t i)
{
    const size_t count = one->shape[0] * one->shape[1];
    const size_t piece = count / (size_t)members->count;
    float sum = 0;

    switch (one->args.kind) {
    case RUEDA_ALLGATHER:
        return number(members->ranks[i / count], n, i % count);
    case RUEDA_BROADCAST:
        return number(one->args.root, n, i);
    case RUEDA_ALLTOALL:
        return number(members->ranks[i / piece], n,
                      (size_t)members->me * piece + i % piece);
    case RUEDA_REDUCE_SCATTER:
        i += (size_t)members->me * piece;
        break;
    default:
        break;
    }
    for (int m = 0; m < members->count; m++)
        sum += number(members->ranks[m], n, i);
    return sum;
}

static bool end(struct one *one, int n)
{
    const struct members members = members_of(one->args.set);
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_status status = rueda_wait_for(ctx, one->handle, WAIT_MS, &result);
    const float *data = result.data;
    bool is_right = true;

    if (status != RUEDA_OK)
        return complain("%s: %s", one->name, rueda_status_str(status));
    for (size_t i = 0; i < result.rows * one->shape[1] && is_right; i++)
        if (data[i] != wanted(one, &members, n, i))
            is_right = complain("%s (%s): %g at %zu instead of %g", one->name,
                                rueda_kind_str(one->args.kind), (double)data[i],
                                i, (double)wanted(one, &members, n, i));
    free(one->send);
    free(one->recv);
    return is_right;
}

static bool submit(struct one *one)
{
    return rueda_submit(ctx, &one->args, &one->handle) == RUEDA_OK ||
           complain("submit %s", one->name);
}

/* Each rank in another order. */
static void shuffle(int *order, int count, unsigned seed)
{
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int k, swap = order[i];

        seed = seed * 1664525u + 1013904223u;
        k = (int)(seed >> 16) % (i + 1);
        order[i] = order[k];
        order[k] = swap;
    }
}

/* ---- Things that go well ------------------------------------------------- */

/* This many of all kinds a set, in any order, in several sets at a time. */
static bool in_sets(const int *sets, int set_count, int each)
{
    const int count = each * set_count;
    struct one *all = calloc((size_t)count, sizeof(*all));
    int *order = calloc((size_t)count, sizeof(int));
    bool is_right = true;

    for (int step = 0; step < 3 && is_right; step++) {
        shuffle(order, count, (unsigned)(rank * 7 + step));
        for (int i = 0; i < count && is_right; i++) {
            int set = sets[order[i] / each];

            if (rueda_set_rank(ctx, set) < 0)
                continue;
            begin(&all[order[i]], order[i] % each, set);
            is_right = submit(&all[order[i]]);
        }
        for (int i = 0; i < count && is_right; i++)
            if (rueda_set_rank(ctx, sets[i / each]) >= 0)
                is_right = end(&all[i], i % each);
    }
    free(order);
    free(all);
    return is_right;
}

static bool any_order(void)
{
    static const int all = RUEDA_ALL_RANKS;

    return in_sets(&all, 1, COUNT);
}

static bool sets(void)
{
    const int count = size > 3 ? 4 : 3;
    int ids[4] = {RUEDA_ALL_RANKS};
    int some[8];

    some[0] = 0;
    some[1] = size - 1;
    if (rueda_set_create(ctx, some, 2, &ids[1]) != RUEDA_OK)
        return complain("create");
    for (int i = 1; i < size; i++)
        some[i - 1] = i;
    if (rueda_set_create(ctx, some, size - 1, &ids[2]) != RUEDA_OK)
        return complain("create");
    some[0] = 1;
    some[1] = 2;
    if (count > 3 && rueda_set_create(ctx, some, 2, &ids[3]) != RUEDA_OK)
        return complain("create");
    if (!in_sets(ids, count, COUNT))
        return false;
    for (int i = 1; i < count; i++)
        if (rueda_set_destroy(ctx, ids[i]) != RUEDA_OK)
            return complain("destroy");
    return any_order();
}

/* Every set of two ranks or more that there can be, all at a time: any two
 * ranks have a quarter of them in common. */
static bool many_sets(void)
{
    int ids[64] = {RUEDA_ALL_RANKS};
    int count = 1;

    for (unsigned mask = 1; mask + 1 < 1u << size && size <= 6; mask++) {
        int ranks[6];
        int members = 0;

        for (int i = 0; i < size; i++)
            if ((mask >> i & 1) != 0)
                ranks[members++] = i;
        if (members < 2)
            continue;
        if (rueda_set_create(ctx, ranks, members, &ids[count++]) != RUEDA_OK)
            return complain("create");
    }
    return in_sets(ids, count, 25);
}

static bool groups(void)
{
    struct rueda_submit_args args[6];
    rueda_handle handles[6];
    struct one all[5][6];
    bool is_right = true;

    for (int n = 0; n < 5 && is_right; n++) {
        int g = (n + rank) % 5;

        for (int i = 0; i < 6; i++) {
            begin(&all[g][i], i * 5 + g, RUEDA_ALL_RANKS); /* of one kind */
            args[i] = all[g][i].args;
        }
        if (rueda_submit_group(ctx, args, 6, handles) != RUEDA_OK)
            return complain("group");
        for (int i = 0; i < 6; i++)
            all[g][i].handle = handles[i];
    }
    for (int g = 0; g < 5 && is_right; g++)
        for (int i = 0; i < 6 && is_right; i++)
            is_right = end(&all[g][i], i * 5 + g);
    return is_right;
}

/* ---- Sums ------------------------------------------------------------- */

struct sum {
    const char *name;
    rueda_reduction reduction;
    unsigned flags;
    rueda_compression compression;
    size_t count;
};

/* Allreduce `value` in place; the answer, or NAN. */
static double add(const struct sum *what, double value)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    float *x = malloc(what->count * sizeof(float));
    rueda_handle handle;
    double answer;

    for (size_t i = 0; i < what->count; i++)
        x[i] = (float)value;
    args.kind = RUEDA_ALLREDUCE;
    args.name = what->name;
    args.reduction = what->reduction;
    args.flags = what->flags;
    args.compression = what->compression;
    args.send = x;
    args.recv = x;
    args.dims = 1;
    args.shape = &what->count;
    if (rueda_submit(ctx, &args, &handle) != RUEDA_OK ||
        rueda_wait(ctx, handle, WAIT_MS) != RUEDA_OK) {
        free(x);
        return -1;
    }
    answer = (double)x[what->count - 1];
    free(x);
    return answer;
}

static bool expect(const char *what, double is, double should_be)
{
    const double error = is - should_be;

    return (error < 1e-5 && error > -1e-5) ||
           complain("%s is %g instead of %g", what, is, should_be);
}

/* A byte from one rank to another, outside of all that is negotiated. */
static bool pass(rueda_kind kind, int peer)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    static const size_t one = 1;
    rueda_handle handle;
    char byte = 'j';

    args.kind = kind;
    args.dtype = RUEDA_UINT8;
    args.peer = peer;
    args.send = &byte;
    args.recv = &byte;
    args.dims = 1;
    args.shape = &one;
    return (rueda_submit(ctx, &args, &handle) == RUEDA_OK &&
            rueda_wait(ctx, handle, WAIT_MS) == RUEDA_OK) ||
           complain("a message");
}

/* Rank 0 has joined, the last rank has not. What comes between is refused, and
 * counts nowhere. */
static bool is_refused(void)
{
    const struct sum late = {"late", RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 10};
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle;

    if (add(&late, 1) >= 0 ||
        strstr(rueda_last_error(), "has joined already") == NULL)
        return complain("a tensor of a rank that has joined");
    args.kind = RUEDA_BARRIER;
    for (int i = 0; i < 3; i++)
        if (rueda_submit(ctx, &args, &handle) != RUEDA_ERR_INVALID ||
            strstr(rueda_last_error(), "has joined already") == NULL)
            return complain("a barrier of a rank that has joined");
    return pass(RUEDA_SEND, size - 1);
}

static bool join_all(int last)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_handle handle;

    args.kind = RUEDA_JOIN;
    if (rank > 0 && rank == last && !pass(RUEDA_RECV, 0))
        return false;
    if (rueda_submit(ctx, &args, &handle) != RUEDA_OK)
        return complain("join");
    if (rank == 0 && last > 0 && !is_refused())
        return false;
    if (rueda_wait_for(ctx, handle, WAIT_MS, &result) != RUEDA_OK)
        return complain("join");
    return last < 0 || result.last_rank == last ||
           complain("rank %d joined last", result.last_rank);
}

/* Rank r has r + 1 steps, each with a tensor that has a name, one that has
 * none, and two averages. Afterwards numbers fit again. */
static bool join(void)
{
    const double total = size * (size + 1) / 2.0;

    for (int step = 0; step <= rank; step++) {
        const int live = size - step;
        /* Rank r gives r + 1, so those that have joined would have given 1,
         * 2, ... step. */
        const double left = total - step * (step + 1) / 2.0;
        const struct sum all[] = {
            {"step", RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 100},
            {NULL, RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 7},
            {"big", RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 200000},
            {"mean", RUEDA_AVERAGE, 0, RUEDA_COMPRESS_NONE, 10},
            {"live", RUEDA_AVERAGE, RUEDA_LIVE_AVERAGE, RUEDA_COMPRESS_NONE, 9},
        };

        for (int i = 0; i < 3; i++)
            if (!expect("a sum", add(&all[i], rank + 1), left))
                return false;
        if (!expect("a mean", add(&all[3], 1), (double)live / size) ||
            !expect("a mean of those who are there", add(&all[4], 3), 3))
            return false;
    }
    if (!join_all(size - 1))
        return false;
    for (int i = 0; i < 5; i++) {
        const struct sum what = {NULL, RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 11};

        if (!expect("a sum without a name", add(&what, rank + 1), total))
            return false;
    }
    return any_order();
}

/* The last rank says something else than all others; of NO_ROWS all say what
 * cannot be. */
enum {
    NO_ROWS = 8
};
static bool differs(int n, struct rueda_submit_args args, const char *word)
{
    static const size_t longer[2] = {8, 3};
    struct rueda_result result = RUEDA_RESULT_INIT;
    static float x[2][640];
    rueda_handle handle;
    char words[1024];
    char who[32];
    rueda_status status;

    args.send = x[0];
    args.recv = x[1];
    if (rank == size - 1) {
        args.shape = n == 0 ? longer : args.shape;
        args.dtype = n == 1 ? RUEDA_INT32 : args.dtype;
        args.reduction = n == 2 ? RUEDA_MAX : args.reduction;
        args.prescale = n == 3 ? 0.5 : args.prescale;
        args.kind = n == 4 ? RUEDA_BROADCAST : args.kind;
        args.compression = n == 5 ? RUEDA_COMPRESS_BF16 : args.compression;
        args.dims = n == 6 ? 0 : args.dims;
    }
    args.dims = n == NO_ROWS ? 0 : args.dims;
    result.error = words;
    result.error_bytes = sizeof(words);
    if (rueda_submit(ctx, &args, &handle) != RUEDA_OK)
        return complain("submit");
    status = rueda_wait_for(ctx, handle, WAIT_MS, &result);
    snprintf(who, sizeof(who), "rank (%d)", size - 1);
    if (status != RUEDA_ERR_MISMATCH || strstr(words, word) == NULL ||
        (n < NO_ROWS &&
         (strstr(words, who) == NULL || strstr(words, "One rank (") == NULL)))
        return complain("\"%s\" and %s where %s differ", words,
                        rueda_status_str(status), word);
    return true;
}

static bool mismatch(void)
{
    static const char *const words[] = {"ALLREDUCE tensor shapes",
                                        "data types",
                                        "reduction operation",
                                        "prescale and/or postscale factors",
                                        "BROADCAST",
                                        "compression"};
    static const size_t shape[2] = {12, 3};
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = RUEDA_ALLREDUCE;
    args.name = "differs";
    args.dims = 2;
    args.shape = shape;
    for (int n = 0; n < 6; n++)
        if (!differs(n, args, words[n]))
            return false;
    for (args.kind = RUEDA_ALLGATHER; args.kind < RUEDA_BARRIER; args.kind++)
        if (args.kind != RUEDA_BROADCAST &&
            (!differs(6, args, "tensor shapes") ||
             !differs(NO_ROWS, args, "rank-zero tensor")))
            return false;
    return any_order();
}

/* Sums of a host, exact in 32 bits, are not in 16. */
static bool compress(void)
{
    const bool has_hop = rueda_local_size(ctx) < size;

    for (int c = RUEDA_COMPRESS_FP16; c <= RUEDA_COMPRESS_BF16; c++) {
        const struct sum fine = {"fine", RUEDA_SUM, 0, (rueda_compression)c,
                                 5000};
        const struct sum small = {"small", RUEDA_SUM, 0, (rueda_compression)c,
                                  5000};
        double is = add(&fine, 1024.5);
        double exact = 1024.5 * size;

        if (!expect("a small number", add(&small, 1), size))
            return false;
        if (is < exact * 0.98 || is > exact * 1.02 || (is == exact) == has_hop)
            return complain("%s: %g for %g",
                            rueda_compression_str((rueda_compression)c), is,
                            exact);
    }
    return true;
}

static bool everything(void)
{
    return any_order() && groups() && sets() && join() && mismatch() &&
           compress();
}

/* ---- Bad ends --------------------------------------------------------- */

/* Tensors are pending when the victim ends in some way. */
static bool ends(const char *how)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    static const size_t shape = 1000;
    static float x[40][1000];
    rueda_handle handles[40];
    rueda_status worst = RUEDA_OK;
    char name[32];

    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.dims = 1;
    args.shape = &shape;
    if (!any_order())
        return false;
    /* The victim brings half of them. */
    for (int i = 0; i < (rank == victim ? 20 : 40); i++) {
        snprintf(name, sizeof(name), "grad.%d", i);
        args.send = x[i];
        args.recv = x[i];
        if (rueda_submit(ctx, &args, &handles[i]) != RUEDA_OK)
            return complain("submit");
    }
    if (rank == victim) {
        sleep_ms(300);
        if (strcmp(how, "kill") == 0)
            kill(getpid(), SIGKILL);
        if (strcmp(how, "exit") == 0)
            exit(0);
        rueda_shutdown(ctx);
        exit(0);
    }
    for (int i = 0; i < 40; i++) {
        rueda_status status = rueda_wait(ctx, handles[i], WAIT_MS);

        worst = status < worst ? status : worst;
    }
    printf("%d %s\n", (int)worst, rueda_error(ctx));
    return true;
}

static bool killed(void)
{
    return ends("kill");
}

static bool exited(void)
{
    return ends("exit");
}

static bool left(void)
{
    return ends("leave");
}

/* The victim never brings anything. */
static bool stalls(void)
{
    struct sum what = {"alone", RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 10};
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    static float x[2][10];
    rueda_handle handles[2];
    rueda_status status;

    if (rank == victim) {
        sleep_ms(4000); /* and finds out when it does */
        status = add(&what, 1) < 0 ? RUEDA_ERR_TIMEOUT : RUEDA_OK;
        printf("%d %s\n", (int)status, rueda_last_error());
        return true;
    }
    args.kind = RUEDA_ALLREDUCE;
    args.dims = 1;
    args.shape = &what.count;
    for (int i = 0; i < 2; i++) {
        args.name = i == 0 ? "alone" : "also.alone";
        args.send = x[i];
        args.recv = x[i];
        if (rueda_submit(ctx, &args, &handles[i]) != RUEDA_OK)
            return complain("submit");
    }
    status = rueda_wait(ctx, handles[0], WAIT_MS);
    printf("%d %s\n", (int)status, rueda_error(ctx));
    return true;
}

/* ---- Others ----------------------------------------------------------- */

/* Nothing to do for 10 s: the processor's time in microseconds. */
static bool idle(void)
{
    struct rusage before, after;

    if (!any_order())
        return false;
    sleep_ms(200);
    getrusage(RUSAGE_SELF, &before);
    sleep_ms(10000);
    getrusage(RUSAGE_SELF, &after);
    printf("%ld\n", (long)(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
                           after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
                            1000000 +
                        (after.ru_utime.tv_usec - before.ru_utime.tv_usec +
                         after.ru_stime.tv_usec - before.ru_stime.tv_usec));
    return true;
}

static bool join_job(void)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    if (getenv("RUEDA_PROCESS_SETS") == NULL)
        args.process_sets = "dynamic";
    return rueda_init(&args, &ctx) == RUEDA_OK;
}

/* Init after shutdown. */
static bool again(void)
{
    for (int life = 0; life < 3; life++) {
        if (!any_order() || !join_all(-1))
            return false;
        rueda_shutdown(ctx);
        if (!join_job())
            return complain("init");
    }
    return any_order();
}

/* Until the test ends it. */
static bool forever(void)
{
    while (any_order())
        continue;
    return false;
}

/* A timeline of the second of three steps. */
static bool timeline(void)
{
    const char *path = getenv("TIMELINE_FILE");
    struct sum what = {"before", RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 10};

    add(&what, 1);
    if (rueda_timeline_start(ctx, path, RUEDA_MARK_CYCLES) != RUEDA_OK)
        return complain("start");
    what.name = "during";
    add(&what, 1);
    if (rueda_timeline_stop(ctx) != RUEDA_OK)
        return complain("stop");
    what.name = "after";
    return expect("a sum", add(&what, 1), size);
}

/* One that a setting began. */
static bool timed(void)
{
    return any_order() &&
           (rueda_timeline_stop(ctx) == RUEDA_OK || complain("stop"));
}

/* Steps of which rank 0 alone wants a timeline; the others rest in the end. */
static bool lone_timeline(void)
{
    const char *path = getenv("TIMELINE_FILE");
    struct sum what = {"before", RUEDA_SUM, 0, RUEDA_COMPRESS_NONE, 10};

    add(&what, 1);
    if (rank == 0 && rueda_timeline_start(ctx, path, 0) != RUEDA_OK)
        return complain("start");
    what.name = "during";
    add(&what, 1);
    if (rank == 0 && rueda_timeline_stop(ctx) != RUEDA_OK)
        return complain("stop");
    if (rank != 0)
        sleep_ms(500);
    what.name = "after";
    return expect("a sum", add(&what, 1), size);
}

/* More than 5 GB, of which both ends and some of the middle are looked at. */
static bool huge(void)
{
    const size_t bytes = ((size_t)5 << 30) + 12345;
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    unsigned char *x = malloc(bytes);
    rueda_handle handle;

    if (x == NULL)
        return complain("no memory");
    memset(x, rank + 1, bytes);
    args.kind = RUEDA_ALLREDUCE;
    args.name = "huge";
    args.dtype = RUEDA_UINT8;
    args.send = x;
    args.recv = x;
    args.dims = 1;
    args.shape = &bytes;
    if (rueda_submit(ctx, &args, &handle) != RUEDA_OK ||
        rueda_wait(ctx, handle, 10 * WAIT_MS) != RUEDA_OK)
        return complain("huge");
    for (size_t i = 0; i < bytes; i += i < bytes - 4096 ? 4093 : 1)
        if (x[i] != size * (size + 1) / 2)
            return complain("byte %zu is %d", i, x[i]);
    free(x);
    return true;
}

static const struct {
    const char *name;
    bool (*run)(void);
} bodies[] = {
    {"everything", everything},
    {"order", any_order},
    {"groups", groups},
    {"sets", sets},
    {"many_sets", many_sets},
    {"join", join},
    {"mismatch", mismatch},
    {"compress", compress},
    {"kill", killed},
    {"exit", exited},
    {"leave", left},
    {"stall", stalls},
    {"idle", idle},
    {"again", again},
    {"forever", forever},
    {"timeline", timeline},
    {"timed", timed},
    {"lone_timeline", lone_timeline},
    {"huge", huge},
};

int main(int argc, char **argv)
{
    bool is_right = false;

    if (!join_job())
        return 2;
    rank = rueda_rank(ctx);
    size = rueda_size(ctx);
    if (argc > 2)
        victim = atoi(argv[2]);
    for (size_t i = 0; argc > 1 && i < sizeof(bodies) / sizeof(bodies[0]); i++)
        if (strcmp(argv[1], bodies[i].name) == 0)
            is_right = bodies[i].run();
    fflush(stdout);
    rueda_shutdown(ctx);
    return is_right ? 0 : 1;
}
