/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"

#include <sched.h>
#include <time.h>

int64_t rueda_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void rueda_yield(void)
{
    sched_yield();
}

void rueda_sleep_ns(int64_t ns)
{
    struct timespec time = {.tv_sec = ns / 1000000000,
                            .tv_nsec = ns % 1000000000};

    nanosleep(&time, NULL);
}
