/* SPDX-License-Identifier: Apache-2.0 */
#include "negotiate/labels.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

struct rueda_label rueda_label_of(const char *name, uint64_t number)
{
    return (struct rueda_label){
        .hash = name != NULL ? rueda_name_hash(name, strlen(name))
                             : rueda_hash_mix(number + 1),
        .name = name,
        .number = name != NULL ? 0 : number,
    };
}

struct rueda_label rueda_label_for(const struct rueda_request *request)
{
    if (request->name == NULL || request->hash == 0)
        return rueda_label_of(request->name, request->number);
    return (struct rueda_label){.hash = request->hash, .name = request->name};
}

static struct rueda_label **bucket_of(const struct rueda_labels *labels,
                                      uint64_t hash)
{
    return &labels->buckets[hash & (labels->bucket_count - 1)];
}

static bool is_same(const struct rueda_label *a, const struct rueda_label *b)
{
    if (a->hash != b->hash || (a->name == NULL) != (b->name == NULL))
        return false;
    return a->name != NULL ? strcmp(a->name, b->name) == 0
                           : a->number == b->number;
}

bool rueda_label_is_of(const struct rueda_label *label,
                       const struct rueda_request *request)
{
    return request->name != NULL && label->name != NULL &&
           label->hash == request->hash &&
           strcmp(label->name, request->name) == 0;
}

struct rueda_label *rueda_labels_find(const struct rueda_labels *labels,
                                      const struct rueda_label *wanted)
{
    struct rueda_label *label;

    if (labels->count == 0)
        return NULL;
    label = *bucket_of(labels, wanted->hash);
    while (label != NULL && !is_same(label, wanted))
        label = label->next;
    return label;
}

static void put(struct rueda_labels *labels, struct rueda_label *label)
{
    struct rueda_label **bucket = bucket_of(labels, label->hash);

    label->next = *bucket;
    *bucket = label;
}

/* Twice as many buckets. */
static rueda_status grow(struct rueda_labels *labels)
{
    struct rueda_labels larger = {
        .bucket_count =
            labels->bucket_count > 0 ? labels->bucket_count * 2 : FIRST_BUCKETS,
        .count = labels->count,
    };

    larger.buckets = calloc(larger.bucket_count, sizeof(struct rueda_label *));
    if (larger.buckets == NULL)
        return RUEDA_ERR_NOMEM;
    for (size_t i = 0; i < labels->bucket_count; i++) {
        struct rueda_label *label = labels->buckets[i];

        while (label != NULL) {
            struct rueda_label *next = label->next;

            put(&larger, label);
            label = next;
        }
    }
    free(labels->buckets);
    *labels = larger;
    return RUEDA_OK;
}

rueda_status rueda_labels_add(struct rueda_labels *labels,
                              struct rueda_label *label)
{
    if (labels->count >= labels->bucket_count && grow(labels) != RUEDA_OK)
        return RUEDA_ERR_NOMEM;
    put(labels, label);
    labels->count++;
    return RUEDA_OK;
}

void rueda_labels_remove(struct rueda_labels *labels, struct rueda_label *label)
{
    struct rueda_label **at = bucket_of(labels, label->hash);

    while (*at != label)
        at = &(*at)->next;
    *at = label->next;
    labels->count--;
}

struct rueda_label *rueda_labels_pop(struct rueda_labels *labels,
                                     size_t *bucket)
{
    for (; *bucket < labels->bucket_count; (*bucket)++) {
        struct rueda_label *label = labels->buckets[*bucket];

        if (label == NULL)
            continue;
        labels->buckets[*bucket] = label->next;
        labels->count--;
        return label;
    }
    return NULL;
}

void rueda_labels_fini(struct rueda_labels *labels)
{
    free(labels->buckets);
    memset(labels, 0, sizeof(*labels));
}
