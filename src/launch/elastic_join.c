/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts of an elastic job that no list names: their agents come by themselves
 * ("ruedarun agent --join") and say how many slots they have. Such a host is
 * listed as long as its agent is there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/elastic_state.h"
#include "os/clock.h"

void rueda_elastic_list_hosts(struct rueda_elastic *elastic)
{
    struct rueda_hosts all;

    if (!rueda_hosts_copy(&elastic->listed, &all))
        return;
    for (int i = 0; i < elastic->joined.count; i++)
        if (!rueda_hosts_append(&all, &elastic->joined.list[i]))
            break;
    rueda_membership_hosts(elastic->members, &all, rueda_clock_ns());
    rueda_hosts_fini(&all);
    rueda_elastic_set_timer(elastic);
}

struct rueda_node *rueda_elastic_find_joined(struct rueda_elastic *elastic,
                                             const char *name)
{
    struct rueda_launch *launch = elastic->launch;

    for (int i = 0; i < launch->node_count; i++) {
        struct rueda_node *node = &launch->nodes[i];

        if (node->is_joined && node->host < 0 &&
            node->state != RUEDA_NODE_GONE && strcmp(node->name, name) == 0)
            return node;
    }
    return NULL;
}

void rueda_elastic_forget_joined(struct rueda_elastic *elastic,
                                 const struct rueda_node *node)
{
    struct rueda_hosts *joined = &elastic->joined;

    for (int i = 0; node->is_joined && i < joined->count; i++) {
        if (strcmp(joined->list[i].name, node->name) != 0)
            continue;
        joined->list[i] = joined->list[--joined->count];
        rueda_elastic_list_hosts(elastic);
        return;
    }
}

/* Is a host of this name in use? */
static bool is_there(const struct rueda_launch *launch, const char *name)
{
    for (int i = 0; i < launch->node_count; i++)
        if (launch->nodes[i].state != RUEDA_NODE_GONE &&
            strcmp(launch->nodes[i].name, name) == 0)
            return true;
    return false;
}

struct rueda_node *rueda_elastic_admit(struct rueda_launch *launch,
                                       const char *name)
{
    struct rueda_node *node = &launch->nodes[launch->node_count];

    if (launch->node_count == RUEDA_ELASTIC_MOST_NODES || name[0] == '\0' ||
        is_there(launch, name))
        return NULL;
    *node = (struct rueda_node){.launch = launch,
                                .name = strdup(name),
                                .is_joined = true,
                                .host = -1,
                                .errors = -1};
    if (node->name == NULL)
        return NULL;
    launch->node_count++;
    return node;
}

void rueda_elastic_joined(struct rueda_node *node, int slots)
{
    struct rueda_elastic *elastic = node->launch->elastic;
    struct rueda_hosts_entry host = {.slots = slots};

    if (!node->is_joined || node->host >= 0)
        return;
    snprintf(host.name, sizeof(host.name), "%s", node->name);
    if (host.slots < 1)
        host.slots = 1;
    if (host.slots > RUEDA_HOSTS_MOST_SLOTS)
        host.slots = RUEDA_HOSTS_MOST_SLOTS;
    if (!rueda_hosts_append(&elastic->joined, &host)) {
        rueda_output_say(node->launch->output, "no memory for the host %s",
                         node->name);
        return;
    }
    rueda_output_say(node->launch->output, "%s has joined with %d slot%s",
                     node->name, host.slots, host.slots == 1 ? "" : "s");
    rueda_membership_welcome(elastic->members, node->name);
    rueda_elastic_list_hosts(elastic);
}
