/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things that are found by name, or by number if they have no name. A key is
 * the first part of what it finds; the table holds pointers only.
 */
#ifndef RUEDA_NEGOTIATE_KEYS_H
#define RUEDA_NEGOTIATE_KEYS_H

#include <rueda/rueda.h>

struct rueda_key {
    struct rueda_key *next; /* in its bucket */
    uint64_t hash;
    const char *name; /* NULL: none */
    uint64_t number;
};

struct rueda_keys {
    struct rueda_key **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t count;
};

/* A key to look for, or to put first in something; the name is borrowed. */
struct rueda_key rueda_key_of(const char *name, uint64_t number);

/* What has this key, or NULL. */
struct rueda_key *rueda_keys_find(const struct rueda_keys *keys,
                                  const struct rueda_key *wanted);

/* No other of its name is there. */
rueda_status rueda_keys_add(struct rueda_keys *keys, struct rueda_key *key);

/* Which is there. */
void rueda_keys_remove(struct rueda_keys *keys, struct rueda_key *key);

/* Any one of them, or NULL if there is none. */
struct rueda_key *rueda_keys_any(const struct rueda_keys *keys);

/* Of what is still in it, nothing is freed. */
void rueda_keys_fini(struct rueda_keys *keys);

#endif /* RUEDA_NEGOTIATE_KEYS_H */
