/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are alone in flight, so that the thread that made one may wait a
 * moment for its end: it then drives the engine itself, and neither the
 * engine's thread nor another one of TensorFlow's has to wake. Any thread.
 *
 * A kernel whose last calls began and ended with no other in flight is expected
 * to do so again. If the operation has not ended after the wait, because ranks
 * run several ops in different orders or one rank is late, the kernel does not
 * wait in its next calls.
 */
#ifndef RUEDA_BIND_TENSORFLOW_ALONE_H
#define RUEDA_BIND_TENSORFLOW_ALONE_H

#include <stdatomic.h>
#include <stdbool.h>

/* How often the kernel's last calls were alone; below zero after a wait that
 * was too short. Zero when it is made. */
struct rueda_tf_habit {
    atomic_int alone;
};

struct rueda_tf_flight {
    unsigned number;
    bool began_alone;
};

/* A call is about to be submitted. True if its thread is to wait. */
bool rueda_tf_flight_begin(struct rueda_tf_flight *flight,
                           const struct rueda_tf_habit *habit);

/* It has ended; was_late if its thread has waited, but not until then. */
void rueda_tf_flight_end(const struct rueda_tf_flight *flight,
                         struct rueda_tf_habit *habit, bool was_late);

#endif /* RUEDA_BIND_TENSORFLOW_ALONE_H */
