/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accelerator of a rank: the device of tensors that are not in the memory
 * of the host. It is opened when the first such tensor comes, and no library is
 * loaded before. A rank uses one accelerator; which kind that is, is known here
 * and nowhere above.
 */
#ifndef RUEDA_DEVICE_ACCELERATOR_H
#define RUEDA_DEVICE_ACCELERATOR_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/config.h"
#include "device/device.h"

struct rueda_accelerator {
    const struct rueda_config *config; /* borrowed */
    pthread_mutex_t lock;
    _Atomic(const struct rueda_device *) device; /* NULL: none is open yet; */
    int number;                                  /* its number, written before
                                                    that */
};

void rueda_accelerator_init(struct rueda_accelerator *self,
                            const struct rueda_config *config);
void rueda_accelerator_fini(struct rueda_accelerator *self);

/*
 * The accelerator of this number, opened if need be, which may block. On
 * failure nothing changes, and error says why and what helps. Any thread.
 */
rueda_status rueda_accelerator_need(struct rueda_accelerator *self, int number,
                                    const struct rueda_device **out,
                                    struct rueda_text *error);

/* The one that is open, or NULL. Any thread. */
static inline const struct rueda_device *
rueda_accelerator_of(const struct rueda_accelerator *self)
{
    return atomic_load_explicit(&self->device, memory_order_acquire);
}

#endif /* RUEDA_DEVICE_ACCELERATOR_H */
