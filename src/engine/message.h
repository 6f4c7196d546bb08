/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives of a lane. They are not negotiated: a message is matched
 * by its set, peer and tag.
 *
 * Used by the thread that holds the engine's token.
 */
#ifndef RUEDA_ENGINE_MESSAGE_H
#define RUEDA_ENGINE_MESSAGE_H

#include "op/ticket.h"
#include "transport/transport.h"

struct rueda_lane;
struct rueda_message;

/* Zero has none. */
struct rueda_messages {
    struct rueda_message *first;   /* in flight */
    struct rueda_message *waiting; /* from any peer, oldest first: none is
                                      found yet */
    int count;                     /* of both */
    struct rueda_message *spare;
};

/* Begin one; it ends by rueda_lane_finish(), at once if it cannot run. */
void rueda_message_begin(struct rueda_lane *lane, struct rueda_ticket *ticket);

/* End those that have come through. RUEDA_OK if there were any; a lost peer is
 * a failure, but in the lane of the whole job, where only what needs that peer
 * ends. */
rueda_status rueda_messages_turn(struct rueda_lane *lane);

/* Nothing is in flight any more: end all with this status. */
void rueda_messages_end(struct rueda_lane *lane, rueda_status status);

/* None is in flight. */
void rueda_messages_fini(struct rueda_messages *messages);

#endif /* RUEDA_ENGINE_MESSAGE_H */
