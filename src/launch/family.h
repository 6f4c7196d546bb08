/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes below this one. A subreaper adopts what its descendants leave
 * behind, so that nothing gets away from it but by root's help.
 */
#ifndef RUEDA_LAUNCH_FAMILY_H
#define RUEDA_LAUNCH_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

/* Adopt orphans from now on. */
void rueda_family_adopt(void);

/* Send a signal to all descendants. Returns how many there were. */
int rueda_family_signal(int signal);

/* The clock tick in which a process began; 0: there is none of this number. */
unsigned long long rueda_family_begun(int id);

/* Send a signal to the process that has this number and began in this tick; no
 * process that got the number later receives it. */
void rueda_family_signal_one(int id, unsigned long long begun, int signal);

/* Kill all descendants and wait for them, until none is left (true) or the time
 * is over, as for processes that hang in the kernel. */
bool rueda_family_end(int64_t timeout_ns);

#endif /* RUEDA_LAUNCH_FAMILY_H */
