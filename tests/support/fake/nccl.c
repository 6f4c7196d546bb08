/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnccl.so.2, over the stand-in for the CUDA driver: ranks are
 * processes or threads of one machine and meet in a file. A launch is a call in
 * the stream's order, which waits until all ranks of the communicator have
 * launched as well, so ranks that launch in different orders hang, as they do
 * with NCCL. The first launch of a communicator connects its ranks: a thread
 * puts it on the stream when all of them have come. FAKE_NCCL_OLD is that of a
 * version without communicators that do not block.
 *
 *      FAKE_NCCL_FAIL     "ncclAllReduce=3" lets a function fail with a code;
 *                         "async=6#2" lets the third launch and all after it
 *                         find an error while they run
 *      FAKE_NCCL_HANG     "join": communicators are never made; "run": launches
 *                         never end; both until they are aborted
 *      FAKE_NCCL_LATE_US  each launch comes to its stream so late at most
 *      FAKE_NCCL_VERSION  as ncclGetVersion() tells it
 *
 * The fake_nccl_ functions are for tests, which find them in the library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    OK = 0,
    INTERNAL = 3,
    ARGUMENT = 4,
    USAGE = 5,
    REMOTE = 6,
    IN_PROGRESS = 7,

    RANKS = 8,
    GROUP = 64, /* calls in a group */
};
#define SHARE_BYTES ((size_t)1 << 20)
#define BOX         ((size_t)64 << 10)
#define NAP         100 /* us */

struct id {
    char path[128];
};

struct config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};

/* What the ranks of a communicator share. */
struct meeting {
    atomic_int joined;
    atomic_int connected;
    atomic_int is_broken; /* a rank has aborted */
    atomic_int arrived;   /* at the barrier */
    atomic_int passed;    /* barriers */
    char hosts[RANKS][64];
    int gpus[RANKS];
    struct {
        atomic_int is_full;
        char bytes[BOX];
    } boxes[RANKS][RANKS]; /* from, to */
    char shares[RANKS][SHARE_BYTES];
};

struct comm {
    struct meeting *meeting;
    int size;
    int rank;
    int gpu;
    char path[128]; /* of the file in which they meet */
    bool is_finalized;
    bool is_connected;
    bool has_thread;
    pthread_t joiner;
    atomic_int state; /* OK, IN_PROGRESS, or an error */
    atomic_int is_aborted;
    atomic_int running; /* launches */
};

struct call {
    enum {
        ALLREDUCE,
        REDUCE,
        REDUCE_SCATTER,
        BROADCAST,
        ALLGATHER,
        SEND,
        RECV,
    } what;
    const char *send;
    char *recv;
    size_t count;
    int dtype;
    int op;
    int root; /* or the peer */
    size_t done;
};

struct launch {
    struct comm *comm;
    void *stream;
    int count;
    struct call calls[GROUP];
};

static __thread int group_depth;
static __thread struct launch group;
static __thread void *group_stream;
static atomic_int launches;
static atomic_int comms;
static atomic_int busy; /* launches that have not ended */

static int (*cuda_call)(void *stream, void (*call)(void *arg), void *arg);
static void *(*cuda_at)(const void *at);
static int (*cuda_current)(void);
static pthread_once_t has_driver = PTHREAD_ONCE_INIT;

/* ---- The driver, and what is to fail ---------------------------------- */

static void find_driver(void)
{
    void *driver = dlopen(getenv("RUEDA_CUDA_LIB"), RTLD_NOW | RTLD_NOLOAD);

    *(void **)&cuda_call = dlsym(driver, "fake_cuda_call");
    *(void **)&cuda_at = dlsym(driver, "fake_cuda_at");
    *(void **)&cuda_current = dlsym(driver, "fake_cuda_current");
}

static int fails(const char *function)
{
    static atomic_int calls;
    const char *text = getenv("FAKE_NCCL_FAIL");
    const size_t length = strlen(function);
    const char *after;

    if (text == NULL || strncmp(text, function, length) != 0 ||
        text[length] != '=')
        return OK;
    after = strchr(text, '#');
    if (after != NULL && atomic_fetch_add(&calls, 1) < atoi(after + 1))
        return OK;
    return atoi(text + length + 1);
}

static bool hangs(const char *where)
{
    const char *text = getenv("FAKE_NCCL_HANG");

    return text != NULL && strcmp(text, where) == 0;
}

static long lateness(void)
{
    const char *text = getenv("FAKE_NCCL_LATE_US");

    return text != NULL ? strtol(text, NULL, 10) : 0;
}

/* ---- Waiting for each other ------------------------------------------- */

/* False: this rank has aborted, or another one has, which is an error. */
static bool goes_on(struct comm *comm)
{
    if (atomic_load(&comm->is_aborted) != 0)
        return false;
    if (atomic_load(&comm->meeting->is_broken) != 0) {
        atomic_store(&comm->state, REMOTE);
        return false;
    }
    usleep(NAP);
    return true;
}

static bool barrier(struct comm *comm)
{
    struct meeting *meeting = comm->meeting;
    const int passed = atomic_load(&meeting->passed);

    if (atomic_fetch_add(&meeting->arrived, 1) == comm->size - 1) {
        atomic_store(&meeting->arrived, 0);
        atomic_fetch_add(&meeting->passed, 1);
        return true;
    }
    while (atomic_load(&meeting->passed) == passed)
        if (!goes_on(comm))
            return false;
    return true;
}

/* ---- Arithmetic ------------------------------------------------------- */

#define TYPES(X)                                                               \
    X(0, int8_t)                                                               \
    X(1, uint8_t)                                                              \
    X(2, int32_t)                                                              \
    X(4, int64_t)                                                              \
    X(7, float)                                                                \
    X(8, double)

static size_t bytes_of(int dtype)
{
    switch (dtype) {
#define X(number, type)                                                        \
    case number:                                                               \
        return sizeof(type);
        TYPES(X)
#undef X
    default:
        return 2;
    }
}

static void add(char *to, const char *from, size_t count, int dtype, int op)
{
    switch (dtype) {
#define X(number, type)                                                        \
    case number:                                                               \
        for (size_t i = 0; i < count; i++) {                                   \
            const type a = ((const type *)(const void *)to)[i];                \
            const type b = ((const type *)(const void *)from)[i];              \
                                                                               \
            ((type *)(void *)to)[i] = op == 0   ? (type)(a + b)                \
                                      : op == 1 ? (type)(a * b)                \
                                      : op == 2 ? (a > b ? a : b)              \
                                                : (a < b ? a : b);             \
        }                                                                      \
        break;
        TYPES(X)
#undef X
    default:
        break; /* halves: not here */
    }
}

/* ---- Launches --------------------------------------------------------- */

/* What this rank puts into its share: `count` elements from `at` on. */
static const char *give(const struct comm *comm, const struct call *call,
                        size_t at)
{
    const size_t bytes = bytes_of(call->dtype);

    if (call->what == BROADCAST && call->root != comm->rank)
        return NULL;
    return (const char *)cuda_at(call->send) + at * bytes;
}

static void take(struct comm *comm, const struct call *call, size_t at,
                 size_t count, size_t from)
{
    const size_t bytes = bytes_of(call->dtype);
    char *recv = cuda_at(call->recv);

    if (call->what == BROADCAST) {
        memmove(recv + at * bytes, comm->meeting->shares[call->root],
                count * bytes);
        return;
    }
    if (call->what == ALLGATHER) {
        for (int i = 0; i < comm->size; i++)
            memmove(recv + ((size_t)i * call->count + at) * bytes,
                    comm->meeting->shares[i], count * bytes);
        return;
    }
    if (call->what == REDUCE && call->root != comm->rank)
        return;
    recv += (at - from) * bytes;
    memcpy(recv, comm->meeting->shares[0], count * bytes);
    for (int i = 1; i < comm->size; i++)
        add(recv, comm->meeting->shares[i], count, call->dtype, call->op);
}

/* Elements from `at` on, of which this rank keeps those from `from` to `to`. */
static bool move(struct comm *comm, const struct call *call, size_t at,
                 size_t count, bool is_kept, size_t from)
{
    const char *mine = give(comm, call, at);

    if (mine != NULL)
        memcpy(comm->meeting->shares[comm->rank], mine,
               count * bytes_of(call->dtype));
    if (!barrier(comm))
        return false;
    if (is_kept)
        take(comm, call, at, count, from);
    return barrier(comm);
}

static bool collect(struct comm *comm, const struct call *call)
{
    const size_t most = SHARE_BYTES / bytes_of(call->dtype);
    const int blocks = call->what == REDUCE_SCATTER ? comm->size : 1;

    for (int block = 0; block < blocks; block++) {
        const size_t from = (size_t)block * call->count;
        const bool is_kept = blocks == 1 || block == comm->rank;

        for (size_t at = 0; at < call->count; at += most)
            if (!move(comm, call, from + at,
                      call->count - at < most ? call->count - at : most,
                      is_kept, from))
                return false;
    }
    return true;
}

/* Both ends of messages, as far as they go now; true: it is over. */
static bool pass(struct comm *comm, struct call *call)
{
    const int from = call->what == SEND ? comm->rank : call->root;
    const int to = call->what == SEND ? call->root : comm->rank;
    const size_t left = call->count - call->done;
    const size_t bytes = left < BOX ? left : BOX;
    char *box = comm->meeting->boxes[from][to].bytes;
    atomic_int *is_full = &comm->meeting->boxes[from][to].is_full;

    if (left > 0 && atomic_load(is_full) == (call->what == RECV)) {
        if (call->what == SEND)
            memcpy(box, (const char *)cuda_at(call->send) + call->done, bytes);
        else
            memcpy((char *)cuda_at(call->recv) + call->done, box, bytes);
        call->done += bytes;
        atomic_store(is_full, call->what == SEND);
    }
    return call->done == call->count;
}

static void exchange(struct launch *launch)
{
    bool is_over = false;

    while (!is_over) {
        is_over = true;
        for (int i = 0; i < launch->count; i++)
            if (launch->calls[i].what >= SEND)
                is_over = pass(launch->comm, &launch->calls[i]) && is_over;
        if (!is_over && !goes_on(launch->comm))
            return;
    }
}

static void run(void *arg)
{
    struct launch *launch = arg;
    struct comm *comm = launch->comm;
    const int code = fails("async");
    bool is_stuck = code != OK || hangs("run");

    if (code != OK)
        atomic_store(&comm->state, code);
    while (is_stuck && goes_on(comm))
        ;
    for (int i = 0; i < launch->count && !is_stuck; i++)
        if (launch->calls[i].what < SEND)
            is_stuck = !collect(comm, &launch->calls[i]);
    if (!is_stuck)
        exchange(launch);
    atomic_fetch_sub(&comm->running, 1);
    atomic_fetch_sub(&busy, 1);
    free(launch);
}

static void *launch_late(void *arg)
{
    struct launch *launch = arg;
    struct comm *comm = launch->comm;
    const long late = lateness();
    int expected = IN_PROGRESS;

    if (!comm->is_connected)
        atomic_fetch_add(&comm->meeting->connected, 1);
    comm->is_connected = true;
    while (atomic_load(&comm->meeting->connected) < comm->size)
        if (!goes_on(comm))
            break;
    if (late > 0)
        usleep((useconds_t)(random() % late));
    cuda_call(launch->stream, run, launch);
    atomic_compare_exchange_strong(&comm->state, &expected, OK);
    return NULL;
}

/* Blocks in the old one. */
static int begin_launch(struct launch *launch)
{
    pthread_t id;

#ifdef FAKE_NCCL_OLD
    launch_late(launch);
    (void)id;
    return OK;
#else
    atomic_store(&launch->comm->state, IN_PROGRESS);
    if (pthread_create(&id, NULL, launch_late, launch) != 0)
        return INTERNAL;
    pthread_detach(id);
    return IN_PROGRESS;
#endif
}

static int launch_group(void)
{
    struct launch *launch;

    if (group.count == 0)
        return OK;
    launch = malloc(sizeof(*launch));
    if (launch == NULL)
        return INTERNAL;
    *launch = group;
    group.count = 0;
    atomic_fetch_add(&launch->comm->running, 1);
    atomic_fetch_add(&busy, 1);
    atomic_fetch_add(&launches, 1);
    launch->stream = group_stream;
    if (!launch->comm->is_connected || lateness() > 0)
        return begin_launch(launch);
    return cuda_call(group_stream, run, launch) == 0 ? OK : 1;
}

static int push(struct comm *comm, void *stream, struct call call)
{
    if (group.count == GROUP || cuda_current() != comm->gpu ||
        (group.count > 0 && group.comm != comm))
        return ARGUMENT;
    if (atomic_load(&comm->state) != OK)
        return atomic_load(&comm->state);
    group.comm = comm;
    group_stream = stream;
    group.calls[group.count++] = call;
    return group_depth == 0 ? launch_group() : OK;
}

/* ---- NCCL's functions ------------------------------------------------- */

#define FAIL_IF_TOLD                                                           \
    do {                                                                       \
        const int code_ = fails(__func__);                                     \
                                                                               \
        if (code_ != OK)                                                       \
            return code_;                                                      \
    } while (0)

EXPORT int fake_nccl_launches(void)
{
    return atomic_load(&launches);
}

EXPORT int fake_nccl_comms(void)
{
    return atomic_load(&comms);
}

EXPORT int ncclGetVersion(int *out)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

#ifdef FAKE_NCCL_OLD
    *out = 21003;
#else
    *out = 22803;
#endif
    if (text != NULL)
        *out = atoi(text);
    return OK;
}

EXPORT const char *ncclGetErrorString(int code)
{
    return code == USAGE      ? "invalid usage"
           : code == REMOTE   ? "remote process exited or there was a network "
                                "error"
           : code == INTERNAL ? "internal error"
                              : "an error of the stand-in";
}

EXPORT int ncclGetUniqueId(struct id *out)
{
    int file;

    FAIL_IF_TOLD;
    memset(out, 0, sizeof(*out));
    snprintf(out->path, sizeof(out->path), "/tmp/fake_nccl.XXXXXX");
    file = mkstemp(out->path);
    if (file < 0 || ftruncate(file, (off_t)sizeof(struct meeting)) != 0)
        return INTERNAL;
    close(file);
    return OK;
}

static struct meeting *meet(const struct id *id)
{
    const int file = open(id->path, O_RDWR | O_CLOEXEC);
    void *at;

    if (file < 0)
        return NULL;
    at = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED,
              file, 0);
    close(file);
    return at != MAP_FAILED ? at : NULL;
}

/* Two ranks on one GPU of one host. */
static bool is_shared(const struct comm *comm)
{
    const struct meeting *meeting = comm->meeting;

    for (int i = 0; i < comm->size; i++)
        if (i != comm->rank && meeting->gpus[i] == meeting->gpus[comm->rank] &&
            strcmp(meeting->hosts[i], meeting->hosts[comm->rank]) == 0)
            return true;
    return false;
}

/* What it allocates waits for the GPU. */
static void *join(void *arg)
{
    struct comm *comm = arg;
    struct meeting *meeting = comm->meeting;
    const char *host = getenv("NCCL_HOSTID");

    snprintf(meeting->hosts[comm->rank], sizeof(meeting->hosts[0]), "%s",
             host != NULL ? host : "here");
    meeting->gpus[comm->rank] = comm->gpu;
    if (atomic_fetch_add(&meeting->joined, 1) == comm->size - 1)
        unlink(comm->path);
    while (hangs("join") || atomic_load(&meeting->joined) < comm->size ||
           atomic_load(&busy) > 0)
        if (!goes_on(comm))
            return NULL;
    atomic_store(&comm->state, is_shared(comm) ? USAGE : fails("join"));
    return NULL;
}

static struct comm *comm_new(int size, const struct id *id, int rank)
{
    struct comm *comm = calloc(1, sizeof(*comm));

    pthread_once(&has_driver, find_driver);
    if (comm == NULL || size > RANKS) {
        free(comm);
        return NULL;
    }
    comm->meeting = meet(id);
    comm->size = size;
    comm->rank = rank;
    snprintf(comm->path, sizeof(comm->path), "%s", id->path);
    comm->gpu = cuda_current();
    atomic_init(&comm->state, IN_PROGRESS);
    atomic_fetch_add(&comms, 1);
    return comm;
}

static void comm_free(struct comm *comm)
{
    while (atomic_load(&comm->running) > 0)
        usleep(NAP);
    if (comm->has_thread)
        pthread_join(comm->joiner, NULL);
    munmap(comm->meeting, sizeof(struct meeting));
    atomic_fetch_sub(&comms, 1);
    free(comm);
}

EXPORT int ncclCommInitRank(struct comm **out, int size, struct id id, int rank)
{
    FAIL_IF_TOLD;
    *out = comm_new(size, &id, rank);
    if (*out == NULL || (*out)->meeting == NULL || (*out)->gpu < 0)
        return INTERNAL;
    join(*out);
    return atomic_load(&(*out)->state);
}

EXPORT int ncclCommDestroy(struct comm *comm)
{
#ifndef FAKE_NCCL_OLD
    if (!comm->is_finalized)
        return USAGE;
#endif
    comm_free(comm);
    return OK;
}

EXPORT int ncclCommAbort(struct comm *comm)
{
    atomic_store(&comm->is_aborted, 1);
    atomic_store(&comm->meeting->is_broken, 1);
    comm_free(comm);
    return OK;
}

EXPORT int ncclCommGetAsyncError(struct comm *comm, int *out)
{
    *out = atomic_load(&comm->state);
    return OK;
}

#ifndef FAKE_NCCL_OLD
EXPORT int ncclCommInitRankConfig(struct comm **out, int size, struct id id,
                                  int rank, const struct config *config)
{
    FAIL_IF_TOLD;
    if (config->magic != 0xcafebeef || config->version < 21400 ||
        config->size < sizeof(*config) || config->blocking != 0)
        return ARGUMENT;
    *out = comm_new(size, &id, rank);
    if (*out == NULL || (*out)->meeting == NULL || (*out)->gpu < 0)
        return INTERNAL;
    (*out)->has_thread = pthread_create(&(*out)->joiner, NULL, join, *out) == 0;
    return IN_PROGRESS;
}

EXPORT int ncclCommFinalize(struct comm *comm)
{
    comm->is_finalized = true;
    return atomic_load(&comm->state);
}

EXPORT const char *ncclGetLastError(struct comm *comm)
{
    (void)comm;
    return "the stand-in's last error";
}
#endif

EXPORT int ncclGroupStart(void)
{
    FAIL_IF_TOLD;
    group_depth++;
    return OK;
}

#ifndef FAKE_NCCL_BARE
EXPORT int ncclGroupEnd(void)
{
    if (--group_depth > 0)
        return OK;
    return launch_group();
}
#endif

EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int dtype,
                         int op, struct comm *comm, void *stream)
{
    FAIL_IF_TOLD;
    return push(comm, stream,
                (struct call){ALLREDUCE, send, recv, count, dtype, op, 0, 0});
}

EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count,
                             int dtype, int op, struct comm *comm, void *stream)
{
    return push(
        comm, stream,
        (struct call){REDUCE_SCATTER, send, recv, count, dtype, op, 0, 0});
}

/* NOLINTNEXTLINE(readability-function-size): NCCL has it so */
EXPORT int ncclReduce(const void *send, void *recv, size_t count, int dtype,
                      int op, int root, struct comm *comm, void *stream)
{
    return push(comm, stream,
                (struct call){REDUCE, send, recv, count, dtype, op, root, 0});
}

EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int dtype,
                         int root, struct comm *comm, void *stream)
{
    return push(comm, stream,
                (struct call){BROADCAST, send, recv, count, dtype, 0, root, 0});
}

EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int dtype,
                         struct comm *comm, void *stream)
{
    return push(comm, stream,
                (struct call){ALLGATHER, send, recv, count, dtype, 0, 0, 0});
}

EXPORT int ncclSend(const void *send, size_t count, int dtype, int peer,
                    struct comm *comm, void *stream)
{
    return push(comm, stream,
                (struct call){SEND, send, NULL, count * bytes_of(dtype), dtype,
                              0, peer, 0});
}

EXPORT int ncclRecv(void *recv, size_t count, int dtype, int peer,
                    struct comm *comm, void *stream)
{
    return push(comm, stream,
                (struct call){RECV, NULL, recv, count * bytes_of(dtype), dtype,
                              0, peer, 0});
}
