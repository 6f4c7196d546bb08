/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/library.h"

#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "base/config.h"

/* What RUEDA_KERNELS says, NULL for "auto". */
static const char *wanted_kernels(void)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);

    for (size_t i = 0; i < count; i++) {
        const char *value;

        if (strcmp(table[i].name, "RUEDA_KERNELS") != 0)
            continue;
        value = rueda_setting_value(&table[i]);
        return strcmp(value, "auto") == 0 ? NULL : value;
    }
    return NULL;
}

/* Names what is used and what could be. The text is static: for one thread. */
const char *rueda_tool_library_kernels(void)
{
    static const char *const known[] = {"c", "avx2", "avx512", "neon"};
    static char text[128];
    const char *chosen = rueda_internal_kernels_find(wanted_kernels());
    size_t used;

    used = (size_t)snprintf(text, sizeof(text), "%s (this CPU can run",
                            chosen != NULL ? chosen : "none");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (rueda_internal_kernels_find(known[i]) != NULL)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s",
                                     i == 0 ? "" : ",", known[i]);
    snprintf(text + used, sizeof(text) - used, ")");
    return text;
}

const char *rueda_tool_library_transport(const rueda_ctx *ctx)
{
    return rueda_internal_transport(ctx);
}

void rueda_tool_library_algos(
    rueda_kind kind, bool has_shared_memory, bool has_hosts,
    const char *out_names[RUEDA_TOOL_LIBRARY_ALGOS + 1])
{
    int count = 0;

    for (size_t i = 0; count < RUEDA_TOOL_LIBRARY_ALGOS; i++) {
        const char *name = rueda_internal_algo_name(i, kind);

        if (name == NULL)
            break;
        if ((has_shared_memory || !rueda_internal_algo_needs_slab(name)) &&
            (has_hosts || !rueda_internal_algo_needs_hosts(name)))
            out_names[count++] = name;
    }
    out_names[count] = NULL;
}
