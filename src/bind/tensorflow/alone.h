/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls are alone in flight, so that the thread that made one may wait a
 * moment for its end: it then drives the engine itself, and neither the
 * engine's thread nor another one of TensorFlow's has to wake. Any thread.
 *
 * A kernel whose last calls began and ended with no other in flight is taken
 * to go on so. If the wait was in vain, because ranks run several ops in
 * different orders or one rank is late, the kernel does not wait for a while.
 */
#ifndef RUEDA_BIND_TENSORFLOW_ALONE_H
#define RUEDA_BIND_TENSORFLOW_ALONE_H

#include <stdatomic.h>
#include <stdbool.h>

/* How often the kernel's last calls were alone; below zero after a wait in
 * vain. Zero when it is made. */
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

/* It has ended; waited_in_vain if its thread has waited, but not until then. */
void rueda_tf_flight_end(const struct rueda_tf_flight *flight,
                         struct rueda_tf_habit *habit, bool waited_in_vain);

#endif /* RUEDA_BIND_TENSORFLOW_ALONE_H */
