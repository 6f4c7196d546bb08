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
#include <stdint.h>

#define RUEDA_TAIL_LINES   10
#define RUEDA_TAIL_COLUMNS 240

struct rueda_tail {
    char lines[RUEDA_TAIL_LINES][RUEDA_TAIL_COLUMNS];
    unsigned count;       /* of all so far */
    bool is_over;         /* the rank has ended */
    int64_t exception_ns; /* when the last one came */
    bool is_in_traceback;
    bool is_in_frame;     /* the next line is the source of `frame` */
    bool is_in_exception; /* the next line may go on with it */
    char exception[RUEDA_TAIL_COLUMNS]; /* "ValueError: no"; "": none */
    unsigned exception_at;              /* `count` before its line */

    /* The innermost line of the traceback that is in the user's own files:
     * "  File ..., line 3, in f", and its source; "": none. */
    char frame[2][RUEDA_TAIL_COLUMNS];
};

/* A line, with or without its end. True: it is the exception that a traceback
 * ends with. */
bool rueda_tail_add(struct rueda_tail *tail, const char *line, size_t len);

/* The first of the lines to show, for rueda_tail_line(): those from the
 * exception on, where the frame of the user's is known and shown before them;
 * else 0. */
unsigned rueda_tail_first(const struct rueda_tail *tail);

/* The i-th of the lines that are kept, the oldest first; NULL after the last.
 */
const char *rueda_tail_line(const struct rueda_tail *tail, unsigned i);

#endif /* RUEDA_LAUNCH_TAIL_H */
