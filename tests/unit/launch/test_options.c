/* SPDX-License-Identifier: Apache-2.0 */
/* The command line and the configuration file of ruedarun. */
#include <string.h>

#include "launch/elastic.h"
#include "launch/help.h"
#include "launch/options.h"
#include "launch/yaml.h"
#include "unit/unit.h"

#define WORDS_MAX 24

/* A command line whose words are separated by single spaces, and the variables
 * that it makes. */
struct line {
    char text[512];
    char *argv[WORDS_MAX + 1];
    struct rueda_options options;
    struct rueda_text words;
    char variables[1024];
};

static bool parse(struct line *line, const char *text)
{
    int argc = 0;
    char *rest;

    memset(line, 0, sizeof(*line));
    assert_true(strlen(text) < sizeof(line->text));
    memcpy(line->text, text, strlen(text));
    for (char *word = strtok_r(line->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        assert_true(argc < WORDS_MAX);
        line->argv[argc++] = word;
    }
    return rueda_options_parse(argc, line->argv, &line->options, &line->words);
}

static void must_parse(struct line *line, const char *text)
{
    if (!parse(line, text))
        fail_msg("%s: %s", text, line->words.chars);
}

static void note_variable(void *arg, const char *name, const char *value)
{
    struct line *line = arg;
    const size_t len = strlen(line->variables);

    snprintf(line->variables + len, sizeof(line->variables) - len, "%s=%s ",
             name, value);
}

static const char *variables_of(struct line *line)
{
    line->variables[0] = '\0';
    rueda_options_export(&line->options, note_variable, line);
    return line->variables;
}

static void expect_mistake(const char *text, const char *words)
{
    struct line line;

    if (parse(&line, text) && rueda_options_check(&line.options, &line.words))
        fail_msg("'%s' was taken", text);
    if (strstr(line.words.chars, words) == NULL)
        fail_msg("'%s' says '%s', not '%s'", text, line.words.chars, words);
    rueda_options_fini(&line.options);
}

/* ---- The command line --------------------------------------------------- */

static void options_after_the_command_belong_to_it(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "ruedarun -np 4 python train.py -np 8 --verbose");
    assert_int_equal(rueda_options_whole(&line.options, RUEDA_OPTION_NP, 0), 4);
    assert_false(rueda_options_is_on(&line.options, RUEDA_OPTION_VERBOSE));
    assert_string_equal(line.options.command[0], "python");
    assert_string_equal(line.options.command[2], "-np");
    assert_null(line.options.command[5]);
    assert_true(rueda_options_check(&line.options, &line.words));
    rueda_options_fini(&line.options);

    must_parse(&line, "ruedarun -np 2 -- --odd-name x");
    assert_string_equal(line.options.command[0], "--odd-name");
    rueda_options_fini(&line.options);
}

static void values_come_in_every_usual_form(void **state)
{
    static const char *const forms[] = {
        "x -np 3 -p 2222 -H a:3 cmd", "x --num-proc=3 --ssh-port=2222 -Ha:3 c",
        "x -n 3 -p2222 --hosts a:3 c", "x -np=3 -p=2222 --hosts=a:3 c"};

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct line line;

        must_parse(&line, forms[i]);
        assert_int_equal(rueda_options_whole(&line.options, RUEDA_OPTION_NP, 0),
                         3);
        assert_int_equal(
            rueda_options_whole(&line.options, RUEDA_OPTION_SSH_PORT, 0), 2222);
        assert_string_equal(line.options.values[RUEDA_OPTION_HOSTS], "a:3");
        rueda_options_fini(&line.options);
    }
}

static void a_beginning_is_enough_where_it_is_the_only_one(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x --slots 4 --fusion 32 c");
    assert_string_equal(line.options.values[RUEDA_OPTION_SLOTS], "4");
    assert_string_equal(line.options.values[RUEDA_OPTION_FUSION], "32");
    rueda_options_fini(&line.options);
    expect_mistake("x --autotune-w 3 --stall-check-w 3 -np 2", "no command");
    expect_mistake("x --ssh 3 c", "may be --ssh-port, --ssh-identity-file");
}

static void lists_are_joined(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x --network-interface eth0 --network-interface ib0 "
                      "--network-interfaces lo,eth1 c");
    assert_string_equal(line.options.values[RUEDA_OPTION_NETWORK],
                        "eth0,ib0,lo,eth1");
    rueda_options_fini(&line.options);
}

static void the_name_decides_who_speaks(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "/opt/bin/horovodrun -np 1 c");
    assert_true(line.options.is_horovodrun);
    rueda_options_fini(&line.options);
    must_parse(&line, "ruedarun -np 1 c");
    assert_false(line.options.is_horovodrun);
    rueda_options_fini(&line.options);
}

static void mistakes_are_named_with_the_remedy(void **state)
{
    (void)state;
    expect_mistake("ruedarun", "no command to start; for example: ruedarun");
    expect_mistake("x python", "say how many ranks");
    expect_mistake("x -np 0 c", "-np takes a whole number from 1 to 65536");
    expect_mistake("x --num-p=0 c", "--num-proc takes a whole number from 1");
    expect_mistake("x -np -4 c", "not '-4'");
    expect_mistake("x -np 2.5 c", "not '2.5'");
    expect_mistake("x -np", "needs a value");
    expect_mistake("x --num-prc 2 c", "did you mean '--num-proc'?");
    expect_mistake("x --output-filname d -np 2 c", "'--output-filename'?");
    expect_mistake("x --zzz c", "'x --help all' lists them");
    expect_mistake("x -x A=1 c", "'-x'; 'x --help all' lists them");
    expect_mistake("x -np 2 --bind cores c", "did you mean 'core'?");
    expect_mistake("x -np 2 --verbose=1 c", "takes no value");
    expect_mistake("x -np 2 -H a:2 --hostfile f c", "exclude each other");
    expect_mistake("x -np 2 --gloo --mpi c", "exclude each other");
    expect_mistake("x -np 2 --mpi --bind core c", "does not go with --mpi");
    expect_mistake("x -np 2 --log-with-timestamp -prefix-timestamp c",
                   "exclude each other");
    expect_mistake("x -np 2 --log-with-timestamp --log-hide-timestamp c",
                   "--log-with-timestamp and --log-without-timestamp exclude");
    expect_mistake("x -np 2 --log-level LOUD c", "TRACE, DEBUG, INFO");
    expect_mistake("x -np 2 --listen 4000 -H a:2 c", "--key-file FILE");
    expect_mistake("x -np 2 --key-file k c", "goes with --listen");
}

static void negative_numbers_are_refused_for_every_setting(void **state)
{
    (void)state;
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];
        char text[128];

        if (option->kind != RUEDA_TAKES_WHOLE &&
            option->kind != RUEDA_TAKES_DECIMAL)
            continue;
        snprintf(text, sizeof(text), "x %s -1 c", option->name);
        expect_mistake(text, "not '-1'");
    }
    expect_mistake("x --autotune-gaussian-process-noise 1.5 c", "from 0 to 1");
}

static void several_values_are_kept(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x --blacklist-cooldown-range 10 100 c");
    assert_string_equal(line.options.values[RUEDA_OPTION_COOLDOWN], "10 100");
    assert_string_equal(line.options.command[0], "c");
    rueda_options_fini(&line.options);
    expect_mistake("x --blacklist-cooldown-range 1 4000 c", "not '4000'");
    expect_mistake("x --blacklist-cooldown-range 0 9 c", "not '0'");
    expect_mistake("x --blacklist-cooldown-range 1", "needs a value");
}

/* ---- Elastic jobs ------------------------------------------------------- */

/* words: what the check says; "": it may be run. notes: as they begin. */
static void expect_elastic(const char *text, const char *words,
                           const char *notes)
{
    struct line line;
    bool is_good;

    must_parse(&line, text);
    is_good = rueda_options_check(&line.options, &line.words) &&
              rueda_elastic_check(&line.options, &line.words);
    if (is_good != (words[0] == '\0') ||
        strstr(line.words.chars, words) == NULL)
        fail_msg("'%s' says '%s'", text, line.words.chars);
    if (strncmp(line.options.notes.chars, notes, strlen(notes)) != 0 ||
        (notes[0] == '\0') != rueda_text_is_empty(&line.options.notes))
        fail_msg("'%s' notes '%s'", text, line.options.notes.chars);
    rueda_options_fini(&line.options);
}

static bool is_elastic(const char *text)
{
    struct line line;
    bool is_wanted;

    must_parse(&line, text);
    is_wanted = rueda_elastic_is_wanted(&line.options);
    rueda_options_fini(&line.options);
    return is_wanted;
}

static void a_job_whose_ranks_may_change_is_elastic(void **state)
{
    (void)state;
    assert_true(is_elastic("x -np 2 --min-np 1 -H a:1,b:1 c"));
    assert_true(is_elastic("x -np 2 --min-np 2 -H a:1,b:1 c"));
    assert_true(is_elastic("x -np 2 --host-discovery-script s c"));
    assert_true(is_elastic(
        "x -np 2 --host-discovery-script s --min-np 2 --max-np 2 c"));
    assert_false(is_elastic("x -np 2 --min-np 2 --max-np 2 c"));
    assert_false(is_elastic("x -np 2 --max-np 4 c"));
    assert_false(is_elastic("x -np 2 c"));
}

static void options_of_elastic_jobs_go_together(void **state)
{
    (void)state;
    expect_elastic("x -np 2 --min-np 1 c", "", "");
    expect_elastic("x -np 2 --host-discovery-script s --slots 2 c", "", "");
    expect_elastic("x -np 2 --min-np 1 --max-np 4 --reset-limit 3 "
                   "--elastic-timeout 9 --blacklist-cooldown-range 1 9 "
                   "-H a:2,b:2 c",
                   "", "");
    expect_elastic("x -np 2 --min-np 1 --restarts 3 c", "",
                   "--restarts has no effect in an elastic job");
    expect_elastic("x -np 2 --restarts 3 c", "", "");
}

static void elastic_jobs_that_are_fixed_are_ordinary_ones(void **state)
{
    (void)state;
    expect_elastic("x -np 2 --min-np 2 --max-np 2 c", "", "");
    expect_elastic("x -np 2 --min-num-proc 2 --max-num-proc 2 -H a:1,b:1 c", "",
                   "");
    expect_elastic("x -np 2 c", "", "");
}

static void mistakes_of_elastic_jobs_are_named(void **state)
{
    (void)state;
    expect_elastic("x -np 2 --min-np 3 -H a:2,b:2 c",
                   "--min-np 3 is more than the 2 ranks of -np", "");
    expect_elastic("x -np 2 --min-np 1 --max-np 1 -H a:2,b:2 c",
                   "--max-np 1 is less than the 2 ranks of -np", "");
    expect_elastic("x -np 2 --min-np 1 --blacklist-cooldown-range 9 8 "
                   "-H a:2,b:2 c",
                   "the first number is the smaller", "");
    expect_elastic("horovodrun -np 2 --min-np 1 c", "at least two hosts", "");
    expect_elastic("horovodrun -np 2 --min-np 1 -H a:1,a:1 c",
                   "at least two hosts", "");
    expect_elastic("x -np 2 --min-np 1 -H a c", "no number of slots", "");
    expect_elastic("x -np 2 --min-np 1 --hostfile /nowhere c",
                   "/nowhere: No such file", "");
    expect_elastic("x -np 2 --min-np 1 --mpi -H a:1,b:1 c",
                   "--min-np does not go with --mpi", "");
    expect_elastic("x -np 2 -H a:2 --host-discovery-script s c",
                   "exclude each other", "");
}

static void elastic_options_alone_have_no_effect(void **state)
{
    (void)state;
    expect_elastic("x -np 2 --max-np 1 c", "",
                   "--max-np has no effect without --min-np or "
                   "--host-discovery-script\n");
    expect_elastic("x -np 2 --reset-limit 3 c", "", "--reset-limit has no");
    expect_elastic("x -np 2 --min-np 2 --max-np 2 --slots 2 c", "",
                   "--slots-per-host has no effect without "
                   "--host-discovery-script\n");
}

/* ---- Variables ---------------------------------------------------------- */

static void only_what_is_given_becomes_a_variable(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x -np 2 c");
    assert_string_equal(variables_of(&line), "");
    rueda_options_fini(&line.options);

    must_parse(&line, "x --fusion-threshold-mb 32 --cycle-time-ms 3.5 "
                      "--no-hierarchical-allreduce --torus-allreduce "
                      "--no-stall-check c");
    assert_string_equal(variables_of(&line),
                        "HOROVOD_FUSION_THRESHOLD=33554432 "
                        "HOROVOD_CYCLE_TIME=3.5 "
                        "HOROVOD_HIERARCHICAL_ALLREDUCE=0 "
                        "HOROVOD_TORUS_ALLREDUCE=1 "
                        "HOROVOD_STALL_CHECK_DISABLE=1 ");
    rueda_options_fini(&line.options);

    must_parse(&line, "x --log-level debug --log-hide-timestamp c");
    assert_string_equal(variables_of(&line),
                        "HOROVOD_LOG_LEVEL=DEBUG HOROVOD_LOG_HIDE_TIME=1 "
                        "RUEDA_LOG_LEVEL=debug ");
    rueda_options_fini(&line.options);
}

static void some_count_only_with_others(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x --autotune-log-file f --timeline-mark-cycles c");
    assert_string_equal(variables_of(&line), "");
    rueda_options_fini(&line.options);

    must_parse(&line, "x --autotune --autotune-log-file f "
                      "--timeline-filename t --timeline-mark-cycles c");
    assert_string_equal(variables_of(&line),
                        "HOROVOD_TIMELINE=t HOROVOD_TIMELINE_MARK_CYCLES=1 "
                        "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_LOG=f ");
    rueda_options_fini(&line.options);
}

/* ---- The configuration file --------------------------------------------- */

static bool read_text(struct line *line, const char *text)
{
    return rueda_yaml_parse("c.yaml", text, strlen(text), &line->options,
                            &line->words);
}

static void a_file_gives_options(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x -np 2 c");
    assert_true(read_text(&line, "controller: gloo\n"
                                 "params:\n"
                                 "  fusion_threshold_mb: 32\n"
                                 "  cycle_time_ms: 10\n"
                                 "  hierarchical_allreduce: True\n"
                                 "timeline: {filename: t.json, "
                                 "mark_cycles: no}\n"
                                 "stall_check:\n"
                                 "  enabled: false\n"
                                 "library_options:\n"
                                 "  gloo_timeout_seconds:\n"
                                 "logging:\n"
                                 "  level: info\n"));
    assert_true(rueda_options_check(&line.options, &line.words));
    assert_string_equal(variables_of(&line),
                        "HOROVOD_FUSION_THRESHOLD=33554432 "
                        "HOROVOD_CYCLE_TIME=10 "
                        "HOROVOD_HIERARCHICAL_ALLREDUCE=1 "
                        "HOROVOD_TIMELINE=t.json "
                        "HOROVOD_TIMELINE_MARK_CYCLES=0 "
                        "HOROVOD_STALL_CHECK_DISABLE=1 "
                        "HOROVOD_LOG_LEVEL=INFO RUEDA_LOG_LEVEL=info ");
    rueda_options_fini(&line.options);
}

static void the_command_line_wins_over_the_file(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x --fusion-threshold-mb 64 -np 2 --autotune c");
    assert_true(read_text(&line, "params:\n"
                                 "  fusion_threshold_mb: 32\n"
                                 "  cache_capacity: 7\n"
                                 "autotune:\n"
                                 "  enabled: false\n"
                                 "  steps_per_sample: 5\n"));
    assert_string_equal(variables_of(&line),
                        "HOROVOD_FUSION_THRESHOLD=67108864 "
                        "HOROVOD_CACHE_CAPACITY=7 HOROVOD_AUTOTUNE=1 "
                        "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=5 ");
    rueda_options_fini(&line.options);

    must_parse(&line, "x -np 2 --gloo --mpi-args x c");
    assert_true(read_text(&line, "controller: mpi\n"));
    assert_true(rueda_options_check(&line.options, &line.words));
    assert_int_equal(rueda_options_controller(&line.options),
                     RUEDA_CONTROLLER_OURS);
    assert_string_equal(line.options.notes.chars,
                        "--mpi-args has no effect without --mpi or --jsrun\n");
    rueda_options_fini(&line.options);

    must_parse(&line, "x -np 2 c");
    assert_true(read_text(&line, "controller: mpi\n"));
    assert_int_equal(rueda_options_controller(&line.options),
                     RUEDA_CONTROLLER_MPIRUN);
    rueda_options_fini(&line.options);
}

static void what_has_no_value_in_a_file_is_not_set(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x -np 2 c");
    if (!read_text(&line, "params:\n"
                          "  cycle_time_ms: null\n"
                          "  cache_capacity: ~\n"
                          "timeline:\n"
                          "autotune: null\n"))
        fail_msg("%s", line.words.chars);
    assert_string_equal(variables_of(&line), "");
    assert_string_equal(line.options.notes.chars, "");
    rueda_options_fini(&line.options);
}

static void
a_controller_of_the_file_is_not_looked_at_beside_a_chosen_one(void **state)
{
    static const char *const lines[] = {"x -np 2 --gloo c", "x -np 2 --mpi c"};

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct line line;

        must_parse(&line, lines[i]);
        assert_true(read_text(&line, "controller: ray\n"));
        rueda_options_fini(&line.options);
    }
}

static void unknown_names_in_a_file_are_noted_and_left_out(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x -np 2 c");
    assert_true(read_text(&line, "params:\n"
                                 "  fusion_treshold_mb: 32\n"
                                 "other: {a: [1, 2]}\n"));
    assert_string_equal(variables_of(&line), "");
    assert_non_null(strstr(line.options.notes.chars,
                           "c.yaml:2: 'params.fusion_treshold_mb' is unknown "
                           "and left out; did you mean "
                           "'params.fusion_threshold_mb'?\n"));
    rueda_options_fini(&line.options);
}

static void mistakes_in_a_file_are_named_with_their_line(void **state)
{
    static const char *const cases[][2] = {
        {"params:\n  cycle_time_ms: -1\n", "c.yaml:2: params.cycle_time_ms"},
        {"params:\n  cycle_time_ms: [1]\n", "c.yaml:2: params.cycle_time_ms"},
        {"stall_check: {enabled: 7}\n", "is true or false, not '7'"},
        {"controller: ray\n", "takes gloo, mpi; not 'ray'"},
        {"params: [}\n", "c.yaml:1: this is not YAML"},
        {"- a\n", "c.yaml:1: sections are expected"},
        {"timeline: {filename: \"a\\0b\"}\n", "zero byte"},
        {"params: 3\n", "c.yaml:1: params takes settings below it, such as "
                        "\"fusion_threshold_mb:\""},
        {"stall_check: [a]\n", "such as \"enabled:\""},
        {"params: {cycle_time_ms: 1}\n---\nparams: {cache_capacity: 2}\n",
         "c.yaml:3: one document is expected"},
        {"---\nparams:\n---\na: [}\n", "c.yaml:4: this is not YAML"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line line;

        must_parse(&line, "x -np 2 c");
        assert_false(read_text(&line, cases[i][0]));
        if (strstr(line.words.chars, cases[i][1]) == NULL)
            fail_msg("%s", line.words.chars);
        rueda_options_fini(&line.options);
    }
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    struct line line;

    (void)state;
    must_parse(&line, "x -np 2 c");
    assert_false(
        rueda_yaml_read("/nowhere/c.yaml", &line.options, &line.words));
    assert_non_null(strstr(line.words.chars, "/nowhere/c.yaml: No such file"));
    rueda_options_fini(&line.options);
}

/* ---- Help --------------------------------------------------------------- */

/* What --help of a group prints. */
static void print_help(const char *line_text, char *out, size_t bytes)
{
    struct line line;
    FILE *file = fmemopen(out, bytes, "w");

    assert_non_null(file);
    must_parse(&line, line_text);
    assert_true(rueda_launch_help(&line.options, file, &line.words));
    assert_int_equal(fclose(file), 0);
    rueda_options_fini(&line.options);
}

static void help_fits_the_screen(void **state)
{
    char text[16384];
    int lines = 0;

    (void)state;
    print_help("ruedarun --help all", text, sizeof(text));
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n"))
        if (strlen(line) > 80)
            fail_msg("%s", line);
    print_help("ruedarun --help", text, sizeof(text));
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    assert_true(lines <= 24);
    assert_non_null(strstr(text, "-np, -n, --num-proc N"));
    assert_non_null(strstr(text, "\n  hosts     -p -i "));
    assert_null(strstr(text, "--cycle-time-ms  "));
    print_help("ruedarun --help tuning", text, sizeof(text));
    assert_non_null(strstr(text, "--cycle-time-ms"));
}

static void everything_is_in_the_help(void **state)
{
    static char text[16384];

    (void)state;
    print_help("ruedarun --help all", text, sizeof(text));
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const char *name = rueda_options_table[id].name;
        const char *at = strstr(text, name);

        while (at != NULL && strchr(" ,\n", at[strlen(name)]) == NULL)
            at = strstr(at + 1, name);
        if (name[0] == '-' && at == NULL)
            fail_msg("%s is not in the help", name);
    }
}

static void every_shown_option_has_words(void **state)
{
    (void)state;
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];

        assert_non_null(option->name);
        if (option->group != RUEDA_GROUP_HIDDEN)
            assert_true(option->help != NULL || option->variable != NULL);
        if (option->group != RUEDA_GROUP_HIDDEN)
            assert_true((option->kind == RUEDA_TAKES_NOTHING) ==
                        (option->value == NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_after_the_command_belong_to_it),
        cmocka_unit_test(values_come_in_every_usual_form),
        cmocka_unit_test(a_beginning_is_enough_where_it_is_the_only_one),
        cmocka_unit_test(lists_are_joined),
        cmocka_unit_test(the_name_decides_who_speaks),
        cmocka_unit_test(mistakes_are_named_with_the_remedy),
        cmocka_unit_test(negative_numbers_are_refused_for_every_setting),
        cmocka_unit_test(several_values_are_kept),
        cmocka_unit_test(a_job_whose_ranks_may_change_is_elastic),
        cmocka_unit_test(options_of_elastic_jobs_go_together),
        cmocka_unit_test(elastic_jobs_that_are_fixed_are_ordinary_ones),
        cmocka_unit_test(mistakes_of_elastic_jobs_are_named),
        cmocka_unit_test(elastic_options_alone_have_no_effect),
        cmocka_unit_test(only_what_is_given_becomes_a_variable),
        cmocka_unit_test(some_count_only_with_others),
        cmocka_unit_test(a_file_gives_options),
        cmocka_unit_test(the_command_line_wins_over_the_file),
        cmocka_unit_test(what_has_no_value_in_a_file_is_not_set),
        cmocka_unit_test(
            a_controller_of_the_file_is_not_looked_at_beside_a_chosen_one),
        cmocka_unit_test(unknown_names_in_a_file_are_noted_and_left_out),
        cmocka_unit_test(mistakes_in_a_file_are_named_with_their_line),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(help_fits_the_screen),
        cmocka_unit_test(everything_is_in_the_help),
        cmocka_unit_test(every_shown_option_has_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
