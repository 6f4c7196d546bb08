/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the ranks of a host come to share a segment.
 *
 * Rank 0 makes the segment and listens on an abstract Unix socket named after
 * the user and the job. The others connect, prove themselves (auth/), and hand
 * over their doorbell and a pidfd of their own, so no process id has to be
 * visible across containers. When all have come, rank 0 sends every rank the
 * memfd and all descriptors; each maps the segment, fills in its line and
 * reports that; then rank 0 releases all. If anything fails, each rank gets the
 * message.
 *
 * Two jobs that use one name could take each other's ranks. So a second process
 * that says it is rank 0, or any other rank that is there already, ends the
 * start of all: no rank can know which of the two is meant.
 *
 * Blocks until the deadline at most. One thread.
 */
#ifndef RUEDA_SEGMENT_MEET_H
#define RUEDA_SEGMENT_MEET_H

#include <rueda/rueda.h>

#include "auth/key.h"
#include "base/text.h"

struct rueda_segment;

struct rueda_meeting {
    int rank; /* in the meeting; the first one admits the others */
    int size;
    const char *job;    /* names the socket */
    const char *title;  /* of the job, for people; NULL: the same */
    bool is_by_program; /* the name stands for a program and a folder; rank 0
                           claims it as long as the job runs */
    const int *ranks;   /* of all members, in the job; NULL: the same */
    const struct rueda_key *key; /* present or not */
    int64_t deadline_ns;
    int inherited; /* rank 0's memfd, or -1: it makes one */

    /* Called in every rank once it sees the segment and before others see its
     * line: rank 0 fills in segment->common, each rank its own line. */
    rueda_status (*prepare)(void *arg, struct rueda_segment *segment,
                            struct rueda_text *error);

    /* Will some never come? Then words say why. Asked now and then while a rank
     * waits for others; NULL: never. */
    bool (*is_over)(void *arg, struct rueda_text *words);
    void *arg;
};

/* The rank in the job of a member of the meeting, for messages. */
static inline int rueda_meeting_rank(const struct rueda_meeting *meeting,
                                     int who)
{
    return meeting->ranks != NULL ? meeting->ranks[who] : who;
}

static inline const char *
rueda_meeting_title(const struct rueda_meeting *meeting)
{
    return meeting->title != NULL ? meeting->title : meeting->job;
}

rueda_status rueda_segment_meet(const struct rueda_meeting *meeting,
                                struct rueda_segment **out,
                                struct rueda_text *error);

#endif /* RUEDA_SEGMENT_MEET_H */
