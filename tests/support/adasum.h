/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUEDA_SUPPORT_ADASUM_H
#define RUEDA_SUPPORT_ADASUM_H

#include <stddef.h>

/* Adasum of whole vectors, v[rank], in the order that algo/adasum.c promises.
 * The result is left in v[0]. */
void adasum_serial(double *const *v, int size, size_t count);

#endif /* RUEDA_SUPPORT_ADASUM_H */
