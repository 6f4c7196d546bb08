/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that run at the same time, each with what it printed; those that do
 * not end in time are killed. They die with us.
 */
#ifndef RUEDA_TOOL_DOCTOR_ERRAND_H
#define RUEDA_TOOL_DOCTOR_ERRAND_H

#include <stdint.h>
#include <sys/types.h>

#include "launch/strings.h"

/* What is kept of each stream: the beginning. */
#define RUEDA_ERRAND_BYTES ((size_t)4 << 20)

struct rueda_errand_stream {
    int fd;
    char *text; /* ended by a zero; NULL while there is none */
    size_t len;
};

struct rueda_errand {
    struct rueda_strings command; /* the caller's */
    struct rueda_errand_stream out;
    struct rueda_errand_stream err;
    pid_t child;
    bool is_started;
    bool is_late;   /* killed */
    int code;       /* exit code, or 128 + signal */
    double seconds; /* that it took */
};

/* Run them all, until the last has ended or this many seconds have passed. */
void rueda_errands_run(struct rueda_errand *errands, int count, double seconds);

/* The text of a stream; never NULL. */
const char *rueda_errand_text(const struct rueda_errand_stream *stream);

/* The last line that is not empty, without its newline. */
void rueda_errand_last_line(const struct rueda_errand_stream *stream, char *out,
                            size_t room);

void rueda_errand_fini(struct rueda_errand *errand);

#endif /* RUEDA_TOOL_DOCTOR_ERRAND_H */
