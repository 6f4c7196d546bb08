/* SPDX-License-Identifier: Apache-2.0 */
/* The program `rueda`, as a user meets it: words, mistakes, what it knows of
 * itself, and how it ends. Its measurements are in test_tool_bench.c. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "support/program.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct program rueda;

static int run(const char *line, const char *const *settings)
{
    program_start(&rueda, RUEDA_TEST_BIN_DIR "/rueda", line, settings);
    return program_end(&rueda);
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* Is it one whole line, and no more? */
static bool is_one_line(const char *text)
{
    const char *end = strchr(text, '\n');

    return end != NULL && end != text && end[1] == '\0';
}

/* ---- Words ------------------------------------------------------------- */

static void the_version_is_the_librarys(void **state)
{
    char expected[64];

    (void)state;
    snprintf(expected, sizeof(expected), "rueda %s\n", rueda_version());
    assert_int_equal(run("--version", NULL), 0);
    assert_string_equal(rueda.out, expected);
    assert_string_equal(rueda.err, "");
}

static void help_is_there_for_every_command(void **state)
{
    static const char *const general[] = {"--help", "-h", "help"};

    (void)state;
    for (size_t i = 0; i < LENGTH(general); i++) {
        assert_int_equal(run(general[i], NULL), 0);
        has(rueda.out, "usage: rueda COMMAND");
        assert_string_equal(rueda.err, "");
    }
    assert_int_equal(run("bench -h", NULL), 0);
    has(rueda.out, "usage: rueda bench [OPERATION]");
    has(rueda.out, "--vs LIST");
    assert_int_equal(run("info --help", NULL), 0);
    has(rueda.out, "usage: rueda info");
}

static void without_words_the_help_is_shown_as_a_mistake(void **state)
{
    (void)state;
    assert_int_equal(run("", NULL), 2);
    assert_string_equal(rueda.out, "");
    has(rueda.err, "usage: rueda COMMAND");
}

static void a_mistake_is_one_line_and_exit_code_two(void **state)
{
    static const struct {
        const char *line;
        const char *words;
    } mistakes[] = {
        {"benhc", "unknown command 'benhc'; did you mean 'bench'?"},
        {"xyz", "unknown command 'xyz' (see"},
        {"--versoin", "unknown option '--versoin'; did you mean '--version'?"},
        {"info --confg", "did you mean '--config'?"},
        {"info --markdown", "--markdown goes with --config"},
        {"bench --nq 2", "did you mean '--np'?"},
        {"bench --np 0", "--np takes a number from 1 to"},
        {"bench --np two", "--np takes a number"},
        {"bench --np", "--np needs a value"},
        {"bench --max 4q", "--max takes a size in bytes"},
        {"bench --min 0", "--min takes a size in bytes"},
        {"bench --min 4k --max 64", "--min is more than --max"},
        {"bench allredcue", "did you mean 'allreduce'?"},
        {"bench --algo rong", "did you mean 'ring'?"},
        {"bench --algo zzz", "no algorithm 'zzz' can do this; there are"},
        {"bench --transport loop --algo direct", "no algorithm 'direct'"},
        {"bench-worker", "started by rueda bench only"},
        {"bench-worker x 0 rueda 0 0 x none", ""},
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(mistakes); i++) {
        const int code = run(mistakes[i].line, NULL);

        if (code != 2)
            fail_msg("rueda %s: code %d", mistakes[i].line, code);
        assert_string_equal(rueda.out, "");
        has(rueda.err, mistakes[i].words);
        assert_true(mistakes[i].words[0] == '\0' || is_one_line(rueda.err));
    }
}

/* ---- Info -------------------------------------------------------------- */

static void info_tells_what_is_here(void **state)
{
    static const char *const rows[] = {
        "\nabi  ",     "\nbuild  ",        "\ncpu  ",     "\ncores  ",
        "\ncaches  ",  "\nkernels  ",      "\nmemory  ",  "\ncpu quota  ",
        "\nallreduce", "\nreducescatter ", "\nalltoall ", "\nbarrier ",
    };
    char version[64];

    (void)state;
    snprintf(version, sizeof(version), "version         %s\n", rueda_version());
    assert_int_equal(run("info", NULL), 0);
    assert_int_equal(strncmp(rueda.out, version, strlen(version)), 0);
    for (size_t i = 0; i < LENGTH(rows); i++)
        has(rueda.out, rows[i]);
    has(rueda.out, "direct, ");
    assert_string_equal(rueda.err, "");
}

static void info_names_what_was_asked_for(void **state)
{
    static const char *const settings[] = {"RUEDA_KERNELS=c",
                                           "HOROVOD_GLOO_IFACE=eth5", NULL};

    (void)state;
    assert_int_equal(run("info", settings), 0);
    has(rueda.out, "\nkernels         c (this CPU can run c");
    has(rueda.out, "\nHOROVOD_GLOO_IFACE=eth5\n");
    has(rueda.out, "\nRUEDA_KERNELS=c\nthe others have");
}

static void config_shows_defaults_and_what_is_set(void **state)
{
    static const char *const settings[] = {"RUEDA_LOG_LEVEL=debug", NULL};
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);

    (void)state;
    assert_int_equal(run("info --config", settings), 0);
    has(rueda.out, "\nRUEDA_LOG_LEVEL        debug            warn ");
    for (size_t i = 0; i < count; i++) {
        has(rueda.out, table[i].name);
        has(rueda.out, table[i].help);
    }
}

static void markdown_has_a_row_for_every_setting(void **state)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);
    char row[256];

    (void)state;
    assert_int_equal(run("info --config --markdown", NULL), 0);
    has(rueda.out, "# Settings\n");
    for (size_t i = 0; i < count; i++) {
        const char *fallback = table[i].fallback;

        if (fallback[0] == '\0')
            snprintf(row, sizeof(row), "\n| `%s` | not set | ", table[i].name);
        else
            snprintf(row, sizeof(row), "\n| `%s` | `%s` | ", table[i].name,
                     fallback);
        has(rueda.out, row);
    }
}

static void a_setting_that_makes_no_sense_is_named(void **state)
{
    static const char *const settings[] = {"RUEDA_LOG_LEVEL=loud", NULL};

    (void)state;
    assert_int_equal(run("bench --np 2 --max 8", settings), 1);
    assert_string_equal(rueda.out, "");
    has(rueda.err, "RUEDA_LOG_LEVEL");
    has(rueda.err, "loud");
}

/* ---- Ends -------------------------------------------------------------- */

/* The two processes that the program has started. */
static bool find_workers(pid_t out[2])
{
    char path[64];
    char text[256] = "";
    char *at = text;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)rueda.pid,
             (int)rueda.pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    fclose(file);
    out[0] = (pid_t)strtol(at, &at, 10);
    out[1] = (pid_t)strtol(at, &at, 10);
    return out[0] > 0 && out[1] > 0;
}

/* Start a benchmark that would run for long, and wait until it measures. */
static void start_long(pid_t out_workers[2])
{
    program_start(&rueda, RUEDA_TEST_BIN_DIR "/rueda",
                  "bench --np 2 --rounds 1000 --max 512", NULL);
    out_workers[0] = out_workers[1] = -1;
    if (!program_await(&rueda, "median us") || !find_workers(out_workers)) {
        if (rueda.code == PROCESS_RUNS)
            kill(rueda.pid, SIGTERM);
        program_end(&rueda);
        fail_msg("it does not measure:\n%s%s", rueda.out, rueda.err);
    }
}

static bool is_gone(pid_t pid)
{
    const int64_t deadline = rank_now_ms() + 10000;

    while (kill(pid, 0) == 0 && rank_now_ms() < deadline)
        rank_sleep_ms(2);
    return kill(pid, 0) != 0;
}

static void a_signal_ends_the_run_and_leaves_nobody_behind(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM};

    (void)state;
    for (size_t i = 0; i < LENGTH(signals); i++) {
        char expected[64];
        pid_t workers[2];

        start_long(workers);
        kill(rueda.pid, signals[i]);

        assert_int_equal(program_end(&rueda), 128 + signals[i]);
        snprintf(expected, sizeof(expected), "rueda: ended by signal %d (",
                 signals[i]);
        has(rueda.err, expected);
        assert_true(is_gone(workers[0]) && is_gone(workers[1]));
    }
}

static void the_death_of_a_rank_ends_the_run(void **state)
{
    pid_t workers[2];

    (void)state;
    start_long(workers);
    kill(workers[1], SIGKILL);

    assert_int_equal(program_end(&rueda), 1);
    has(rueda.err, "rank 1 was killed by signal 9");
    assert_true(is_gone(workers[0]) && is_gone(workers[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_the_librarys),
        cmocka_unit_test(help_is_there_for_every_command),
        cmocka_unit_test(without_words_the_help_is_shown_as_a_mistake),
        cmocka_unit_test(a_mistake_is_one_line_and_exit_code_two),
        cmocka_unit_test(info_tells_what_is_here),
        cmocka_unit_test(info_names_what_was_asked_for),
        cmocka_unit_test(config_shows_defaults_and_what_is_set),
        cmocka_unit_test(markdown_has_a_row_for_every_setting),
        cmocka_unit_test(a_setting_that_makes_no_sense_is_named),
        cmocka_unit_test(a_signal_ends_the_run_and_leaves_nobody_behind),
        cmocka_unit_test(the_death_of_a_rank_ends_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
