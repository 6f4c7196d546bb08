/* SPDX-License-Identifier: Apache-2.0 */
/*
 * My seat in the job: which launcher started me, which rank I am, and how the
 * ranks are going to be introduced to one another.
 *
 * Pure: the environment comes through a function of the query, nothing is
 * opened and no process is asked; only rueda_seat_query_init() looks at this
 * process. On any thread.
 *
 * The nearest launcher wins, in the order of the list below: a process that
 * mpirun starts inside a Slurm allocation sees the variables of both, and
 * mpirun's are true.
 */
#ifndef RUEDA_JOB_SEAT_H
#define RUEDA_JOB_SEAT_H

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/text.h"

/*
 * Each with the variables that say rank and size.
 *
 *      none      no launcher: a job of one
 *      options   the caller said them itself
 *      rueda     RUEDA_RANK, RUEDA_SIZE: ruedarun, or by hand
 *      horovod   HOROVOD_RANK, HOROVOD_SIZE
 *      torchrun  RANK, WORLD_SIZE
 *      openmpi   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *      hydra     PMI_RANK, PMI_SIZE: mpiexec of MPICH and its kin
 *      slurm     SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS: srun
 */
#define RUEDA_LAUNCHER_MAP(X)                                                  \
    X(NONE, "none")                                                            \
    X(OPTIONS, "options")                                                      \
    X(RUEDA, "rueda")                                                          \
    X(HOROVOD, "horovod")                                                      \
    X(TORCHRUN, "torchrun")                                                    \
    X(OPENMPI, "openmpi")                                                      \
    X(HYDRA, "hydra")                                                          \
    X(SLURM, "slurm")

typedef enum rueda_launcher {
#define X(name, text) RUEDA_LAUNCHER_##name,
    RUEDA_LAUNCHER_MAP(X)
#undef X
    RUEDA_LAUNCHER_COUNT
} rueda_launcher;

/*
 *      none    size 1
 *      socket  all on one host: an abstract Unix socket named after `job`
 *      store   the store at `store`
 *      pmix, pmi1, pmi2
 *              the launcher's own exchange; not where an MPI is loaded
 *      caller  the caller passes bytes from rank 0 to all
 */
#define RUEDA_INTRODUCTION_MAP(X)                                              \
    X(NONE, "none")                                                            \
    X(SOCKET, "socket")                                                        \
    X(STORE, "store")                                                          \
    X(PMIX, "pmix")                                                            \
    X(PMI1, "pmi1")                                                            \
    X(PMI2, "pmi2")                                                            \
    X(CALLER, "caller")

typedef enum rueda_introduction {
#define X(name, text) RUEDA_INTRODUCE_##name,
    RUEDA_INTRODUCTION_MAP(X)
#undef X
    RUEDA_INTRODUCE_COUNT
} rueda_introduction;

struct rueda_seat {
    rueda_launcher launcher;
    rueda_introduction introduction;
    int rank;
    int size;
    int local_rank; /* these four: -1 where the launcher does not say */
    int local_size;
    int cross_rank;
    int cross_size;
    int worker;          /* of an elastic job (place.h); -1: this is none */
    uint32_t term;       /* of its place; 0: it has none yet */
    bool is_job_default; /* no person and no launcher has named the job */
    char
        job[RUEDA_CONFIG_NAME_BYTES]; /* the socket's, and for logs; never "" */
    char store[RUEDA_CONFIG_STORE_BYTES]; /* "host:port"; "" unless STORE */
    struct rueda_text why;                /* a sentence for people */
};

struct rueda_seat_query {
    /* The value of a variable, or NULL where it is unset or empty. */
    const char *(*environment)(void *arg, const char *name);
    void *arg;
    int rank; /* these six: what the caller says, -1 where it does not */
    int size;
    int local_rank;
    int local_size;
    int cross_rank;
    int cross_size;
    bool has_exchange; /* the caller can pass bytes from rank 0 to all */
    const char *job;   /* NULL or "": RUEDA_JOB, or as the launcher has it */
    const char *store; /* NULL or "": RUEDA_STORE, or none */

    /*
     * An MPI library is loaded in this process. A launcher's exchange serves a
     * process once (exchange.h), and whether MPI has used it or will cannot be
     * found out: it is left to MPI, in all ranks alike.
     */
    bool has_mpi;
    int parent; /* process id of our launcher: Hydra's proxy on this host,
                   where we come from one, else the parent */
};

/* A query in which the caller says nothing, of this process: its environment,
 * its libraries, its parent. */
void rueda_seat_query_init(struct rueda_seat_query *query);

/* A variable of this process; arg is not looked at. */
const char *rueda_seat_environment(void *arg, const char *name);

/*
 * Find my seat. On failure error names the variables, what they hold and what
 * to do, and out is as it was. Strings of the query are copied.
 */
rueda_status rueda_seat_find(const struct rueda_seat_query *query,
                             struct rueda_seat *out, struct rueda_text *error);

/* Static text, never NULL. */
const char *rueda_launcher_str(rueda_launcher launcher);
const char *rueda_introduction_str(rueda_introduction introduction);

#endif /* RUEDA_JOB_SEAT_H */
