/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal for a rank that is debugged (a pseudo-terminal). Any thread. */
#ifndef RUEDA_LAUNCH_PTY_H
#define RUEDA_LAUNCH_PTY_H

#include <stdbool.h>

/* Our end, which does not block, and the rank's. False with errno. */
bool rueda_pty_open(int columns, int rows, int *out_ours, int *out_theirs);

/* In the rank's process, before it executes: lead a session of its own, whose
 * terminal is descriptor 0. */
void rueda_pty_take(void);

#endif /* RUEDA_LAUNCH_PTY_H */
