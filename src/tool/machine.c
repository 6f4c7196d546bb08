/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tool/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "tool/size.h"

/* The first line of a small file, without its end. */
static bool read_line(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "re");
    bool has_line;

    if (file == NULL)
        return false;
    has_line = fgets(out, (int)room, file) != NULL;
    fclose(file);
    if (has_line)
        out[strcspn(out, "\n")] = '\0';
    return has_line;
}

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

static size_t read_kilobytes(const char *key)
{
    char text[64];

    if (!find_line("/proc/meminfo", key, text, sizeof(text)))
        return 0;
    return (size_t)strtoull(text, NULL, 10) << 10;
}

/* One line about the i-th cache of the first core. */
static bool read_cache(int i, const char *what, char *out, size_t room)
{
    char path[96];

    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, what);
    return read_line(path, out, room);
}

static void read_caches(struct rueda_machine *machine)
{
    size_t used = 0;

    for (int i = 0; i < 8 && used < sizeof(machine->caches); i++) {
        char level[8];
        char type[32];
        char size_text[32];
        char words[RUEDA_SIZE_TEXT];
        size_t bytes;

        if (!read_cache(i, "level", level, sizeof(level)) ||
            !read_cache(i, "type", type, sizeof(type)) ||
            !read_cache(i, "size", size_text, sizeof(size_text)))
            break;
        if (strcmp(type, "Instruction") == 0 ||
            !rueda_parse_size(size_text, &bytes))
            continue;
        used += (size_t)snprintf(machine->caches + used,
                                 sizeof(machine->caches) - used, "%sL%s%s %s",
                                 used == 0 ? "" : ", ", level,
                                 strcmp(type, "Data") == 0 ? "d" : "",
                                 rueda_size_words(bytes, words));
    }
}

/* Apply one cgroup folder's limits. */
static void read_cgroup_folder(struct rueda_machine *machine,
                               const char *folder)
{
    char path[1200];
    char text[64];
    double quota;
    double period;

    snprintf(path, sizeof(path), "%s/memory.max", folder);
    if (read_line(path, text, sizeof(text)) && text[0] != 'm') {
        const size_t limit = (size_t)strtoull(text, NULL, 10);
        size_t used = 0;

        snprintf(path, sizeof(path), "%s/memory.current", folder);
        if (read_line(path, text, sizeof(text)))
            used = (size_t)strtoull(text, NULL, 10);
        if (machine->cgroup_memory == 0 || limit < machine->cgroup_memory)
            machine->cgroup_memory = limit;
        if (used < limit && limit - used < machine->memory_free)
            machine->memory_free = limit - used;
    }
    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (read_line(path, text, sizeof(text)) &&
        sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0.0 &&
        (machine->cgroup_cpus == 0.0 || quota / period < machine->cgroup_cpus))
        machine->cgroup_cpus = quota / period;
}

/* This process's cgroup (version 2) and those above it. */
static void read_cgroup(struct rueda_machine *machine)
{
    const char *root = "/sys/fs/cgroup";
    char own[1024];
    char folder[1100];
    char *slash;

    if (!find_line("/proc/self/cgroup", "0:", own, sizeof(own)))
        return;
    /* The line is "0::/path". */
    snprintf(folder, sizeof(folder), "%s%s", root,
             own[0] == ':' ? own + 1 : own);
    for (;;) {
        read_cgroup_folder(machine, folder);
        slash = strrchr(folder, '/');
        if (slash == NULL || slash < folder + strlen(root))
            return;
        *slash = '\0';
    }
}

void rueda_machine_read(struct rueda_machine *out_machine)
{
    struct rueda_machine *machine = out_machine;
    cpu_set_t set;

    memset(machine, 0, sizeof(*machine));
    if (!find_line("/proc/cpuinfo", "model name", machine->cpu,
                   sizeof(machine->cpu)))
        snprintf(machine->cpu, sizeof(machine->cpu), "unknown CPU");
    machine->cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    machine->usable = machine->cpus;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        machine->usable = CPU_COUNT(&set);
    read_caches(machine);
    machine->memory_total = read_kilobytes("MemTotal");
    machine->memory_free = read_kilobytes("MemAvailable");
    read_cgroup(machine);
}
