/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the accelerator of a rank when its first tensor comes, and waiting
 * for its work at the end. No file above this one knows which kind it is. */
#include "device/accelerator.h"

#include "device/cuda/cuda.h"
#include "os/clock.h"

/* A GPU that does not end its work in this time has failed, and its work would
 * never end. */
#define SETTLE_NS ((int64_t)2000000000)

void rueda_accelerator_init(struct rueda_accelerator *self,
                            const struct rueda_config *config)
{
    self->config = config;
    self->number = -1;
    atomic_init(&self->device, NULL);
    pthread_mutex_init(&self->lock, NULL);
}

void rueda_accelerator_fini(struct rueda_accelerator *self)
{
    const struct rueda_device *device = rueda_accelerator_of(self);

    if (device != NULL)
        rueda_cuda_close(device);
    pthread_mutex_destroy(&self->lock);
}

/* Under the lock. The number is written before the device is shown, so a thread
 * that sees the device sees its number. */
static rueda_status open_it(struct rueda_accelerator *self, int number,
                            struct rueda_text *error)
{
    const struct rueda_device *device;
    rueda_status status =
        rueda_cuda_open(self->config->driver_library, number, &device, error);

    if (status != RUEDA_OK)
        return status;
    rueda_cuda_set_up(device, self->config);
    self->number = number;
    atomic_store_explicit(&self->device, device, memory_order_release);
    return RUEDA_OK;
}

/* On the path of every tensor on a GPU: without the lock once it is open. */
rueda_status rueda_accelerator_need(struct rueda_accelerator *self, int number,
                                    const struct rueda_device **out,
                                    struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    if (rueda_accelerator_of(self) == NULL) {
        pthread_mutex_lock(&self->lock);
        if (rueda_accelerator_of(self) == NULL)
            status = open_it(self, number, error);
        pthread_mutex_unlock(&self->lock);
    }
    if (status != RUEDA_OK)
        return status;
    if (self->number != number) {
        rueda_text_set(error,
                       "the tensor is on accelerator %d, but this rank began "
                       "with accelerator %d; a rank uses one, so copy the "
                       "tensor there, or start a rank for each accelerator",
                       number, self->number);
        return RUEDA_ERR_UNSUPPORTED;
    }
    *out = rueda_accelerator_of(self);
    return RUEDA_OK;
}

void rueda_device_settle(const struct rueda_device *device,
                         struct rueda_work *work)
{
    int64_t end_ns;

    if (work->status != RUEDA_IN_PROGRESS)
        return;
    end_ns = rueda_clock_ns() + SETTLE_NS;
    while (rueda_device_poll(device, work) == RUEDA_IN_PROGRESS &&
           rueda_clock_ns() < end_ns)
        rueda_yield();
}
