/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tool/lists.h"
#include "tool/options.h"

#define WORDS_MAX 20

/* The options of a command line whose words are separated by single spaces. */
struct line {
    char text[256];
    char *argv[WORDS_MAX];
    struct rueda_bench_options options;
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
    return rueda_bench_options_parse(argc, line->argv, &line->options,
                                     &line->words);
}

static void without_words_everything_has_its_default(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, ""));
    assert_int_equal(line.options.op, RUEDA_BENCH_ALLREDUCE);
    assert_int_equal(line.options.np, 0);
    assert_int_equal(line.options.dtype, RUEDA_FLOAT32);
    assert_int_equal(line.options.reduction, RUEDA_SUM);
    assert_true(line.options.min_bytes == 8);
    assert_true(line.options.max_bytes == (size_t)128 << 20);
    assert_int_equal(line.options.factor, 8);
    assert_int_equal(line.options.peer_count, 0);
    assert_false(line.options.is_tune);
    assert_null(line.options.json);
}

static void every_option_is_understood_in_both_forms(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "allgather --np 4 --transport=loop --algo ring "
                             "--dtype=int32 --reduction max --min 4k "
                             "--max=2m --factor=3 --alloc shared "
                             "--rounds 3"));
    assert_int_equal(line.options.op, RUEDA_BENCH_ALLGATHER);
    assert_int_equal(line.options.np, 4);
    assert_string_equal(line.options.transport, "loop");
    assert_string_equal(line.options.algo, "ring");
    assert_int_equal(line.options.dtype, RUEDA_INT32);
    assert_int_equal(line.options.reduction, RUEDA_MAX);
    assert_true(line.options.min_bytes == 4096);
    assert_true(line.options.max_bytes == (size_t)2 << 20);
    assert_int_equal(line.options.factor, 3);
    assert_true(line.options.is_shared);
    assert_int_equal(line.options.rounds, 3);
}

static void peers_keep_their_order_and_count_once(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--vs memcpy,openmpi,memcpy --vs mpich"));
    assert_int_equal(line.options.peer_count, 3);
    assert_int_equal(line.options.peers[0], RUEDA_PEER_MEMCPY);
    assert_int_equal(line.options.peers[1], RUEDA_PEER_OPENMPI);
    assert_int_equal(line.options.peers[2], RUEDA_PEER_MPICH);
}

static void private_memory_is_a_peer_of_shared_memory(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--vs private,private --alloc shared"));
    assert_int_equal(line.options.peer_count, 1);
    assert_int_equal(line.options.peers[0], RUEDA_PEER_PRIVATE);
    assert_true(parse(&line, "--alloc shared "
                             "--vs openmpi,mpich,memcpy,private,openmpi"));
    assert_int_equal(line.options.peer_count, 4);
}

static void raw_sockets_and_algorithms_are_peers(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--transport tcp --vs openmpi,raw,algo:ring "
                             "--vs raw,algo:tree,algo:ring"));
    assert_string_equal(line.options.transport, "tcp");
    assert_int_equal(line.options.np, 2);
    assert_int_equal(line.options.peer_count, 4);
    assert_int_equal(line.options.peers[1], RUEDA_PEER_RAW);
    assert_string_equal(line.options.peer_names[1], "raw");
    assert_int_equal(line.options.peers[2], RUEDA_PEER_ALGO);
    assert_string_equal(line.options.peer_names[2], "ring");
    assert_string_equal(line.options.peer_names[3], "tree");
}

static void hosts_have_the_ranks_in_their_order(void **state)
{
    static const char *const expected[] = {"a", "a", "b", "10.0.0.1",
                                           "10.0.0.1"};
    struct line line;

    (void)state;
    assert_true(parse(&line, "--hosts a:2,b,10.0.0.1:2 --rsh ssh"));
    assert_int_equal(line.options.host_count, 3);
    assert_int_equal(line.options.np, 5);
    assert_string_equal(line.options.hosts_text, "a:2,b,10.0.0.1:2");
    assert_string_equal(line.options.rsh, "ssh");
    for (int rank = 0; rank < 5; rank++)
        assert_string_equal(rueda_bench_hosts_of(&line.options, rank),
                            expected[rank]);
    assert_true(parse(&line, "--np 2 --hosts a:2 --rsh ssh"));
}

static void the_file_of_tune_may_be_left_out(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--tune broadcast"));
    assert_true(line.options.is_tune);
    assert_int_equal(line.options.factor, 4);
    assert_null(line.options.tune_file);
    assert_int_equal(line.options.op, RUEDA_BENCH_BROADCAST);
    assert_true(parse(&line, "--tune --np 2"));
    assert_null(line.options.tune_file);
    assert_true(parse(&line, "--tune rows.txt"));
    assert_string_equal(line.options.tune_file, "rows.txt");
    assert_true(parse(&line, "--tune=allreduce"));
    assert_string_equal(line.options.tune_file, "allreduce");
}

static void one_end_of_the_range_moves_the_other_if_it_must(void **state)
{
    struct line line;

    (void)state;
    assert_true(parse(&line, "--min 1g"));
    assert_true(line.options.max_bytes == (size_t)1 << 30);
    assert_true(parse(&line, "--max 4"));
    assert_true(line.options.min_bytes == 4);
}

static void a_mistake_is_named_with_what_was_meant(void **state)
{
    static const struct {
        const char *line;
        const char *words;
    } mistakes[] = {
        {"--nq 2", "unknown option '--nq'; did you mean '--np'?"},
        {"--jsn=x", "unknown option '--jsn'; did you mean '--json'?"},
        {"--np", "--np needs a value"},
        {"--np two", "--np takes a number from 1 to 256, not 'two'"},
        {"--np 0", "--np takes a number from 1 to 256, not '0'"},
        {"--factor 1", "--factor takes a number from 2 to 1024, not '1'"},
        {"--np 2x", "--np takes a number from 1 to 256, not '2x'"},
        {"--help=yes", "--help takes no value"},
        {"allredcue", "unknown operation 'allredcue'; did you mean "
                      "'allreduce'?"},
        {"sum", "unknown operation 'sum'; there are allreduce, allgather, "
                "broadcast, alltoall, reducescatter, barrier, pingpong, step"},
        {"--np 2 step", "step comes first, with options of its own"},
        {"barrier pingpong", "one operation at a time, not 'pingpong' too"},
        {"--vs openmp", "unknown peer 'openmp'; did you mean 'openmpi'?"},
        {"--dtype complex", "unknown dtype 'complex'; there are uint8, int8, "
                            "uint16, int16, int32, int64, float16, float32, "
                            "float64, bool, bfloat16"},
        {"--min 0", "--min takes a size in bytes such as 8, 4k or 128m, not "
                    "'0'"},
        {"--max 99999999999g", "--max takes a size in bytes such as 8, 4k or "
                               "128m, not '99999999999g'"},
        {"--min 2k --max 1k", "--min is more than --max"},
        {"--reduction adasum --dtype int8", "adasum takes floating types only, "
                                            "not int8"},
        {"--tune --algo ring", "--tune tries every algorithm; leave --algo "
                               "out"},
        {"pingpong --np 1", "pingpong needs two ranks"},
        {"--vs private", "--vs private is for a run with shared memory; add "
                         "--alloc shared"},
        {"--alloc private --vs memcpy,private",
         "--vs private is for a run with shared memory; add --alloc shared"},
        {"--transport udp",
         "unknown transport 'udp'; there are auto, shm, messages, "
         "tcp, loop"},
        {"--vs rwa", "unknown peer 'rwa'; did you mean 'raw'?"},
        {"--vs algo:", "--vs algo: takes the name of an algorithm"},
        {"--vs algo:a,algo:b,algo:c,algo:d,algo:e,algo:f,algo:g,algo:h,algo:i,"
         "algo:j,algo:k,algo:l",
         "--vs takes at most 11 peers"},
        {"--np 3 --vs raw",
         "--vs raw is an exchange between two ranks; say --np 2"},
        {"barrier --vs raw",
         "--vs raw sends as much as it receives, which barrier does not"},
        {"--hosts a:2,b:2", "--hosts needs --rsh, a program that starts "
                            "commands there"},
        {"--rsh ssh", "--rsh goes with --hosts"},
        {"--hosts a:2,b:x --rsh ssh", "--hosts takes hosts with their numbers "
                                      "of ranks such as a:2,b:2"},
        {"--hosts a:0 --rsh ssh", "--hosts takes hosts with their numbers of "
                                  "ranks such as a:2,b:2"},
        {"--hosts :2 --rsh ssh", "--hosts takes hosts with their numbers of "
                                 "ranks such as a:2,b:2"},
        {"--hosts , --rsh ssh", "--hosts takes hosts with their numbers of "
                                "ranks such as a:2,b:2"},
        {"--hosts= --rsh ssh", "--hosts takes from 1 to 256 ranks in all"},
        {"--hosts a:200,b:200 --rsh ssh", "--hosts takes from 1 to 256 ranks "
                                          "in all"},
        {"--np 3 --hosts a:2,b:2 --rsh ssh",
         "--np is not the number of ranks that --hosts has"},
        {"--hosts a:2 --rsh ssh --transport loop",
         "--transport loop has its ranks in one process, not on hosts"},
        {"--hosts a,b --rsh ssh --vs raw",
         "--vs raw runs on this host alone, without --hosts"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct line line;

        assert_false(parse(&line, mistakes[i].line));
        assert_string_equal(line.words.chars, mistakes[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_words_everything_has_its_default),
        cmocka_unit_test(every_option_is_understood_in_both_forms),
        cmocka_unit_test(peers_keep_their_order_and_count_once),
        cmocka_unit_test(private_memory_is_a_peer_of_shared_memory),
        cmocka_unit_test(raw_sockets_and_algorithms_are_peers),
        cmocka_unit_test(hosts_have_the_ranks_in_their_order),
        cmocka_unit_test(the_file_of_tune_may_be_left_out),
        cmocka_unit_test(one_end_of_the_range_moves_the_other_if_it_must),
        cmocka_unit_test(a_mistake_is_named_with_what_was_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
