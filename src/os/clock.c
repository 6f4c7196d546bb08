/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, and giving the core away. All times of the library are
 * CLOCK_MONOTONIC in nanoseconds, except what people read: that is the time
 * since 1970. */
#include "os/clock.h"

#include <sched.h>
#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t rueda_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t rueda_clock_epoch_us(void)
{
    return read_clock(CLOCK_REALTIME) / 1000;
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
