/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tool uses of the library beyond its public interface; the only file
 * of the tool that does.
 */
#ifndef RUEDA_TOOL_LIBRARY_H
#define RUEDA_TOOL_LIBRARY_H

#include <rueda/rueda.h>

/* "avx512 (this CPU can run c, avx2, avx512)"; RUEDA_KERNELS counts. */
const char *rueda_tool_library_kernels(void);

/* The way of its messages, as the job has chosen it: "tcp"; "direct" where
 * shared memory does without messages. */
const char *rueda_tool_library_transport(const rueda_ctx *ctx);

/* The names of the algorithms that can run kind, ended by NULL; at most
 * RUEDA_TOOL_LIBRARY_ALGOS. Without shared memory, or without several hosts,
 * those that need it are left out, and Adasum's own always is. */
#define RUEDA_TOOL_LIBRARY_ALGOS 15
void rueda_tool_library_algos(
    rueda_kind kind, bool has_shared_memory, bool has_hosts,
    const char *out_names[RUEDA_TOOL_LIBRARY_ALGOS + 1]);

#endif /* RUEDA_TOOL_LIBRARY_H */
