/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/placement.h"

#include <stdlib.h>

static int count_on(const struct rueda_hosts *hosts, int host, int left)
{
    const int slots = hosts->list[host].slots;

    return slots < left ? slots : left;
}

/* used[i]: how many of the hosts so far have a local rank i. */
static void fill_in(const struct rueda_hosts *hosts,
                    struct rueda_placement *placement, int *used)
{
    int rank = 0;

    for (int host = 0; rank < placement->size; host++) {
        const int count = count_on(hosts, host, placement->size - rank);

        for (int local = 0; local < count; local++, rank++) {
            placement->ranks[rank] = (struct rueda_placed_rank){
                .host = host,
                .rank = rank,
                .local_rank = local,
                .local_size = count,
                .cross_rank = used[local]++,
            };
        }
        placement->host_count = host + 1;
    }
    for (rank = 0; rank < placement->size; rank++) {
        struct rueda_placed_rank *placed = &placement->ranks[rank];

        placed->cross_size = used[placed->local_rank];
    }
}

bool rueda_placement_make(const struct rueda_hosts *hosts, int size,
                          struct rueda_placement *out, struct rueda_text *words)
{
    struct rueda_placement placement = {.size = size};
    const int slots = rueda_hosts_slots(hosts);
    int *used;

    if (size > slots) {
        rueda_text_set(words,
                       "%d ranks are more than the %d slots of %s; name more "
                       "hosts or more slots",
                       size, slots,
                       hosts->count == 1 ? "the host" : "all hosts");
        return false;
    }
    used = calloc((size_t)size, sizeof(*used));
    placement.ranks = calloc((size_t)size, sizeof(*placement.ranks));
    if (used == NULL || placement.ranks == NULL) {
        rueda_text_set(words, "no memory for %d ranks", size);
        free(placement.ranks);
        free(used);
        return false;
    }
    fill_in(hosts, &placement, used);
    free(used);
    *out = placement;
    return true;
}

void rueda_placement_fini(struct rueda_placement *placement)
{
    free(placement->ranks);
    *placement = (struct rueda_placement){.ranks = NULL};
}
