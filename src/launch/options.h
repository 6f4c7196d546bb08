/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the user asked for: the command line of ruedarun, and the values of the
 * options (option_table.h). Pure: nothing is printed, opened or looked up; an
 * error becomes one line of text.
 *
 * Options come before the command; from the first word that is none, or from
 * after "--", everything belongs to the command.
 */
#ifndef RUEDA_LAUNCH_OPTIONS_H
#define RUEDA_LAUNCH_OPTIONS_H

#include "base/text.h"
#include "launch/option_table.h"
#include "launch/strings.h"

struct rueda_options {
    /* As written, several of them separated by blanks; a switch is "1" or "0";
     * NULL: not given. */
    const char *values[RUEDA_OPTION_COUNT];
    bool is_from_file[RUEDA_OPTION_COUNT];
    bool is_horovodrun;      /* called by that name */
    const char *program;     /* the name it was called by, without folders */
    char **given;            /* all words of argv but the first; borrowed */
    char **command;          /* ended by NULL; borrowed from argv, or ours */
    const char *help_group;  /* of --help; NULL: none was named */
    struct rueda_text notes; /* remarks to print that are not errors */

    char *owned[RUEDA_OPTION_COUNT];  /* values that are not of argv */
    struct rueda_strings own_command; /* where the command was completed */
};

/*
 * Read a whole command line, argv[0] included, which is borrowed. On an error
 * false, and words says which, with what was probably meant. Undo with
 * rueda_options_fini() in both cases.
 */
bool rueda_options_parse(int argc, char **argv, struct rueda_options *out,
                         struct rueda_text *words);
void rueda_options_fini(struct rueda_options *options);

/*
 * Give an option a value, which is copied, as a configuration file does: one
 * that the command line has given stays. `name` is how the user called it, for
 * messages. A switch takes true, yes, on, 1 and their opposites.
 */
bool rueda_options_give(struct rueda_options *options, rueda_option_id id,
                        const char *name, const char *value,
                        struct rueda_text *words);

/* Give an option a value in place of any that it has; takes the text, which
 * may be NULL. False: no memory. */
bool rueda_options_set(struct rueda_options *options, rueda_option_id id,
                       char *text);

/* Do the options fit together, and is there all that a job needs? */
bool rueda_options_check(struct rueda_options *options,
                         struct rueda_text *words);

/* The program that starts the ranks. */
typedef enum rueda_controller {
    RUEDA_CONTROLLER_OURS,
    RUEDA_CONTROLLER_MPIRUN,
    RUEDA_CONTROLLER_JSRUN,
} rueda_controller;

rueda_controller rueda_options_controller(const struct rueda_options *options);

/* The name of the first given option that others than we cannot carry out, or
 * NULL. */
const char *rueda_options_only_ours(const struct rueda_options *options);

bool rueda_options_is_on(const struct rueda_options *options,
                         rueda_option_id id);
int rueda_options_whole(const struct rueda_options *options, rueda_option_id id,
                        int fallback);
double rueda_options_decimal(const struct rueda_options *options,
                             rueda_option_id id, double fallback);

/* Call set() for each variable that the given options make for the program. */
void rueda_options_export(const struct rueda_options *options,
                          void (*set)(void *arg, const char *name,
                                      const char *value),
                          void *arg);

#endif /* RUEDA_LAUNCH_OPTIONS_H */
