/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/takeover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/variables.h"

void rueda_takeover_variables(const struct rueda_options *options,
                              struct rueda_strings *out)
{
    struct rueda_strings ours = {.list = NULL};

    rueda_variables_common(options, &ours);
    rueda_strings_set(&ours, "HOROVOD_CONTROLLER", "mpi");
    rueda_strings_set(&ours, "HOROVOD_CPU_OPERATIONS", "mpi");
    rueda_strings_add_all(out, environ);
    rueda_strings_set_all(out, ours.list);
    out->is_short = out->is_short || ours.is_short;
    rueda_strings_fini(&ours);
}

static void say_command(const struct rueda_options *options,
                        const struct rueda_strings *command)
{
    fprintf(stderr, "%s:", options->program);
    for (int i = 0; i < command->count; i++)
        fprintf(stderr, " %s", command->list[i]);
    fputc('\n', stderr);
}

/* Mpirun and jsrun send the environment over connections of their own, which
 * are not encrypted. Returns the name of a variable that holds a key, or NULL:
 * what rueda.run() says to its ranks, unless it names a file, and the key of
 * Horovod's key-value servers. */
static const char *shown_key(const struct rueda_strings *variables)
{
    static const char run[] = "RUEDA_RUN=";
    static const char in_file[] = "RUEDA_RUN=file:";
    static const char secret[] = "_HOROVOD_SECRET_KEY=";

    for (int i = 0; i < variables->count; i++) {
        const char *variable = variables->list[i];

        if (strncmp(variable, run, strlen(run)) == 0 &&
            strncmp(variable, in_file, strlen(in_file)) != 0)
            return "RUEDA_RUN";
        if (strncmp(variable, secret, strlen(secret)) == 0)
            return "_HOROVOD_SECRET_KEY";
    }
    return NULL;
}

int rueda_takeover(const struct rueda_options *options, const char *program,
                   const struct rueda_strings *command,
                   const struct rueda_strings *variables,
                   struct rueda_text *words)
{
    const char *key = shown_key(variables);

    if (variables->is_short || command->is_short) {
        rueda_text_set(words, "no memory");
        return 1;
    }
    if (key != NULL) {
        rueda_text_set(words,
                       "%s holds a key, which mpirun and jsrun would send over "
                       "the network in the clear; unset it, or start the job "
                       "without --mpi or --jsrun, or by rueda.run(), which "
                       "keeps its key in a file",
                       key);
        return 2;
    }
    if (rueda_options_is_on(options, RUEDA_OPTION_VERBOSE))
        say_command(options, command);
    execve(program, command->list, variables->list);
    rueda_text_set(words, "cannot run %.200s: %s", program, strerror(errno));
    return 2;
}
