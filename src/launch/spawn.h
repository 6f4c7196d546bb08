/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's process: find the program, start it, and explain its death. */
#ifndef RUEDA_LAUNCH_SPAWN_H
#define RUEDA_LAUNCH_SPAWN_H

#include <sys/types.h>

#include "base/text.h"
#include "os/machine.h"

/* The file that a command means, by PATH as the rank will have it. False with a
 * message: there is none, or it cannot be run. */
bool rueda_spawn_find(const char *command, const char *path, char *out,
                      size_t bytes, struct rueda_text *words);

struct rueda_spawn {
    const char *program;
    char *const *command; /* ended by NULL */
    char *const *variables;
    const char *folder; /* NULL: where we are */
    int input;          /* -1: /dev/null */
    int output;
    int error;
    int inherited;                 /* one more descriptor to keep, or -1 */
    bool has_terminal;             /* input is one, of its own */
    const struct rueda_cpus *cpus; /* NULL: as we are */
};

/* Fork and execute, in a process group of its own that dies if we do. Returns
 * the process, or -1 with errno. The child prints failures on its standard
 * error and exits with 127. */
pid_t rueda_spawn(const struct rueda_spawn *spawn);

/*
 * How often the kernel has killed a process because memory ran out: in our
 * cgroup, or -1 if it does not tell; on the whole machine.
 */
struct rueda_oom_count {
    long cgroup;
    long machine;
};
void rueda_oom_count(struct rueda_oom_count *out);

/* "oom_kill 3" among lines of "name number", or -1. */
long rueda_oom_parse(const char *text);

#endif /* RUEDA_LAUNCH_SPAWN_H */
