/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks in one thread: N meshes over the loop transport, and tasks that are
 * driven in turn, in an order that is mixed but always the same. Nothing here
 * asserts but the opening; a run that does not end is stopped after a
 * number of turns, with RUEDA_ERR_TIMEOUT.
 */
#ifndef RUEDA_TESTS_SUPPORT_RANKS_H
#define RUEDA_TESTS_SUPPORT_RANKS_H

#include "algo/select.h"
#include "transport/loop/loop.h"

struct ranks {
    int size;
    struct rueda_loop_hub *hub;
    struct rueda_mesh *mesh;    /* [size] */
    struct rueda_place *place;  /* [size]; scratch of RUEDA_SCRATCH_BYTES */
    struct rueda_task *task;    /* [size] */
    rueda_status *status;       /* [size] of the last run */
    bool *is_open;              /* [size] false: has left */
    struct rueda_select select; /* of the hierarchy */
    uint64_t sequence;
    uint32_t seed;

    /* Of the next run: this rank leaves after this many turns; -1: none. */
    int leaver;
    int leaves_after;
};

struct ranks *ranks_open(int size);
void ranks_close(struct ranks *ranks);

/* Say where they are: rank i on host hosts[i], a number below the number of
 * ranks. Asserts; once. */
void ranks_arrange(struct ranks *ranks, const int *hosts);

/*
 * Run algo with coll[rank] on each rank until all have ended. A rank that fails
 * cancels, finishes its task and leaves, as an engine would; so does the
 * leaver, with RUEDA_ERR_CLOSED. Returns RUEDA_OK if all ended well, else the
 * status of the first that did not.
 */
rueda_status ranks_run(struct ranks *ranks, const struct rueda_algo *algo,
                       const struct rueda_coll *coll);

#endif /* RUEDA_TESTS_SUPPORT_RANKS_H */
