/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tool/sim_options.h"

#define WORDS_MAX 40

/* The options of a command line whose words are separated by single spaces. */
struct line {
    char text[1024];
    char *argv[WORDS_MAX];
    struct rueda_tool_sim_options options;
    struct rueda_text words;
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
    return rueda_tool_sim_options_parse(argc, line->argv, &line->options,
                                        &line->words);
}

static void the_cluster_is_read(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--hosts 128 --ranks-per-host 4 "
                             "--link 25gbit,10us --local 10GB/s "
                             "--model vgg16"));
    assert_int_equal(line.options.net.hosts, 128);
    assert_int_equal(line.options.net.ranks_per_host, 4);
    assert_int_equal(line.options.net.hosts_per_rack, 128);
    assert_true(line.options.net.uplink.bytes_per_s == 3.125e9);
    assert_int_equal(line.options.net.uplink.latency_ns, 10000);
    assert_true(line.options.net.port.bytes_per_s == 10e9);
    assert_int_equal(line.options.net.port.latency_ns, 500);
    assert_true(parse(&line, "--model=m --link=5us"));
    assert_int_equal(line.options.net.hosts, 1);
    assert_true(line.options.net.uplink.bytes_per_s == 12.5e9);
}

static void ranks_double_up_to_all(void **state)
{
    static const int wanted[] = {1, 2, 4, 8, 16, 20};
    struct line line;

    (void)state;
    assert_true(parse(&line, "--model m --hosts 5 --ranks-per-host 4"));
    assert_int_equal(line.options.point_count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(line.options.points[i], wanted[i]);
    assert_true(parse(&line, "--model m --hosts 4 --ranks 4,1"));
    assert_int_equal(line.options.point_count, 2);
    assert_int_equal(line.options.points[0], 1);
    assert_true(parse(&line, "--model m"));
    assert_int_equal(line.options.point_count, 1);
    assert_false(parse(&line, "--model m --hosts 2 --ranks-per-host 4 "
                              "--ranks 6"));
    assert_non_null(strstr(line.words.chars, "--ranks 6"));
    assert_false(parse(&line, "--model m --hosts 2 --ranks 4"));
}

static void part_of_a_cluster_is_a_cluster(void **state)
{
    struct rueda_text error = {""};
    struct rueda_sim_net net;
    struct rueda_sim_net part;

    (void)state;
    assert_int_equal(rueda_sim_net_parse("hosts 8\nranks-per-host 4\n"
                                         "hosts-per-rack 3\n",
                                         &net, &error),
                     RUEDA_OK);
    assert_true(rueda_tool_sim_net_of(&net, 3, &part));
    assert_true(part.hosts == 1 && part.ranks_per_host == 3);
    assert_int_equal(rueda_sim_net_check(&part, &error), RUEDA_OK);
    assert_true(rueda_tool_sim_net_of(&net, 16, &part));
    assert_true(part.hosts == 4 && part.hosts_per_rack == 3);
    assert_false(rueda_tool_sim_net_of(&net, 6, &part));
    assert_false(rueda_tool_sim_net_of(&net, 36, &part));
}

static void what_runs_is_read(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--model m --algo ring,auto --compression fp16 "
                             "--compute-ms 12.5 --jitter 5 --steps 9 --seed 7 "
                             "--fusion-bytes 64m --overhead 1us "
                             "--arithmetic 10GB/s --jobs 3"));
    assert_int_equal(line.options.algo_count, 2);
    assert_string_equal(line.options.algos[0], "ring");
    assert_int_equal(line.options.compression, RUEDA_COMPRESS_FP16);
    assert_true(rueda_tool_sim_compute_ms(&line.options, 64) == 12.5);
    assert_true(line.options.jitter == 0.05);
    assert_int_equal(line.options.steps, 9);
    assert_int_equal(line.options.seed, 7);
    assert_int_equal(line.options.fusion_bytes, 64 << 20);
    assert_true(line.options.overhead_ns == 1000);
    assert_true(line.options.work_bytes_per_s == 10e9);
    assert_int_equal(line.options.jobs, 3);
}

static void the_computation_may_depend_on_the_ranks(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--model m"));
    assert_true(rueda_tool_sim_compute_ms(&line.options, 1) < 0);
    assert_true(parse(&line, "--model m --compute-ms 2:10,4:20.5"));
    assert_true(rueda_tool_sim_compute_ms(&line.options, 1) == 10);
    assert_true(rueda_tool_sim_compute_ms(&line.options, 3) == 10);
    assert_true(rueda_tool_sim_compute_ms(&line.options, 4) == 20.5);
    assert_true(rueda_tool_sim_compute_ms(&line.options, 512) == 20.5);
    assert_false(parse(&line, "--model m --compute-ms 4:10,2:20"));
    assert_false(parse(&line, "--model m --compute-ms 4:10,"));
    assert_false(parse(&line, "--model m --compute-ms 0:10"));
}

static void bad_days_are_read(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--model m --straggler 3:1.5 --straggler 0:2 "
                             "--kill 3@250ms --unplug 2@100ms-150ms"));
    assert_int_equal(line.options.straggler_count, 2);
    assert_int_equal(line.options.stragglers[0].rank, 3);
    assert_true(line.options.stragglers[0].factor == 1.5);
    assert_int_equal(line.options.fault_count, 2);
    assert_int_equal(line.options.faults[0].kind, RUEDA_SIM_KILL);
    assert_int_equal(line.options.faults[0].from_ns, 250000000);
    assert_int_equal(line.options.faults[1].kind, RUEDA_SIM_UNPLUG);
    assert_int_equal(line.options.faults[1].index, 2);
    assert_int_equal(line.options.faults[1].until_ns, 150000000);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "--model is needed"},
        {"--model", "--model needs a value"},
        {"--modle m", "did you mean '--model'?"},
        {"resnet50", "there is no operation 'resnet50'"},
        {"--model m --hosts 0", "--hosts takes a number from 1 to 65536"},
        {"--model m --hosts 4000 --ranks-per-host 400", "ranks"},
        {"--model m --link 25", "--link takes a rate and a latency"},
        {"--model m --link 25gbit,10", "--link takes a rate and a latency"},
        {"--model m --algo rign", "did you mean 'ring'?"},
        {"--model m --algo direct", "shared memory"},
        {"--model m --algo ring,", "algorithm"},
        {"--model m --compression fp8", "compression"},
        {"--model m --compute-ms -1", "--compute-ms takes milliseconds"},
        {"--model m --compute-ms nan", "--compute-ms takes milliseconds"},
        {"--model m --jitter 200", "--jitter takes percent"},
        {"--model m --steps 1", "--steps takes a number from 2"},
        {"--model m --straggler 3", "--straggler takes RANK:FACTOR"},
        {"--model m --straggler 3:0", "--straggler takes RANK:FACTOR"},
        {"--model m --kill 3", "--kill takes RANK@TIME"},
        {"--model m --unplug 3@5ms", "--unplug takes HOST@TIME-TIME"},
        {"--model m --unplug 3@5ms-1ms", "--unplug takes HOST@TIME-TIME"},
        {"--model m --help=yes", "--help takes no value"},
        {"--model m --topology /nowhere", "/nowhere: No such file"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line line;

        if (parse(&line, cases[i].text))
            fail_msg("\"%s\" is accepted", cases[i].text);
        if (strstr(line.words.chars, cases[i].words) == NULL)
            fail_msg("\"%s\": %s", cases[i].text, line.words.chars);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cluster_is_read),
        cmocka_unit_test(ranks_double_up_to_all),
        cmocka_unit_test(part_of_a_cluster_is_a_cluster),
        cmocka_unit_test(what_runs_is_read),
        cmocka_unit_test(the_computation_may_depend_on_the_ranks),
        cmocka_unit_test(bad_days_are_read),
        cmocka_unit_test(mistakes_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
