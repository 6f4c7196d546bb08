/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: the launcher's hand on a host. It starts the ranks of its host,
 * sends what they print and how they end, passes signals on, and leaves no
 * process behind: not when the ranks have ended, not when the launcher is gone.
 *
 * It is a process of its own with one thread, also on the launcher's host.
 * Ranks are children of it, each with its own process group; it adopts what
 * they leave behind, and they die if it does.
 */
#ifndef RUEDA_LAUNCH_AGENT_H
#define RUEDA_LAUNCH_AGENT_H

#include "job/store/keeper.h"

struct rueda_agent_args {
    int in; /* the stream with the launcher; in and out may be one */
    int out;
    const struct rueda_key *key;     /* NULL: the launcher sends it */
    const struct rueda_key *session; /* NULL: the stream is safe as it is */
    int input;                       /* the standard input of rank 0, or -1 */
    int words;      /* where to say that the launcher is gone */
    bool is_by_ssh; /* whose variables are about the launcher */
    int slots;      /* for a launcher that does not know this host; or 0 */
};

/* Serve a launcher until the end. Returns the exit code: 0, or 1 if the
 * launcher was lost. */
int rueda_agent_run(const struct rueda_agent_args *args);

#endif /* RUEDA_LAUNCH_AGENT_H */
