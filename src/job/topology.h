/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of hosts and ranks: from what every rank says of itself, the hosts
 * of the job and the local and cross numbers of all ranks.
 *
 * Pure arithmetic on memory that it makes; on any thread. A finished table is
 * not changed any more and may be read by several threads.
 *
 * A host is what has one host id: a shared-memory domain. local_rank however
 * is the launcher's word where every rank has one, even where it contradicts
 * the hosts found (containers that share a machine): scripts choose their GPU
 * by it.
 */
#ifndef RUEDA_JOB_TOPOLOGY_H
#define RUEDA_JOB_TOPOLOGY_H

#include <rueda/rueda.h>

#include "base/text.h"

#define RUEDA_TOPOLOGY_MAX        65536 /* ranks */
#define RUEDA_TOPOLOGY_ID_BYTES   32
#define RUEDA_TOPOLOGY_NAME_BYTES 64 /* its end included */

/* What a rank says of itself. */
struct rueda_topology_record {
    unsigned char host[RUEDA_TOPOLOGY_ID_BYTES];
    char name[RUEDA_TOPOLOGY_NAME_BYTES]; /* the host's, for people */
    int local_rank;                       /* as the launcher says, or -1 */
    int local_size;
};

/* Where a rank is. Ranks with one local_rank have distinct cross_ranks. */
struct rueda_topology_row {
    int host;  /* index of its host */
    int index; /* among the ranks of that host, in the order of ranks */
    int local_rank;
    int local_size;
    int cross_rank; /* among the ranks that have my local_rank, by host */
    int cross_size; /* how many these are */
};

struct rueda_topology_host {
    unsigned char id[RUEDA_TOPOLOGY_ID_BYTES];
    char name[RUEDA_TOPOLOGY_NAME_BYTES]; /* as its first rank says it */
    int size;                             /* ranks there */
    int first;                            /* the lowest of them */
};

struct rueda_topology {
    int size;
    int host_count;
    bool is_homogeneous;               /* as many ranks on every host */
    bool is_launchers;                 /* local ranks are the launcher's word */
    struct rueda_topology_row *rows;   /* [size], by rank */
    struct rueda_topology_host *hosts; /* [host_count], numbered in the
                                          order in which ranks show them */
};

/* Can its local numbers be? */
bool rueda_topology_record_is_good(const struct rueda_topology_record *record);

/*
 * The table of records[size], which is only read. On failure error has the
 * words and out is as it was.
 */
rueda_status rueda_topology_new(const struct rueda_topology_record *records,
                                int size, struct rueda_topology **out,
                                struct rueda_text *error);

void rueda_topology_free(struct rueda_topology *topology);

/* ---- As bytes, for the store ------------------------------------------- */

/* The most bytes that a record can take. */
#define RUEDA_TOPOLOGY_RECORD_BYTES                                            \
    (RUEDA_TOPOLOGY_ID_BYTES + 4 + 4 + 1 + RUEDA_TOPOLOGY_NAME_BYTES - 1)

/* One record; returns how many bytes of out are used. */
size_t rueda_topology_record_pack(const struct rueda_topology_record *record,
                                  unsigned char *out);

/* The reverse. Bytes that pack() cannot have made are refused. */
rueda_status rueda_topology_record_unpack(const void *bytes, size_t len,
                                          struct rueda_topology_record *out);

/* How many bytes the table takes, and the table in as many bytes. */
size_t rueda_topology_bytes(const struct rueda_topology *topology);
void rueda_topology_pack(const struct rueda_topology *topology,
                         unsigned char *out);

/*
 * The reverse. Numbers that follow from others are worked out again and not
 * taken from the bytes, so that a table is always whole; bytes that pack()
 * cannot have made are refused with words in error.
 */
rueda_status rueda_topology_unpack(const void *bytes, size_t len,
                                   struct rueda_topology **out,
                                   struct rueda_text *error);

#endif /* RUEDA_JOB_TOPOLOGY_H */
