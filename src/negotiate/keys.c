/* SPDX-License-Identifier: Apache-2.0 */
#include "negotiate/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_BUCKETS 64

struct rueda_key rueda_key_of(const char *name, uint64_t number)
{
    return (struct rueda_key){
        .hash = name != NULL ? rueda_hash(name, strlen(name), 0)
                             : rueda_hash_mix(number + 1),
        .name = name,
        .number = name != NULL ? 0 : number,
    };
}

static struct rueda_key **bucket_of(const struct rueda_keys *keys,
                                    uint64_t hash)
{
    return &keys->buckets[hash & (keys->bucket_count - 1)];
}

static bool is_same(const struct rueda_key *a, const struct rueda_key *b)
{
    if (a->hash != b->hash || (a->name == NULL) != (b->name == NULL))
        return false;
    return a->name != NULL ? strcmp(a->name, b->name) == 0
                           : a->number == b->number;
}

struct rueda_key *rueda_keys_find(const struct rueda_keys *keys,
                                  const struct rueda_key *wanted)
{
    struct rueda_key *key;

    if (keys->count == 0)
        return NULL;
    key = *bucket_of(keys, wanted->hash);
    while (key != NULL && !is_same(key, wanted))
        key = key->next;
    return key;
}

static void put(struct rueda_keys *keys, struct rueda_key *key)
{
    struct rueda_key **bucket = bucket_of(keys, key->hash);

    key->next = *bucket;
    *bucket = key;
}

/* Twice as many buckets. */
static rueda_status grow(struct rueda_keys *keys)
{
    struct rueda_keys larger = {
        .bucket_count =
            keys->bucket_count > 0 ? keys->bucket_count * 2 : FIRST_BUCKETS,
        .count = keys->count,
    };

    larger.buckets = calloc(larger.bucket_count, sizeof(struct rueda_key *));
    if (larger.buckets == NULL)
        return RUEDA_ERR_NOMEM;
    for (size_t i = 0; i < keys->bucket_count; i++) {
        struct rueda_key *key = keys->buckets[i];

        while (key != NULL) {
            struct rueda_key *next = key->next;

            put(&larger, key);
            key = next;
        }
    }
    free(keys->buckets);
    *keys = larger;
    return RUEDA_OK;
}

rueda_status rueda_keys_add(struct rueda_keys *keys, struct rueda_key *key)
{
    if (keys->count >= keys->bucket_count && grow(keys) != RUEDA_OK)
        return RUEDA_ERR_NOMEM;
    put(keys, key);
    keys->count++;
    return RUEDA_OK;
}

void rueda_keys_remove(struct rueda_keys *keys, struct rueda_key *key)
{
    struct rueda_key **at = bucket_of(keys, key->hash);

    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    keys->count--;
}

struct rueda_key *rueda_keys_any(const struct rueda_keys *keys)
{
    for (size_t i = 0; i < keys->bucket_count && keys->count > 0; i++)
        if (keys->buckets[i] != NULL)
            return keys->buckets[i];
    return NULL;
}

void rueda_keys_fini(struct rueda_keys *keys)
{
    free(keys->buckets);
    memset(keys, 0, sizeof(*keys));
}
