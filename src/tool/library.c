/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/library.h"

#include <stdio.h>
#include <string.h>

#include "algo/algo.h"
#include "base/config.h"
#include "device/host.h"

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

const char *rueda_library_kernels(void)
{
    static const char *const known[] = {"c", "avx2", "avx512"};
    static char text[128];
    const struct rueda_kernels *chosen = rueda_host_kernels(wanted_kernels());
    size_t used;

    used =
        (size_t)snprintf(text, sizeof(text), "%s (this CPU can run",
                         chosen != NULL ? rueda_kernels_name(chosen) : "none");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (rueda_host_kernels(known[i]) != NULL)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s",
                                     i == 0 ? "" : ",", known[i]);
    snprintf(text + used, sizeof(text) - used, ")");
    return text;
}

void rueda_library_algos(rueda_kind kind, bool has_shared_memory,
                         bool is_adasum,
                         const char *out_names[RUEDA_LIBRARY_ALGOS + 1])
{
    int count = 0;

    for (int i = 0; rueda_algos[i] != NULL && count < RUEDA_LIBRARY_ALGOS;
         i++) {
        const struct rueda_algo *algo = rueda_algos[i];

        if ((algo->kinds & 1u << kind) != 0 && algo->does_adasum == is_adasum &&
            (has_shared_memory || !algo->needs_slab))
            out_names[count++] = algo->name;
    }
    out_names[count] = NULL;
}

const char *rueda_library_algo_about(const char *name)
{
    const struct rueda_algo *algo = rueda_algo_find(name);

    return algo != NULL ? algo->about : "";
}
