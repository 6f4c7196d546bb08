/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at memory that is freed, for a secret that should have been wiped. For
 * a program linked with -Wl,--wrap=free.
 */
#ifndef RUEDA_TESTS_UNIT_FREED_H
#define RUEDA_TESTS_UNIT_FREED_H

#include <malloc.h>

#include "unit/unit.h"

static const char *freed_secret; /* what to look for; NULL: nothing */
static int freed_seen;

void __real_free(void *ptr);
void __wrap_free(void *ptr);

void __wrap_free(void *ptr)
{
    if (ptr != NULL && freed_secret != NULL &&
        memmem(ptr, malloc_usable_size(ptr), freed_secret,
               strlen(freed_secret)) != NULL)
        freed_seen++;
    __real_free(ptr);
}

static inline void watch_for(const char *secret)
{
    freed_secret = secret;
    freed_seen = 0;
}

#endif /* RUEDA_TESTS_UNIT_FREED_H */
