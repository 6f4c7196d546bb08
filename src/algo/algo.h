/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective algorithms: one file each, all of the same shape.
 *
 * A task is one run of one algorithm on one rank. post() starts it, progress()
 * takes it further as far as it goes without waiting, finish() releases what it
 * holds. None of them blocks; the engine (or a test) calls progress() in turn
 * with rueda_mesh_progress() until the task has ended. All three are called by
 * the thread that holds the engine's token.
 */
#ifndef RUEDA_ALGO_ALGO_H
#define RUEDA_ALGO_ALGO_H

#include <rueda/rueda.h>

#include "device/device.h"
#include "transport/transport.h"

struct rueda_slab;
struct rueda_hier;
struct rueda_staging;

/* Where the collectives of a process set run, as one of its ranks sees it. */
struct rueda_place {
    struct rueda_mesh *mesh;
    struct rueda_slab *slab; /* NULL where members share no memory */
    struct rueda_hier *hier; /* NULL where they are not on several hosts */
    struct rueda_staging *staging;     /* NULL where messages reach tensors */
    const struct rueda_device *device; /* whose memory tensors are in */
    bool is_on_hosts;                  /* members are on several hosts */

    /* Every rank of the job is a member, tasks run in the same order on all,
     * and one that has begun on any of them begins on all, whatever their
     * programs wait for. */
    bool is_common;

    /* Private memory for what arrives before it is added; at least
     * RUEDA_SCRATCH_BYTES, used by one task at a time. */
    char *scratch;
    size_t scratch_bytes;
};
#define RUEDA_SCRATCH_BYTES ((size_t)4608 << 10)

/*
 * What to do; as struct rueda_coll_args, but checked and completed: counts are
 * always there where the kind has pieces, average has become sum and a
 * postscale.
 */
struct rueda_coll {
    rueda_kind kind;
    int root;
    struct rueda_arith arith;
    size_t elem_bytes;
    const void *send; /* never written unless it is recv */
    void *recv;

    /* allreduce, broadcast: elements of the buffer; allgather: of mine;
     * alltoall, reduce-scatter: of one piece where counts is NULL. */
    size_t count;
    const size_t *send_counts; /* alltoall, or NULL: equal pieces of count */
    const size_t
        *recv_counts; /* allgather, reduce-scatter, alltoall, or NULL */

    /* Between hosts. With several hosts a compressed operation runs as `hier`;
     * no other algorithm uses this field. */
    rueda_compression compression;

    /* A member has joined, and may have no device; or results are not to reach
     * the caller's memory yet. The same on all members. */
    bool is_short_handed;

    /*
     * allreduce, or NULL: the vector is in parts, each from a multiple of a
     * cache line on, one behind another, as many on all members; send and recv
     * are the same, a place for all of them. They are packed there, unless the
     * algorithm takes parts. An algorithm may write the results to where the
     * parts go, if it restores inputs (recv is send) after a failure; it then
     * sets part_count to 0. Otherwise the results are in recv, and the caller
     * unpacks them.
     *
     * allgather by `direct`, of buffers that lie in the segment in all members:
     * all that I want of these. There is no recv then.
     *
     * reduce-scatter by `direct`: the input is of such parts, from this many
     * bytes of theirs on. There is no send then.
     */
    const struct rueda_part *parts;
    int part_count;
    size_t parts_from;
};

struct rueda_algo;

#define RUEDA_TASK_STATE_BYTES 1536

struct rueda_task {
    const struct rueda_algo *algo;
    struct rueda_place *place;
    struct rueda_coll coll;
    struct rueda_tag tag;   /* of all messages of this task */
    uint64_t moves;         /* counted up whenever the task got on by itself */
    struct rueda_work work; /* what the device does for this task */
    bool is_over;           /* post() or progress() returned RUEDA_OK */
    bool is_silent; /* what it waits for rings no bell, and may be long in
                       coming: a rank that sleeps has to look now and then */
    _Alignas(64) unsigned char state[RUEDA_TASK_STATE_BYTES]; /* algo's own */
};

struct rueda_algo {
    const char *name;  /* "ring": in settings, tables, traces */
    const char *about; /* one line for people */
    unsigned kinds;    /* bits 1u << rueda_kind that it can do */
    unsigned memory;   /* bits of the kinds of memory that it serves */
    bool needs_slab;   /* runs only where all members share a slab */
    bool needs_hier;   /* runs only where they are on several hosts */
    bool does_adasum;  /* the reduction Adasum is this one's and no other's */

    /* Optional, of an algorithm that a device brings and that moves bytes by
     * itself: can it run here? Neither slab nor transports count then. All
     * members give the same answer. */
    bool (*can_run)(const struct rueda_place *place,
                    const struct rueda_coll *coll);

    /* Optional, of such an algorithm too: no task will run in this place any
     * more, so let go of what was kept for it. May block for two seconds. */
    void (*leave)(const struct rueda_place *place);

    /* Optional: does it take this vector in parts, wherever they are? All
     * members of a host come to the same answer. */
    bool (*takes_parts)(const struct rueda_place *place,
                        const struct rueda_coll *coll);

    /* Start. Returns as progress() does. */
    rueda_status (*post)(struct rueda_task *task);

    /* RUEDA_OK: done, recv is written, or is by what the device still has to
     * do. RUEDA_IN_PROGRESS: call again when the mesh or a doorbell moved.
     * Negative: failed.
     *
     * When task->work.status is not RUEDA_OK after a call of the device, an
     * algorithm returns it before it uses what the call writes, or writes over
     * what it reads. It is called again when the device is done. */
    rueda_status (*progress)(struct rueda_task *task);

    /* Optional. Called once after the end, good or bad; no request of the task
     * is in flight any more (the engine has cancelled the mesh). */
    void (*finish)(struct rueda_task *task);
};

/* Start a task: its algo, place, coll and tag are filled in. Answers as
 * progress() does, but RUEDA_OK only when the device is done as well. */
rueda_status rueda_task_post(struct rueda_task *task);

/* Take it further. */
rueda_status rueda_task_progress(struct rueda_task *task);

/* For the algorithm of a task, in post() or progress(), of a place with a
 * staging: all members have found out that it cannot run here, and its
 * can_run() says so from now on. Another one is chosen and started; answers as
 * its post(). Nothing of the task is in flight. */
rueda_status rueda_task_hand_on(struct rueda_task *task);

/* All built-in algorithms, ended by NULL. */
extern const struct rueda_algo *const rueda_algos[];

/* By name, or NULL. */
const struct rueda_algo *rueda_algo_find(const char *name);

#endif /* RUEDA_ALGO_ALGO_H */
