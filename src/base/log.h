/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line an event, to standard error.
 *
 *     rueda[rank 3] segment: warn: only 12 MiB of memory left
 *
 * error: we cannot go on; warn: we can; info: once a job; debug: once an
 * object; trace: once a message. The function that handles an error logs it,
 * once.
 *
 * A file says `#define RUEDA_LOG_TAG "segment"` (its folder) before including
 * this. The level and the sink belong to the process, as standard error does,
 * and not to a context; the rank belongs to the thread. Any thread.
 */
#ifndef RUEDA_BASE_LOG_H
#define RUEDA_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

typedef enum rueda_log_level {
    RUEDA_LOG_ERROR,
    RUEDA_LOG_WARN,
    RUEDA_LOG_INFO,
    RUEDA_LOG_DEBUG,
    RUEDA_LOG_TRACE,
} rueda_log_level;

typedef void (*rueda_log_sink)(void *arg, rueda_log_level level,
                               const char *line);

/* What is above the level is not even formatted. Warn to begin with. */
void rueda_log_set_level(rueda_log_level level);

/* The level that was set, for the next function alone. */
extern atomic_int rueda_log_level_now;

static inline bool rueda_log_is_on(rueda_log_level level)
{
    return (int)level <=
           atomic_load_explicit(&rueda_log_level_now, memory_order_relaxed);
}

/* Lines go to sink(arg, ...) instead; NULL: standard error again. Not to be
 * changed while other threads log. */
void rueda_log_set_sink(rueda_log_sink sink, void *arg);

/* The rank to print for lines of the calling thread; negative: none. */
void rueda_log_set_rank(int rank);

const char *rueda_log_level_str(rueda_log_level level);

void rueda_log(rueda_log_level level, const char *tag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef RUEDA_LOG_TAG
#define log_error(...) rueda_log(RUEDA_LOG_ERROR, RUEDA_LOG_TAG, __VA_ARGS__)
#define log_warn(...)  rueda_log(RUEDA_LOG_WARN, RUEDA_LOG_TAG, __VA_ARGS__)
#define log_info(...)  rueda_log(RUEDA_LOG_INFO, RUEDA_LOG_TAG, __VA_ARGS__)
#define log_debug(...) rueda_log(RUEDA_LOG_DEBUG, RUEDA_LOG_TAG, __VA_ARGS__)
/* It is on the path of every tensor, so not even its arguments are computed
 * without need. */
#define log_trace(...)                                                         \
    do {                                                                       \
        if (rueda_log_is_on(RUEDA_LOG_TRACE))                                  \
            rueda_log(RUEDA_LOG_TRACE, RUEDA_LOG_TAG, __VA_ARGS__);            \
    } while (0)
#endif

#endif /* RUEDA_BASE_LOG_H */
