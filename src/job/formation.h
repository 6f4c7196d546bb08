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
#include "transport/transport.h"

struct rueda_job;

struct rueda_formation {
    struct rueda_job *job; /* borrowed */
    atomic_int holders;
    uint32_t term; /* from 1, in every message; 0 until it is open */
    int rank;      /* this rank's number in this formation */
    int size;
    struct rueda_topology_row row;
    struct rueda_topology *topology; /* NULL: all ranks are here */

    struct rueda_segment *segment; /* of the ranks of this host; the job's */
    int *seats;      /* [size] each rank's number in the first formation */
    int *members;    /* [size] each rank's place there; -1: on another host */
    uint64_t *pairs; /* [size] where a rank's pipes with later members are */
    bool has_slab;   /* not where settings ask for messages only */
    uint64_t slab_offset;  /* of this host's slab for ordered operations, */
    uint64_t named_offset; /* and of the one for named tensors */
    struct rueda_mesh mesh;
};

/* A formation that is not open yet; the caller holds it. NULL: no memory. */
struct rueda_formation *rueda_formation_new(struct rueda_job *job, int rank,
                                            int size);

/* The ranks of this host have met in the job's segment: open the first
 * formation. Its row and topology have been filled in. On failure
 * (RUEDA_ERR_NOMEM) it is not open. */
rueda_status rueda_formation_open(struct rueda_formation *formation);

void rueda_formation_hold(struct rueda_formation *formation);

/* The last one to let go closes the endpoints. NULL is allowed. */
void rueda_formation_release(struct rueda_formation *formation);

/* ---- The next one (formation_next.c) ---------------------------------- */

/*
 * Some members are lost, and the others, the survivors, go on in the next term.
 * They keep the segment: what rueda_alloc() gave stays where it is. Messages of
 * the old term reach no rank in the new one.
 *
 * This covers ranks of one host, as processes or as threads, and of several
 * hosts. It does not cover ranks of one host whose messages take TCP (refused),
 * and new members (not expressible). Pipes and slabs of an old term stay
 * allocated until the job ends; there are fewer terms than members. council.h
 * is how ranks agree on the survivors, and engine/terms.h what becomes of lanes
 * and operations.
 */

/* The ranks of now that rank 0, 1, ... of the next formation are. survivors are
 * ranks of now, ascending: those below count keep their number, the others fill
 * the gaps. */
void rueda_formation_number(const int *survivors, int count, int *out);

/*
 * Begin the formation after `old`, which may have failed to meet. Its members
 * are survivors[count], ranks of the old one, ascending, this rank among them;
 * all of them say the same. Nothing of the old one is in flight: its operations
 * have ended, or were cancelled. From here on its requests end with
 * RUEDA_ERR_CLOSED; its slabs and its other memory stay.
 *
 * The caller holds *out, which is used when it has met. On failure, with words,
 * nothing is left, and if survivors were refused (RUEDA_ERR_INVALID,
 * RUEDA_ERR_UNSUPPORTED) the old one is as it was.
 */
rueda_status rueda_formation_begin_next(struct rueda_formation *old,
                                        const int *survivors, int count,
                                        struct rueda_formation **out,
                                        struct rueda_text *error);

/*
 * Have all members of this host begun it? RUEDA_OK: it is open.
 * RUEDA_IN_PROGRESS: ask again; the segment notifies this rank. The caller has
 * a deadline. Otherwise, with words, it never opens: RUEDA_ERR_PEER_LOST, a
 * member is lost; RUEDA_ERR_CANCELLED, a member has gone on to a later term;
 * RUEDA_ERR_MISMATCH, a member has begun it with others.
 */
rueda_status rueda_formation_meet(struct rueda_formation *next,
                                  struct rueda_text *error);

/* ---- Questions --------------------------------------------------------- */

/* The rank that had this number in the first formation, or -1. */
static inline int
rueda_formation_rank_of(const struct rueda_formation *formation, int seat)
{
    for (int rank = 0; rank < formation->size; rank++)
        if (formation->seats[rank] == seat)
            return rank;
    return -1;
}

/* The number of a rank's host. */
static inline int rueda_formation_host(const struct rueda_formation *formation,
                                       int rank)
{
    return formation->topology != NULL ? formation->topology->rows[rank].host
                                       : 0;
}

#endif /* RUEDA_JOB_FORMATION_H */
