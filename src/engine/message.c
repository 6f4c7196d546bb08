/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/message.h"

#include <stdlib.h>

#include "engine/failing.h"
#include "engine/lane.h"

struct rueda_message {
    struct rueda_message *next;
    struct rueda_named *named;
    struct rueda_req req;
};

static struct rueda_message *message_new(struct rueda_messages *messages)
{
    struct rueda_message *message = messages->spare;

    if (message != NULL)
        messages->spare = message->next;
    else
        message = malloc(sizeof(*message));
    return message;
}

/* Where a received message goes; false: there is no memory for it. */
static bool find_room(struct rueda_named *named, size_t bytes)
{
    named->rows = named->request.dims > 0 ? named->request.shape[0] : 1;
    named->data = named->recv;
    if (named->data == NULL && named->alloc != NULL)
        named->data = named->alloc(named->alloc_arg, named->rows, bytes);
    return named->data != NULL || bytes == 0;
}

void rueda_message_begin(struct rueda_lane *lane, struct rueda_named *named)
{
    const bool is_send = named->request.kind == RUEDA_SEND;
    const size_t bytes = rueda_request_count(&named->request) *
                         rueda_dtype_size(named->request.dtype);
    const int peer = rueda_set_index(lane->set, named->peer);
    const struct rueda_tag tag = {
        .set = lane->track.tag.set,
        .sequence = RUEDA_LANE_MESSAGES | (uint64_t)named->tag,
    };
    struct rueda_message *message;

    if (peer < 0 || peer == lane->set->me || named->tag < 0) {
        rueda_batch_refuse(named, RUEDA_ERR_INVALID,
                           "the peer of a message is another member of its "
                           "process set, and its tag is not negative");
        rueda_lane_finish(lane, named, named->op.outcome);
        return;
    }
    message = message_new(&lane->messages);
    if (message == NULL || (!is_send && !find_room(named, bytes))) {
        free(message);
        rueda_lane_finish(lane, named, RUEDA_ERR_NOMEM);
        return;
    }
    message->named = named;
    message->next = lane->messages.first;
    lane->messages.first = message;
    lane->messages.count++;
    if (is_send)
        rueda_mesh_send(lane->mesh, peer, tag, named->send, bytes,
                        &message->req);
    else
        rueda_mesh_recv(lane->mesh, peer, tag, named->data, bytes,
                        &message->req);
}

/* It has ended: out of the list and away. */
static void finish(struct rueda_lane *lane, struct rueda_message **link,
                   rueda_status status)
{
    struct rueda_message *message = *link;

    *link = message->next;
    lane->messages.count--;
    message->next = lane->messages.spare;
    lane->messages.spare = message;
    if (status == RUEDA_ERR_MISMATCH)
        rueda_batch_refuse(message->named, status,
                           "the message has another size than its receiver "
                           "expects");
    rueda_lane_finish(lane, message->named, status);
}

rueda_status rueda_messages_turn(struct rueda_lane *lane)
{
    struct rueda_message **link = &lane->messages.first;
    rueda_status moved = RUEDA_IN_PROGRESS;

    while (*link != NULL) {
        rueda_status status = (*link)->req.status;

        if (status == RUEDA_IN_PROGRESS) {
            link = &(*link)->next;
            continue;
        }
        if (status < 0 &&
            rueda_failing_size_of(status, true) != RUEDA_FAILING_OPERATION)
            return status;
        finish(lane, link, status);
        moved = RUEDA_OK;
    }
    return moved;
}

void rueda_messages_end(struct rueda_lane *lane, rueda_status status)
{
    while (lane->messages.first != NULL)
        finish(lane, &lane->messages.first, status);
}

void rueda_messages_fini(struct rueda_messages *messages)
{
    while (messages->spare != NULL) {
        struct rueda_message *next = messages->spare->next;

        free(messages->spare);
        messages->spare = next;
    }
}
