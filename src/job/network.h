/* SPDX-License-Identifier: Apache-2.0 */
/* How this rank is reached by TCP, and how it reaches others. */
#ifndef RUEDA_JOB_NETWORK_H
#define RUEDA_JOB_NETWORK_H

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/config.h"
#include "base/text.h"
#include "job/topology.h"
#include "os/tcp.h"
#include "segment/segment.h"
#include "transport/transport.h"

/* What a rank publishes: its addresses, separated by blanks. */
#define RUEDA_NETWORK_TEXT 512

/* How many addresses a rank publishes at most. */
#define RUEDA_NETWORK_ADDRESSES 8

/* Addresses as text; those that do not fit are left out. */
void rueda_network_write(const struct rueda_address *addresses, int count,
                         char *out, size_t bytes);

/* The reverse; returns how many. Words that are not numeric addresses are left
 * out; names are not looked up. */
int rueda_network_read(const char *text, struct rueda_address *out, int room);

/* How many seconds of silence a connection with the store bears: more than one
 * with a host, which is judged by other means. */
int rueda_network_questions(const struct rueda_config *config);

/* Listen for other hosts, at the addresses that RUEDA_NETWORK allows. Writes
 * them to text. */
rueda_status rueda_network_open(const struct rueda_config *config, int rank,
                                int size, const struct rueda_key *key,
                                struct rueda_hub **out,
                                char text[RUEDA_NETWORK_TEXT],
                                struct rueda_text *error);

/* Listen for ranks of this host only, and note the port in my line. */
rueda_status rueda_network_open_local(const struct rueda_config *config,
                                      struct rueda_segment *segment,
                                      struct rueda_hub **out,
                                      struct rueda_text *error);

/* All members have noted theirs. */
rueda_status rueda_network_locate_local(struct rueda_hub *hub,
                                        const struct rueda_segment *segment);

/* texts: the addresses of all ranks, one after another, each with its end.
 * Ranks without any cannot be reached. RUEDA_ERR_INVALID, RUEDA_ERR_NOMEM. */
rueda_status rueda_network_locate(struct rueda_hub *hub,
                                  const struct rueda_topology *topology,
                                  const char *texts, size_t bytes);

/* A number that only the ranks of this job have, and how their streams are
 * protected (tcp.h). */
void rueda_network_set_job(struct rueda_hub *hub, uint64_t job,
                           rueda_config_encrypt encrypt);

/* How a job would be protected all of whose ranks have this setting and
 * addresses like this rank's, in one line. Words on failure too. */
void rueda_network_tell_protection(const struct rueda_config *config, int rank,
                                   struct rueda_text *out);

/* Which peers of this rank run in the same system, in whatever network
 * namespace. */
void rueda_network_mark_inside(struct rueda_hub *hub,
                               const struct rueda_topology *topology, int rank);

#endif /* RUEDA_JOB_NETWORK_H */
