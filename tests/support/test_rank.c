/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test_rank.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "support/processes.h"
#include "support/threads.h"

const struct rank_setup rank_processes = {"processes", false, "auto"};
const struct rank_setup rank_processes_messages = {"processes", false,
                                                   "messages"};
const struct rank_setup rank_threads = {"threads", true, "auto"};
const struct rank_setup rank_threads_messages = {"threads", true, "loop"};

int rank_says(struct test_rank *me, const char *format, ...)
{
    char *words = me->board->words[me->rank];
    va_list args;

    va_start(args, format);
    if (words[0] == '\0')
        vsnprintf(words, RANK_WORDS, format, args);
    va_end(args);
    return 1;
}

int rank_expect(struct test_rank *me, rueda_status is, rueda_status wanted,
                const char *what)
{
    if (is == wanted)
        return 0;
    return rank_says(me, "%s: \"%s\" instead of \"%s\" (%s)", what,
                     rueda_status_str(is), rueda_status_str(wanted),
                     me->ctx != NULL ? rueda_error(me->ctx) : "no context");
}

void rank_run(const struct rank_setup *setup, int size, rank_fn body, void *arg)
{
    int failures;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    if (setup->is_threads) {
        failures = threads_run(size, body, arg, RANK_DEADLINE_MS);
    } else {
        struct processes processes;

        processes_start(&processes, size, processes_join, body, arg);
        failures = processes_end(&processes, RANK_DEADLINE_MS);
    }
    unsetenv("RUEDA_TRANSPORT");
    assert_int_equal(failures, 0);
}

void rank_skip_without_fork(void)
{
#ifdef RANK_TSAN
    print_message("skipped: the thread sanitizer does not follow fork()\n");
    skip();
#endif
}

static void swallow(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

void rank_hush(void)
{
    rueda_log_set_sink(swallow, NULL);
}

void rank_job_name(char *out, size_t bytes)
{
    static atomic_int count;

    snprintf(out, bytes, "test-%d-%d", (int)getpid(),
             atomic_fetch_add(&count, 1));
}

int64_t rank_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void rank_sleep_ms(int ms)
{
    struct timespec left = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) < 0)
        continue;
}
