/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the calls that are in flight at once, and guessing which will be
 * alone again (alone.h). */
#include "bind/tensorflow/alone.h"

/* Two calls in a row that were alone make a third one likely, and a wrong guess
 * costs no more than MOMENT_MS (call.c). */
#define CALLS_UNTIL_PATIENT 2

/* Of this process, whose ops share one library. Calls of one kernel may overlap
 * and then lose a count, which makes a guess worse and nothing wrong. */
static atomic_uint made;
static atomic_int in_flight;

bool rueda_tf_flight_begin(struct rueda_tf_flight *flight,
                           const struct rueda_tf_habit *habit)
{
    flight->number = atomic_fetch_add(&made, 1) + 1;
    flight->began_alone = atomic_fetch_add(&in_flight, 1) == 0;
    return flight->began_alone &&
           atomic_load(&habit->alone) >= CALLS_UNTIL_PATIENT;
}

void rueda_tf_flight_end(const struct rueda_tf_flight *flight,
                         struct rueda_tf_habit *habit)
{
    const bool was_alone =
        flight->began_alone && atomic_load(&made) == flight->number;
    const int alone = atomic_load(&habit->alone);

    atomic_fetch_sub(&in_flight, 1);
    if (!was_alone)
        atomic_store(&habit->alone, 0);
    else if (alone < CALLS_UNTIL_PATIENT)
        atomic_store(&habit->alone, alone + 1);
}
