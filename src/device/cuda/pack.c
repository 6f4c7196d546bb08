/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing on a GPU: all parts of a gather or scatter are moved by one launch of
 * one kernel, which reads from a table of pieces where each comes from and goes
 * to. A training step packs the same tensors as the step before, so tables stay
 * on the GPU; the same list of pieces is uploaded once.
 *
 * A table is used by one row of work after another: each use waits, on the GPU,
 * for the event behind the one before, and records it again. A table whose
 * event has been reached is free for another list, the oldest first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/cuda/cuda_state.h"

enum {
    TABLES = 64 /* that are kept; more only while all of them are in use */
};

/* ---- The list of pieces ----------------------------------------------- */

static bool grow(struct rueda_cuda *cuda, int count)
{
    const int room = 2 * count + 1024;
    struct rueda_cuda_piece *scratch;

    if (count <= cuda->scratch_room)
        return true;
    scratch = realloc(cuda->scratch, (size_t)room * sizeof(*scratch));
    if (scratch == NULL)
        return false;
    cuda->scratch = scratch;
    cuda->scratch_room = room;
    return true;
}

/* Cut what is moved in pieces behind `count` of them; less than 0: no memory.
 */
static int add(struct rueda_cuda *cuda, int count, char *dst, const char *src,
               size_t bytes)
{
    const size_t pieces = (bytes + RUEDA_CUDA_PIECE - 1) / RUEDA_CUDA_PIECE;

    if (count < 0 || pieces > (size_t)(1 << 28) - (size_t)count ||
        !grow(cuda, count + (int)pieces))
        return -1;
    for (size_t at = 0; at < bytes; at += RUEDA_CUDA_PIECE) {
        const size_t left = bytes - at;

        cuda->scratch[count++] = (struct rueda_cuda_piece){
            .dst = dst + at,
            .src = src != NULL ? src + at : NULL,
            .bytes = left < RUEDA_CUDA_PIECE ? left : RUEDA_CUDA_PIECE,
        };
    }
    return count;
}

/* ---- Tables ----------------------------------------------------------- */

/* By count and hash, and then byte by byte: a wrong table would move wrong
 * memory. */
static struct rueda_cuda_table *find(const struct rueda_cuda *cuda, int count,
                                     uint64_t hash)
{
    struct rueda_cuda_table *table = cuda->tables;

    while (table != NULL &&
           (table->count != count || table->hash != hash ||
            memcmp(table->pieces, cuda->scratch,
                   (size_t)count * sizeof(*table->pieces)) != 0))
        table = table->next;
    return table;
}

/* The one that was not used for the longest time and that nothing uses, or
 * NULL: a new one is better. */
static struct rueda_cuda_table *find_free(const struct rueda_cuda *cuda)
{
    struct rueda_cuda_table *oldest = NULL;

    if (cuda->table_count < TABLES)
        return NULL;
    for (struct rueda_cuda_table *table = cuda->tables; table != NULL;
         table = table->next)
        if ((oldest == NULL || table->used < oldest->used) &&
            cuda->driver.event_query(table->event) == RUEDA_CUDA_SUCCESS)
            oldest = table;
    return oldest;
}

static rueda_cuda_result table_new(struct rueda_cuda *cuda,
                                   struct rueda_cuda_table **out)
{
    struct rueda_cuda_table *table = calloc(1, sizeof(*table));
    rueda_cuda_result result;

    if (table == NULL)
        return RUEDA_CUDA_OUT_OF_MEMORY;
    result = cuda->driver.event_create(&table->event, RUEDA_CUDA_NO_TIMING);
    if (result != RUEDA_CUDA_SUCCESS) {
        free(table);
        return result;
    }
    table->next = cuda->tables;
    cuda->tables = table;
    cuda->table_count++;
    *out = table;
    return RUEDA_CUDA_SUCCESS;
}

static void table_empty(const struct rueda_cuda *cuda,
                        struct rueda_cuda_table *table)
{
    if (table->pieces != NULL)
        cuda->driver.host_free(table->pieces);
    if (table->copy != NULL)
        cuda->driver.free(table->copy);
    table->pieces = NULL;
    table->copy = NULL;
    table->room = 0;
    table->count = 0;
}

void rueda_cuda_tables_fini(struct rueda_cuda *cuda)
{
    struct rueda_cuda_table *next;

    for (struct rueda_cuda_table *table = cuda->tables; table != NULL;
         table = next) {
        next = table->next;
        table_empty(cuda, table);
        cuda->driver.event_destroy(table->event);
        free(table);
    }
    free(cuda->scratch);
}

/* On failure the table is empty and can be used again. */
static rueda_cuda_result table_grow(const struct rueda_cuda *cuda,
                                    struct rueda_cuda_table *table, int count)
{
    const int room = count + count / 2 + 64;
    const size_t bytes = (size_t)room * sizeof(*table->pieces);
    rueda_cuda_result result;

    if (count <= table->room)
        return RUEDA_CUDA_SUCCESS;
    table_empty(cuda, table);
    result = cuda->driver.host_alloc((void **)&table->pieces, bytes, 0);
    if (result == RUEDA_CUDA_SUCCESS)
        result = cuda->driver.alloc((void **)&table->copy, bytes);
    if (result == RUEDA_CUDA_SUCCESS)
        table->room = room;
    return result;
}

/* The table with the list in scratch, on the GPU as far as the row's stream is
 * concerned. */
static rueda_cuda_result need_table(const struct rueda_cuda_scope *scope,
                                    int count, struct rueda_cuda_table **out)
{
    struct rueda_cuda *cuda = scope->cuda;
    const size_t bytes = (size_t)count * sizeof(*cuda->scratch);
    const uint64_t hash = rueda_hash(cuda->scratch, bytes, 0);
    struct rueda_cuda_table *table = find(cuda, count, hash);
    rueda_cuda_result result = RUEDA_CUDA_SUCCESS;

    *out = table;
    if (table != NULL)
        return cuda->driver.stream_wait(scope->row->stream, table->event, 0);
    table = find_free(cuda);
    if (table == NULL)
        result = table_new(cuda, &table);
    if (result == RUEDA_CUDA_SUCCESS)
        result = table_grow(cuda, table, count);
    if (result != RUEDA_CUDA_SUCCESS)
        return result;
    memcpy(table->pieces, cuda->scratch, bytes);
    table->count = count;
    table->hash = hash;
    *out = table;
    result = cuda->driver.copy(table->copy, table->pieces, bytes,
                               scope->row->stream);
    if (result != RUEDA_CUDA_SUCCESS)
        table->count = 0; /* what is there is in no state to be found */
    return result;
}

/* Move the list in scratch; under the lock, which also keeps the order of uses
 * of a table the same for its event and on the GPU. */
static rueda_cuda_result move(const struct rueda_cuda_scope *scope, int count)
{
    struct rueda_cuda *cuda = scope->cuda;
    struct rueda_cuda_table *table = NULL;
    struct rueda_cuda_move args;
    rueda_cuda_result result;

    if (count < 0)
        return RUEDA_CUDA_OUT_OF_MEMORY;
    result = need_table(scope, count, &table);
    if (result != RUEDA_CUDA_SUCCESS)
        return result;
    table->used = ++cuda->calls;
    args.pieces = table->copy;
    result = rueda_cuda_launch(scope, RUEDA_CUDA_MOVE, (uint64_t)count, &args);
    if (result == RUEDA_CUDA_SUCCESS)
        result = cuda->driver.event_record(table->event, scope->row->stream);
    return result;
}

/* ---- The calls -------------------------------------------------------- */

static int list_gather(struct rueda_cuda *cuda, char *slab,
                       const struct rueda_part *parts, int count)
{
    size_t end = count > 0 ? parts[0].at : 0;
    int pieces = 0;

    for (const struct rueda_part *part = parts; part < parts + count; part++) {
        if (part->at > end)
            pieces = add(cuda, pieces, slab + end, NULL, part->at - end);
        pieces = add(cuda, pieces, slab + part->at, part->send, part->bytes);
        end = part->at + part->bytes;
    }
    return pieces;
}

static int list_scatter(struct rueda_cuda *cuda, const char *slab,
                        const struct rueda_part *parts, int count)
{
    int pieces = 0;

    for (const struct rueda_part *part = parts; part < parts + count; part++)
        if (part->recv != NULL)
            pieces =
                add(cuda, pieces, part->recv, slab + part->at, part->bytes);
    return pieces;
}

rueda_status rueda_cuda_gather(const struct rueda_device *device,
                               struct rueda_work *work, char *slab,
                               const struct rueda_part *parts, int count)
{
    struct rueda_cuda *cuda = rueda_cuda_of(device);
    struct rueda_cuda_scope scope;
    int pieces;

    rueda_cuda_begin(device, work, &scope);
    pthread_mutex_lock(&cuda->lock);
    pieces = list_gather(cuda, slab, parts, count);
    if (scope.result == RUEDA_CUDA_SUCCESS && pieces != 0)
        scope.result = move(&scope, pieces);
    pthread_mutex_unlock(&cuda->lock);
    return rueda_cuda_end(&scope, scope.result, "packing");
}

rueda_status rueda_cuda_scatter(const struct rueda_device *device,
                                struct rueda_work *work, const char *slab,
                                const struct rueda_part *parts, int count)
{
    struct rueda_cuda *cuda = rueda_cuda_of(device);
    struct rueda_cuda_scope scope;
    int pieces;

    rueda_cuda_begin(device, work, &scope);
    pthread_mutex_lock(&cuda->lock);
    pieces = list_scatter(cuda, slab, parts, count);
    if (scope.result == RUEDA_CUDA_SUCCESS && pieces != 0)
        scope.result = move(&scope, pieces);
    pthread_mutex_unlock(&cuda->lock);
    return rueda_cuda_end(&scope, scope.result, "unpacking");
}
