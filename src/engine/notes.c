/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a context. Rank 0 keeps the file; the notes of the others go
 * to it with what they negotiate in the set of all ranks.
 */
#define RUEDA_LOG_TAG "engine"

#include "base/log.h"
#include "engine/lanes.h"

#define BLOCK_BYTES 16384

void rueda_lanes_want_timeline(struct rueda_lanes *lanes,
                               struct rueda_timeline *timeline)
{
    atomic_store(&lanes->wanted_timeline, timeline);
}

static struct rueda_negotiator *courier(const struct rueda_lanes *lanes)
{
    const struct rueda_lane *lane = rueda_lanes_find(lanes, RUEDA_SET_GLOBAL);

    return lane != NULL ? lane->negotiator : NULL;
}

/* As many blocks as there are, or one. They wait until it is known how far my
 * clock is from rank 0's, which the first answer of a rank there tells: it
 * would be a matter of days where one host was started long before another. */
static void send(struct rueda_lanes *lanes, bool all)
{
    struct rueda_negotiator *negotiator = courier(lanes);
    unsigned char block[BLOCK_BYTES];
    int64_t shift_ns;
    size_t len;

    if (lanes->job->rank == 0 || negotiator == NULL ||
        !rueda_negotiator_find_shift(negotiator, &shift_ns))
        return;
    rueda_timeline_set_offset(lanes->timeline, shift_ns);
    do {
        len = rueda_timeline_take(lanes->timeline, block, sizeof(block));
        if (len > 0)
            rueda_negotiator_send_notes(negotiator, block, len);
    } while (all && len > 0);
}

void rueda_notes_carry(struct rueda_lanes *lanes)
{
    if (lanes->timeline != NULL && lanes->job->rank != 0 &&
        rueda_timeline_is_due(lanes->timeline))
        send(lanes, false);
}

int64_t rueda_notes_due_ns(const struct rueda_lanes *lanes)
{
    const struct rueda_negotiator *negotiator = courier(lanes);
    int64_t shift_ns;

    if (lanes->timeline == NULL || lanes->job->rank == 0 ||
        negotiator == NULL ||
        !rueda_negotiator_find_shift(negotiator, &shift_ns))
        return INT64_MAX;
    return rueda_timeline_due_ns(lanes->timeline);
}

bool rueda_notes_may_come(const struct rueda_lanes *lanes)
{
    const struct rueda_negotiator *negotiator = courier(lanes);

    return lanes->timeline != NULL && negotiator != NULL &&
           rueda_negotiator_has_children(negotiator);
}

void rueda_notes_flush(struct rueda_lanes *lanes)
{
    if (lanes->timeline != NULL)
        send(lanes, true);
}

void rueda_notes_switch(struct rueda_lanes *lanes)
{
    struct rueda_timeline *wanted =
        atomic_load_explicit(&lanes->wanted_timeline, memory_order_acquire);

    if (wanted == lanes->timeline)
        return;
    rueda_notes_flush(lanes);
    lanes->timeline = wanted;
    for (int i = 0; i < lanes->count; i++)
        rueda_negotiator_trace(lanes->all[i]->negotiator, wanted);
}

void rueda_notes_heard(void *arg, int rank, const void *bytes, size_t len)
{
    struct rueda_lanes *lanes = arg;

    if (lanes->timeline != NULL &&
        rueda_timeline_add(lanes->timeline, rank, bytes, len) != RUEDA_OK)
        log_warn("rank %d sent notes for the timeline that make no sense",
                 rank);
}

void rueda_notes_step(struct rueda_lane *lane, int item, int after,
                      rueda_timeline_activity activity)
{
    struct rueda_timeline *timeline = lane->lanes->timeline;

    for (; timeline != NULL && item < after; item++) {
        const struct rueda_request *request =
            rueda_batch_request(&lane->batch, item);

        if (rueda_batch_named(&lane->batch, item) == NULL)
            continue;
        rueda_timeline_end(timeline, request->name);
        rueda_timeline_begin(timeline, request->name, activity);
    }
}

void rueda_notes_end(struct rueda_lane *lane,
                     const struct rueda_decision *decision)
{
    struct rueda_timeline *timeline = lane->lanes->timeline;

    if (timeline == NULL || decision->kind != RUEDA_DECIDED_RUN)
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
