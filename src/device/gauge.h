/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy the accelerators of this host are, as their driver tells; which kind
 * they are is known here and nowhere above. The driver's library is loaded by
 * the first question. Any thread.
 */
#ifndef RUEDA_DEVICE_GAUGE_H
#define RUEDA_DEVICE_GAUGE_H

#include <pthread.h>

#include "base/text.h"
#include "device/cuda/nvml.h"

struct rueda_gauge {
    pthread_mutex_t lock; /* of all below */
    bool is_open;
    struct rueda_nvml nvml;
};

void rueda_gauge_init(struct rueda_gauge *gauge);
void rueda_gauge_fini(struct rueda_gauge *gauge);

/* Those of the host, whatever this process may use; with that library. On
 * failure (RUEDA_ERR_UNSUPPORTED) error says why and what helps. */
rueda_status rueda_gauge_count(struct rueda_gauge *gauge, const char *library,
                               int *out, struct rueda_text *error);

/* What one of them says. RUEDA_ERR_INVALID: there is none of this number. */
rueda_status rueda_gauge_read(struct rueda_gauge *gauge, const char *library,
                              int index, struct rueda_gpu_metrics *out,
                              struct rueda_text *error);

#endif /* RUEDA_DEVICE_GAUGE_H */
