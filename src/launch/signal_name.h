/* SPDX-License-Identifier: Apache-2.0 */
/* Names of signals. Pure; any thread. */
#ifndef RUEDA_LAUNCH_SIGNAL_NAME_H
#define RUEDA_LAUNCH_SIGNAL_NAME_H

/* "KILL" for SIGKILL; NULL for a number that has no name. As sigabbrev_np(),
 * which glibc has only from 2.32 on. */
const char *rueda_signal_name(int number);

#endif /* RUEDA_LAUNCH_SIGNAL_NAME_H */
