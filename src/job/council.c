/* SPDX-License-Identifier: Apache-2.0 */
/* The council of the ranks of one host, who vote in their segment. */
#include "job/council.h"

/* Lanes see that in the segment. */
static bool is_spoilt(struct rueda_job *job)
{
    (void)job;
    return false;
}

static void freeze(struct rueda_formation *from,
                   const struct rueda_standing *standing)
{
    rueda_vote_freeze(from->segment, from->term + 1, standing->boundaries);
}

static rueda_status decide(struct rueda_formation *from,
                           struct rueda_verdict *out, int *out_awaited)
{
    return rueda_vote_decide(from, out, out_awaited);
}

/* It is in the segment, where the others see it. */
static void offer(struct rueda_formation *next)
{
    (void)next;
}

/* They see in the segment that this rank has failed. */
static void refuse(struct rueda_job *job, const char *words)
{
    (void)job;
    (void)words;
}

const struct rueda_council_ops rueda_council_in_memory = {
    .takes_barriers = false,
    .is_called = rueda_vote_is_called,
    .is_spoilt = is_spoilt,
    .freeze = freeze,
    .decide = decide,
    .offer = offer,
    .meet = rueda_formation_meet,
    .refuse = refuse,
};
