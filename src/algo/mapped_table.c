/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which allocations of which rank are mapped where. The rank that owns them
 * keeps the account: it gives each a row, tells the others the row with every
 * buffer, and tells them which rows to let go of. So all know the same.
 *
 * An allocation is told from a later one at the same address by its number. One
 * that the program frees stays in the GPU until all have let go of it; the
 * owner looks for such whenever it offers a new one.
 */
#include <stdlib.h>
#include <string.h>

#include "algo/mapped.h"

rueda_status rueda_mapped_table_init(struct rueda_mapped_table *table,
                                     const struct rueda_device *device,
                                     int size, int me)
{
    memset(table, 0, sizeof(*table));
    table->device = device;
    table->size = size;
    table->me = me;
    table->theirs = calloc((size_t)size * RUEDA_MAPPED_ROWS,
                           sizeof(struct rueda_mapped_theirs));
    return table->theirs != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

static struct rueda_mapped_theirs *row_of(const struct rueda_mapped_table *t,
                                          int member, uint64_t row)
{
    return &t->theirs[(size_t)member * RUEDA_MAPPED_ROWS + row];
}

static void let_go(struct rueda_mapped_table *table,
                   struct rueda_mapped_theirs *theirs)
{
    if (theirs->at != NULL)
        table->device->ops->unreach(table->device, &theirs->memory, theirs->at);
    theirs->at = NULL;
}

void rueda_mapped_table_fini(struct rueda_mapped_table *table)
{
    for (int i = 0; table->theirs != NULL && i < table->size; i++)
        rueda_mapped_drop(table, i, UINT64_MAX);
    free(table->theirs);
    table->theirs = NULL;
}

/* ---- Mine ------------------------------------------------------------- */

static bool is_free(const struct rueda_mapped_mine *mine)
{
    return mine->memory.region.bytes == 0;
}

static int find(const struct rueda_mapped_table *table,
                const struct rueda_region *region)
{
    for (int i = 0; i < RUEDA_MAPPED_ROWS; i++)
        if (!is_free(&table->mine[i]) &&
            table->mine[i].memory.region.id == region->id)
            return i;
    return -1;
}

/* Free the rows whose allocation is no more. */
static uint64_t sweep(struct rueda_mapped_table *table)
{
    uint64_t dropped = 0;

    for (int i = 0; i < RUEDA_MAPPED_ROWS; i++) {
        struct rueda_mapped_mine *mine = &table->mine[i];
        const void *base = mine->memory.region.base;
        struct rueda_region now;

        if (is_free(mine) || (table->device->ops->region(table->device, base,
                                                         &now) == RUEDA_OK &&
                              now.id == mine->memory.region.id))
            continue;
        memset(mine, 0, sizeof(*mine));
        dropped |= (uint64_t)1 << i;
    }
    return dropped;
}

/* A row that is free, or else was not used for longest; -1: this task needs
 * them all. */
static int choose_row(const struct rueda_mapped_table *table)
{
    int chosen = 0;

    for (int i = 0; i < RUEDA_MAPPED_ROWS; i++) {
        if (is_free(&table->mine[i]))
            return i;
        if (table->mine[i].used < table->mine[chosen].used)
            chosen = i;
    }
    return table->mine[chosen].used < table->task ? chosen : -1;
}

static rueda_status add(struct rueda_mapped_table *table,
                        const struct rueda_region *region, int *out_row,
                        struct rueda_mapped_changes *changes,
                        struct rueda_text *why)
{
    struct rueda_shared memory;
    rueda_status status =
        table->device->ops->share(table->device, region, &memory, why);

    if (status != RUEDA_OK)
        return status;
    changes->dropped |= sweep(table);
    *out_row = choose_row(table);
    if (*out_row < 0)
        return RUEDA_ERR_LIMIT;
    table->mine[*out_row] = (struct rueda_mapped_mine){.memory = memory};
    return RUEDA_OK;
}

/* Others are to map it with this task. */
static rueda_status announce(const struct rueda_mapped_table *table, int row,
                             struct rueda_mapped_changes *changes)
{
    for (uint64_t i = 0; i < changes->count; i++)
        if (changes->rows[i] == (uint64_t)row)
            return RUEDA_OK;
    if (changes->count == RUEDA_MAPPED_FRESH)
        return RUEDA_ERR_LIMIT;
    changes->rows[changes->count] = (uint64_t)row;
    changes->memory[changes->count++] = table->mine[row].memory;
    return RUEDA_OK;
}

rueda_status rueda_mapped_offer(struct rueda_mapped_table *table,
                                const void *buffer,
                                struct rueda_mapped_buffer *out,
                                struct rueda_mapped_changes *changes,
                                struct rueda_text *why)
{
    const struct rueda_device *device = table->device;
    struct rueda_region region;
    rueda_status status = device->ops->region(device, buffer, &region);
    int row;

    if (status != RUEDA_OK) {
        rueda_text_add(why, "the driver does not know the memory of a tensor");
        return status;
    }
    row = find(table, &region);
    if (row < 0)
        status = add(table, &region, &row, changes, why);
    if (status == RUEDA_OK && !table->mine[row].is_mapped)
        status = announce(table, row, changes);
    if (status != RUEDA_OK)
        return status;
    table->mine[row].used = table->task;
    *out = (struct rueda_mapped_buffer){
        .id = region.id,
        .row = (uint64_t)row,
        .at = (uint64_t)((const char *)buffer - (const char *)region.base),
    };
    return RUEDA_OK;
}

void rueda_mapped_taken(struct rueda_mapped_table *table,
                        const struct rueda_mapped_changes *changes)
{
    for (uint64_t i = 0; i < changes->count; i++)
        table->mine[changes->rows[i]].is_mapped = true;
}

/* ---- Theirs ----------------------------------------------------------- */

void rueda_mapped_drop(struct rueda_mapped_table *table, int member,
                       uint64_t rows)
{
    for (uint32_t i = 0; rows != 0; i++, rows >>= 1)
        if ((rows & 1) != 0)
            let_go(table, row_of(table, member, i));
}

static rueda_status take(struct rueda_mapped_table *table,
                         struct rueda_mapped_theirs *theirs,
                         const struct rueda_shared *memory,
                         struct rueda_text *why)
{
    rueda_status status;

    if (theirs->at != NULL && theirs->memory.region.id == memory->region.id &&
        theirs->memory.region.base == memory->region.base)
        return RUEDA_OK;
    let_go(table, theirs);
    status = table->device->ops->reach(table->device, memory, &theirs->at, why);
    if (status == RUEDA_OK)
        theirs->memory = *memory;
    return status;
}

rueda_status rueda_mapped_take(struct rueda_mapped_table *table, int member,
                               const struct rueda_mapped_changes *changes,
                               struct rueda_text *why)
{
    rueda_status status = RUEDA_OK;

    if (member == table->me)
        return RUEDA_OK;
    for (uint64_t i = 0;
         i < changes->count && i < RUEDA_MAPPED_FRESH && status == RUEDA_OK;
         i++) {
        if (changes->rows[i] >= RUEDA_MAPPED_ROWS) {
            rueda_text_add(why, "member %d names row %llu", member,
                           (unsigned long long)changes->rows[i]);
            return RUEDA_ERR_MISMATCH;
        }
        status = take(table, row_of(table, member, changes->rows[i]),
                      &changes->memory[i], why);
    }
    return status;
}

void *rueda_mapped_at(const struct rueda_mapped_table *table, int member,
                      const struct rueda_mapped_buffer *buffer, size_t bytes)
{
    const struct rueda_mapped_theirs *theirs;

    if (buffer->row >= RUEDA_MAPPED_ROWS)
        return NULL;
    theirs = row_of(table, member, buffer->row);
    if (theirs->at == NULL || theirs->memory.region.id != buffer->id ||
        buffer->at > theirs->memory.region.bytes ||
        theirs->memory.region.bytes - buffer->at < bytes)
        return NULL;
    return (char *)theirs->at + buffer->at;
}
