/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes cut into lines. A line ends with "\n", "\r" (progress bars) or "\r\n",
 * and is delivered with its end as soon as that has arrived. It may contain any
 * byte. Pure; one thread at a time.
 */
#ifndef RUEDA_LAUNCH_LINES_H
#define RUEDA_LAUNCH_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* A line is kept until its end arrives, up to this many bytes. */
#define RUEDA_LINES_MOST ((size_t)64 << 20)

struct rueda_lines {
    char *bytes; /* of a line whose end has not come */
    size_t len;
    size_t room;
    bool is_after_return; /* "\r" was delivered last: "\n" belongs to it */
    bool is_within;       /* the begin of this line was delivered already */
};

/* is_begin: the piece begins a line, and does not go on with one that was too
 * long to be kept whole. */
typedef void (*rueda_lines_fn)(void *arg, const char *bytes, size_t len,
                               bool is_begin);

void rueda_lines_feed(struct rueda_lines *lines, const char *bytes, size_t len,
                      rueda_lines_fn call, void *arg);

/* The input has ended: deliver the rest, which has no end, and free. */
void rueda_lines_end(struct rueda_lines *lines, rueda_lines_fn call, void *arg);

#endif /* RUEDA_LAUNCH_LINES_H */
