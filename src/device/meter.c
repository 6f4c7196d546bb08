/* SPDX-License-Identifier: Apache-2.0 */
#include "device/meter.h"

void rueda_meter_init(struct rueda_meter *meter)
{
    pthread_mutex_init(&meter->lock, NULL);
    meter->is_open = false;
}

void rueda_meter_fini(struct rueda_meter *meter)
{
    if (meter->is_open)
        rueda_nvml_close(&meter->nvml);
    pthread_mutex_destroy(&meter->lock);
}

/* Under the lock. */
static rueda_status count(struct rueda_meter *meter, const char *library,
                          int *out, struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    if (!meter->is_open)
        status = rueda_nvml_open(&meter->nvml, library, error);
    if (status != RUEDA_OK)
        return status;
    meter->is_open = true;
    return rueda_nvml_count(&meter->nvml, out, error);
}

rueda_status rueda_meter_count(struct rueda_meter *meter, const char *library,
                               int *out, struct rueda_text *error)
{
    rueda_status status;

    pthread_mutex_lock(&meter->lock);
    status = count(meter, library, out, error);
    pthread_mutex_unlock(&meter->lock);
    return status;
}

rueda_status rueda_meter_read(struct rueda_meter *meter, const char *library,
                              int index, struct rueda_gpu_metrics *out,
                              struct rueda_text *error)
{
    rueda_status status;
    int all = 0;

    pthread_mutex_lock(&meter->lock);
    status = count(meter, library, &all, error);
    if (status == RUEDA_OK && (index < 0 || index >= all)) {
        rueda_text_set(error, "there is no GPU %d; this host has %d", index,
                       all);
        status = RUEDA_ERR_INVALID;
    }
    if (status == RUEDA_OK)
        status = rueda_nvml_read(&meter->nvml, index, out, error);
    pthread_mutex_unlock(&meter->lock);
    return status;
}
