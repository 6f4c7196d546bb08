/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A formation: the members of a job between two changes of membership, and what
 * they share: where each of them is, the slab of this host's members, and how
 * messages reach them. Each has a number, its term.
 *
 * A job makes its formations. It holds the one in force; the engine borrows
 * that one; a lane, which is made from a formation and a process set, holds the
 * one it was made from. So a formation lives until the last result that needs
 * it is delivered. What outlives a formation belongs to the job (job.h): its
 * segment, so that addresses from rueda_alloc() stay valid, its hubs, its key,
 * the store.
 *
 * Used by the thread that holds the engine's token; nothing here blocks.
 */
#ifndef RUEDA_JOB_FORMATION_H
#define RUEDA_JOB_FORMATION_H

#include <stdatomic.h>

#include "job/topology.h"
#include "segment/segment.h"
#include "segment/slab.h"
#include "transport/transport.h"

struct rueda_job;

struct rueda_formation {
    struct rueda_job *job; /* borrowed */
    atomic_int holders;
    uint32_t term; /* from 1, in every message; 0 until it is open */
    int rank;      /* this rank's number in this formation */
    int size;
    struct rueda_topology_place place;
    struct rueda_topology *topology; /* NULL: all ranks are here */

    struct rueda_segment *segment; /* of the ranks of this host; the job's */
    int *members;    /* [size] each rank's place there; -1: on another host */
    uint64_t *pairs; /* [size] where a rank's pipes with later members are */
    struct rueda_slab slab;
    bool has_slab; /* of the ranks of this host; not where settings ask for
                      messages only */
    uint64_t named_offset; /* of the slab for named tensors of all members */
    struct rueda_mesh mesh;
};

/* A formation that is not open yet; the caller holds it. NULL: no memory. */
struct rueda_formation *rueda_formation_new(struct rueda_job *job, int rank,
                                            int size);

/* The ranks of this host have met in the job's segment: open the first
 * formation. Its place and topology have been filled in. On failure
 * (RUEDA_ERR_NOMEM) it is not open. */
rueda_status rueda_formation_open(struct rueda_formation *formation);

void rueda_formation_hold(struct rueda_formation *formation);

/* The last one to let go closes the endpoints. NULL is allowed. */
void rueda_formation_release(struct rueda_formation *formation);

/* The name of the transport that messages take. */
const char *rueda_formation_transport(const struct rueda_formation *formation);

/* The number of a rank's host. */
static inline int rueda_formation_host(const struct rueda_formation *formation,
                                       int rank)
{
    return formation->topology != NULL ? formation->topology->places[rank].host
                                       : 0;
}

#endif /* RUEDA_JOB_FORMATION_H */
