/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of process sets that every rank has. All ranks add and remove sets
 * in the same order, so the same set has the same id on all of them, and an id
 * is never used again. A list of ranks is checked here, before any rank is
 * asked.
 */
#include "job/set.h"

#include <stdlib.h>
#include <string.h>

/* A set and its ranks, in one piece of memory. */
struct entry {
    struct rueda_set set;
    int ranks[];
};

struct rueda_set_table {
    int rank;
    int size;
    int next_id;
    int count;
    struct entry *entries[RUEDA_SET_MAX]; /* in the order of ids */
};

static int compare_ranks(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;

    return (left > right) - (left < right);
}

int rueda_set_index(const struct rueda_set *set, int rank)
{
    const int *found = bsearch(&rank, set->ranks, (size_t)set->size,
                               sizeof(rank), compare_ranks);

    return found != NULL ? (int)(found - set->ranks) : -1;
}

static struct entry *entry_new(int size)
{
    struct entry *entry =
        malloc(sizeof(*entry) + (size_t)size * sizeof(entry->ranks[0]));

    if (entry == NULL)
        return NULL;
    entry->set.size = size;
    entry->set.ranks = entry->ranks;
    return entry;
}

/* Takes the entry, whose ranks are in order. */
static void append(struct rueda_set_table *table, struct entry *entry)
{
    entry->set.id = table->next_id++;
    entry->set.me = rueda_set_index(&entry->set, table->rank);
    table->entries[table->count++] = entry;
}

/* A table has the set of all ranks from the start. */
struct rueda_set_table *rueda_set_table_new(int rank, int size)
{
    struct rueda_set_table *table = calloc(1, sizeof(*table));
    struct entry *all;

    if (table == NULL)
        return NULL;
    table->rank = rank;
    table->size = size;
    all = entry_new(size);
    if (all == NULL) {
        free(table);
        return NULL;
    }
    for (int i = 0; i < size; i++)
        all->ranks[i] = i;
    append(table, all);
    return table;
}

void rueda_set_table_free(struct rueda_set_table *table)
{
    if (table == NULL)
        return;
    for (int i = 0; i < table->count; i++)
        free(table->entries[i]);
    free(table);
}

int rueda_set_count(const struct rueda_set_table *table)
{
    return table->count;
}

/* The place of the first entry whose id is not below this one. */
static int place_of(const struct rueda_set_table *table, int id)
{
    int low = 0;
    int high = table->count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (table->entries[middle]->set.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct rueda_set *rueda_set_find(const struct rueda_set_table *table,
                                       int id)
{
    int place = place_of(table, id);

    if (place == table->count || table->entries[place]->set.id != id)
        return NULL;
    return &table->entries[place]->set;
}

/* ---- Changes ------------------------------------------------------------ */

/* What can be said before the ranks are in order. */
static rueda_status check_list(const struct rueda_set_table *table,
                               const int *ranks, int count,
                               struct rueda_text *error)
{
    if (count <= 0 || ranks == NULL) {
        rueda_text_set(error, "a process set without ranks; name at least one");
        return RUEDA_ERR_INVALID;
    }
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= table->size) {
            rueda_text_set(error,
                           "rank %d in a process set; the job's ranks go from "
                           "0 to %d",
                           ranks[i], table->size - 1);
            return RUEDA_ERR_INVALID;
        }
    }
    if (table->count == RUEDA_SET_MAX || table->next_id == INT32_MAX) {
        rueda_text_set(error,
                       "%d process sets are there and %d were made, which is "
                       "the most; remove one, or restart the job",
                       table->count, table->next_id);
        return RUEDA_ERR_LIMIT;
    }
    return RUEDA_OK;
}

/* These ranks are in order and in range. */
static rueda_status check_new(const struct rueda_set_table *table,
                              const struct rueda_set *set,
                              struct rueda_text *error)
{
    for (int i = 1; i < set->size; i++) {
        if (set->ranks[i] == set->ranks[i - 1]) {
            rueda_text_set(error, "rank %d is in a process set twice",
                           set->ranks[i]);
            return RUEDA_ERR_INVALID;
        }
    }
    for (int i = 0; i < table->count; i++) {
        const struct rueda_set *other = &table->entries[i]->set;

        if (other->size == set->size &&
            memcmp(other->ranks, set->ranks,
                   (size_t)set->size * sizeof(set->ranks[0])) == 0) {
            rueda_text_set(
                error, "process set %d has these ranks already; use it%s",
                other->id,
                other->id == RUEDA_SET_GLOBAL ? ", it has all ranks"
                                              : ", or remove it first");
            return RUEDA_ERR_INVALID;
        }
    }
    return RUEDA_OK;
}

/* A set of the same ranks must not exist yet. */
rueda_status rueda_set_add(struct rueda_set_table *table, const int *ranks,
                           int count, int *out_id, struct rueda_text *error)
{
    rueda_status status = check_list(table, ranks, count, error);
    struct entry *entry;

    if (status != RUEDA_OK)
        return status;
    entry = entry_new(count);
    if (entry == NULL) {
        rueda_text_set(error, "no memory for a process set of %d ranks", count);
        return RUEDA_ERR_NOMEM;
    }
    memcpy(entry->ranks, ranks, (size_t)count * sizeof(ranks[0]));
    qsort(entry->ranks, (size_t)count, sizeof(ranks[0]), compare_ranks);
    status = check_new(table, &entry->set, error);
    if (status != RUEDA_OK) {
        free(entry);
        return status;
    }
    append(table, entry);
    *out_id = entry->set.id;
    return RUEDA_OK;
}

/* The id is not used again. */
rueda_status rueda_set_remove(struct rueda_set_table *table, int id,
                              struct rueda_text *error)
{
    int place = place_of(table, id);

    if (id == RUEDA_SET_GLOBAL) {
        rueda_text_set(error, "process set 0 has all ranks and stays");
        return RUEDA_ERR_INVALID;
    }
    if (place == table->count || table->entries[place]->set.id != id) {
        rueda_text_set(error, "there is no process set %d%s", id,
                       id > 0 && id < table->next_id ? " any more" : "");
        return RUEDA_ERR_INVALID;
    }
    free(table->entries[place]);
    table->count--;
    memmove(&table->entries[place], &table->entries[place + 1],
            (size_t)(table->count - place) * sizeof(struct entry *));
    return RUEDA_OK;
}
