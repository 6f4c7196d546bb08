/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line that runs a program of ours on another host, by ssh or by
 * what stands in for it. Reads the environment; any thread.
 */
#ifndef RUEDA_LAUNCH_SSH_H
#define RUEDA_LAUNCH_SSH_H

#include "launch/strings.h"

/* What the user says to ssh; NULL where nothing. */
struct rueda_ssh {
    const char *port;
    const char *identity;
};

/* The program that we are, at its place. */
#define RUEDA_SSH_PATH_BYTES 4096
void rueda_ssh_own_path(char *out, size_t bytes);

/*
 * Words that run `name arguments` there: the program is at `path`, or on the
 * PATH. name and arguments are plain words that a shell takes as they are; path
 * may be anything.
 */
void rueda_ssh_words(const struct rueda_ssh *ssh, const char *host,
                     const char *path, const char *name, const char *arguments,
                     struct rueda_strings *out);

#endif /* RUEDA_LAUNCH_SSH_H */
