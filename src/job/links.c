/* SPDX-License-Identifier: Apache-2.0 */
/* Which transport joins two ranks of a formation; see links.h. */
#include "job/links.h"

#include "job/job.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"

/* The pipes of two ranks lie in the range of the lower one. */
static rueda_status connect_pipes(struct rueda_mesh *mesh, int peer,
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
static rueda_status connect_thread(struct rueda_mesh *mesh, int peer,
                                   struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;
    struct rueda_hub *threads = formation->job->threads;
    const rueda_status status =
        threads->ops->connect(threads, formation->members[peer], out_ep);

    if (status == RUEDA_OK)
        (*out_ep)->peer = peer;
    return status;
}

/* The hub knows ranks by their numbers in the first formation. */
static rueda_status connect_network(struct rueda_mesh *mesh, int peer,
                                    struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;
    struct rueda_hub *network = formation->job->network;

    return network->ops->connect(network, formation->seats[peer], out_ep);
}

/* A job of several hosts. */
static rueda_status connect_any(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    const struct rueda_formation *formation = mesh->owner;

    return formation->members[peer] >= 0 ? connect_pipes(mesh, peer, out_ep)
                                         : connect_network(mesh, peer, out_ep);
}

static rueda_mesh_connect connect_of(const struct rueda_formation *formation)
{
    const uint32_t transport = formation->segment->common->transport;

    if (transport == RUEDA_TRANSPORT_TCP)
        return connect_network;
    if (formation->job->threads != NULL &&
        transport != RUEDA_TRANSPORT_MESSAGES)
        return connect_thread;
    return formation->job->network != NULL ? connect_any : connect_pipes;
}

/* The kinds of memory that all of its transports reach. */
static unsigned memory_of(const struct rueda_formation *formation)
{
    const rueda_mesh_connect connect = formation->mesh.connect;
    unsigned memory = RUEDA_MEMKIND_ANY;

    if (connect == connect_network || connect == connect_any)
        memory &= formation->job->network->ops->memory;
    if (connect == connect_pipes || connect == connect_any)
        memory &= RUEDA_SHM_MEMORY;
    if (connect == connect_thread)
        memory &= formation->job->threads->ops->memory;
    return memory;
}

rueda_status rueda_links_open(struct rueda_formation *formation)
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

const char *rueda_links_name(const struct rueda_formation *formation)
{
    const struct rueda_job *job = formation->job;
    const rueda_mesh_connect connect = formation->mesh.connect;

    if (connect == connect_thread)
        return job->threads->ops->name;
    if (connect == connect_network)
        return job->network->ops->name;
    return connect == connect_pipes ? "shm" : "shm+tcp";
}

rueda_status rueda_links_reserve(struct rueda_segment *segment,
                                 uint64_t *out_offset, struct rueda_text *error)
{
    const size_t later = (size_t)(segment->size - segment->me - 1);

    return rueda_segment_reserve(segment, later * rueda_shm_pair_bytes(),
                                 out_offset, error);
}

rueda_status rueda_links_between_threads(int size, struct rueda_hub **out)
{
    struct rueda_loop_hub *hub;
    rueda_status status = rueda_loop_hub_open(size, &hub);
    int made = 0;

    if (status != RUEDA_OK)
        return status;
    while (made < size && status == RUEDA_OK) {
        status = rueda_loop_hub_of_rank(hub, made, &out[made]);
        if (status == RUEDA_OK)
            made++;
    }
    if (status == RUEDA_OK)
        return RUEDA_OK;
    for (int i = made; i < size; i++)
        rueda_loop_hub_release(hub);
    while (made > 0) {
        made--;
        out[made]->ops->close(out[made]);
    }
    return status;
}
