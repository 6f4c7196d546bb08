/* SPDX-License-Identifier: Apache-2.0 */
/* What the options say together: what does not fit, what is missing, and which
 * variables they make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/chosen.h"
#include "launch/command.h"
#include "launch/options.h"

static const char *program_of(const struct rueda_options *options)
{
    return options->program != NULL ? options->program : "ruedarun";
}

/* What a file says beside a rival on the command line gives way. */
static bool check_rivals(const struct rueda_options *options,
                         struct rueda_text *words)
{
    for (int a = 0; a < RUEDA_OPTION_COUNT; a++) {
        for (int b = a + 1; b < RUEDA_OPTION_COUNT; b++) {
            const struct rueda_option *one = &rueda_options_table[a];
            const struct rueda_option *other = &rueda_options_table[b];

            if (one->rivals == RUEDA_RIVALS_NONE ||
                one->rivals != other->rivals || options->values[a] == NULL ||
                options->values[b] == NULL || options->is_from_file[a] ||
                options->is_from_file[b])
                continue;
            rueda_text_set(words, "%s and %s exclude each other", one->name,
                           other->name);
            return false;
        }
    }
    return true;
}

/* --listen stands in for ssh, and takes a key. */
static bool check_listen(const struct rueda_options *options,
                         struct rueda_text *words)
{
    const char *const *values = options->values;

    if (values[RUEDA_OPTION_LISTEN] == NULL &&
        values[RUEDA_OPTION_KEY_FILE] != NULL)
        rueda_text_set(words, "--key-file goes with --listen; over ssh the key "
                              "of the job travels by itself");
    else if (values[RUEDA_OPTION_LISTEN] != NULL &&
             values[RUEDA_OPTION_KEY_FILE] == NULL)
        rueda_text_set(words, "--listen takes a key too, by which agents prove "
                              "that they belong to you: add --key-file FILE; "
                              "a file that is not there is made");
    else if (values[RUEDA_OPTION_LISTEN] != NULL &&
             values[RUEDA_OPTION_HOSTS] == NULL &&
             values[RUEDA_OPTION_HOSTFILE] == NULL &&
             values[RUEDA_OPTION_MIN_NP] == NULL &&
             values[RUEDA_OPTION_DISCOVERY] == NULL)
        rueda_text_set(words, "--listen waits for the hosts of -H or "
                              "--hostfile; name them, or let any come with "
                              "--min-np");
    return rueda_text_is_empty(words);
}

/* A file's word counts for less than any option of the command line. */
rueda_controller rueda_options_controller(const struct rueda_options *options)
{
    const char *controller = options->values[RUEDA_OPTION_CONTROLLER];

    if (options->values[RUEDA_OPTION_MPI] != NULL)
        return RUEDA_CONTROLLER_MPIRUN;
    if (options->values[RUEDA_OPTION_JSRUN] != NULL)
        return RUEDA_CONTROLLER_JSRUN;
    if (options->values[RUEDA_OPTION_GLOO] == NULL && controller != NULL &&
        strcmp(controller, "mpi") == 0)
        return RUEDA_CONTROLLER_MPIRUN;
    return RUEDA_CONTROLLER_OURS;
}

const char *rueda_options_only_ours(const struct rueda_options *options)
{
    static const rueda_option_id ours[] = {
        RUEDA_OPTION_LISTEN,    RUEDA_OPTION_BIND,   RUEDA_OPTION_GRACE,
        RUEDA_OPTION_TF_CONFIG, RUEDA_OPTION_MIN_NP, RUEDA_OPTION_DISCOVERY,
        RUEDA_OPTION_RESTARTS,  RUEDA_OPTION_LINGER, RUEDA_OPTION_DEBUG,
        RUEDA_OPTION_PREFIX,    RUEDA_OPTION_RANKS,  RUEDA_OPTION_TEE};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (options->values[ours[i]] != NULL)
            return rueda_options_table[ours[i]].name;
    return NULL;
}

/* Options that mean something to one way of starting only. */
static bool check_controller(struct rueda_options *options,
                             struct rueda_text *words)
{
    static const rueda_option_id theirs[] = {RUEDA_OPTION_MPI_ARGS,
                                             RUEDA_OPTION_BINDING_ARGS};
    const rueda_controller controller = rueda_options_controller(options);
    const char *ours = rueda_options_only_ours(options);

    if (controller != RUEDA_CONTROLLER_OURS && ours != NULL) {
        rueda_text_set(words, "%s does not go with %s", ours,
                       controller == RUEDA_CONTROLLER_MPIRUN ? "--mpi"
                                                             : "--jsrun");
        return false;
    }
    for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
        if (controller == RUEDA_CONTROLLER_OURS &&
            options->values[theirs[i]] != NULL)
            rueda_text_add(&options->notes,
                           "%s has no effect without --mpi or --jsrun\n",
                           rueda_options_table[theirs[i]].name);
    return true;
}

/* What is shown, and which rank has the terminal. */
static bool check_output(const struct rueda_options *options,
                         struct rueda_text *words)
{
    const char *ranks = options->values[RUEDA_OPTION_RANKS];
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 1 << 20);

    if (ranks != NULL && !rueda_chosen_is_valid(ranks))
        rueda_text_set(words,
                       "--ranks takes ranks such as 0,3,8-11, not "
                       "'%.64s'",
                       ranks);
    else if (rueda_options_whole(options, RUEDA_OPTION_DEBUG, 0) >= size)
        rueda_text_set(words, "--debug %s: the ranks are 0 to %d",
                       options->values[RUEDA_OPTION_DEBUG], size - 1);
    return rueda_text_is_empty(words);
}

bool rueda_options_check(struct rueda_options *options,
                         struct rueda_text *words)
{
    if (!check_rivals(options, words) || !check_listen(options, words) ||
        !check_controller(options, words) || !check_output(options, words))
        return false;
    if (options->command == NULL || options->command[0] == NULL)
        rueda_text_set(words,
                       "there is no command to start; for example: %s -np 2 "
                       "python train.py",
                       program_of(options));
    else if (options->values[RUEDA_OPTION_NP] == NULL &&
             options->values[RUEDA_OPTION_PER_NODE] == NULL)
        rueda_command_say_number(options, words);
    return rueda_text_is_empty(words);
}

/* ---- Variables ---------------------------------------------------------- */

/* The names of levels that the library's own setting takes. */
static const char *our_level(const char *level)
{
    static const char *const pairs[][2] = {
        {"TRACE", "trace"},  {"DEBUG", "debug"}, {"INFO", "info"},
        {"WARNING", "warn"}, {"ERROR", "error"}, {"FATAL", "error"},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (strcmp(level, pairs[i][0]) == 0)
            return pairs[i][1];
    return "warn";
}

static const char *value_for(const struct rueda_option *option,
                             const char *value, char *buf, size_t bytes)
{
    if (option->kind == RUEDA_TAKES_NOTHING && option->is_inverse)
        return strcmp(value, "1") == 0 ? "0" : "1";
    if (!option->is_megabytes)
        return value;
    snprintf(buf, bytes, "%.0f", strtod(value, NULL) * 1024 * 1024);
    return buf;
}

void rueda_options_export(const struct rueda_options *options,
                          void (*set)(void *arg, const char *name,
                                      const char *value),
                          void *arg)
{
    const char *level = options->values[RUEDA_OPTION_LOG_LEVEL];
    char buf[32];

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];
        const char *value = options->values[id];

        if (option->variable == NULL || value == NULL ||
            (option->with != RUEDA_OPTION_NP &&
             !rueda_options_is_on(options, option->with)))
            continue;
        set(arg, option->variable, value_for(option, value, buf, sizeof(buf)));
    }
    if (level != NULL)
        set(arg, "RUEDA_LOG_LEVEL", our_level(level));
}
