/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank is where, numbered as Horovod numbers them. Ranks fill the hosts
 * in the order in which these are named. A rank's local number is its place on
 * its host; its cross number is the place of its host among those that have a
 * rank with that local number:
 *
 *      hosts a:3,b:1,c:2    rank         0 1 2   3   4 5
 *                           local rank   0 1 2   0   0 1
 *                           cross rank   0 0 0   1   2 1
 *                           cross size   3 2 1   3   3 2
 *
 * Pure; any thread.
 */
#ifndef RUEDA_LAUNCH_PLACEMENT_H
#define RUEDA_LAUNCH_PLACEMENT_H

#include "launch/hosts.h"

struct rueda_placed_rank {
    int host; /* in the list of hosts */
    int rank;
    int local_rank;
    int local_size;
    int cross_rank;
    int cross_size;
};

struct rueda_placement {
    struct rueda_placed_rank *ranks; /* [size], by rank */
    int size;
    int host_count; /* the first hosts of the list, those that have a rank */
};

/* False with a message where there are not enough slots. Undo with
 * rueda_placement_fini(). */
bool rueda_placement_make(const struct rueda_hosts *hosts, int size,
                          struct rueda_placement *out,
                          struct rueda_text *words);
void rueda_placement_fini(struct rueda_placement *placement);

#endif /* RUEDA_LAUNCH_PLACEMENT_H */
