/* SPDX-License-Identifier: Apache-2.0 */
/* What our own tools ask of a context beyond the public header. */
#ifndef RUEDA_API_INTERNAL_H
#define RUEDA_API_INTERNAL_H

#include <rueda/rueda.h>

/* The i-th algorithm that can do this kind, or NULL after the last. */
const char *rueda_internal_algo_name(size_t i, rueda_kind kind);

/* Does it run only where all ranks share memory? False for unknown names. */
bool rueda_internal_algo_needs_slab(const char *name);

/* Does it run only where they are on several hosts? */
bool rueda_internal_algo_needs_hosts(const char *name);

/* The vector kernels of that name, or the best ones for NULL: their name, or
 * NULL where this CPU cannot run them. */
const char *rueda_internal_kernels_find(const char *wanted);

/* The transport that its messages take: "shm". */
const char *rueda_internal_transport(const rueda_ctx *ctx);

#endif /* RUEDA_API_INTERNAL_H */
