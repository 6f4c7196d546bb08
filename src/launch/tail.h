/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines that a rank printed to its standard error, and the Python
 * exception among them, to be shown when it has failed. Pure; one thread at a
 * time.
 */
#ifndef RUEDA_LAUNCH_TAIL_H
#define RUEDA_LAUNCH_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#define RUEDA_TAIL_LINES   10
#define RUEDA_TAIL_COLUMNS 240

struct rueda_tail {
    char lines[RUEDA_TAIL_LINES][RUEDA_TAIL_COLUMNS];
    unsigned count; /* of all so far */
    bool is_in_traceback;
    char exception[RUEDA_TAIL_COLUMNS]; /* "ValueError: no"; "": none */
};

/* A line, with or without its end. True: it is the exception that a traceback
 * ends with. */
bool rueda_tail_add(struct rueda_tail *tail, const char *line, size_t len);

/* The i-th of the lines that are kept, the oldest first; NULL after the last.
 */
const char *rueda_tail_line(const struct rueda_tail *tail, unsigned i);

#endif /* RUEDA_LAUNCH_TAIL_H */
