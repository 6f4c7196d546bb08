/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's side of a meeting (meet.h): it lets the others in. */
#ifndef RUEDA_SEGMENT_RECEIVE_H
#define RUEDA_SEGMENT_RECEIVE_H

#include "segment/meet.h"
#include "segment/segment.h"

/* Wait for every rank, hand out the segment, enter it. own is my doorbell and
 * my pidfd, taken in any case. */
rueda_status rueda_segment_receive(const struct rueda_meeting *meeting,
                                   struct rueda_segment *segment,
                                   const int own[2], struct rueda_text *error);

/*
 * Tell the process that listens under the name of the job that I am its rank 0
 * as well (meet.c). own is my doorbell and my pidfd, borrowed. Returns the
 * error that both get, or RUEDA_IN_PROGRESS: that process listens no more.
 */
rueda_status rueda_segment_contest(const struct rueda_meeting *meeting,
                                   const int own[2], struct rueda_text *error);

#endif /* RUEDA_SEGMENT_RECEIVE_H */
