/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "test"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/log.h"

/* What the sink was given last. */
struct heard {
    int lines;
    rueda_log_level level;
    char last[4096];
};

static void hear(void *arg, rueda_log_level level, const char *line)
{
    struct heard *heard = arg;

    heard->lines++;
    heard->level = level;
    snprintf(heard->last, sizeof(heard->last), "%s", line);
}

static int listen_to_log(void **state)
{
    static struct heard heard;

    memset(&heard, 0, sizeof(heard));
    rueda_log_set_level(RUEDA_LOG_WARN);
    rueda_log_set_rank(-1);
    rueda_log_set_sink(hear, &heard);
    *state = &heard;
    return 0;
}

static int stop_listening(void **state)
{
    (void)state;
    rueda_log_set_sink(NULL, NULL);
    rueda_log_set_rank(-1);
    return 0;
}

static void a_line_says_tag_level_and_words(void **state)
{
    struct heard *heard = *state;

    log_warn("only %d MiB left", 12);

    assert_int_equal(heard->lines, 1);
    assert_int_equal(heard->level, RUEDA_LOG_WARN);
    assert_string_equal(heard->last, "rueda test: warn: only 12 MiB left");
}

static void lines_above_the_level_are_dropped(void **state)
{
    struct heard *heard = *state;

    for (int level = RUEDA_LOG_ERROR; level <= RUEDA_LOG_TRACE; level++) {
        heard->lines = 0;
        rueda_log_set_level((rueda_log_level)level);
        log_error("e");
        log_warn("w");
        log_info("i");
        log_debug("d");
        log_trace("t");
        assert_int_equal(heard->lines, level + 1);
        assert_int_equal(heard->level, level);
    }
}

static void every_level_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(rueda_log_level_str(RUEDA_LOG_ERROR), "error");
    assert_string_equal(rueda_log_level_str(RUEDA_LOG_WARN), "warn");
    assert_string_equal(rueda_log_level_str(RUEDA_LOG_INFO), "info");
    assert_string_equal(rueda_log_level_str(RUEDA_LOG_DEBUG), "debug");
    assert_string_equal(rueda_log_level_str(RUEDA_LOG_TRACE), "trace");
}

static void a_line_names_the_rank_of_its_thread(void **state)
{
    struct heard *heard = *state;

    rueda_log_set_rank(3);
    log_error("here");
    assert_string_equal(heard->last, "rueda[rank 3] test: error: here");

    rueda_log_set_rank(-1);
    log_error("gone");
    assert_string_equal(heard->last, "rueda test: error: gone");
}

static void *log_from_a_thread(void *arg)
{
    (void)arg;
    log_error("from a thread");
    return NULL;
}

static void a_rank_belongs_to_its_thread_alone(void **state)
{
    struct heard *heard = *state;
    pthread_t thread;

    rueda_log_set_rank(5);
    assert_int_equal(pthread_create(&thread, NULL, log_from_a_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_string_equal(heard->last, "rueda test: error: from a thread");
}

static void a_long_line_is_whole(void **state)
{
    struct heard *heard = *state;
    char words[3000];

    memset(words, 'x', sizeof(words));
    words[sizeof(words) - 1] = '\0';

    log_error("%s", words);

    assert_int_equal(strlen(heard->last), 19 + sizeof(words) - 1);
    assert_int_equal(strncmp(heard->last, "rueda test: error: xxx", 22), 0);
    assert_string_equal(heard->last + 19, words);

    /* As long as what most lines fit, and one more. */
    for (size_t len = 1023 - 19; len <= 1024 - 19; len++) {
        log_error("%.*s", (int)len, words);
        assert_int_equal(strlen(heard->last), 19 + len);
    }
}

static void without_a_sink_lines_go_to_standard_error(void **state)
{
    int saved = dup(STDERR_FILENO);
    char got[128] = "";
    int ends[2];

    (void)state;
    rueda_log_set_sink(NULL, NULL);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    log_error("aloud");
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    close(ends[1]);

    assert_true(read(ends[0], got, sizeof(got) - 1) > 0);
    assert_string_equal(got, "rueda test: error: aloud\n");
    close(ends[0]);
}

#define HEARD(test)                                                            \
    cmocka_unit_test_setup_teardown(test, listen_to_log, stop_listening)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEARD(a_line_says_tag_level_and_words),
        HEARD(lines_above_the_level_are_dropped),
        HEARD(every_level_has_a_name),
        HEARD(a_line_names_the_rank_of_its_thread),
        HEARD(a_rank_belongs_to_its_thread_alone),
        HEARD(a_long_line_is_whole),
        HEARD(without_a_sink_lines_go_to_standard_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
