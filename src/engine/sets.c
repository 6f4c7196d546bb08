/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding and removing a process set, as operations that all ranks take part in.
 * Each member prepares a lane; if one of them has no memory, all give up and
 * the set does not exist. A removed set ends when all members have come to the
 * end of its log. Threads of the program read the sets from a list that is
 * replaced, never changed.
 */
#include "engine/sets.h"

#include <stdlib.h>
#include <string.h>

#include "algo/registry.h"

/* ---- What other threads see ------------------------------------------- */

/* A set and its ranks, in one piece of memory. */
struct rueda_sets_copied {
    struct rueda_sets_copied *older;
    struct rueda_set set;
    int ranks[];
};

/* Never changed once it is published. Older ones stay as long as a thread may
 * still read them. */
struct rueda_sets_list {
    struct rueda_sets_list *older;
    int count;
    const struct rueda_set *sets[]; /* in the order in which they were made */
};

static const struct rueda_set *find_in(const struct rueda_sets_list *list,
                                       int id)
{
    for (int i = 0; i < list->count; i++)
        if (list->sets[i]->id == id)
            return list->sets[i];
    return NULL;
}

const struct rueda_set *rueda_sets_find(const struct rueda_lanes *lanes, int id)
{
    /* Acquire: what is in the list was written before it was shown. */
    const struct rueda_sets_list *list =
        atomic_load_explicit(&lanes->sets, memory_order_acquire);

    return find_in(list, id);
}

/*
 * The order is what matters: a reader is counted before it loads the list, and
 * the holder of the token counts the readers after it has stored a new list. If
 * it finds none, a later reader sees the new list. The set of all ranks is
 * never given back, so that most operations need not count.
 */
const struct rueda_set *rueda_sets_hold(struct rueda_lanes *lanes, int id)
{
    const struct rueda_set *set;

    if (id == RUEDA_SET_GLOBAL)
        return atomic_load_explicit(&lanes->global, memory_order_acquire);
    atomic_fetch_add_explicit(&lanes->set_readers, 1, memory_order_seq_cst);
    set = find_in(atomic_load_explicit(&lanes->sets, memory_order_seq_cst), id);
    if (set == NULL)
        atomic_fetch_sub_explicit(&lanes->set_readers, 1, memory_order_release);
    return set;
}

/* Release: what was read was read before. */
void rueda_sets_release(struct rueda_lanes *lanes, const struct rueda_set *set)
{
    if (set != NULL && set->id != RUEDA_SET_GLOBAL)
        atomic_fetch_sub_explicit(&lanes->set_readers, 1, memory_order_release);
}

/* Its ranks are still to be filled in. */
static struct rueda_sets_copied *new_copy(struct rueda_lanes *lanes, int id,
                                          int count)
{
    struct rueda_sets_copied *copy =
        malloc(sizeof(*copy) + (size_t)count * sizeof(copy->ranks[0]));

    if (copy == NULL)
        return NULL;
    copy->set = (struct rueda_set){
        .id = id,
        .size = count,
        .ranks = copy->ranks,
    };
    copy->older = lanes->copies;
    lanes->copies = copy;
    return copy;
}

const struct rueda_set *rueda_sets_copy(struct rueda_lanes *lanes, int id,
                                        const int *ranks, int count)
{
    struct rueda_sets_copied *copy = new_copy(lanes, id, count);

    if (copy == NULL)
        return NULL;
    memcpy(copy->ranks, ranks, (size_t)count * sizeof(ranks[0]));
    copy->set.me = rueda_set_index(&copy->set, lanes->formation->rank);
    return &copy->set;
}

const struct rueda_set *
rueda_sets_copy_all(struct rueda_lanes *lanes,
                    const struct rueda_formation *formation)
{
    struct rueda_sets_copied *copy =
        new_copy(lanes, RUEDA_SET_GLOBAL, formation->size);

    if (copy == NULL)
        return NULL;
    for (int rank = 0; rank < formation->size; rank++)
        copy->ranks[rank] = rank;
    copy->set.me = formation->rank;
    return &copy->set;
}

const struct rueda_set *rueda_sets_keep(struct rueda_lanes *lanes, int id)
{
    const struct rueda_set *set = rueda_set_find(lanes->table, id);

    return rueda_sets_copy(lanes, id, set->ranks, set->size);
}

/* Take the copy that has this set out of the list of copies. */
static struct rueda_sets_copied *take_copy(struct rueda_lanes *lanes,
                                           const struct rueda_set *set)
{
    struct rueda_sets_copied **at = &lanes->copies;
    struct rueda_sets_copied *copy;

    while (&(*at)->set != set)
        at = &(*at)->older;
    copy = *at;
    *at = copy->older;
    return copy;
}

void rueda_sets_discard(struct rueda_lanes *lanes, const struct rueda_set *set)
{
    free(take_copy(lanes, set));
}

static bool has_lane(const struct rueda_lanes *lanes,
                     const struct rueda_set *set)
{
    for (int i = 0; i < lanes->count; i++)
        if (lanes->all[i]->set == set)
            return true;
    for (int i = 0; i < lanes->dropped_count; i++)
        if (lanes->dropped[i]->set == set)
            return true;
    return false;
}

static void free_lists(struct rueda_sets_list *list)
{
    while (list != NULL) {
        struct rueda_sets_list *older = list->older;

        free(list);
        list = older;
    }
}

static void free_copies(struct rueda_sets_copied *copy)
{
    while (copy != NULL) {
        struct rueda_sets_copied *older = copy->older;

        free(copy);
        copy = older;
    }
}

/* Give back what is out of reach for readers. Where a thread reads just now,
 * the next change of the list does it. */
static void tidy(struct rueda_lanes *lanes)
{
    struct rueda_sets_list *now =
        atomic_load_explicit(&lanes->sets, memory_order_relaxed);
    struct rueda_sets_copied **at = &lanes->retired;

    if (atomic_load_explicit(&lanes->set_readers, memory_order_seq_cst) > 0)
        return;
    free_lists(now->older);
    now->older = NULL;
    while (*at != NULL) {
        struct rueda_sets_copied *copy = *at;

        if (has_lane(lanes, &copy->set)) {
            at = &copy->older;
            continue;
        }
        *at = copy->older;
        free(copy);
    }
}

/* It is not shown any more. */
static void retire(struct rueda_lanes *lanes, const struct rueda_set *set)
{
    struct rueda_sets_copied *copy;

    if (set->id == RUEDA_SET_GLOBAL)
        return;
    copy = take_copy(lanes, set);
    copy->older = lanes->retired;
    lanes->retired = copy;
}

/* The list that is shown, without one id and with one more set, or NULL. */
static rueda_status show(struct rueda_lanes *lanes, int without,
                         const struct rueda_set *with)
{
    struct rueda_sets_list *now =
        atomic_load_explicit(&lanes->sets, memory_order_relaxed);
    size_t room = (now != NULL ? (size_t)now->count : 0) + 1;
    const struct rueda_set *gone = NULL;
    struct rueda_sets_list *list =
        malloc(sizeof(*list) + room * sizeof(const struct rueda_set *));

    if (list == NULL)
        return RUEDA_ERR_NOMEM;
    list->older = now;
    list->count = 0;
    for (int i = 0; now != NULL && i < now->count; i++)
        if (now->sets[i]->id != without)
            list->sets[list->count++] = now->sets[i];
        else
            gone = now->sets[i];
    if (with != NULL)
        list->sets[list->count++] = with;
    if (with != NULL && with->id == RUEDA_SET_GLOBAL)
        atomic_store_explicit(&lanes->global, with, memory_order_release);
    atomic_store_explicit(&lanes->sets, list, memory_order_seq_cst);
    if (gone != NULL)
        retire(lanes, gone);
    tidy(lanes);
    return RUEDA_OK;
}

rueda_status rueda_sets_show(struct rueda_lanes *lanes,
                             const struct rueda_set *set)
{
    return show(lanes, -1, set);
}

rueda_status rueda_sets_hide(struct rueda_lanes *lanes, int id)
{
    return show(lanes, id, NULL);
}

rueda_status rueda_sets_replace(struct rueda_lanes *lanes,
                                const struct rueda_set *set)
{
    return show(lanes, set->id, set);
}

void rueda_sets_free(struct rueda_lanes *lanes)
{
    free_lists(atomic_load_explicit(&lanes->sets, memory_order_relaxed));
    free_copies(lanes->copies);
    free_copies(lanes->retired);
}

/* A set has a lane of named operations, and one of ordered ones. */
#define LANES 2

/* ---- Making a set ----------------------------------------------------- */

/* What each rank reports of its part: whether all went well, and where the slab
 * of its host is, if it had to allocate it. */
enum {
    IS_READY,
    OFFSET,
    TOLD
};

/* The lowest member of my host, which allocates the slab of its members. */
static int slab_owner_of(const struct rueda_formation *formation,
                         const struct rueda_set *set)
{
    int i = 0;

    while (formation->members[set->ranks[i]] < 0)
        i++;
    return set->ranks[i];
}

/* The slab of a lane, if it is mine to make; false: there is no memory. */
static bool make_slab(struct rueda_lane *lane, uint64_t *out_offset)
{
    const struct rueda_formation *formation = lane->formation;
    const size_t bytes = rueda_lane_slab_bytes(lane);
    struct rueda_text ignored = {{0}};
    void *slab;

    *out_offset = 0;
    if (bytes == 0 || slab_owner_of(formation, lane->set) != formation->rank)
        return true;
    if (rueda_segment_alloc(formation->segment, bytes, &slab, &ignored) !=
        RUEDA_OK)
        return false;
    *out_offset = rueda_segment_offset(formation->segment, slab);
    return true;
}

static void free_slab(struct rueda_segment *segment, uint64_t offset)
{
    if (offset > 0)
        rueda_segment_free(segment, rueda_segment_at(segment, offset));
}

/* All of my part that can fail. */
static bool prepare(struct rueda_lanes *lanes, struct rueda_batch *batch)
{
    struct rueda_text ignored = {{0}};

    batch->made = NULL;
    batch->offset = 0;
    batch->set = rueda_sets_keep(lanes, batch->id);
    if (batch->set == NULL)
        return false;
    if (batch->set->me < 0)
        return true;
    return rueda_lane_new(lanes, lanes->formation, batch->set, false,
                          &batch->made, &ignored) == RUEDA_OK &&
           make_slab(batch->made, &batch->offset);
}

static rueda_batch_next begin_set(struct rueda_lane *lane,
                                  struct rueda_ticket *ticket)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_text error = {{0}};
    rueda_status status;

    status = rueda_set_add(lane->lanes->table, ticket->ranks,
                           ticket->rank_count, &batch->id, &error);
    if (status == RUEDA_ERR_NOMEM)
        return rueda_batch_fail(lane, status, error.chars);
    if (status != RUEDA_OK) {
        rueda_batch_refuse(ticket, status, error.chars);
        return RUEDA_BATCH_END;
    }
    batch->words[IS_READY] = prepare(lane->lanes, batch);
    batch->words[OFFSET] = batch->offset;
    rueda_batch_words(lane, RUEDA_ALLGATHER)->count = TOLD;
    return RUEDA_BATCH_TASK;
}

/* A member has no memory: all of them end the operation in the same way. */
static rueda_batch_next give_up(struct rueda_lane *lane,
                                struct rueda_ticket *ticket, int rank)
{
    struct rueda_lanes *lanes = lane->lanes;
    struct rueda_batch *batch = &lane->batch;
    struct rueda_text words = {{0}};

    rueda_set_remove(lanes->table, batch->id, &words);
    free_slab(lanes->formation->segment, batch->offset);
    /* It has taken no turn anywhere. */
    if (batch->made != NULL)
        rueda_lane_free(batch->made);
    batch->made = NULL;
    if (batch->set != NULL)
        rueda_sets_discard(lanes, batch->set);
    batch->set = NULL;
    rueda_text_set(&words, "rank %d has no memory for another process set",
                   rank);
    rueda_batch_refuse(ticket, RUEDA_ERR_LIMIT, words.chars);
    return RUEDA_BATCH_END;
}

static rueda_batch_next finish_set(struct rueda_lane *lane,
                                   struct rueda_ticket *ticket)
{
    struct rueda_lanes *lanes = lane->lanes;
    struct rueda_batch *batch = &lane->batch;
    rueda_status status;

    for (int rank = 0; rank < lane->set->size; rank++)
        if (batch->answer[rank * TOLD + IS_READY] == 0)
            return give_up(lane, ticket, rank);
    if (batch->made != NULL) {
        int owner = slab_owner_of(lanes->formation, batch->set);

        rueda_lane_open(batch->made, batch->answer[owner * TOLD + OFFSET]);
        status = rueda_lanes_add(lanes, batch->made);
        if (status != RUEDA_OK)
            return rueda_batch_fail(lane, status,
                                    "no memory for a process set");
        batch->made = NULL;
    }
    status = rueda_sets_show(lanes, batch->set);
    if (status != RUEDA_OK)
        return rueda_batch_fail(lane, status, "no memory for a process set");
    ticket->made_set = batch->id;
    return RUEDA_BATCH_END;
}

static const char joined_words[] =
    "a process set changes after this rank has joined";

rueda_batch_next rueda_batch_set_add(struct rueda_lane *lane)
{
    struct rueda_ticket *ticket = rueda_batch_ticket(&lane->batch, 0);

    if (ticket == NULL)
        return rueda_batch_fail(lane, RUEDA_ERR_MISMATCH, joined_words);
    return lane->batch.step++ == 0 ? begin_set(lane, ticket)
                                   : finish_set(lane, ticket);
}

/* ---- Ordered operations of a set --------------------------------------- */

/* Of this set's members, the index of one of its ranks. */
static int owner_index(const struct rueda_lane *lane)
{
    return rueda_set_index(lane->set,
                           slab_owner_of(lane->formation, lane->set));
}

/* A member that has no slab cannot open the lane: the operation fails on all,
 * and the next one tries again. */
static rueda_batch_next finish_open(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_text words = {{0}};

    for (int i = 0; i < lane->set->size; i++) {
        if (batch->answer[i * TOLD + IS_READY] != 0)
            continue;
        free_slab(lane->formation->segment, batch->offset);
        rueda_text_set(
            &words,
            "rank %d has no memory for ordered operations of process "
            "set %d",
            lane->set->ranks[i], lane->set->id);
        rueda_batch_refuse(rueda_batch_ticket(batch, 0), RUEDA_ERR_LIMIT,
                           words.chars);
        return RUEDA_BATCH_END;
    }
    rueda_lane_open(lane, batch->answer[owner_index(lane) * TOLD + OFFSET]);
    rueda_batch_begin(lane, batch->decision);
    return batch->next(lane);
}

rueda_batch_next rueda_batch_open(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;

    if (batch->step++ > 0)
        return finish_open(lane);
    batch->words[IS_READY] = make_slab(lane, &batch->offset);
    batch->words[OFFSET] = batch->offset;
    rueda_batch_words(lane, RUEDA_ALLGATHER)->count = TOLD;
    /* By messages alone, for there is no slab yet. */
    rueda_track_use(&lane->track, &rueda_algo_ring);
    return RUEDA_BATCH_TASK;
}

/* ---- Dropping a set --------------------------------------------------- */

/* Members have come to different places of its log. What one of them has begun
 * the others carry out as well, and nothing that comes after it. */
static rueda_batch_next begin_drop(struct rueda_lane *lane,
                                   struct rueda_ticket *ticket)
{
    struct rueda_batch *batch = &lane->batch;
    struct rueda_text error = {{0}};
    bool is_there;

    batch->id = ticket->rank_count > 0 ? ticket->ranks[0] : -1;
    for (int i = 0; i < LANES; i++)
        batch->closed[i] = rueda_lanes_find(lane->lanes, batch->id, i != 0);
    is_there = rueda_set_find(lane->lanes->table, batch->id) != NULL;
    if (batch->id == RUEDA_SET_GLOBAL || !is_there) {
        rueda_set_remove(lane->lanes->table, batch->id, &error);
        rueda_batch_refuse(ticket, RUEDA_ERR_INVALID, error.chars);
        return RUEDA_BATCH_END;
    }
    for (int i = 0; i < LANES; i++) {
        struct rueda_lane *closed = batch->closed[i];

        batch->words[i] = closed != NULL ? closed->begun : 0;
        if (closed != NULL)
            closed->limit = closed->begun;
    }
    rueda_batch_words(lane, RUEDA_ALLGATHER)->count = LANES;
    return RUEDA_BATCH_TASK;
}

/* How far the member has come that has come farthest. */
static uint64_t limit_of(const struct rueda_lane *lane, int i)
{
    uint64_t limit = 0;

    for (int rank = 0; rank < lane->set->size; rank++)
        if (lane->batch.answer[rank * LANES + i] > limit)
            limit = lane->batch.answer[rank * LANES + i];
    return limit;
}

/* A lane of ordered operations may be there on other members alone: mine are
 * still to be submitted, as the program promises. */
static rueda_status hear_limits(struct rueda_lane *lane)
{
    struct rueda_batch *batch = &lane->batch;
    rueda_status status = RUEDA_OK;

    if (batch->closed[1] == NULL && limit_of(lane, 1) > 0)
        status = rueda_lanes_need_ordered(lane->lanes, batch->id,
                                          &batch->closed[1], batch->error);
    for (int i = 0; i < LANES; i++)
        if (batch->closed[i] != NULL)
            batch->closed[i]->limit = limit_of(lane, i);
    return status;
}

/* When all members have come this far, none reads the slabs of the set any
 * more.
 */
static rueda_batch_next close_lanes(struct rueda_lane *lane)
{
    struct rueda_lane **closed = lane->batch.closed;

    for (int i = 0; i < LANES; i++) {
        if (closed[i] != NULL && closed[i]->ended < closed[i]->limit) {
            lane->batch.step--;
            return RUEDA_BATCH_WAIT;
        }
    }
    for (int i = 0; i < LANES; i++)
        if (closed[i] != NULL)
            rueda_lane_close(closed[i]);
    rueda_batch_words(lane, RUEDA_BARRIER);
    return RUEDA_BATCH_TASK;
}

static void drop_lane(struct rueda_lane *closed)
{
    struct rueda_segment *segment = closed->formation->segment;

    if (closed->has_slab && closed->slab.rank == 0)
        rueda_segment_free(segment, closed->slab.lines);
    rueda_segment_free(segment, closed->fusion);
    closed->fusion = NULL;
    rueda_lanes_drop(closed->lanes, closed);
}

static rueda_batch_next finish_drop(struct rueda_lane *lane)
{
    struct rueda_lanes *lanes = lane->lanes;
    struct rueda_text error = {{0}};

    for (int i = 0; i < LANES; i++)
        if (lane->batch.closed[i] != NULL)
            drop_lane(lane->batch.closed[i]);
    rueda_set_remove(lanes->table, lane->batch.id, &error);
    if (rueda_sets_hide(lanes, lane->batch.id) != RUEDA_OK)
        return rueda_batch_fail(lane, RUEDA_ERR_NOMEM,
                                "no memory to drop a process set");
    return RUEDA_BATCH_END;
}

rueda_batch_next rueda_batch_set_drop(struct rueda_lane *lane)
{
    struct rueda_ticket *ticket = rueda_batch_ticket(&lane->batch, 0);

    if (ticket == NULL)
        return rueda_batch_fail(lane, RUEDA_ERR_MISMATCH, joined_words);
    switch (lane->batch.step++) {
    case 0:
        return begin_drop(lane, ticket);
    case 1:
        if (hear_limits(lane) != RUEDA_OK)
            return rueda_batch_fail(lane, RUEDA_ERR_NOMEM,
                                    "no memory to drop a process set");
        lane->batch.step++;
        return close_lanes(lane);
    case 2:
        return close_lanes(lane);
    default:
        return finish_drop(lane);
    }
}
