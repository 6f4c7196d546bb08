/* SPDX-License-Identifier: Apache-2.0 */
/* Making a hierarchy: the members of each level, and memory for the data
 * between stages. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "algo/hier.h"
#include "os/memory.h"

/*
 * A slice is passed on in as many chunks as there are hosts. A chunk of this
 * length takes several times the latency of a network, so that starting and
 * ending each block's allreduce costs little; it is at least what fills the
 * buffers of a connection, and not so long that it wastes memory.
 */
#define CHUNK_BYTES ((size_t)128 << 10)
#define SLICE_LEAST ((size_t)2 << 20)
#define SLICE_MOST  ((size_t)8 << 20)

static size_t slice_bytes(int hosts)
{
    const size_t wanted = (size_t)hosts * CHUNK_BYTES;

    if (wanted < SLICE_LEAST)
        return SLICE_LEAST;
    return wanted < SLICE_MOST ? wanted : SLICE_MOST;
}

/* ---- Members ----------------------------------------------------------- */

/* What is found out of the members and their hosts. */
struct host_census {
    int *index;   /* [size] of each member on its host */
    int *members; /* [host_limit] how many each host has */
};

static void census_fini(struct host_census *census)
{
    free(census->index);
    free(census->members);
}

static rueda_status census_init(struct host_census *census,
                                const struct rueda_hier_args *args, int size)
{
    census->index = calloc((size_t)size, sizeof(int));
    census->members = calloc((size_t)args->host_limit, sizeof(int));
    if (census->index == NULL || census->members == NULL) {
        census_fini(census);
        return RUEDA_ERR_NOMEM;
    }
    for (int rank = 0; rank < size; rank++)
        census->index[rank] = census->members[args->hosts[rank]]++;
    return RUEDA_OK;
}

static void measure(struct rueda_hier *hier, const struct host_census *census,
                    int host_limit)
{
    hier->hosts = 0;
    hier->carriers = INT_MAX;
    hier->most = 0;
    for (int host = 0; host < host_limit; host++) {
        const int members = census->members[host];

        if (members == 0)
            continue;
        hier->hosts++;
        if (members < hier->carriers)
            hier->carriers = members;
        if (members > hier->most)
            hier->most = members;
    }
}

/*
 * Where the data of each host begin in an allgather, if there is such a place:
 * its members follow one another. firsts stays NULL where they do not.
 */
static rueda_status find_firsts(struct rueda_hier *hier,
                                const struct rueda_hier_args *args, int me,
                                int size)
{
    const size_t hosts = (size_t)hier->hosts;
    int count = 0;

    hier->starts = calloc(hosts + 1, sizeof(size_t));
    hier->cross_counts = calloc(hosts, sizeof(size_t));
    hier->firsts = calloc(hosts + 1, sizeof(int));
    if (hier->starts == NULL || hier->cross_counts == NULL ||
        hier->firsts == NULL)
        return RUEDA_ERR_NOMEM;
    for (int rank = 0; rank < size; rank++) {
        if (rank > 0 && args->hosts[rank] == args->hosts[rank - 1])
            continue;
        if (count == hier->hosts) { /* one of them comes again */
            free(hier->firsts);
            hier->firsts = NULL;
            return RUEDA_OK;
        }
        hier->firsts[count++] = rank;
    }
    hier->firsts[count] = size;
    while (hier->firsts[hier->host + 1] <= me)
        hier->host++;
    return RUEDA_OK;
}

/* ---- Levels ------------------------------------------------------------ */

/* Members of `wanted`, a host or an index, by rank. Cross ones come in the same
 * order everywhere, and nothing hangs on which one that is. */
static rueda_status open_level(struct rueda_hier *hier, int level,
                               const struct rueda_place *place,
                               const int *numbers, int wanted)
{
    struct rueda_hier_level *self = &hier->level[level];
    int *ranks = calloc((size_t)place->mesh->size, sizeof(int));
    rueda_status status;
    int count = 0;

    if (ranks == NULL)
        return RUEDA_ERR_NOMEM;
    for (int rank = 0; rank < place->mesh->size; rank++)
        if (numbers[rank] == wanted)
            ranks[count++] = rank;
    status = rueda_mesh_init_view(&self->mesh, place->mesh, ranks, count);
    free(ranks);
    self->place.mesh = &self->mesh;
    self->place.device = place->device;
    self->place.scratch = place->scratch;
    self->place.scratch_bytes = place->scratch_bytes;
    return status;
}

static rueda_status open_levels(struct rueda_hier *hier,
                                const struct rueda_place *place,
                                const struct rueda_hier_args *args,
                                const struct host_census *census)
{
    const int host = args->hosts[place->mesh->rank];
    rueda_status status =
        open_level(hier, RUEDA_HIER_LOCAL, place, args->hosts, host);

    if (status == RUEDA_OK && rueda_hier_has_slice(hier))
        status = open_level(hier, RUEDA_HIER_CROSS, place, census->index,
                            hier->index);
    hier->level[RUEDA_HIER_LOCAL].place.slab = args->slab;
    return status;
}

/* ---- Memory ------------------------------------------------------------ */

/* Compressed, a number takes half of its bytes or less. */
static rueda_status map_memory(struct rueda_hier *hier)
{
    const size_t slices = RUEDA_HIER_BUFFERS * hier->slice_bytes;
    const size_t wire = hier->slice_bytes / 2;
    struct rueda_place *cross = &hier->level[RUEDA_HIER_CROSS].place;

    hier->memory_bytes = slices + wire + RUEDA_SCRATCH_BYTES;
    hier->memory = rueda_memory_map_private(hier->memory_bytes);
    if (hier->memory == NULL)
        return RUEDA_ERR_NOMEM;
    for (size_t i = 0; i < RUEDA_HIER_BUFFERS; i++)
        hier->buffers[i] = hier->memory + i * hier->slice_bytes;
    hier->wire = hier->memory + slices;
    cross->scratch = hier->wire + wire;
    cross->scratch_bytes = RUEDA_SCRATCH_BYTES;
    return RUEDA_OK;
}

/* ---- Life -------------------------------------------------------------- */

static rueda_status fill_in(struct rueda_hier *hier,
                            const struct rueda_place *place,
                            const struct rueda_hier_args *args,
                            const struct host_census *census)
{
    const int me = place->mesh->rank;
    rueda_status status;

    hier->select = args->select;
    hier->index = census->index[me];
    hier->slice_bytes = slice_bytes(hier->hosts);
    hier->counts =
        calloc((size_t)census->members[args->hosts[me]], sizeof(size_t));
    if (hier->counts == NULL)
        return RUEDA_ERR_NOMEM;
    status = find_firsts(hier, args, me, place->mesh->size);
    if (status == RUEDA_OK)
        status = open_levels(hier, place, args, census);
    return status == RUEDA_OK ? map_memory(hier) : status;
}

rueda_status rueda_hier_new(const struct rueda_place *place,
                            const struct rueda_hier_args *args,
                            struct rueda_hier **out)
{
    struct rueda_hier *hier;
    struct host_census census;
    rueda_status status = census_init(&census, args, place->mesh->size);

    if (status != RUEDA_OK)
        return status;
    hier = aligned_alloc(_Alignof(struct rueda_hier), sizeof(*hier));
    if (hier == NULL) {
        census_fini(&census);
        return RUEDA_ERR_NOMEM;
    }
    memset(hier, 0, sizeof(*hier));
    measure(hier, &census, args->host_limit);
    if (hier->hosts > 1)
        status = fill_in(hier, place, args, &census);
    census_fini(&census);
    if (status != RUEDA_OK || hier->hosts == 1) {
        rueda_hier_free(hier);
        hier = NULL;
    }
    if (status == RUEDA_OK)
        *out = hier;
    return status;
}

void rueda_hier_free(struct rueda_hier *hier)
{
    if (hier == NULL)
        return;
    for (int i = 0; i < RUEDA_HIER_LEVELS; i++)
        rueda_mesh_fini(&hier->level[i].mesh);
    if (hier->memory != NULL)
        rueda_memory_unmap(hier->memory, hier->memory_bytes);
    free(hier->counts);
    free(hier->firsts);
    free(hier->starts);
    free(hier->cross_counts);
    free(hier->parts);
    free(hier);
}
