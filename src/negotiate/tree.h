/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree by which members negotiate. The lowest member of each host leads it.
 * Leaders form a tree whose root is the coordinator, member 0; below each of
 * them the others of its host form one more:
 *
 *      host a    host b    host c
 *      0 <------ 4 , <---- 6           leaders
 *      | \       |         |
 *      1  2      5         7           members of their hosts
 *
 * so each message crosses the network as rarely as it can, and no member has
 * more than RUEDA_TREE_CHILDREN children. Pure arithmetic.
 */
#ifndef RUEDA_NEGOTIATE_TREE_H
#define RUEDA_NEGOTIATE_TREE_H

#include <rueda/rueda.h>

#define RUEDA_TREE_LOCAL    16 /* children on the same host */
#define RUEDA_TREE_LEADERS  4  /* on other hosts, of a leader */
#define RUEDA_TREE_CHILDREN (RUEDA_TREE_LOCAL + RUEDA_TREE_LEADERS)

/* A member's place in it. */
struct rueda_tree {
    int parent; /* -1: I am the coordinator */
    int child_count;
    int children[RUEDA_TREE_CHILDREN];
    int sizes[RUEDA_TREE_CHILDREN]; /* members below and with each child */
};

/* hosts[size] numbers the members' hosts, from 0; numbers may be left out, as
 * they are of the job. NULL: all are on one. RUEDA_ERR_NOMEM. */
rueda_status rueda_tree_init(struct rueda_tree *tree, int me, int size,
                             const int *hosts);

/* The members with and below one, ascending, into members[size]; their number,
 * or -1 without memory. */
int rueda_tree_below(int member, int size, const int *hosts, int *members);

#endif /* RUEDA_NEGOTIATE_TREE_H */
