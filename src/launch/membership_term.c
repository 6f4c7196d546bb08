/* SPDX-License-Identifier: Apache-2.0 */
/* How a term is formed: who has which rank. */
#include <stdlib.h>

#include "launch/membership_state.h"

/* Those who stay keep their ranks, where these are below size. out: workers by
 * rank, -1 for a gap. Returns how many of the list are left over. */
static int keep_ranks(const struct rueda_membership *members, int *list,
                      int count, int *out)
{
    int left = 0;

    for (int rank = 0; rank < count; rank++)
        out[rank] = -1;
    for (int i = 0; i < count; i++) {
        const int rank = members->workers[list[i]].rank;

        if (rank >= 0 && rank < count && out[rank] < 0)
            out[rank] = list[i];
        else
            list[left++] = list[i];
    }
    return left;
}

/* Does worker a take a gap before b? Those who stay first, in the order that
 * they had, then newcomers by host and slot. */
static bool is_before(const struct rueda_membership_worker *a,
                      const struct rueda_membership_worker *b)
{
    if (a->rank != b->rank && a->rank >= 0 && b->rank >= 0)
        return a->rank < b->rank;
    if (a->rank != b->rank)
        return a->rank >= 0;
    return a->host != b->host ? a->host < b->host : a->slot < b->slot;
}

static void fill_gaps(const struct rueda_membership *members, int *list,
                      int left, int *ranks, int count)
{
    for (int rank = 0; rank < count; rank++) {
        int best = 0;

        if (ranks[rank] >= 0)
            continue;
        for (int i = 1; i < left; i++)
            if (is_before(&members->workers[list[i]],
                          &members->workers[list[best]]))
                best = i;
        ranks[rank] = list[best];
        list[best] = list[--left];
    }
}

/* Rank 0 hands out its state, so no other rank may have come farther. */
static void seat_farthest_at_0(const struct rueda_membership *members,
                               int *ranks, int count)
{
    const int first = ranks[0];
    int best = 0;

    for (int rank = 1; rank < count; rank++)
        if (members->workers[ranks[rank]].progress >
            members->workers[ranks[best]].progress)
            best = rank;
    /* Of several, the highest leaves its place. */
    for (int rank = best + 1; rank < count && best > 0; rank++)
        if (members->workers[ranks[rank]].progress ==
            members->workers[ranks[best]].progress)
            best = rank;
    ranks[0] = ranks[best];
    ranks[best] = first;
}

/* Local numbers go up with the rank; a cross number is the place of the host
 * among those that have this local number. */
static void place(struct rueda_membership *members, const int *ranks, int count,
                  int rank)
{
    const int host = members->workers[ranks[rank]].host;
    struct rueda_rendezvous_ranks out = {
        .term = members->term, .rank = rank, .size = count};

    for (int other = 0; other < count; other++) {
        if (members->workers[ranks[other]].host != host)
            continue;
        out.local_rank += other < rank;
        out.local_size++;
    }
    for (int h = 0; h < members->host_count; h++) {
        int there = 0;

        for (int other = 0; other < count; other++)
            there += members->workers[ranks[other]].host == h;
        out.cross_rank += h < host && there > out.local_rank;
        out.cross_size += there > out.local_rank;
    }
    members->workers[ranks[rank]].rank = rank;
    members->workers[ranks[rank]].state = RUEDA_WORKER_MEMBER;
    rueda_membership_act(members,
                         (struct rueda_action){.kind = RUEDA_ACTION_RANKS,
                                               .worker = ranks[rank],
                                               .host = host,
                                               .ranks = out});
}

static void begin_term(struct rueda_membership *members, int *list, int count)
{
    int *ranks = calloc((size_t)count + 1, sizeof(*ranks));
    int left;

    if (ranks == NULL) {
        rueda_membership_end(members, 1, "no memory for the next term");
        return;
    }
    left = keep_ranks(members, list, count, ranks);
    fill_gaps(members, list, left, ranks, count);
    seat_farthest_at_0(members, ranks, count);
    members->resets += members->term > 0;
    members->term++;
    members->size = count;
    members->told = 0;
    members->code = 0;
    members->newcomer_ns = INT64_MAX;
    members->since_ns = INT64_MAX;
    members->has_said = false;
    for (int rank = 0; rank < count; rank++)
        place(members, ranks, count, rank);
    free(ranks);
}

/* Workers that wait and may stay; into list, if there is one. */
static int find_candidates(const struct rueda_membership *members, int *list,
                           int64_t now_ns)
{
    int count = 0;

    for (int i = 0; i < members->worker_count; i++) {
        const struct rueda_membership_worker *worker = &members->workers[i];

        if (worker->state == RUEDA_WORKER_WAITING &&
            rueda_membership_may_stay(members, i, now_ns))
            list[count++] = i;
    }
    return count;
}

/* Would a term of these go back behind what the job has reached? */
static bool have_lost_state(const struct rueda_membership *members,
                            const int *list, int count)
{
    bool has_member = false;

    for (int i = 0; i < count; i++) {
        if (members->workers[list[i]].progress > 0)
            return false;
        has_member = has_member || members->workers[list[i]].rank >= 0;
    }
    return members->term > 0 && (members->has_trained || !has_member);
}

static bool is_past_limit(const struct rueda_membership *members)
{
    return members->term > 0 && members->args.reset_limit >= 0 &&
           members->resets >= members->args.reset_limit;
}

/* In the first term all start together, and so do newcomers of which the
 * members were told before these had asked. */
static bool is_enough(const struct rueda_membership *members, int count)
{
    const int starting = rueda_membership_count(members, RUEDA_WORKER_STARTING);

    if (members->term > 0)
        return count >= members->args.least &&
               (starting == 0 || !members->args.tells_early ||
                (members->told & RUEDA_RENDEZVOUS_ADDED) == 0);
    return starting == 0 && count >= (members->code == 0 ? members->args.size
                                                         : members->args.least);
}

void rueda_membership_form(struct rueda_membership *members, int64_t now_ns)
{
    int *list = calloc((size_t)members->worker_count + 1, sizeof(*list));
    struct rueda_text words = {{0}};
    int count;

    if (list == NULL) {
        rueda_membership_end(members, 1, "no memory for the next term");
        return;
    }
    count = find_candidates(members, list, now_ns);
    if (!is_enough(members, count)) {
        free(list);
        return;
    }
    if (have_lost_state(members, list, count)) {
        rueda_membership_end(members, members->code != 0 ? members->code : 1,
                             "no process is left that has the state of the "
                             "training; the job is ended");
    } else if (is_past_limit(members)) {
        rueda_text_set(&words,
                       "the number of resets of this elastic job exceeds the "
                       "limit: %d (--reset-limit); the job is ended",
                       members->args.reset_limit);
        rueda_membership_end(members, 1, words.chars);
    } else {
        begin_term(members, list, count);
    }
    free(list);
}
