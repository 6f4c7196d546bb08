/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines, rings, trays and piles of a slab, as slab.h has them. Each member
 * has lines of counters that only it writes. A store has release order and a
 * load has acquire order, so a member that reads a counter also sees the data
 * before it. What all members have reached is remembered, and asked for only
 * once.
 */
#include "segment/slab.h"

#include <string.h>

#include "os/memory.h"

static size_t lines_bytes(int size)
{
    size_t bytes = (size_t)size * sizeof(struct rueda_slab_line) +
                   RUEDA_TRAYS * sizeof(struct rueda_pile);

    return (bytes + RUEDA_PAGE_BYTES - 1) & ~(RUEDA_PAGE_BYTES - 1);
}

static size_t rings_bytes(int size, size_t cell_bytes)
{
    return (size_t)size * RUEDA_CELLS * cell_bytes;
}

size_t rueda_slab_bytes(int size, size_t cell_bytes)
{
    return lines_bytes(size) + rings_bytes(size, cell_bytes) +
           (size_t)size * RUEDA_TRAYS * RUEDA_BLOCK_CELLS * cell_bytes;
}

static void set_size(struct rueda_slab *slab, int size)
{
    slab->size = size;
    slab->piles = (struct rueda_pile *)(slab->lines + size);
    slab->rings = (char *)slab->lines + lines_bytes(size);
    slab->trays = slab->rings + rings_bytes(size, slab->cell_bytes);
}

void rueda_slab_init(struct rueda_slab *slab, struct rueda_segment *segment,
                     void *at, size_t cell_bytes)
{
    memset(slab, 0, sizeof(*slab));
    slab->segment = segment;
    slab->rank = segment->me;
    slab->lines = at;
    slab->cell_bytes = cell_bytes;
    set_size(slab, segment->size);
}

void rueda_slab_init_some(struct rueda_slab *slab,
                          struct rueda_segment *segment, const int *members,
                          int size, void *at, size_t cell_bytes)
{
    rueda_slab_init(slab, segment, at, cell_bytes);
    slab->members = members;
    set_size(slab, size);
    for (int i = 0; i < size; i++)
        if (members[i] == segment->me)
            slab->rank = i;
}

/* I have written something that other members may wait for. */
static void notify(const struct rueda_slab *slab)
{
    if (slab->members == NULL)
        rueda_segment_notify_all(slab->segment);
    else
        rueda_segment_notify_some(slab->segment, slab->members, slab->size);
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_acquire);
}

static void store(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_release);
}

/* Walk over the others from where the last walk stopped; only the first that
 * lags behind is looked at again and again. Until a walk succeeds, the next one
 * must not ask for a later block. counter is the offset of theirs in a line. */
static bool all_beyond(const struct rueda_slab *slab,
                       struct rueda_cursor *cursor, uint64_t block,
                       size_t counter)
{
    if (cursor->reached > block)
        return true;
    for (; cursor->at < slab->size; cursor->at++) {
        char *line = (char *)&slab->lines[cursor->at];

        if (cursor->at != slab->rank &&
            load((_Atomic uint64_t *)(line + counter)) <= block)
            return false;
    }
    cursor->at = 0;
    cursor->reached = block + 1;
    return true;
}

bool rueda_slab_all_posted(struct rueda_slab *slab, uint64_t block)
{
    return all_beyond(slab, &slab->posted, block,
                      offsetof(struct rueda_slab_line, posted));
}

bool rueda_slab_all_reduced(struct rueda_slab *slab, uint64_t block)
{
    return all_beyond(slab, &slab->reduced, block,
                      offsetof(struct rueda_slab_line, reduced));
}

bool rueda_slab_all_tiny(struct rueda_slab *slab, uint64_t block)
{
    size_t which = (slab->tinies - 1) % RUEDA_TINY_LINES;

    return all_beyond(slab, &slab->posted, block,
                      offsetof(struct rueda_slab_line, tiny) +
                          which * sizeof(struct rueda_tiny) +
                          offsetof(struct rueda_tiny, number));
}

bool rueda_slab_has_posted(const struct rueda_slab *slab, int member,
                           uint64_t block)
{
    return load(&slab->lines[member].posted) > block;
}

void rueda_slab_post(struct rueda_slab *slab, uint64_t block)
{
    store(&slab->lines[slab->rank].posted, block + 1);
    notify(slab);
}

void rueda_slab_post_reduced(struct rueda_slab *slab, uint64_t block)
{
    store(&slab->lines[slab->rank].reduced, block + 1);
    notify(slab);
}

/* In every round of a pile its slices are taken, one for each member, and then
 * each member asks once more and gets none. */
int rueda_slab_take_slice(struct rueda_slab *slab, uint64_t pile)
{
    const uint64_t size = (uint64_t)slab->size;
    const uint64_t before = pile / RUEDA_TRAYS * 2 * size;
    const uint64_t slice =
        atomic_fetch_add_explicit(&slab->piles[pile % RUEDA_TRAYS].taken, 1,
                                  memory_order_relaxed) -
        before;

    return slice < size ? (int)slice : -1;
}

static uint64_t done_with(const struct rueda_slab *slab, uint64_t pile)
{
    return (pile / RUEDA_TRAYS + 1) * (uint64_t)slab->size;
}

void rueda_slab_did_slice(struct rueda_slab *slab, uint64_t pile)
{
    const uint64_t done =
        atomic_fetch_add_explicit(&slab->piles[pile % RUEDA_TRAYS].done, 1,
                                  memory_order_acq_rel) +
        1;

    if (done == done_with(slab, pile))
        notify(slab);
}

bool rueda_slab_did_all_slices(const struct rueda_slab *slab, uint64_t pile)
{
    return load(&slab->piles[pile % RUEDA_TRAYS].done) >= done_with(slab, pile);
}

void rueda_slab_post_tiny(struct rueda_slab *slab, uint64_t block,
                          const void *bytes, size_t len)
{
    struct rueda_slab_line *mine = &slab->lines[slab->rank];
    struct rueda_tiny *tiny = &mine->tiny[slab->tinies % RUEDA_TINY_LINES];

    slab->tinies++;
    if (len > 0)
        memcpy(tiny->bytes, bytes, len);
    store(&tiny->number, block + 1);
    store(&mine->posted, block + 1);
    notify(slab);
}

void rueda_slab_post_notice(struct rueda_slab *slab, uint64_t block,
                            const struct rueda_notice *notice)
{
    struct rueda_notice *mine = &slab->lines[slab->rank].notice;

    mine->is_shared = notice->is_shared;
    mine->send_offset = notice->send_offset;
    mine->recv_offset = notice->recv_offset;
    mine->blocks = notice->blocks;
    store(&mine->number, block + 1);
    notify(slab);
}

bool rueda_slab_all_noticed(const struct rueda_slab *slab, uint64_t block)
{
    for (int peer = 0; peer < slab->size; peer++)
        if (load(&slab->lines[peer].notice.number) <= block)
            return false;
    return true;
}

void rueda_slab_lend(struct rueda_slab *slab, uint64_t block)
{
    slab->lent = block + 1;
    store(&slab->lines[slab->rank].returned, block + 1);
    rueda_slab_post(slab, block);
}

bool rueda_slab_is_back(struct rueda_slab *slab)
{
    return slab->lent == 0 ||
           all_beyond(slab, &slab->returned, slab->lent - 1,
                      offsetof(struct rueda_slab_line, returned));
}

void rueda_slab_leave(struct rueda_slab *slab)
{
    store(&slab->lines[slab->rank].returned, UINT64_MAX);
    notify(slab);
}

void rueda_slab_forget(struct rueda_slab *slab)
{
    store(&slab->lines[slab->rank].reduced, UINT64_MAX);
    notify(slab);
}

bool rueda_slab_is_forgotten(const struct rueda_slab *slab)
{
    for (int peer = 0; peer < slab->size; peer++)
        if (peer != slab->rank &&
            load(&slab->lines[peer].reduced) != UINT64_MAX)
            return false;
    return true;
}

bool rueda_slab_has_notice(const struct rueda_slab *slab, int member,
                           uint64_t block)
{
    return load(&slab->lines[member].notice.number) == block + 1;
}
