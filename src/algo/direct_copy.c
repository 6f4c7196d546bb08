/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that only move data: broadcast, allgather and alltoall. */
#include <string.h>

#include "algo/direct.h"

static uint64_t blocks_for(size_t bytes, size_t block_bytes)
{
    return (bytes + block_bytes - 1) / block_bytes;
}

/* ---- Broadcast -------------------------------------------------------- */

static size_t broadcast_bytes(const struct rueda_direct *direct)
{
    return direct->coll->count * direct->coll->elem_bytes;
}

static uint64_t broadcast_blocks(const struct rueda_direct *direct)
{
    return blocks_for(broadcast_bytes(direct), direct->block_bytes);
}

static void broadcast_publish(const struct rueda_direct *direct, uint64_t i)
{
    size_t most = direct->block_bytes;
    size_t begin = i * most;

    rueda_direct_write(direct, i,
                       rueda_direct_at(direct, direct->slab->rank, i),
                       (const char *)direct->coll->send + begin,
                       rueda_part(broadcast_bytes(direct), begin, most));
}

static void broadcast_fetch(const struct rueda_direct *direct, uint64_t i)
{
    size_t most = direct->block_bytes;
    size_t begin = i * most;
    size_t part = rueda_part(broadcast_bytes(direct), begin, most);
    char *recv = (char *)direct->coll->recv + begin;

    if (direct->coll->root != direct->slab->rank)
        memcpy(recv, rueda_direct_at(direct, direct->coll->root, i), part);
    else if (direct->coll->recv != direct->coll->send)
        memcpy(recv, (const char *)direct->coll->send + begin, part);
}

static void broadcast_share(const struct rueda_direct *direct)
{
    if (direct->coll->recv != direct->coll->send ||
        direct->coll->root != direct->slab->rank)
        memcpy(direct->coll->recv,
               rueda_direct_sent(direct, direct->coll->root),
               broadcast_bytes(direct));
}

const struct rueda_shape rueda_shape_broadcast = {
    .bytes = broadcast_bytes,
    .blocks = broadcast_blocks,
    .publish = broadcast_publish,
    .fetch = broadcast_fetch,
    .share = broadcast_share,
    .is_from_root = true,
};

/* ---- Pieces of allgather and alltoall --------------------------------- */

static size_t recv_bytes(const struct rueda_coll *coll, int member)
{
    return rueda_piece_bytes(coll, coll->recv_counts, member);
}

static size_t send_bytes(const struct rueda_coll *coll, int member)
{
    return rueda_piece_bytes(coll, coll->send_counts, member);
}

static size_t longest_recv(const struct rueda_direct *direct)
{
    return rueda_piece_longest(direct, direct->coll->recv_counts);
}

/* ---- Allgather -------------------------------------------------------- */

static uint64_t allgather_blocks(const struct rueda_direct *direct)
{
    return blocks_for(longest_recv(direct), direct->block_bytes);
}

static void allgather_publish(const struct rueda_direct *direct, uint64_t i)
{
    int rank = direct->slab->rank;
    size_t most = direct->block_bytes;
    size_t part = rueda_part(recv_bytes(direct->coll, rank), i * most, most);

    if (part > 0)
        rueda_direct_write(direct, i, rueda_direct_at(direct, rank, i),
                           (const char *)direct->coll->send + i * most, part);
}

static void allgather_fetch(const struct rueda_direct *direct, uint64_t i)
{
    size_t most = direct->block_bytes;
    size_t begin = i * most;
    char *piece = direct->coll->recv;

    for (int member = 0; member < direct->slab->size; member++) {
        size_t bytes = recv_bytes(direct->coll, member);
        size_t part = rueda_part(bytes, begin, most);
        const char *from = rueda_direct_at(direct, member, i);

        if (member == direct->slab->rank)
            from = (const char *)direct->coll->send + begin;
        if (part > 0 && from != piece + begin)
            memcpy(piece + begin, from, part);
        piece += bytes;
    }
}

void rueda_direct_gather_parts(const struct rueda_direct *direct)
{
    for (int i = 0; i < direct->coll->part_count; i++) {
        const struct rueda_part *part = &direct->coll->parts[i];

        if (part->recv != NULL && part->bytes > 0)
            memcpy(part->recv, rueda_direct_sent(direct, part->from) + part->at,
                   part->bytes);
    }
}

/* Beginning with my right neighbour, so that not all read from one member. */
static void allgather_share(const struct rueda_direct *direct)
{
    const int size = direct->slab->size;

    for (int step = 0; step < size; step++) {
        int member = (direct->slab->rank + step) % size;
        size_t bytes = recv_bytes(direct->coll, member);
        char *piece =
            (char *)direct->coll->recv +
            rueda_piece_offset(direct->coll, direct->coll->recv_counts, member);
        const char *from = rueda_direct_sent(direct, member);

        if (bytes > 0 && from != piece)
            memcpy(piece, from, bytes);
    }
}

const struct rueda_shape rueda_shape_allgather = {
    .bytes = longest_recv,
    .blocks = allgather_blocks,
    .publish = allgather_publish,
    .fetch = allgather_fetch,
    .share = allgather_share,
};

/* ---- Alltoall --------------------------------------------------------- */

/* What two others exchange is known to them alone: hence whole blocks, and the
 * notice. */
static size_t alltoall_bytes(const struct rueda_direct *direct)
{
    (void)direct;
    return SIZE_MAX;
}

static uint64_t alltoall_blocks(const struct rueda_direct *direct)
{
    size_t received = longest_recv(direct);
    size_t sent = rueda_piece_longest(direct, direct->coll->send_counts);

    return blocks_for(sent > received ? sent : received, direct->chunk_bytes);
}

static void alltoall_publish(const struct rueda_direct *direct, uint64_t i)
{
    char *own = rueda_direct_at(direct, direct->slab->rank, i);
    const char *piece = direct->coll->send;
    size_t begin = i * direct->chunk_bytes;

    for (int member = 0; member < direct->slab->size; member++) {
        size_t bytes = send_bytes(direct->coll, member);
        size_t part = rueda_part(bytes, begin, direct->chunk_bytes);

        if (member != direct->slab->rank && part > 0)
            rueda_direct_write(direct, i,
                               own + (size_t)member * direct->chunk_bytes,
                               piece + begin, part);
        piece += bytes;
    }
}

static const char *own_piece(const struct rueda_direct *direct)
{
    return (const char *)direct->coll->send +
           rueda_piece_offset(direct->coll, direct->coll->send_counts,
                              direct->slab->rank);
}

static void alltoall_fetch(const struct rueda_direct *direct, uint64_t i)
{
    size_t rank = (size_t)direct->slab->rank;
    size_t begin = i * direct->chunk_bytes;
    char *piece = direct->coll->recv;

    for (int member = 0; member < direct->slab->size; member++) {
        size_t bytes = recv_bytes(direct->coll, member);
        size_t part = rueda_part(bytes, begin, direct->chunk_bytes);
        const char *from =
            rueda_direct_at(direct, member, i) + rank * direct->chunk_bytes;

        if (member == direct->slab->rank)
            from = own_piece(direct) + begin;
        if (part > 0)
            memcpy(piece + begin, from, part);
        piece += bytes;
    }
}

/* Equal pieces, or the others' places in theirs would not be known. */
static void alltoall_share(const struct rueda_direct *direct)
{
    const size_t bytes = direct->coll->count * direct->coll->elem_bytes;
    const size_t rank = (size_t)direct->slab->rank;
    const size_t size = (size_t)direct->slab->size;

    for (size_t step = 0; bytes > 0 && step < size; step++) {
        size_t member = (rank + step) % size;

        memcpy((char *)direct->coll->recv + member * bytes,
               rueda_direct_sent(direct, (int)member) + rank * bytes, bytes);
    }
}

const struct rueda_shape rueda_shape_alltoall = {
    .bytes = alltoall_bytes,
    .blocks = alltoall_blocks,
    .needs_notice = true,
    .publish = alltoall_publish,
    .fetch = alltoall_fetch,
    .share = alltoall_share,
};
