/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM as a notice: a scheduler announces so that this process is to go. The
 * handler belongs to the process, as signals do.
 */
#ifndef RUEDA_OS_SIGTERM_H
#define RUEDA_OS_SIGTERM_H

#include <rueda/rueda.h>

/*
 * Turn SIGTERM into a ring of a doorbell (os/event.h), which is returned and
 * stays open as long as the process lives. A SIGTERM of process ender still
 * ends this process, and so do a second one and any that comes to a child after
 * fork(). RUEDA_ERR_INVALID: the program has a handler of its own, which stays.
 * RUEDA_ERR_IO: no descriptor.
 */
RUEDA_API rueda_status rueda_sigterm_open(int ender, int *out_fd);

#endif /* RUEDA_OS_SIGTERM_H */
