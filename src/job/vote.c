/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members agree by what each writes in its line of the segment. What a member
 * has is one word, of the term and the count of its steps, so that a count of
 * an old term is below each of a later one.
 *
 * A proposal stays as it is until all members are frozen for the term after it.
 * By then each of them knows what was decided for its term.
 */
#include "job/vote.h"

/* The upper bits of that word, for less terms than a segment has members twice
 * over. Each has room for one step a microsecond in nine years. */
#define TERM_BITS  16
#define TERM_SHIFT (64 - TERM_BITS)
#define STEP_MASK  (((uint64_t)1 << TERM_SHIFT) - 1)

/* A decision: its term, and the member whose proposal it is. */
#define DECISION_SHIFT 32

static uint64_t word_of(const struct rueda_formation *formation, uint64_t steps)
{
    return (uint64_t)formation->term << TERM_SHIFT | (steps & STEP_MASK);
}

static struct rueda_member_vote *
vote_of(const struct rueda_formation *formation, int rank)
{
    return &formation->segment->members[formation->members[rank]].vote;
}

/* ---- Steps ------------------------------------------------------------ */

void rueda_vote_publish(const struct rueda_formation *formation, int lane,
                        uint64_t steps)
{
    atomic_store_explicit(&vote_of(formation, formation->rank)->has[lane],
                          word_of(formation, steps), memory_order_release);
    rueda_segment_notify_all(formation->segment);
}

bool rueda_vote_is_carried(const struct rueda_formation *formation, int lane,
                           uint64_t steps)
{
    const uint64_t word = word_of(formation, steps);

    for (int rank = 0; rank < formation->size; rank++)
        if (atomic_load_explicit(&vote_of(formation, rank)->has[lane],
                                 memory_order_acquire) < word)
            return false;
    return true;
}

/* ---- Freezing --------------------------------------------------------- */

void rueda_vote_freeze(struct rueda_segment *segment, uint32_t term,
                       uint64_t boundaries)
{
    struct rueda_member_vote *mine = &segment->members[segment->me].vote;
    _Atomic uint64_t *called = &segment->common->called;
    uint64_t latest = atomic_load(called);

    atomic_store(&mine->boundaries, boundaries);
    atomic_store(&mine->frozen, term);
    while (latest < term &&
           !atomic_compare_exchange_weak(called, &latest, term))
        ;
    rueda_segment_notify_all(segment);
}

/* ---- The decision ------------------------------------------------------ */

static void keep_least(_Atomic uint64_t *limit, uint64_t word)
{
    const uint64_t steps = word & STEP_MASK;

    if (steps < atomic_load(limit))
        atomic_store(limit, steps);
}

/* A member that is there, and so is frozen, goes on. */
static void count_in(struct rueda_member_vote *proposal,
                     const struct rueda_member_vote *vote, int member)
{
    const uint64_t boundaries = atomic_load(&vote->boundaries);

    for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
        keep_least(&proposal->limits[lane], atomic_load(&vote->has[lane]));
    if (boundaries > atomic_load(&proposal->last_boundary))
        atomic_store(&proposal->last_boundary, boundaries);
    atomic_fetch_or(&proposal->survivors[member / 64],
                    (uint64_t)1 << (member % 64));
}

static void clear(struct rueda_member_vote *proposal)
{
    for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
        atomic_store(&proposal->limits[lane], STEP_MASK);
    atomic_store(&proposal->last_boundary, 0);
    for (int i = 0; i < RUEDA_SEGMENT_MAX / 64; i++)
        atomic_store(&proposal->survivors[i], 0);
}

/* RUEDA_OK: all members are frozen or gone. */
static rueda_status await_all(const struct rueda_formation *from, uint32_t term,
                              int *out_awaited)
{
    const struct rueda_segment *segment = from->segment;

    for (int rank = 0; rank < from->size; rank++) {
        const int member = from->members[rank];

        if (rueda_segment_has_failed(segment, member))
            return RUEDA_ERR_PEER_LOST;
        if (rueda_segment_is_gone(segment, member) ||
            atomic_load(&vote_of(from, rank)->frozen) >= term)
            continue;
        *out_awaited = rank;
        return RUEDA_IN_PROGRESS;
    }
    return RUEDA_OK;
}

/* Write my proposal. Not before all are frozen: one that is not may still read
 * what I proposed for the term before. */
static void propose(const struct rueda_formation *from)
{
    struct rueda_segment *segment = from->segment;
    struct rueda_member_vote *mine = &segment->members[segment->me].vote;

    clear(mine);
    for (int rank = 0; rank < from->size; rank++)
        if (!rueda_segment_is_gone(segment, from->members[rank]))
            count_in(mine, vote_of(from, rank), from->members[rank]);
}

static void read_out(const struct rueda_formation *from, uint64_t decided,
                     struct rueda_verdict *out)
{
    const int author = (int)(decided & UINT32_MAX);
    const struct rueda_member_vote *proposal =
        &from->segment->members[author].vote;

    for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
        out->limits[lane] = atomic_load(&proposal->limits[lane]);
    out->last_boundary = atomic_load(&proposal->last_boundary);
    out->count = 0;
    for (int rank = 0; rank < from->size; rank++) {
        const int member = from->members[rank];

        if (atomic_load(&proposal->survivors[member / 64]) >> (member % 64) & 1)
            out->survivors[out->count++] = rank;
    }
}

rueda_status rueda_vote_decide(const struct rueda_formation *from,
                               struct rueda_verdict *out, int *out_awaited)
{
    const uint32_t term = from->term + 1;
    _Atomic uint64_t *decision = &from->segment->common->decided;
    uint64_t decided = atomic_load(decision);
    rueda_status status;

    if (decided >> DECISION_SHIFT < term) {
        status = await_all(from, term, out_awaited);
        if (status != RUEDA_OK)
            return status;
        propose(from);
        if (atomic_compare_exchange_strong(decision, &decided,
                                           (uint64_t)term << DECISION_SHIFT |
                                               (uint32_t)from->segment->me))
            decided = atomic_load(decision);
    }
    read_out(from, decided, out);
    return RUEDA_OK;
}
