/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of an elastic job as the user's script or file has them, asked
 * again every second. An answer that cannot be used is reported once, and the
 * last good one stays. In a loop of libuv, on its thread.
 */
#ifndef RUEDA_LAUNCH_DISCOVERY_H
#define RUEDA_LAUNCH_DISCOVERY_H

#include <uv.h>

#include "launch/hosts.h"

struct rueda_discovery;

struct rueda_discovery_args {
    uv_loop_t *loop;
    const char *program; /* of ours, for messages */
    const char *script;  /* run by a shell; or NULL */
    const char *file;    /* a hostfile; or NULL */
    int default_slots;   /* 0: a host without a number is a mistake */

    /* A good answer that differs from the last. */
    void (*found)(void *arg, const struct rueda_hosts *hosts);
    /* What is wrong; is_fatal: there has been no good answer before. */
    void (*failed)(void *arg, const char *words, bool is_fatal);
    void *arg;
};

/* Begin to ask, at once. NULL: no memory. The strings of args are borrowed. */
struct rueda_discovery *
rueda_discovery_open(const struct rueda_discovery_args *args);

/* End a script that runs, and stop; frees once the loop has run dry. NULL is
 * allowed. */
void rueda_discovery_close(struct rueda_discovery *discovery);
void rueda_discovery_free(struct rueda_discovery *discovery);

#endif /* RUEDA_LAUNCH_DISCOVERY_H */
