/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: the contract of transport.h on top of messages. */
#define RUEDA_LOG_TAG "sim"

#include <stdlib.h>

#include "base/log.h"
#include "transport/sim/state.h"

static void lock(struct rueda_sim *sim)
{
    if (sim->program == NULL)
        pthread_mutex_lock(&sim->lock);
}

static void unlock(struct rueda_sim *sim)
{
    if (sim->program == NULL)
        pthread_mutex_unlock(&sim->lock);
}

/* ---- Requests --------------------------------------------------------- */

/* For the thread that owns it. */
static void finish(struct rueda_req *req, rueda_status status)
{
    req->done = status == RUEDA_OK ? req->len : 0;
    req->status = status;
}

void rueda_sim_end_complete(struct rueda_sim_end *end, struct rueda_req *req,
                            rueda_status status)
{
    if (end->sim->program != NULL) {
        finish(req, status);
        rueda_sim_rank_touch(end->sim, end->rank);
    } else {
        req->channel = status;
        rueda_reqs_push(&end->ended, req);
    }
}

static bool carry_over(struct rueda_sim_end *end)
{
    bool any = false;
    struct rueda_req *req = rueda_reqs_pop(&end->ended);

    for (; req != NULL; req = rueda_reqs_pop(&end->ended)) {
        finish(req, (rueda_status)req->channel);
        any = true;
    }
    return any;
}

static void begin_send(struct rueda_sim_end *end, struct rueda_req *req)
{
    struct rueda_sim_message *message;

    if (end->is_lost) {
        finish(req, RUEDA_ERR_PEER_LOST);
        return;
    }
    message = rueda_sim_message_new(end);
    if (message == NULL) {
        finish(req, RUEDA_ERR_NOMEM);
        return;
    }
    message->send = req;
    message->tag = req->tag;
    message->len = req->len;
    message->recv = rueda_reqs_take(&end->other->recvs, req->tag);
    rueda_sim_rank_charge(end->sim, end->rank, 1);
    rueda_sim_message_send(message);
}

/* The oldest message of this tag that no receive waits for, or NULL. */
static struct rueda_sim_message *find_message(const struct rueda_sim_end *end,
                                              struct rueda_tag tag)
{
    struct rueda_sim_message *message = end->other->first;

    while (message != NULL &&
           (message->recv != NULL || message->is_end ||
            (end->is_lost && message->state != MESSAGE_HERE) ||
            !rueda_tag_equal(message->tag, tag)))
        message = message->next;
    return message;
}

static void begin_recv(struct rueda_sim_end *end, struct rueda_req *req)
{
    struct rueda_sim_message *message = find_message(end, req->tag);

    if (message == NULL && end->is_lost) {
        finish(req, RUEDA_ERR_PEER_LOST);
    } else if (message == NULL) {
        rueda_reqs_push(&end->recvs, req);
    } else {
        message->recv = req;
        if (message->state == MESSAGE_HERE)
            finish(req, rueda_sim_message_deliver(message));
        else if (message->state == MESSAGE_HELD)
            rueda_sim_message_grant(message);
    }
}

static void sim_send(struct rueda_ep *super, struct rueda_tag tag,
                     const void *buf, size_t len, struct rueda_req *req)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;

    rueda_req_begin(req, tag, buf, len);
    lock(end->sim);
    begin_send(end, req);
    unlock(end->sim);
}

static void sim_recv(struct rueda_ep *super, struct rueda_tag tag, void *buf,
                     size_t len, struct rueda_req *req)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;

    rueda_req_begin(req, tag, buf, len);
    lock(end->sim);
    begin_recv(end, req);
    unlock(end->sim);
}

/* One that is held back at its sender has been announced: it needs the receive
 * to be sent. One that flies is not known here. */
static rueda_status sim_peek(struct rueda_ep *super, struct rueda_tag tag,
                             size_t *out_len)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;
    rueda_status status = RUEDA_IN_PROGRESS;
    const struct rueda_sim_message *message;

    lock(end->sim);
    end->has_been_asked = true;
    message = find_message(end, tag);
    if (message != NULL &&
        (message->state == MESSAGE_HERE || message->state == MESSAGE_HELD)) {
        *out_len = message->len;
        status = RUEDA_OK;
    } else if (message == NULL && end->is_lost) {
        status = RUEDA_ERR_PEER_LOST;
    }
    unlock(end->sim);
    return status;
}

bool rueda_sim_end_has_mail(const struct rueda_sim_end *end)
{
    const struct rueda_sim_message *message = end->other->first;

    while (message != NULL && message->state != MESSAGE_HERE)
        message = message->next;
    return message != NULL;
}

/* Drops the messages of past terms that have come, or that are held back until
 * a receive is there. */
static void drop_stale(struct rueda_sim_end *end)
{
    struct rueda_sim_message *message =
        end->super.term.current > 0 ? end->other->first : NULL;

    while (message != NULL) {
        struct rueda_sim_message *next = message->next;

        if (!message->is_end && message->recv == NULL &&
            (message->state == MESSAGE_HERE ||
             message->state == MESSAGE_HELD) &&
            rueda_term_drops(&end->super.term, message->tag)) {
            if (message->send != NULL)
                rueda_sim_end_complete(message->from, message->send, RUEDA_OK);
            message->send = NULL;
            rueda_sim_message_drop(message);
        }
        message = next;
    }
}

static void sim_begin_term(struct rueda_ep *super)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;

    lock(end->sim);
    drop_stale(end);
    unlock(end->sim);
}

static rueda_status sim_progress(struct rueda_ep *super)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;
    struct rueda_sim *sim = end->sim;
    rueda_status status = RUEDA_IN_PROGRESS;

    lock(sim);
    if (carry_over(end)) {
        status = RUEDA_OK;
    } else if (sim->program == NULL) {
        rueda_sim_step(sim);
        if (carry_over(end))
            status = RUEDA_OK;
    }
    drop_stale(end);
    if (end->is_lost && !rueda_sim_end_has_mail(end))
        status = RUEDA_ERR_PEER_LOST;
    unlock(sim);
    return status;
}

/* ---- Ends ------------------------------------------------------------- */

/* What this end has sent and not yet let go. */
static void cancel_sends(struct rueda_sim_end *end, rueda_status status)
{
    struct rueda_sim_message *message = end->first;

    while (message != NULL) {
        struct rueda_sim_message *next = message->next;

        if (message->send != NULL)
            finish(message->send, status);
        message->send = NULL;
        if (message->state == MESSAGE_HELD || message->state == MESSAGE_GRANTED)
            rueda_sim_message_drop(message);
        message = next;
    }
}

static void cancel(struct rueda_sim_end *end, rueda_status status)
{
    struct rueda_sim_message *message = end->other->first;

    rueda_reqs_end(&end->recvs, status);
    rueda_reqs_end(&end->ended, status);
    for (; message != NULL; message = message->next) {
        if (message->recv != NULL)
            finish(message->recv, status);
        message->recv = NULL;
    }
    cancel_sends(end, status);
}

static void sim_cancel(struct rueda_ep *super, rueda_status status)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;

    lock(end->sim);
    cancel(end, status);
    unlock(end->sim);
}

void rueda_sim_end_shut(struct rueda_sim_end *end)
{
    struct rueda_sim_message *message;

    end->state = END_CLOSED;
    if (end->other->state == END_CLOSED || end->sim->ranks[end->rank].is_dead)
        return;
    message = rueda_sim_message_new(end);
    if (message == NULL) {
        log_error("no memory for the end of rank %d's link", end->rank);
        rueda_sim_end_lose(end->other);
        return;
    }
    message->is_end = true;
    rueda_sim_message_launch(message);
}

/* The end is the simulator's, until that is closed. */
static void sim_close(struct rueda_ep *super)
{
    struct rueda_sim_end *end = (struct rueda_sim_end *)super;
    struct rueda_sim_message *message;

    lock(end->sim);
    cancel(end, RUEDA_ERR_PEER_LOST);
    if (end->is_lost)
        end->sim->ranks[end->rank].lost--;
    message = end->other->first;
    while (message != NULL) {
        struct rueda_sim_message *next = message->next;

        if (message->state == MESSAGE_HERE)
            rueda_sim_message_drop(message);
        message = next;
    }
    rueda_sim_end_shut(end);
    unlock(end->sim);
}

/* What has overtaken a message that will not come any more must not be taken
 * for it. */
static void drop_mail_out_of_turn(struct rueda_sim_end *end)
{
    struct rueda_sim_message *message = end->other->first;

    while (message != NULL) {
        struct rueda_sim_message *next = message->next;

        if (message->state == MESSAGE_HERE &&
            rueda_sim_message_is_behind(message, MESSAGE_FLYING))
            rueda_sim_message_drop(message);
        message = next;
    }
}

void rueda_sim_end_lose(struct rueda_sim_end *end)
{
    struct rueda_sim_message *message = end->other->first;
    struct rueda_req *req;

    if (end->is_lost || end->state == END_CLOSED)
        return;
    end->is_lost = true;
    if (end->state == END_OPEN)
        end->sim->ranks[end->rank].lost++;
    for (req = rueda_reqs_pop(&end->recvs); req != NULL;
         req = rueda_reqs_pop(&end->recvs))
        rueda_sim_end_complete(end, req, RUEDA_ERR_PEER_LOST);
    for (; message != NULL; message = message->next) {
        if (message->recv != NULL)
            rueda_sim_end_complete(end, message->recv, RUEDA_ERR_PEER_LOST);
        message->recv = NULL;
    }
    for (message = end->first; message != NULL; message = message->next) {
        if (message->send != NULL)
            rueda_sim_end_complete(end, message->send, RUEDA_ERR_PEER_LOST);
        message->send = NULL;
    }
    cancel_sends(end, RUEDA_ERR_PEER_LOST);
    drop_mail_out_of_turn(end);
    rueda_sim_rank_touch(end->sim, end->rank);
}

static const struct rueda_transport_ops sim_ops = {
    .name = "sim",
    .memory = RUEDA_MEMKIND_HOST,
    .send = sim_send,
    .recv = sim_recv,
    .peek = sim_peek,
    .progress = sim_progress,
    .begin_term = sim_begin_term,
    .cancel = sim_cancel,
    .close = sim_close,
};

/* ---- Meeting ---------------------------------------------------------- */

static struct rueda_sim_pair **bucket_of(struct rueda_sim *sim, int lower,
                                         int higher)
{
    const uint64_t key = (uint64_t)lower << 32 | (uint64_t)higher;

    return &sim->buckets[rueda_hash_mix(key) & sim->bucket_mask];
}

/* The newest, or NULL. */
static struct rueda_sim_pair *find_pair(struct rueda_sim *sim, int lower,
                                        int higher)
{
    struct rueda_sim_pair *pair = *bucket_of(sim, lower, higher);

    while (pair != NULL &&
           (pair->ends[0].rank != lower || pair->ends[1].rank != higher))
        pair = pair->next_in_bucket;
    return pair;
}

static struct rueda_sim_pair *pair_new(struct rueda_sim *sim, int lower,
                                       int higher)
{
    struct rueda_sim_pair **bucket = bucket_of(sim, lower, higher);
    struct rueda_sim_pair *pair = calloc(1, sizeof(*pair));

    if (pair == NULL)
        return NULL;
    for (int i = 0; i < 2; i++) {
        struct rueda_sim_end *end = &pair->ends[i];

        end->super.ops = &sim_ops;
        end->super.peer = i == 0 ? higher : lower;
        end->sim = sim;
        end->rank = i == 0 ? lower : higher;
        end->other = &pair->ends[!i];
        end->next = sim->ranks[end->rank].ends;
        sim->ranks[end->rank].ends = end;
    }
    pair->next = sim->pairs;
    sim->pairs = pair;
    pair->next_in_bucket = *bucket;
    *bucket = pair;
    return pair;
}

/* This rank's end towards a peer, made if there is none to be asked for. */
static struct rueda_sim_end *ask(struct rueda_sim *sim, int rank, int peer)
{
    const int lower = rank < peer ? rank : peer;
    const int higher = rank < peer ? peer : rank;
    struct rueda_sim_pair *pair = find_pair(sim, lower, higher);
    struct rueda_sim_end *end;

    if (pair != NULL && pair->ends[rank > peer].state == END_UNASKED)
        return &pair->ends[rank > peer];
    pair = pair_new(sim, lower, higher);
    if (pair == NULL)
        return NULL;
    end = &pair->ends[rank > peer];
    if (sim->ranks[peer].is_gone)
        rueda_sim_end_shut(end->other);
    rueda_sim_trouble_meet(sim, pair);
    return end;
}

rueda_status rueda_sim_connect(struct rueda_mesh *mesh, int peer,
                               struct rueda_ep **out_ep)
{
    struct rueda_sim *sim = mesh->owner;
    struct rueda_sim_end *end;

    if (peer < 0 || peer >= sim->size || peer == mesh->rank ||
        mesh->size != sim->size)
        return RUEDA_ERR_INVALID;
    lock(sim);
    end = ask(sim, mesh->rank, peer);
    if (end != NULL) {
        end->state = END_OPEN;
        if (end->is_lost)
            sim->ranks[mesh->rank].lost++;
    }
    unlock(sim);
    if (end == NULL)
        return RUEDA_ERR_NOMEM;
    *out_ep = &end->super;
    return RUEDA_OK;
}

void rueda_sim_leave(struct rueda_sim *sim, int rank)
{
    struct rueda_sim_end *end;

    lock(sim);
    sim->ranks[rank].is_gone = true;
    for (end = sim->ranks[rank].ends; end != NULL; end = end->next)
        if (end->state == END_UNASKED)
            rueda_sim_end_shut(end);
    unlock(sim);
}

int rueda_sim_lost_peer(const struct rueda_sim *sim, int rank)
{
    const struct rueda_sim_end *end = sim->ranks[rank].ends;

    if (sim->ranks[rank].lost == 0)
        return -1;
    while (end != NULL && !(end->state == END_OPEN && end->is_lost &&
                            !rueda_sim_end_has_mail(end)))
        end = end->next;
    return end != NULL ? end->super.peer : -1;
}
