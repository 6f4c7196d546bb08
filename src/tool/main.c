/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `rueda`: commands that inspect the library and measure it.
 *
 *     bench       measures collectives, beside other systems    bench.h
 *     bench step  named tensors beside bare collectives         step.c
 *     doctor      checks the hosts of a job            doctor/doctor.h
 *     info        machine, library, settings, seat in the job   info.c
 *     key         writes a new key for a job                    key.c
 *     sim         predicts how a model trains on a cluster      sim.h
 *
 * A command is a function of the words behind its name; it returns the exit
 * code. What needs no process of its own (options, cases, patterns, judgements)
 * is a library apart, so that unit tests reach it (CMakeLists.txt).
 *
 * Exit codes: 0 all is well; 1 something failed, or an answer was wrong; 2 an
 * error on the command line; 128 + n ended by signal n.
 */
#include <rueda/rueda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "tool/bench.h"
#include "tool/doctor/doctor.h"
#include "tool/help.h"
#include "tool/info.h"
#include "tool/key.h"
#include "tool/sim.h"
#include "tool/worker.h"

static int print_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("rueda %s\n", rueda_version());
    return EXIT_SUCCESS;
}

static int print_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fputs(rueda_help(), stdout);
    return EXIT_SUCCESS;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"bench", rueda_bench_main},  {"doctor", rueda_doctor_main},
    {"info", rueda_info_main},    {"key", rueda_tool_key_main},
    {"sim", rueda_tool_sim_main}, {"--version", print_version},
    {"--help", print_help},       {"-h", print_help},
    {"help", print_help},
};

/* The words that are offered are those of users: bench-worker is not. */
static int mistake(const char *word)
{
    static const char *const known[] = {"bench", "doctor",    "info",   "key",
                                        "sim",   "--version", "--help", NULL};
    const char *near = rueda_near_match(word, known);

    fprintf(stderr, "rueda: unknown %s '%s'",
            word[0] == '-' ? "option" : "command", word);
    if (near != NULL)
        fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, " (see 'rueda --help')\n");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(rueda_help(), stderr);
        return 2;
    }
    /* How rueda bench starts its ranks; not for people. */
    if (strcmp(argv[1], "bench-worker") == 0)
        return rueda_bench_worker_main(argc - 2, argv + 2);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
    return mistake(argv[1]);
}
