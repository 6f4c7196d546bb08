/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of an elastic job in the launcher share; not for other files.
 * On the loop's thread. */
#ifndef RUEDA_LAUNCH_ELASTIC_STATE_H
#define RUEDA_LAUNCH_ELASTIC_STATE_H

#include <pthread.h>

#include "launch/discovery.h"
#include "launch/elastic_run.h"
#include "launch/membership.h"

/* A process asks for a place, or says that it was told to leave. */
struct rueda_question {
    struct rueda_question *next;
    int worker;
    bool is_leaving;
    uint64_t progress;
};

struct rueda_elastic {
    struct rueda_launch *launch;
    struct rueda_membership *members;
    struct rueda_discovery *discovery;
    struct rueda_hosts listed; /* by -H, a file or a script, last */
    struct rueda_hosts joined; /* those that have come by themselves */
    uv_timer_t timer;
    uv_async_t asked; /* there are questions */
    pthread_mutex_t lock;
    struct rueda_question *questions; /* under the lock, the newest first */
    int *nodes;                       /* [host_room], of each host; -1: none */
    int64_t *until_ns; /* [host_room], for its agent to be there */
    int host_room;
    int *worker_nodes; /* [worker_room] */
    int worker_room;
};

/* The timer for what comes next; after each event. */
void rueda_elastic_set_timer(struct rueda_elastic *elastic);

/* ---- elastic_join.c ------------------------------------------------------ */

/* The hosts that may be used have changed. */
void rueda_elastic_list_hosts(struct rueda_elastic *elastic);

/* The agent that has come from this host by itself and has no host of the
 * membership yet; NULL: none. */
struct rueda_node *rueda_elastic_find_joined(struct rueda_elastic *elastic,
                                             const char *name);

/* A node that had come by itself is gone. */
void rueda_elastic_forget_joined(struct rueda_elastic *elastic,
                                 const struct rueda_node *node);

#endif /* RUEDA_LAUNCH_ELASTIC_STATE_H */
