/* SPDX-License-Identifier: Apache-2.0 */
#include "os/machine.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void rueda_machine_cpus(struct rueda_cpus *out)
{
    memset(out, 0, sizeof(*out));
    if (sched_getaffinity(0, sizeof(out->bits), (cpu_set_t *)out->bits) < 0)
        out->bits[0] = 1;
}

int rueda_cpus_count(const struct rueda_cpus *cpus)
{
    int count = 0;

    for (size_t i = 0; i < RUEDA_MOST_CPUS / 64; i++)
        count += __builtin_popcountll(cpus->bits[i]);
    return count;
}

static size_t size_or(long value, size_t fallback)
{
    return value > 0 ? (size_t)value : fallback;
}

void rueda_machine_caches(struct rueda_caches *out)
{
    out->l1_bytes = size_or(sysconf(_SC_LEVEL1_DCACHE_SIZE), (size_t)32 << 10);
    out->l2_bytes = size_or(sysconf(_SC_LEVEL2_CACHE_SIZE), (size_t)1 << 20);
    out->l3_bytes = size_or(sysconf(_SC_LEVEL3_CACHE_SIZE), (size_t)16 << 20);
}

double rueda_machine_cpu_quota(void)
{
    char line[512];
    char path[600];
    long long quota;
    long long period;
    double cpus = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        FILE *limit;

        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", line + 3);
        limit = fopen(path, "re");
        if (limit == NULL)
            break;
        if (fscanf(limit, "%lld %lld", &quota, &period) == 2 && period > 0)
            cpus = (double)quota / (double)period;
        fclose(limit);
    }
    fclose(file);
    return cpus;
}
