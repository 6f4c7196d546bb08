/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system under test: Rueda, Open MPI, MPICH or plain sockets, seen by one
 * rank. Each has the same table of functions, so that one worker measures them
 * all alike.
 *
 * A system belongs to the thread that made it. A function that fails returns
 * false and leaves a message in the system.
 */
#ifndef RUEDA_TOOL_SYSTEM_H
#define RUEDA_TOOL_SYSTEM_H

#include "base/text.h"
#include "tool/case.h"

struct rueda_system;

struct rueda_system_ops {
    /* Memory for buffers, aligned to a page; shared means reachable for the
     * other ranks, where the system knows such a thing. NULL with a message. */
    void *(*alloc)(struct rueda_system *system, size_t bytes, bool is_shared);
    void (*release)(struct rueda_system *system, void *memory, bool is_shared);

    /* Get ready to run work on these buffers, which are borrowed until the next
     * prepare(); send is NULL for work in place. */
    bool (*prepare)(struct rueda_system *system, const struct rueda_case *work,
                    const void *send, void *recv);

    /* Do it once; the timed part. Blocks until it is done on this rank. */
    bool (*run)(struct rueda_system *system, unsigned iteration);

    bool (*barrier)(struct rueda_system *system);

    /* Leave the job and free the system. */
    void (*close)(struct rueda_system *system);
};

/* The head of every system. */
struct rueda_system {
    const struct rueda_system_ops *ops;
    int rank;
    int size;
    char version[256];
    char transport[16]; /* that messages take; empty: it does not say */
    struct rueda_text words;
};

/* Join a job as one of its ranks; rank and size -1: from the environment. Waits
 * for the others. NULL with a message. */
struct rueda_system *rueda_system_rueda(int rank, int size, const char *job,
                                        struct rueda_text *words);

/* A context that exists already, which is taken. */
struct rueda_system *rueda_system_adopt(rueda_ctx *ctx,
                                        struct rueda_text *words);

/* Its context, for the caller that started it; borrowed. */
rueda_ctx *rueda_system_ctx(struct rueda_system *system);

/* MPI as mpirun has started it; flavour is "openmpi" or "mpich". The library is
 * opened now, so that the program is built without it. NULL with a message. */
struct rueda_system *rueda_system_mpi(const char *flavour,
                                      struct rueda_text *words);

/* Plain blocking sockets between ranks 0 and 1: fd is this rank's end of a TCP
 * connection, and is taken. The only work it can do is RUEDA_BENCH_EXCHANGE.
 * NULL with a message. */
struct rueda_system *rueda_system_raw(int rank, int fd,
                                      struct rueda_text *words);

/* Both ends of a TCP connection over loopback, for two such ranks. False with
 * errno. */
bool rueda_system_raw_pair(int out_ends[2]);

/* Memory of the process alone, for systems without other memory. */
void *rueda_system_private(struct rueda_system *system, size_t bytes);

/* alloc and release of those that have no other memory than that. */
void *rueda_system_alloc(struct rueda_system *system, size_t bytes,
                         bool is_shared);
void rueda_system_release(struct rueda_system *system, void *memory,
                          bool is_shared);

#endif /* RUEDA_TOOL_SYSTEM_H */
