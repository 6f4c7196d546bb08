/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one formation to the next, in two steps that do not wait.
 *
 *     begin   this rank closes the endpoints of the old term, finds memory for
 *             the new one, and writes in its line of the segment where that is:
 *             its offer
 *     meet    it has seen the offers of all other members
 *
 * No member connects before it has met the others, so none of them can still
 * use an endpoint of the old term then.
 *
 * Pipes and slabs are new memory in every term: those of the old one may hold
 * half a message, and blocks that its members have counted differently. They
 * stay where they are, since a rank that was taken for lost may be only slow
 * and write there once more.
 */
#include "job/formation.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "job/agreement.h"
#include "job/job.h"
#include "job/links.h"

/* Where this rank is among survivors[count], or -1. */
static int find(const int *survivors, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (survivors[i] == rank)
            return i;
    return -1;
}

void rueda_formation_number(const int *survivors, int count, int *out)
{
    int mover = 0; /* among survivors: the next whose number is too high */

    while (mover < count && survivors[mover] < count)
        mover++;
    for (int rank = 0; rank < count; rank++)
        out[rank] =
            find(survivors, count, rank) >= 0 ? rank : survivors[mover++];
}

/* Not this far yet; with words. */
static rueda_status check(const struct rueda_formation *old,
                          const int *survivors, int count,
                          struct rueda_text *error)
{
    if (old->job->network != NULL && old->job->store_council == NULL) {
        rueda_text_set(error, "ranks whose messages take TCP cannot form a new "
                              "term yet; use RUEDA_TRANSPORT=auto");
        return RUEDA_ERR_UNSUPPORTED;
    }
    for (int i = 0; i < count; i++) {
        if (survivors[i] >= 0 && survivors[i] < old->size &&
            (i == 0 || survivors[i] > survivors[i - 1]))
            continue;
        rueda_text_set(error,
                       "survivors of term %u must be ascending ranks below "
                       "%d; rank %d is not",
                       old->term, old->size, survivors[i]);
        return RUEDA_ERR_INVALID;
    }
    if (find(survivors, count, old->rank) >= 0)
        return RUEDA_OK;
    rueda_text_set(error, "rank %d is not among the %d survivors of term %u",
                   old->rank, count, old->term);
    return RUEDA_ERR_INVALID;
}

/* Which members the next formation has, and in which order. */
static uint64_t membership(const struct rueda_formation *next)
{
    return rueda_hash(next->seats, (size_t)next->size * sizeof(int), 0);
}

/* Its lowest rank on this host, and how many are here. */
static int first_here(const struct rueda_formation *next, int *out_count)
{
    int first = -1;

    *out_count = 0;
    for (int rank = 0; rank < next->size; rank++) {
        if (next->members[rank] < 0)
            continue;
        if (first < 0)
            first = rank;
        ++*out_count;
    }
    return first;
}

/* Memory of mine in the segment, and where it is. While the offer is written
 * its term is 0, so that no member reads half of it. */
static rueda_status offer(struct rueda_formation *next,
                          struct rueda_text *error)
{
    struct rueda_segment *segment = next->segment;
    struct rueda_offer *mine = &segment->members[segment->me].offer;
    uint64_t slab = 0;
    uint64_t named = 0;
    uint64_t pairs = 0;
    rueda_status status;
    int count;

    status = rueda_links_reserve(segment, &pairs, error);
    if (status == RUEDA_OK && next->rank == first_here(next, &count))
        status = rueda_agreement_slabs(segment, count, &slab, &named, error);
    if (status != RUEDA_OK)
        return status;
    atomic_store(&mine->term, 0);
    atomic_store(&mine->members, membership(next));
    atomic_store(&mine->pairs, pairs);
    atomic_store(&mine->slab, slab);
    atomic_store(&mine->named, named);
    segment->members[segment->me].rank = next->rank;
    atomic_store(&mine->term, next->term);
    rueda_segment_notify_all(segment);
    return RUEDA_OK;
}

/* Where the ranks are, by their new numbers; local ones are counted again.
 * NULL: no memory. */
static struct rueda_topology *topology_of(const struct rueda_topology *old,
                                          const int *ranks, int count)
{
    struct rueda_topology_record *records =
        calloc((size_t)count, sizeof(*records));
    struct rueda_topology *topology = NULL;
    struct rueda_text ignored = {{0}};

    for (int i = 0; i < count && records != NULL; i++) {
        const struct rueda_topology_host *host =
            &old->hosts[old->rows[ranks[i]].host];

        memcpy(records[i].host, host->id, sizeof(records[i].host));
        memcpy(records[i].name, host->name, sizeof(records[i].name));
        records[i].local_rank = -1;
        records[i].local_size = -1;
    }
    if (records != NULL)
        rueda_topology_new(records, count, &topology, &ignored);
    free(records);
    return topology;
}

/* The same ranks at the same places, by their new numbers. */
static struct rueda_formation *shrink(const struct rueda_formation *old,
                                      const int *ranks, int rank, int count)
{
    struct rueda_formation *next = rueda_formation_new(old->job, rank, count);

    if (next == NULL)
        return NULL;
    next->term = old->term + 1;
    next->segment = old->segment;
    next->has_slab = old->has_slab;
    next->row = (struct rueda_topology_row){.index = rank,
                                            .local_rank = rank,
                                            .local_size = count,
                                            .cross_size = 1};
    for (int i = 0; i < count; i++) {
        next->seats[i] = old->seats[ranks[i]];
        next->members[i] = old->members[ranks[i]];
    }
    if (old->topology == NULL)
        return next;
    next->topology = topology_of(old->topology, ranks, count);
    if (next->topology == NULL) {
        rueda_formation_release(next);
        return NULL;
    }
    next->row = next->topology->rows[rank];
    return next;
}

rueda_status rueda_formation_begin_next(struct rueda_formation *old,
                                        const int *survivors, int count,
                                        struct rueda_formation **out,
                                        struct rueda_text *error)
{
    rueda_status status = check(old, survivors, count, error);
    struct rueda_formation *next = NULL;
    int *ranks;

    if (status != RUEDA_OK)
        return status;
    ranks = calloc((size_t)count, sizeof(int));
    if (ranks != NULL) {
        rueda_formation_number(survivors, count, ranks);
        next = shrink(old, ranks, find(ranks, count, old->rank), count);
    }
    free(ranks);
    if (next == NULL) {
        rueda_text_set(error, "no memory for term %u", old->term + 1);
        return RUEDA_ERR_NOMEM;
    }
    if (old->job->network != NULL)
        old->job->network->ops->begin_term(old->job->network, next->term);
    rueda_mesh_retire(&old->mesh);
    status = offer(next, error);
    if (status != RUEDA_OK) {
        rueda_formation_release(next);
        return status;
    }
    *out = next;
    return RUEDA_OK;
}

/* RUEDA_OK: the member has offered, and its pipes are known. Whether it is gone
 * is looked at first: it may offer and go in between, and others have met it
 * then. */
static rueda_status hear(struct rueda_formation *next, int rank, bool is_first,
                         struct rueda_text *error)
{
    struct rueda_segment *segment = next->segment;
    const int member = next->members[rank];
    struct rueda_offer *offer = &segment->members[member].offer;
    const bool is_gone = rueda_segment_is_gone(segment, member);
    const uint64_t term = atomic_load(&offer->term);
    const uint64_t members = atomic_load(&offer->members);

    next->pairs[rank] = atomic_load(&offer->pairs);
    if (is_first) {
        next->slab_offset = atomic_load(&offer->slab);
        next->named_offset = atomic_load(&offer->named);
    }
    if (term == next->term && atomic_load(&offer->term) == term) {
        if (members == membership(next))
            return RUEDA_OK;
        rueda_text_set(error, "rank %d forms term %u with other members", rank,
                       next->term);
        return RUEDA_ERR_MISMATCH;
    }
    if (term > next->term) {
        rueda_text_set(error, "rank %d has begun term %u before term %u met",
                       rank, (unsigned)term, next->term);
        return RUEDA_ERR_CANCELLED;
    }
    if (!is_gone)
        return RUEDA_IN_PROGRESS;
    rueda_text_set(error, "rank %d of term %u was lost before the term began",
                   rank, next->term);
    return RUEDA_ERR_PEER_LOST;
}

rueda_status rueda_formation_meet(struct rueda_formation *next,
                                  struct rueda_text *error)
{
    struct rueda_segment *segment = next->segment;
    int count;
    const int first = first_here(next, &count);

    for (int rank = first; rank < next->size; rank++) {
        rueda_status status = RUEDA_OK;

        if (next->members[rank] >= 0)
            status = hear(next, rank, rank == first, error);
        if (status != RUEDA_OK)
            return status;
    }
    for (int member = 0; member < segment->size; member++)
        if (find(next->members, next->size, member) < 0)
            rueda_segment_dismiss(segment, member);
    return rueda_links_open(next);
}
