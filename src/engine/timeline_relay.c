/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a context. Rank 0 keeps the file, and writes into the log of
 * the set of all ranks when a timeline begins and ends: each rank that follows
 * the log records what happens between the two. Records of other ranks go to
 * rank 0 with their negotiation messages, each with the number of its timeline,
 * so that late records are not taken for those of the next one.
 *
 *     rank 0   start: "on 1" ......... stop: "off 1"  <- "last", closes
 *     rank 3         notes, notes, ...       carries out what was decided
 *                                            before, sends the rest, "last"
 */
#define RUEDA_LOG_TAG "engine"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/least.h"
#include "base/log.h"
#include "engine/lanes.h"
#include "os/clock.h"

#define BLOCK_BYTES 16384

/* Before a block: the number of the timeline, and whether it is the last. */
#define HEAD_BYTES 5

/* The words of rank 0: the number of the timeline, and these. */
#define WORD_ON    1u
#define WORD_MARKS 2u
#define WORD_BITS  2

/* Where there is a timeline, ranks other than 0 listen this often, even if they
 * have nothing to do. */
#define LISTEN_NS RUEDA_MS(200)

/* How long rank 0 waits at the end for the records of the others: after the
 * last one that came, and in all. */
#define QUIET_NS RUEDA_S(1)
#define STOP_NS  RUEDA_S(5)

/* A program that stops the timeline on another rank usually does so on rank 0
 * as well, so we wait this long for rank 0. Events recorded in between are
 * dropped. */
#define HOLD_NS RUEDA_S(2)

static bool is_rank_0(const struct rueda_lanes *lanes)
{
    return lanes->formation->rank == 0;
}

static struct rueda_negotiator *courier(const struct rueda_lanes *lanes)
{
    const struct rueda_lane *lane =
        rueda_lanes_find(lanes, RUEDA_SET_GLOBAL, false);

    return lane != NULL ? lane->negotiator : NULL;
}

/* Record into this timeline, or into none. */
static void note_in(struct rueda_lanes *lanes, struct rueda_timeline *timeline)
{
    lanes->timeline = timeline;
    for (int i = 0; i < lanes->count; i++)
        if (!lanes->all[i]->is_ordered)
            rueda_negotiator_trace(lanes->all[i]->negotiator, timeline);
}

/* ---- To rank 0 ----------------------------------------------------------- */

/* Pass on a block of this many bytes that lies behind the head. */
static void pass(const struct rueda_lanes *lanes, uint32_t number,
                 unsigned char *message, size_t len, bool is_last)
{
    rueda_put_u32(message, number);
    message[4] = is_last;
    rueda_negotiator_send_cargo(courier(lanes), message, HEAD_BYTES + len);
}

static void say_last(const struct rueda_lanes *lanes, uint32_t number)
{
    unsigned char message[HEAD_BYTES];

    pass(lanes, number, message, 0, true);
}

/* Send all blocks, or one. They wait until the difference between my clock and
 * rank 0's is known, which the first answer of a rank there tells: it can be
 * days where one host was started long before another. False: it is not known.
 */
static bool send(struct rueda_lanes *lanes, bool all)
{
    const struct rueda_negotiator *negotiator = courier(lanes);
    unsigned char message[HEAD_BYTES + BLOCK_BYTES];
    int64_t shift_ns;
    size_t len;

    if (negotiator == NULL ||
        !rueda_negotiator_find_shift(negotiator, &shift_ns))
        return false;
    rueda_timeline_set_offset(lanes->timeline, shift_ns);
    do {
        len = rueda_timeline_take(lanes->timeline, message + HEAD_BYTES,
                                  BLOCK_BYTES);
        if (len > 0)
            pass(lanes, lanes->relay.number, message, len, false);
    } while (all && len > 0);
    return true;
}

void rueda_relay_flush(struct rueda_lanes *lanes)
{
    if (lanes->timeline != NULL && !is_rank_0(lanes) && send(lanes, true))
        say_last(lanes, lanes->relay.number);
}

/* ---- On rank 0 ----------------------------------------------------------- */

static void set_told(struct rueda_relay *relay, int rank, bool is_told)
{
    relay->told_count += is_told - relay->told[rank];
    relay->told[rank] = is_told;
}

void rueda_relay_heard(void *arg, int rank, const void *bytes, size_t len)
{
    struct rueda_lanes *lanes = arg;
    struct rueda_relay *relay = &lanes->relay;
    const unsigned char *message = bytes;
    rueda_status status = RUEDA_OK;

    if (len < HEAD_BYTES || rank < 1 || rank >= rueda_job_workers(lanes->job))
        status = RUEDA_ERR_INVALID;
    else if (relay->file == NULL || rueda_get_u32(message) != relay->number)
        return;
    else if (len > HEAD_BYTES)
        status = rueda_timeline_add(relay->file, rank, message + HEAD_BYTES,
                                    len - HEAD_BYTES);
    if (status != RUEDA_OK) {
        log_warn("rank %d sent notes for the timeline that make no sense",
                 rank);
        return;
    }
    set_told(relay, rank, message[4] != 0);
    if (relay->stop != NULL)
        relay->quiet_ns = rueda_clock_ns() + QUIET_NS;
}

static rueda_status tell_all(struct rueda_lanes *lanes, unsigned flags)
{
    return rueda_negotiator_tell(
        courier(lanes), (uint64_t)lanes->relay.number << WORD_BITS | flags);
}

static rueda_status start(struct rueda_lanes *lanes,
                          const struct rueda_ticket *ticket)
{
    const unsigned marks = ticket->request.flags != 0 ? WORD_MARKS : 0;
    struct rueda_relay *relay = &lanes->relay;
    bool *told = calloc((size_t)rueda_job_workers(lanes->job), sizeof(*told));
    rueda_status status;

    if (told == NULL)
        return RUEDA_ERR_NOMEM;
    free(relay->told);
    relay->told = told;
    relay->told_count = 0;
    relay->number++;
    relay->file = ticket->recv;
    note_in(lanes, relay->file);
    status = tell_all(lanes, WORD_ON | marks);
    if (status != RUEDA_OK) {
        note_in(lanes, NULL);
        relay->file = NULL;
    }
    return status;
}

/* ---- The end of one ------------------------------------------------------ */

/* Is anything left that was decided before the end? */
static bool is_at_work(const struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count; i++) {
        const struct rueda_decision *next =
            rueda_order_next(&lanes->all[i]->order);

        if (next != NULL && next->index <= lanes->all[i]->noted_to)
            return true;
    }
    return false;
}

/* Record nothing more here. Ranks other than 0 report that, if they have not.
 */
static void finish(struct rueda_lanes *lanes)
{
    struct rueda_relay *relay = &lanes->relay;
    struct rueda_timeline *timeline = lanes->timeline;

    relay->is_ending = false;
    if (is_rank_0(lanes)) {
        note_in(lanes, NULL);
        set_told(relay, 0, true);
        return;
    }
    if (relay->held_ns == 0) {
        send(lanes, true);
        say_last(lanes, relay->number);
    }
    note_in(lanes, NULL);
    rueda_timeline_close(timeline);
    relay->ended_ns = rueda_clock_ns();
}

/* What is decided so far still belongs to it. */
static void begin_end(struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count; i++)
        if (!lanes->all[i]->is_ordered)
            lanes->all[i]->noted_to = rueda_order_latest(&lanes->all[i]->order);
    lanes->relay.is_ending = true;
    if (!is_at_work(lanes))
        finish(lanes);
}

/* The call that stops has ended; rank 0 waits for no rank any more. */
static void end_stop(struct rueda_lanes *lanes, rueda_status status)
{
    struct rueda_relay *relay = &lanes->relay;
    struct rueda_ticket *stop = relay->stop;

    relay->stop = NULL;
    lanes->undelivered--;
    stop->op.outcome = status;
    rueda_lanes_append_ended(lanes, stop);
}

static void look_at_stop(struct rueda_lanes *lanes)
{
    struct rueda_relay *relay = &lanes->relay;
    const int64_t now = rueda_clock_ns();

    if (relay->told_count < rueda_job_workers(lanes->job) &&
        now < relay->quiet_ns && now < relay->until_ns)
        return;
    if (relay->told_count < rueda_job_workers(lanes->job))
        log_info("the timeline ends without the last notes of %d ranks",
                 rueda_job_workers(lanes->job) - relay->told_count);
    if (lanes->timeline != NULL)
        finish(lanes);
    relay->file = NULL;
    end_stop(lanes, RUEDA_OK);
}

static rueda_status stop(struct rueda_lanes *lanes, struct rueda_ticket *ticket)
{
    struct rueda_relay *relay = &lanes->relay;

    relay->stop = ticket;
    lanes->undelivered++;
    relay->quiet_ns = rueda_clock_ns() + QUIET_NS;
    relay->until_ns = rueda_clock_ns() + STOP_NS;
    begin_end(lanes);
    return tell_all(lanes, 0);
}

/* The program has stopped here, and rank 0 may not have yet. */
static void stop_here(struct rueda_lanes *lanes)
{
    struct rueda_relay *relay = &lanes->relay;

    if (lanes->timeline == NULL || relay->is_ending || !send(lanes, true))
        return;
    say_last(lanes, relay->number);
    relay->held_ns = rueda_clock_ns() + HOLD_NS;
}

void rueda_relay_switch(struct rueda_lanes *lanes, struct rueda_ticket *ticket)
{
    const bool is_start = ticket->request.kind == RUEDA_TIMELINE_START;
    rueda_status status = RUEDA_OK;

    if (!is_rank_0(lanes))
        stop_here(lanes);
    else if (is_start)
        status = start(lanes, ticket);
    else if (lanes->relay.file != NULL)
        status = stop(lanes, ticket);
    if (status == RUEDA_OK && lanes->relay.stop == ticket)
        return;
    if (lanes->relay.stop == ticket) {
        end_stop(lanes, status);
        return;
    }
    ticket->op.outcome = status;
    rueda_lanes_append_ended(lanes, ticket);
}

/* ---- What rank 0 says ---------------------------------------------------- */

static void follow_on(struct rueda_lanes *lanes, uint32_t number,
                      bool has_marks)
{
    const struct rueda_timeline_args args = {
        .rank = lanes->formation->rank,
        .ranks = rueda_job_workers(lanes->job),
        .marks_cycles = has_marks,
    };
    struct rueda_timeline *timeline;
    struct rueda_text error = {{0}};

    if (lanes->timeline != NULL)
        finish(lanes);
    if (rueda_timeline_open(&args, &timeline, &error) != RUEDA_OK) {
        log_warn("this rank is not in the timeline: %s", error.chars);
        return;
    }
    lanes->relay.number = number;
    lanes->relay.held_ns = 0;
    note_in(lanes, timeline);
}

void rueda_relay_follow(void *arg, uint64_t word)
{
    const uint32_t number = (uint32_t)(word >> WORD_BITS);
    struct rueda_lanes *lanes = arg;

    if (is_rank_0(lanes))
        return; /* it was me */
    if ((word & WORD_ON) != 0)
        follow_on(lanes, number, (word & WORD_MARKS) != 0);
    else if (lanes->timeline == NULL || lanes->relay.number != number)
        say_last(lanes, number);
    else if (!lanes->relay.is_ending)
        begin_end(lanes);
}

/* ---- In every turn ------------------------------------------------------- */

/* Another rank's. */
static void carry(struct rueda_lanes *lanes)
{
    struct rueda_relay *relay = &lanes->relay;

    relay->heard_ns = rueda_clock_ns();
    if (relay->heard_ns >= relay->held_ns)
        relay->held_ns = 0;
    if (relay->held_ns == 0 && rueda_timeline_is_due(lanes->timeline))
        send(lanes, false);
}

void rueda_relay_carry(struct rueda_lanes *lanes)
{
    if (lanes->relay.is_ending && !is_at_work(lanes))
        finish(lanes);
    if (lanes->timeline != NULL && !is_rank_0(lanes))
        carry(lanes);
    if (lanes->relay.stop != NULL)
        look_at_stop(lanes);
}

int64_t rueda_relay_due_ns(const struct rueda_lanes *lanes)
{
    const struct rueda_negotiator *negotiator = courier(lanes);
    const struct rueda_relay *relay = &lanes->relay;
    int64_t shift_ns;
    int64_t due;

    if (relay->stop != NULL)
        return rueda_sooner(relay->quiet_ns, relay->until_ns);
    if (lanes->timeline == NULL || is_rank_0(lanes) || negotiator == NULL)
        return INT64_MAX;
    due = relay->held_ns != 0 ||
                  !rueda_negotiator_find_shift(negotiator, &shift_ns)
              ? INT64_MAX
              : rueda_timeline_due_ns(lanes->timeline);
    return rueda_sooner(due, relay->heard_ns + LISTEN_NS);
}

/* Rank 0 may still wait for ranks that are slower than this one. */
static bool is_just_over(const struct rueda_relay *relay)
{
    return relay->ended_ns != 0 &&
           rueda_clock_ns() - relay->ended_ns < QUIET_NS;
}

bool rueda_relay_may_come(const struct rueda_lanes *lanes)
{
    const struct rueda_negotiator *negotiator = courier(lanes);

    return (lanes->timeline != NULL || lanes->relay.file != NULL ||
            is_just_over(&lanes->relay)) &&
           negotiator != NULL && rueda_negotiator_has_children(negotiator);
}

void rueda_relay_fail(struct rueda_lanes *lanes, rueda_status status)
{
    if (lanes->relay.stop != NULL)
        end_stop(lanes, status);
}

void rueda_relay_fini(struct rueda_lanes *lanes)
{
    if (!is_rank_0(lanes))
        rueda_timeline_close(lanes->timeline);
    free(lanes->relay.told);
}

/* ---- What is noted ------------------------------------------------------- */

void rueda_relay_step(struct rueda_lane *lane, int item, int after,
                      rueda_timeline_activity activity)
{
    struct rueda_timeline *timeline =
        lane->is_ordered ? NULL : lane->lanes->timeline;

    for (; timeline != NULL && item < after; item++) {
        const struct rueda_request *request =
            rueda_batch_request(&lane->batch, item);

        if (rueda_batch_ticket(&lane->batch, item) == NULL)
            continue;
        rueda_timeline_end(timeline, request->name);
        rueda_timeline_begin(timeline, request->name, activity);
    }
}

void rueda_relay_end(struct rueda_lane *lane,
                     const struct rueda_decision *decision)
{
    struct rueda_timeline *timeline = lane->lanes->timeline;

    if (timeline == NULL || lane->is_ordered ||
        decision->kind != RUEDA_DECIDED_RUN)
        return;
    for (int i = 0; i < decision->count; i++) {
        const struct rueda_request *request = decision->items[i].request;

        if (decision->items[i].mine == NULL)
            continue;
        rueda_timeline_end(timeline, request->name);
        rueda_timeline_end_with(timeline, request->name, request->dtype,
                                (int)request->dims, request->shape);
    }
}
