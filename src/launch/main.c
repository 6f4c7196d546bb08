/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `ruedarun`, also called `horovodrun`: starts the ranks of a job.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/command.h"
#include "launch/completion.h"
#include "launch/elastic.h"
#include "launch/help.h"
#include "launch/jsrun.h"
#include "launch/launch.h"
#include "launch/lsf.h"
#include "launch/mpi.h"
#include "launch/serve.h"
#include "launch/yaml.h"

static int fail(const struct rueda_options *options,
                const struct rueda_text *words)
{
    fprintf(stderr, "%s: %s\n", options->program, words->chars);
    return 2;
}

/* The notes are lines. */
static void show_notes(struct rueda_options *options)
{
    const char *at = options->notes.chars;

    while (*at != '\0') {
        const size_t len = strcspn(at, "\n");

        fprintf(stderr, "%s: %.*s\n", options->program, (int)len, at);
        at += len + (at[len] == '\n');
    }
}

/* All options of this job, from the command line, the file and
 * the variables. */
static bool complete(struct rueda_options *options, struct rueda_text *words)
{
    const char *file = options->values[RUEDA_OPTION_CONFIG_FILE];

    return (file == NULL || rueda_yaml_read(file, options, words)) &&
           rueda_lsf_fill_in(options, words) &&
           rueda_options_check(options, words) &&
           rueda_command_complete(options, words) &&
           rueda_elastic_check(options, words);
}

/* What the options ask for: help, version, or a job. Returns the exit code. */
static int launch(struct rueda_options *options, struct rueda_text *words)
{

    if (rueda_options_is_on(options, RUEDA_OPTION_HELP))
        return rueda_launch_help(options, stdout, words) ? 0 : 2;
    if (rueda_options_is_on(options, RUEDA_OPTION_VERSION)) {
        rueda_launch_version(options, stdout);
        return 0;
    }
    if (rueda_options_is_on(options, RUEDA_OPTION_CHECK_BUILD)) {
        rueda_launch_check_build(options, stdout);
        return 0;
    }
    if (options->values[RUEDA_OPTION_COMPLETION] != NULL) {
        rueda_launch_completion(options->values[RUEDA_OPTION_COMPLETION],
                                stdout);
        return 0;
    }
    if (!complete(options, words))
        return 2;
    show_notes(options);
    switch (rueda_options_controller(options)) {
    case RUEDA_CONTROLLER_MPIRUN:
        return rueda_mpi_run(options, words);
    case RUEDA_CONTROLLER_JSRUN:
        return rueda_jsrun_run(options, words);
    case RUEDA_CONTROLLER_OURS:
        break;
    }
    return rueda_launch_run(options);
}

/* The process that starts us may have closed them, and other files must not
 * take their numbers. */
static void keep_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* `ruedarun`, `horovodrun`, or `ruedarun agent` on another host. */
int main(int argc, char **argv)
{
    struct rueda_options options;
    struct rueda_text words = {{0}};
    int code;

    keep_standard_descriptors();
    if (argc > 1 && strcmp(argv[1], "agent") == 0)
        return rueda_serve_main(argc - 2, argv + 2);
    if (!rueda_options_parse(argc, argv, &options, &words)) {
        code = fail(&options, &words);
    } else {
        code = launch(&options, &words);
        if (!rueda_text_is_empty(&words))
            fail(&options, &words);
    }
    rueda_options_fini(&options);
    return code;
}
