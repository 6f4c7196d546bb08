/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts are found by sorting the ranks by their host's id: n log n whatever
 * the ids are, which a hash would not be. The cross numbers are found by a
 * second sorting, by local rank and host.
 */
#include "job/topology.h"

#include <stdlib.h>
#include <string.h>

/* ---- The hosts ---------------------------------------------------------- */

/* Records lie in the order of ranks, so pointers compare as ranks do. */
static int compare_hosts(const void *a, const void *b)
{
    const struct rueda_topology_record *left =
        *(const struct rueda_topology_record *const *)a;
    const struct rueda_topology_record *right =
        *(const struct rueda_topology_record *const *)b;
    int order = memcmp(left->host, right->host, sizeof(left->host));

    return order != 0 ? order : (left > right) - (left < right);
}

/* For each rank the lowest rank of its host, for now in rows[].host. */
static rueda_status find_firsts(const struct rueda_topology_record *records,
                                struct rueda_topology *topology)
{
    const struct rueda_topology_record **sorted;
    const size_t each = sizeof(struct rueda_topology_record *);
    int first;

    sorted = malloc((size_t)topology->size * each);
    if (sorted == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < topology->size; i++)
        sorted[i] = &records[i];
    qsort(sorted, (size_t)topology->size, each, compare_hosts);
    first = (int)(sorted[0] - records);
    topology->host_count = 1;
    for (int i = 0; i < topology->size; i++) {
        if (i > 0 && memcmp(sorted[i]->host, sorted[i - 1]->host,
                            sizeof(sorted[i]->host)) != 0) {
            first = (int)(sorted[i] - records);
            topology->host_count++;
        }
        topology->rows[sorted[i] - records].host = first;
    }
    free(sorted);
    return RUEDA_OK;
}

static void copy_name(char *out, const char *name)
{
    size_t length = strnlen(name, RUEDA_TOPOLOGY_NAME_BYTES - 1);

    memset(out, 0, RUEDA_TOPOLOGY_NAME_BYTES);
    memcpy(out, name, length);
}

static rueda_status number_hosts(const struct rueda_topology_record *records,
                                 struct rueda_topology *topology)
{
    int count = 0;

    topology->hosts =
        calloc((size_t)topology->host_count, sizeof(*topology->hosts));
    if (topology->hosts == NULL)
        return RUEDA_ERR_NOMEM;
    for (int rank = 0; rank < topology->size; rank++) {
        struct rueda_topology_row *row = &topology->rows[rank];
        int first = row->host;

        if (first == rank) {
            struct rueda_topology_host *host = &topology->hosts[count];

            memcpy(host->id, records[rank].host, sizeof(host->id));
            copy_name(host->name, records[rank].name);
            host->first = rank;
            row->host = count++;
        } else {
            row->host = topology->rows[first].host;
        }
        row->index = topology->hosts[row->host].size++;
    }
    topology->is_homogeneous = true;
    for (int i = 1; i < topology->host_count; i++)
        if (topology->hosts[i].size != topology->hosts[0].size)
            topology->is_homogeneous = false;
    return RUEDA_OK;
}

/* ---- The numbers -------------------------------------------------------- */

/*
 * A launcher that says local ranks without local sizes may mean more ranks
 * than this host has; a local size is never below what its ranks need.
 */
static rueda_status number_locals(const struct rueda_topology_record *records,
                                  struct rueda_topology *topology)
{
    int *sizes = calloc((size_t)topology->host_count, sizeof(*sizes));

    if (sizes == NULL)
        return RUEDA_ERR_NOMEM;
    topology->is_launchers = true;
    for (int rank = 0; rank < topology->size; rank++)
        if (records[rank].local_rank < 0)
            topology->is_launchers = false;
    for (int i = 0; i < topology->host_count; i++)
        sizes[i] = topology->hosts[i].size;
    for (int rank = 0; rank < topology->size; rank++) {
        struct rueda_topology_row *row = &topology->rows[rank];

        row->local_rank =
            topology->is_launchers ? records[rank].local_rank : row->index;
        if (sizes[row->host] <= row->local_rank)
            sizes[row->host] = row->local_rank + 1;
    }
    for (int rank = 0; rank < topology->size; rank++) {
        struct rueda_topology_row *row = &topology->rows[rank];
        bool is_said = topology->is_launchers && records[rank].local_size > 0;

        row->local_size = is_said ? records[rank].local_size : sizes[row->host];
    }
    free(sizes);
    return RUEDA_OK;
}

static int compare_locals(const void *a, const void *b)
{
    const struct rueda_topology_row *left =
        *(struct rueda_topology_row *const *)a;
    const struct rueda_topology_row *right =
        *(struct rueda_topology_row *const *)b;

    if (left->local_rank != right->local_rank)
        return left->local_rank < right->local_rank ? -1 : 1;
    if (left->host != right->host)
        return left->host < right->host ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static rueda_status number_crosses(struct rueda_topology *topology)
{
    struct rueda_topology_row **sorted;
    const size_t each = sizeof(struct rueda_topology_row *);
    int begin = 0;

    sorted = malloc((size_t)topology->size * each);
    if (sorted == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < topology->size; i++)
        sorted[i] = &topology->rows[i];
    qsort(sorted, (size_t)topology->size, each, compare_locals);
    for (int end = 1; end <= topology->size; end++) {
        if (end < topology->size &&
            sorted[end]->local_rank == sorted[begin]->local_rank)
            continue;
        for (int i = begin; i < end; i++) {
            sorted[i]->cross_rank = i - begin;
            sorted[i]->cross_size = end - begin;
        }
        begin = end;
    }
    free(sorted);
    return RUEDA_OK;
}

/* ---- The table ---------------------------------------------------------- */

bool rueda_topology_record_is_good(const struct rueda_topology_record *record)
{
    return record->local_rank >= -1 &&
           record->local_rank < RUEDA_TOPOLOGY_MAX &&
           record->local_size <= RUEDA_TOPOLOGY_MAX &&
           (record->local_size == -1 ||
            record->local_size > record->local_rank) &&
           record->local_size != 0;
}

static rueda_status check(const struct rueda_topology_record *records, int size,
                          struct rueda_text *error)
{
    if (size < 1 || size > RUEDA_TOPOLOGY_MAX) {
        rueda_text_set(error, "a job of %d ranks; it can have 1 to %d", size,
                       RUEDA_TOPOLOGY_MAX);
        return RUEDA_ERR_LIMIT;
    }
    for (int rank = 0; rank < size; rank++) {
        if (!rueda_topology_record_is_good(&records[rank])) {
            rueda_text_set(error,
                           "rank %d says that it has local rank %d of %d, "
                           "which cannot be",
                           rank, records[rank].local_rank,
                           records[rank].local_size);
            return RUEDA_ERR_INVALID;
        }
    }
    return RUEDA_OK;
}

void rueda_topology_free(struct rueda_topology *topology)
{
    if (topology == NULL)
        return;
    free(topology->hosts);
    free(topology->rows);
    free(topology);
}

rueda_status rueda_topology_new(const struct rueda_topology_record *records,
                                int size, struct rueda_topology **out,
                                struct rueda_text *error)
{
    rueda_status status = check(records, size, error);
    struct rueda_topology *topology;

    if (status != RUEDA_OK)
        return status;
    topology = calloc(1, sizeof(*topology));
    if (topology == NULL)
        goto err;
    topology->size = size;
    topology->rows = calloc((size_t)size, sizeof(*topology->rows));
    if (topology->rows == NULL)
        goto err_free;
    status = find_firsts(records, topology);
    if (status == RUEDA_OK)
        status = number_hosts(records, topology);
    if (status == RUEDA_OK)
        status = number_locals(records, topology);
    if (status == RUEDA_OK)
        status = number_crosses(topology);
    if (status != RUEDA_OK)
        goto err_free;
    *out = topology;
    return RUEDA_OK;

err_free:
    rueda_topology_free(topology);
err:
    rueda_text_set(error, "no memory for the table of %d ranks", size);
    return RUEDA_ERR_NOMEM;
}
