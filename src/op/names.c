/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names in flight: a hash table that threads enter without a lock
 * and that is replaced when it is full.
 */
#include "op/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/*
 * A bucket is 0, or the key with this bit set while it is in flight. Keys have
 * the bit clear and are never 0. All threads look for a key at the same buckets
 * in the same order and stop at the first that is empty, so two threads with
 * the same new key meet there.
 */
#define LIVE ((uint64_t)1)

#define LEAST_BUCKETS 1024

/* The hash of a name is as good as any number; those of sets are small, and go
 * far apart. (2^64 by the golden ratio.) */
#define SET_APART 0x9e3779b97f4a7c15u

struct rueda_names_table {
    size_t mask;        /* buckets - 1 */
    atomic_size_t used; /* buckets that are not 0; one at least is */
    _Atomic uint64_t buckets[];
};

uint64_t rueda_names_key(int set, uint64_t hash)
{
    uint64_t key = (hash + (uint64_t)set * SET_APART) & ~LIVE;

    return key != 0 ? key : 2 * LIVE;
}

void rueda_names_init(struct rueda_names *names)
{
    memset(names, 0, sizeof(*names));
    pthread_mutex_init(&names->change, NULL);
    pthread_mutex_init(&names->lock, NULL);
    pthread_cond_init(&names->is_empty, NULL);
}

void rueda_names_fini(struct rueda_names *names)
{
    pthread_cond_destroy(&names->is_empty);
    pthread_mutex_destroy(&names->lock);
    pthread_mutex_destroy(&names->change);
    free(names->table);
}

/* ---- Threads inside the table ----------------------------------------- */

static void go_out(struct rueda_names *names)
{
    if (atomic_fetch_sub(&names->inside, 1) == 1 &&
        atomic_load(&names->is_closed)) {
        pthread_mutex_lock(&names->lock);
        pthread_cond_signal(&names->is_empty);
        pthread_mutex_unlock(&names->lock);
    }
}

/* A thread counts itself and then finds the table open; another closes the
 * table and then reads the count: one of them sees the other. */
static void go_in(struct rueda_names *names)
{
    for (;;) {
        atomic_fetch_add(&names->inside, 1);
        if (!atomic_load(&names->is_closed))
            return;
        go_out(names);
        pthread_mutex_lock(&names->change);
        pthread_mutex_unlock(&names->change);
    }
}

/* ---- A table that has become too small -------------------------------- */

static bool is_crowded(const struct rueda_names_table *table)
{
    size_t buckets = table != NULL ? table->mask + 1 : 0;

    return table == NULL ||
           atomic_load_explicit(&table->used, memory_order_relaxed) >
               buckets / 8 * 5;
}

static size_t count_live(const struct rueda_names_table *table)
{
    size_t live = 0;

    for (size_t i = 0; table != NULL && i <= table->mask; i++)
        live += atomic_load_explicit(&table->buckets[i], memory_order_relaxed) &
                LIVE;
    return live;
}

static void copy_live(const struct rueda_names_table *from,
                      struct rueda_names_table *to)
{
    for (size_t i = 0; i <= from->mask; i++) {
        uint64_t word =
            atomic_load_explicit(&from->buckets[i], memory_order_relaxed);
        size_t bucket = (word >> 1) & to->mask;

        if ((word & LIVE) == 0)
            continue;
        while (atomic_load_explicit(&to->buckets[bucket],
                                    memory_order_relaxed) != 0)
            bucket = (bucket + 1) & to->mask;
        atomic_store_explicit(&to->buckets[bucket], word, memory_order_relaxed);
        to->used++;
    }
}

/* No thread is inside. Afterwards at most a quarter of the buckets is used. */
static rueda_status rebuild(struct rueda_names *names)
{
    size_t live = count_live(names->table);
    size_t buckets = LEAST_BUCKETS;
    struct rueda_names_table *table;

    while (buckets < 4 * live)
        buckets *= 2;
    table = calloc(1, sizeof(*table) + buckets * sizeof(table->buckets[0]));
    if (table == NULL)
        return RUEDA_ERR_NOMEM;
    table->mask = buckets - 1;
    if (names->table != NULL)
        copy_live(names->table, table);
    free(names->table);
    names->table = table;
    return RUEDA_OK;
}

/* By a thread that is not inside. A second thread finds room. */
static rueda_status make_room(struct rueda_names *names)
{
    rueda_status status = RUEDA_OK;

    pthread_mutex_lock(&names->change);
    atomic_store(&names->is_closed, true);
    pthread_mutex_lock(&names->lock);
    while (atomic_load(&names->inside) != 0)
        pthread_cond_wait(&names->is_empty, &names->lock);
    pthread_mutex_unlock(&names->lock);
    if (is_crowded(names->table))
        status = rebuild(names);
    atomic_store(&names->is_closed, false);
    pthread_mutex_unlock(&names->change);
    return status;
}

/* ---- Places ----------------------------------------------------------- */

/* An empty bucket becomes the key's. False: another has taken it. One bucket
 * always stays empty, so that every search ends. */
static bool settle(struct rueda_names_table *table, _Atomic uint64_t *bucket,
                   uint64_t key, rueda_status *out)
{
    uint64_t empty = 0;

    if (atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed) >=
        table->mask) {
        atomic_fetch_sub_explicit(&table->used, 1, memory_order_relaxed);
        *out = RUEDA_ERR_NOMEM;
        return true;
    }
    *out = RUEDA_OK;
    if (atomic_compare_exchange_strong(bucket, &empty, key | LIVE))
        return true;
    atomic_fetch_sub_explicit(&table->used, 1, memory_order_relaxed);
    return false;
}

static rueda_status enter(struct rueda_names_table *table, uint64_t key)
{
    size_t i = (key >> 1) & table->mask;
    rueda_status status;

    for (;;) {
        uint64_t word = atomic_load(&table->buckets[i]);

        if (word == 0) {
            if (settle(table, &table->buckets[i], key, &status))
                return status;
        } else if ((word & ~LIVE) != key) {
            i = (i + 1) & table->mask;
        } else {
            /* It changes only if another enters it first. */
            return (word & LIVE) == 0 &&
                           atomic_compare_exchange_strong(&table->buckets[i],
                                                          &word, key | LIVE)
                       ? RUEDA_OK
                       : RUEDA_ERR_INVALID;
        }
    }
}

rueda_status rueda_names_enter(struct rueda_names *names, uint64_t key)
{
    rueda_status status;

    go_in(names);
    while (is_crowded(names->table)) {
        bool has_table = names->table != NULL;

        go_out(names);
        status = make_room(names);
        if (status != RUEDA_OK && !has_table)
            return status;
        go_in(names);
        if (status != RUEDA_OK)
            break; /* there may be a bucket left */
    }
    status = enter(names->table, key);
    go_out(names);
    return status;
}

void rueda_names_leave(struct rueda_names *names, uint64_t key)
{
    struct rueda_names_table *table;
    size_t i;

    go_in(names);
    table = names->table;
    i = (key >> 1) & table->mask;
    while ((atomic_load(&table->buckets[i]) & ~LIVE) != key)
        i = (i + 1) & table->mask;
    atomic_store_explicit(&table->buckets[i], key, memory_order_release);
    go_out(names);
}
