/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport between two processes of a host, through memory that both have
 * mapped. A message is copied twice, piece by piece, so that the receiver reads
 * a piece out of the cache while the sender writes the next; small ones travel
 * inside their announcement. pipe.h has the protocol.
 *
 * Uses base and segment. An endpoint belongs to one thread at a time.
 */
#ifndef RUEDA_TRANSPORT_SHM_SHM_H
#define RUEDA_TRANSPORT_SHM_SHM_H

#include "segment/segment.h"
#include "transport/transport.h"

/* The kinds of memory that its messages may be in. */
#define RUEDA_SHM_MEMORY RUEDA_MEMKIND_HOST

/* The bytes that two ranks need between them, a whole number of pages. Most of
 * them are never touched, and cost nothing, unless messages are long. */
size_t rueda_shm_pair_bytes(void);

/*
 * Make one end. area is page aligned, zero at first, and both ends' alone; it
 * is borrowed until both are closed, and must be zeroed before it serves
 * another pair. side is 0 for the lower rank and 1 for the higher. peer is the
 * peer's rank in the mesh and peer_member its rank in the segment, by which it
 * is woken and its death is learned.
 */
rueda_status rueda_shm_ep_open(struct rueda_segment *segment, void *area,
                               int side, int peer, int peer_member,
                               struct rueda_ep **out_ep);

#endif /* RUEDA_TRANSPORT_SHM_SHM_H */
