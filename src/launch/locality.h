/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the hosts is this one? */
#ifndef RUEDA_LAUNCH_LOCALITY_H
#define RUEDA_LAUNCH_LOCALITY_H

#include "launch/hosts.h"

/*
 * is_local[i] for each of the first count hosts: by name where that is plain,
 * else by asking the resolver, for all at a time, and for timeout_ms at most. A
 * name that it does not know is another host: ssh may know better.
 */
void rueda_locality_find(const struct rueda_hosts *hosts, int count,
                         int timeout_ms, bool *is_local);

#endif /* RUEDA_LAUNCH_LOCALITY_H */
