/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things that are found by name, or by number if they have no name. A label
 * is the first part of what it finds; the table holds pointers only.
 */
#ifndef RUEDA_NEGOTIATE_LABELS_H
#define RUEDA_NEGOTIATE_LABELS_H

#include "op/request.h"

struct rueda_label {
    struct rueda_label *next; /* in its bucket */
    uint64_t hash;
    const char *name; /* NULL: none */
    uint64_t number;
};

struct rueda_labels {
    struct rueda_label **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t count;
};

/* A label to look for, or to put first in something; the name is borrowed. */
struct rueda_label rueda_label_of(const char *name, uint64_t number);
struct rueda_label rueda_label_for(const struct rueda_request *request);

/* Is it that of this request, which has a name and its hash? */
bool rueda_label_is_of(const struct rueda_label *label,
                       const struct rueda_request *request);

/* What has this label, or NULL. */
struct rueda_label *rueda_labels_find(const struct rueda_labels *labels,
                                      const struct rueda_label *wanted);

/* No other of its name is there. */
rueda_status rueda_labels_add(struct rueda_labels *labels,
                              struct rueda_label *label);

/* The label must be in the table. */
void rueda_labels_remove(struct rueda_labels *labels,
                         struct rueda_label *label);

/* Take out one of those that are left, or NULL; *bucket is 0 at first and tells
 * the next call where to go on. */
struct rueda_label *rueda_labels_pop(struct rueda_labels *labels,
                                     size_t *bucket);

/* Labels that are still in it are not freed. */
void rueda_labels_fini(struct rueda_labels *labels);

#endif /* RUEDA_NEGOTIATE_LABELS_H */
