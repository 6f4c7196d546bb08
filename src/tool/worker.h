/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a system under test, which does what the coordinator commands.
 */
#ifndef RUEDA_TOOL_WORKER_H
#define RUEDA_TOOL_WORKER_H

#include "tool/control.h"
#include "tool/placing.h"
#include "tool/system.h"

/* Belongs to one thread. All zero but for system to begin with. */
struct rueda_bench_worker {
    struct rueda_system *system; /* borrowed */
    rueda_placing placing;
    struct rueda_case work;
    void *send;
    void *recv;
    char *copy; /* two buffers for memcpy, one after the other */
    size_t copy_bytes;
};

/* Do one command and write its reply. Ranks must be given the same commands in
 * the same order. */
void rueda_bench_worker_do(struct rueda_bench_worker *worker,
                           const struct rueda_control_command *command,
                           struct rueda_reply *out_reply);

/* Free the buffers. */
void rueda_bench_worker_fini(struct rueda_bench_worker *worker);

/*
 * The program as a worker: `rueda bench-worker NAME CREW SYSTEM RANK SIZE JOB
 * PLACING` reaches the coordinator at NAME as a member of its crew CREW.
 * SYSTEM is "rueda", "threads" (all ranks in this process), "openmpi" or
 * "mpich", which find rank and size themselves, or "raw", whose JOB is a
 * descriptor. Returns the exit code.
 */
int rueda_bench_worker_main(int argc, char **argv);

#endif /* RUEDA_TOOL_WORKER_H */
