/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/timeline_names.h"

#include <stdlib.h>
#include <string.h>

#include "trace/timeline_wire.h"

#define FIRST_ROOM 256

/* FNV-1a. */
uint64_t rueda_timeline_hash(const char *text, size_t len)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

/* Where a text is, or would be; at least half of the buckets are free. */
static uint32_t *bucket_of(const struct rueda_timeline_names *self,
                           uint64_t hash, const char *text, size_t len)
{
    const uint32_t mask = 2 * self->room - 1;

    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        const struct rueda_timeline_name *name;

        if (self->buckets[i] == 0)
            return &self->buckets[i];
        name = &self->names[self->buckets[i] - 1];
        if (name->hash == hash && name->len == len &&
            memcmp(name->text, text, len) == 0)
            return &self->buckets[i];
    }
}

static bool grow(struct rueda_timeline_names *self)
{
    const uint32_t room = self->room > 0 ? 2 * self->room : FIRST_ROOM;
    uint32_t *buckets = calloc(2 * (size_t)room, sizeof(*buckets));
    struct rueda_timeline_name *names;

    if (buckets == NULL)
        return false;
    names = realloc(self->names, room * sizeof(*names));
    if (names == NULL) {
        free(buckets);
        return false;
    }
    free(self->buckets);
    self->names = names;
    self->buckets = buckets;
    self->room = room;
    for (uint32_t i = 0; i < self->count; i++)
        *bucket_of(self, names[i].hash, names[i].text, names[i].len) = i + 1;
    return true;
}

uint32_t rueda_timeline_names_get(struct rueda_timeline_names *self,
                                  const char *text, size_t len)
{
    const uint64_t hash = rueda_timeline_hash(text, len);
    struct rueda_timeline_name *name;
    uint32_t *bucket;

    if (self->room == 0 && !grow(self))
        return 0;
    bucket = bucket_of(self, hash, text, len);
    if (*bucket != 0)
        return *bucket;
    if (self->count == RUEDA_TIMELINE_NAMES)
        return 0;
    if (self->count == self->room) {
        if (!grow(self))
            return 0;
        bucket = bucket_of(self, hash, text, len);
    }
    name = &self->names[self->count];
    name->text = malloc(len > 0 ? len : 1);
    if (name->text == NULL)
        return 0;
    memcpy(name->text, text, len);
    name->len = len;
    name->hash = hash;
    *bucket = ++self->count;
    return *bucket;
}

void rueda_timeline_names_fini(struct rueda_timeline_names *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        free(self->names[i].text);
    free(self->names);
    free(self->buckets);
    *self = (struct rueda_timeline_names){.count = 0};
}
