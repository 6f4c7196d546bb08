/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one line an event, written by one call, so that lines of threads and
 * of ranks that share standard error stay whole. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

atomic_int rueda_log_level_now = RUEDA_LOG_WARN;

/* Read without a lock: they change only while no other thread logs (log.h). */
static rueda_log_sink current_sink;
static void *sink_arg;
/* Of the thread, as the ranks of a process may be its threads. */
static _Thread_local int thread_rank = -1;

void rueda_log_set_level(rueda_log_level level)
{
    atomic_store_explicit(&rueda_log_level_now, (int)level,
                          memory_order_relaxed);
}

void rueda_log_set_sink(rueda_log_sink sink, void *arg)
{
    current_sink = sink;
    sink_arg = arg;
}

void rueda_log_set_rank(int rank)
{
    thread_rank = rank;
}

const char *rueda_log_level_str(rueda_log_level level)
{
    static const char *const names[] = {"error", "warn", "info", "debug",
                                        "trace"};

    return names[level];
}

/* Most lines fit the room. One that does not is cut only where there is no
 * memory. */
static char *write_line(char *room, size_t bytes, size_t used,
                        const char *format, va_list args)
{
    char *line = room;
    va_list again;
    int more;

    va_copy(again, args);
    more = vsnprintf(room + used, bytes - used, format, args);
    if (more >= 0 && used + (size_t)more >= bytes)
        line = malloc(used + (size_t)more + 1);
    if (line == NULL) {
        line = room;
    } else if (line != room) {
        memcpy(line, room, used);
        vsnprintf(line + used, (size_t)more + 1, format, again);
    }
    va_end(again);
    return line;
}

/* The line is made on the stack, so that the log works where memory is short;
 * only a line that is longer than that takes some. */
void rueda_log(rueda_log_level level, const char *tag, const char *format, ...)
{
    char room[1024];
    char rank[32] = "";
    char *line;
    va_list args;
    int used;

    if (!rueda_log_is_on(level))
        return;
    if (thread_rank >= 0)
        snprintf(rank, sizeof(rank), "[rank %d]", thread_rank);
    used = snprintf(room, sizeof(room), "rueda%s %s: %s: ", rank, tag,
                    rueda_log_level_str(level));
    va_start(args, format);
    line = write_line(room, sizeof(room), (size_t)used, format, args);
    va_end(args);
    if (current_sink != NULL)
        current_sink(sink_arg, level, line);
    else
        fprintf(stderr, "%s\n", line);
    if (line != room)
        free(line);
}
