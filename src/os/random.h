/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes of the system, fit for keys and nonces. Any thread.
 */
#ifndef RUEDA_OS_RANDOM_H
#define RUEDA_OS_RANDOM_H

#include <stddef.h>

#include <rueda/rueda.h>

/* Fill buf. Blocks only on a machine that has just booted and has no entropy
 * yet. RUEDA_ERR_IO leaves the cause in errno and buf undefined. */
rueda_status rueda_random_fill(void *buf, size_t len);

#endif /* RUEDA_OS_RANDOM_H */
