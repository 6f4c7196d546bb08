/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records and tables of ranks from bytes. What is accepted is packed into the
 * same bytes again, and a table is one that can be walked.
 */
#include "fuzz/fuzz.h"
#include "job/topology.h"

static void try_record(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_TOPOLOGY_RECORD_BYTES];
    struct rueda_topology_record record;
    rueda_status status = rueda_topology_record_unpack(data, size, &record);

    if (status != RUEDA_OK) {
        must(status == RUEDA_ERR_INVALID);
        return;
    }
    must(size <= sizeof(again));
    must(rueda_topology_record_pack(&record, again) == size);
    must(memcmp(again, data, size) == 0);
}

static void check_seat(const struct rueda_topology *topology, int rank)
{
    const struct rueda_topology_row *row = &topology->rows[rank];
    const struct rueda_topology_host *host;

    must(row->host >= 0 && row->host < topology->host_count);
    host = &topology->hosts[row->host];
    must(row->index >= 0 && row->index < host->size);
    must(host->first <= rank && (row->index > 0 || host->first == rank));
    must(row->local_rank >= 0 && row->local_rank < row->local_size);
    must(row->cross_rank >= 0 && row->cross_rank < row->cross_size);
    must(row->cross_size <= topology->size);
}

static void check_table(const struct rueda_topology *topology)
{
    int ranks = 0;

    must(topology->size >= 1 && topology->size <= RUEDA_TOPOLOGY_MAX);
    must(topology->host_count >= 1 && topology->host_count <= topology->size);
    for (int i = 0; i < topology->host_count; i++) {
        const struct rueda_topology_host *host = &topology->hosts[i];

        must(host->size >= 1);
        must(strnlen(host->name, sizeof(host->name)) < sizeof(host->name));
        ranks += host->size;
    }
    must(ranks == topology->size);
    for (int i = 0; i < topology->size; i++)
        check_seat(topology, i);
}

static void try_table(const uint8_t *data, size_t size)
{
    struct rueda_topology *topology = NULL;
    struct rueda_text error = {{0}};
    unsigned char *again;
    rueda_status status = rueda_topology_unpack(data, size, &topology, &error);

    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    if (status != RUEDA_OK) {
        must(topology == NULL);
        return;
    }
    check_table(topology);
    must(rueda_topology_bytes(topology) == size);
    again = malloc(size);
    must(again != NULL);
    rueda_topology_pack(topology, again);
    must(memcmp(again, data, size) == 0);
    free(again);
    rueda_topology_free(topology);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_record(data, size);
    try_table(data, size);
    return 0;
}
