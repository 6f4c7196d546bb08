/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the job's output goes: our standard output or error, a terminal, a pipe
 * or a file. A thread writes, so that the launcher's loop never waits for a
 * reader, and the descriptor, which others share, keeps its flags.
 *
 * A slow reader slows the job down: the caller takes no output from the ranks
 * while rueda_console_is_full(). A reader that takes nothing for
 * RUEDA_CONSOLE_PATIENCE_NS, such as a terminal that was stopped by Ctrl-S,
 * does not stop the job: lines are then dropped, and counted, until it reads
 * again.
 */
#ifndef RUEDA_LAUNCH_CONSOLE_H
#define RUEDA_LAUNCH_CONSOLE_H

#include <stdint.h>

#include <rueda/rueda.h>

#include "base/duration.h"

#define RUEDA_CONSOLE_FULL        ((size_t)8 << 20)
#define RUEDA_CONSOLE_PATIENCE_NS RUEDA_S(5)

struct rueda_console;

/* changed(arg) is called on the thread when the queue has become shorter, or
 * the reader has gone. fd is borrowed. */
rueda_status rueda_console_open(int fd, void (*changed)(void *arg), void *arg,
                                struct rueda_console **out);

/* Queue bytes. False: they were left out. */
bool rueda_console_put(struct rueda_console *console, const char *bytes,
                       size_t len);

/* Is so much waiting to be written that the caller should add no more? False
 * while the reader is given up. */
bool rueda_console_is_full(struct rueda_console *console);

/* Give the reader up if it has read nothing for a while, take it on again if it
 * has. Returns what was left out since it was given up, once it reads again;
 * else 0. */
uint64_t rueda_console_check(struct rueda_console *console);

/* The same at the end: what was left out, though the reader may not read. What
 * is put next is queued in any case. */
uint64_t rueda_console_last_check(struct rueda_console *console);

/* Has writing failed? Then errno's number, else 0. */
int rueda_console_error(struct rueda_console *console);

/* Wait until all is written, or the reader is given up; then free. Returns what
 * rueda_console_error() would. */
int rueda_console_close(struct rueda_console *console);

#endif /* RUEDA_LAUNCH_CONSOLE_H */
