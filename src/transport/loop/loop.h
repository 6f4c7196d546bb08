/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport between ranks that are threads of one process, and the plainest
 * one that keeps the contract: the others are compared with it.
 *
 * A link joins two ends. What is posted at either end waits in the link's lists
 * until its counterpart comes; the end that posts second copies the bytes,
 * once, from the sender's buffer into the receiver's. A send therefore ends
 * when it has been received.
 *
 * Uses base only. Each end belongs to one thread at a time; the two ends may be
 * driven by two threads.
 */
#ifndef RUEDA_TRANSPORT_LOOP_LOOP_H
#define RUEDA_TRANSPORT_LOOP_LOOP_H

#include "transport/transport.h"

/* The kinds of memory that its messages may be in. */
#define RUEDA_LOOP_MEMORY RUEDA_MEMKIND_HOST

/* Two ends of one link. out_a is used by rank_a, its peer is rank_b; out_b the
 * other way round. Each is closed by itself. */
rueda_status rueda_loop_pair(int rank_a, int rank_b, struct rueda_ep **out_a,
                             struct rueda_ep **out_b);

/* ---- Hub: the links of a whole job ----------------------------------- */

struct rueda_loop_hub;

/* A hub for size ranks, each of which lets go of it once, by
 * rueda_loop_hub_release(), after it has closed its endpoints. */
rueda_status rueda_loop_hub_open(int size, struct rueda_loop_hub **out_hub);
void rueda_loop_hub_release(struct rueda_loop_hub *hub);

/*
 * This rank is gone, dead or finished: ends that were made for it and that it
 * has not asked for are closed, and a rank that connects to it later finds it
 * lost.
 * Optional, before the release. Endpoints that it has are not touched.
 */
void rueda_loop_hub_leave(struct rueda_loop_hub *hub, int rank);

/*
 * Make the endpoint of two ranks of the hub, or take the one that the peer has
 * made. One whose peer has closed its end since, and has not left, is of no use
 * to either: then a new one is made. Any thread.
 */
rueda_status rueda_loop_hub_connect(struct rueda_loop_hub *hub, int rank,
                                    int peer, struct rueda_ep **out_ep);

/*
 * The hub as one of its ranks sees it, by the table of transport.h: it connects
 * with a peer by its number, hanging up is leaving, and closing is releasing.
 * It has no descriptors, no duties and no words.
 */
rueda_status rueda_loop_hub_of_rank(struct rueda_loop_hub *hub, int rank,
                                    struct rueda_hub **out);

/* For rueda_mesh_init(), with the hub as owner. Any thread. */
rueda_status rueda_loop_connect(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep);

#endif /* RUEDA_TRANSPORT_LOOP_LOOP_H */
