/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL: its functions that we use, found at run time in libnccl.so.2. No header
 * and no library of NCCL is needed to build; the types below are as wide as
 * NCCL's. Versions from 2.10 on will do. A function that came later may be
 * missing, and switches off what needs it; what that means is logged.
 *
 * Any thread.
 */
#ifndef RUEDA_DEVICE_CUDA_NCCL_LIB_H
#define RUEDA_DEVICE_CUDA_NCCL_LIB_H

#include <stdbool.h>
#include <stddef.h>

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/text.h"

typedef int rueda_nccl_result; /* ncclResult_t */

enum {
    RUEDA_NCCL_SUCCESS = 0,
    RUEDA_NCCL_CUDA_ERROR = 1,
    RUEDA_NCCL_SYSTEM_ERROR = 2,
    RUEDA_NCCL_INTERNAL_ERROR = 3,
    RUEDA_NCCL_INVALID_ARGUMENT = 4,
    RUEDA_NCCL_INVALID_USAGE = 5,
    RUEDA_NCCL_REMOTE_ERROR = 6,
    RUEDA_NCCL_IN_PROGRESS = 7,
};

enum {
    RUEDA_NCCL_BYTE = 0, /* ncclInt8 */
    RUEDA_NCCL_OLDEST = 21000,
};

/* ncclUniqueId */
struct rueda_nccl_id {
    char bytes[128];
};

/* ncclConfig_t as it was in 2.14, which calls itself so: later versions add
 * the defaults of what they added. */
struct rueda_nccl_config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};
#define RUEDA_NCCL_CONFIG_MAGIC   0xcafebeefu
#define RUEDA_NCCL_CONFIG_VERSION 21400u

/* The name that the library exports, the field, the parameters: those that all
 * versions have, and those that came later. */
#define RUEDA_NCCL_FUNCTIONS(X)                                                \
    X(ncclGetVersion, get_version, (int *out))                                 \
    X(ncclGetUniqueId, get_id, (struct rueda_nccl_id * out))                   \
    X(ncclCommInitRank, comm_init,                                             \
      (void **out, int ranks, struct rueda_nccl_id id, int rank))              \
    X(ncclCommDestroy, comm_destroy, (void *comm))                             \
    X(ncclCommAbort, comm_abort, (void *comm))                                 \
    X(ncclCommGetAsyncError, comm_error, (void *comm, rueda_nccl_result *out)) \
    X(ncclGroupStart, group_start, (void))                                     \
    X(ncclGroupEnd, group_end, (void))                                         \
    X(ncclAllReduce, allreduce,                                                \
      (const void *send, void *recv, size_t count, int dtype, int op,          \
       void *comm, void *stream))                                              \
    X(ncclReduceScatter, reduce_scatter,                                       \
      (const void *send, void *recv, size_t count, int dtype, int op,          \
       void *comm, void *stream))                                              \
    X(ncclReduce, reduce,                                                      \
      (const void *send, void *recv, size_t count, int dtype, int op,          \
       int root, void *comm, void *stream))                                    \
    X(ncclBroadcast, broadcast,                                                \
      (const void *send, void *recv, size_t count, int dtype, int root,        \
       void *comm, void *stream))                                              \
    X(ncclAllGather, allgather,                                                \
      (const void *send, void *recv, size_t count, int dtype, void *comm,      \
       void *stream))                                                          \
    X(ncclSend, send,                                                          \
      (const void *send, size_t count, int dtype, int peer, void *comm,        \
       void *stream))                                                          \
    X(ncclRecv, recv,                                                          \
      (void *recv, size_t count, int dtype, int peer, void *comm,              \
       void *stream))

#define RUEDA_NCCL_LATER_FUNCTIONS(X)                                          \
    X(ncclCommInitRankConfig, comm_init_config,                                \
      (void **out, int ranks, struct rueda_nccl_id id, int rank,               \
       struct rueda_nccl_config *config))                                      \
    X(ncclCommFinalize, comm_finalize, (void *comm))

/* NOLINTBEGIN(bugprone-macro-parentheses): they are parts of declarations */
struct rueda_nccl_lib {
    void *library;
    int version; /* 22803: 2.28.3 */
    const char *(*error_string)(rueda_nccl_result result);
    const char *(*last_error)(void *comm); /* NULL: before 2.13 */
#define X(symbol, field, parameters) rueda_nccl_result(*field) parameters;
    RUEDA_NCCL_FUNCTIONS(X)
    RUEDA_NCCL_LATER_FUNCTIONS(X)
#undef X
    char path[RUEDA_PATH_BYTES];
};
/* NOLINTEND(bugprone-macro-parentheses) */

/*
 * Load the library and find its functions; wanted is RUEDA_NCCL_LIB, or "" for
 * the one that is found. What is loaded stays so until the process ends,
 * because it has threads of its own. Blocks. On failure error says what is
 * missing and what helps.
 */
rueda_status rueda_nccl_lib_open(struct rueda_nccl_lib *lib, const char *wanted,
                                 struct rueda_text *error);

/* "NCCL 2.28.3". */
void rueda_nccl_name(const struct rueda_nccl_lib *lib, struct rueda_text *out);

/* A failure of `what` in words, with what helps; comm may be NULL. */
void rueda_nccl_explain(const struct rueda_nccl_lib *lib, void *comm,
                        rueda_nccl_result result, const char *what,
                        struct rueda_text *out);

/* NCCL's number for a type, or for a reduction; -1: it has none. */
int rueda_nccl_dtype(rueda_dtype dtype);
int rueda_nccl_op(rueda_reduction reduction);

#endif /* RUEDA_DEVICE_CUDA_NCCL_LIB_H */
