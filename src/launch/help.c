/* SPDX-License-Identifier: Apache-2.0 */
/* Printing ruedarun's help from the table of options, by groups. */
#include "launch/help.h"

#include <string.h>

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/near.h"
#include "launch/spawn.h"

#define COLUMNS 80
#define INDENT  30 /* where the meaning begins */

static const struct group {
    const char *name;
    const char *title;
    bool is_everyday;
} groups[RUEDA_GROUP_COUNT] = {
    [RUEDA_GROUP_START] = {"start", "what to start", true},
    [RUEDA_GROUP_PROCESSES] = {"processes", "processes of the ranks", true},
    [RUEDA_GROUP_HOSTS] = {"hosts", "several hosts", true},
    [RUEDA_GROUP_OUTPUT] = {"output", "output", true},
    [RUEDA_GROUP_OTHERS] = {"others", "others", true},
    [RUEDA_GROUP_TUNING] = {"tuning",
                            "variables for the program, set only where given",
                            false},
    [RUEDA_GROUP_AUTOTUNE] = {"autotune",
                              "variables for the program, about autotuning",
                              false},
    [RUEDA_GROUP_MPI] = {"mpi", "by mpirun or jsrun", false},
    [RUEDA_GROUP_ELASTIC] = {"elastic", "elastic jobs, whose ranks come and go",
                             false},
    [RUEDA_GROUP_LIBRARY] = {"library",
                             "variables for the program, about libraries",
                             false},
};

static const char *const group_names[] = {
    "start",    "processes", "hosts", "output",  "others", "tuning",
    "autotune", "library",   "mpi",   "elastic", "all",    NULL};

/* Words from column `at` on, wrapped at the margin. */
static void print_wrapped(FILE *out, size_t at, const char *words)
{
    while (*words != '\0') {
        const size_t len = strcspn(words, " ");

        if (at > INDENT && at + 1 + len > COLUMNS) {
            fprintf(out, "\n%*s", INDENT, "");
            at = INDENT;
        }
        fprintf(out, "%s%.*s", at > INDENT ? " " : "", (int)len, words);
        at += len + (at > INDENT);
        words += len + (words[len] == ' ');
    }
    fputc('\n', out);
}

/* "  -np, --num-proc N". Returns how wide it is. */
static size_t print_names(FILE *out, const struct rueda_option *option)
{
    char names[128] = "";
    size_t len = 0;

    for (int i = 0; i < 2; i++)
        if (option->others[i] != NULL && option->others[i][1] != '-')
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s, ",
                                    option->others[i]);
    snprintf(names + len, sizeof(names) - len, "%s%s%s%s%s", option->name,
             option->value != NULL ? " " : "",
             option->value != NULL ? option->value : "",
             option->negation[0] != NULL ? ", " : "",
             option->negation[0] != NULL ? option->negation[0] : "");
    fprintf(out, "  %s", names);
    return strlen(names) + 2;
}

/* One option: its names, then its meaning at a fixed column. Rare options show
 * their variable, by which a site can set them for all jobs. */
static void print_option(FILE *out, const struct rueda_option *option)
{
    size_t at = print_names(out, option);
    char meaning[200];

    if (option->variable != NULL && !groups[option->group].is_everyday)
        snprintf(meaning, sizeof(meaning), "%s%s%s", option->variable,
                 option->help != NULL ? "; " : "",
                 option->help != NULL ? option->help : "");
    else
        snprintf(meaning, sizeof(meaning), "%s", option->help);
    if (at + 2 > INDENT) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", (int)(INDENT - at), "");
    print_wrapped(out, INDENT, meaning);
}

static void print_group(FILE *out, rueda_option_group group)
{
    fprintf(out, "\n%s\n", groups[group].title);
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++)
        if (rueda_options_table[id].group == group)
            print_option(out, &rueda_options_table[id]);
}

/* A line for a group: its name, and options as far as there is room. */
static void print_index(FILE *out, rueda_option_group group)
{
    int at = fprintf(out, "  %-9s", groups[group].name);

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];
        const char *name =
            option->others[0] != NULL && strlen(option->others[0]) == 2
                ? option->others[0]
                : option->name;

        if (option->group != group)
            continue;
        if (at + 1 + (int)strlen(name) > COLUMNS - 4) {
            fputs(" ...", out);
            break;
        }
        at += fprintf(out, " %s", name);
    }
    fputc('\n', out);
}

/* What fits a small screen: the options of every job, and where the rest is. */
static void print_overview(FILE *out)
{
    print_group(out, RUEDA_GROUP_START);
    fputs("\n\"--help GROUP\" explains these, \"--help all\" everything\n",
          out);
    for (int group = RUEDA_GROUP_START + 1; group < RUEDA_GROUP_COUNT; group++)
        print_index(out, (rueda_option_group)group);
}

static void print_head(const struct rueda_options *options, FILE *out)
{
    fprintf(out,
            "usage: %s -np N [OPTIONS] COMMAND [ARGUMENTS]\n"
            "       %s agent --join HOST:PORT --key-file FILE\n"
            "\n"
            "Starts N ranks of COMMAND, on this host or on others by ssh, "
            "shows what they\n"
            "print, and ends them all when one fails.\n",
            options->program, options->program);
}

/* Print the overview, one group, or all. An unknown group is an error that
 * suggests the nearest name. */
bool rueda_launch_help(const struct rueda_options *options, FILE *out,
                       struct rueda_text *words)
{
    const char *wanted = options->help_group;
    bool is_all = wanted != NULL && strcmp(wanted, "all") == 0;
    bool is_found = wanted == NULL || is_all;
    const char *near;

    if (is_found)
        print_head(options, out);
    if (wanted == NULL)
        print_overview(out);
    for (int group = RUEDA_GROUP_START; group < RUEDA_GROUP_COUNT; group++) {
        const bool is_meant =
            wanted != NULL && strcmp(groups[group].name, wanted) == 0;

        if (is_all || is_meant)
            print_group(out, (rueda_option_group)group);
        is_found = is_found || is_meant;
    }
    if (is_found)
        return true;
    near = rueda_near_match(wanted, group_names);
    rueda_text_set(words, "--help has no group '%.32s'%s%s%s", wanted,
                   near != NULL ? "; did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'?" : "");
    return false;
}

/* Scripts take the whole line of horovodrun for the number. */
void rueda_launch_version(const struct rueda_options *options, FILE *out)
{
    if (!options->is_horovodrun)
        fprintf(out, "%s ", options->program);
    fprintf(out, "%s\n", rueda_version());
}

/* MPI is there where --mpi would find an mpirun. */
void rueda_launch_check_build(const struct rueda_options *options, FILE *out)
{
    struct rueda_text why = {{0}};
    char program[4096];
    const bool has_mpi = rueda_spawn_find("mpirun", rueda_environment("PATH"),
                                          program, sizeof(program), &why);

    fprintf(out,
            "%s v%s:\n"
            "\n"
            "Available Frameworks:\n"
            "    [X] TensorFlow\n"
            "    [X] PyTorch\n"
            "    [ ] MXNet\n"
            "\n"
            "Available Controllers:\n"
            "    [%c] MPI\n"
            "    [X] Gloo\n"
            "\n"
            "Available Tensor Operations:\n"
            "    [ ] NCCL\n"
            "    [ ] DDL\n"
            "    [ ] CCL\n"
            "    [ ] MPI\n"
            "    [X] Gloo\n",
            options->is_horovodrun ? "Horovod" : "Rueda", rueda_version(),
            has_mpi ? 'X' : ' ');
    if (!options->is_horovodrun)
        fputs(
            "\n\"Gloo\" stands for Rueda's own, without MPI; the MPI that "
            "starts ranks is the\nmpirun on the PATH. NCCL is looked for when "
            "tensors on GPUs need it; 'rueda doctor'\nshows what it finds.\n",
            out);
}
