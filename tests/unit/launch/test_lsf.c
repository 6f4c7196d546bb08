/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of LSF: their hosts, what they give to options, and jsrun's words. */
#include <stdlib.h>

#include "launch/erf.h"
#include "launch/jsrun.h"
#include "launch/lsf.h"
#include "unit/unit.h"

#define WORDS_MAX 16

/* Variables of LSF that other tests do not see. */
static int forget_lsf(void **state)
{
    static const char *const names[] = {"LSB_JOBID", "LSB_MCPU_HOSTS",
                                        "LSB_HOSTS", "LSB_DJOB_HOSTFILE"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    setenv("PATH", "/nowhere", 1);
    return 0;
}

/* An options line; its words are separated by spaces. */
struct line {
    char text[256];
    char *argv[WORDS_MAX + 1];
    struct rueda_options options;
    struct rueda_text words;
};

static void parse(struct line *line, const char *text)
{
    int argc = 0;
    char *rest;

    memset(line, 0, sizeof(*line));
    snprintf(line->text, sizeof(line->text), "%s", text);
    for (char *word = strtok_r(line->text, " ", &rest);
         word != NULL && argc < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
        line->argv[argc++] = word;
    assert_true(
        rueda_options_parse(argc, line->argv, &line->options, &line->words));
}

static void expect_hosts(const struct rueda_hosts *hosts, const char *expected)
{
    char *text = rueda_hosts_text(hosts, true);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void hosts_come_in_two_forms(void **state)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    (void)state;
    assert_true(rueda_lsf_parse_counted(" b 4  a 2 ", &hosts, &words));
    expect_hosts(&hosts, "b:4,a:2");
    rueda_hosts_fini(&hosts);
    assert_true(rueda_lsf_parse_names("b\nb\na\nb\n", &hosts, &words));
    expect_hosts(&hosts, "b:3,a:1");
    rueda_hosts_fini(&hosts);
}

static void hosts_that_are_none_are_refused(void **state)
{
    static const char *const cases[][2] = {{"", "no host is named"},
                                           {"a 4 b", "'b' has '' slots"},
                                           {"a 0", "'a' has '0' slots"},
                                           {"-x 4", "'-x' is not a host name"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_hosts hosts = {NULL, 0};
        struct rueda_text words = {{0}};

        assert_false(rueda_lsf_parse_counted(cases[i][0], &hosts, &words));
        assert_null(hosts.list);
        if (strstr(words.chars, cases[i][1]) == NULL)
            fail_msg("%s: %s", cases[i][0], words.chars);
    }
}

static void expect_without_launch_node(const char *text, const char *expected)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    assert_true(rueda_lsf_parse_counted(text, &hosts, &words));
    rueda_lsf_drop_launch_node(&hosts);
    expect_hosts(&hosts, expected);
    rueda_hosts_fini(&hosts);
}

static void the_launch_node_is_told_by_its_one_slot(void **state)
{
    (void)state;
    expect_without_launch_node("batch 1 a 42 b 42", "a:42,b:42");
    expect_without_launch_node("a 42 b 42", "a:42,b:42");
    expect_without_launch_node("a 1 b 1", "a:1,b:1");
    expect_without_launch_node("a 1", "a:1");
}

static void expect_filled_in(const char *text, const char *size,
                             const char *hosts)
{
    struct line line;

    parse(&line, text);
    if (!rueda_lsf_fill_in(&line.options, &line.words))
        fail_msg("%s: %s", text, line.words.chars);
    assert_string_equal(line.options.values[RUEDA_OPTION_NP], size);
    if (hosts == NULL)
        assert_null(line.options.values[RUEDA_OPTION_HOSTS]);
    else
        assert_string_equal(line.options.values[RUEDA_OPTION_HOSTS], hosts);
    rueda_options_fini(&line.options);
}

static void the_job_says_what_the_user_does_not(void **state)
{
    (void)state;
    expect_filled_in("x -np 3 c", "3", NULL);
    setenv("LSB_MCPU_HOSTS", "a 4 b 2", 1);
    expect_filled_in("x -np 3 c", "3", NULL); /* a job of LSF has a number */
    setenv("LSB_JOBID", "7", 1);
    expect_filled_in("x c", "6", "a:4,b:2");
    expect_filled_in("x -np 3 c", "3", "a:4,b:2");
    expect_filled_in("x -H c:9 c", "6", "c:9");
    expect_filled_in("x --hostfile f c", "6", NULL);
    expect_filled_in("x -np 1 --jsrun c", "1", "a:4,b:2");
    setenv("LSB_MCPU_HOSTS", "batch 1 a 4 b 2", 1);
    expect_filled_in("x --jsrun c", "6", "a:4,b:2");
    expect_filled_in("x --gloo c", "7", "batch:1,a:4,b:2");
    unsetenv("LSB_MCPU_HOSTS");
    setenv("LSB_HOSTS", "a a b", 1);
    expect_filled_in("x c", "3", "a:2,b:1");
}

static void a_job_without_hosts_is_told(void **state)
{
    struct line line;

    (void)state;
    setenv("LSB_JOBID", "7", 1);
    parse(&line, "x c");
    assert_false(rueda_lsf_fill_in(&line.options, &line.words));
    assert_non_null(strstr(line.words.chars, "none of LSB_MCPU_HOSTS"));
    rueda_options_fini(&line.options);
    setenv("LSB_DJOB_HOSTFILE", "/nowhere", 1);
    parse(&line, "x c");
    assert_false(rueda_lsf_fill_in(&line.options, &line.words));
    assert_non_null(strstr(line.words.chars, "/nowhere: No such file"));
    rueda_options_fini(&line.options);
    parse(&line, "x -np 2 -H a:2 c");
    assert_true(rueda_lsf_fill_in(&line.options, &line.words));
    rueda_options_fini(&line.options);
}

/* ---- jsrun -------------------------------------------------------------- */

static char *erf_of(const char *hosts_text, int size, const char *cores_text,
                    struct rueda_text *words)
{
    struct rueda_placement placement;
    struct rueda_hosts hosts;
    struct rueda_hosts cores;
    char *text;

    assert_true(rueda_hosts_parse(hosts_text, &hosts, words));
    assert_true(rueda_hosts_parse(cores_text, &cores, words));
    assert_true(rueda_placement_make(&hosts, size, &placement, words));
    text = rueda_erf_text(&placement, &hosts, &cores, words);
    rueda_placement_fini(&placement);
    rueda_hosts_fini(&hosts);
    rueda_hosts_fini(&cores);
    return text;
}

static void cores_are_split_among_ranks(void **state)
{
    struct rueda_text words = {{0}};
    char *text = erf_of("a:2,b:2", 3, "b:5,a:8", &words);

    (void)state;
    assert_non_null(text);
    assert_string_equal(
        text, "overlapping_rs: allow\n"
              "cpu_index_using: logical\n"
              "\n"
              "rank: 0: { hostname: a; cpu: {0-3} ; gpu: * ; mem: * }\n"
              "rank: 1: { hostname: a; cpu: {4-7} ; gpu: * ; mem: * }\n"
              "\n"
              "rank: 2: { hostname: b; cpu: {0-4} ; gpu: * ; mem: * }\n");
    free(text);
    text = erf_of("a:3", 3, "a:2", &words);
    assert_non_null(text);
    assert_non_null(strstr(text, "rank: 2: { hostname: a; cpu: {0-0} ;"));
    free(text);
    assert_null(erf_of("a:1,c:1", 2, "a:2", &words));
    assert_string_equal(words.chars, "host 'c' is none of this LSF job");
}

static void expect_words(const char *text, const char *expected)
{
    struct rueda_strings found = {.list = NULL};
    char joined[512] = "";
    struct line line;

    parse(&line, text);
    rueda_jsrun_words(&line.options, "/erf", &found);
    assert_false(found.is_short);
    for (int i = 0; i < found.count; i++) {
        const size_t len = strlen(joined);

        snprintf(joined + len, sizeof(joined) - len, "%s%s", i == 0 ? "" : "|",
                 found.list[i]);
    }
    assert_string_equal(joined, expected);
    rueda_strings_fini(&found);
    rueda_options_fini(&line.options);
}

static void jsrun_is_told_in_its_language(void **state)
{
    (void)state;
    expect_words("x --jsrun -np 2 c -x", "jsrun|--erf_input|/erf|c|-x");
    expect_words("x --jsrun -np 2 --output-filename d --tcp --mpi-args=-gpu c",
                 "jsrun|--erf_input|/erf|--stdio_stderr|d|--stdio_stdout|d|"
                 "--smpiargs|-tcp -gpu|c");
    expect_words("x --jsrun -np 2 --binding-args=-n2 --mpi-args=-gpu c",
                 "jsrun|-n2|--smpiargs|-gpu|c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_come_in_two_forms),
        cmocka_unit_test(hosts_that_are_none_are_refused),
        cmocka_unit_test(the_launch_node_is_told_by_its_one_slot),
        cmocka_unit_test_setup(the_job_says_what_the_user_does_not, forget_lsf),
        cmocka_unit_test_setup(a_job_without_hosts_is_told, forget_lsf),
        cmocka_unit_test(cores_are_split_among_ranks),
        cmocka_unit_test(jsrun_is_told_in_its_language),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
