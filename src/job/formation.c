/* SPDX-License-Identifier: Apache-2.0 */
/* A formation is made, opened, held and released. */
#include "job/formation.h"

#include <stdlib.h>

#include "job/job.h"
#include "job/links.h"

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
    formation->seats = calloc((size_t)size, sizeof(int));
    formation->members = calloc((size_t)size, sizeof(int));
    formation->pairs = calloc((size_t)size, sizeof(uint64_t));
    if (formation->seats == NULL || formation->members == NULL ||
        formation->pairs == NULL) {
        rueda_formation_release(formation);
        return NULL;
    }
    for (int i = 0; i < size; i++)
        formation->seats[i] = i;
    return formation;
}

/* A rank's place in the segment. */
static int member_of(const struct rueda_formation *formation, int rank)
{
    if (formation->topology == NULL)
        return rank;
    if (formation->topology->rows[rank].host != formation->row.host)
        return -1;
    return formation->topology->rows[rank].index;
}

rueda_status rueda_formation_open(struct rueda_formation *formation)
{
    struct rueda_segment *segment = formation->job->segment;
    const struct rueda_segment_common *common = segment->common;

    formation->segment = segment;
    for (int rank = 0; rank < formation->size; rank++) {
        const int member = member_of(formation, rank);

        formation->members[rank] = member;
        if (member >= 0)
            formation->pairs[rank] = segment->members[member].pairs_offset;
    }
    formation->has_slab = common->transport == RUEDA_TRANSPORT_AUTO ||
                          common->transport == RUEDA_TRANSPORT_SHM;
    formation->slab_offset = common->slab_offset;
    formation->named_offset = common->named_offset;
    formation->term = 1;
    return rueda_links_open(formation);
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
    free(formation->seats);
    free(formation->members);
    free(formation->pairs);
    free(formation);
}
