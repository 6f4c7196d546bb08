/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To make a private set every member prepares its lane and sends the leader a
 * report; the leader compares the reports and answers each member, either that
 * the set is made, and where the slab of the member's host is, or why not.
 *
 * A set ends by an operation of its own lane (RUEDA_SET_CLOSE), a barrier that
 * all members submit. Each then closes its lane, which takes turns until
 * nothing of it is on its way. The last that other members do with the slab is
 * to say that they do not look at it any more; then its owner frees it.
 */
#include "engine/private_sets.h"

#include <stdlib.h>

#include "base/hash.h"
#include "engine/sets.h"

/* Of messages about the set: none of its lane has this sequence. */
#define OPENING_SEQUENCE (RUEDA_TAG_CONTROL - 1)

/* From a member to the leader. */
struct report {
    uint64_t hash; /* of the ranks that it lists */
    uint64_t is_ready;
    uint64_t offset; /* of the slab of its host, if it is to find room for it */
};

/* From the leader to a member. */
struct answer {
    uint64_t status;
    uint64_t rank; /* of which it is true */
    uint64_t offset;
};

struct rueda_private_set {
    struct rueda_private_set *next;
    struct rueda_ticket *ticket;
    const struct rueda_set *set;
    struct rueda_lane *lane; /* NULL: there is no memory for it */
    struct rueda_tag tag;
    bool is_answering; /* the leader has heard all */

    /* The leader's are [set->size], of each member; another member has its
     * own report and answer, and a request for each. */
    struct report *reports;
    struct answer *answers;
    struct rueda_req *reqs;
};

/* ---- Life --------------------------------------------------------------- */

/* The place in the set of the lowest member of this member's host. */
static int owner_of(const struct rueda_formation *formation,
                    const struct rueda_set *set, int member)
{
    int owner = 0;

    while (rueda_formation_host(formation, set->ranks[owner]) !=
           rueda_formation_host(formation, set->ranks[member]))
        owner++;
    return owner;
}

static void free_opening(struct rueda_private_set *opening)
{
    free(opening->reports);
    free(opening->answers);
    free(opening->reqs);
    free(opening);
}

static struct rueda_private_set *new_opening(int size)
{
    struct rueda_private_set *opening = calloc(1, sizeof(*opening));
    const size_t room = (size_t)size + 1;

    if (opening == NULL)
        return NULL;
    opening->reports = calloc(room, sizeof(*opening->reports));
    opening->answers = calloc(room, sizeof(*opening->answers));
    opening->reqs = calloc(room, sizeof(*opening->reqs));
    if (opening->reports != NULL && opening->answers != NULL &&
        opening->reqs != NULL)
        return opening;
    free_opening(opening);
    return NULL;
}

/* The same on all members if they list the same ranks. */
static uint64_t hash_of(const struct rueda_set *set)
{
    uint64_t hash = (uint64_t)set->size;

    for (int i = 0; i < set->size; i++)
        hash = rueda_hash_mix(hash ^ (uint64_t)set->ranks[i]);
    return hash;
}

/* All of my part that can fail. */
static void prepare(struct rueda_lanes *lanes,
                    struct rueda_private_set *opening, struct report *report)
{
    const struct rueda_set *set = opening->set;
    struct rueda_text ignored = {{0}};
    size_t bytes;
    void *slab;

    report->hash = hash_of(set);
    if (rueda_lane_new(lanes, lanes->formation, set, false, &opening->lane,
                       &ignored) != RUEDA_OK)
        return;
    bytes = rueda_lane_slab_bytes(opening->lane);
    if (bytes > 0 && owner_of(lanes->formation, set, set->me) == set->me) {
        if (rueda_segment_alloc(lanes->formation->segment, bytes, &slab,
                                &ignored) != RUEDA_OK)
            return;
        report->offset = rueda_segment_offset(lanes->formation->segment, slab);
    }
    report->is_ready = true;
}

static void start_messages(struct rueda_lanes *lanes,
                           struct rueda_private_set *opening)
{
    struct rueda_mesh *mesh = &lanes->formation->mesh;
    const struct rueda_set *set = opening->set;

    for (int i = 1; i < set->size && set->me == 0; i++)
        rueda_mesh_recv(mesh, set->ranks[i], opening->tag, &opening->reports[i],
                        sizeof(struct report), &opening->reqs[i]);
    if (set->me == 0)
        return;
    rueda_mesh_send(mesh, set->ranks[0], opening->tag, &opening->reports[0],
                    sizeof(struct report), &opening->reqs[0]);
    rueda_mesh_recv(mesh, set->ranks[0], opening->tag, &opening->answers[0],
                    sizeof(struct answer), &opening->reqs[1]);
}

/* It was not begun; the operation ends. */
static void refuse(struct rueda_lanes *lanes, struct rueda_ticket *ticket,
                   rueda_status status, const char *words)
{
    rueda_batch_refuse(ticket, status, words);
    rueda_lanes_append_ended(lanes, ticket);
}

void rueda_private_sets_open(struct rueda_lanes *lanes,
                             struct rueda_ticket *ticket)
{
    const struct rueda_set *set;
    struct rueda_private_set *opening;

    if (rueda_sets_find(lanes, ticket->made_set) != NULL) {
        refuse(lanes, ticket, RUEDA_ERR_INVALID,
               "this private set is there already; give each an id of its own");
        return;
    }
    opening = new_opening(ticket->rank_count);
    set = rueda_sets_copy(lanes, ticket->made_set, ticket->ranks,
                          ticket->rank_count);
    if (opening == NULL || set == NULL) {
        if (opening != NULL)
            free_opening(opening);
        if (set != NULL)
            rueda_sets_discard(lanes, set);
        refuse(lanes, ticket, RUEDA_ERR_NOMEM, "no memory for a private set");
        return;
    }
    opening->ticket = ticket;
    opening->set = set;
    opening->tag = (struct rueda_tag){.set = 2 * (uint32_t)set->id + 1,
                                      .sequence = OPENING_SEQUENCE};
    prepare(lanes, opening, &opening->reports[0]);
    start_messages(lanes, opening);
    opening->next = lanes->openings;
    lanes->openings = opening;
    lanes->undelivered++;
}

/* ---- The leader ---------------------------------------------------------- */

/* What the reports say together. */
static struct answer verdict_of(const struct rueda_private_set *opening)
{
    const struct rueda_set *set = opening->set;

    for (int i = 0; i < set->size; i++) {
        struct answer answer = {.rank = (uint64_t)set->ranks[i]};

        if (opening->reports[i].hash != opening->reports[0].hash)
            answer.status = (uint64_t)RUEDA_ERR_MISMATCH;
        else if (opening->reports[i].is_ready == 0)
            answer.status = (uint64_t)RUEDA_ERR_LIMIT;
        else
            continue;
        return answer;
    }
    return (struct answer){.status = RUEDA_OK};
}

static void start_answers(struct rueda_lanes *lanes,
                          struct rueda_private_set *opening)
{
    const struct rueda_set *set = opening->set;
    const struct answer verdict = verdict_of(opening);

    for (int i = 0; i < set->size; i++) {
        opening->answers[i] = verdict;
        opening->answers[i].offset =
            opening->reports[owner_of(lanes->formation, set, i)].offset;
        if (i > 0)
            rueda_mesh_send(&lanes->formation->mesh, set->ranks[i],
                            opening->tag, &opening->answers[i],
                            sizeof(struct answer), &opening->reqs[i]);
    }
    opening->is_answering = true;
}

/* ---- All members ------------------------------------------------------ */

/* How its messages stand. */
static rueda_status status_of(const struct rueda_private_set *opening)
{
    const bool leads = opening->set->me == 0;
    const int end = leads ? opening->set->size : 2;
    rueda_status status = RUEDA_OK;

    for (int i = leads ? 1 : 0; i < end; i++) {
        if (opening->reqs[i].status < 0)
            return opening->reqs[i].status;
        if (opening->reqs[i].status != RUEDA_OK)
            status = RUEDA_IN_PROGRESS;
    }
    return status;
}

/* The set is not made: free what was prepared. */
static void give_up(struct rueda_lanes *lanes,
                    struct rueda_private_set *opening)
{
    struct rueda_segment *segment = lanes->formation->segment;
    const uint64_t offset = opening->reports[0].offset;

    if (offset > 0)
        rueda_segment_free(segment, rueda_segment_at(segment, offset));
    if (opening->lane != NULL)
        rueda_lane_free(opening->lane);
    opening->lane = NULL;
    rueda_sets_discard(lanes, opening->set);
}

static void tell_refusal(struct rueda_ticket *ticket,
                         const struct answer *answer)
{
    const rueda_status status = (rueda_status)(int64_t)answer->status;
    struct rueda_text words = {{0}};

    if (status == RUEDA_ERR_MISMATCH)
        rueda_text_set(&words,
                       "rank %d lists other ranks for private set %d; all "
                       "members list the same",
                       (int)answer->rank, ticket->made_set);
    else
        rueda_text_set(&words, "rank %d has no memory for another process set",
                       (int)answer->rank);
    rueda_batch_refuse(ticket, status, words.chars);
}

static void finish(struct rueda_lanes *lanes, struct rueda_private_set *opening)
{
    struct rueda_ticket *ticket = opening->ticket;
    const struct answer *answer = &opening->answers[0];

    ticket->op.outcome = RUEDA_OK;
    if (answer->status != RUEDA_OK) {
        give_up(lanes, opening);
        tell_refusal(ticket, answer);
    } else {
        rueda_status status;

        rueda_lane_open(opening->lane, answer->offset);
        status = rueda_lanes_add(lanes, opening->lane);
        if (status != RUEDA_OK)
            rueda_lane_free(opening->lane);
        else
            status = rueda_sets_show(lanes, opening->set);
        if (status != RUEDA_OK)
            rueda_batch_refuse(ticket, RUEDA_ERR_NOMEM,
                               "no memory for a private set");
    }
    rueda_lanes_append_ended(lanes, ticket);
    lanes->undelivered--;
    free_opening(opening);
}

static rueda_status turn(struct rueda_lanes *lanes,
                         struct rueda_private_set **link)
{
    struct rueda_private_set *opening = *link;
    rueda_status status = status_of(opening);

    if (status == RUEDA_OK && opening->set->me == 0 && !opening->is_answering) {
        start_answers(lanes, opening);
        status = status_of(opening);
    }
    if (status == RUEDA_OK) {
        *link = opening->next;
        finish(lanes, opening);
    }
    return status;
}

/* ---- The end of a set ------------------------------------------------- */

/* All members have come so far; this is the last decision of the lane. */
rueda_batch_next rueda_batch_set_close(struct rueda_lane *lane)
{
    if (lane->batch.step++ == 0) {
        rueda_batch_words(lane, RUEDA_BARRIER);
        return RUEDA_BATCH_TASK;
    }
    lane->limit = lane->begun;
    return RUEDA_BATCH_END;
}

static bool is_private(const struct rueda_lane *lane)
{
    return lane->set->id >= RUEDA_PRIVATE_SETS;
}

bool rueda_private_sets_is_closing(const struct rueda_lane *lane)
{
    return is_private(lane) && lane->count == 1 &&
           lane->first->request.kind == RUEDA_SET_CLOSE;
}

bool rueda_private_sets_abandon(struct rueda_lane *lane)
{
    if (!rueda_private_sets_is_closing(lane))
        return false;
    lane->limit = lane->begun;
    lane->ended = lane->limit;
    return true;
}

static bool has_lost_member(const struct rueda_lane *lane)
{
    for (int i = 0; i < lane->slab.size; i++)
        if (rueda_segment_is_gone(lane->lanes->formation->segment,
                                  lane->locals[i]))
            return true;
    return false;
}

/* All of the set's operations have ended here: its last decision is carried
 * out, and so are ordered operations, which other members begin as well. */
static bool has_come_to_its_end(const struct rueda_lane *lane,
                                const struct rueda_lane *ordered)
{
    return lane->ended >= lane->limit &&
           (ordered == NULL || ordered->count == ordered->messages.count);
}

static void drop(struct rueda_lanes *lanes, struct rueda_lane *lane)
{
    rueda_lane_close(lane);
    rueda_lanes_drop(lanes, lane);
}

/* Drop one set that has come to its end; false: there is none. */
static bool drop_one(struct rueda_lanes *lanes)
{
    for (int i = 0; i < lanes->count; i++) {
        struct rueda_lane *lane = lanes->all[i], *ordered;

        if (!is_private(lane) || lane->is_ordered)
            continue;
        if (rueda_private_sets_is_closing(lane) && has_lost_member(lane))
            rueda_private_sets_abandon(lane);
        ordered = rueda_lanes_find(lanes, lane->set->id, true);
        if (!has_come_to_its_end(lane, ordered))
            continue;
        /* Without memory the set is still shown, and what is submitted to it
         * is refused. */
        rueda_sets_hide(lanes, lane->set->id);
        drop(lanes, lane);
        if (ordered != NULL)
            drop(lanes, ordered);
        return true;
    }
    return false;
}

static rueda_status drop_closed(struct rueda_lanes *lanes)
{
    rueda_status moved = RUEDA_IN_PROGRESS;

    while (drop_one(lanes))
        moved = RUEDA_OK;
    return moved;
}

bool rueda_private_sets_may_free(struct rueda_lane *lane)
{
    if (!is_private(lane) || !lane->has_slab || !lane->is_open)
        return true;
    if (lane->slab.rank > 0) {
        rueda_slab_forget(&lane->slab);
        return true;
    }
    if (!rueda_slab_is_forgotten(&lane->slab))
        return false;
    rueda_segment_free(lane->lanes->formation->segment, lane->slab.lines);
    return true;
}

/* ---- Turns and failures ----------------------------------------------- */

rueda_status rueda_private_sets_turn(struct rueda_lanes *lanes)
{
    rueda_status moved = drop_closed(lanes);
    struct rueda_private_set **link = &lanes->openings;

    while (*link != NULL) {
        struct rueda_private_set *opening = *link;
        rueda_status status = turn(lanes, link);

        if (status < 0)
            return status;
        if (status == RUEDA_OK)
            moved = RUEDA_OK; /* it is gone, and the next one in its place */
        else
            link = &opening->next;
    }
    return moved;
}

void rueda_private_sets_end(struct rueda_lanes *lanes, rueda_status status)
{
    while (lanes->openings != NULL) {
        struct rueda_private_set *opening = lanes->openings;

        lanes->openings = opening->next;
        give_up(lanes, opening);
        opening->ticket->op.outcome = status;
        rueda_lanes_append_ended(lanes, opening->ticket);
        lanes->undelivered--;
        free_opening(opening);
    }
}

bool rueda_private_sets_are_spoilt(const struct rueda_lanes *lanes)
{
    const struct rueda_formation *formation = lanes->formation;

    for (const struct rueda_private_set *opening = lanes->openings;
         opening != NULL; opening = opening->next) {
        for (int i = 0; i < opening->set->size; i++) {
            const int place = formation->members[opening->set->ranks[i]];

            if (place >= 0 && rueda_segment_is_gone(formation->segment, place))
                return true;
        }
    }
    return false;
}
