/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full fence: all threads see what was stored before it, before this thread
 * loads what comes after it. It costs about ten nanoseconds where nothing is
 * waiting to be stored. (C11's own is not understood by the thread sanitizer.)
 */
#ifndef RUEDA_BASE_FENCE_H
#define RUEDA_BASE_FENCE_H

#include <stdatomic.h>

static inline void rueda_fence(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lock; orq $0, (%%rsp)" ::: "memory", "cc");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif /* RUEDA_BASE_FENCE_H */
