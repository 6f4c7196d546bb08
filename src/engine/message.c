/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message from a given peer, or to one, is a request of the mesh from the
 * start. One from any peer waits in a list until the mesh finds a message for
 * it; then it is a request like the others. Should the sender be lost in the
 * middle of it, it waits again.
 *
 * In the lane of the whole job a message that needs a lost rank ends alone; in
 * other lanes the formation has lost a member, and all operations end.
 */
#include "engine/message.h"

#include <stdlib.h>

#include "engine/failing.h"
#include "engine/lane.h"
#include "engine/lanes.h"

struct rueda_message {
    struct rueda_message *next;
    struct rueda_ticket *ticket;
    int peer; /* in the set; -1: any, and none is found yet */
    bool is_any;
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

static void message_drop(struct rueda_messages *messages,
                         struct rueda_message *message)
{
    message->next = messages->spare;
    messages->spare = message;
}

static struct rueda_tag tag_of(const struct rueda_lane *lane,
                               const struct rueda_ticket *ticket)
{
    const struct rueda_tag tag = {
        .set = lane->track.tag.set,
        .sequence = RUEDA_LANE_MESSAGES | (uint64_t)ticket->tag,
    };

    return rueda_track_tag(tag, ticket->request.dtype);
}

static size_t bytes_of(const struct rueda_ticket *ticket)
{
    return rueda_request_count(&ticket->request) *
           rueda_dtype_size(ticket->request.dtype);
}

static size_t rows_of(const struct rueda_ticket *ticket)
{
    return ticket->request.dims > 0 ? (size_t)ticket->request.shape[0] : 1;
}

/* Where a received message goes; false: there is no memory for it. */
static bool find_room(struct rueda_ticket *ticket, size_t rows, size_t bytes)
{
    ticket->rows = rows;
    ticket->data = ticket->recv;
    if (ticket->data == NULL && ticket->alloc != NULL)
        ticket->data = ticket->alloc(ticket->alloc_arg, rows, bytes);
    return ticket->data != NULL || bytes == 0;
}

/* ---- The ends of messages ------------------------------------------------ */

/* It has ended: out of its list and away. */
static void finish(struct rueda_lane *lane, struct rueda_message **link,
                   rueda_status status)
{
    struct rueda_message *message = *link;
    struct rueda_ticket *ticket = message->ticket;

    *link = message->next;
    lane->messages.count--;
    if (message->is_any && message->peer >= 0)
        ticket->peer = lane->set->ranks[message->peer];
    message_drop(&lane->messages, message);
    if (status == RUEDA_ERR_MISMATCH)
        rueda_batch_refuse(ticket, status,
                           "the message has another size than its receiver "
                           "expects");
    rueda_lane_finish(lane, ticket, status);
}

/* In the lane of the whole job. */
static void finish_lost(struct rueda_lane *lane, struct rueda_message **link)
{
    struct rueda_ticket *ticket = (*link)->ticket;
    struct rueda_text words = {{0}};

    if ((*link)->peer < 0) {
        rueda_text_set(&words, "all other ranks of the job have left or died");
    } else {
        const int peer = lane->set->ranks[(*link)->peer];

        atomic_store(&lane->lanes->lost[peer], true);
        rueda_text_set(&words, "rank %d has left or died, or is out of reach",
                       peer);
    }
    rueda_batch_refuse(ticket, RUEDA_ERR_PEER_LOST, words.chars);
    finish(lane, link, RUEDA_ERR_PEER_LOST);
}

/* ---- From any peer ------------------------------------------------------- */

/* Behind those that were posted before. */
static void wait_for_any(struct rueda_lane *lane, struct rueda_message *message)
{
    struct rueda_message **end = &lane->messages.waiting;

    while (*end != NULL)
        end = &(*end)->next;
    message->peer = -1;
    message->next = NULL;
    *end = message;
}

/* A message of len bytes has come from a peer. One that does not fit is
 * received as what was asked for, which ends it as a mismatch. */
static void receive_found(struct rueda_lane *lane, struct rueda_message **link,
                          int peer, size_t len)
{
    struct rueda_message *message = *link;
    struct rueda_ticket *ticket = message->ticket;
    const size_t most = bytes_of(ticket);
    const size_t rows = rows_of(ticket);
    const size_t row = rows > 0 ? most / rows : 0;
    const bool fits = len <= most && (row > 0 ? len % row == 0 : len == most);
    const size_t bytes = fits ? len : most;

    message->peer = peer;
    if (!find_room(ticket, row > 0 ? bytes / row : rows, bytes)) {
        finish(lane, link, RUEDA_ERR_NOMEM);
        return;
    }
    *link = message->next;
    message->next = lane->messages.first;
    lane->messages.first = message;
    rueda_mesh_recv(lane->mesh, peer, tag_of(lane, ticket), ticket->data, bytes,
                    &message->req);
}

static void note_lost(struct rueda_lane *lane)
{
    for (int i = 0; i < lane->set->size; i++)
        if (i != lane->set->me && rueda_mesh_is_lost(lane->mesh, i))
            atomic_store(&lane->lanes->lost[lane->set->ranks[i]], true);
}

static rueda_status turn_waiting(struct rueda_lane *lane)
{
    struct rueda_message **link = &lane->messages.waiting;
    rueda_status moved = RUEDA_IN_PROGRESS;

    while (*link != NULL) {
        size_t len = 0;
        int peer = -1;
        rueda_status status = rueda_mesh_find(
            lane->mesh, tag_of(lane, (*link)->ticket), &peer, &len);

        if (status == RUEDA_IN_PROGRESS) {
            link = &(*link)->next;
            continue;
        }
        if (status == RUEDA_OK)
            receive_found(lane, link, peer, len);
        else if (status != RUEDA_ERR_PEER_LOST)
            finish(lane, link, status);
        else if (rueda_lane_is_for_messages(lane))
            finish_lost(lane, link);
        else
            return status;
        moved = RUEDA_OK;
    }
    return moved;
}

/* ---- Life ---------------------------------------------------------------- */

void rueda_message_begin(struct rueda_lane *lane, struct rueda_ticket *ticket)
{
    const bool is_send = ticket->request.kind == RUEDA_SEND;
    const bool is_any = !is_send && ticket->peer == RUEDA_ANY_PEER;
    const size_t bytes = bytes_of(ticket);
    const int peer = is_any ? -1 : rueda_set_index(lane->set, ticket->peer);
    struct rueda_message *message;

    if ((peer < 0 && !is_any) || peer == lane->set->me || ticket->tag < 0) {
        rueda_batch_refuse(ticket, RUEDA_ERR_INVALID,
                           "the peer of a message is another member of its "
                           "process set, and its tag is not negative");
        rueda_lane_finish(lane, ticket, ticket->op.outcome);
        return;
    }
    message = message_new(&lane->messages);
    if (message == NULL ||
        (!is_send && !is_any && !find_room(ticket, rows_of(ticket), bytes))) {
        free(message);
        rueda_lane_finish(lane, ticket, RUEDA_ERR_NOMEM);
        return;
    }
    message->ticket = ticket;
    message->peer = peer;
    message->is_any = is_any;
    lane->messages.count++;
    if (is_any) {
        wait_for_any(lane, message);
        return;
    }
    message->next = lane->messages.first;
    lane->messages.first = message;
    if (is_send)
        rueda_mesh_send(lane->mesh, peer, tag_of(lane, ticket), ticket->send,
                        bytes, &message->req);
    else
        rueda_mesh_recv(lane->mesh, peer, tag_of(lane, ticket), ticket->data,
                        bytes, &message->req);
}

/* The peer of a message of the whole job is lost. */
static void lose(struct rueda_lane *lane, struct rueda_message **link)
{
    struct rueda_message *message = *link;

    if (!message->is_any) {
        finish_lost(lane, link);
        return;
    }
    *link = message->next;
    wait_for_any(lane, message);
}

rueda_status rueda_messages_turn(struct rueda_lane *lane)
{
    struct rueda_message **link = &lane->messages.first;
    rueda_status moved;

    if (lane->messages.count == 0)
        return RUEDA_IN_PROGRESS;
    if (rueda_lane_is_for_messages(lane))
        note_lost(lane);
    moved = turn_waiting(lane);
    while (*link != NULL && moved >= 0) {
        rueda_status status = (*link)->req.status;

        if (status == RUEDA_IN_PROGRESS) {
            link = &(*link)->next;
            continue;
        }
        if (status == RUEDA_ERR_PEER_LOST && rueda_lane_is_for_messages(lane)) {
            lose(lane, link);
        } else if (status < 0 && rueda_failing_size_of(status, true) !=
                                     RUEDA_FAILING_OPERATION) {
            return status;
        } else {
            finish(lane, link, status);
        }
        moved = RUEDA_OK;
    }
    return moved;
}

void rueda_messages_end(struct rueda_lane *lane, rueda_status status)
{
    while (lane->messages.first != NULL)
        finish(lane, &lane->messages.first, status);
    while (lane->messages.waiting != NULL)
        finish(lane, &lane->messages.waiting, status);
}

void rueda_messages_fini(struct rueda_messages *messages)
{
    while (messages->spare != NULL) {
        struct rueda_message *next = messages->spare->next;

        free(messages->spare);
        messages->spare = next;
    }
}
