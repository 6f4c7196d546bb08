/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's life and its turns. A turn progresses messages, gives the order
 * source a turn, and carries out the decisions which that one has: begin_next()
 * starts a batch, conclude() hands its operations on to be delivered.
 */
#include "engine/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/seldom.h"
#include "engine/lanes.h"
#include "engine/private_sets.h"

/* ---- Life ------------------------------------------------------------- */

/* Where the members are. */
static rueda_status find_members(struct rueda_lane *lane)
{
    const struct rueda_formation *formation = lane->formation;
    size_t size = (size_t)lane->set->size;

    lane->hosts = calloc(size, sizeof(int));
    lane->locals = calloc(size, sizeof(int));
    if (lane->hosts == NULL || lane->locals == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < lane->set->size; i++) {
        int rank = lane->set->ranks[i];

        lane->hosts[i] = rueda_formation_host(formation, rank);
        if (formation->members[rank] >= 0)
            lane->locals[lane->slab.size++] = formation->members[rank];
    }
    /* That of the formation is there even for one. */
    lane->has_slab = formation->has_slab && !rueda_lane_is_for_messages(lane) &&
                     (lane->slab.size > 1 ||
                      (lane->is_ordered && lane->set->id == RUEDA_SET_GLOBAL));
    return RUEDA_OK;
}

static rueda_status open_mesh(struct rueda_lane *lane)
{
    struct rueda_formation *formation = lane->formation;
    rueda_status status;

    lane->mesh = &formation->mesh;
    if (lane->set->size == formation->size)
        return RUEDA_OK;
    status = rueda_mesh_init_view(&lane->view, &formation->mesh,
                                  lane->set->ranks, lane->set->size);
    lane->mesh = &lane->view;
    return status;
}

/* In tags: two lanes of a set have nothing in common. */
static uint32_t tag_set_of(const struct rueda_lane *lane)
{
    return 2 * (uint32_t)lane->set->id + (lane->is_ordered ? 0 : 1);
}

static rueda_status open_track(struct rueda_lane *lane)
{
    const struct rueda_topology *topology = lane->formation->topology;
    const struct rueda_track_args args = {
        .job = lane->lanes->job,
        .select = lane->lanes->select,
        .device = lane->lanes->device,
        .mesh = lane->mesh,
        .slab = lane->has_slab ? &lane->slab : NULL,
        .hosts = topology != NULL ? lane->hosts : NULL,
        .host_limit = topology != NULL ? topology->host_count : 1,
        .set = tag_set_of(lane),
    };

    return rueda_track_open(&lane->track, &args);
}

static rueda_status open_negotiator(struct rueda_lane *lane)
{
    const struct rueda_formation *formation = lane->formation;
    const struct rueda_config *config = &formation->job->config;
    const struct rueda_negotiator_args args = {
        .mesh = lane->mesh,
        .tag = {.set = tag_set_of(lane)},
        .ranks = lane->set->ranks,
        .hosts = formation->topology != NULL ? lane->hosts : NULL,
        .cache_capacity = (int)formation->segment->common->cache_capacity,
        .fusion_bytes = lane->fusion_bytes,
        .groups_alone = config->groups_alone,
        .stall_warn_ns = config->stall_warn_ms * 1000000,
        .stall_end_ns = config->stall_end_ms * 1000000,
        .stall_repeat_ns = config->stall_repeat_ms * 1000000,
        .call_after_ns = lane->lanes->call_after_ns,
        .give_up_ns = config->stall_give_up_ms * 1000000,
        .now_ns = lane->lanes->now_ns,
        .now_arg = lane->lanes->now_arg,
        .look = config->stall_check ? rueda_standstill_look : NULL,
        .look_arg = lane,
        .tell_rank = rueda_watch_tell_rank,
        .heard_cargo = rueda_relay_heard,
        .heard_word =
            lane->set->id == RUEDA_SET_GLOBAL ? rueda_relay_follow : NULL,
        .cargo_arg = lane->lanes,
    };
    rueda_status status = rueda_negotiator_new(&args, &lane->negotiator);

    if (status != RUEDA_OK)
        return status;
    rueda_negotiator_trace(lane->negotiator, lane->lanes->timeline);
    lane->order = rueda_order_log(lane->negotiator);
    return RUEDA_OK;
}

static rueda_status open_counter(struct rueda_lane *lane)
{
    lane->order = rueda_order_counter(&lane->counter);
    return rueda_order_counter_init(&lane->counter, lane->set->size);
}

/* In the segment, so that others read where I pack. */
static rueda_status open_fusion(struct rueda_lane *lane,
                                struct rueda_text *error)
{
    struct rueda_segment *segment = lane->formation->segment;
    rueda_status status;
    void *memory;

    lane->fusion_bytes = segment->common->fusion_bytes;
    if (lane->fusion_bytes == 0)
        return RUEDA_OK;
    status = rueda_segment_alloc(segment, lane->fusion_bytes, &memory, error);
    if (status == RUEDA_OK)
        lane->fusion = memory;
    return status;
}

rueda_status rueda_lane_new(struct rueda_lanes *lanes,
                            struct rueda_formation *formation,
                            const struct rueda_set *set, bool is_ordered,
                            struct rueda_lane **out, struct rueda_text *error)
{
    struct rueda_lane *lane =
        aligned_alloc(_Alignof(struct rueda_lane), sizeof(*lane));
    rueda_status status;

    if (lane == NULL)
        return RUEDA_ERR_NOMEM;
    memset(lane, 0, sizeof(*lane));
    lane->lanes = lanes;
    lane->formation = formation;
    rueda_formation_hold(formation);
    lane->set = set;
    lane->is_ordered = is_ordered;
    lane->limit = UINT64_MAX;
    status = find_members(lane);
    if (status == RUEDA_OK)
        status = open_mesh(lane);
    if (status == RUEDA_OK)
        status = open_track(lane);
    if (status == RUEDA_OK && !is_ordered)
        status = open_fusion(lane, error);
    if (status == RUEDA_OK)
        status = rueda_batch_init(&lane->batch, set->size);
    if (status == RUEDA_OK)
        status = is_ordered ? open_counter(lane) : open_negotiator(lane);
    if (status != RUEDA_OK) {
        rueda_lane_free(lane);
        return status;
    }
    rueda_kept_init(lane);
    *out = lane;
    return RUEDA_OK;
}

size_t rueda_lane_slab_bytes(const struct rueda_lane *lane)
{
    return lane->has_slab
               ? rueda_slab_bytes(lane->slab.size,
                                  lane->formation->segment->common->cell_bytes)
               : 0;
}

void rueda_lane_open(struct rueda_lane *lane, uint64_t slab_offset)
{
    struct rueda_segment *segment = lane->formation->segment;

    lane->is_open = true;
    if (lane->has_slab)
        rueda_slab_init_some(&lane->slab, segment, lane->locals,
                             lane->slab.size,
                             rueda_segment_at(segment, slab_offset),
                             segment->common->cell_bytes);
}

void rueda_lane_free(struct rueda_lane *lane)
{
    rueda_negotiator_free(lane->negotiator);
    rueda_order_counter_fini(&lane->counter);
    rueda_messages_fini(&lane->messages);
    rueda_batch_fini(&lane->batch);
    rueda_kept_fini(lane);
    rueda_away_fini(&lane->away);
    rueda_segment_free(lane->formation->segment, lane->fusion);
    rueda_track_close(&lane->track);
    if (lane->view.size > 0)
        rueda_mesh_fini(&lane->view);
    rueda_formation_release(lane->formation);
    free(lane->hosts);
    free(lane->locals);
    free(lane);
}

/* ---- Operations ------------------------------------------------------- */

static void append(struct rueda_lane *lane, struct rueda_ticket *ticket)
{
    ticket->op.next = NULL;
    ticket->previous = lane->last;
    if (lane->last != NULL)
        lane->last->op.next = &ticket->op;
    else
        lane->first = ticket;
    lane->last = ticket;
    lane->count++;
    lane->lanes->undelivered++;
    lane->lanes->ordered += lane->is_ordered;
}

static void take_out(struct rueda_lane *lane, struct rueda_ticket *ticket)
{
    struct rueda_ticket *next = (struct rueda_ticket *)ticket->op.next;

    if (ticket->previous != NULL)
        ticket->previous->op.next = ticket->op.next;
    else
        lane->first = next;
    if (next != NULL)
        next->previous = ticket->previous;
    else
        lane->last = ticket->previous;
    lane->count--;
    lane->lanes->undelivered--;
    lane->lanes->ordered -= lane->is_ordered;
}

void rueda_lane_finish(struct rueda_lane *lane, struct rueda_ticket *ticket,
                       rueda_status status)
{
    take_out(lane, ticket);
    ticket->op.outcome = status;
    rueda_lanes_append_ended(lane->lanes, ticket);
    lane->moves++;
}

static bool is_message(const struct rueda_ticket *ticket)
{
    return ticket->request.kind == RUEDA_SEND ||
           ticket->request.kind == RUEDA_RECV;
}

rueda_status rueda_lane_submit(struct rueda_lane *lane,
                               struct rueda_ticket *ticket)
{
    rueda_status status;

    append(lane, ticket);
    ticket->op.outcome = RUEDA_OK;
    if (is_message(ticket)) {
        rueda_message_begin(lane, ticket);
        return RUEDA_OK;
    }
    if (lane->is_ordered) {
        ticket->request.number = lane->submitted++;
        return rueda_order_submit(&lane->order, &ticket->request, ticket);
    }
    status = rueda_order_submit(&lane->order, &ticket->request, ticket);
    if (status == RUEDA_ERR_INVALID)
        rueda_batch_refuse(ticket, status,
                           "this rank has joined already; wait for that to end "
                           "before it submits again");
    if (status != RUEDA_OK)
        rueda_lane_finish(lane, ticket, status);
    return RUEDA_OK;
}

void rueda_lane_end(struct rueda_lane *lane, rueda_status status)
{
    struct rueda_ticket *next;

    if (lane->track.is_running)
        rueda_track_finish(&lane->track, status);
    rueda_batch_settle(lane);
    if (lane->has_slab && lane->is_open)
        rueda_slab_leave(&lane->slab);
    rueda_batch_drop(lane);
    for (struct rueda_ticket *ticket = lane->first; ticket != NULL;
         ticket = next) {
        next = (struct rueda_ticket *)ticket->op.next;
        if (!is_message(ticket))
            rueda_lane_finish(lane, ticket, status);
    }
}

void rueda_lane_close(struct rueda_lane *lane)
{
    rueda_lane_end(lane, RUEDA_ERR_CANCELLED);
    rueda_order_end(&lane->order);
    lane->is_closed = true;
}

bool rueda_lane_is_over(struct rueda_lane *lane)
{
    return lane->is_closed && lane->count == 0 &&
           rueda_order_is_over(&lane->order) && !rueda_lane_has_lent(lane);
}

bool rueda_lane_has_lent(struct rueda_lane *lane)
{
    return !lane->is_ordered && lane->has_slab && lane->is_open &&
           !rueda_slab_is_back(&lane->slab);
}

/* ---- Decisions -------------------------------------------------------- */

/* How many operations ahead of the one at work. */
#define AHEAD 8

/* No batch, but the end of one operation. */
static void tell_outcome(struct rueda_lane *lane,
                         const struct rueda_decision *decision)
{
    struct rueda_ticket *ticket = decision->items[0].mine;

    lane->moves++;
    if (ticket == NULL)
        return;
    if (decision->kind == RUEDA_DECIDED_JOINED) {
        ticket->last_rank = decision->last_rank;
        rueda_numbers_go_on(lane->lanes->numbers, lane->set->id,
                            decision->number);
    } else {
        rueda_batch_refuse(ticket, RUEDA_ERR_MISMATCH, decision->words);
    }
}

/* Into the cache, which it has left for the data. */
static void fetch(const struct rueda_ticket *ticket)
{
    if (ticket == NULL)
        return;
    __builtin_prefetch(&ticket->op, 1);
    __builtin_prefetch(&ticket->previous, 1);
}

/* Each operation of the decision has its outcome. They are delivered after the
 * order source has let go of them: their owner may free them then. */
static void conclude(struct rueda_lane *lane)
{
    const struct rueda_decision *decision = lane->batch.decision;

    if (lane->lanes->timeline != NULL)
        rueda_relay_end(lane, decision);
    for (int i = 0; i < decision->count; i++) {
        struct rueda_ticket *ticket = decision->items[i].mine;

        if (i + AHEAD < decision->count)
            fetch(decision->items[i + AHEAD].mine);
        if (ticket != NULL)
            rueda_lane_finish(lane, ticket, ticket->op.outcome);
    }
    lane->ended = decision->index + 1;
    rueda_batch_drop(lane);
    rueda_order_done(&lane->order);
    lane->moves++;
}

/* Begin the next decision; false: there is none. */
static bool begin_next(struct rueda_lane *lane)
{
    const struct rueda_decision *decision = rueda_order_next(&lane->order);

    if (decision == NULL || decision->index >= lane->limit ||
        lane->kept.is_frozen)
        return false;
    lane->kept.has_step = false;
    lane->kept.after = 0;
    lane->begun = decision->index + 1;
    lane->moves++;
    rueda_batch_begin(lane, decision);
    return true;
}

/* The decision at work is carried out. */
static rueda_status end_decision(struct rueda_lane *lane)
{
    const rueda_status status =
        lane->kept.is_on ? rueda_kept_conclude(lane) : RUEDA_OK;

    if (status == RUEDA_OK)
        conclude(lane);
    return status;
}

/* A turn of the decision at work, if there is one. */
static rueda_status turn_decision(struct rueda_lane *lane,
                                  struct rueda_text *error)
{
    const struct rueda_decision *decision = lane->batch.decision;

    if (decision == NULL || decision->kind != RUEDA_DECIDED_RUN)
        return RUEDA_OK;
    return rueda_batch_turn(lane, error);
}

/* The decision at work is carried out, if status says so; and those behind it,
 * as far as they go. */
static rueda_status carry_out(struct rueda_lane *lane, rueda_status status,
                              struct rueda_text *error)
{
    while (status == RUEDA_OK) {
        if (lane->batch.decision != NULL)
            status = end_decision(lane);
        if (status != RUEDA_OK)
            return status;
        if (!begin_next(lane))
            return RUEDA_IN_PROGRESS;
        if (lane->batch.decision->kind == RUEDA_DECIDED_RUN)
            status = rueda_batch_turn(lane, error);
        else
            tell_outcome(lane, lane->batch.decision);
    }
    return status;
}

/* What it got on by itself, and by the task that runs. Each task counts from 0,
 * so the sum of both may be the same again. */
struct progress {
    uint64_t lane;
    uint64_t task;
};

static struct progress progress_of(const struct rueda_lane *lane)
{
    return (struct progress){lane->moves, lane->track.task.moves};
}

static bool has_moved(const struct rueda_lane *lane, struct progress since)
{
    return lane->moves != since.lane || lane->track.task.moves != since.task;
}

/* Does the lane hold operations whose turn the order source has yet to say? */
static bool is_waiting(const struct rueda_lane *lane)
{
    return lane->batch.decision == NULL && lane->count > lane->messages.count;
}

/* A lost peer is no error here: it takes no part in what remains. */
static rueda_status talk_in_the_end(struct rueda_lane *lane, rueda_status moved,
                                    struct rueda_text *error)
{
    rueda_status talk = rueda_order_turn(&lane->order, error);

    return talk == RUEDA_ERR_PEER_LOST || talk == RUEDA_IN_PROGRESS ? moved
                                                                    : talk;
}

RUEDA_SELDOM static rueda_status turn_all(struct rueda_lane *lane,
                                          struct rueda_text *error)
{
    const struct progress before = progress_of(lane);
    rueda_status talk;
    rueda_status status = RUEDA_IN_PROGRESS;

    if (lane->messages.count > 0)
        status = rueda_messages_turn(lane);
    if (status < 0)
        return status;
    if (lane->is_closed)
        return talk_in_the_end(lane, status, error);
    talk = rueda_order_turn(&lane->order, error);
    if (talk < 0 && talk != RUEDA_ERR_PEER_LOST)
        return talk;
    status = carry_out(lane, turn_decision(lane, error), error);
    /* The lost peer may have done its part before. */
    if (status >= 0 && talk == RUEDA_ERR_PEER_LOST && is_waiting(lane) &&
        !rueda_private_sets_abandon(lane))
        return talk;
    if (status < 0)
        return status;
    return talk == RUEDA_OK || has_moved(lane, before) ? RUEDA_OK
                                                       : RUEDA_IN_PROGRESS;
}

/* While a task of ordered operations runs, nothing else can have happened. */
rueda_status rueda_lane_turn(struct rueda_lane *lane, struct rueda_text *error)
{
    const uint64_t moves = lane->moves + lane->track.task.moves;
    rueda_status status;

    if (!lane->track.is_running || lane->order.ops->turn != NULL ||
        lane->messages.count > 0)
        return turn_all(lane, error);
    status = rueda_batch_turn(lane, error);
    if (status == RUEDA_IN_PROGRESS)
        return lane->moves + lane->track.task.moves != moves
                   ? RUEDA_OK
                   : RUEDA_IN_PROGRESS;
    status = carry_out(lane, status, error);
    return status < 0 ? status : RUEDA_OK;
}

/* ---- From one term to the next ----------------------------------------- */

void rueda_lane_freeze(struct rueda_lane *lane)
{
    rueda_kept_freeze(lane);
    if (lane->track.is_running)
        rueda_track_finish(&lane->track, RUEDA_ERR_PEER_LOST);
}

/* A decision of which a part is carried out. The rest of it is in no group any
 * more, for that would wait for all of its members. */
static void finish_begun(struct rueda_lane *lane)
{
    const struct rueda_decision *decision = lane->batch.decision;
    const int after = lane->kept.after;

    for (int i = 0; after > 0 && i < decision->count; i++) {
        struct rueda_ticket *ticket = decision->items[i].mine;

        if (ticket != NULL && i < after) {
            rueda_lane_finish(lane, ticket, ticket->op.outcome);
        } else if (ticket != NULL) {
            ticket->request.group = 0;
            ticket->request.group_count = 0;
        }
    }
}

rueda_status rueda_lane_settle(struct rueda_lane *lane, uint64_t steps,
                               struct rueda_text *error)
{
    rueda_status status;

    lane->kept.limit = steps;
    status = carry_out(lane, turn_decision(lane, error), error);
    if (status < 0)
        return status;
    if (lane->batch.decision != NULL)
        finish_begun(lane);
    rueda_batch_drop(lane);
    return RUEDA_OK;
}

rueda_status rueda_lane_hand_over(struct rueda_lane *lane,
                                  struct rueda_lane *next)
{
    rueda_status status = RUEDA_OK;

    next->submitted = lane->submitted - (uint64_t)lane->count;
    while (lane->first != NULL && status == RUEDA_OK) {
        struct rueda_ticket *ticket = lane->first;

        take_out(lane, ticket);
        status = rueda_lane_submit(next, ticket);
    }
    return status;
}

/* ---- Questions -------------------------------------------------------- */

/* A rank that shut down cleanly may already have done its part; if not, its
 * neighbours in the negotiation miss it. A task in shared memory waits for all
 * ranks of the host. */
bool rueda_lane_is_spoilt(const struct rueda_lane *lane)
{
    const struct rueda_segment *segment = lane->formation->segment;
    const bool counts_left =
        rueda_track_shares(&lane->track) || lane->batch.is_waiting;

    if (rueda_private_sets_is_closing(lane) || rueda_lane_is_for_messages(lane))
        return false;
    for (int i = 0; i < lane->slab.size && lane->count > 0; i++) {
        int member = lane->locals[i];

        if (rueda_segment_is_gone(segment, member) &&
            (counts_left || !rueda_segment_has_left(segment, member)))
            return true;
    }
    return false;
}

void rueda_lane_tell_op(const struct rueda_lane *lane,
                        const struct rueda_request *request,
                        struct rueda_text *words)
{
    rueda_text_add(words, "%s", rueda_kind_str((rueda_kind)request->kind));
    if (request->name != NULL)
        rueda_text_add(words, " \"%.80s\"", request->name);
    else if (request->kind <= RUEDA_BARRIER)
        rueda_text_add(
            words, " number %llu %s", (unsigned long long)request->number,
            lane->is_ordered ? "of those in order" : "without a name");
    if (request->root >= 0)
        rueda_text_add(words, " from rank %d", request->root);
    if (lane->set->id != RUEDA_SET_GLOBAL)
        rueda_text_add(words, " of process set %d", lane->set->id);
}

void rueda_lane_tell(const struct rueda_lane *lane, struct rueda_text *words)
{
    const struct rueda_decision *decision = lane->batch.decision;
    const struct rueda_request *request =
        decision != NULL && decision->kind == RUEDA_DECIDED_RUN
            ? decision->items[0].request
            : &lane->first->request;

    if (request->name != NULL)
        rueda_text_add(words, "%s \"%.100s\"",
                       rueda_kind_str((rueda_kind)request->kind),
                       request->name);
    else
        rueda_text_add(words, "%s number %llu",
                       rueda_kind_str((rueda_kind)request->kind),
                       (unsigned long long)request->number);
    if (lane->set->id != RUEDA_SET_GLOBAL)
        rueda_text_add(words, " of process set %d", lane->set->id);
}
