/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the coordinator of a benchmark and its workers: one command
 * to every worker of a crew, one reply from each. A worker blocks in
 * rueda_control_recv() between commands, so that an idle crew costs nothing.
 *
 * They meet at a Unix socket whose name is on the worker's command line, since
 * mpirun hands down no descriptors; an abstract one, or a file where workers
 * are in other network namespaces, which see no abstract socket of ours. Both
 * ends are the same program, so the structs travel as they are in memory; each
 * is one packet. Only processes of the same user are let in.
 */
#ifndef RUEDA_TOOL_CONTROL_H
#define RUEDA_TOOL_CONTROL_H

#include <sys/types.h>

#include "tool/case.h"

#define RUEDA_CONTROL_NAME 64
#define RUEDA_BATCHES_MAX  256

struct rueda_hello {
    int32_t crew; /* which crew of the coordinator's */
    int32_t rank;
    int32_t is_ok;
    char transport[16]; /* the system's */
    char words[256];    /* the system's version, or why it failed */
};

typedef enum rueda_control_kind {
    RUEDA_CONTROL_PREPARE, /* get buffers for `work` and fill them */
    RUEDA_CONTROL_RUN,     /* measure it */
    RUEDA_CONTROL_COPY,    /* measure a plain memcpy of the same bytes */
    RUEDA_CONTROL_PROBE,   /* measure the latency of a cache line */
    RUEDA_CONTROL_QUIT,
} rueda_control_kind;

struct rueda_control_command {
    rueda_control_kind kind;
    struct rueda_case work; /* prepare */

    /* run, copy: warm-up batches, then the batches that count; the clock is
     * read at both ends of a batch of several iterations */
    uint32_t warmups;
    uint32_t batches;
    uint32_t iterations;

    char path[64]; /* probe: a page that ranks 0 and 1 map */
};

struct rueda_reply {
    int32_t is_ok;
    int32_t rank;
    uint32_t count;                    /* of seconds */
    int32_t cpu;                       /* probe: where this rank runs */
    double wall;                       /* seconds that the whole command took */
    double seconds[RUEDA_BATCHES_MAX]; /* one iteration, for each batch */
    char words[384];                   /* why it is not ok */
};

/* A listening socket at a fresh name; -1 with errno. A file is the caller's to
 * remove. */
int rueda_control_listen(bool is_file, char out_name[RUEDA_CONTROL_NAME]);

/* Accept one worker; its process id comes from the kernel. Returns -1 if no
 * process of the same user is waiting. Does not block. */
int rueda_control_accept(int listener, pid_t *out_pid);

/* Reach the coordinator; -1 with errno. */
int rueda_control_connect(const char *name);

/* One packet. False if the other end is gone. */
bool rueda_control_send(int fd, const void *packet, size_t bytes);

/* Blocks until a packet of exactly this size arrives; false if the other end is
 * gone or sends another size. */
bool rueda_control_recv(int fd, void *packet, size_t bytes);

#endif /* RUEDA_TOOL_CONTROL_H */
