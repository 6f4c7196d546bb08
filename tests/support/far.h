/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second kind of memory, in the memory of the host, for which every call
 * answers "in progress" and takes effect only some polls later. Each row is
 * used by one thread at a time; counts are of all rows. Asserts in the thread
 * that calls.
 */
#ifndef RUEDA_TESTS_SUPPORT_FAR_H
#define RUEDA_TESTS_SUPPORT_FAR_H

#include "device/device.h"

enum {
    FAR_MEMORY = 1 << 7,
    FAR_PATIENCE = 3 /* polls before a call takes effect */
};

/* One that has no algorithms of its own. */
extern const struct rueda_device far_device;

/* What has been accepted since far_reset(), and the most parts of one call. */
struct far_counts {
    int calls;
    int most_in;  /* gathered into a slab */
    int most_out; /* scattered out of one */
};

void far_reset(void);
struct far_counts far_counts(void);

#endif /* RUEDA_TESTS_SUPPORT_FAR_H */
