/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in rows of the table of algorithms, and the choice. */
#include "algo/select.h"

#include <limits.h>

#include "algo/chunk.h"
#include "algo/hier.h"
#include "algo/registry.h"
#include "algo/staged.h"

#define ANY_RANKS 1, INT_MAX
#define ANY_BYTES 0, SIZE_MAX
#define HOST      RUEDA_SELECT_HOST
#define HOSTS     RUEDA_SELECT_HOSTS
#define ANYWHERE  RUEDA_SELECT_ANYWHERE

/* Between hosts a short vector costs steps, a long one bytes. Of two ranks'
 * ways to exchange whole vectors and parts, the first is the quicker one up to
 * a length of 1.5 to 4 times what a link carries in its latency: some 40 to
 * 100 KiB by TCP. */
#define SHORT ((size_t)32 << 10)
#define LONG  ((size_t)512 << 10)

/* Where hosts have several ranks, from here on the bytes that `hier` saves
 * between hosts outweigh its two stages inside each: two hosts of two ranks,
 * against a ring, take 0.9 of the time at 16 KiB, and as long at 4 KiB. */
#define STAGED ((size_t)16 << 10)

/* The same of a rank's piece of an allgather: a ring brings as few bytes to a
 * host, but over one connection, and by messages inside. From here on it takes
 * 1.3 to 2 times as long, and below about as long. */
#define GATHERED ((size_t)4 << 10)

/* In a host nothing beats `direct`, which reads the other ranks' numbers where
 * they are. */
const struct rueda_select_row rueda_select_defaults[] = {
    {RUEDA_ALLREDUCE, ANY_RANKS, ANY_BYTES, HOST, "direct", 100},
    {RUEDA_ALLGATHER, ANY_RANKS, ANY_BYTES, HOST, "direct", 100},
    {RUEDA_BROADCAST, ANY_RANKS, ANY_BYTES, HOST, "direct", 100},
    {RUEDA_ALLTOALL, ANY_RANKS, ANY_BYTES, HOST, "direct", 100},
    {RUEDA_REDUCE_SCATTER, ANY_RANKS, ANY_BYTES, HOST, "direct", 100},
    {RUEDA_BARRIER, ANY_RANKS, ANY_BYTES, HOST, "direct", 100},

    {RUEDA_ALLREDUCE, ANY_RANKS, STAGED, SIZE_MAX, HOSTS, "hier", 100},
    {RUEDA_ALLGATHER, ANY_RANKS, GATHERED, SIZE_MAX, HOSTS, "hier", 100},

    {RUEDA_ALLREDUCE, ANY_RANKS, 0, SHORT, ANYWHERE, "doubling", 50},
    {RUEDA_ALLREDUCE, ANY_RANKS, SHORT, LONG, ANYWHERE, "halving_doubling", 50},
    {RUEDA_ALLREDUCE, ANY_RANKS, LONG, SIZE_MAX, ANYWHERE, "ring", 50},
    {RUEDA_ALLREDUCE, ANY_RANKS, ANY_BYTES, ANYWHERE, "adasum", 50},
    {RUEDA_ALLGATHER, ANY_RANKS, ANY_BYTES, ANYWHERE, "ring", 50},
    {RUEDA_REDUCE_SCATTER, ANY_RANKS, ANY_BYTES, ANYWHERE, "ring", 50},
    {RUEDA_BROADCAST, ANY_RANKS, ANY_BYTES, ANYWHERE, "tree", 50},
    {RUEDA_ALLTOALL, ANY_RANKS, ANY_BYTES, ANYWHERE, "pairwise", 50},
    {RUEDA_BARRIER, ANY_RANKS, ANY_BYTES, ANYWHERE, "dissemination", 50},
    {.algo = NULL},
};

void rueda_select_init(struct rueda_select *select)
{
    select->added_count = 0;
    select->flat = 0;
}

/* What of the size all ranks know. */
static size_t agreed_bytes(const struct rueda_place *place,
                           const struct rueda_coll *coll)
{
    const int size = place->mesh->size;

    switch (coll->kind) {
    case RUEDA_ALLREDUCE:
    case RUEDA_BROADCAST:
        return coll->count * coll->elem_bytes;
    case RUEDA_ALLGATHER:
    case RUEDA_REDUCE_SCATTER:
        return rueda_chunk_total(coll->recv_counts, coll->count, size) /
               (size_t)size * coll->elem_bytes;
    case RUEDA_ALLTOALL:
    case RUEDA_BARRIER:
    case RUEDA_JOIN:
    case RUEDA_SEND:
    case RUEDA_RECV:
        break;
    }
    return 0;
}

/* Can it be done in stages, and may it? An allgather only where the data of a
 * host follow one another. */
static bool has_stages(const struct rueda_select *select,
                       const struct rueda_place *place,
                       const struct rueda_coll *coll)
{
    return place->hier != NULL && (select->flat >> coll->kind & 1u) == 0 &&
           (coll->kind != RUEDA_ALLGATHER || place->hier->firsts != NULL);
}

/* Does every transport of the mesh reach the memory of the device? */
static bool can_send_from(const struct rueda_mesh *mesh,
                          const struct rueda_device *device)
{
    return (mesh->memory & device->ops->memory) != 0;
}

/* Do the bytes get to the other members? */
static bool can_reach(const struct rueda_algo *algo,
                      const struct rueda_place *place,
                      const struct rueda_coll *coll)
{
    if (algo->can_run != NULL)
        return algo->can_run(place, coll);
    return algo->needs_slab ? place->slab != NULL
                            : can_send_from(place->mesh, place->device);
}

static bool can_run(const struct rueda_algo *algo,
                    const struct rueda_select *select,
                    const struct rueda_place *place,
                    const struct rueda_coll *coll)
{
    const bool is_adasum =
        coll->kind == RUEDA_ALLREDUCE && coll->arith.reduction == RUEDA_ADASUM;

    return (algo->kinds >> coll->kind & 1u) != 0 &&
           (algo->memory & place->device->ops->memory) != 0 &&
           can_reach(algo, place, coll) &&
           (!algo->needs_hier || has_stages(select, place, coll)) &&
           algo->does_adasum == is_adasum;
}

static unsigned where_is(const struct rueda_place *place)
{
    if (place->slab != NULL)
        return RUEDA_SELECT_HOST;
    if (place->hier != NULL && place->hier->most > 1)
        return RUEDA_SELECT_NET | RUEDA_SELECT_HOSTS;
    return RUEDA_SELECT_NET;
}

static bool row_fits(const struct rueda_select_row *row,
                     const struct rueda_place *place,
                     const struct rueda_coll *coll)
{
    const size_t bytes = agreed_bytes(place, coll);
    const int size = place->mesh->size;

    return row->kind == coll->kind && row->ranks_from <= size &&
           size <= row->ranks_to && row->bytes_from <= bytes &&
           (bytes < row->bytes_to || row->bytes_to == SIZE_MAX) &&
           (row->where & where_is(place)) != 0;
}

struct choice {
    const struct rueda_algo *algo;
    int score;
};

/* Take the row's algorithm if it can run and nothing is worth more. */
static void consider(const struct rueda_select_row *row,
                     const struct rueda_select *select,
                     const struct rueda_place *place,
                     const struct rueda_coll *coll, struct choice *choice)
{
    const struct rueda_algo *algo;

    if (row->score < choice->score || !row_fits(row, place, coll))
        return;
    algo = rueda_algo_find(row->algo);
    if (algo == NULL || !can_run(algo, select, place, coll))
        return;
    choice->algo = algo;
    choice->score = row->score;
}

const struct rueda_algo *rueda_select_choose(const struct rueda_select *select,
                                             const struct rueda_place *place,
                                             const struct rueda_coll *coll)
{
    const struct rueda_algo *const *own = place->device->algos;
    const struct rueda_select_row *row;
    struct choice choice = {NULL, INT_MIN};

    if (coll->compression != RUEDA_COMPRESS_NONE && place->hier != NULL)
        return &rueda_algo_hier;
    for (; own != NULL && *own != NULL; own++)
        if (can_run(*own, select, place, coll))
            return *own;
    if (place->staging != NULL)
        return rueda_mapped_fits(place, coll) && !rueda_staged_is_short(coll)
                   ? &rueda_algo_mapped
                   : &rueda_algo_staged;
    for (row = rueda_select_defaults; row->algo != NULL; row++)
        consider(row, select, place, coll, &choice);
    for (int i = 0; i < select->added_count; i++)
        consider(&select->added[i], select, place, coll, &choice);
    return choice.algo;
}
