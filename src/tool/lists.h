/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists on the command line of `rueda bench`, separated by commas: peers,
 * and hosts. Pure, as all of the options are.
 */
#ifndef RUEDA_TOOL_LISTS_H
#define RUEDA_TOOL_LISTS_H

#include "tool/options.h"

/* Add "openmpi,raw,algo:ring" to the peers, each once. False with a message. */
bool rueda_peers_parse(struct rueda_bench_options *options, const char *list,
                       struct rueda_text *words);

bool rueda_peers_have(const struct rueda_bench_options *options,
                      rueda_peer peer);

/* "a:2,b:2": hosts and their numbers of ranks; "a" has one. The list is
 * borrowed as well. False with a message. */
bool rueda_bench_hosts_parse(struct rueda_bench_options *options,
                             const char *list, struct rueda_text *words);

/* All ranks of the hosts together. */
int rueda_bench_hosts_ranks(const struct rueda_bench_options *options);

/* The host of a rank, as the list names it. */
const char *rueda_bench_hosts_of(const struct rueda_bench_options *options,
                                 int rank);

#endif /* RUEDA_TOOL_LISTS_H */
