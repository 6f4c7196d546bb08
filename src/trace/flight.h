/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: what each rank of a host did last, in the segment, where
 * others can read it also when that rank is wedged or dead.
 *
 * A ring of a fixed number of events a rank, written by the holder of the
 * engine's token for a few nanoseconds each. Any thread of any rank of the host
 * may read a rank's ring while it is being written: a read says so if the event
 * may have been overwritten meanwhile, and never returns half of one event and
 * half of another.
 */
#ifndef RUEDA_TRACE_FLIGHT_H
#define RUEDA_TRACE_FLIGHT_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "segment/segment.h"

typedef enum rueda_flight_step {
    RUEDA_FLIGHT_STARTED,
    RUEDA_FLIGHT_ENDED,
    RUEDA_FLIGHT_FAILED,
} rueda_flight_step;

struct rueda_flight_event {
    rueda_flight_step step;
    rueda_kind kind;
    uint64_t number; /* of the operation, the same in every rank */
    uint64_t bytes;
};

/* Note an event of my own. */
void rueda_flight_note(struct rueda_segment *segment,
                       const struct rueda_flight_event *event);

/* How many events a rank has noted, and the i-th of them from 0; false if it is
 * not there yet, or not any more: out is worth nothing then. */
uint64_t rueda_flight_count(const struct rueda_segment *segment, int member);
bool rueda_flight_read(const struct rueda_segment *segment, int member,
                       uint64_t i, struct rueda_flight_event *out);

/* Add to the text what a rank did last: "it had ended allreduce number 16". */
void rueda_flight_tell(const struct rueda_segment *segment, int member,
                       struct rueda_text *words);

#endif /* RUEDA_TRACE_FLIGHT_H */
