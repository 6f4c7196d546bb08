/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which hosts meet, and the judgement of the pairs' figures.
 *
 * Hosts meet as players of a tournament do: in each round a host meets one
 * other host at most, so the measurements of a round have no host in common,
 * and after the last round every two have met. With four hosts:
 *
 *     round 0   0-3   1-2
 *     round 1   1-3   0-2
 *     round 2   2-3   0-1
 *
 * A pair is judged against the median of all pairs of its kind, because what is
 * usual depends on the network; only what no network should have is judged by a
 * fixed number.
 */
#include "tool/doctor/pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool/doctor/judge.h"
#include "tool/stats.h"

/* ---- Which hosts meet in a round ---------------------------------------- */

int rueda_pair_rounds(int hosts)
{
    return hosts < 2 ? 0 : hosts - 1 + hosts % 2;
}

/* One host keeps its place, the others rotate around it; with an odd number of
 * hosts that place is empty. */
int rueda_pair_partner(int hosts, int round, int host)
{
    const int circle = rueda_pair_rounds(hosts);
    int partner;

    if (circle == 0)
        return -1;
    if (host == circle)
        return round;
    partner = (2 * round - host + 2 * circle) % circle;
    if (partner == host)
        partner = circle;
    return partner < hosts ? partner : -1;
}

/* ---- What they say ------------------------------------------------------ */

static struct rueda_pair *find(const struct rueda_pairs *pairs, int a, int b,
                               const char *way)
{
    for (int i = 0; i < pairs->count; i++)
        if (pairs->list[i].a == a && pairs->list[i].b == b &&
            strcmp(pairs->list[i].way, way) == 0)
            return &pairs->list[i];
    return NULL;
}

const struct rueda_pair *rueda_pairs_find(const struct rueda_pairs *pairs,
                                          int a, int b, const char *way)
{
    return find(pairs, a, b, way);
}

static struct rueda_pair *add(struct rueda_pairs *pairs, int a, int b,
                              const char *way)
{
    struct rueda_pair *bigger =
        realloc(pairs->list, (size_t)(pairs->count + 1) * sizeof(*pairs->list));
    struct rueda_pair *pair;

    if (bigger == NULL)
        return NULL;
    pairs->list = bigger;
    pair = &bigger[pairs->count++];
    *pair = (struct rueda_pair){.a = a, .b = b, .offset = NAN, .error = NAN};
    memcpy(pair->way, way, sizeof(pair->way));
    return pair;
}

/* A message takes d. If b's clock is o ahead of a's, the two ends find d + o
 * for one way and d - o for the other. So half their difference is o, and o
 * cannot be wrong by more than half their sum, which is d. */
static void add_delta(struct rueda_pair *pair, bool is_b, int64_t delta_ns)
{
    const double seconds = (double)delta_ns * 1e-9;

    const double mine = is_b ? seconds : -seconds;
    const double other = pair->offset;

    /* The first of the two ends waits for the other. */
    if (isnan(other)) {
        pair->offset = mine;
        return;
    }
    pair->offset = (mine + other) / 2;
    pair->error = fabs(mine - other) / 2;
    pair->has_offset = true;
}

/* Both ranks of a pair report a half each; the pair is complete with the second
 * one. */
bool rueda_pairs_take(struct rueda_pairs *pairs, const struct rueda_half *half,
                      int hosts)
{
    const int mine = half->rank / RUEDA_DOCTOR_RANKS;
    const int peer = half->peer / RUEDA_DOCTOR_RANKS;
    const bool is_b = half->rank > half->peer;
    struct rueda_pair *pair;

    if (half->rank < 0 || half->peer < 0 || mine >= hosts || peer >= hosts ||
        half->rank == half->peer)
        return false;
    pair = find(pairs, is_b ? peer : mine, is_b ? mine : peer, half->way);
    if (pair == NULL) {
        pair = add(pairs, is_b ? peer : mine, is_b ? mine : peer, half->way);
        if (pair == NULL)
            return false;
        pair->latency = half->latency;
        pair->bandwidth = half->bandwidth;
    } else if (pair->has_offset) {
        return false; /* both have spoken */
    }
    if (half->latency > pair->latency)
        pair->latency = half->latency;
    if (half->bandwidth < pair->bandwidth)
        pair->bandwidth = half->bandwidth;
    add_delta(pair, is_b, half->delta_ns);
    return true;
}

void rueda_pairs_fail(struct rueda_pairs *pairs, int a, int b,
                      const char *words)
{
    struct rueda_pair *pair = find(pairs, a, b, "tcp");

    if (pair == NULL) {
        pair = add(pairs, a, b, (const char[8]){"tcp"});
        if (pair == NULL)
            return;
        pair->latency = NAN;
        pair->bandwidth = NAN;
    }
    rueda_judge_failure(&pair->finding, words);
}

/* ---- What to think of it ------------------------------------------------ */

/* Others are so much better only if something is wrong here. */
#define MUCH 3.0

/* Gigabit Ethernet moves more. */
#define SLOW_BANDWIDTH 0.1e9

/* Differences below this are the scheduler's. */
#define LATENCY_FLOOR 100e-6

/* Fewer pairs do not show what is usual. */
#define FEW 3

/* The median of all pairs of one kind: of a way, and in a host or between. NaN
 * where they are few. */
static double usual(const struct rueda_pairs *pairs,
                    const struct rueda_pair *like, bool is_bandwidth)
{
    struct rueda_series series = {0};
    double median = NAN;

    for (int i = 0; i < pairs->count; i++) {
        const struct rueda_pair *pair = &pairs->list[i];

        if (!isnan(pair->latency) &&
            (pair->a == pair->b) == (like->a == like->b) &&
            strcmp(pair->way, like->way) == 0)
            rueda_series_add(&series,
                             is_bandwidth ? pair->bandwidth : pair->latency);
    }
    if (series.count >= FEW)
        median = rueda_series_median(&series);
    rueda_series_fini(&series);
    return median;
}

/* Slow is less than gigabit Ethernet, or much less than most pairs of the same
 * way have. */
static void judge_bandwidth(struct rueda_pair *pair, double median)
{
    if (pair->finding.verdict == RUEDA_FINDING_BAD)
        return; /* the reason has been reported */
    if (pair->bandwidth <= 0)
        rueda_finding_judge(
            &pair->finding, RUEDA_FINDING_BAD,
            "short messages pass and long ones do not: give all "
            "interfaces and switches on the way the same MTU");
    else if (pair->a != pair->b && pair->bandwidth < SLOW_BANDWIDTH)
        rueda_finding_judge(&pair->finding, RUEDA_FINDING_WARN,
                            "this is less than gigabit Ethernet: name a faster "
                            "network by --network-interfaces if there is one, "
                            "and see what ethtool says of this one");
    else if (MUCH * pair->bandwidth < median)
        rueda_finding_judge(&pair->finding, RUEDA_FINDING_WARN,
                            "most such pairs move %.3g GB/s: %s", median * 1e-9,
                            pair->a == pair->b
                                ? "see what else runs on this host (top)"
                                : "look at the cable, the port and the duplex "
                                  "of these two (ethtool), and at what else "
                                  "runs there");
}

static void judge_latency(struct rueda_pair *pair, double median)
{
    if (pair->finding.verdict == RUEDA_FINDING_OK &&
        pair->latency > MUCH * median && pair->latency > median + LATENCY_FLOOR)
        rueda_finding_judge(&pair->finding, RUEDA_FINDING_WARN,
                            "most such pairs take %.3g us: %s", median * 1e6,
                            pair->a == pair->b
                                ? "see what else runs on this host (top)"
                                : "are these two in different rooms or "
                                  "networks, or busy with other work?");
}

/* Pairs inside hosts come first, then in the order of hosts. */
static int compare(const void *one, const void *other)
{
    const struct rueda_pair *x = one;
    const struct rueda_pair *y = other;

    if ((x->a == x->b) != (y->a == y->b))
        return x->a == x->b ? -1 : 1;
    if (x->a != y->a)
        return x->a - y->a;
    return x->b != y->b ? x->b - y->b : strcmp(x->way, y->way);
}

void rueda_pairs_judge(struct rueda_pairs *pairs)
{
    if (pairs->count > 0)
        qsort(pairs->list, (size_t)pairs->count, sizeof(*pairs->list), compare);
    for (int i = 0; i < pairs->count; i++) {
        judge_bandwidth(&pairs->list[i], usual(pairs, &pairs->list[i], true));
        judge_latency(&pairs->list[i], usual(pairs, &pairs->list[i], false));
    }
}

void rueda_pairs_fini(struct rueda_pairs *pairs)
{
    free(pairs->list);
    *pairs = (struct rueda_pairs){.list = NULL};
}
