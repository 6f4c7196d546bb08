/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rueda: collectives between the ranks of a job.
 *
 * Everything hangs from a context, rueda_ctx, which is one rank of one job. A
 * process may hold several. Unless a function says otherwise it may be called
 * from any thread, it returns a rueda_status, and it writes its outputs only on
 * success.
 *
 * Structs of arguments begin with their own size, so that they can grow
 * without a new function: initialise them with their _INIT macro, then set the
 * fields you need.
 */
#ifndef RUEDA_RUEDA_H
#define RUEDA_RUEDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RUEDA_API __attribute__((visibility("default")))

#define RUEDA_VERSION_MAJOR 0
#define RUEDA_VERSION_MINOR 1
#define RUEDA_VERSION_PATCH 0

/* The number of the binary interface: a program compiled against this header
 * works with every library whose rueda_abi() is equal to it. */
#define RUEDA_ABI 1

/* "0.1.0"; static text. */
RUEDA_API const char *rueda_version(void);
RUEDA_API int rueda_abi(void);

/* ---- Status ---------------------------------------------------------- */

/* Zero is success, positive means "not yet", negative is an error. The one
 * list feeds the enum, rueda_status_str() and the exceptions of bindings. */
#define RUEDA_STATUS_MAP(X)                                                    \
    X(OK, 0, "success")                                                        \
    X(IN_PROGRESS, 1, "operation is still running")                            \
    X(ERR_INVALID, -1, "invalid argument")                                     \
    X(ERR_NOMEM, -2, "out of memory")                                          \
    X(ERR_TIMEOUT, -3, "the deadline passed")                                  \
    X(ERR_MISMATCH, -4, "ranks do not agree")                                  \
    X(ERR_PEER_LOST, -5, "a peer left the job")                                \
    X(ERR_CLOSED, -6, "the context is closed")                                 \
    X(ERR_FORKED, -7, "the context belongs to the parent process")             \
    X(ERR_AUTH, -8, "the peer did not prove that it knows the job's key")      \
    X(ERR_VERSION, -9, "the peer speaks another version of the protocol")      \
    X(ERR_IO, -10, "a system call failed")                                     \
    X(ERR_UNSUPPORTED, -11, "not supported")                                   \
    X(ERR_LIMIT, -12, "a limit of the machine or of the job is too low")       \
    X(ERR_CANCELLED, -13, "the operation was cancelled")                       \
    X(ERR_STALLED, -14, "ranks did not bring a tensor, and the job was ended")

typedef enum rueda_status {
#define X(name, value, text) RUEDA_##name = (value),
    RUEDA_STATUS_MAP(X)
#undef X
} rueda_status;

/* What a status means, in words; static text, never NULL. */
RUEDA_API const char *rueda_status_str(rueda_status status);

/* ---- Numbers --------------------------------------------------------- */

#define RUEDA_DTYPE_MAP(X)                                                     \
    X(UINT8, 0, 1, "uint8")                                                    \
    X(INT8, 1, 1, "int8")                                                      \
    X(UINT16, 2, 2, "uint16")                                                  \
    X(INT16, 3, 2, "int16")                                                    \
    X(INT32, 4, 4, "int32")                                                    \
    X(INT64, 5, 8, "int64")                                                    \
    X(FLOAT16, 6, 2, "float16")                                                \
    X(FLOAT32, 7, 4, "float32")                                                \
    X(FLOAT64, 8, 8, "float64")                                                \
    X(BOOL, 9, 1, "bool")                                                      \
    X(BFLOAT16, 10, 2, "bfloat16")

typedef enum rueda_dtype {
#define X(name, value, bytes, text) RUEDA_##name = (value),
    RUEDA_DTYPE_MAP(X)
#undef X
} rueda_dtype;
#define RUEDA_DTYPE_COUNT 11

/* Bytes of one number, 0 for a value that is not a dtype. */
RUEDA_API size_t rueda_dtype_size(rueda_dtype dtype);
RUEDA_API const char *rueda_dtype_str(rueda_dtype dtype);

/* One of the four floating types? */
RUEDA_API bool rueda_dtype_is_float(rueda_dtype dtype);

/*
 * How numbers of several ranks become one. Halves are added in float32. On
 * booleans sum and max mean "or", product and min mean "and". Average is a sum
 * divided by the number of ranks, for integers cut towards zero. Adasum (Maleki
 * et al., 2020) takes floating types only.
 */
#define RUEDA_REDUCTION_MAP(X)                                                 \
    X(SUM, 0, "sum")                                                           \
    X(AVERAGE, 1, "average")                                                   \
    X(MIN, 2, "min")                                                           \
    X(MAX, 3, "max")                                                           \
    X(PRODUCT, 4, "product")                                                   \
    X(ADASUM, 5, "adasum")

typedef enum rueda_reduction {
#define X(name, value, text) RUEDA_##name = (value),
    RUEDA_REDUCTION_MAP(X)
#undef X
} rueda_reduction;
#define RUEDA_REDUCTION_COUNT 6

RUEDA_API const char *rueda_reduction_str(rueda_reduction reduction);

/* ---- Contexts -------------------------------------------------------- */

typedef struct rueda_ctx rueda_ctx;

/*
 * A program's place in the job. All of it can be left out: rank, size and the
 * way to the other ranks then come from the variables of the launcher: RUEDA_*,
 * HOROVOD_*, torchrun, Open MPI, MPICH, Slurm, the first of these that is set;
 * without any it is a job of one rank. docs/launchers.md has the details,
 * `rueda info --job` says what is found.
 */
struct rueda_init_args {
    size_t struct_size;

    /* My place among the ranks; -1: as the launcher says. */
    int rank;
    int size;

    /* Ranks of one host and one user that say the same name meet, where no
     * launcher introduces them. NULL: RUEDA_JOB. */
    const char *job;

    /* A file with the job's key. NULL: RUEDA_KEY_FILE; without one the same
     * user is proof enough in a host. */
    const char *key_file;

    /* How long to wait for the other ranks. 0: RUEDA_START_TIMEOUT. */
    int timeout_ms;

    /* Where to put the words of a failure; may be NULL. */
    char *error;
    size_t error_bytes;

    /* My place among the ranks of my host, and among those of all hosts that
     * have the same place there; -1: as the launcher says, or as found. */
    int local_rank;
    int local_size;
    int cross_rank;
    int cross_size;

    /* "host:port": ranks of several hosts meet here, where rank 0 runs; takes a
     * key. NULL: RUEDA_STORE. */
    const char *store;

    /*
     * Passes rank 0's bytes to all ranks: in rank 0 it is to hand them out, in
     * the others to fill them in, and may block for that. Returns 0 if it
     * could. For launchers with an exchange that only the caller can speak.
     * What it carries is secret. NULL: there is none.
     */
    int (*exchange)(void *arg, void *bytes, size_t len);
    void *exchange_arg;

    /* Process sets that are there from the start, such as "0,2;4-7", the same
     * on all ranks; their ids are 1, 2, ... Or "dynamic": none, and the program
     * may make some while it runs, as with RUEDA_DYNAMIC_SETS. NULL:
     * RUEDA_PROCESS_SETS. Lists are not for rueda_init_threads(). */
    const char *process_sets;

    /* How many of the last ranks are servers, the same on all ranks; -1:
     * RUEDA_SERVERS. */
    int servers;
};
#define RUEDA_INIT_ARGS_INIT                                                   \
    {                                                                          \
        .struct_size = sizeof(struct rueda_init_args), .rank = -1, .size = -1, \
        .local_rank = -1, .local_size = -1, .cross_rank = -1,                  \
        .cross_size = -1, .servers = -1,                                       \
    }

/*
 * Join the job and wait for every other rank of it, at most until the
 * deadline. args may be NULL and is not kept. On failure nothing is left
 * behind, and args->error says who is missing or what to do.
 */
RUEDA_API rueda_status rueda_init(const struct rueda_init_args *args,
                                  rueda_ctx **out_ctx);

/*
 * Make all `size` ranks of a job inside this process, each to be driven by a
 * thread of the caller's: for tests and for programs whose ranks are threads.
 * args gives the settings; its rank, size and job are not looked at. Each of
 * out_ctx[0 .. size-1] is shut down like any other context. All are made or
 * none.
 */
RUEDA_API rueda_status rueda_init_threads(int size,
                                          const struct rueda_init_args *args,
                                          rueda_ctx **out_ctx);

/*
 * Leave the job and free the context. Does not wait for other ranks; those
 * that still need this one get RUEDA_ERR_PEER_LOST. Operations of this rank
 * that still run end with RUEDA_ERR_CLOSED; handles and memory from
 * rueda_alloc() are gone. No other thread may be inside a call on ctx; in a
 * callback nothing is done, and the log says so. NULL is allowed, and a context
 * that was shut down before is left alone, until a new one may have its
 * address.
 */
RUEDA_API void rueda_shutdown(rueda_ctx *ctx);

/*
 * My number in the job, and how many workers there are: ranks 0 to size - 1,
 * which run collectives. Servers have the numbers behind them. A server is in
 * the job, and in no process set but RUEDA_WHOLE_JOB: it starts and ends like a
 * worker, sends and receives messages, and takes part in no collective. Local
 * and cross ranks count both. Most jobs have no servers.
 */
RUEDA_API int rueda_rank(const rueda_ctx *ctx);
RUEDA_API int rueda_size(const rueda_ctx *ctx);
RUEDA_API int rueda_server_count(const rueda_ctx *ctx);
RUEDA_API bool rueda_is_server(const rueda_ctx *ctx);

/*
 * Has this rank lost its connection with another one, worker or server, because
 * that died, left or cannot be reached? Of ranks to which it has sent nothing,
 * and from which it waits for nothing, it may not know. Any thread.
 */
RUEDA_API bool rueda_is_lost(const rueda_ctx *ctx, int rank);

/* Is this rank 0, which writes files and messages for all? */
RUEDA_API bool rueda_is_master(const rueda_ctx *ctx);

/* My place among the ranks of this host, and how many these are: the launcher's
 * word where it has one. */
RUEDA_API int rueda_local_rank(const rueda_ctx *ctx);
RUEDA_API int rueda_local_size(const rueda_ctx *ctx);

/* My host's place among the hosts that have a rank of my local rank, and how
 * many these are. */
RUEDA_API int rueda_cross_rank(const rueda_ctx *ctx);
RUEDA_API int rueda_cross_size(const rueda_ctx *ctx);

/* Has every host as many ranks? */
RUEDA_API bool rueda_is_homogeneous(const rueda_ctx *ctx);

/*
 * With RUEDA_REPAIR=1: the program has come to a boundary, such as the end of a
 * training step, where it can take another rank and size. All ranks call it
 * equally often, the first time before their first step, and not while another
 * thread is inside a call on ctx. If ranks have died since, then the numbers
 * change here, at the same call on all that are left: ranks below the new size
 * keep theirs, and the highest move into the gaps. Without that setting nothing
 * happens. docs/failure.md has what is run again, and what is not.
 */
RUEDA_API rueda_status rueda_step(rueda_ctx *ctx);

/*
 * Say that this rank cannot go on, and why, such as the text of an exception.
 * Its operations end with RUEDA_ERR_CANCELLED; those of ranks that need it end
 * with RUEDA_ERR_PEER_LOST, and `why` is part of their words. Only the first
 * failure of a context counts. Returns at once.
 */
RUEDA_API void rueda_fail(rueda_ctx *ctx, const char *why);

/*
 * The words of the first failure of this context: who, where, why. Empty
 * while all is well. Valid until rueda_shutdown().
 */
RUEDA_API const char *rueda_error(const rueda_ctx *ctx);

/* ---- Memory ---------------------------------------------------------- */

/*
 * Memory that every rank of this host can reach; zeroed, aligned to a page. It
 * is the context's: gone by rueda_free() or rueda_shutdown(). Every rank may
 * allocate as it likes. An operation of more than 32 KiB skips
 * copies where all that others need is such memory: send and recv of all ranks
 * in an allreduce, the root's send in a broadcast, send of all ranks in the
 * other kinds. docs/memory.md has the exceptions.
 *
 * Fails with RUEDA_ERR_LIMIT, touching nothing, where the machine or the
 * cgroup has not that much memory left.
 */
RUEDA_API rueda_status rueda_alloc(rueda_ctx *ctx, size_t bytes, void **out);

/* Give it back. ptr comes from rueda_alloc() on the same context, or is NULL.
 * No operation may be using it. */
RUEDA_API void rueda_free(rueda_ctx *ctx, void *ptr);

/* ---- Ordered collectives --------------------------------------------- */

/*
 * Every rank starts the same operations in the same order with arguments that
 * fit; nothing is negotiated. (Named tensors in any order are another
 * interface.) Operations run one after another in the order in which they were
 * started.
 *
 * Counts are numbers of elements. send and recv do not overlap, except in
 * place: they are then the same pointer for an allreduce or a broadcast, and
 * for an allgather send is this rank's own piece of recv. Both are borrowed
 * until the operation ends. A broadcast looks at send in its root only.
 *
 * After a failure recv is undefined, and so is send in place: give the result
 * memory of its own where the input is needed then.
 */
typedef enum rueda_kind {
    RUEDA_ALLREDUCE, /* recv[count] = reduction over ranks of send[count] */
    RUEDA_ALLGATHER, /* recv = send[count] of rank 0, then of rank 1, ... */
    RUEDA_BROADCAST, /* recv[count] = send[count] of root */
    RUEDA_ALLTOALL,  /* piece i of send goes to rank i */
    RUEDA_REDUCE_SCATTER, /* recv = my piece of the reduction of send */
    RUEDA_BARRIER,        /* ends when every rank has started it */

    /* For rueda_submit() only: */
    RUEDA_JOIN, /* no more data here; ends when every rank has joined */
    RUEDA_SEND,
    RUEDA_RECV,
} rueda_kind;
#define RUEDA_KIND_COUNT 6 /* of ordered collectives */

RUEDA_API const char *rueda_kind_str(rueda_kind kind);

/*
 * How the numbers of an allreduce travel between hosts: as they are, or rounded
 * to 16 bits, for float32 and float64 and the reductions sum and average. Sums
 * inside a host are made in full precision before, and those between hosts in
 * 16 bits. All ranks ask for the same and get the same result. Where all ranks
 * are on one host nothing travels, and nothing is rounded.
 */
#define RUEDA_COMPRESSION_MAP(X)                                               \
    X(COMPRESS_NONE, 0, "none")                                                \
    X(COMPRESS_FP16, 1, "fp16")                                                \
    X(COMPRESS_BF16, 2, "bf16")

typedef enum rueda_compression {
#define X(name, value, text) RUEDA_##name = (value),
    RUEDA_COMPRESSION_MAP(X)
#undef X
} rueda_compression;
#define RUEDA_COMPRESSION_COUNT 3

RUEDA_API const char *rueda_compression_str(rueda_compression compression);

struct rueda_coll_args {
    size_t struct_size;
    rueda_kind kind;
    rueda_dtype dtype;
    rueda_reduction reduction;
    int root;
    unsigned flags; /* 0 */
    const void *send;
    void *recv;

    /*
     * allreduce, broadcast: elements of the buffer. allgather: elements this
     * rank sends. alltoall, reduce-scatter with equal pieces: elements of one
     * piece (send holds size times as many).
     */
    size_t count;

    /*
     * Pieces of different sizes; size entries each, borrowed until the
     * operation ends; NULL means equal pieces of `count`.
     *   allgather:      recv_counts[i] is what rank i sends; the same list on
     *                   all ranks
     *   reduce-scatter: recv_counts[i] is what rank i gets; the same list on
     *                   all ranks
     *   alltoall:       send_counts[i] goes to rank i, recv_counts[i] comes
     *                   from rank i; both or neither
     */
    const size_t *send_counts;
    const size_t *recv_counts;

    /* Every input is multiplied by prescale, the result by postscale. */
    double prescale;
    double postscale;

    rueda_compression compression; /* allreduce only */
};
#define RUEDA_COLL_ARGS_INIT                                                   \
    {                                                                          \
        .struct_size = sizeof(struct rueda_coll_args), .dtype = RUEDA_FLOAT32, \
        .prescale = 1.0, .postscale = 1.0,                                     \
    }

/* Names an operation that was started; never reused within a context. */
typedef uint64_t rueda_handle;

/*
 * Start an operation. Returns at once; it makes progress while some thread
 * waits, and otherwise on the context's own thread. Fails without starting
 * anything if the arguments are wrong or the context has failed.
 */
RUEDA_API rueda_status rueda_start(rueda_ctx *ctx,
                                   const struct rueda_coll_args *args,
                                   rueda_handle *out_handle);

/* RUEDA_IN_PROGRESS, or how the operation ended. Never blocks, though it may do
 * some of the work, and does not end the handle. RUEDA_ERR_INVALID for a handle
 * that is gone, here as below. */
RUEDA_API rueda_status rueda_poll(rueda_ctx *ctx, rueda_handle handle);

/*
 * Wait until the operation ends and return how; the handle is then gone. After
 * timeout_ms (negative: no limit but the death of a peer) returns
 * RUEDA_ERR_TIMEOUT, the operation runs on and the handle stays. Only one
 * thread at a time waits for a handle. Inside a callback (rueda_handle_then())
 * one that still runs gives RUEDA_ERR_INVALID, also with a timeout_ms of 0.
 */
RUEDA_API rueda_status rueda_wait(rueda_ctx *ctx, rueda_handle handle,
                                  int timeout_ms);

/* Start and wait in one call, which is faster than the two. */
RUEDA_API rueda_status rueda_run(rueda_ctx *ctx,
                                 const struct rueda_coll_args *args);

/* rueda_run() for the usual cases, with equal pieces. */
RUEDA_API rueda_status rueda_allreduce(rueda_ctx *ctx, const void *send,
                                       void *recv, size_t count,
                                       rueda_dtype dtype,
                                       rueda_reduction reduction);
RUEDA_API rueda_status rueda_allgather(rueda_ctx *ctx, const void *send,
                                       void *recv, size_t count,
                                       rueda_dtype dtype);
RUEDA_API rueda_status rueda_broadcast(rueda_ctx *ctx, void *buf, size_t count,
                                       rueda_dtype dtype, int root);
RUEDA_API rueda_status rueda_alltoall(rueda_ctx *ctx, const void *send,
                                      void *recv, size_t count,
                                      rueda_dtype dtype);
RUEDA_API rueda_status rueda_reduce_scatter(rueda_ctx *ctx, const void *send,
                                            void *recv, size_t count,
                                            rueda_dtype dtype,
                                            rueda_reduction reduction);
RUEDA_API rueda_status rueda_barrier(rueda_ctx *ctx);

/* ---- Named tensors ---------------------------------------------------- */

/*
 * Every rank hands over operations in any order, from any thread, and the
 * engine finds out what is ready everywhere, agrees on an order, joins small
 * tensors and runs them. Operations match by name within their process set;
 * those without a name match by their order among the unnamed ones of the set.
 *
 * Ranks that disagree about an operation all get RUEDA_ERR_MISMATCH for it,
 * with words that name two ranks and what each of them said; the context works
 * on, and the name is free again.
 */

/* The process set of all workers: of all ranks, unless there are servers. */
#define RUEDA_ALL_RANKS 0

/*
 * All workers and servers, for RUEDA_SEND and RUEDA_RECV alone. A message here
 * that needs a lost rank ends with RUEDA_ERR_PEER_LOST by itself: the context
 * and all other operations go on. (In other sets the context fails with it.)
 */
#define RUEDA_WHOLE_JOB (1 << 20)

/* As the peer of a RUEDA_RECV: whichever member sends first. */
#define RUEDA_ANY_PEER (-1)

#define RUEDA_MAX_DIMS 32

/* Where a tensor is. */
#define RUEDA_DEVICE_HOST (-1)

/*
 * Memory for a result of `rows` rows (the first dimension; the others are those
 * of the input), or NULL if there is none. Called on the thread that makes
 * progress: must not wait for anything, nor call into the context.
 */
typedef void *(*rueda_alloc_fn)(void *arg, size_t rows, size_t bytes);

struct rueda_submit_args {
    size_t struct_size;
    rueda_kind kind;
    const char *name; /* copied; NULL: none */
    int set;          /* process set */
    rueda_dtype dtype;
    rueda_reduction reduction;
    int root; /* broadcast: a rank of the job, not of the set */

    /*
     * Memory, borrowed until the operation ends. Its size comes from the shape,
     * whose first dimension counts the rows. Where recv is NULL, alloc provides
     * it.
     *
     *   allreduce       send and recv have this shape, and may be the same
     *   broadcast       the same; send is read in the root only
     *   allgather       send has this shape, and ranks may have different
     *                   rows; recv gets the rows of all, in the order of ranks
     *   alltoall        splits[i] rows of send go to member i; recv gets what
     *                   comes, in the order of ranks
     *   reduce-scatter  send has this shape; recv gets my share of its rows:
     *                   equal shares, one more for the lowest members
     *   send            send goes to `peer`, with `tag`
     *   recv            recv comes from `peer`, with `tag`; from
     *                   RUEDA_ANY_PEER it may have fewer rows than the shape,
     *                   and members are served in turns, those that are lost
     *                   passed over: RUEDA_ERR_PEER_LOST when all are
     *   barrier, join   none
     */
    const void *send;
    void *recv;
    int dims;
    const size_t *shape;  /* [dims], copied */
    const size_t *splits; /* alltoall, [members], copied; NULL: equal parts */

    int peer; /* send, recv: a rank of the job, or RUEDA_ANY_PEER */
    int tag;  /* send, recv: 0 or more */

    double prescale;
    double postscale;
    rueda_compression compression;
    int device;   /* RUEDA_DEVICE_HOST, or the number of an accelerator */
    void *stream; /* of that accelerator */
    int priority; /* of several that are ready, the highest comes first */
    unsigned flags;

    rueda_alloc_fn alloc;
    void *alloc_arg;
};
#define RUEDA_SUBMIT_ARGS_INIT                                                 \
    {                                                                          \
        .struct_size = sizeof(struct rueda_submit_args),                       \
        .dtype = RUEDA_FLOAT32, .prescale = 1.0, .postscale = 1.0,             \
        .device = RUEDA_DEVICE_HOST,                                           \
    }

/* An average divides by the ranks that take part, not counting those that have
 * joined. All ranks ask for the same. */
#define RUEDA_LIVE_AVERAGE 2u

/* Another operation follows at once, and no thread is woken for this one before
 * that. Leave it out for the last of several; waiting for one has the same
 * effect. */
#define RUEDA_MORE 4u

/*
 * The program promises that all members of the set submit its operations with
 * this flag in the same order, with arguments that fit: nothing is negotiated
 * nor compared, they run one after another, and none is joined with others.
 * They have no name and are in no group. In the set of all ranks the operations
 * of rueda_start() and rueda_run() are in the same order as these. A send or
 * receive is still matched by peer and tag alone. A join cannot be ordered, and
 * tensors are in the memory of the host. rueda_set_destroy() comes after the
 * last of them in the order of the program.
 */
#define RUEDA_ORDERED 8u

/* An allreduce that is not packed together with others, but runs by itself
 * where its memory is: without a copy where that comes from rueda_alloc() on
 * all ranks. In place its input is undefined after a failure, whatever its
 * size. All ranks ask for the same. */
#define RUEDA_UNPACKED 16u

/*
 * Hand over an operation; returns at once. What only this rank has wrong fails
 * here, with nothing handed over and words from rueda_last_error():
 * RUEDA_ERR_INVALID, also if one of this name is not yet delivered;
 * RUEDA_ERR_UNSUPPORTED for a reduce-scatter by anything but sum and average,
 * adasum in a set of some ranks, messages on accelerators, and with
 * RUEDA_REPAIR=1 all tensors on them. Where only some ranks have theirs in the
 * memory of the host, it is a mismatch.
 */
RUEDA_API rueda_status rueda_submit(rueda_ctx *ctx,
                                    const struct rueda_submit_args *args,
                                    rueda_handle *out_handle);

/*
 * Hand over several that become ready together: none runs before all of them
 * are ready on every rank. All of one set and one kind, which has tensors:
 * barriers, joins, sends and receives are not grouped. All or none are handed
 * over.
 */
RUEDA_API rueda_status rueda_submit_group(rueda_ctx *ctx,
                                          const struct rueda_submit_args *args,
                                          int count, rueda_handle *out_handles);

/*
 * Hand over several at once that need not become ready together: as by
 * rueda_submit() one after another, but cheaper. What tensors on one stream of
 * an accelerator wait for is marked once. All of one set and one kind, as in a
 * group. All or none are handed over.
 */
RUEDA_API rueda_status rueda_submit_all(rueda_ctx *ctx,
                                        const struct rueda_submit_args *args,
                                        int count, rueda_handle *out_handles);

/* Why the last call of this thread that failed did so; never NULL, valid until
 * its next. */
RUEDA_API const char *rueda_last_error(void);

/* How an operation ended, for rueda_wait_for(). */
struct rueda_result {
    size_t struct_size;
    void *data;    /* where the result is: recv, or what alloc gave */
    size_t rows;   /* of the result, where the kind has rows */
    int last_rank; /* join: who joined last */
    int set;       /* rueda_set_create_async(): which it is */

    /* alltoall: the rows that came from each member, if there is room. */
    size_t *rows_from;
    int rows_from_count;

    /* The words of a failure; may be NULL. */
    char *error;
    size_t error_bytes;

    /* Given by the caller: the timeout ends a slice of a wait without end,
     * after which this thread waits again and does nothing else with the
     * context, or calls rueda_poll() first. Then ranks that wait for each other
     * are found as if there were no timeout (docs/stall.md). */
    bool is_slice;

    int peer; /* recv: the rank that sent it */
};
#define RUEDA_RESULT_INIT                                                      \
    {                                                                          \
        .struct_size = sizeof(struct rueda_result), .last_rank = -1,           \
        .set = -1, .peer = -1,                                                 \
    }

/* rueda_wait(), and what came out; result is filled in when it has ended. */
RUEDA_API rueda_status rueda_wait_for(rueda_ctx *ctx, rueda_handle handle,
                                      int timeout_ms,
                                      struct rueda_result *result);

/*
 * Call fn(arg, status) once, when the operation has ended, or now if it has. fn
 * runs on the thread that makes progress, after that has let go of the engine:
 * it may submit and end the handle, and must not wait: what would wait is
 * refused there with RUEDA_ERR_INVALID, and nothing is handed over. Once for a
 * handle; RUEDA_ERR_INVALID if there is one already.
 */
typedef void (*rueda_then_fn)(void *arg, rueda_status status);
RUEDA_API rueda_status rueda_handle_then(rueda_ctx *ctx, rueda_handle handle,
                                         rueda_then_fn fn, void *arg);

/* ---- Process sets ------------------------------------------------------ */

/*
 * Make a set of some ranks, or remove one. All ranks of the job call it,
 * members or not, in the same order; returns when all have. Operations of a set
 * that is removed end with RUEDA_ERR_CANCELLED. Words from rueda_last_error().
 * RUEDA_ERR_INVALID where sets are fixed: without RUEDA_DYNAMIC_SETS=1.
 */
RUEDA_API rueda_status rueda_set_create(rueda_ctx *ctx, const int *ranks,
                                        int count, int *out_set);
RUEDA_API rueda_status rueda_set_destroy(rueda_ctx *ctx, int set);

/* The same, without waiting for the others: the handle has ended when all have
 * called it. One change at a time, until it has been waited for. */
RUEDA_API rueda_status rueda_set_create_async(rueda_ctx *ctx, const int *ranks,
                                              int count,
                                              rueda_handle *out_handle);
RUEDA_API rueda_status rueda_set_destroy_async(rueda_ctx *ctx, int set,
                                               rueda_handle *out_handle);

/*
 * A private set is one that only its members know. They alone call these, with
 * the same ranks in any order and the same id: a number from RUEDA_PRIVATE_SETS
 * on and below RUEDA_PRIVATE_SETS_END that no other set of the job has or had,
 * such as one of a counter that all ranks share. Several may have the same
 * ranks, and no setting is needed. The handle has ended when all members have
 * called.
 *
 * close comes after the last operation that a member submits to the set; those
 * that are not delivered when all members have closed it end with
 * RUEDA_ERR_CANCELLED. It need not be waited for: rueda_wait() with a timeout
 * of 0, or rueda_handle_then(), ends the handle.
 */
#define RUEDA_PRIVATE_SETS     (1 << 19)
#define RUEDA_PRIVATE_SETS_END (1 << 20)
RUEDA_API rueda_status rueda_set_open_async(rueda_ctx *ctx, const int *ranks,
                                            int count, int set,
                                            rueda_handle *out_handle);
RUEDA_API rueda_status rueda_set_close_async(rueda_ctx *ctx, int set,
                                             rueda_handle *out_handle);

/* Members of a set, or -1 if there is none; my place in it, or -1 if I am no
 * member; and up to `room` of its ranks, ascending, the number of which is
 * returned, or -1 if there is no such set. */
RUEDA_API int rueda_set_size(const rueda_ctx *ctx, int set);
RUEDA_API int rueda_set_rank(const rueda_ctx *ctx, int set);
RUEDA_API int rueda_set_ranks(const rueda_ctx *ctx, int set, int *ranks,
                              int room);

/* ---- GPUs -------------------------------------------------------------- */

/* How one GPU of the host is doing, as its driver tells. What it does not tell
 * is -1. */
struct rueda_gpu_metrics {
    size_t struct_size;
    char name[96];
    char uuid[96];
    int busy_percent; /* of the time lately, that a kernel ran */
    int memory_busy_percent;
    int64_t memory_used_bytes;
    int64_t memory_total_bytes;
    double power_watts;
    double power_limit_watts;
    int celsius;
};
#define RUEDA_GPU_METRICS_INIT                                                 \
    {                                                                          \
        .struct_size = sizeof(struct rueda_gpu_metrics), .busy_percent = -1,   \
        .memory_busy_percent = -1, .memory_used_bytes = -1,                    \
        .memory_total_bytes = -1, .power_watts = -1, .power_limit_watts = -1,  \
        .celsius = -1,                                                         \
    }

/*
 * The GPUs of the host, counted as nvidia-smi counts them, whatever
 * CUDA_VISIBLE_DEVICES says; and the metrics of one. The first call loads
 * NVIDIA's NVML (RUEDA_NVML_LIB), which may take some milliseconds. Any thread.
 * RUEDA_ERR_UNSUPPORTED, with words from rueda_last_error(): it is not there,
 * or refuses; RUEDA_ERR_INVALID: there is no GPU of this number.
 */
RUEDA_API rueda_status rueda_gpu_count(rueda_ctx *ctx, int *out_count);
RUEDA_API rueda_status rueda_gpu_read(rueda_ctx *ctx, int index,
                                      struct rueda_gpu_metrics *out);

/* ---- Timeline ---------------------------------------------------------- */

/*
 * Write what happens to named tensors, on all ranks, as a Chrome trace. Rank 0
 * writes the file, and only its calls count; others may call as well, or not.
 *
 * start() on rank 0 takes over from a timeline that is there, unless it is of
 * this very path; RUEDA_ERR_IO if the file cannot be made, and then that one
 * goes on. stop() on rank 0 waits until the file has what all ranks have noted,
 * but not for long for those who do not answer (docs/timeline.md). On others
 * start() does nothing, and stop() sends what they have noted. A stop() without
 * a timeline is RUEDA_OK.
 */
#define RUEDA_MARK_CYCLES 1u
RUEDA_API rueda_status rueda_timeline_start(rueda_ctx *ctx, const char *path,
                                            unsigned flags);
RUEDA_API rueda_status rueda_timeline_stop(rueda_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif /* RUEDA_RUEDA_H */
