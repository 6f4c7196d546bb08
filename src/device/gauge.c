/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of GPUs by NVML, under one lock: the driver may take its time for an
 * answer, and people ask, not the path of a tensor. */
#include "device/gauge.h"

void rueda_gauge_init(struct rueda_gauge *gauge)
{
    pthread_mutex_init(&gauge->lock, NULL);
    gauge->is_open = false;
}

void rueda_gauge_fini(struct rueda_gauge *gauge)
{
    if (gauge->is_open)
        rueda_nvml_close(&gauge->nvml);
    pthread_mutex_destroy(&gauge->lock);
}

/* Under the lock. */
static rueda_status count(struct rueda_gauge *gauge, const char *library,
                          int *out, struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    if (!gauge->is_open)
        status = rueda_nvml_open(&gauge->nvml, library, error);
    if (status != RUEDA_OK)
        return status;
    gauge->is_open = true;
    return rueda_nvml_count(&gauge->nvml, out, error);
}

rueda_status rueda_gauge_count(struct rueda_gauge *gauge, const char *library,
                               int *out, struct rueda_text *error)
{
    rueda_status status;

    pthread_mutex_lock(&gauge->lock);
    status = count(gauge, library, out, error);
    pthread_mutex_unlock(&gauge->lock);
    return status;
}

rueda_status rueda_gauge_read(struct rueda_gauge *gauge, const char *library,
                              int index, struct rueda_gpu_metrics *out,
                              struct rueda_text *error)
{
    rueda_status status;
    int all = 0;

    pthread_mutex_lock(&gauge->lock);
    status = count(gauge, library, &all, error);
    if (status == RUEDA_OK && (index < 0 || index >= all)) {
        rueda_text_set(error, "there is no GPU %d; this host has %d", index,
                       all);
        status = RUEDA_ERR_INVALID;
    }
    if (status == RUEDA_OK)
        status = rueda_nvml_read(&gauge->nvml, index, out, error);
    pthread_mutex_unlock(&gauge->lock);
    return status;
}
