/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An elastic job in the launcher's loop: it passes events to the membership
 * (membership.h) and carries out its actions. Events come from agents, from the
 * discovery of hosts, and through the store from the processes themselves.
 * Every host that is used has a node; one that comes back gets a new node. On
 * the loop's thread, unless noted.
 */
#ifndef RUEDA_LAUNCH_ELASTIC_RUN_H
#define RUEDA_LAUNCH_ELASTIC_RUN_H

#include "launch/launch_state.h"

/* Nodes over the life of a job. */
#define RUEDA_ELASTIC_MOST_NODES 4096

struct rueda_elastic;

/* Before the loop runs. False with words. */
bool rueda_elastic_open(struct rueda_launch *launch, struct rueda_text *words);

/* Make the handles of the loop: before the store is opened, whose thread wakes
 * it. */
void rueda_elastic_listen(struct rueda_launch *launch);

/* Begin: find hosts. The output, the store and the loop are there. */
bool rueda_elastic_begin(struct rueda_launch *launch, struct rueda_text *words);

/* Stop; and free, once the loop has run dry and the store is closed. NULL is
 * allowed. */
void rueda_elastic_close(struct rueda_elastic *elastic);
void rueda_elastic_free(struct rueda_elastic *elastic);

/* The store's: a process asks for a place. On the keeper's thread. */
void rueda_elastic_on_key(void *arg, const char *key, size_t key_bytes,
                          const void *value, size_t bytes);

/* What agents tell: they are there, they can start processes, they are lost. */
void rueda_elastic_node_ready(struct rueda_node *node);
void rueda_elastic_node_prepared(struct rueda_node *node);
void rueda_elastic_node_lost(struct rueda_node *node, const char *why);

/* The host of an agent is to go soon: its ranks leave at the next commit. */
void rueda_elastic_drain(struct rueda_node *node);

/* An agent has come from a host that no list names: a new node for it. NULL: a
 * host of this name is there already, or there are too many. */
struct rueda_node *rueda_elastic_admit(struct rueda_launch *launch,
                                       const char *name);

/* It is ready, and has this many slots. */
void rueda_elastic_joined(struct rueda_node *node, int slots);

/* Does this process belong to the node? */
bool rueda_elastic_owns(const struct rueda_node *node, uint32_t worker);

/* A process has ended; ending->rank is its number. */
void rueda_elastic_ended(struct rueda_node *node,
                         const struct rueda_ending *ending);

/* "rank 2", or "process 5" for one that has no rank. */
void rueda_elastic_title(const struct rueda_launch *launch, int worker,
                         struct rueda_text *out);

#endif /* RUEDA_LAUNCH_ELASTIC_RUN_H */
