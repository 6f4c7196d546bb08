/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on their way.
 *
 * A message takes its ways one after another. A way works off the messages
 * that reach it in the order in which they do, so that each waits until the
 * way has had time for those before it. Bytes are passed on as they come, so
 * an empty network costs the latencies and the time of the slowest way, once:
 *
 *      start = when the first byte comes, or the way is free
 *      end   = start + length * time of a byte, or when the last byte comes
 *
 *      way 0   |====== m ======|
 *      way 1     latency |= others =|====== m ======|
 *      receiver                                      here
 *
 * What comes slower than a way could take it leaves it as slowly, and does
 * not hold up others meanwhile: the first byte leaves as long before the last
 * as it came, or as the way needs for all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/sim/state.h"

/* ---- Memory ----------------------------------------------------------- */

static bool add_block(struct rueda_sim *sim)
{
    struct rueda_sim_block *block = calloc(1, sizeof(*block));

    if (block == NULL)
        return false;
    block->next = sim->blocks;
    sim->blocks = block;
    for (int i = 0; i < MESSAGES_A_BLOCK; i++) {
        block->messages[i].next = sim->unused;
        sim->unused = &block->messages[i];
    }
    return true;
}

struct rueda_sim_message *rueda_sim_message_new(struct rueda_sim_end *from)
{
    struct rueda_sim *sim = from->sim;
    struct rueda_sim_message *message;

    if (sim->unused == NULL && !add_block(sim))
        return NULL;
    message = sim->unused;
    sim->unused = message->next;
    *message = (struct rueda_sim_message){
        .from = from,
        .prev = from->last,
        .state = MESSAGE_HELD,
    };
    from->waiting++;
    if (from->last != NULL)
        from->last->next = message;
    else
        from->first = message;
    from->last = message;
    return message;
}

static void recycle(struct rueda_sim_message *message)
{
    struct rueda_sim *sim = message->from->sim;

    message->next = sim->unused;
    sim->unused = message;
}

static void unlink_message(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;

    if (message->prev != NULL)
        message->prev->next = message->next;
    else
        from->first = message->next;
    if (message->next != NULL)
        message->next->prev = message->prev;
    else
        from->last = message->prev;
}

static size_t room(const struct rueda_sim_end *end)
{
    const size_t credit = end->sim->settings.credit_bytes;

    return credit > end->under_way ? credit - end->under_way : 0;
}

static bool is_waiting(const struct rueda_sim_message *message)
{
    return message->state == MESSAGE_HELD || message->state == MESSAGE_GRANTED;
}

bool rueda_sim_message_is_behind(const struct rueda_sim_message *message,
                                 enum message_state state)
{
    const struct rueda_sim_message *before = message->prev;

    while (before != NULL && (before->state > state ||
                              !rueda_tag_equal(before->tag, message->tag)))
        before = before->prev;
    return before != NULL;
}

/* Those of one tag leave in order: if their sender gives up, what has left is
 * what was sent first. */
/* The receiver has asked whether there is a message: it gets a turn. */
static void announce(const struct rueda_sim_message *message)
{
    const struct rueda_sim_end *to = message->from->other;

    if (to->has_been_asked && message->recv == NULL)
        rueda_sim_rank_touch(to->sim, to->rank);
}

void rueda_sim_message_send(struct rueda_sim_message *message)
{
    const bool may_go =
        message->recv != NULL || message->len <= room(message->from);

    if (message->from->waiting > 1 &&
        rueda_sim_message_is_behind(message, MESSAGE_GRANTED)) {
        if (message->recv != NULL)
            rueda_sim_message_grant(message);
    } else if (may_go) {
        rueda_sim_message_launch(message);
    }
    if (message->state == MESSAGE_HELD)
        announce(message);
}

/* Credit has come back: for those that have waited longest. */
static void refill(struct rueda_sim_end *end)
{
    struct rueda_sim_message *message = end->first;

    if (end->is_lost || end->state == END_CLOSED)
        return;
    for (; message != NULL && end->waiting > 0; message = message->next) {
        if (message->state != MESSAGE_HELD)
            continue;
        if (message->len > room(end))
            break;
        rueda_sim_message_grant(message);
    }
}

/* Its message will not come; it was posted before all others of its tag. */
static void wait_again(struct rueda_sim_end *end, struct rueda_req *recv)
{
    recv->next = end->recvs.head;
    if (end->recvs.head == NULL)
        end->recvs.tail = recv;
    end->recvs.head = recv;
}

void rueda_sim_message_drop(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;

    if (is_waiting(message))
        from->waiting--;
    if (message->state != MESSAGE_HELD)
        from->under_way -= message->len;
    if (message->state == MESSAGE_FLYING)
        from->flying--;
    /* A receive that waits for it goes on waiting. */
    if (message->recv != NULL)
        wait_again(from->other, message->recv);
    unlink_message(message);
    free(message->bytes);
    message->bytes = NULL;
    message->is_gone = true;
    if (message->events == 0)
        recycle(message);
    refill(from);
}

/* ---- The way ---------------------------------------------------------- */

static void push(struct rueda_sim_message *message, uint64_t at_ns,
                 enum event_kind kind)
{
    message->events++;
    rueda_sim_push(message->from->sim, at_ns, kind, message,
                   message->from->rank);
}

void rueda_sim_message_grant(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;
    const uint64_t latency_ns = rueda_sim_net_latency(
        &from->sim->settings.net, from->super.peer, from->rank);

    message->state = MESSAGE_GRANTED;
    from->under_way += message->len;
    push(message, from->sim->now_ns + latency_ns, EVENT_GO);
}

/* Its first byte stands before its next way. */
static void hop(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;
    struct rueda_sim *sim = from->sim;
    const struct rueda_sim_net *net = &sim->settings.net;
    const int to = from->super.peer;
    const uint64_t until = rueda_sim_trouble_until(sim, from->rank, to);
    struct rueda_sim_way *way;
    uint64_t start = sim->now_ns;
    uint64_t end;
    uint64_t latency;
    uint64_t work;
    uint64_t spread; /* from the first byte to the last */

    if (until > sim->now_ns) {
        /* What never gets through is ended with its endpoint. */
        if (until != RUEDA_SIM_NEVER)
            push(message, until, EVENT_HOP);
        return;
    }
    way = &sim->ways[rueda_sim_net_hop(net, from->rank, to, message->hop)];
    if (start < way->free_ns)
        start = way->free_ns;
    work = (uint64_t)((double)message->len * way->ns_per_byte + 0.5);
    end = start + work;
    way->free_ns = end;
    if (end < message->tail_ns)
        end = message->tail_ns;
    spread = work;
    if (message->tail_ns > sim->now_ns + work)
        spread = message->tail_ns - sim->now_ns;
    latency = way->latency_ns;
    if (way->jitter_ns > 0)
        latency += rueda_dice_below(&sim->dice, way->jitter_ns + 1);
    message->tail_ns = end + latency;
    if (message->hop == 0)
        push(message, end, EVENT_SENT);
    message->hop++;
    if (rueda_sim_net_hop(net, from->rank, to, message->hop) >= 0)
        push(message, end - spread + latency, EVENT_HOP);
    else
        push(message, message->tail_ns, EVENT_HERE);
}

static rueda_status copy_bytes(struct rueda_sim_message *message)
{
    const bool is_phantom = message->from->sim->settings.is_phantom;

    if (message->len == 0 ||
        (is_phantom && message->tag.sequence != RUEDA_TAG_CONTROL))
        return RUEDA_OK;
    message->bytes = malloc(message->len);
    if (message->bytes == NULL)
        return RUEDA_ERR_NOMEM;
    memcpy(message->bytes, message->send->buf, message->len);
    return RUEDA_OK;
}

void rueda_sim_message_launch(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;
    const struct rueda_sim_rank *rank = &from->sim->ranks[from->rank];

    if (copy_bytes(message) != RUEDA_OK) {
        rueda_sim_end_complete(from, message->send, RUEDA_ERR_NOMEM);
        rueda_sim_message_drop(message);
        return;
    }
    if (message->state == MESSAGE_HELD)
        from->under_way += message->len;
    from->waiting--;
    message->state = MESSAGE_FLYING;
    from->flying++;
    message->tail_ns = from->sim->now_ns;
    if (rank->busy_ns > from->sim->now_ns) {
        message->tail_ns = rank->busy_ns;
        push(message, rank->busy_ns, EVENT_HOP);
    } else {
        hop(message);
    }
}

/* ---- Arrival ---------------------------------------------------------- */

static void note_bytes(struct rueda_sim *sim, const char *bytes, size_t len)
{
    uint64_t word = 0;
    size_t at = 0;

    for (; at + sizeof(word) <= len; at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        rueda_sim_note(sim, word);
    }
    word = 0;
    memcpy(&word, bytes + at, len - at);
    rueda_sim_note(sim, word);
}

rueda_status rueda_sim_message_deliver(struct rueda_sim_message *message)
{
    struct rueda_sim_end *to = message->from->other;
    const struct rueda_req *recv = message->recv;
    rueda_status status = RUEDA_OK;

    rueda_sim_note(to->sim, message->len);
    if (recv->len != message->len) {
        status = RUEDA_ERR_MISMATCH;
    } else if (message->bytes != NULL) {
        memcpy(recv->buf, message->bytes, message->len);
        note_bytes(to->sim, message->bytes, message->len);
    }
    message->recv = NULL;
    rueda_sim_message_drop(message);
    rueda_sim_rank_charge(to->sim, to->rank, 1);
    return status;
}

static void arrive(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;
    struct rueda_sim_end *to = from->other;
    const bool is_welcome = to->state != END_CLOSED && !to->is_lost &&
                            !to->sim->ranks[to->rank].is_dead;

    message->state = MESSAGE_HERE;
    from->flying--;
    if (message->is_end)
        to->has_end_come = true;
    if (!is_welcome || message->is_end) {
        rueda_sim_message_drop(message);
    } else if (message->recv != NULL) {
        struct rueda_req *recv = message->recv;

        rueda_sim_end_complete(to, recv, rueda_sim_message_deliver(message));
    } else {
        announce(message);
    }
    if (to->has_end_come && from->flying == 0)
        rueda_sim_end_lose(to);
}

static void sent(struct rueda_sim_message *message)
{
    struct rueda_sim_end *from = message->from;

    /* A rank that has died in the meantime has not sent it. */
    if (from->sim->ranks[from->rank].is_dead) {
        rueda_sim_message_drop(message);
    } else if (message->send != NULL) {
        rueda_sim_end_complete(from, message->send, RUEDA_OK);
        message->send = NULL;
    }
}

void rueda_sim_message_event(struct rueda_sim_message *message,
                             enum event_kind kind)
{
    struct rueda_sim *sim = message->from->sim;

    message->events--;
    if (message->is_gone) {
        if (message->events == 0)
            recycle(message);
        return;
    }
    rueda_sim_note(sim, (uint64_t)message->from->super.peer);
    rueda_sim_note(sim, message->tag.sequence);
    if (kind == EVENT_HOP)
        hop(message);
    else if (kind == EVENT_SENT)
        sent(message);
    else if (kind == EVENT_HERE)
        arrive(message);
    else if (sim->ranks[message->from->rank].is_dead)
        rueda_sim_message_drop(message);
    else
        rueda_sim_message_launch(message);
}
