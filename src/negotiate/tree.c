/* SPDX-License-Identifier: Apache-2.0 */
#include "negotiate/tree.h"

#include <stdlib.h>

/* The members sorted by host, and by rank within each. */
struct tree_census {
    int *sorted;  /* [size] */
    int *leaders; /* [size] the first member of each host, ascending */
    int *start;   /* [hosts] where the members of each begin */
    int *count;   /* [hosts] */
};

static void census_fini(struct tree_census *census)
{
    free(census->sorted);
}

static int host_of(const int *hosts, int member)
{
    return hosts != NULL ? hosts[member] : 0;
}

/* A few members may be on hosts of high numbers. */
static int host_limit(const int *hosts, int size)
{
    int limit = 1;

    for (int member = 0; member < size; member++)
        if (host_of(hosts, member) >= limit)
            limit = host_of(hosts, member) + 1;
    return limit;
}

static rueda_status census_init(struct tree_census *census, int size,
                                const int *hosts)
{
    const int limit = host_limit(hosts, size);
    int *memory = calloc(2 * ((size_t)size + (size_t)limit), sizeof(int));

    if (memory == NULL)
        return RUEDA_ERR_NOMEM;
    census->sorted = memory;
    census->leaders = memory + size;
    census->start = memory + 2 * (size_t)size;
    census->count = census->start + limit;
    for (int member = 0; member < size; member++)
        census->count[host_of(hosts, member)]++;
    for (int host = 1; host < limit; host++)
        census->start[host] = census->start[host - 1] + census->count[host - 1];
    for (int host = 0; host < limit; host++)
        census->count[host] = 0;
    return RUEDA_OK;
}

/* parents[size]; a parent is lower than its children, and the coordinator's is
 * -1. */
static rueda_status find_parents(int size, const int *hosts, int *parents)
{
    struct tree_census census;
    int leader = 0;

    if (census_init(&census, size, hosts) != RUEDA_OK)
        return RUEDA_ERR_NOMEM;
    for (int member = 0; member < size; member++) {
        const int host = host_of(hosts, member);
        const int place = census.count[host]++;
        int *mates = census.sorted + census.start[host];

        mates[place] = member;
        if (place > 0) {
            parents[member] = mates[(place - 1) / RUEDA_TREE_LOCAL];
            continue;
        }
        census.leaders[leader] = member;
        parents[member] =
            leader > 0 ? census.leaders[(leader - 1) / RUEDA_TREE_LEADERS] : -1;
        leader++;
    }
    census_fini(&census);
    return RUEDA_OK;
}

rueda_status rueda_tree_init(struct rueda_tree *tree, int me, int size,
                             const int *hosts)
{
    int *parents = calloc((size_t)size, sizeof(int));
    int *below = calloc((size_t)size, sizeof(int));
    rueda_status status = RUEDA_ERR_NOMEM;

    if (parents != NULL && below != NULL)
        status = find_parents(size, hosts, parents);
    if (status != RUEDA_OK)
        goto out;
    tree->parent = parents[me];
    tree->child_count = 0;
    for (int member = size - 1; member > 0; member--)
        below[parents[member]] += ++below[member];
    for (int member = 0; member < size; member++) {
        if (member == me || parents[member] != me)
            continue;
        tree->sizes[tree->child_count] = below[member];
        tree->children[tree->child_count++] = member;
    }
out:
    free(parents);
    free(below);
    return status;
}

int rueda_tree_below(int member, int size, const int *hosts, int *members)
{
    int *parents = calloc((size_t)size, sizeof(int));
    int count = 0;

    if (parents == NULL || find_parents(size, hosts, parents) != RUEDA_OK) {
        free(parents);
        return -1;
    }
    for (int at = member; at < size; at++) {
        int up = at;

        while (up > member)
            up = parents[up];
        if (up == member)
            members[count++] = at;
    }
    free(parents);
    return count;
}
