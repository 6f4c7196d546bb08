/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int current_level = RUEDA_LOG_WARN;
static rueda_log_sink current_sink;
static void *sink_arg;
static _Thread_local int thread_rank = -1;

void rueda_log_set_level(rueda_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
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

void rueda_log(rueda_log_level level, const char *tag, const char *format, ...)
{
    char line[1024];
    char rank[32] = "";
    va_list args;
    int used;

    if ((int)level > atomic_load_explicit(&current_level, memory_order_relaxed))
        return;
    if (thread_rank >= 0)
        snprintf(rank, sizeof(rank), "[rank %d]", thread_rank);
    used = snprintf(line, sizeof(line), "rueda%s %s: %s: ", rank, tag,
                    rueda_log_level_str(level));
    va_start(args, format);
    vsnprintf(line + used, sizeof(line) - (size_t)used, format, args);
    va_end(args);
    if (current_sink != NULL)
        current_sink(sink_arg, level, line);
    else
        fprintf(stderr, "%s\n", line);
}
