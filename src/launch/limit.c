/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/limit.h"

#include <sys/resource.h>

/* What is open anyway. */
#define OTHERS 64

void rueda_limit_need(int descriptors)
{
    const rlim_t wanted = (rlim_t)descriptors + OTHERS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}
