/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries messages between two ranks: pipes in the segment if both are on
 * this host, a hub of their own if they are threads of one process, and the
 * job's network (network.h) otherwise. The rest of job/ and engine/ knows only
 * the tables of transport/transport.h.
 */
#ifndef RUEDA_JOB_LINKS_H
#define RUEDA_JOB_LINKS_H

#include "job/formation.h"

/* Open the mesh of a formation whose term and members are known. */
rueda_status rueda_links_open(struct rueda_formation *formation);

/* The name of the transport that messages take. */
const char *rueda_links_name(const struct rueda_formation *formation);

/* Reserve room in the segment for the pipes between this rank and the members
 * behind it, and say where that is. */
rueda_status rueda_links_reserve(struct rueda_segment *segment,
                                 uint64_t *out_offset,
                                 struct rueda_text *error);

/* A hub for ranks that are threads: out[size], one for each of them. */
rueda_status rueda_links_between_threads(int size, struct rueda_hub **out);

#endif /* RUEDA_JOB_LINKS_H */
