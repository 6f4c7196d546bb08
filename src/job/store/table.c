/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store/table.h"

#include <stdlib.h>

#define FIRST_SIZE 64

#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

rueda_status rueda_store_table_init(struct rueda_store_table *table)
{
    table->buckets = calloc(FIRST_SIZE, sizeof(struct rueda_store_link *));
    if (table->buckets == NULL)
        return RUEDA_ERR_NOMEM;
    table->size = FIRST_SIZE;
    table->count = 0;
    return RUEDA_OK;
}

void rueda_store_table_fini(struct rueda_store_table *table)
{
    free(table->buckets);
    *table = (struct rueda_store_table){0};
}

static struct rueda_store_link **
bucket_of(const struct rueda_store_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->size - 1)];
}

static void push(struct rueda_store_table *table, struct rueda_store_link *link)
{
    struct rueda_store_link **bucket = bucket_of(table, link->hash);

    link->next = *bucket;
    *bucket = link;
}

static void grow(struct rueda_store_table *table)
{
    struct rueda_store_table wider = {.size = table->size * 2,
                                      .count = table->count};

    wider.buckets = calloc(wider.size, sizeof(struct rueda_store_link *));
    if (wider.buckets == NULL)
        return;
    for (size_t i = 0; i < table->size; i++) {
        struct rueda_store_link *link = table->buckets[i];

        while (link != NULL) {
            struct rueda_store_link *next = link->next;

            push(&wider, link);
            link = next;
        }
    }
    free(table->buckets);
    *table = wider;
}

void rueda_store_table_add(struct rueda_store_table *table,
                           struct rueda_store_link *link, uint64_t hash)
{
    if (table->count >= table->size)
        grow(table);
    link->hash = hash;
    push(table, link);
    table->count++;
}

void rueda_store_table_remove(struct rueda_store_table *table,
                              struct rueda_store_link *link)
{
    struct rueda_store_link **at = bucket_of(table, link->hash);

    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    table->count--;
}

static struct rueda_store_link *seek(struct rueda_store_link *link,
                                     uint64_t hash)
{
    while (link != NULL && link->hash != hash)
        link = link->next;
    return link;
}

struct rueda_store_link *
rueda_store_table_first(const struct rueda_store_table *table, uint64_t hash)
{
    return seek(*bucket_of(table, hash), hash);
}

struct rueda_store_link *
rueda_store_table_next(const struct rueda_store_link *link)
{
    return seek(link->next, link->hash);
}

uint64_t rueda_store_hash(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = FNV_BASIS ^ seed;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * FNV_PRIME;
    hash ^= hash >> 32;
    hash *= FNV_PRIME;
    return hash ^ hash >> 29;
}
