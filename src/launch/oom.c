/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own count of processes that it killed because memory ran out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/spawn.h"
#include "os/file.h"

long rueda_oom_parse(const char *text)
{
    static const char name[] = "oom_kill ";
    const char *at = text;

    while (at != NULL && strncmp(at, name, strlen(name)) != 0) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? strtol(at + strlen(name), NULL, 10) : -1;
}

static long count_in(const char *path)
{
    char text[16384];

    if (rueda_file_read(path, text, sizeof(text)) != RUEDA_OK)
        return -1;
    return rueda_oom_parse(text);
}

/* Where a line of /proc/self/cgroup such as "0::/job" or "5:memory:/job"
 * begins; its folder, cut to fit. */
static bool folder_of(const char *lines, const char *controller, char *out,
                      size_t bytes)
{
    char mark[32];
    const char *at;

    snprintf(mark, sizeof(mark), ":%s:", controller);
    at = strstr(lines, mark);
    if (at == NULL)
        return false;
    at += strlen(mark);
    snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

static long count_in_cgroup(void)
{
    char lines[4096];
    char folder[1024];
    char path[1200];
    long count = -1;

    if (rueda_file_read("/proc/self/cgroup", lines, sizeof(lines)) != RUEDA_OK)
        return -1;
    if (folder_of(lines, "memory", folder, sizeof(folder))) {
        snprintf(path, sizeof(path),
                 "/sys/fs/cgroup/memory%s/memory.oom_control", folder);
        count = count_in(path);
    }
    if (count < 0 && folder_of(lines, "", folder, sizeof(folder))) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", folder);
        count = count_in(path);
    }
    /* In a container its own cgroup is the root of what it sees. */
    return count >= 0 ? count : count_in("/sys/fs/cgroup/memory.events");
}

void rueda_oom_count(struct rueda_oom_count *out)
{
    out->cgroup = count_in_cgroup();
    out->machine = count_in("/proc/vmstat");
}
