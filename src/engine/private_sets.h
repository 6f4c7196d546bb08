/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private sets: process sets of which only their members know. The members make
 * one by messages between its lowest member, who leads, and each of the others;
 * it ends when all of them have closed it. No other rank takes part.
 *
 * For the holder of the engine's token. Nothing blocks.
 */
#ifndef RUEDA_ENGINE_PRIVATE_SETS_H
#define RUEDA_ENGINE_PRIVATE_SETS_H

#include "engine/lanes.h"

/* Begin to make one: an operation of kind RUEDA_SET_OPEN, whose ranks are those
 * of the set, ascending, and whose made_set is its id. */
void rueda_private_sets_open(struct rueda_lanes *lanes,
                             struct rueda_ticket *ticket);

/* Get on with those in the making, and drop those that are closed. RUEDA_OK if
 * anything moved, RUEDA_IN_PROGRESS if not. A failure is one of the context. */
rueda_status rueda_private_sets_turn(struct rueda_lanes *lanes);

/* End those in the making; the mesh has been cancelled. */
void rueda_private_sets_end(struct rueda_lanes *lanes, rueda_status status);

/* Is a member of this host gone without whom one cannot be made? */
bool rueda_private_sets_are_spoilt(const struct rueda_lanes *lanes);

/* Does the lane hold nothing but the end of its set? */
bool rueda_private_sets_is_closing(const struct rueda_lane *lane);

/* A member has left the job: if that is so, the set ends without the other
 * members. False: there is more in the lane. */
bool rueda_private_sets_abandon(struct rueda_lane *lane);

/* May the memory of a closed lane be freed? The lowest member of a host has
 * the slab, and keeps it until no other member looks at it. */
bool rueda_private_sets_may_free(struct rueda_lane *lane);

#endif /* RUEDA_ENGINE_PRIVATE_SETS_H */
