/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All lanes of a context: operations that threads have pushed are handed to the
 * lane of their process set, every lane gets its turn, and operations that have
 * ended are queued for delivery.
 */
#define RUEDA_LOG_TAG "engine"

#include "engine/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "base/log.h"
#include "base/seldom.h"
#include "engine/private_sets.h"
#include "engine/sets.h"
#include "engine/terms.h"
#include "os/clock.h"

/* ---- Life ------------------------------------------------------------- */

/* The set of all workers and servers, for messages, and who of them is lost.
 */
static rueda_status show_all(struct rueda_lanes *lanes)
{
    const int size = lanes->formation->size;
    int *ranks = calloc((size_t)size, sizeof(int));
    rueda_status status = RUEDA_ERR_NOMEM;
    const struct rueda_set *all;

    if (ranks == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    all = rueda_sets_copy(lanes, RUEDA_WHOLE_JOB, ranks, size);
    free(ranks);
    lanes->lost = calloc((size_t)size, sizeof(*lanes->lost));
    if (all != NULL && lanes->lost != NULL)
        status = rueda_sets_show(lanes, all);
    return status;
}

static int64_t now_ns(void *arg)
{
    (void)arg;
    return rueda_clock_ns();
}

rueda_status rueda_lanes_init(struct rueda_lanes *lanes, struct rueda_job *job,
                              const struct rueda_select *select,
                              const struct rueda_device *device)
{
    const struct rueda_set *all;

    memset(lanes, 0, sizeof(*lanes));
    lanes->job = job;
    lanes->formation = job->formation;
    lanes->select = select;
    lanes->device = device;
    lanes->repairs = rueda_terms_cover(job);
    lanes->due_ns = INT64_MAX;
    lanes->now_ns = now_ns;
    lanes->table =
        rueda_set_table_new(job->formation->rank, rueda_job_workers(job));
    if (lanes->table == NULL)
        return RUEDA_ERR_NOMEM;
    all = rueda_sets_keep(lanes, RUEDA_SET_GLOBAL);
    if (all != NULL && rueda_sets_show(lanes, all) == RUEDA_OK &&
        show_all(lanes) == RUEDA_OK)
        return RUEDA_OK;
    rueda_lanes_fini(lanes);
    return RUEDA_ERR_NOMEM;
}

void rueda_lanes_fini(struct rueda_lanes *lanes)
{
    rueda_relay_fini(lanes);
    for (int i = 0; i < lanes->count; i++)
        rueda_lane_free(lanes->all[i]);
    for (int i = 0; i < lanes->dropped_count; i++)
        rueda_lane_free(lanes->dropped[i]);
    free(lanes->all);
    free(lanes->dropped);
    free(lanes->lost);
    rueda_sets_free(lanes);
    rueda_set_table_free(lanes->table);
}

struct rueda_lane *rueda_lanes_find(const struct rueda_lanes *lanes, int set,
                                    bool is_ordered)
{
    for (int i = 0; i < lanes->count; i++)
        if (lanes->all[i]->set->id == set &&
            lanes->all[i]->is_ordered == is_ordered)
            return lanes->all[i];
    return NULL;
}

static struct rueda_lane **grow(struct rueda_lane **list, int count)
{
    return realloc(list, (size_t)count * sizeof(struct rueda_lane *));
}

/* There is always room to drop one, so that this cannot fail. */
rueda_status rueda_lanes_add(struct rueda_lanes *lanes, struct rueda_lane *lane)
{
    struct rueda_lane **all = grow(lanes->all, lanes->count + 1);
    struct rueda_lane **dropped;

    if (all == NULL)
        return RUEDA_ERR_NOMEM;
    lanes->all = all;
    dropped = grow(lanes->dropped, lanes->dropped_count + lanes->count + 1);
    if (dropped == NULL)
        return RUEDA_ERR_NOMEM;
    lanes->dropped = dropped;
    lanes->all[lanes->count++] = lane;
    return RUEDA_OK;
}

void rueda_lanes_drop(struct rueda_lanes *lanes, struct rueda_lane *lane)
{
    int kept = 0;

    for (int i = 0; i < lanes->count; i++)
        if (lanes->all[i] != lane)
            lanes->all[kept++] = lanes->all[i];
    lanes->count = kept;
    lanes->dropped[lanes->dropped_count++] = lane;
}

/* A lane of this set, its slab not known yet. */
static rueda_status open_lane(struct rueda_lanes *lanes,
                              const struct rueda_set *set, bool is_ordered,
                              struct rueda_lane **out, struct rueda_text *error)
{
    rueda_status status =
        rueda_lane_new(lanes, lanes->formation, set, is_ordered, out, error);

    if (status != RUEDA_OK)
        return status;
    status = rueda_lanes_add(lanes, *out);
    if (status != RUEDA_OK)
        rueda_lane_free(*out);
    return status;
}

/* The lane of all ranks that negotiates; its slab was agreed upon when they
 * met. */
static rueda_status open_first(struct rueda_lanes *lanes,
                               struct rueda_text *error)
{
    struct rueda_lane *lane;
    rueda_status status;

    if (lanes->has_log || rueda_lanes_are_servers(lanes))
        return RUEDA_OK;
    status = open_lane(lanes, rueda_sets_find(lanes, RUEDA_SET_GLOBAL), false,
                       &lane, error);
    if (status != RUEDA_OK)
        return status;
    rueda_lane_open(lane, lanes->formation->named_offset);
    lanes->has_log = true;
    return RUEDA_OK;
}

rueda_status rueda_lanes_need_ordered(struct rueda_lanes *lanes, int id,
                                      struct rueda_lane **out,
                                      struct rueda_text *error)
{
    const struct rueda_set *set;
    rueda_status status;

    *out = rueda_lanes_find(lanes, id, true);
    if (*out != NULL)
        return RUEDA_OK;
    set = rueda_sets_find(lanes, id);
    if (set == NULL || set->me < 0)
        return RUEDA_OK;
    status = open_lane(lanes, set, true, out, error);
    if (status != RUEDA_OK)
        return status;
    if (id == RUEDA_SET_GLOBAL)
        rueda_lane_open(*out, lanes->formation->slab_offset);
    else if (set->size == 1 || !lanes->formation->has_slab ||
             id == RUEDA_WHOLE_JOB)
        rueda_lane_open(*out, 0);
    return RUEDA_OK;
}

void rueda_lanes_wake(struct rueda_lanes *lanes)
{
    struct rueda_text ignored = {{0}};

    if (!lanes->has_log && rueda_job_workers(lanes->job) > 1 &&
        open_first(lanes, &ignored) != RUEDA_OK)
        log_warn("no memory to hear of what other ranks wait for");
}

/* ---- Operations that come and go -------------------------------------- */

/* Its set is gone, or was never there. */
static void refuse(struct rueda_lanes *lanes, struct rueda_ticket *ticket)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "process set %d is not there, or not any more",
                   ticket->set);
    rueda_batch_refuse(ticket, RUEDA_ERR_CANCELLED, words.chars);
    rueda_lanes_append_ended(lanes, ticket);
}

/* The lane of an operation, NULL if it has none. */
static rueda_status find_lane(struct rueda_lanes *lanes,
                              const struct rueda_ticket *ticket,
                              struct rueda_lane **out, struct rueda_text *error)
{
    rueda_status status;

    if (ticket->op.is_ordered || ticket->set == RUEDA_WHOLE_JOB)
        return rueda_lanes_need_ordered(lanes, ticket->set, out, error);
    status = open_first(lanes, error);
    *out = rueda_lanes_find(lanes, ticket->set, false);
    return status;
}

/* While a set is being dropped nothing more is negotiated. Ordered operations
 * of it may still be those that other members have begun. */
static rueda_status hand_on(struct rueda_lanes *lanes, struct rueda_lane *lane,
                            struct rueda_ticket *ticket,
                            struct rueda_text *error)
{
    lanes->has_talked = lanes->has_talked || !ticket->op.is_ordered;
    if (lanes->repairs && rueda_terms_is_stale(lanes, ticket))
        return rueda_terms_refuse(lanes, ticket, error);
    if (ticket->request.kind == RUEDA_STEP)
        rueda_terms_step(lanes, ticket);
    else if (ticket->request.kind == RUEDA_SET_OPEN)
        rueda_private_sets_open(lanes, ticket);
    else if (rueda_request_is_local(&ticket->request))
        rueda_relay_switch(lanes, ticket);
    else if (lane != NULL && (lane->limit == UINT64_MAX ||
                              (lane->is_ordered && !lane->is_closed)))
        return rueda_lane_submit(lane, ticket);
    else
        refuse(lanes, ticket);
    return RUEDA_OK;
}

RUEDA_SELDOM static rueda_status take_in(struct rueda_lanes *lanes,
                                         struct rueda_text *error)
{
    struct rueda_op *op;
    rueda_status status = RUEDA_IN_PROGRESS;

    while ((op = rueda_op_peek(&lanes->arrived)) != NULL) {
        struct rueda_ticket *ticket = rueda_ticket_of(op);
        struct rueda_lane *lane;

        /* Not popped before: it has to end with all others then. */
        status = find_lane(lanes, ticket, &lane, error);
        if (status != RUEDA_OK)
            return status;
        rueda_op_pop(&lanes->arrived);
        status = hand_on(lanes, lane, ticket, error);
        if (status != RUEDA_OK)
            return status;
    }
    return status;
}

/* ---- Turns ------------------------------------------------------------ */

/* Those of sets that are no more. */
static rueda_status turn_dropped(struct rueda_lanes *lanes, rueda_status moved,
                                 struct rueda_text *error)
{
    int kept = 0;

    for (int i = 0; i < lanes->dropped_count; i++) {
        struct rueda_lane *lane = lanes->dropped[i];
        rueda_status status = rueda_lane_turn(lane, error);

        if (status != RUEDA_IN_PROGRESS && moved >= 0)
            moved = status;
        if (rueda_lane_is_over(lane) && rueda_private_sets_may_free(lane))
            rueda_lane_free(lane);
        else
            lanes->dropped[kept++] = lane;
    }
    lanes->dropped_count = kept;
    return moved;
}

/* What is not a lane. */
RUEDA_SELDOM static rueda_status turn_others(struct rueda_lanes *lanes,
                                             rueda_status moved,
                                             struct rueda_text *error)
{
    if (moved >= 0) {
        rueda_status status = rueda_private_sets_turn(lanes);

        if (status != RUEDA_IN_PROGRESS)
            moved = status;
    }
    if (moved >= 0 && lanes->dropped_count > 0)
        moved = turn_dropped(lanes, moved, error);
    rueda_relay_carry(lanes);
    return moved;
}

RUEDA_SELDOM static rueda_status
turn_each(struct rueda_lanes *lanes, bool is_all, struct rueda_text *error)
{
    rueda_status moved = RUEDA_IN_PROGRESS;

    if (rueda_lanes_have_arrivals(lanes))
        moved = take_in(lanes, error);
    is_all =
        is_all || lanes->undelivered > lanes->ordered || lanes->ordered == 0;
    for (int i = 0; i < lanes->count && moved >= 0; i++) {
        struct rueda_lane *lane = lanes->all[i];

        if (is_all || lane->is_ordered) {
            const rueda_status status = rueda_lane_turn(lane, error);

            if (status != RUEDA_IN_PROGRESS)
                moved = status;
            if (lane->count == lanes->undelivered)
                lanes->sole = i;
        }
    }
    lanes->has_talked = lanes->has_talked || is_all;
    return is_all ? turn_others(lanes, moved, error) : moved;
}

/* Where all operations are in one lane and ordered, only that lane has anything
 * to do, however many process sets there are. */
rueda_status rueda_lanes_turn(struct rueda_lanes *lanes, bool is_all,
                              struct rueda_text *error)
{
    const int count = lanes->undelivered;

    if (is_all || lanes->ordered != count || count == 0 ||
        lanes->sole >= lanes->count || rueda_lanes_have_arrivals(lanes) ||
        lanes->all[lanes->sole]->count != count)
        return turn_each(lanes, is_all, error);
    return rueda_lane_turn(lanes->all[lanes->sole], error);
}

bool rueda_lanes_are_sending(const struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count && !lanes->has_ended; i++)
        if (rueda_order_is_sending(&lanes->all[i]->order))
            return true;
    for (int i = 0; i < lanes->dropped_count && !lanes->has_ended; i++)
        if (rueda_order_is_sending(&lanes->dropped[i]->order))
            return true;
    return false;
}

bool rueda_lanes_are_silent(const struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count && !lanes->has_ended; i++)
        if (lanes->all[i]->track.is_running &&
            lanes->all[i]->track.task.is_silent)
            return true;
    return false;
}

bool rueda_lanes_have_lent(const struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count && !lanes->has_ended; i++)
        if (rueda_lane_has_lent(lanes->all[i]))
            return true;
    return false;
}

int64_t rueda_lanes_find_due(struct rueda_lanes *lanes)
{
    int64_t next = INT64_MAX;

    for (int i = 0; i < lanes->count && !lanes->has_ended; i++)
        next = rueda_sooner(next, rueda_order_due_ns(&lanes->all[i]->order));
    if (!lanes->has_ended) {
        next = rueda_sooner(next, rueda_relay_due_ns(lanes));
        next = rueda_sooner(next, rueda_standstill_due_ns(lanes));
    }
    lanes->has_talked = false;
    lanes->due_ns = next;
    return next;
}

void rueda_lanes_end(struct rueda_lanes *lanes, rueda_status status)
{
    struct rueda_op *op;

    lanes->has_ended = true;
    lanes->has_talked = true;
    rueda_relay_fail(lanes, status);
    rueda_private_sets_end(lanes, status);
    for (int i = 0; i < lanes->count; i++) {
        rueda_messages_end(lanes->all[i], status);
        rueda_lane_end(lanes->all[i], status);
    }
    for (int i = 0; i < lanes->dropped_count; i++)
        rueda_messages_end(lanes->dropped[i], status);
    while ((op = rueda_op_peek(&lanes->arrived)) != NULL) {
        struct rueda_ticket *ticket = (struct rueda_ticket *)op;

        rueda_op_pop(&lanes->arrived);
        ticket->op.outcome = status;
        rueda_lanes_append_ended(lanes, ticket);
    }
}

/* ---- Failures --------------------------------------------------------- */

bool rueda_lanes_need_all(const struct rueda_lanes *lanes)
{
    const struct rueda_lane *lane =
        rueda_lanes_find(lanes, RUEDA_WHOLE_JOB, true);

    return lanes->undelivered > (lane != NULL ? lane->count : 0);
}

bool rueda_lanes_are_spoilt(const struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count; i++)
        if (rueda_lane_is_spoilt(lanes->all[i]))
            return true;
    return rueda_private_sets_are_spoilt(lanes);
}

bool rueda_lanes_tell(const struct rueda_lanes *lanes, struct rueda_text *words)
{
    for (int i = 0; i < lanes->count; i++) {
        if (lanes->all[i]->count > 0) {
            rueda_lane_tell(lanes->all[i], words);
            return true;
        }
    }
    if (lanes->openings != NULL)
        rueda_text_add(words, "the beginning of a private process set");
    else if (lanes->relay.stop != NULL)
        rueda_text_add(words, "the end of its timeline");
    return lanes->openings != NULL || lanes->relay.stop != NULL;
}
