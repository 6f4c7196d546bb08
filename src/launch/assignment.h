/* SPDX-License-Identifier: Apache-2.0 */
/* What one host is to run: the contents of a START frame. Pure; any thread. */
#ifndef RUEDA_LAUNCH_ASSIGNMENT_H
#define RUEDA_LAUNCH_ASSIGNMENT_H

#include "launch/frame.h"

typedef enum rueda_bind {
    RUEDA_BIND_NONE,
    RUEDA_BIND_AUTO,
    RUEDA_BIND_CORE,
} rueda_bind;

#define RUEDA_FOLDER_BYTES 4096

struct rueda_assignment {
    int size;       /* ranks of the job */
    int first_rank; /* the ranks of this host are consecutive: their number */
    int count;
    bool is_elastic; /* processes come one by one; count: for how many there is
                        room at first */
    bool has_input;  /* the first of them has the launcher's standard input */
    int terminal; /* 1 + the local number of the rank that gets one; 0: none */
    int columns;  /* of the user's terminal; 0: unknown */
    int rows;
    rueda_bind bind;
    int grace_ms; /* from SIGTERM to SIGKILL, if the launcher is gone */
    char folder[RUEDA_FOLDER_BYTES]; /* where to run it */
    struct rueda_strings command;
    struct rueda_strings stores;    /* ways to the job's store, "host:port" */
    struct rueda_strings variables; /* of all ranks */
    struct rueda_strings *ranks;    /* [count], variables of each */
};

/* Append the assignment to a frame that has begun. */
void rueda_assignment_pack(const struct rueda_assignment *assignment,
                           struct rueda_packer *packer);

/* False, and nothing is left: the frame holds no assignment, or there is
 * no memory for it. */
bool rueda_assignment_unpack(const struct rueda_frame *frame,
                             struct rueda_assignment *out);

void rueda_assignment_fini(struct rueda_assignment *assignment);

#endif /* RUEDA_LAUNCH_ASSIGNMENT_H */
