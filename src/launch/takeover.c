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
 * are not encrypted. What rueda.run() says to its ranks holds a key, unless it
 * names a file. */
static bool is_key_shown(const struct rueda_strings *variables)
{
    static const char name[] = "RUEDA_RUN=";
    static const char in_file[] = "RUEDA_RUN=file:";

    for (int i = 0; i < variables->count; i++)
        if (strncmp(variables->list[i], name, strlen(name)) == 0 &&
            strncmp(variables->list[i], in_file, strlen(in_file)) != 0)
            return true;
    return false;
}

int rueda_takeover(const struct rueda_options *options, const char *program,
                   const struct rueda_strings *command,
                   const struct rueda_strings *variables,
                   struct rueda_text *words)
{
    if (variables->is_short || command->is_short) {
        rueda_text_set(words, "no memory");
        return 1;
    }
    if (is_key_shown(variables)) {
        rueda_text_set(words,
                       "RUEDA_RUN holds a key, which mpirun and jsrun would "
                       "send over the network in the clear; unset it, or let "
                       "rueda.run() start the job, which keeps it in a file");
        return 2;
    }
    if (rueda_options_is_on(options, RUEDA_OPTION_VERBOSE))
        say_command(options, command);
    execve(program, command->list, variables->list);
    rueda_text_set(words, "cannot run %.200s: %s", program, strerror(errno));
    return 2;
}
