/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores, caches and quotas, from sched_getaffinity(), /sys and /proc. What
 * cannot be read has a usual value and is not an error: it decides how fast
 * something is, and not whether it works.
 */
#include "os/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the system does not tell, one CPU: nothing is then spread over more
 * than there may be. */
void rueda_machine_cpus(struct rueda_cpus *out)
{
    memset(out, 0, sizeof(*out));
    if (sched_getaffinity(0, sizeof(out->bits), (cpu_set_t *)out->bits) < 0)
        out->bits[0] = 1;
}

int rueda_cpus_count(const struct rueda_cpus *cpus)
{
    int count = 0;

    for (size_t i = 0; i < RUEDA_MACHINE_MOST_CPUS / 64; i++)
        count += __builtin_popcountll(cpus->bits[i]);
    return count;
}

/* The first line of one of the small files about a cache. */
static bool read_cache(int index, const char *name, char *out, size_t bytes)
{
    char path[128];
    FILE *file;
    bool has_line;

    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    has_line = fgets(out, (int)bytes, file) != NULL;
    fclose(file);
    return has_line;
}

/* The C library knows caches too, but not what of them a virtual machine has.
 */
void rueda_machine_caches(struct rueda_caches *out)
{
    size_t *const levels[] = {&out->l1_bytes, &out->l2_bytes, &out->l3_bytes};
    char text[32];

    *out = (struct rueda_caches){
        .l1_bytes = (size_t)32 << 10,
        .l2_bytes = (size_t)1 << 20,
        .l3_bytes = (size_t)16 << 20,
    };
    for (int index = 0; read_cache(index, "level", text, sizeof(text));
         index++) {
        long level = strtol(text, NULL, 10);
        size_t kib;

        if (level < 1 || level > 3 ||
            !read_cache(index, "type", text, sizeof(text)) || text[0] == 'I' ||
            !read_cache(index, "size", text, sizeof(text)))
            continue;
        kib = strtoul(text, NULL, 10);
        if (kib > 0)
            *levels[level - 1] = kib << 10;
    }
}

static bool read_numbers(const char *path, long long *out, int count)
{
    FILE *file = fopen(path, "re");
    int found = 0;

    if (file == NULL)
        return false;
    while (found < count && fscanf(file, "%lld", &out[found]) == 1)
        found++;
    fclose(file);
    return found == count;
}

/* One cgroup's quota: of v2, or of v1, whose file is -1 without one. */
static double quota_of(const char *root, const char *below)
{
    char path[700];
    long long both[2];

    snprintf(path, sizeof(path), "%s%s/cpu.max", root, below);
    if (read_numbers(path, both, 2) && both[1] > 0)
        return (double)both[0] / (double)both[1];
    snprintf(path, sizeof(path), "%s%s/cpu.cfs_quota_us", root, below);
    if (!read_numbers(path, &both[0], 1) || both[0] <= 0)
        return 0;
    snprintf(path, sizeof(path), "%s%s/cpu.cfs_period_us", root, below);
    if (!read_numbers(path, &both[1], 1) || both[1] <= 0)
        return 0;
    return (double)both[0] / (double)both[1];
}

double rueda_machine_cpu_quota(void)
{
    char line[512];
    double cpus = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL && cpus == 0) {
        char *names = strchr(line, ':');
        char *below = names != NULL ? strchr(names + 1, ':') : NULL;

        if (below == NULL)
            continue;
        *below++ = '\0';
        below[strcspn(below, "\n")] = '\0';
        if (names[1] == '\0')
            cpus = quota_of("/sys/fs/cgroup", below);
        else if (strstr(names, "cpu,") != NULL || strcmp(names, ":cpu") == 0)
            cpus = quota_of("/sys/fs/cgroup/cpu", below);
    }
    fclose(file);
    return cpus;
}
