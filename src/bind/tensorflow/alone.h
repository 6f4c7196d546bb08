/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are alone in flight, so that the thread that made one may wait a
 * moment for its end: it then drives the engine itself, and neither the
 * engine's thread nor another one of TensorFlow's has to wake. Any thread.
 *
 * A kernel whose last calls began and ended with no other in flight is expected
 * to do so again. It goes on to wait when waits were too short: a rank that
 * leaves its call to the engine's thread is later than one that waits, and
 * makes the waits of the others too short.
 */
#ifndef RUEDA_BIND_TENSORFLOW_ALONE_H
#define RUEDA_BIND_TENSORFLOW_ALONE_H

#include <stdatomic.h>
#include <stdbool.h>

/* How many of a kernel's last calls were alone, up to as many as are needed.
 * Zero when it is made. */
struct rueda_tf_habit {
    atomic_int alone;
};

/* Of one call. */
struct rueda_tf_flight {
    unsigned number;
    bool began_alone;
};

/* A call is about to be submitted. True if its thread is to wait. */
bool rueda_tf_flight_begin(struct rueda_tf_flight *flight,
                           const struct rueda_tf_habit *habit);

/* It has ended. */
void rueda_tf_flight_end(const struct rueda_tf_flight *flight,
                         struct rueda_tf_habit *habit);

#endif /* RUEDA_BIND_TENSORFLOW_ALONE_H */
