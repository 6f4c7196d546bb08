/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A formation is made, and its endpoints: between two ranks of this host in a
 * pair of pipes in the segment, between threads by the loop hub, to other hosts
 * by the job's network.
 */
#include "job/formation.h"

#include <stdlib.h>

#include "job/job.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"

/* ---- Endpoints --------------------------------------------------------- */

/* The pipes of two ranks lie in the range of the lower one. */
static rueda_status connect_shm(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;
    struct rueda_segment *segment = formation->segment;
    const int me = formation->members[formation->rank];
    const int member = formation->members[peer];
    const bool is_low = me < member;
    const int later = is_low ? member - me : me - member;
    const uint64_t offset = formation->pairs[is_low ? formation->rank : peer] +
                            (uint64_t)(later - 1) * rueda_shm_pair_bytes();

    if (offset > segment->bytes - rueda_shm_pair_bytes())
        return RUEDA_ERR_MISMATCH;
    return rueda_shm_ep_open(segment, rueda_segment_at(segment, offset),
                             is_low ? 0 : 1, peer, member, out_ep);
}

/* The hub knows threads by their place in the segment. */
static rueda_status connect_loop(struct rueda_mesh *mesh, int peer,
                                 struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;
    const int *members = formation->members;
    const rueda_status status = rueda_loop_hub_connect(
        formation->job->hub, members[formation->rank], members[peer], out_ep);

    if (status == RUEDA_OK)
        (*out_ep)->peer = peer;
    return status;
}

static rueda_status connect_tcp(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;
    struct rueda_hub *network = formation->job->network;

    return network->ops->connect(network, peer, out_ep);
}

/* A job of several hosts. */
static rueda_status connect_any(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;

    return formation->members[peer] >= 0 ? connect_shm(mesh, peer, out_ep)
                                         : connect_tcp(mesh, peer, out_ep);
}

static rueda_mesh_connect connect_of(const struct rueda_formation *formation)
{
    const uint32_t transport = formation->segment->agreement->transport;

    if (transport == RUEDA_TRANSPORT_TCP)
        return connect_tcp;
    if (formation->job->hub != NULL && transport != RUEDA_TRANSPORT_MESSAGES)
        return connect_loop;
    return formation->job->network != NULL ? connect_any : connect_shm;
}

/* The kinds of memory that all of its transports reach. */
static unsigned memory_of(const struct rueda_formation *formation)
{
    const rueda_mesh_connect connect = formation->mesh.connect;
    unsigned memory = RUEDA_MEMORY_ANY;

    if (connect == connect_tcp || connect == connect_any)
        memory &= formation->job->network->ops->memory;
    if (connect == connect_shm || connect == connect_any)
        memory &= RUEDA_SHM_MEMORY;
    if (connect == connect_loop)
        memory &= RUEDA_LOOP_MEMORY;
    return memory;
}

rueda_status rueda_formation_open_mesh(struct rueda_formation *formation)
{
    rueda_status status;

    status = rueda_mesh_init(&formation->mesh, formation->rank, formation->size,
                             connect_of(formation), formation);
    if (status != RUEDA_OK)
        return status;
    formation->mesh.memory = memory_of(formation);
    rueda_mesh_begin_term(&formation->mesh, formation->term);
    return RUEDA_OK;
}

const char *rueda_formation_transport(const struct rueda_formation *formation)
{
    const rueda_mesh_connect connect = formation->mesh.connect;

    if (connect == connect_loop)
        return "loop";
    return connect == connect_shm   ? "shm"
           : connect == connect_tcp ? "tcp"
                                    : "shm+tcp";
}

/* ---- Life -------------------------------------------------------------- */

struct rueda_formation *rueda_formation_new(struct rueda_job *job, int rank,
                                            int size)
{
    struct rueda_formation *formation = calloc(1, sizeof(*formation));

    if (formation == NULL)
        return NULL;
    atomic_init(&formation->holders, 1);
    formation->job = job;
    formation->rank = rank;
    formation->size = size;
    formation->members = calloc((size_t)size, sizeof(int));
    formation->pairs = calloc((size_t)size, sizeof(uint64_t));
    if (formation->members != NULL && formation->pairs != NULL)
        return formation;
    rueda_formation_release(formation);
    return NULL;
}

/* A rank's place in the segment. */
static int member_of(const struct rueda_formation *formation, int rank)
{
    if (formation->topology == NULL)
        return rank;
    if (formation->topology->places[rank].host != formation->place.host)
        return -1;
    return formation->topology->places[rank].index;
}

rueda_status rueda_formation_open(struct rueda_formation *formation)
{
    struct rueda_segment *segment = formation->job->segment;
    const struct rueda_agreement *agreement = segment->agreement;

    formation->segment = segment;
    for (int rank = 0; rank < formation->size; rank++) {
        const int member = member_of(formation, rank);

        formation->members[rank] = member;
        if (member >= 0)
            formation->pairs[rank] = segment->members[member].pairs_offset;
    }
    formation->has_slab = agreement->transport == RUEDA_TRANSPORT_AUTO ||
                          agreement->transport == RUEDA_TRANSPORT_SHM;
    formation->slab_offset = agreement->slab_offset;
    formation->named_offset = agreement->named_offset;
    formation->term = 1;
    return rueda_formation_open_mesh(formation);
}

void rueda_formation_hold(struct rueda_formation *formation)
{
    atomic_fetch_add(&formation->holders, 1);
}

void rueda_formation_release(struct rueda_formation *formation)
{
    if (formation == NULL || atomic_fetch_sub(&formation->holders, 1) > 1)
        return;
    rueda_mesh_fini(&formation->mesh);
    rueda_topology_free(formation->topology);
    free(formation->members);
    free(formation->pairs);
    free(formation);
}
