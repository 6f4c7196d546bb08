/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table of the store: chains of links inside of the members, so that
 * adding needs no memory. It doubles when the chains grow longer than one on
 * average; where memory for that is short, they just grow. The table knows
 * hashes only; the caller compares what is behind them:
 *
 *      link = rueda_store_table_first(table, hash);
 *      while (link != NULL && !is_it(link))
 *          link = rueda_store_table_next(link);
 *
 * Members are not owned.
 */
#ifndef RUEDA_JOB_STORE_TABLE_H
#define RUEDA_JOB_STORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

struct rueda_store_link {
    struct rueda_store_link *next;
    uint64_t hash;
};

struct rueda_store_table {
    struct rueda_store_link **buckets;
    size_t size; /* a power of two */
    size_t count;
};

/* RUEDA_ERR_NOMEM leaves nothing to undo; fini of zeroed memory is allowed. */
rueda_status rueda_store_table_init(struct rueda_store_table *table);
void rueda_store_table_fini(struct rueda_store_table *table);

void rueda_store_table_add(struct rueda_store_table *table,
                           struct rueda_store_link *link, uint64_t hash);

/* link is in the table. */
void rueda_store_table_remove(struct rueda_store_table *table,
                              struct rueda_store_link *link);

/* The links with this hash, one after the other, then NULL. */
struct rueda_store_link *
rueda_store_table_first(const struct rueda_store_table *table, uint64_t hash);
struct rueda_store_link *
rueda_store_table_next(const struct rueda_store_link *link);

/* FNV-1a from a seed, its bits mixed once more for the low ones. */
uint64_t rueda_store_hash(uint64_t seed, const void *bytes, size_t len);

#endif /* RUEDA_JOB_STORE_TABLE_H */
