/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tool/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/machine.h"
#include "os/memory.h"
#include "tool/size.h"

/* The text after "key ... : " in a file of such lines. */
static bool find_line(const char *path, const char *key, char *out, size_t room)
{
    FILE *file = fopen(path, "re");
    char line[4096];
    bool is_found = false;

    if (file == NULL)
        return false;
    while (!is_found && fgets(line, sizeof(line), file) != NULL) {
        const char *value = strchr(line, ':');

        if (value == NULL || strncmp(line, key, strlen(key)) != 0)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, room, "%.*s", (int)strcspn(value, "\n"), value);
        is_found = true;
    }
    fclose(file);
    return is_found;
}

static void name_caches(struct rueda_tool_machine *machine)
{
    struct rueda_caches caches;
    char l1[RUEDA_SIZE_TEXT];
    char l2[RUEDA_SIZE_TEXT];
    char l3[RUEDA_SIZE_TEXT];

    rueda_machine_caches(&caches);
    snprintf(machine->caches, sizeof(machine->caches), "L1d %s, L2 %s, L3 %s",
             rueda_size_words(caches.l1_bytes, l1),
             rueda_size_words(caches.l2_bytes, l2),
             rueda_size_words(caches.l3_bytes, l3));
}

/* Read /proc and ask the system; each part that fails leaves its field empty.
 */
void rueda_tool_machine_read(struct rueda_tool_machine *out_machine)
{
    struct rueda_tool_machine *machine = out_machine;
    struct rueda_cpus usable;
    char text[64];

    memset(machine, 0, sizeof(*machine));
    if (!find_line("/proc/cpuinfo", "model name", machine->cpu,
                   sizeof(machine->cpu)))
        snprintf(machine->cpu, sizeof(machine->cpu), "unknown CPU");
    machine->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    rueda_machine_cpus(&usable);
    machine->usable = rueda_cpus_count(&usable);
    name_caches(machine);
    if (find_line("/proc/meminfo", "MemTotal", text, sizeof(text)))
        machine->memory_total = (size_t)strtoull(text, NULL, 10) << 10;
    machine->memory_free = rueda_memory_available();
    machine->quota_cpus = rueda_machine_cpu_quota();
}
