/* SPDX-License-Identifier: Apache-2.0 */
#include "bind/tensorflow/alone.h"

/* Calls that a kernel makes alone before it waits, and those without a wait
 * after one that was late. */
#define CALLS_UNTIL_PATIENT 2
#define CALLS_AFTER_LATE    32

/* Of this process, whose ops share one library. */
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
                         struct rueda_tf_habit *habit, bool was_late)
{
    bool was_alone =
        flight->began_alone && atomic_load(&made) == flight->number;
    int alone = atomic_load(&habit->alone);

    atomic_fetch_sub(&in_flight, 1);
    if (was_late)
        alone = -CALLS_AFTER_LATE;
    else if (alone < 0 || was_alone)
        alone += alone < CALLS_UNTIL_PATIENT;
    else
        alone = 0;
    atomic_store(&habit->alone, alone);
}
