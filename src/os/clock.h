/* SPDX-License-Identifier: Apache-2.0 */
/* Time and giving way. Any thread. */
#ifndef RUEDA_OS_CLOCK_H
#define RUEDA_OS_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back; its origin means nothing. */
int64_t rueda_clock_ns(void);

/* A counter that rises by one to a few each nanosecond. It costs less than a
 * clock, and can tell that hardly any time has passed. */
static inline uint64_t rueda_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return (uint64_t)rueda_clock_ns();
#endif
}

/* Microseconds since 1970, as the machine believes; may go back. */
int64_t rueda_clock_epoch_us(void);

/* Let another thread run on this core. */
void rueda_yield(void);

/* Sleep; may end early on a signal. */
void rueda_sleep_ns(int64_t ns);

/* Tell the core that we are spinning. */
static inline void rueda_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif /* RUEDA_OS_CLOCK_H */
