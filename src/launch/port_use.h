/* SPDX-License-Identifier: Apache-2.0 */
/* Has a process of this network namespace used a TCP port? */
#ifndef RUEDA_LAUNCH_PORT_USE_H
#define RUEDA_LAUNCH_PORT_USE_H

#include <stdbool.h>

/*
 * Is there a socket that listens at port, or a connection from or to it? One
 * that has ended counts for another minute. Asks the kernel through netlink and
 * reads its list in /proc where that is not allowed; false if neither is.
 */
bool rueda_port_use_is_there(int port);

/* The second way alone, for tests. */
bool rueda_port_use_is_listed(int port);

#endif /* RUEDA_LAUNCH_PORT_USE_H */
