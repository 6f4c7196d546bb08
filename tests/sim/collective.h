/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives in the simulator: the tasks of src/algo, one a rank, as a program
 * for rueda_sim_run(). A rank that fails closes its endpoints and leaves, as an
 * engine would. Only opening and closing assert.
 */
#ifndef RUEDA_TESTS_SIM_COLLECTIVE_H
#define RUEDA_TESTS_SIM_COLLECTIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/registry.h"
#include "algo/select.h"
#include "transport/sim/sim.h"

struct collective {
    int size;
    struct rueda_sim *sim;
    struct rueda_mesh *mesh;   /* [size] */
    struct rueda_place *place; /* [size]; with hier, if there are hosts */
    struct rueda_select select;
    struct rueda_task *task; /* [size] */
    rueda_status *status;    /* [size] of the last run */
    bool *is_open;           /* [size] false: has left */
    char *scratch;
    size_t scratch_bytes;
    uint64_t sequence;

    /* Of the run. */
    const struct rueda_algo *algo;
    const struct rueda_coll *coll; /* [size] */
};

/* The ranks of each host of the network are a level of their own; they share no
 * memory, and pass messages. */
struct collective *collective_open(const struct rueda_sim_settings *settings);
void collective_close(struct collective *all);

/* Run algo with coll[rank] on each rank; as rueda_sim_run(). */
rueda_status collective_run(struct collective *all,
                            const struct rueda_algo *algo,
                            const struct rueda_coll *coll,
                            struct rueda_text *why);

/* The same allreduce of bytes of float32 on every rank, on phantoms: memory
 * that no rank can touch. Asserts that it ends well; returns how long it took,
 * in virtual nanoseconds. */
uint64_t collective_time(struct collective *all, const struct rueda_algo *algo,
                         size_t bytes);

#endif /* RUEDA_TESTS_SIM_COLLECTIVE_H */
