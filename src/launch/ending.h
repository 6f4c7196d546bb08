/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank ended, in words and as an exit code. Pure; any thread. */
#ifndef RUEDA_LAUNCH_ENDING_H
#define RUEDA_LAUNCH_ENDING_H

#include "base/text.h"

/* Why a SIGKILL came, as far as the agent knows. */
typedef enum rueda_oom {
    RUEDA_OOM_NO,
    RUEDA_OOM_CGROUP,
    RUEDA_OOM_MACHINE,
} rueda_oom;

struct rueda_ending {
    int rank;
    int code;   /* of exit() */
    int signal; /* that killed it; 0: none */
    rueda_oom oom;
};

/* As a shell has it: the code, or 128 + the signal. */
int rueda_ending_code(const struct rueda_ending *ending);

/* The same without "rank 3" before it. */
void rueda_ending_how(const struct rueda_ending *ending, const char *host,
                      struct rueda_text *out);

/* "rank 3 on node1 was killed by signal 9 (SIGKILL): out of memory ..." */
void rueda_ending_words(const struct rueda_ending *ending, const char *host,
                        struct rueda_text *out);

#endif /* RUEDA_LAUNCH_ENDING_H */
